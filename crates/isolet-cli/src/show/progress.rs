//! Reports on standard error work that takes longer than a second: on a terminal with the elapsed
//! time, elsewhere by one line.

use isolet_support::size::shown_bytes;
use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use isolet::PackageDownload;

/// The delay before the first line, and then between updates.
const STEP: Duration = Duration::from_secs(1);

/// Moves to the beginning of the line and erases it.
const ERASE: &str = "\r\x1b[2K";

/// How progress is shown.
#[derive(Clone, Copy)]
pub(crate) enum Progress {
    Hidden,
    /// A line that changes, and is erased at the end.
    OnTerminal,
    /// A line that stays.
    InLog,
}

impl Progress {
    pub(crate) fn new(is_quiet: bool) -> Self {
        match io::stderr().is_terminal() {
            _ if is_quiet => Self::Hidden,
            true => Self::OnTerminal,
            false => Self::InLog,
        }
    }

    /// Does some work. `what` describes it, as in `making the memory image`.
    pub(crate) fn during<T>(self, what: &str, work: impl FnOnce() -> T) -> T {
        match self {
            Self::Hidden => return work(),
            Self::InLog => return said(what, work),
            Self::OnTerminal => {}
        }
        thread::scope(|scope| {
            let (done, is_done) = mpsc::channel::<()>();
            let showing = thread::Builder::new().spawn_scoped(scope, move || show(what, &is_done));
            let result = work();
            drop(done);
            // The line must be erased before anything else is written. Without the thread there is
            // no line.
            let _ = showing.map(thread::ScopedJoinHandle::join);
            result
        })
    }
}

/// Does some work, and names it on a line of standard error once it takes longer than a second: for
/// a standard error that may be a log.
pub(crate) fn said<T>(what: &str, work: impl FnOnce() -> T) -> T {
    thread::scope(|scope| {
        let (done, is_done) = mpsc::channel::<()>();
        let say = move || {
            if let Err(RecvTimeoutError::Timeout) = is_done.recv_timeout(STEP) {
                // If standard error is closed, the line is lost.
                let _ = writeln!(io::stderr(), "isolet: {what}");
            }
        };
        // Without the thread nothing is said.
        let _ = thread::Builder::new().spawn_scoped(scope, say);
        let result = work();
        drop(done);
        result
    })
}

/// Says something that a person should know, once, on standard error.
pub(crate) fn notice(text: &str) {
    // If standard error is closed, the line is lost.
    let _ = writeln!(
        io::stderr(),
        "{}isolet: {text}",
        if io::stderr().is_terminal() { ERASE } else { "" }
    );
}

/// Describes the work of making an engine for these packages.
pub(crate) fn of_engine(packages: &[String]) -> String {
    match packages {
        [] => "making the memory image, once".to_owned(),
        packages => format!("fetching and importing {}, once", packages.join(", ")),
    }
}

/// Describes the work of loading these packages.
pub(crate) fn of_packages(packages: &[String]) -> String {
    match packages {
        [] => "preparing the session".to_owned(),
        packages => format!("resolving and fetching {}", packages.join(", ")),
    }
}

/// The download under way, if any.
static DOWNLOAD: Mutex<Option<PackageDownload>> = Mutex::new(None);

/// Makes the line tell of a download.
pub(crate) fn tell(download: &PackageDownload) {
    *DOWNLOAD.lock().unwrap_or_else(PoisonError::into_inner) = Some(download.clone());
}

/// Describes the download that is under way, or the work.
fn described(what: &str) -> String {
    let download = DOWNLOAD.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let under_way = download.filter(|one| one.received_bytes < one.total_bytes);
    let Some(PackageDownload { what, received_bytes, total_bytes, .. }) = under_way else {
        return what.to_owned();
    };
    let (received, total) = (shown_bytes(received_bytes), shown_bytes(total_bytes));
    format!("fetching {what}, {received} of {total}")
}

/// Shows a line until the work is done. Stops if standard error cannot be written to.
fn show(what: &str, is_done: &Receiver<()>) {
    let start = Instant::now();
    let mut has_shown = false;
    while let Err(RecvTimeoutError::Timeout) = is_done.recv_timeout(STEP) {
        has_shown = true;
        let seconds = start.elapsed().as_secs();
        let _ = write!(io::stderr(), "{ERASE}isolet: {} ... {seconds} s", described(what));
    }
    if has_shown {
        let _ = write!(io::stderr(), "{ERASE}");
    }
}
