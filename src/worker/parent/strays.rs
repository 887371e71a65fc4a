//! The processes that come from a template: those that the host knows, and the end of all others,
//! which only a worker that was taken over can have made.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::support::lock::lock;

/// For how long the kernel is asked for the processes until there are no strays any more.
const MOST_TIME: Duration = Duration::from_secs(5);

/// How long to wait before it is asked again: the template has to take note of those that ended.
const PAUSE: Duration = Duration::from_millis(1);

/// How many times in a row there have to be none: while the list is read, a process may move from
/// one parent to another.
const CLEAN_ROUNDS: usize = 2;

/// How long a process that was killed is waited for, in one round.
const ENDING_TIME: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// More processes than a template and its workers can have.
const MOST_PROCESSES: usize = 100_000;

/// The processes of a template that belong to a session, or to none yet.
pub(crate) struct Processes {
    /// The child of this process that they descend from. Its only child is the template, to which
    /// the kernel gives those whose parent has ended.
    root: u32,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// Workers and copies.
    numbers: HashSet<u32>,
    /// The workers that have the permission to make a copy, which nobody knows yet.
    forking: HashSet<u32>,
}

/// A copy of a worker, which is known until this is dropped. Then it is killed.
pub(crate) struct CopiedProcess {
    fd: OwnedFd,
    number: u32,
    processes: Arc<Processes>,
}

/// A process below the template.
#[derive(Clone, Copy, Debug)]
struct Descendant {
    parent: u32,
    number: u32,
}

impl Processes {
    pub(crate) fn new(root: u32) -> Self {
        Self { root, known: Mutex::default() }
    }

    /// From here on a worker is known.
    pub(crate) fn add(&self, number: u32) {
        lock(&self.known).numbers.insert(number);
    }

    /// Forgets a worker that has ended.
    pub(crate) fn remove(&self, number: u32) {
        lock(&self.known).numbers.remove(&number);
    }

    /// Returns `true` if a process is a worker or a copy.
    pub(crate) fn knows(&self, number: u32) -> bool {
        lock(&self.known).numbers.contains(&number)
    }

    /// A child of this worker is no stray until [`end_fork`](Self::end_fork).
    pub(crate) fn begin_fork(&self, worker: u32) {
        lock(&self.known).forking.insert(worker);
    }

    /// From here on, children of this worker that are not known are strays.
    pub(crate) fn end_fork(&self, worker: u32) {
        lock(&self.known).forking.remove(&worker);
    }

    /// Makes a process known as a copy, and returns it; `None` if it already is known.
    pub(crate) fn admit(self: &Arc<Self>, number: u32, fd: OwnedFd) -> Option<CopiedProcess> {
        let is_new = lock(&self.known).numbers.insert(number);
        is_new.then(|| CopiedProcess { fd, number, processes: Arc::clone(self) })
    }

    /// Kills the processes below the template that nobody knows. Returns `false` if there may still
    /// be one. The template makes no worker meanwhile.
    pub(crate) fn end_strays(&self) -> bool {
        let mut clean = 0;
        let start = Instant::now();
        while start.elapsed() < MOST_TIME {
            let killed = {
                let known = lock(&self.known);
                let Some(all) = descendants(self.root) else { return false };
                let strays = all.into_iter().filter(|one| !known.accounts_for(*one));
                strays.map(kill).collect::<Vec<_>>()
            };
            if killed.is_empty() {
                clean += 1;
                if clean == CLEAN_ROUNDS {
                    return true;
                }
                continue;
            }
            clean = 0;
            for fd in killed.into_iter().flatten() {
                let ended = &mut [PollFd::new(&fd, PollFlags::IN)];
                let _ = poll(ended, Some(&ENDING_TIME));
            }
            std::thread::sleep(PAUSE);
        }
        false
    }
}

impl Known {
    fn accounts_for(&self, process: Descendant) -> bool {
        self.numbers.contains(&process.number) || self.forking.contains(&process.parent)
    }
}

impl CopiedProcess {
    #[cfg(test)]
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    pub(crate) fn descriptor(&self) -> &OwnedFd {
        &self.fd
    }

