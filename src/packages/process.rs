//! Runs a program for a limited time and keeps a limited part of its standard error.

use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::support::patience::GivenUp;

/// The maximum number of bytes of the standard error that are kept.
const MAX_KEPT_BYTES: u64 = 256 << 10;
/// How long the standard error may stay open after the program has ended.
const MAX_TAIL: Duration = Duration::from_secs(1);

/// How a program ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// `None` if it was killed.
    pub(crate) status: Option<ExitStatus>,
    /// The beginning of its standard error.
    pub(crate) stderr: String,
}

/// Runs a program to its end, or kills it after `max_time` or once it is given up. Its standard
/// input and output are empty.
///
/// # Errors
///
/// Fails if the program cannot be started or waited for.
pub(crate) fn run(
    command: &mut Command,
    max_time: Duration,
    given_up: &GivenUp,
) -> io::Result<Ended> {
    let deadline = Instant::now() + max_time;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let (sender, kept) = mpsc::channel();
    if let Some(mut stderr) = child.stderr.take() {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = (&mut stderr).take(MAX_KEPT_BYTES).read_to_end(&mut bytes);
            // Sending fails if the program was slow to close its standard error and nobody waits
            // any more.
            let _ = sender.send(bytes);
            // The rest must be read too: a program that cannot write would wait.
            let _ = io::copy(&mut stderr, &mut io::sink());
        });
    }
    let status = wait(&mut child, deadline, given_up);
    if !matches!(status, Ok(Some(_))) {
        // The program may have ended by itself at this moment.
        let _ = child.kill();
        child.wait()?;
    }
    let stderr = kept.recv_timeout(MAX_TAIL).unwrap_or_default();
    Ok(Ended { status: status?, stderr: String::from_utf8_lossy(&stderr).into_owned() })
}

/// Waits for the program to end. Returns `None` at the deadline.
fn wait(
    child: &mut Child,
    deadline: Instant,
    given_up: &GivenUp,
) -> io::Result<Option<ExitStatus>> {
    const LOOK_EVERY: Duration = Duration::from_millis(10);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        let now = Instant::now();
        if now >= deadline || given_up.is_set() {
            return Ok(None);
        }
        thread::sleep(LOOK_EVERY.min(deadline - now));
    }
}
