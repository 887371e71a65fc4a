//! Starts a worker: its process and descriptors, and the wait until it is locked down.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use rustix::process::{Resource, getrlimit};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::forks::Family;
use super::head_start;
use super::link::{self, Bounds, Ends, Started, thread};
use super::process::Process;
use super::spawner;
use super::template::Template;
use super::templates::Templates;
use crate::data::error::{Error, ErrorKind};
use crate::data::isolation::{IsolationReport, Layer};
use crate::protocol::{Host, Link};
use crate::support::obstacles;
use crate::support::shared_file::SharedFile;
use crate::support::watchdog::{self, Armed};
use crate::worker::wire::output_ring::{self, Consumer};
use crate::worker::wire::{
    self, DESCRIPTORS, FORKABLE, Purpose, SETUP_BYTES, Setup, ToWorker, WORKER,
};

/// How long a worker may take to become ready. Many times what it takes on a busy machine.
pub(crate) const START_TIME: Duration = Duration::from_mins(1);

/// What a worker is started with.
pub(crate) struct Launch<'a> {
    pub(crate) purpose: Purpose,
    /// The program.
    pub(crate) program: &'a Path,
    /// The image that [`crate::isolate::boot_of_image`] boots.
    pub(crate) image: &'a SharedFile,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) max_report_bytes: u64,
    /// The session's memory limit, in bytes.
    pub(crate) memory_bytes: u64,
    /// Whether the isolate looks for what it waits for before it sleeps.
    pub(crate) spins: bool,
    /// By how much the worker is nicer than this process.
    pub(crate) niceness: u8,
    /// The layers that must be in force.
    pub(crate) required: &'a [Layer],
    /// The templates that may fork the worker.
    pub(crate) templates: Option<&'a Templates>,
    /// How many copies of the worker there may be at once, if it is one that can be copied.
    pub(crate) max_copies: Option<usize>,
    /// Reads what the worker sends, as far as it can. Otherwise a thread does.
    pub(crate) event_loop: Option<&'a Handle>,
}

/// A new process, for a worker or a template.
pub(super) struct Fresh<'a> {
    image: &'a SharedFile,
    pub(super) max_report_bytes: u64,
    pub(super) memory_bytes: u64,
    pub(super) spins: bool,
    pub(super) niceness: u8,
    /// Set for a template of workers that can be copied.
    pub(super) forkable: bool,
}

/// A template that is booting.
pub(super) struct Starting {
    socket: UnixStream,
    child: Child,
    /// The template has the other end, which it does not use.
    _interrupts: UnixStream,
}

impl Starting {
    /// Waits until the template has booted.
    pub(super) fn wait(self) -> io::Result<Template> {
        Template::new(self.socket, self.child)
    }
}

impl Fresh<'_> {
    /// Starts the process, or takes the one that was started ahead. Returns it and the socket to
    /// it. It is not set up yet.
    fn spawn(program: &Path, forkable: bool) -> io::Result<(UnixStream, Child)> {
        if !forkable && let Some(started) = head_start::take(program) {
            return Ok(started);
        }
        let (ours, command) = command(program, forkable)?;
        Ok((ours, spawner::spawn(command)?))
    }

    fn set_up(
        &self,
        socket: &UnixStream,
        interrupts: &UnixStream,
        output: BorrowedFd<'_>,
        purpose: Purpose,
    ) -> io::Result<()> {
        let Self { image, max_report_bytes, memory_bytes, spins, niceness, .. } = *self;
        let setup = Setup { max_report_bytes, memory_bytes, spins, niceness, purpose };
        send_setup(socket, setup, [image.fd(), interrupts.as_fd(), output])
    }
}

