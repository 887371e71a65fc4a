//! Options that several subcommands have.

pub(crate) mod isolation;
pub(crate) mod permissions;
pub(crate) mod policy;
mod secrets;
pub(crate) mod value_parsers;
pub(crate) mod words;
