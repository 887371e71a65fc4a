//! The frames between a worker and its parent.

#[path = "../../src/worker/wire/mod.rs"]
pub(crate) mod wire;
