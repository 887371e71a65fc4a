//! The integration tests: one binary, because each binary links V8 again. They use only the public
//! API and the built command.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests panic as tests do; clippy knows only the test functions themselves"
)]

mod alarms;
mod assets;
mod async_code;
mod await_tolerance;
mod caps;
mod child;
mod clock_pause;
mod command;
mod completion;
mod copies;
#[expect(non_snake_case, reason = "tests are named as the files of the corpus are")]
mod corpus;
mod deadline;
mod defaults;
mod displays;
mod dspy;
mod endings;
mod errnos;
mod errors;
mod event_loop;
mod exceptions;
mod exits;
mod files;
mod first_start;
#[cfg(target_os = "linux")]
mod foreign_calls;
mod forks;
mod garbage;
#[path = "../golden/mod.rs"]
mod golden;
mod guest_images;
mod host_time;
mod hostile;
mod interrupt;
mod ipython;
mod isolation;
mod json;
mod leaks;
mod linking;
mod linux;
mod locals;
mod matrix;
mod mcp;
mod memory;
mod monty;
mod network_errors;
mod node;
mod notebooks;
mod odd_values;
mod output;
mod package;
mod packages;
mod pipes;
mod pool;
mod preload;
mod profile_python_executor;
mod profile_python_helpers;
mod profile_sandboxed_executor;
mod programs;
#[cfg(unix)]
mod prompt;
#[cfg(unix)]
mod pty;
mod race;
mod recursion;
mod repl;
mod returns;
mod saved;
mod science;
mod security;
mod serve;
mod server;
mod session;
mod stdin;
mod stdlib;
mod submit;
#[cfg(unix)]
mod terminal;
mod threads;
mod tool_bounds;
mod tool_calls;
mod tool_modules;
mod tool_specs;
mod tool_stubs;
mod tools;
mod util;
mod values;
mod variables;
mod written_files;
