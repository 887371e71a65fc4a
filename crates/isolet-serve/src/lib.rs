//! isolet's service over wires: [`stdio`] for a parent process, and a node over [`http`] for many
//! clients. See `docs/reference/protocol.md` and `docs/reference/http-api.md`.

pub mod http;
pub mod stdio;

mod ending;
mod parent;
mod wire;

pub use wire::Wire;
