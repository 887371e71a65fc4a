//! A stack for the command where the system gives its first thread a small one (`ulimit -s`).

use std::panic::resume_unwind;
use std::process::ExitCode;
use std::thread;

use rustix::process::{Resource, getrlimit};

/// The size that suffices, and that of the new thread, which is the usual size of systems.
const ENOUGH_BYTES: u64 = 4 << 20;
const STACK_BYTES: usize = 8 << 20;

/// Runs the command, on a new thread if the stack of this one may not suffice.
pub(crate) fn with_enough(main: fn() -> ExitCode) -> ExitCode {
    if getrlimit(Resource::Stack).current.is_none_or(|limit| limit >= ENOUGH_BYTES) {
        return main();
    }
    let thread = thread::Builder::new().name("isolet-main".to_owned()).stack_size(STACK_BYTES);
    match thread.spawn(main) {
        Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
        // It may suffice.
        Err(_) => main(),
    }
}
