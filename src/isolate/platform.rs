//! The V8 platform, one per process, and the thread from which every isolate's thread descends.
//!
//! V8 requires its platform to be initialised on an ancestor of the threads that run isolates,
//! because memory protection keys are inherited. A library cannot choose the thread that calls it
//! first.

use std::io;
use std::sync::{Mutex, PoisonError, mpsc};

use deno_core::{JsRuntime, v8};

use crate::image::V8_FLAGS;
use crate::support::obstacles;

type Task = Box<dyn FnOnce() + Send>;

/// A thread to start, and the channel for the result.
type Request = (Task, mpsc::Sender<io::Result<()>>);

/// The stack of an isolate's thread, in bytes: V8's and ours. Untouched pages cost nothing.
const STACK_BYTES: usize = 32 << 20;

/// Starts a thread for an isolate.
pub(crate) fn spawn(task: impl FnOnce() + Send + 'static) -> io::Result<()> {
    static PARENT: Mutex<Option<mpsc::Sender<Request>>> = Mutex::new(None);
    let mut parent = PARENT.lock().unwrap_or_else(PoisonError::into_inner);
    if parent.is_none()
        && let Some(obstacle) = obstacles::of_v8()
    {
        // V8 would end the process, and say nothing that helps.
        return Err(io::Error::other(obstacle.to_string()));
    }
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
        // Before anything of V8 starts. Without it no isolate may start: see `MEMORY_BOUNDS`.
        let has_handler = v8::V8::enable_web_assembly_trap_handler(true);
        // A worker has no file to read randomness from; V8 would fall back to the clock.
        v8::V8::set_entropy_source(|seed: &mut [u8]| getrandom::fill(seed).is_ok());
        JsRuntime::init_platform(Some(
            v8::new_single_threaded_default_platform(false).make_shared(),
        ));
        for (task, answer) in tasks {
            let started = if has_handler {
                let thread = std::thread::Builder::new().name("isolet-isolate".to_owned());
                thread.stack_size(STACK_BYTES).spawn(task).map(drop)
            } else {
                Err(io::Error::other("V8 could not install its handler for SIGSEGV"))
            };
            // The caller waits for the answer, so sending cannot fail.
            let _ = answer.send(started);
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
