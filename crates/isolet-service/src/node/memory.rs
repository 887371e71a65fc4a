//! Reads how much memory is left for more sessions, from the machine and the node's control groups.

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use isolet::internals::control_groups;
use isolet::internals::lock;

/// How long a reading is valid. In this time a processor starts fewer than ten sessions of some
/// megabytes each, while a reading opens dozens of files.
const FRESH: Duration = Duration::from_millis(50);

/// The last reading of the memory that is left.
#[derive(Default)]
pub(crate) struct LastReading(Mutex<Option<(Instant, Option<Memory>)>>);

impl LastReading {
    /// Returns the available memory, at most [`FRESH`] old.
    pub(crate) fn memory(&self) -> Option<Memory> {
        self.memory_at(Instant::now(), Memory::read)
    }

    fn memory_at(&self, now: Instant, read: impl FnOnce() -> Option<Memory>) -> Option<Memory> {
        let mut last = lock(&self.0);
        match *last {
            Some((at, memory)) if now.saturating_duration_since(at) < FRESH => memory,
            _ => last.insert((now, read())).1,
        }
    }
}

/// Memory in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    pub available: u64,
    pub total: u64,
}

impl Memory {
    /// Reads the memory of the machine or control group with the least left. `None` if the system
    /// does not report it.
    pub fn read() -> Option<Self> {
        let machine = Self::of_machine(&fs::read_to_string("/proc/meminfo").ok()?)?;
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let groups = control_groups::around(&own).filter_map(|group| Self::of_group(&group));
        groups.chain([machine]).min_by_key(|memory| memory.available)
    }

    /// Returns `true` if less than this part of the total is left.
    pub fn is_below(self, reserve: f64) -> bool {
        #[expect(clippy::cast_precision_loss, reason = "a part of gigabytes")]
        let (available, total) = (self.available as f64, self.total as f64);
        available < total * reserve
    }

    fn of_machine(text: &str) -> Option<Self> {
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            let kibibytes: u64 =
                line.trim_start_matches(':').split_whitespace().next()?.parse().ok()?;
            Some(kibibytes << 10)
        };
        Some(Self { available: field("MemAvailable")?, total: field("MemTotal")? })
    }

    /// `None` if the group has no limit.
    fn of_group(group: &Path) -> Option<Self> {
        let text = |name| fs::read_to_string(group.join(name)).ok();
        let [limit, usage, spare] = if group.join("memory.max").exists() {
            ["memory.max", "memory.current", "inactive_file "]
        } else {
            ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "]
        };
        let total: u64 = text(limit)?.trim().parse().ok()?;
        let used: u64 = text(usage)?.trim().parse().ok()?;
        // The kernel reclaims page cache before an allocation fails.
        let stat = text("memory.stat").unwrap_or_default();
        let spare = stat.lines().find_map(|line| line.strip_prefix(spare));
        let spare = spare.and_then(|bytes| bytes.parse().ok()).unwrap_or(0);
        Some(Self { available: total.saturating_sub(used.saturating_sub(spare)), total })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_read_from_the_machine_and_from_the_group_with_a_limit() {
        let text = "MemTotal:       1000 kB\nMemFree:  1 kB\nMemAvailable:    50 kB\n";
        let machine = Memory::of_machine(text).unwrap();
        assert_eq!(machine, Memory { available: 50 << 10, total: 1000 << 10 });
        assert!(machine.is_below(0.1) && !machine.is_below(0.05));
        assert!(Memory::read().unwrap().total > 0);

        let group = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(group.path().join(name), text).unwrap();
        write("memory.max", "max\n");
        write("memory.current", "700\n");
        assert_eq!(Memory::of_group(group.path()), None);
        write("memory.max", "1000\n");
        write("memory.stat", "anon 500\ninactive_file 100\n");
        assert_eq!(Memory::of_group(group.path()), Some(Memory { available: 400, total: 1000 }));
    }

    #[test]
    fn many_starts_in_a_moment_read_once() {
        let (last, start) = (LastReading::default(), Instant::now());
        let of = |available| Some(Memory { available, total: 10 });
        assert_eq!(last.memory_at(start, || of(5)), of(5));
        assert_eq!(last.memory_at(start + FRESH / 2, || of(4)), of(5));
        assert_eq!(last.memory_at(start + FRESH, || of(3)), of(3));
    }

    #[test]
    fn the_first_version_of_control_groups_says_it_in_other_files() {
        let group = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(group.path().join(name), text).unwrap();
        write("memory.limit_in_bytes", "1000\n");
        write("memory.usage_in_bytes", "700\n");
        write("memory.stat", "inactive_file 1\ntotal_inactive_file 100\n");
        assert_eq!(Memory::of_group(group.path()), Some(Memory { available: 400, total: 1000 }));
    }
}
