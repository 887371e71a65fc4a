//! The threat table of docs/security.md: one test for each row, named after the property. Each test
//! checks what the host saw with a canary: a file, a server, a variable.

mod census;
mod environment;
mod escape;
mod files;
mod hooks;
mod kills;
mod network;
mod packages;
mod patches;
mod realm;
mod secrets;
mod sessions;
mod shell;
mod tampering;
mod texts;
mod util;
mod wasm;
