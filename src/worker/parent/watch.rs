//! Ends workers that hold more memory than they may.
//!
//! The kernel's limit (`RLIMIT_DATA`) counts memory that is writable at the moment. An attacker in
//! a worker can repeatedly fill memory and then make it read-only, which does not count, and have
//! the kernel make page tables. So the parent checks how much memory its workers hold.

use std::fs::File;
use std::io::{self, Read};
use std::sync::{Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::process::Process;
use crate::data::execution::MemoryKind;
use crate::support::lock::lock;
use crate::support::watchdog;

/// How often workers that are running a command are checked.
const EVERY: Duration = Duration::from_millis(250);

/// Each round checks 1 of this many idle workers, in turn: checking thousands at once would delay
/// the watchdog's deadlines.
const IDLE: usize = 20;

/// How often the page tables of such a worker are looked at, at most: the file in which they are is
/// longer.
const TABLES_EVERY: Duration = Duration::from_secs(1);

/// How much memory the tables of some pages may take, in bytes: twice what they need if the pages
/// are side by side, and what an interpreter's own take.
const fn most_tables(resident: u64) -> u64 {
    resident.saturating_div(256).saturating_add(64 << 20)
}

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

/// A limit on its memory that a process exceeds, and what it holds, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exceeded {
    pub(super) kind: MemoryKind,
    pub(super) limit: u64,
    pub(super) held: u64,
}

/// How much memory a process holds, as the kernel reports it.
pub(super) struct HeldMemory {
    statm: String,
    status: String,
    /// The size of its page tables, in bytes, and when they were looked at.
    tables: Mutex<(u64, Option<Instant>)>,
}

impl HeldMemory {
    pub(super) fn of(process: &Process) -> io::Result<Self> {
        let number = process.number()?;
        let file = |name| format!("/proc/{number}/{name}");
        Ok(Self { statm: file("statm"), status: file("status"), tables: Mutex::default() })
    }

    /// Returns the limit that the process exceeds, if it may have so many bytes of resident memory
    /// and page tables together; `None` also if the process is gone or hidden from this one.
    ///
    /// Page tables are memory of the kernel: to read one byte of each 2 MiB of a mapping takes
    /// 4 KiB of them, and no resident memory. So they have a limit of their own, too.
    pub(super) fn exceeded(&self, limit: u64) -> Option<Exceeded> {
        let mut text = [0; 256];
        let pages: u64 = read(&self.statm, &mut text)?.split(' ').nth(1)?.parse().ok()?;
        let resident = pages.saturating_mul(rustix::param::page_size() as u64);
        let tables = self.tables();
        let all = resident.saturating_add(tables);
        let checks = [
            Exceeded { kind: MemoryKind::PageTables, limit: most_tables(limit), held: tables },
            Exceeded { kind: MemoryKind::Worker, limit, held: all },
        ];
        checks.into_iter().find(|check| check.held > check.limit)
    }

    fn tables(&self) -> u64 {
        let mut tables = lock(&self.tables);
        if tables.1.is_none_or(|looked| looked.elapsed() >= TABLES_EVERY) {
            // Longer than the lines up to this one.
            let mut text = [0; 4096];
            let found = read(&self.status, &mut text).and_then(|text| {
                let line = text.lines().find_map(|line| line.strip_prefix("VmPTE:"))?;
                line.trim().strip_suffix(" kB")?.parse::<u64>().ok()
            });
            *tables = (found.unwrap_or_default().saturating_mul(1024), Some(Instant::now()));
        }
        tables.0
    }
}

/// Returns the beginning of a file, as far as there is room. Reading a file to its end would take
/// three system calls more.
fn read<'a>(path: &str, into: &'a mut [u8]) -> Option<&'a str> {
    let length = File::open(path).ok()?.read(into).ok()?;
    let text = into.get(..length)?;
    // A name may be cut, or be no text.
    text.utf8_chunks().next().map(|chunk| chunk.valid())
}
