//! Whether the kernel has killed a worker because memory ran out. Only the files of control groups
//! say so.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex};

use crate::support::control_groups;
use crate::support::lock::lock;

/// A limit of version 1 that is none: the kernel rounds the largest number down to whole pages.
const NO_LIMIT: u64 = i64::MAX as u64 >> 20 << 20;

static KILLS: LazyLock<Mutex<MemoryKills>> = LazyLock::new(|| {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    Mutex::new(MemoryKills::of(control_groups::around(&own)))
});

/// Takes note of the kills so far, if nobody has: they concern no worker that starts from here on.
pub(super) fn watch() {
    LazyLock::force(&KILLS);
}

/// Returns why the kernel has killed a worker, for each of its kills once. `None` if it has killed
/// none, or does not say.
pub(super) fn take() -> Option<String> {
    lock(&KILLS).take()
}

struct MemoryKills {
    /// The control groups of this process and its workers that count kills, from the inside out.
    groups: Vec<PathBuf>,
    /// The number of the kills that are accounted for.
    reported: u64,
}

impl MemoryKills {
    fn of(groups: impl Iterator<Item = PathBuf>) -> Self {
        let groups: Vec<_> = groups.filter(|group| kills(group).is_some()).collect();
        let reported = groups.first().and_then(|group| kills(group)).unwrap_or(0);
        Self { groups, reported }
    }

    fn take(&mut self) -> Option<String> {
        let killed = kills(self.groups.first()?)?;
        // The kernel counts before it kills, so the number is not too small.
        if killed <= self.reported {
            return None;
        }
        self.reported += 1;
        let full = self.groups.iter().find_map(|group| Some((group, reached_limit(group)?)));
        let place = match full {
            Some((group, (file, limit))) => format!(
                "the control group `{}` reached its limit of {limit} bytes (`{file}`): raise it",
                group.display()
            ),
            None => "the machine, or a control group that cannot be seen from here, has no memory \
                     left: give it more"
                .to_owned(),
        };
        Some(format!(
            "the kernel killed the worker, since {place}, run fewer sessions at once, or lower \
             their memory limit"
        ))
    }
}

/// Returns how many processes of a group the kernel has killed because memory ran out.
fn kills(group: &Path) -> Option<u64> {
    let of = |name| field(&group.join(name), "oom_kill ");
    of("memory.events").or_else(|| of("memory.oom_control"))
}

/// Returns the limit that a group has reached at least once, and the name of its file.
fn reached_limit(group: &Path) -> Option<(&'static str, u64)> {
    let (file, times) = if group.join("memory.max").exists() {
        // Older kernels have only the file that counts for the groups inside, too.
        let times = field(&group.join("memory.events.local"), "oom ");
        ("memory.max", times.or_else(|| field(&group.join("memory.events"), "oom ")))
    } else {
        ("memory.limit_in_bytes", field(&group.join("memory.failcnt"), ""))
    };
    let limit = field(&group.join(file), "").filter(|limit| *limit < NO_LIMIT)?;
    times.filter(|times| *times > 0).map(|_| (file, limit))
}

/// Returns the number that follows a name in a file.
fn field(file: &Path, name: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)).and_then(|number| number.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a group that has another one in it, `inner`.
    fn made(outer: &[(&str, &str)], inner: &[(&str, &str)]) -> (tempfile::TempDir, MemoryKills) {
        let directory = tempfile::tempdir().unwrap();
        let groups = [directory.path().join("inner"), directory.path().to_owned()];
        fs::create_dir(&groups[0]).unwrap();
        for (group, files) in groups.iter().zip([inner, outer]) {
            for (name, text) in files {
                fs::write(group.join(name), text).unwrap();
            }
        }
        (directory, MemoryKills::of(groups.into_iter()))
    }

    #[test]
    fn a_kill_is_told_once_with_the_group_that_reached_its_limit() {
        let events = ("memory.events", "low 0\noom 0\noom_kill 3\noom_group_kill 0\n");
        let (directory, mut kills) = made(
            &[("memory.max", "160000000\n"), events, ("memory.events.local", "oom 1\n")],
            &[("memory.max", "200000000\n"), events, ("memory.events.local", "oom 0\n")],
        );
        assert_eq!(kills.take(), None, "what was before concerns no worker");
        fs::write(directory.path().join("inner/memory.events"), "oom 1\noom_kill 5\n").unwrap();
        let group = directory.path().display();
        let expected = format!(
            "the kernel killed the worker, since the control group `{group}` reached its limit of \
             160000000 bytes (`memory.max`): raise it, run fewer sessions at once, or lower their \
             memory limit"
        );
        assert_eq!([kills.take(), kills.take()], [Some(expected.clone()), Some(expected)]);
        assert_eq!(kills.take(), None);
    }

    #[test]
    fn the_first_version_of_control_groups_says_it_in_other_files() {
        let control = ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n");
        let no_limit = ("memory.limit_in_bytes", "9223372036854771712\n");
        let limit = ("memory.limit_in_bytes", "160000000\n");
        let failed = ("memory.failcnt", "7\n");
        let killed = |directory: &tempfile::TempDir| {
            fs::write(directory.path().join("inner/memory.oom_control"), "oom_kill 1\n").unwrap();
        };
        let (directory, mut kills) = made(&[control, no_limit, failed], &[control, limit, failed]);
        killed(&directory);
        let reported = kills.take().unwrap();
        assert!(reported.contains("/inner` reached its limit of 160000000 bytes"), "{reported}");
        assert!(reported.contains("(`memory.limit_in_bytes`)"), "{reported}");

        let (directory, mut kills) = made(&[control, no_limit, failed], &[control, no_limit]);
        killed(&directory);
        let reported = kills.take().unwrap();
        assert!(
            reported.contains("the machine, or a control group that cannot be seen"),
            "{reported}"
        );
    }

    #[test]
    fn where_nothing_counts_kills_nothing_is_told() {
        let (_directory, mut kills) = made(&[("memory.max", "1\n")], &[]);
        assert_eq!(kills.take(), None);
    }
}
