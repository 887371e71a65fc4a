//! Tests of `isolet mcp`, by a client that speaks the protocol's lines and its HTTP.

mod add;
mod approvals;
mod apps;
pub(crate) mod client;
mod files;
mod http;
mod limits;
mod results;
mod servers;
mod sessions;
mod skills;
mod sleep;
mod tolerance;
mod via;
