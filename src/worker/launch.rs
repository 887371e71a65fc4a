//! Starting a worker: its process, its descriptors, and the wait until it is locked down.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use super::blob::Blob;
use super::link::{self, Started};
use super::spawner;
use super::wire::{self, Setup, ToWorker};
use crate::error::{Error, ErrorKind};
use crate::isolation::{IsolationReport, Layer};
use crate::waist::{Host, Link};

/// How long a worker may take to be ready. Many times what it takes on a busy machine.
const START_TIME: Duration = Duration::from_mins(1);

/// How many files a worker gets.
pub(super) const BLOBS: usize = 2;

/// How many descriptors it gets with the first frame: those, and a socket for interrupts.
pub(super) const DESCRIPTORS: usize = BLOBS + 1;

/// What a worker is started with.
pub(crate) struct Launch<'a> {
    /// The program.
    pub(crate) program: &'a Path,
    /// The interpreter's files, in the order that [`crate::engine::Worker`] wants them.
    pub(crate) blobs: [&'a Blob; BLOBS],
    pub(crate) host: Arc<dyn Host>,
    pub(crate) max_report_bytes: u64,
    /// The session's memory.
    pub(crate) memory_bytes: u64,
    /// What has to be in force.
    pub(crate) required: &'a [Layer],
}

/// Starts a worker and waits until it is locked down.
pub(crate) async fn launch(launch: Launch<'_>) -> Result<(Link, IsolationReport), Error> {
    let program = launch.program.display();
    let failed = |error: io::Error| {
        Error::new(ErrorKind::Start, format!("the worker `{program}` cannot be started: {error}"))
    };
    let max_frame_bytes = wire::max_frame_bytes(launch.max_report_bytes);
    let (ours, theirs) = UnixStream::pair().map_err(failed)?;
    let (interrupts, their_interrupts) = UnixStream::pair().map_err(failed)?;
    interrupts.set_nonblocking(true).map_err(failed)?;
    let mut command = Command::new(launch.program);
    command.arg("worker").arg(std::process::id().to_string());
    command.env_clear().current_dir("/");
    command.stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let child = spawner::spawn(command).map_err(failed)?;
    let started = link::start(ours, interrupts, child, launch.host, max_frame_bytes, |socket| {
        let setup = Setup { max_frame_bytes, memory_bytes: launch.memory_bytes };
        send_setup(socket, setup, launch.blobs, &their_interrupts)
    });
    let Started { link, ready } = started.map_err(failed)?;
    // Kills the worker if it is not ready in time; the link then says that it is gone.
    let control = Arc::clone(&link.control);
    let kill = move || {
        control.terminate();
        None
    };
    let armed = crate::watchdog::arm(std::time::Instant::now() + START_TIME, Box::new(kill));
    let armed = armed.map_err(failed)?;
    let answer = ready.await;
    drop(armed);
    let not_ready = |reason: String| {
        link.control.terminate();
        Error::new(ErrorKind::Start, format!("the worker `{program}` did not start: {reason}"))
    };
    let (version, report) = match answer {
        Ok(Ok(ready)) => ready,
        Ok(Err(reason)) => return Err(not_ready(reason)),
        Err(_) => return Err(not_ready("it ended".to_owned())),
    };
    if version != wire::version() {
        return Err(not_ready(format!("it is `{version}`, this is `{}`", wire::version())));
    }
    let missing = report.missing(launch.required);
    if !missing.is_empty() {
        let names: Vec<_> = missing.iter().map(|layer| layer.name()).collect();
        link.control.terminate();
        let message = format!("the worker runs without {}, which is required", names.join(", "));
        return Err(Error::new(ErrorKind::Start, message)
            .with_hint("`isolet doctor` says what is in force here and why the rest is not"));
    }
    Ok((link, report))
}

/// Sends the first frame, and the descriptors with it.
fn send_setup(
    socket: &UnixStream,
    setup: Setup,
    [head, memory]: [&Blob; BLOBS],
    interrupts: &UnixStream,
) -> io::Result<()> {
    let frame = wire::encode(&ToWorker::Setup(setup))?;
    let fds: [BorrowedFd<'_>; DESCRIPTORS] = [head.fd(), memory.fd(), interrupts.as_fd()];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(&fds)) {
        return Err(io::Error::other("there is no room for the descriptors"));
    }
    let sent =
        sendmsg(socket.as_fd(), &[IoSlice::new(&frame)], &mut ancillary, SendFlags::NOSIGNAL)?;
    if sent == frame.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}
