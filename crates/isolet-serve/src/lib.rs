//! isolet's service over wires: [`stdio`] for a parent process, and a node over [`http`] for many
//! clients. See `docs/reference/protocol.md` and `docs/reference/http-api.md`.
//!
//! `isolet serve` is a program over this crate. Another program can have a node, too:
//!
//! ```no_run
//! use isolet::{Engine, Isolation};
//! use isolet_serve::{Engines, Environment};
//! use isolet_serve::http::{self, NODE_WORKER_NICENESS, NodeOptions};
//!
//! # fn main() -> anyhow::Result<()> {
//! isolet::init();
//! let options = NodeOptions {
//!     journals: None,
//!     address: "127.0.0.1:8400".parse().map_err(anyhow::Error::msg)?,
//!     config: Some("node.toml".into()),
//!     environment: Environment::default(),
//!     name: "node".to_owned(),
//!     max_sessions: None,
//!     log: None,
//!     console: true,
//!     dies_with_parent: false,
//! };
//! http::serve(&options, |max_sessions, runtime| {
//!     let engine = Engine::builder().max_sessions(max_sessions);
//!     let engine = engine.busy_wait(false).worker_niceness(NODE_WORKER_NICENESS);
//!     Ok(Engines::new(engine.event_loop(runtime.clone())?, Isolation::Process))
//! })
//! # }
//! ```

pub mod http;
pub mod stdio;

mod ending;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
#[cfg(target_os = "linux")]
mod parent;
#[cfg(not(target_os = "linux"))]
#[path = "parent_portable.rs"]
mod parent;
mod wire;

pub use isolet_service::core::Engines;
pub use isolet_support::socket::Address;
pub use isolet_support::template::Environment;
pub use wire::Wire;
