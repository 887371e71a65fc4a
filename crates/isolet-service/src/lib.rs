//! The core of isolet's servers: sandboxes and sessions, their commands in order ([`core`]), and
//! nodes of them for tenants ([`node`]). Neither knows a wire.
//!
//! A part of isolet, not an API: any version may change it.

#![expect(
    missing_docs,
    missing_debug_implementations,
    clippy::missing_errors_doc,
    clippy::must_use_candidate,
    reason = "a part of isolet, not an API"
)]

pub mod core;
pub mod node;
