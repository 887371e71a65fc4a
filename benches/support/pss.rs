//! How much memory a process and all its descendants use.

use std::fs;

use anyhow::{Context, Result, bail};

/// The kernel's error number `ESRCH`.
const NO_SUCH_PROCESS: i32 = 3;

/// Returns how many bytes of memory a process and all its descendants use. Shared memory is counted
/// proportionally.
pub(crate) fn pss(process: u32) -> Result<u64> {
    let path = format!("/proc/{process}/smaps_rollup");
    let rollup = match fs::read_to_string(&path) {
        // The process has ended, but was not waited for.
        Err(error) if error.raw_os_error() == Some(NO_SUCH_PROCESS) => return Ok(0),
        read => read.with_context(|| format!("cannot read `{path}`"))?,
    };
    let Some(line) = rollup.lines().find_map(|line| line.strip_prefix("Pss:")) else {
        bail!("`{path}` has no `Pss`");
    };
    let mut bytes = line.trim().trim_end_matches(" kB").parse::<u64>()? << 10;
    for task in fs::read_dir(format!("/proc/{process}/task"))? {
        let children = fs::read_to_string(task?.path().join("children")).unwrap_or_default();
        for child in children.split_whitespace() {
            match pss(child.parse()?) {
                Ok(more) => bytes += more,
                // The process has ended meanwhile.
                Err(_) if !fs::exists(format!("/proc/{child}"))? => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(bytes)
}
