//! The worker's main function: receives the image, boots an interpreter, locks the process down,
//! and only then reports that it is ready. What comes from packages is not used before.

#[cfg(test)]
mod taken_over;

use std::io::{self, IoSlice, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use super::lockdown::{self, Early, Settings};
use super::mailbox::{Connection, Interrupts, Mailbox, Messages};
use super::remote::RemoteHost;
use super::session_fork::{self, SessionFork};
use super::socket_watch::SocketWatch;
use super::template_memory::TemplateMemory;
use super::{copying, fork_server, guardian};
use crate::isolate::{self, Boot, Confine, Forked};
use crate::protocol::{Reply, ReplySink};
use crate::support::shared_file::SharedFile;
use crate::support::watchdog;
use crate::worker::wire::output_ring::Producer;
use crate::worker::wire::{self, DESCRIPTORS, FromWorker, Purpose, SETUP_BYTES, Setup, ToWorker};

/// Runs a worker, with standard input as the socket to its parent, whose process number is
/// `parent`. Returns only if the worker cannot start; otherwise the parent ends the process.
/// `forkable` if it becomes a template of workers that can be copied.
pub(crate) fn serve(parent: u32, forkable: bool) -> io::Result<()> {
    copying::use_one_heap();
    let settings = Settings { parent, data_bytes: u64::MAX, forkable };
    let early = lockdown::before_threads(&settings);
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let early = match early {
        Ok(early) => early,
        Err(error) => return refuse(&socket, error.to_string()),
    };
    let mut early = if forkable { guardian::enter(early)? } else { early };
    let Received { setup, image, interrupts, output } = receive_setup(&socket)?;
    // Its threads are made later and are as nice. It works without, and cannot be made less nice.
    let _ = rustix::process::nice(setup.niceness.into());
    let map = early.take_map();
    let memory = if setup.purpose.is_template() {
        fork_server::block_child_signal()?;
        Some(TemplateMemory::new(map))
    } else {
        None
    };
    let start = Start { socket, interrupts, output, setup, image, early, settings, memory };
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
pub(super) struct Abort;

impl Drop for Abort {
    fn drop(&mut self) {
        std::process::abort();
    }
}

/// What a worker starts with.
struct Start {
    socket: UnixStream,
    interrupts: UnixStream,
    /// The memory for output.
    output: OwnedFd,
    setup: Setup,
    image: SharedFile,
    early: Early,
    settings: Settings,
    /// If it becomes a template.
    memory: Option<TemplateMemory>,
}

impl Start {
    fn live(self) -> io::Result<()> {
        match self.setup.purpose {
            Purpose::Session | Purpose::Template | Purpose::ForkableTemplate => {
                self.boot_and_lock_down()
            }
            Purpose::ConfinedSession | Purpose::Import(_) | Purpose::Compile => {
                self.lock_down_and_boot()
            }
        }
    }

    /// Boots, locks the process down and serves the session, on the isolate's thread. In a
    /// template, the part after the fork runs in each worker.
    fn boot_and_lock_down(self) -> io::Result<()> {
        let Self { mut socket, mut interrupts, mut output, setup, image, .. } = self;
        let Self { mut early, settings, memory, .. } = self;
        let image_file = rustix::fs::fstat(image.fd())?.st_ino;
        let connection = Connection::default();
        let host = Arc::new(RemoteHost::new(Arc::clone(&connection), setup.max_frame_bytes()));
        let watch = settings.forkable.then(Arc::<SocketWatch>::default);
        let mut booted = match setup.boot(image, &host, &connection, watch.clone()).of_image(None) {
            Ok(booted) => booted,
            Err(reason) => return refuse(&socket, reason),
        };
        if let Some(mut memory) = memory {
            memory.forget_used_code();
            booted.rehearse().map_err(io::Error::other)?;
            let born = fork_server::serve(&socket, memory, image_file)?;
            // The template's own descriptors are closed here, and their numbers may be reused.
            std::mem::forget(std::mem::replace(&mut socket, born.socket));
            std::mem::forget(std::mem::replace(&mut interrupts, born.interrupts));
            std::mem::forget(std::mem::replace(&mut output, born.output));
            early = match lockdown::after_fork(early, born.parent) {
                Ok(early) => early,
                Err(error) => return refuse(&socket, error.to_string()),
            };
        }
        if watch.is_some() {
            session_fork::forget_ended_copies()?;
        } else {
            booted.renew_event_loop()?;
        }
        let interrupted = Arc::new(Interrupts::default());
        interrupted.connect(booted.control());
        let interrupts = Arc::new(interrupts);
        let to_refuse = socket.try_clone()?;
        let output = Producer::map(output)?;
        let mailbox = Mailbox::new(socket, Arc::clone(&interrupted), output)?;
        // The connection was not set before.
        let _ = connection.set(mailbox);
        let session_fork = watch.map(|watch| SessionFork {
            connection,
            host: Arc::clone(&host),
            interrupts: Arc::clone(&interrupts),
            interrupted: Arc::clone(&interrupted),
            watch,
            begun: Arc::default(),
        });
        let threads = || match &session_fork {
            Some(fork) => fork.start_threads(),
            None => pass_interrupts_on(Arc::clone(&interrupts), Arc::clone(&interrupted)),
        };
        let lockdown = Lockdown {
            early,
            settings: setup.settings(settings),
            interrupts: Arc::clone(&interrupts),
            to_refuse,
            host: Arc::clone(&host),
        };
        let fork = || match &session_fork {
            Some(fork) => fork.fork(),
            None => Err(io::ErrorKind::Unsupported.into()),
        };
        serve_session(booted, host, || lockdown.enter(threads), &fork)
    }

    /// Locks the process down on the way, before anything of the image that packages have made is
    /// used. Threads, the event loop and the rest of the image are there by then.
    fn lock_down_and_boot(self) -> io::Result<()> {
        let Self { socket, interrupts, output, mut setup, image, early, settings, .. } = self;
        let connection = Connection::default();
        let host = Arc::new(RemoteHost::new(Arc::clone(&connection), setup.max_frame_bytes()));
        let to_refuse = socket.try_clone()?;
        let (interrupts, interrupted) = (Arc::new(interrupts), Arc::<Interrupts>::default());
        let lockdown = Lockdown {
            early,
            settings: setup.settings(settings),
            interrupts: Arc::clone(&interrupts),
            to_refuse: socket.try_clone()?,
            host: Arc::clone(&host),
        };
        let output = Producer::map(output)?;
        let mailbox = Mailbox::new(socket, Arc::clone(&interrupted), output)?;
        // The connection was not set before.
        let _ = connection.set(mailbox);
        let is_ready = Arc::new(AtomicBool::new(false));
        let confined = Arc::clone(&is_ready);
        let confine: Confine = Box::new(move |control| {
            interrupted.connect(control);
            lockdown.enter(|| pass_interrupts_on(interrupts, interrupted))?;
            confined.store(true, Ordering::Relaxed);
            Ok(())
        });
        let purpose = std::mem::replace(&mut setup.purpose, Purpose::Session);
        let boot = setup.boot(image, &host, &connection, None);
        let made = match purpose {
            Purpose::Import(modules) => boot.import(modules, confine),
            Purpose::Compile => boot.compile(confine),
            _ => match boot.of_image(Some(confine)) {
                Ok(booted) => {
                    let fork = || Err(io::ErrorKind::Unsupported.into());
                    return serve_session(booted, host, || Ok(()), &fork);
                }
                Err(reason) => Err(reason),
            },
        };
        match made {
            Ok(reply) => host.reply(reply),
            Err(reason) if is_ready.load(Ordering::Relaxed) => host.reply(Reply::Failed(reason)),
            Err(reason) => refuse(&to_refuse, reason),
        }
    }
}

/// Serves the session until its last reply. `ready` is called when the thread needs nothing more
/// from the system.
fn serve_session(
    mut booted: isolate::Booted,
    host: Arc<RemoteHost>,
    ready: impl FnOnce() -> io::Result<()>,
    fork: &dyn Fn() -> io::Result<Forked>,
) -> io::Result<()> {
    let replies: ReplySink = Box::new(move |reply| host.reply(reply).is_ok());
    let served = booted.serve(&replies, ready, fork);
    // Cleaning up would make system calls that kill a worker.
    std::mem::forget(booted);
    served
}

impl Setup {
    fn max_frame_bytes(&self) -> u64 {
        wire::max_frame_bytes(self.max_report_bytes)
    }

    fn settings(&self, settings: Settings) -> Settings {
        Settings { data_bytes: wire::data_bytes(self.memory_bytes), ..settings }
    }

    fn boot(
        &self,
        image: SharedFile,
        host: &Arc<RemoteHost>,
        connection: &Connection,
        watch: Option<Arc<SocketWatch>>,
    ) -> Boot {
        Boot {
            image,
            host: Arc::clone(host) as _,
            inbox: Box::new(Messages::new(Arc::clone(connection), watch)),
            max_memory_bytes: self.memory_bytes,
            max_report_bytes: self.max_report_bytes,
            spins: self.spins,
            is_template: self.purpose.is_template(),
        }
    }
}

/// The last step of a worker's start.
struct Lockdown {
    early: Early,
    settings: Settings,
    interrupts: Arc<UnixStream>,
    to_refuse: UnixStream,
    host: Arc<RemoteHost>,
}

impl Lockdown {
    /// Starts the last threads, locks the process down and tells the parent that it is ready.
    fn enter(self, start_threads: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let Self { early, settings, interrupts, to_refuse, host } = self;
        // Started now, because no thread can be started later. The watchdog ends a guest whose heap
        // is full.
        watchdog::prepare()?;
        start_threads()?;
        let hand_over = |listener: OwnedFd| send_listener(&interrupts, &listener);
        let report = match lockdown::after_load(early, &settings, hand_over) {
            Ok(report) => report,
            Err(error) => return refuse(&to_refuse, error.to_string()),
        };
        host.tell(&FromWorker::Ready { version: &wire::version(), report })
    }
}

fn pass_interrupts_on(interrupts: Arc<UnixStream>, interrupted: Arc<Interrupts>) -> io::Result<()> {
    let thread = std::thread::Builder::new().name("isolet-interrupts".to_owned());
    let main = move || {
        let _end = Abort;
        pass_on(&interrupts, &interrupted)
    };
    thread.spawn(main).map(drop)
}

/// Delivers the interrupts that the parent sends, until the parent is gone.
pub(super) fn pass_on(socket: &UnixStream, interrupts: &Interrupts) -> io::Result<()> {
    let (mut socket, mut run) = (socket, [0; size_of::<u64>()]);
    loop {
        socket.read_exact(&mut run)?;
        interrupts.interrupt(u64::from_le_bytes(run));
    }
}

/// Sends the listener of the worker's filter, with one byte.
fn send_listener(socket: &UnixStream, fd: &OwnedFd) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let fds = [fd.as_fd()];
    if !ancillary.push(SendAncillaryMessage::ScmRights(&fds)) {
        return Err(io::Error::other("there is no room for the descriptor"));
    }
    let sent = sendmsg(socket.as_fd(), &[IoSlice::new(&[0])], &mut ancillary, SendFlags::NOSIGNAL)?;
    if sent == 1 { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// What comes with the first frame.
struct Received {
    setup: Setup,
    image: SharedFile,
    interrupts: UnixStream,
    output: OwnedFd,
}

/// Receives the first frame.
fn receive_setup(socket: &UnixStream) -> io::Result<Received> {
    let mut buffer = vec![0; SETUP_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut slices = [IoSliceMut::new(&mut buffer)];
    let received = recvmsg(socket, &mut slices, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let fds: Vec<OwnedFd> = ancillary
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        })
        .flatten()
        .collect();
    let [image, interrupts, output] =
        <[OwnedFd; DESCRIPTORS]>::try_from(fds).map_err(|_| io::ErrorKind::InvalidData)?;
    let (image, interrupts) = (SharedFile::received(image)?, interrupts.into());
    let content = wire::first(&buffer).ok_or(io::ErrorKind::InvalidData)?;
    match wire::decode(content)? {
        (ToWorker::Setup(setup), _) if received.bytes == wire::frame_bytes(content) => {
            Ok(Received { setup, image, interrupts, output })
        }
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}
