//! MCP servers as the source of tools.

mod audit;
mod config;
mod definition;
mod hub;
mod names;
mod pins;
mod policy;
mod redact;
mod shape;
mod signature;
mod store;
mod text;
mod upstream;
mod value;

pub use audit::{CallOutcome, CallRecord};
pub use config::{Client, Config, Environment, Origin, Secret, ServerConfig, Skipped};
pub use hub::{Hub, HubBuilder, Server, ServerReport, ToolInfo};
pub use pins::PinDiff;
pub use policy::{Approver, Ask, DecidedBy, Decision, DecisionFuture, Rule, Verdict};
