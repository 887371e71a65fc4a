//! `isolet doctor --serve COUNT`: checks whether the system's limits allow a node that many
//! sessions.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use rustix::process::{Resource, getrlimit};
use serde::Serialize;

use isolet::internals::control_groups;
use isolet_service::node::Memory;

/// The descriptors, tasks and mappings of the node itself.
const NODE: u64 = 128;

/// The resources of a session, as docs/concepts/scale.md has measured them, rounded up.
const NODE_DESCRIPTORS: u64 = 4;
const ALL_DESCRIPTORS: u64 = 17;
const TASKS: u64 = 5;
const NODE_MAPPINGS: u64 = 6;
const MEBIBYTES: u64 = 10;

/// What a number of sessions needs.
#[derive(Serialize)]
pub(super) struct Capacity {
    sessions: u64,
    needs: [Need; 6],
}

/// The amount of a resource that the sessions need.
#[derive(Serialize)]
struct Need {
    what: &'static str,
    needed: u64,
    /// The amount that the system allows; `None` if there is no limit, or it is unknown.
    limit: Option<u64>,
    help: &'static str,
}

impl Need {
    fn is_met(&self) -> bool {
        self.limit.is_none_or(|limit| limit >= self.needed)
    }
}

impl Capacity {
    /// Compares what these sessions need with what there is.
    pub(super) fn of(sessions: u64) -> Self {
        Self { sessions, needs: needs(sessions) }
    }

    /// Returns `true` if all that they need is there.
    pub(super) fn is_enough(&self) -> bool {
        self.needs.iter().all(Need::is_met)
    }

    pub(super) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "\nfor {} sessions in one node", self.sessions)?;
        writeln!(out, "{:28}  {:>12}  {:>12}", "", "needed", "limit")?;
        for need in &self.needs {
            let Need { what, needed, limit, help } = need;
            let limit = limit.map_or_else(|| "none".to_owned(), |limit| limit.to_string());
            let verdict = if need.is_met() { "ok".to_owned() } else { format!("too low: {help}") };
            writeln!(out, "{what:28}  {needed:>12}  {limit:>12}  {verdict}")?;
        }
        Ok(())
    }
}

fn needs(sessions: u64) -> [Need; 6] {
    let each =
        |of_each: u64, of_node: u64| sessions.saturating_mul(of_each).saturating_add(of_node);
    let namespaces = ["user", "mnt", "net", "ipc"];
    let namespaces = namespaces.map(|kind| number(format!("/proc/sys/user/max_{kind}_namespaces")));
    [
        Need {
            what: "open files of the node",
            needed: each(NODE_DESCRIPTORS, NODE),
            limit: getrlimit(Resource::Nofile).maximum,
            help: "raise `ulimit -Hn`, or `LimitNOFILE=` of the service",
        },
        Need {
            what: "open files of the system",
            needed: each(ALL_DESCRIPTORS, NODE),
            limit: number("/proc/sys/fs/file-max"),
            help: "raise the sysctl `fs.file-max`",
        },
        Need {
            what: "tasks",
            needed: each(TASKS, NODE),
            limit: least([
                number("/proc/sys/kernel/pid_max"),
                number("/proc/sys/kernel/threads-max"),
                getrlimit(Resource::Nproc).maximum,
                tasks_of_group(),
            ]),
            help: "raise the sysctl `kernel.pid_max`, `ulimit -u`, or `TasksMax=` of the service",
        },
        Need {
            what: "mappings of the node",
            needed: each(NODE_MAPPINGS, NODE),
            limit: number("/proc/sys/vm/max_map_count"),
            help: "raise the sysctl `vm.max_map_count`, or start several nodes",
        },
        Need {
            what: "namespaces",
            needed: each(1, 1),
            limit: least(namespaces),
            help: "raise the sysctls `user.max_*_namespaces`",
        },
        Need {
            what: "memory, MiB",
            needed: each(MEBIBYTES, NODE),
            limit: Memory::read().map(|memory| memory.available >> 20),
            help: "start fewer, or take a machine with more; an idle session needs a third of this",
        },
    ]
}

fn least<const N: usize>(limits: [Option<u64>; N]) -> Option<u64> {
    limits.into_iter().flatten().min()
}

/// The number in a file; `None` if there is none.
fn number(path: impl AsRef<Path>) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The most tasks of the control group that this process is in, and of those around it.
fn tasks_of_group() -> Option<u64> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    control_groups::around(&own).filter_map(|group| number(group.join("pids.max"))).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_is_too_low_is_named_with_what_helps() {
        let (mut out, capacity) = (Vec::new(), Capacity::of(u64::MAX));
        capacity.print(&mut out).unwrap();
        assert!(!capacity.is_enough());
        let text = String::from_utf8(out).unwrap();
        let line = text.lines().find(|line| line.starts_with("tasks")).unwrap();
        assert!(line.contains(&u64::MAX.to_string()), "{line}");
        assert!(line.contains("too low: raise the sysctl `kernel.pid_max`"), "{line}");
        // One session is what all the tests have.
        assert!(Capacity::of(1).is_enough());
    }
}
