//! Plain data types that all other folders use: values, cells, results of runs, limits, errors.

pub(crate) mod cell;
pub(crate) mod counted;
pub(crate) mod determinism;
pub(crate) mod display;
pub(crate) mod error;
pub(crate) mod execution;
mod execution_form;
pub(crate) mod invisible;
pub(crate) mod isolation;
pub(crate) mod limits;
pub(crate) mod missing_module;
pub(crate) mod output;
pub(crate) mod redact;
pub(crate) mod shown;
pub(crate) mod stdin;
pub(crate) mod terminal;
pub(crate) mod tool;
pub(crate) mod value;
pub(crate) mod version;
pub(crate) mod written_file;
