//! The files of `src/packages` that read requirements and wheels.

#[path = "../../src/packages/archive.rs"]
pub(crate) mod archive;
#[path = "../../src/packages/error.rs"]
mod error;
#[path = "../../src/packages/inflated.rs"]
mod inflated;
#[path = "../../src/packages/interpreter.rs"]
mod interpreter;
#[path = "../../src/packages/marker.rs"]
pub(crate) mod marker;
#[path = "../../src/packages/metadata.rs"]
pub(crate) mod metadata;
#[path = "../../src/packages/requirement.rs"]
pub(crate) mod requirement;
#[path = "../../src/packages/script.rs"]
pub(crate) mod script;
#[path = "../../src/packages/wheel.rs"]
pub(crate) mod wheel;
#[path = "../../src/packages/wheel_name.rs"]
pub(crate) mod wheel_name;
