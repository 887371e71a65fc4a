//! The integration tests of the library, by its public API. `cargo xtask test` runs them with both
//! isolations, which `ISOLET_ISOLATION` selects; those of `workers` run in workers only.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests panic as tests do; clippy knows only the test functions themselves"
)]

mod alarms;
mod async_code;
mod await_tolerance;
mod bundles;
mod caps;
mod checkpoints;
mod clock_pause;
mod completion;
mod corpus;
mod deadline;
mod defaults;
mod deferred;
mod determinism;
mod displays;
mod endings;
mod errnos;
mod errors;
mod exceptions;
mod exits;
mod files;
#[cfg(target_os = "linux")]
mod foreign_calls;
mod garbage;
#[path = "../golden/mod.rs"]
mod golden;
mod guest_images;
mod host_time;
mod hostile;
mod interrupt;
mod ipython;
mod isolation;
mod journal;
mod journal_packages;
#[cfg(feature = "jupyter")]
mod jupyter;
mod killed;
mod leaks;
mod linking;
mod linux;
mod locals;
mod matrix;
mod memory;
mod network_errors;
mod odd_values;
mod output;
mod pool;
mod preload;
mod profile_python_executor;
mod profile_python_helpers;
mod profile_sandboxed_executor;
mod programs;
mod race;
mod recursion;
mod replayed_ends;
mod returns;
mod saved;
mod science;
mod security;
mod serialised;
mod session;
mod shell;
mod stdin;
mod stdlib;
mod submit;
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
mod workers;
mod written_files;
