//! Waits for programs for a limited time, and runs one in a process group of its own.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::process;

/// How often it is looked whether the program has ended.
const TICK: Duration = Duration::from_millis(10);

/// How a program ended.
pub(crate) struct Ran {
    /// `None` if it was killed at its limit.
    pub(crate) status: Option<ExitStatus>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a command. Whatever it has started and left in its group is killed when it ends. The
/// directory is for the files that it prints to: a pipe could be held open by a process that has
/// left the group.
pub(crate) fn run(command: &mut Command, limit: Duration, scratch: &Path) -> Result<Ran> {
    let paths = [scratch.join(".stdout"), scratch.join(".stderr")];
    let file = |path: &Path| {
        File::create(path).with_context(|| format!("cannot write `{}`", path.display()))
    };
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    command.stdin(Stdio::null()).stdout(file(&paths[0])?).stderr(file(&paths[1])?);
    let mut child = process::spawn(command)?;
    let status = ended(&mut child, limit)?;
    // Not every system has `kill` as a program. Mostly the group is empty, and this fails.
    let group = format!("-{}", child.id());
    let mut kill = Command::new("sh");
    kill.args(["-c", "kill -s KILL -- \"$0\" 2>/dev/null", &group]).stdin(Stdio::null());
    process::status(&mut kill)?;
    if status.is_none() {
        // On systems without groups.
        let _ = child.kill();
        child.wait().context("cannot wait for the program")?;
    }
    let [stdout, stderr] = paths.map(|path| {
        let bytes = fs::read(&path).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    });
    Ok(Ran { status, stdout, stderr })
}

/// Waits for a program's end, and kills the program at the limit.
pub(crate) fn wait(child: &mut Child, limit: Duration) -> Result<ExitStatus> {
    if let Some(status) = ended(child, limit)? {
        return Ok(status);
    }
    // It may have ended by now.
    let _ = child.kill();
    child.wait().context("cannot wait for the program")
}

/// Returns how a program ended, or `None` at the limit.
fn ended(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>> {
    let start = Instant::now();
    loop {
        match child.try_wait().context("cannot wait for the program")? {
            Some(status) => return Ok(Some(status)),
            None if start.elapsed() > limit => return Ok(None),
            None => thread::sleep(TICK),
        }
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_does_not_end_is_killed_with_what_it_started() {
        let dir = std::env::temp_dir().join(format!("isolet-xtask-bounded-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "echo started; sleep 1000 & wait"]);
        let ran = run(&mut command, Duration::from_millis(300), &dir).unwrap();
        assert_eq!((ran.status, &*ran.stdout), (None, "started\n"));
        let mut command = Command::new("sh");
        command.args(["-c", "echo said >&2; exit 3"]);
        let ran = run(&mut command, Duration::from_mins(1), &dir).unwrap();
        assert_eq!((ran.status.unwrap().code(), &*ran.stderr), (Some(3), "said\n"));
        fs::remove_dir_all(&dir).unwrap();
    }
}
