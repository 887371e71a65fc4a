//! A tool as its server defines it, and as Python sees it.

pub(crate) mod definition;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
pub(crate) mod names;
pub(crate) mod pins;
pub(crate) mod shape;
pub(crate) mod signature;
pub(crate) mod text;
pub(crate) mod value;
