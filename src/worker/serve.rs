//! The worker's main function: gets the assets, boots an interpreter, locks itself down, and only then says
//! that it is ready.

use std::io::{self, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::{Arc, mpsc};

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use super::blob::Blob;
use super::launch::{BLOBS, DESCRIPTORS};
use super::lockdown::{self, Settings};
use super::mailbox::{Interrupts, Mailbox, Messages};
use super::remote::RemoteHost;
use super::wire::{self, FromWorker, Setup, ToWorker};
use crate::engine;
use crate::waist::{Reply, ReplySink};
use crate::watchdog;

/// The longest setup frame.
const SETUP_BYTES: usize = 256;

/// The memory that the kernel lets a worker have beside its session's: V8's heap, which may grow beyond its
/// limit while the guest is stopped for it, compiled code, and stacks.
const OVERHEAD_BYTES: u64 = 4 << 30;

/// Is a worker of process isolation, with standard input as the socket to its parent, whose number is
/// `parent`.
///
/// What the `isolet` command does when it is called as `isolet worker`. A program of another name can be the
/// worker of its own sandboxes ([`SandboxBuilder::worker`](crate::SandboxBuilder::worker)) if it calls this
/// first of all, before it has made a thread or opened a file, when its arguments are `worker` and a number.
/// It returns when the parent has no more use for it.
#[must_use]
pub fn worker_main(parent: u32) -> ExitCode {
    match run(parent) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn run(parent: u32) -> io::Result<()> {
    let mut settings = Settings { parent, data_bytes: u64::MAX };
    let early = lockdown::before_threads(&settings);
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let refuse = |reason: String| {
        let told = wire::send(&mut &socket, &FromWorker::NotReady(&reason));
        told.and(Err(io::Error::other(reason)))
    };
    let early = match early {
        Ok(early) => early,
        Err(error) => return refuse(error.to_string()),
    };
    let (setup, files, interrupts) = receive_setup(&socket)?;
    settings.data_bytes = setup.memory_bytes.saturating_add(OVERHEAD_BYTES);
    let booted = match boot(&socket, interrupts, files, &setup) {
        Ok(booted) => booted,
        Err(reason) => return refuse(reason),
    };
    let report = match lockdown::after_load(early, &settings) {
        Ok(report) => report,
        Err(error) => return refuse(error.to_string()),
    };
    let version = wire::version();
    booted.host.tell(&FromWorker::Ready { version: &version, report })?;
    // The thread that reads the socket ends the process.
    loop {
        std::thread::park();
    }
}

struct Booted {
    host: Arc<RemoteHost>,
}

/// Boots an interpreter of these files. Its threads are all there afterwards.
fn boot(
    socket: &UnixStream,
    interrupts: UnixStream,
    files: [Blob; BLOBS],
    setup: &Setup,
) -> Result<Booted, String> {
    let text = |error: io::Error| error.to_string();
    let interrupted = Arc::new(Interrupts::default());
    let socket = socket.try_clone().map_err(text)?;
    let mailbox = Arc::new(Mailbox::new(socket, Arc::clone(&interrupted)).map_err(text)?);
    let host = Arc::new(RemoteHost::new(Arc::clone(&mailbox), setup.max_frame_bytes));
    let (ready, is_ready) = mpsc::channel();
    let replies = Arc::clone(&host);
    let sink: ReplySink = Box::new(move |reply| match reply {
        Reply::Booted => ready.send(Ok(())).is_ok(),
        Reply::Failed(reason) if ready.send(Err(reason.clone())).is_ok() => {
            replies.tell(&FromWorker::Reply(Reply::Failed(reason))).is_ok()
        }
        reply => replies.tell(&FromWorker::Reply(reply)).is_ok(),
    });
    let messages = Box::new(Messages::new(mailbox));
    let shared = Arc::clone(&host) as _;
    let control = engine::start_of_files(files, shared, messages, setup.memory_bytes, sink)
        .map_err(|error| error.to_string())?;
    interrupted.connect(control);
    // It ends a guest whose heap is full; afterwards no thread can be made.
    watchdog::prepare().map_err(text)?;
    std::thread::Builder::new()
        .name("isolet-interrupts".to_owned())
        .spawn(move || {
            // Without a parent there is nothing left to do, and nothing to tidy up.
            let _ = pass_on(interrupts, &interrupted);
            std::process::abort();
        })
        .map_err(text)?;
    is_ready.recv().unwrap_or_else(|_| Err("the interpreter's thread has ended".to_owned()))?;
    Ok(Booted { host })
}

/// Interrupts what the parent says, until it is gone.
fn pass_on(mut socket: UnixStream, interrupts: &Interrupts) -> io::Result<()> {
    let mut run = [0; size_of::<u64>()];
    loop {
        socket.read_exact(&mut run)?;
        interrupts.interrupt(u64::from_le_bytes(run));
    }
}

/// Receives the first frame, and the files and the socket for interrupts that come with it.
fn receive_setup(socket: &UnixStream) -> io::Result<(Setup, [Blob; BLOBS], UnixStream)> {
    let mut buffer = [0; SETUP_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut slices = [IoSliceMut::new(&mut buffer)];
    let received = recvmsg(socket, &mut slices, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let mut fds: Vec<OwnedFd> = ancillary
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        })
        .flatten()
        .collect();
    let interrupts = fds.pop().ok_or(io::ErrorKind::InvalidData)?.into();
    let files = fds.into_iter().map(Blob::received).collect::<io::Result<Vec<Blob>>>()?;
    let files = files.try_into().map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
    let mut content = Vec::new();
    let mut frame = &buffer[..received.bytes];
    wire::receive(&mut frame, &mut content, SETUP_BYTES as u64)?;
    match wire::decode(&content)? {
        ToWorker::Setup(setup) if frame.is_empty() => Ok((setup, files, interrupts)),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}