/// Returns how a worker's process is started, and the socket to it.
pub(super) fn command(program: &Path, forkable: bool) -> io::Result<(UnixStream, Command)> {
    let (ours, theirs) = UnixStream::pair()?;
    let mut command = Command::new(program);
    command.arg(WORKER).arg(std::process::id().to_string());
    command.args(forkable.then_some(FORKABLE)).env_clear().current_dir("/");
    command.stdin(Stdio::from(OwnedFd::from(theirs)));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    Ok((ours, command))
}

/// Starts a template.
pub(super) fn start_template(program: &Path, fresh: &Fresh<'_>) -> io::Result<Starting> {
    let (socket, child) = Fresh::spawn(program, fresh.forkable)?;
    let (ours, theirs) = UnixStream::pair()?;
    let purpose = if fresh.forkable { Purpose::ForkableTemplate } else { Purpose::Template };
    // A template prints nothing; the workers that it makes get memory of their own.
    let output = output_ring::file()?;
    fresh.set_up(&socket, &theirs, output.as_fd(), purpose)?;
    Ok(Starting { socket, child, _interrupts: ours })
}

/// Returns the limit that the error means, if it can be told, to follow the error's text.
fn limit_of(error: &io::Error) -> String {
    let limit = getrlimit(Resource::Nofile).current;
    match (error.raw_os_error().map(Errno::from_raw_os_error), limit) {
        (Some(Errno::MFILE), Some(limit)) => {
            format!(
                "; this process may have {limit} (`ulimit -n`), and each worker takes 4 of them"
            )
        }
        _ => obstacles::error_suffix(),
    }
}

/// A worker that is locked down.
pub(crate) struct Launched {
    pub(crate) link: Link,
    pub(crate) report: IsolationReport,
    /// Set if it was copied from a template.
    pub(crate) is_copy: bool,
}

