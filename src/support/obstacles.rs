//! What keeps a worker, or V8, from starting on this machine: limits, and what the kernel or a
//! container refuses. V8 ends the process without a word where it does not get what it needs.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use memmap2::MmapMut;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Resource, getrlimit};

use super::control_groups;

/// The addresses that V8 reserves at least: measured, with one session.
const ADDRESS_SPACE: u64 = 33 << 30;

/// The data without which no session starts, and the data that one may need: measured.
const DATA: u64 = 640 << 20;
const AMPLE_DATA: u64 = 1 << 30;

/// The descriptors and tasks that one session takes, with those of the process itself.
const DESCRIPTORS: u64 = 32;
const TASKS: u64 = 16;

/// The size of an image, rounded up: a file in memory has it while it is not stored.
const FILE_SIZE: u64 = 64 << 20;

/// Something that keeps a worker from starting, or may do so.
#[derive(Debug)]
pub(crate) enum Obstacle {
    AddressSpace(u64),
    Data(u64),
    Descriptors(u64),
    UserTasks(u64),
    FileSize(u64),
    GroupTasks {
        file: PathBuf,
        most: u64,
        present: u64,
    },
    /// Memory cannot be made executable.
    Executable(io::Error),
    MemoryFiles(io::Error),
    Missing(&'static str),
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AddressSpace(limit) => write!(
                f,
                "the address space of this process is limited to {limit} bytes (`ulimit -v`, \
                 RLIMIT_AS), and V8 reserves {ADDRESS_SPACE}"
            ),
            Self::Data(limit) => write!(
                f,
                "the data of this process are limited to {limit} bytes (`ulimit -d`, RLIMIT_DATA), \
                 and a session needs up to {AMPLE_DATA}"
            ),
            Self::Descriptors(limit) => write!(
                f,
                "this process may have {limit} open files (`ulimit -n`, RLIMIT_NOFILE), and one \
                 session needs {DESCRIPTORS}"
            ),
            Self::UserTasks(limit) => write!(
                f,
                "this user may have {limit} processes and threads (`ulimit -u`, RLIMIT_NPROC), and \
                 one session needs {TASKS}"
            ),
            Self::FileSize(limit) => write!(
                f,
                "files may have {limit} bytes (`ulimit -f`, RLIMIT_FSIZE), those in memory too, \
                 and isolet makes some of up to {FILE_SIZE}"
            ),
            Self::GroupTasks { file, most, present } => write!(
                f,
                "the control group may have {most} processes and threads (`{}`), it has {present}, \
                 and one session needs {TASKS}",
                file.display()
            ),
            Self::Executable(error) => write!(
                f,
                "memory that was written cannot be made executable: {error} (systemd's \
                 MemoryDenyWriteExecute=, PR_SET_MDWE, or a security module), and V8 compiles code \
                 as it runs"
            ),
            Self::MemoryFiles(error) => write!(
                f,
                "memfd_create fails: {error} (a container's seccomp profile may deny it), and \
                 isolet shares memory with its workers by files that it makes"
            ),
            Self::Missing(path) => {
                write!(f, "there is no `{path}`, which workers are started with")
            }
        }
    }
}

/// Returns what keeps V8 from starting in this process.
pub(crate) fn of_v8() -> Option<Obstacle> {
    let limits = [
        below(Resource::As, ADDRESS_SPACE).map(Obstacle::AddressSpace),
        below(Resource::Data, DATA).map(Obstacle::Data),
    ];
    limits.into_iter().flatten().next().or_else(executable_memory)
}

/// Returns everything that may keep a worker from starting.
pub(crate) fn of_worker() -> Vec<Obstacle> {
    let is_root = rustix::process::geteuid().is_root();
    let found = [
        below(Resource::As, ADDRESS_SPACE).map(Obstacle::AddressSpace),
        below(Resource::Data, AMPLE_DATA).map(Obstacle::Data),
        executable_memory(),
        below(Resource::Nofile, DESCRIPTORS).map(Obstacle::Descriptors),
        // Root is not limited.
        below(Resource::Nproc, TASKS).filter(|_| !is_root).map(Obstacle::UserTasks),
        below(Resource::Fsize, FILE_SIZE).map(Obstacle::FileSize),
        group_tasks(),
        memory_files(),
        missing("/proc/self/exe"),
        missing("/dev/null"),
    ];
    found.into_iter().flatten().collect()
}

/// Returns the obstacles of [`of_worker`] as a suffix for an error message, each after a semicolon.
pub(crate) fn error_suffix() -> String {
    of_worker().iter().flat_map(|obstacle| ["; ".to_owned(), obstacle.to_string()]).collect()
}

/// Returns a limit that is below what is needed.
fn below(resource: Resource, needed: u64) -> Option<u64> {
    getrlimit(resource).current.filter(|limit| *limit < needed)
}

fn executable_memory() -> Option<Obstacle> {
    let mut page = MmapMut::map_anon(1).ok()?;
    *page.first_mut()? = 0;
    page.make_exec().err().map(Obstacle::Executable)
}

fn memory_files() -> Option<Obstacle> {
    let made = memfd_create("isolet-check", MemfdFlags::CLOEXEC);
    // Too few descriptors are another obstacle.
    let errno = made.err().filter(|errno| *errno != rustix::io::Errno::MFILE)?;
    Some(Obstacle::MemoryFiles(errno.into()))
}

fn missing(path: &'static str) -> Option<Obstacle> {
    (!Path::new(path).exists()).then_some(Obstacle::Missing(path))
}

/// Returns the control group that has no room for the tasks of a session.
fn group_tasks() -> Option<Obstacle> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let number = |path: PathBuf| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    control_groups::around(&own).find_map(|group| {
        let file = group.join("pids.max");
        let (most, present) = (number(file.clone())?, number(group.join("pids.current"))?);
        let is_full = most.saturating_sub(present) < TASKS;
        is_full.then_some(Obstacle::GroupTasks { file, most, present })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_runs_the_tests_has_no_obstacles() {
        assert!(of_v8().is_none());
        assert_eq!(error_suffix(), "");
    }

    #[test]
    fn each_obstacle_names_what_the_administrator_can_change() {
        let denied = || io::Error::from(rustix::io::Errno::PERM);
        let group = Obstacle::GroupTasks { file: "/g/pids.max".into(), most: 9, present: 4 };
        for (obstacle, names) in [
            (Obstacle::AddressSpace(8), &["8 bytes", "ulimit -v", "RLIMIT_AS"][..]),
            (Obstacle::Data(8), &["8 bytes", "ulimit -d", "RLIMIT_DATA"]),
            (Obstacle::Descriptors(8), &["8 open files", "ulimit -n"]),
            (Obstacle::UserTasks(8), &["8 processes", "ulimit -u"]),
            (Obstacle::FileSize(8), &["8 bytes", "ulimit -f"]),
            (group, &["/g/pids.max", "9 processes", "has 4"]),
            (Obstacle::Executable(denied()), &["MemoryDenyWriteExecute", "not permitted"]),
            (Obstacle::MemoryFiles(denied()), &["memfd_create", "not permitted"]),
            (Obstacle::Missing("/dev/null"), &["/dev/null"]),
        ] {
            let text = obstacle.to_string();
            assert!(names.iter().all(|name| text.contains(name)), "{text}");
        }
    }
}
