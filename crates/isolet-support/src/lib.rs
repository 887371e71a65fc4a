//! The parts that isolet's servers and command share: frames, JSON, sockets, an HTTP server with
//! bounds.
//!
//! A part of isolet, not an API: any version may change it.

#![expect(
    missing_docs,
    missing_debug_implementations,
    clippy::missing_errors_doc,
    clippy::must_use_candidate,
    reason = "a part of isolet, not an API"
)]

pub mod audit_line;
pub mod frames;
pub mod http_server;
pub mod inert;
pub mod journal;
pub mod json;
pub mod json_rpc;
pub mod json_text;
pub mod mime_bundle;
pub mod quoted;
pub mod secret;
/// Sizes as people read them.
pub mod size {
    pub use isolet::internals::shown_bytes;
}
pub mod skills;
pub mod socket;
pub mod template;
pub mod text;
pub mod yaml;
