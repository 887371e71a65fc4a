//! The V8 platform, one a process, and the thread that every isolate's thread descends from.
//!
//! V8 wants its platform initialized on an ancestor of the threads that run isolates (memory
//! protection keys are inherited), and libraries do not choose which thread calls them first.

use std::io;
use std::sync::{Mutex, PoisonError, mpsc};

use deno_core::{JsRuntime, v8};

use crate::image::V8_FLAGS;

type Task = Box<dyn FnOnce() + Send>;

/// A thread to start, and where to answer whether it was.
type Request = (Task, mpsc::Sender<io::Result<()>>);

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
        v8::V8::set_flags_from_string(V8_FLAGS);
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
