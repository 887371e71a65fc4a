//! A control group of processes, by which the kernel counts their processor time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// How often it is looked whether the processes have come to rest.
const LOOK: Duration = Duration::from_millis(100);
/// Less processor time than this between two looks is rest.
const REST: Duration = Duration::from_millis(2);
const MOST_LOOKS: u32 = 100;

/// A group of this benchmark. Dropping it removes it, once its processes have ended.
pub(crate) struct ControlGroup(PathBuf);

impl ControlGroup {
    pub(crate) fn new(name: &str) -> Result<Self> {
        let roots = ["/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup"];
        let root = roots.iter().map(Path::new).find(|root| root.join("cgroup.procs").exists());
        let root = root.context("there is no file system of control groups")?;
        let path = root.join(format!("isolet-bench-{name}-{}", std::process::id()));
        fs::create_dir(&path).with_context(|| format!("cannot make `{}`", path.display()))?;
        let group = Self(path);
        group.used()?;
        Ok(group)
    }

    /// Returns a command that runs the program in the group.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new("sh");
        command.arg("-c").arg(r#"echo $$ > "$0/cgroup.procs" && exec "$@""#);
        command.arg(&self.0).arg(program);
        command
    }

    /// Returns how much processor time its processes have used, those that have ended included.
    pub(crate) fn used(&self) -> Result<Duration> {
        if let Ok(nanoseconds) = fs::read_to_string(self.0.join("cpuacct.usage")) {
            return Ok(Duration::from_nanos(nanoseconds.trim().parse()?));
        }
        let stat = fs::read_to_string(self.0.join("cpu.stat"))?;
        let used = stat.lines().find_map(|line| line.strip_prefix("usage_usec "));
        Ok(Duration::from_micros(used.context("`cpu.stat` has no `usage_usec`")?.parse()?))
    }

    /// Waits until the processes rest, and returns how much processor time they have used.
    pub(crate) fn settled(&self) -> Result<Duration> {
        let mut before = self.used()?;
        for _ in 0..MOST_LOOKS {
            std::thread::sleep(LOOK);
            let now = self.used()?;
            if now.saturating_sub(before) < REST {
                return Ok(now);
            }
            before = now;
        }
        bail!("the processes do not come to rest")
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        for _ in 0..MOST_LOOKS {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(LOOK);
        }
    }
}
