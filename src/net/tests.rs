//! Tests of egress, with real sockets on loopback. The policy supplies the addresses of names, so
//! that no DNS query is made.

mod bodies;
mod connections;
mod decision;
mod guest;
mod headers;
mod lifetime;
mod limits;
mod protocol;
mod redirects;
mod secrets;
mod server;
mod sessions;
mod streams;
mod tls;
