//! The files of `src/support` that the others name.

#[path = "../../src/support/block_on.rs"]
pub(crate) mod block_on;
#[path = "../../src/support/spin.rs"]
pub(crate) mod spin;
