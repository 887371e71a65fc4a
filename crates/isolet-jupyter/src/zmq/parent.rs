//! Notices that a kernel's front end is gone: its connection file, or the process that has started
//! the kernel.

use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, getppid, test_kill_process};

/// How often that is looked at.
const INTERVAL: Duration = Duration::from_millis(500);
/// How many times in a row the file has to be missing: some programs replace it.
const MISSES: u32 = 3;

/// The variable in which Jupyter says which process it is.
const PARENT: &str = "JPY_PARENT_PID";

/// Waits until the front end is gone. Returns why it is thought so.
pub(super) async fn gone(file: &Path) -> String {
    #[expect(clippy::disallowed_methods, reason = "Jupyter's own variable")]
    let parent = std::env::var(PARENT).ok().and_then(|pid| Pid::from_raw(pid.parse().ok()?));
    // If something stands between Jupyter and the kernel, Jupyter is not its parent.
    let is_ours = parent.is_some() && getppid() == parent;
    let mut misses = 0;
    loop {
        if let Some(parent) = parent {
            let is_there =
                test_kill_process(parent).is_ok() && (!is_ours || getppid() == Some(parent));
            if !is_there {
                return format!(
                    "the kernel ends: process {parent}, which has started it, has ended"
                );
            }
        }
        misses = if file.exists() { 0 } else { misses + 1 };
        if misses >= MISSES {
            return format!("the kernel ends: its connection file `{}` is gone", file.display());
        }
        tokio::time::sleep(INTERVAL).await;
    }
}
