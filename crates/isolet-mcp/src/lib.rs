//! MCP servers as the source of tools for Python: the client's side of the Model Context Protocol.
//!
//! A [`Config`] lists the servers: from isolet's own file, in the shape that most clients have, or
//! from the file of another [`Client`]. A [`Hub`] starts the servers when they are first needed and
//! makes [`Tool`](isolet::Tool)s of their tools:
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use isolet_mcp::{Ask, Config, Decision, Environment, Hub, Origin, Rule};
//!
//! let environment = Environment::new(std::env::vars());
//! let config = Config::read("isolet.mcp.json", &environment, Origin::Own)?;
//! let hub = Hub::builder()
//!     .config(config)
//!     .rule(Rule::allow("github.get_*")?)
//!     .approver(|ask: Ask| Decision::No(format!("{} is not for today", ask.tool)))
//!     .on_call(|call| eprintln!("{}.{}: {}", call.server, call.tool, call.outcome))
//!     .build()?;
//! let tools = hub.tools("github").await.map_err(|error| error.to_string())?;
//! # Ok(()) }
//! ```
//!
//! # What is enforced
//!
//! * **Rules.** Each call is decided separately, before anything is sent: [`Rule`], [`Approver`].
//!   A call that no rule allows needs a person.
//! * **Arguments** are checked against the tool's schema on the host. No reference of a schema to
//!   the network is followed.
//! * **Pins.** A tool that is new or has changed since the user first saw the server is refused
//!   until it is accepted: [`PinDiff`], [`Hub::accept`].
//! * **Secrets** of the configuration stay in the host's process. Where a server repeats them, in
//!   results, errors or its log, `[secret]` stands in their place.
//! * **Sizes.** An answer has at most 2 MiB ([`HubBuilder::max_answer_bytes`]), a server at most
//!   5,000 tools. Descriptions are cut, and invisible characters are removed from them.
//!
//! A server that is a process is *not* sandboxed: it runs as the user, in a small environment, as
//! in any other client.
//!
//! # Values and exceptions
//!
//! Python gets a server's result without its envelope: the structured content if there is some;
//! otherwise an object or list of JSON that is the only text, a text, `{"mime": …, "data": bytes}`
//! for an image, sound or file, a dict with `uri` for a link, and a list of these if there are
//! several. A tool's failure raises `ToolError`, a refusal `PermissionError`, a server that is not
//! there `ConnectionError`, a call that takes too long `TimeoutError`.

pub mod llm;
#[cfg(feature = "server")]
pub mod server;

mod auto_traits;
mod config;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod hub;
mod support;
#[cfg(test)]
mod tests;
mod tool;
mod upstream;

pub use config::{Client, Config, Environment, Origin, Secret, ServerConfig, Skipped, System};
pub use hub::audit::{CallOutcome, CallRecord};
pub use hub::policy::{Approver, Ask, DecidedBy, Decision, DecisionFuture, Rule, Verdict};
pub use hub::{Hub, HubBuilder, Server, ServerReport, ToolInfo};
pub use tool::pins::PinDiff;
