//! The guest's view of tools: their signatures, and the errors that they raise.

mod error;
mod hint;
pub(crate) mod name;
mod object;
pub(crate) mod param;
pub(crate) mod reserved;
pub(crate) mod schema;
pub(crate) mod search;
pub(crate) mod spec;
mod stub;

pub use error::ToolError;
pub use hint::TypeHint;
pub use object::ObjectHint;
pub use param::Param;
pub use search::search;
pub use spec::ToolSpec;
pub use stub::stub;
