//! Tests of `isolet mcp`, by a client that speaks the protocol's lines and its HTTP.

mod add;
mod client;
mod http;
mod results;
mod servers;
mod sessions;
