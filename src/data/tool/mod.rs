//! What a host function looks like to a guest, and the errors that it raises there.

mod error;
mod hint;
pub(crate) mod name;
pub(crate) mod schema;
pub(crate) mod spec;

pub use error::ToolError;
pub use hint::TypeHint;
pub use spec::{Param, ToolSpec};
