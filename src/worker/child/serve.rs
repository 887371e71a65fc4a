//! The worker's main function: gets the assets, boots an interpreter, locks itself down, and only
//! then says that it is ready.

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

/// The longest setup frame.
const SETUP_BYTES: usize = 256;

/// Is a worker, with standard input as the socket to its parent, whose process number is `parent`.
/// It returns only if it cannot start: the parent ends the process.
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
        // Without an isolate or a parent there is nothing left to do, and nothing to tidy up.
        let _end = Abort;
        if start.live().is_ok() {
            // The parent has the last reply, and ends the process.
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

/// Ends the process however its owner ends.
struct Abort;

impl Drop for Abort {
    fn drop(&mut self) {
        std::process::abort();
    }
}

/// What a worker is started with.
struct Start {
    socket: UnixStream,
    interrupts: UnixStream,
    setup: Setup,
    image: SharedFile,
    early: Early,
    settings: Settings,
}

impl Start {
    /// Boots, locks the process down and serves the session, on the isolate's thread. In a template
    /// it returns in the workers that it makes.
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
            // The template's own are closed here, and their numbers may be others'.
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
        // There was none before.
        let _ = connection.set(mailbox);
        settings.data_bytes = wire::data_bytes(memory_bytes);
        let teller = Arc::clone(&host);
        let replies: ReplySink = Box::new(move |reply| host.reply(reply).is_ok());
        let ready = move || {
            // It ends a guest whose heap is full; afterwards no thread can be made.
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
        // To tidy up would take system calls that a worker does not survive.
        std::mem::forget(booted);
        served
    }
}

/// Interrupts what the parent says, until it is gone.
fn pass_on(mut socket: UnixStream, interrupts: &Interrupts) -> io::Result<()> {
    let mut run = [0; size_of::<u64>()];
    loop {
        socket.read_exact(&mut run)?;
        interrupts.interrupt(u64::from_le_bytes(run));
    }
}

/// Receives the first frame, and the image and the socket for interrupts that come with it.
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