/// Starts a worker and waits until it is locked down.
pub(crate) async fn launch(launch: Launch<'_>) -> Result<Launched, Error> {
    let program = launch.program.display();
    let failed = |error: io::Error| {
        let message =
            format!("the worker `{program}` cannot be started: {error}{}", limit_of(&error));
        Error::new(ErrorKind::Start, message).with_source(error)
    };
    let max_frame_bytes = wire::max_frame_bytes(launch.max_report_bytes);
    let Launch { image, max_report_bytes, memory_bytes, spins, niceness, .. } = launch;
    let max_copies = launch.max_copies;
    let forkable = max_copies.is_some();
    let fresh = Fresh { image, max_report_bytes, memory_bytes, spins, niceness, forkable };
    let resident_bytes = wire::resident_bytes(launch.memory_bytes);
    let bounds =
        Bounds { frame: max_frame_bytes, report: max_report_bytes, resident: resident_bytes };
    let (interrupts, their_interrupts) = UnixStream::pair().map_err(failed)?;
    interrupts.set_nonblocking(true).map_err(failed)?;
    let for_listener = interrupts.try_clone().map_err(failed)?;
    let output = output_ring::file().map_err(failed)?;
    let ring = Consumer::map(output.as_fd()).map_err(failed)?;
    let template = match (max_copies, launch.templates) {
        (None, templates) => templates.and_then(|found| found.find(launch.program, &fresh)),
        (Some(_), Some(templates)) => {
            Some(templates.obtain(launch.program, &fresh).await.map_err(failed)?)
        }
        (Some(_), None) => Some(own_template(launch.program, &fresh).await.map_err(failed)?),
    };
    let mut own = None;
    let forked = match &template {
        Some(template) => {
            let (ours, theirs) = UnixStream::pair().map_err(failed)?;
            let their_interrupts = their_interrupts.try_clone().map_err(failed)?;
            let stuck = Arc::clone(template);
            let _armed = in_time(move || stuck.kill()).map_err(failed)?;
            match template.fork(theirs, their_interrupts, output.as_fd()).await {
                Ok(forked) => {
                    own = Some(Arc::clone(forked.template()));
                    Some((ours, forked))
                }
                Err(error) if max_copies.is_some() => return Err(failed(error)),
                // The session starts with a new process.
                Err(_) => None,
            }
        }
        None => None,
    };
    let is_copy = forked.is_some();
    let owed = launch.purpose.unasked_replies();
    let started = if let Some((socket, forked)) = forked {
        let process = Process::Forked(forked);
        let ends = Ends { socket, interrupts, ring };
        link::start(ends, process, launch.host, bounds, owed, launch.event_loop, |_| Ok(()))
    } else {
        let (socket, child) = Fresh::spawn(launch.program, false).map_err(failed)?;
        let process = Process::Child(child);
        let ends = Ends { socket, interrupts, ring };
        link::start(ends, process, launch.host, bounds, owed, launch.event_loop, |socket| {
            fresh.set_up(socket, &their_interrupts, output.as_fd(), launch.purpose)
        })
    };
    let Started { mut link, control: worker, ready } = started.map_err(failed)?;
    // Kills a worker that is not ready in time. The link then reports that it is gone.
    let control = Arc::clone(&link.control);
    let armed = in_time(move || control.terminate()).map_err(failed)?;
    let answer = ready.await;
    drop(armed);
    let not_ready = |reason: String| {
        link.control.terminate();
        let why = obstacles::error_suffix();
        let message = format!("the worker `{program}` did not start: {reason}{why}");
        Error::new(ErrorKind::Start, message)
    };
    let (version, mut report) = match answer {
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
    if let (Some(max_copies), Some(template)) = (max_copies, own) {
        // The worker knows its number only in its namespace.
        let number = worker.process_number().map_err(failed)?;
        report = report.with_process(format!("process {number}, a copy of its template"));
        let joined = receive_listener(&for_listener).and_then(|listener| {
            let event_loop = launch.event_loop.cloned();
            let family = Family::new(listener, max_copies, bounds, event_loop, template);
            family.join(&mut link, worker, &report)
        });
        joined.map_err(failed)?;
    }
    Ok(Launched { link, report, is_copy })
}

/// Starts a template that makes one worker only, and its copies.
async fn own_template(program: &Path, fresh: &Fresh<'_>) -> io::Result<Arc<Template>> {
    let template = start_template(program, fresh)?;
    let (sender, ready) = oneshot::channel();
    thread("isolet-template", move || {
        // If nobody waits any more, the template ends.
        let _ = sender.send(template.wait());
    })?;
    let ready = ready.await.map_err(|_| io::Error::other("its template did not become ready"))?;
    ready.map(Arc::new)
}

/// Calls `kill` at the time limit, unless the returned guard is dropped before.
pub(super) fn in_time(kill: impl Fn() + Send + 'static) -> io::Result<Armed> {
    let late = move || {
        kill();
        None
    };
    watchdog::arm(Instant::now() + START_TIME, Box::new(late))
}

/// Sends the first frame, with the descriptors.
fn send_setup(
    socket: &UnixStream,
    setup: Setup,
    fds: [BorrowedFd<'_>; DESCRIPTORS],
) -> io::Result<()> {
    let frame = wire::encode(&ToWorker::Setup(setup))?;
    if frame.len() > SETUP_BYTES {
        let message = format!(
            "the modules that it is to import: limit {SETUP_BYTES} bytes, needed {}",
            frame.len()
        );
        return Err(io::Error::other(message));
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(&fds)) {
        return Err(io::Error::other("there is no room for the descriptors"));
    }
    let sent =
        sendmsg(socket.as_fd(), &[IoSlice::new(&frame)], &mut ancillary, SendFlags::NOSIGNAL)?;
    if sent == frame.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// Receives the listener of a forkable worker's filter, which it has sent before it was ready.
fn receive_listener(socket: &UnixStream) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    recvmsg(socket.as_fd(), &mut [IoSliceMut::new(&mut byte)], &mut ancillary, flags)?;
    let fds = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => Some(fds),
        _ => None,
    });
    fds.flatten().next().ok_or_else(|| io::ErrorKind::InvalidData.into())
}
