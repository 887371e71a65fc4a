//! The rules of `src/permissions` for the network.

#[path = "../../src/permissions/net/mod.rs"]
pub(crate) mod net;
