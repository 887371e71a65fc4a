//! The V8 platform, one per process, and the thread from which every isolate's thread descends.
//!
//! V8 requires its platform to be initialised on an ancestor of the threads that run isolates,
//! because memory protection keys are inherited. A library cannot choose the thread that calls it
//! first.

use std::io;
use std::sync::{Mutex, PoisonError, mpsc};

use deno_core::{JsRuntime, v8};

type Task = Box<dyn FnOnce() + Send>;

/// A thread to start, and the channel for the result.
type Request = (Task, mpsc::Sender<io::Result<()>>);

/// V8's flags. The reasons:
///
/// * Stack sizes: CPython recurses in C. V8's default of 1 MB is too little for that, both for its
///   own stack and for those that WebAssembly suspends on. The second kind must not exceed 4 MB: V8
///   keeps at most that much of them for reuse, and a fresh stack doubles the time of every event
///   loop task and every wait. `adapt/recursion.rs` makes CPython raise `RecursionError` before
///   their end.
///
/// * No loop unrolling: where V8 unrolls loops, it may produce an endless one without the check
///   that ends it when the guest is killed. `for (;;) new Array(1000).fill(0)`, once optimised,
///   would run forever.
///
/// * Single thread: an isolate has one thread, and V8 has no others. A worker may be a forked copy
///   of a process, in which only one thread exists. Also, while another thread optimises a
///   JavaScript function, its loops are not checked at all: one that copies a large object at each
///   turn would go on for minutes. The isolate's thread does the optimisation itself when it is
///   due.
///
/// * Tier-up budget: CPython's functions are optimised sooner than by default. Functions that most
///   programs call are already optimised in the image. That code was made with the same budget,
///   because V8 rejects code made with other flags.
///
/// * Table size: the entries of a table are in V8's heap. A single table of V8's default maximum
///   size would exceed the smallest heap limit of a session.
///
/// * Garbage collection: V8 counts the interpreter's memory and code as its own, and would collect
///   garbage when they reach 11 MB, in the middle of each start. It is told to wait until 128 MB,
///   or until the limit of the session's heap.
pub(super) const FLAGS: &str = "--stack-size=16000 --wasm-stack-switching-stack-size=4000 \
                     --no-turboshaft-loop-unrolling --single-threaded --wasm-sync-tier-up \
                     --wasm-max-table-size=1000000 --wasm-tiering-budget=200000 \
                     --initial-old-space-size=64";

/// Space for V8's stack and ours, in bytes. Pages that are never touched cost nothing.
const STACK_BYTES: usize = 32 << 20;

/// Starts a thread for an isolate.
pub(crate) fn spawn(task: impl FnOnce() + Send + 'static) -> io::Result<()> {
    static PARENT: Mutex<Option<mpsc::Sender<Request>>> = Mutex::new(None);
    let mut parent = PARENT.lock().unwrap_or_else(PoisonError::into_inner);
    let requests = match &*parent {
        Some(requests) => requests,
        None => parent.insert(start_parent()?),
    };
    let (answer, started) = mpsc::channel();
    let lost = || io::Error::other("the engine's thread has ended");
    requests.send((Box::new(task), answer)).map_err(|_| lost())?;
    started.recv().map_err(|_| lost())?
}

fn start_parent() -> io::Result<mpsc::Sender<Request>> {
    let (requests, tasks) = mpsc::channel::<Request>();
    let serve = move || {
        v8::V8::set_flags_from_string(FLAGS);
        // A worker cannot read randomness from a file, and V8 would use the clock instead.
        v8::V8::set_entropy_source(|seed: &mut [u8]| getrandom::fill(seed).is_ok());
        JsRuntime::init_platform(Some(
            v8::new_single_threaded_default_platform(false).make_shared(),
        ));
        for (task, answer) in tasks {
            let thread = std::thread::Builder::new()
                .name("isolet-isolate".to_owned())
                .stack_size(STACK_BYTES)
                .spawn(task);
            // The caller waits for the answer, so sending cannot fail.
            let _ = answer.send(thread.map(drop));
        }
    };
    std::thread::Builder::new().name("isolet-engine".to_owned()).spawn(serve)?;
    Ok(requests)
}

/// Runs tasks that V8 has deferred, on the isolate's thread. Their number is limited, because tasks
/// that create further tasks could go on forever.
pub(super) fn run_tasks(isolate: &v8::Isolate) {
    const TASKS: usize = 16;
    let platform = v8::V8::get_current_platform();
    for _ in 0..TASKS {
        if !v8::Platform::pump_message_loop(&platform, isolate, false) {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_that_a_host_without_v8_knows_is_the_one_that_is_linked() {
        assert_eq!(crate::data::version::v8_version(), v8::V8::get_version());
    }
}
