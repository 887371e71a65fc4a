//! The decoders of hostile input, without the engine, and what has to hold of them.
//!
//! The modules are isolet's own files. They are compiled here a second time, because they are
//! private there and because isolet links V8, which these targets have no use for.

#![expect(dead_code, unused_imports, reason = "the modules serve the rest of isolet")]

#[path = "../../src/data/mod.rs"]
mod data;
mod fs;
mod memory;
mod net;
mod packages;
#[path = "../../src/protocol/mod.rs"]
mod protocol;
mod support;
mod worker;

pub mod checks;
