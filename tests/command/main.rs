//! The integration tests of the command and its servers, by their arguments, streams, sockets and
//! files. They run once, in the default isolation; those of `on_threads` run on threads. No test
//! here starts an engine of its own: this program has no V8.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests panic as tests do; clippy knows only the test functions themselves"
)]

mod assets;
mod bundles;
mod command;
#[expect(non_snake_case, reason = "tests are named as the files of the corpus are")]
mod corpus;
mod defaults;
mod dependents;
mod determinism;
mod displays;
mod dspy;
mod endings;
mod endpoint;
mod errors;
mod files;
mod first_start;
mod guest_images;
mod host_requests;
mod isolation;
mod journal;
mod json;
mod limit_lists;
mod mcp;
mod memory;
mod monty;
mod node;
mod notebooks;
mod odd_values;
mod on_threads;
mod package;
mod packages;
mod pipes;
mod preload;
mod programs;
#[cfg(unix)]
mod prompt;
#[cfg(unix)]
mod pty;
mod repl;
mod security;
mod serve;
mod shells;
mod skills;
mod snippets;
#[cfg(unix)]
mod terminal;
mod threads;
mod written_files;
