//! A server that is a process of this user. It is not sandboxed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::runtime::Handle;

use super::Lines;
use super::answers::Reader;

/// The time that a process may take to end by itself once it is no longer needed.
const GRACE: Duration = Duration::from_secs(2);

/// The maximum length of a line of standard error. The rest of it is another line.
const MAX_LINE: usize = 8 * 1024;

/// Receives the lines that a server writes to standard error.
pub(super) type LineSink = Box<dyn Fn(&str) + Send + Sync>;

/// A process and its descendants, which are in a separate process group. Dropping it ends them.
pub(super) struct Process {
    child: Option<Child>,
    group: Option<Pid>,
    runtime: Handle,
}

/// A process and the streams to it.
pub(super) struct Started {
    // Dropped first, so that the process can end by itself.
    pub(super) lines: Lines<ChildStdout, ChildStdin>,
    pub(super) process: Process,
}

/// Starts a process. Needs a runtime. `Err` names the missing part.
pub(super) fn start(
    program: &str,
    arguments: &[String],
    env: &BTreeMap<String, String>,
    directory: Option<&Path>,
    reader: Reader,
    log: LineSink,
) -> Result<Started, String> {
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(env).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(directory) = directory {
        command.current_dir(directory);
    }
    #[cfg(unix)]
    command.process_group(0);
    let mut child =
        command.spawn().map_err(|error| failure(program, arguments, directory, &error))?;
    let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    let missing = || format!("`{program}` has no standard streams");
    let stdin = child.stdin.take().ok_or_else(missing)?;
    let stdout = child.stdout.take().ok_or_else(missing)?;
    if let Some(stderr) = child.stderr.take() {
        tokio::spawn(forward(stderr, log));
    }
    let process = Process { child: Some(child), group, runtime: Handle::current() };
    Ok(Started { lines: Lines::new(stdout, stdin, reader), process })
}

/// Says why a process cannot be started: the system has one error for all that may be missing.
fn failure(
    program: &str,
    arguments: &[String],
    directory: Option<&Path>,
    error: &io::Error,
) -> String {
    if let Some(directory) = directory.filter(|directory| !directory.is_dir()) {
        let shown = directory.display();
        return format!("cannot start `{program}`: its `cwd` is `{shown}`, which is no directory");
    }
    let mut said = format!("cannot start `{program}`: {error}");
    let mut words = program.split_whitespace();
    if let (Some(first), Some(_), true) = (words.next(), words.next(), arguments.is_empty()) {
        let _ = write!(
            said,
            "; if that is a command with arguments, its `command` is `{first}` and the others are \
             its `args`"
        );
    }
    said
}

async fn forward(stderr: ChildStderr, log: LineSink) {
    let mut stderr = BufReader::new(stderr);
    let mut line = Vec::new();
    while let Ok(available) = stderr.fill_buf().await {
        let ended = available.is_empty();
        let newline = available.iter().position(|byte| *byte == b'\n');
        let taken = newline.unwrap_or(available.len()).min(MAX_LINE - line.len());
        line.extend_from_slice(&available[..taken]);
        let is_whole = newline == Some(taken);
        stderr.consume(taken + usize::from(is_whole));
        if is_whole || line.len() >= MAX_LINE || (ended && !line.is_empty()) {
            log(&String::from_utf8_lossy(&line));
            line.clear();
        }
        if ended {
            break;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        let group = self.group;
        // A group that is gone cannot be signalled, and need not be.
        let signal = move |signal| _ = group.map(|group| kill_process_group(group, signal));
        signal(Signal::TERM);
        self.runtime.spawn(async move {
            // Nothing waits for the process before its group was killed: until then, the number of
            // the group cannot be another's.
            tokio::time::sleep(GRACE).await;
            signal(Signal::KILL);
            let _ = child.kill().await;
        });
    }
}
