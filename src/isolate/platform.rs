//! The V8 platform, one a process, and the thread that every isolate's thread descends from.
//!
//! V8 wants its platform initialized on an ancestor of the threads that run isolates (memory
//! protection keys are inherited), and libraries do not choose which thread calls them first.

use std::io;
use std::sync::{Mutex, PoisonError, mpsc};

use deno_core::{JsRuntime, v8};

type Task = Box<dyn FnOnce() + Send>;

/// A thread to start, and where to answer whether it was.
type Request = (Task, mpsc::Sender<io::Result<()>>);

/// V8's flags, each for a reason.
///
/// CPython recurses in C, and V8's default of 1 MB for its own stack, and for those that
/// WebAssembly suspends on, is little for that. The second kind may not be larger than 4 MB: V8
/// keeps at most so much of them for reuse, and a fresh one costs every task of an event loop, and
/// every wait, twice the time. `adapt/recursion.rs` has CPython raise `RecursionError` before it
/// reaches their end.
///
/// Where V8 unrolls loops it may leave an endless one without the check that ends it when the guest
/// is killed: `for (;;) new Array(1000).fill(0)`, once optimized, would run for ever.
///
/// An isolate has one thread, and V8 none besides. A worker may be the copy of a process, which has
/// no threads but one. And while another thread optimizes a function of JavaScript, its loops are
/// not checked at all: one that copies a large object at each turn would go on for minutes. What V8
/// would have others optimize, the isolate's thread does when it is due.
///
/// CPython's functions are optimized sooner than V8 would have them. What most programs call comes
/// optimized with the image, made with the same budget; code made with other flags V8 does not
/// take.
///
/// The entries of a table are in V8's heap. Of the largest table that V8 makes by default one is
/// too much for the least heap that a session may have.
///
/// V8 counts the interpreter's memory and code as its own, and would collect garbage when it has
/// reached 11 MB: in each start, in the midst of it. It is told to wait for 128 MB, or for as many
/// as the session's heap may have.
pub(super) const FLAGS: &str = "--stack-size=16000 --wasm-stack-switching-stack-size=4000 \
                     --no-turboshaft-loop-unrolling --single-threaded --wasm-sync-tier-up \
                     --wasm-max-table-size=1000000 --wasm-tiering-budget=200000 \
                     --initial-old-space-size=64";

/// Room for V8's stack and for ours. Pages that are never touched cost nothing.
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
        // A worker has no file to read randomness from, and V8 would take the clock's.
        v8::V8::set_entropy_source(|seed: &mut [u8]| getrandom::fill(seed).is_ok());
        JsRuntime::init_platform(Some(
            v8::new_single_threaded_default_platform(false).make_shared(),
        ));
        for (task, answer) in tasks {
            let thread = std::thread::Builder::new()
                .name("isolet-isolate".to_owned())
                .stack_size(STACK_BYTES)
                .spawn(task);
            // The caller waits for the answer, so it cannot be gone.
            let _ = answer.send(thread.map(drop));
        }
    };
    std::thread::Builder::new().name("isolet-engine".to_owned()).spawn(serve)?;
    Ok(requests)
}

/// Does what V8 has put off, on the isolate's thread; some of it, so that a task which leads to
/// another one cannot go on for ever.
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
