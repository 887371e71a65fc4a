//! MCP servers as the source of tools.

mod config;
mod definition;
mod names;
mod pins;
mod redact;
mod shape;
mod signature;
mod store;
mod text;
mod value;

pub use config::{Client, Config, Environment, Origin, Secret, ServerConfig, Skipped};
pub use pins::PinDiff;
