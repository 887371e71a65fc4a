//! The files of `src/tool` that say what a tool is, without those that call it.

#[path = "../../src/tool/error.rs"]
mod error;
#[path = "../../src/tool/hint.rs"]
mod hint;
#[path = "../../src/tool/name.rs"]
mod name;
#[path = "../../src/tool/spec.rs"]
pub(crate) mod spec;

pub use error::ToolError;
pub use hint::TypeHint;
pub use spec::{Param, ToolSpec};