    pub(crate) fn kill(&self) -> io::Result<()> {
        Ok(pidfd_send_signal(&self.fd, Signal::KILL)?)
    }
}

impl Drop for CopiedProcess {
    fn drop(&mut self) {
        // Fails only if it has already ended.
        let _ = self.kill();
        self.processes.remove(self.number);
    }
}

/// Kills a process, if it still is a child of that parent: if so, its number was not given to
/// another one before. Returns its descriptor.
fn kill(process: Descendant) -> Option<OwnedFd> {
    let fd = process_of(process.number).ok()?;
    if parent(process.number) == Some(process.parent) {
        let _ = pidfd_send_signal(&fd, Signal::KILL);
    }
    Some(fd)
}

/// Returns a descriptor of a process. Fails for a thread that is not a process's first one.
pub(crate) fn process_of(number: u32) -> io::Result<OwnedFd> {
    let pid = Pid::from_raw(number.cast_signed()).ok_or(io::ErrorKind::InvalidData)?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// Returns the number of a process's parent; `None` if the kernel does not say.
pub(crate) fn parent(process: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    line.trim().parse().ok()
}

/// Returns the numbers of a process's children; none if the kernel does not say.
pub(crate) fn children(process: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let lists =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| list.split(' ').flat_map(str::parse).collect::<Vec<_>>()).collect()
}

/// Fails if `/proc` numbers processes otherwise than the kernel numbers them for this one.
pub(crate) fn check_numbers() -> io::Result<()> {
    let shown = fs::read_link("/proc/self")?;
    if shown.to_str().and_then(|shown| shown.parse().ok()) == Some(std::process::id()) {
        return Ok(());
    }
    Err(io::Error::other("`/proc` shows the processes of another PID namespace"))
}

/// Returns the processes below the one child of `root`; `None` if the kernel does not say.
fn descendants(root: u32) -> Option<Vec<Descendant>> {
    let template = children(root).into_iter().next()?;
    let mut found: Vec<Descendant> = Vec::new();
    let mut next = Some(template);
    let mut looked_at = 0;
    while let Some(parent) = next {
        found.extend(children(parent).into_iter().map(|number| Descendant { parent, number }));
        if found.len() > MOST_PROCESSES {
            return None;
        }
        next = found.get(looked_at).map(|one| one.number);
        looked_at += 1;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio};

    use super::*;

    /// The shell takes the place of the template, and its children that of workers.
    #[test]
    fn processes_of_a_template_that_nobody_knows_are_killed_and_others_are_not() {
        // The shell says how they ended.
        let script = "sh -c ' \
                      sleep 100 & stray=$!; sleep 100 & member=$!; \
                      sh -c \"sleep 100 & echo \\$!; wait\" & forking=$!; \
                      echo $stray; echo $member; echo $forking; wait $stray; echo $?; \
                      read line; kill $member; wait $member; echo $?; kill $forking'; :";
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = shell.stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(shell.stdout.take().unwrap()).lines();
        let mut numbers = lines.map(|line| line.unwrap().parse::<u32>().unwrap());
        let mut first: Vec<u32> = numbers.by_ref().take(4).collect();
        let template = children(shell.id())[0];
        let born = *first.iter().find(|one| parent(**one) != Some(template)).unwrap();
        first.retain(|one| *one != born);
        let [stray, member, forking] = first[..] else { panic!("{first:?}") };
        let processes = Processes::new(shell.id());
        processes.add(member);
        processes.add(forking);
        processes.begin_fork(forking);
        assert!(processes.end_strays());
        assert_eq!(numbers.next(), Some(128 + 9), "the stray was killed");
        assert!(parent(stray).is_none());
        assert_eq!(parent(born), Some(forking), "a copy that is being made is left alone");
        processes.end_fork(forking);
        assert!(processes.end_strays());
        assert_eq!(parent(born), None, "its fork has failed");
        shell.stdin.take().unwrap().write_all(b"\n").unwrap();
        assert_eq!(numbers.next(), Some(128 + 15), "the member was there to be ended");
        shell.wait().unwrap();
    }
}
