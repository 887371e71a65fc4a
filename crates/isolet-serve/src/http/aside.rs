//! Work on large values, off the threads that serve requests and at the niceness of guests, so that
//! one client's work does not delay the guests of others.

use std::panic::resume_unwind;
use std::thread;

use tokio::runtime::Handle;

use crate::http::NODE_WORKER_NICENESS;

/// JSON of this many bytes is read and written aside.
pub(super) const LARGE_BYTES: usize = 256 << 10;

/// Does work on this many bytes. If there are many, a thread with lower priority does it, and this
/// thread's other requests continue.
pub(super) fn aside<T: Send>(bytes: usize, work: impl FnOnce() -> T + Send) -> T {
    // It may already run aside.
    if bytes < LARGE_BYTES || Handle::try_current().is_err() {
        return work();
    }
    tokio::task::block_in_place(|| {
        let mut work = Some(work);
        let done = thread::scope(|scope| {
            let thread = thread::Builder::new().name("isolet-large".to_owned());
            let main = || {
                // Fails if a limit forbids it. The thread then has the usual priority.
                let _ = rustix::process::nice(NODE_WORKER_NICENESS.into());
                work.take().map(|work| work())
            };
            let done = thread.spawn_scoped(scope, main).ok()?;
            done.join().unwrap_or_else(|panic| resume_unwind(panic))
        });
        match (done, work.take()) {
            (Some(done), _) => done,
            // No thread could be started.
            (None, Some(work)) => work(),
            (None, None) => unreachable!("a thread takes the work and has done it"),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn other_tasks_of_a_thread_go_on_during_much_work() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build();
        let done = runtime.unwrap().block_on(async {
            let worked = tokio::spawn(async {
                let (sender, done) = mpsc::channel();
                tokio::spawn(async move { sender.send(()) });
                aside(LARGE_BYTES, move || done.recv_timeout(Duration::from_mins(1)))
            });
            worked.await.unwrap()
        });
        assert_eq!(done, Ok(()));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn much_work_gives_way_to_others_and_little_does_not() {
        let niceness = || rustix::process::getpriority_process(None).unwrap();
        let own = niceness();
        assert_eq!(aside(LARGE_BYTES - 1, niceness), own);
        let most = own + i32::from(NODE_WORKER_NICENESS);
        assert_eq!((aside(LARGE_BYTES, niceness), niceness()), (most.min(19), own));
    }
}
