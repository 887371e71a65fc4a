//! The worker's main function: receives the image, boots an interpreter, locks the process down,
//! and only then reports that it is ready.

use std::io::{self, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use super::fork_server;
use super::lockdown::{self, Early, Settings};
use super::mailbox::{Connection, Interrupts, Mailbox, Messages};
use super::remote::RemoteHost;
use crate::isolate;
use crate::protocol::ReplySink;
use crate::support::shared_file::SharedFile;
use crate::support::watchdog;
use crate::worker::wire::{self, DESCRIPTORS, FromWorker, Setup, ToWorker};

/// The maximum length of the setup frame, in bytes.
const SETUP_BYTES: usize = 256;

/// Runs a worker, with standard input as the socket to its parent, whose process number is
/// `parent`. Returns only if the worker cannot start; otherwise the parent ends the process.
pub(crate) fn serve(parent: u32) -> io::Result<()> {
    let settings = Settings { parent, data_bytes: u64::MAX };
    let early = lockdown::before_threads(&settings);
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let early = match early {
        Ok(early) => early,
        Err(error) => return refuse(&socket, error.to_string()),
    };
    let (setup, image, interrupts) = receive_setup(&socket)?;
    let start = Start { socket, interrupts, setup, image, early, settings };
    let main = move || {
        // Without an isolate or a parent there is nothing left to do and nothing to clean up.
        let _end = Abort;
        if start.live().is_ok() {
            // The parent has received the last reply and will end the process.
            loop {
                std::thread::park();
            }
        }
    };
    isolate::on_isolate_thread(main).map_err(io::Error::other)?;
    loop {
        std::thread::park();
    }
}

/// Tells the parent why there is no worker.
fn refuse(socket: &UnixStream, reason: String) -> io::Result<()> {
    let told = wire::send(&mut &*socket, &FromWorker::NotReady(&reason));
    told.and(Err(io::Error::other(reason)))
}

/// Aborts the process on drop, however its owner ends.
struct Abort;

impl Drop for Abort {
    fn drop(&mut self) {
        std::process::abort();
    }
}

/// What a worker starts with.
struct Start {
    socket: UnixStream,
    interrupts: UnixStream,
    setup: Setup,
    image: SharedFile,
    early: Early,
    settings: Settings,
}

impl Start {
    /// Boots, locks the process down and serves the session, on the isolate's thread. In a
    /// template, the part after the fork runs in each worker.
    fn live(self) -> io::Result<()> {
        let Self { mut socket, mut interrupts, setup, image, mut early, mut settings } = self;
        let connection = Connection::default();
        let Setup { memory_bytes, max_report_bytes, .. } = setup;
        let max_frame_bytes = wire::max_frame_bytes(max_report_bytes);
        let host = Arc::new(RemoteHost::new(Arc::clone(&connection), max_frame_bytes));
        let inbox = Box::new(Messages::new(Arc::clone(&connection)));
        let shared = Arc::clone(&host) as _;
        let booted = isolate::boot_of_image(image, shared, inbox, memory_bytes, max_report_bytes);
        let mut booted = match booted {
            Ok(booted) => booted,
            Err(reason) => return refuse(&socket, reason),
        };
        if setup.is_template {
            booted.rehearse().map_err(io::Error::other)?;
            let born = fork_server::serve(&socket)?;
            // The template's own descriptors are closed here, and their numbers may be reused.
            std::mem::forget(std::mem::replace(&mut socket, born.socket));
            std::mem::forget(std::mem::replace(&mut interrupts, born.interrupts));
            early = match lockdown::after_fork(early, born.parent) {
                Ok(early) => early,
                Err(error) => return refuse(&socket, error.to_string()),
            };
        }
        booted.renew_event_loop()?;
        let interrupted = Arc::new(Interrupts::default());
        interrupted.connect(booted.control());
        let to_refuse = socket.try_clone()?;
        let mailbox = Mailbox::new(socket, Arc::clone(&interrupted))?;
        // The connection was not set before.
        let _ = connection.set(mailbox);
        settings.data_bytes = wire::data_bytes(memory_bytes);
        let teller = Arc::clone(&host);
        let replies: ReplySink = Box::new(move |reply| host.reply(reply).is_ok());
        let ready = move || {
            // Started now, because no thread can be started later. The watchdog ends a guest whose
            // heap is full.
            watchdog::prepare()?;
            std::thread::Builder::new().name("isolet-interrupts".to_owned()).spawn(move || {
                let _end = Abort;
                pass_on(interrupts, &interrupted)
            })?;
            let report = match lockdown::after_load(early, &settings) {
                Ok(report) => report,
                Err(error) => return refuse(&to_refuse, error.to_string()),
            };
            let version = wire::version();
            teller.tell(&FromWorker::Ready { version: &version, report })
        };
        let served = booted.serve(&replies, ready);
        // Cleaning up would make system calls that kill a worker.
        std::mem::forget(booted);
        served
    }
}

/// Delivers the interrupts that the parent sends, until the parent is gone.
fn pass_on(mut socket: UnixStream, interrupts: &Interrupts) -> io::Result<()> {
    let mut run = [0; size_of::<u64>()];
    loop {
        socket.read_exact(&mut run)?;
        interrupts.interrupt(u64::from_le_bytes(run));
    }
}

/// Receives the first frame, with the image and the socket for interrupts.
fn receive_setup(socket: &UnixStream) -> io::Result<(Setup, SharedFile, UnixStream)> {
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
    let mut fds = fds.drain(..);
    let (image, interrupts) = (fds.next(), fds.next());
    let (Some(image), Some(interrupts), None) = (image, interrupts, fds.next()) else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let (image, interrupts) = (SharedFile::received(image)?, interrupts.into());
    let content = wire::first(&buffer).ok_or(io::ErrorKind::InvalidData)?;
    match wire::decode(content)? {
        (ToWorker::Setup(setup), _) if received.bytes == wire::frame_bytes(content) => {
            Ok((setup, image, interrupts))
        }
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}
