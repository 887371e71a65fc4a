//! Tests of egress, with real sockets on loopback. Names get their addresses from the policy, so
//! that nothing asks DNS.

mod bodies;
mod decision;
mod guest;
mod headers;
mod lifetime;
mod limits;
mod protocol;
mod redirects;
mod server;
mod sessions;
mod streams;
mod tls;
