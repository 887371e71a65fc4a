//! MCP servers as the source of tools.

mod config;
mod redact;

pub use config::{Client, Config, Environment, Origin, Secret, ServerConfig, Skipped};
