//! Says on standard error what takes longer than a second, and how long it has taken so far.

use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// How long nothing is said, and then how often it is said anew.
const STEP: Duration = Duration::from_secs(1);

/// Goes to the beginning of the line and erases it.
const ERASE: &str = "\r\x1b[2K";

/// Shows what is done, if somebody is there to see it.
#[derive(Clone, Copy)]
pub(super) struct Progress {
    is_shown: bool,
}

impl Progress {
    /// Progress is shown on a terminal only.
    pub(super) fn new(is_quiet: bool) -> Self {
        Self { is_shown: !is_quiet && io::stderr().is_terminal() }
    }

    /// Does some work. `what` says what it is, such as `making the memory image`.
    pub(super) fn during<T>(self, what: &str, work: impl FnOnce() -> T) -> T {
        if !self.is_shown {
            return work();
        }
        thread::scope(|scope| {
            let (done, is_done) = mpsc::channel::<()>();
            let showing = thread::Builder::new().spawn_scoped(scope, move || show(what, &is_done));
            let result = work();
            drop(done);
            // The line has to be erased before anything else is written. Without the thread there
            // is none.
            let _ = showing.map(thread::ScopedJoinHandle::join);
            result
        })
    }
}

/// What is done when a session gets these packages.
pub(super) fn of_packages(packages: &[String]) -> String {
    match packages {
        [] => "preparing the session".to_owned(),
        packages => format!("resolving and fetching {}", packages.join(", ")),
    }
}

/// Shows a line until the work is done. A standard error that cannot be written to shows nothing.
fn show(what: &str, is_done: &Receiver<()>) {
    let start = Instant::now();
    let mut has_shown = false;
    while let Err(RecvTimeoutError::Timeout) = is_done.recv_timeout(STEP) {
        has_shown = true;
        let seconds = start.elapsed().as_secs();
        let _ = write!(io::stderr(), "{ERASE}isolet: {what} ... {seconds} s");
    }
    if has_shown {
        let _ = write!(io::stderr(), "{ERASE}");
    }
}
