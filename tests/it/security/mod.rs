//! The threat table of docs/security.md: one test for each row, named after the property. Each test
//! checks what the host saw with a canary: a file, a server, a variable.

mod census;
mod command;
mod environment;
mod files;
#[cfg(target_os = "linux")]
mod forks;
mod hooks;
mod kills;
mod network;
mod packages;
mod patches;
mod realm;
mod sessions;
mod table;
mod tampering;
mod texts;
mod util;
mod wasm;
