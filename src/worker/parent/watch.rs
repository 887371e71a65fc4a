//! Ends workers that hold more memory than they may.
//!
//! The kernel's limit (`RLIMIT_DATA`) counts memory that is writable at the moment. An attacker in
//! a worker can repeatedly fill memory and then make it read-only, which does not count. So the
//! parent checks how much memory its workers hold.

use std::fs::File;
use std::io::{self, Read};
use std::sync::{Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::process::Process;
use crate::support::watchdog;

/// How often workers that are running a command are checked.
const EVERY: Duration = Duration::from_millis(250);

/// One in so many idle workers is checked too, another one each time. All at once, of thousands,
/// would keep the watchdog from its deadlines.
const IDLE: usize = 20;

/// A worker whose memory is checked.
pub(crate) trait Watched: Send + Sync {
    /// Returns `true` if the worker is running a command.
    fn is_busy(&self) -> bool;
    /// Ends the worker if it holds more memory than it may.
    fn check_memory(&self);
}

struct Watch {
    workers: Vec<Weak<dyn Watched>>,
    /// Set while the watchdog makes these checks, which is while there are workers.
    is_running: bool,
}

static WATCH: Mutex<Watch> = Mutex::new(Watch { workers: Vec::new(), is_running: false });

/// Checks a worker until it is dropped.
pub(super) fn watch(worker: Weak<dyn Watched>) -> io::Result<()> {
    let mut watch = WATCH.lock().unwrap_or_else(PoisonError::into_inner);
    watch.workers.push(worker);
    if !watch.is_running {
        let mut looks = 0;
        let again = move || {
            looks = (looks + 1) % IDLE;
            look(looks).then(|| Instant::now() + EVERY)
        };
        watchdog::repeat(Instant::now() + EVERY, Box::new(again))?;
        watch.is_running = true;
    }
    Ok(())
}

/// Checks the workers that are busy, and each twentieth other one from the `first` on. Returns
/// `true` if there are any.
fn look(first: usize) -> bool {
    let mut watch = WATCH.lock().unwrap_or_else(PoisonError::into_inner);
    let mut workers = Vec::with_capacity(watch.workers.len());
    watch.workers.retain(|worker| worker.upgrade().map(|worker| workers.push(worker)).is_some());
    watch.is_running = !watch.workers.is_empty();
    drop(watch);
    for (nth, worker) in workers.iter().enumerate() {
        if nth % IDLE == first || worker.is_busy() {
            worker.check_memory();
        }
    }
    !workers.is_empty()
}

/// The file in which the kernel reports how much memory a process holds.
pub(super) struct Statm(String);

impl Statm {
    pub(super) fn of(process: &Process) -> io::Result<Self> {
        Ok(Self(format!("/proc/{}/statm", process.number()?)))
    }

    /// Returns the resident memory, in bytes; `None` if the process is gone or hidden from this
    /// one.
    pub(super) fn resident(&self) -> Option<u64> {
        // Longer than seven numbers. Reading a file to its end would take three system calls more.
        let mut text = [0; 256];
        let length = File::open(&self.0).ok()?.read(&mut text).ok()?;
        let text = std::str::from_utf8(text.get(..length)?).ok()?;
        let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
        Some(pages.saturating_mul(rustix::param::page_size() as u64))
    }
}
