//! What the library has in `src/worker`.

pub(crate) mod parent;
pub(crate) mod wire;
