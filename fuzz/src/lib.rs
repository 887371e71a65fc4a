//! The decoders of hostile input, without the engine, and what has to hold of them.
//!
//! The modules are isolet's own files. They are compiled here a second time, because they are private
//! there and because isolet links V8, which these targets have no use for.

#![expect(dead_code, unused_imports, reason = "the modules serve the rest of isolet")]

#[path = "../../src/cell.rs"]
mod cell;
#[path = "../../src/error.rs"]
mod error;
#[path = "../../src/execution.rs"]
mod execution;
#[path = "../../src/frame/mod.rs"]
mod frame;
mod fs;
#[path = "../../src/worker/incoming.rs"]
mod incoming;
#[path = "../../src/isolation/mod.rs"]
mod isolation;
#[path = "../../src/limits.rs"]
mod limits;
mod memory;
mod net;
#[path = "../../src/output.rs"]
mod output;
mod packages;
#[path = "../../src/stdin.rs"]
mod stdin;
#[path = "../../src/terminal.rs"]
mod terminal;
mod tool;
#[path = "../../src/value/mod.rs"]
mod value;
#[path = "../../src/version.rs"]
mod version;
#[path = "../../src/waist.rs"]
mod waist;
#[path = "../../src/worker/wire.rs"]
mod wire;

pub mod checks;
