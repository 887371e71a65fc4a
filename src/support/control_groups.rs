//! Where the control groups of a process are.

use std::path::{Path, PathBuf};

/// Where control groups are.
const GROUPS: &str = "/sys/fs/cgroup";

/// Returns the control groups of a process and those around them, by its `/proc/PID/cgroup`.
pub fn around(own: &str) -> impl Iterator<Item = PathBuf> {
    own.lines().flat_map(|line| {
        let (controllers, path) = line
            .split_once(':')
            .map_or(("", line), |(_, rest)| rest.split_once(':').unwrap_or_default());
        // Version 2 has one tree, version 1 one for each set of controllers.
        let tree = Path::new(GROUPS).join(controllers);
        let group = tree.join(path.trim_start_matches('/'));
        let around = group.ancestors().take_while(|group| group.starts_with(&tree));
        around.map(Path::to_owned).collect::<Vec<_>>()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_groups_around_the_own_one_are_found_in_both_versions() {
        let paths: Vec<_> = around("8:pids:/y\n0::/a.slice/b.service\n").collect();
        let names = ["pids/y", "pids", "a.slice/b.service", "a.slice", ""];
        assert_eq!(paths, names.map(|name| Path::new(GROUPS).join(name)));
    }
}
