//! The checks of the fuzz targets whose decoders are public, or of the command: what must hold of
//! every input. A check panics when a property does not hold.
//!
//! The command is a program, and needs V8. What it decodes is compiled here, from its own files.

#![expect(dead_code, reason = "the command uses more of its files")]

mod client_config;
mod dspy;
mod json_rpc;
mod json_text;
mod monty;
mod notebook;
mod shown;
mod skill;
mod terminal;

pub use client_config::client_config;
pub use dspy::dspy;
pub use json_rpc::json_rpc;
pub use json_text::json_text;
pub use monty::monty;
pub use notebook::notebook;
pub use shown::shown;
pub use skill::skill;
pub use terminal::terminal;
