//! Copies a worker that has a session, on the isolate's thread, between two commands. Contains the
//! unsafe code for that.
//!
//! The parent permits each step in the kernel (`lockdown/supervision.rs`). Before it permits the
//! first thread of a copy, it has replaced the copy's sockets, so that the copy has none of the
//! worker's.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::copying::{fork, include_all_memory};
use super::mailbox::{Connection, Interrupts, Mailbox};
use super::remote::RemoteHost;
use super::serve::{Abort, pass_on};
use super::socket_watch::SocketWatch;
use crate::data::isolation::IsolationReport;
use crate::isolate::Forked;
use crate::support::lock::lock;
use crate::support::watchdog;
use crate::worker::wire::{self, FromWorker};

/// What is needed to copy this worker.
pub(super) struct SessionFork {
    pub(super) connection: Connection,
    pub(super) host: Arc<RemoteHost>,
    pub(super) interrupts: Arc<UnixStream>,
    pub(super) interrupted: Arc<Interrupts>,
    pub(super) watch: Arc<SocketWatch>,
    pub(super) begun: Arc<Begun>,
}

/// How many of the threads that wait for the parent have begun.
#[derive(Default)]
pub(super) struct Begun {
    threads: Mutex<usize>,
    changed: Condvar,
}

impl Begun {
    /// The number of those threads.
    const ALL: usize = 2;

    fn add(&self) {
        *lock(&self.threads) += 1;
        self.changed.notify_all();
    }

    fn wait(&self) {
        let threads = lock(&self.threads);
        let too_few = |threads: &mut usize| *threads < Self::ALL;
        drop(self.changed.wait_while(threads, too_few).unwrap_or_else(PoisonError::into_inner));
    }

    fn renew(&self) {
        *lock(&self.threads) = 0;
    }
}

impl SessionFork {
    /// Copies the worker. Returns in both. If there is no copy, the parent is told why.
    pub(super) fn fork(&self) -> io::Result<Forked> {
        include_all_memory();
        self.begun.wait();
        let forked = watchdog::while_it_waits(|| {
            let _interrupts = self.interrupted.hold();
            let _watch = self.watch.hold();
            #[expect(unsafe_code, reason = "the process has other threads")]
            // SAFETY: the watchdog, the thread for interrupts and the watch of the socket have
            // begun, so that they hold no lock that a thread takes when it begins. They wait in the
            // system or for one of the locks that are held here; the copy releases these, and
            // starts the three threads anew. The other threads of a worker are parked for good and
            // hold nothing. V8 runs without threads (`isolate/platform.rs`).
            unsafe {
                fork()
            }
        });
        match forked {
            Ok(Some(_)) => Ok(Forked::Original),
            Ok(None) => self.renew().map(|()| Forked::Copy),
            Err(error) => {
                let error = error.raw_os_error().unwrap_or_default();
                self.host.tell(&FromWorker::NotForked(error)).map(|()| Forked::Original)
            }
        }
    }

    /// Makes a copy independent of the worker that it was copied from.
    fn renew(&self) -> io::Result<()> {
        // From the first thread on, the descriptors are the copy's own.
        watchdog::start_again()?;
        self.mailbox()?.renew()?;
        self.begun.renew();
        self.start_threads()?;
        self.host.forget();
        let report = IsolationReport::process([]);
        self.host.tell(&FromWorker::Ready { version: &wire::version(), report })
    }

    /// Starts the threads that wait for the parent.
    pub(super) fn start_threads(&self) -> io::Result<()> {
        let (interrupts, interrupted) =
            (Arc::clone(&self.interrupts), Arc::clone(&self.interrupted));
        let begun = Arc::clone(&self.begun);
        thread("isolet-interrupts", move || {
            let _end = Abort;
            begun.add();
            pass_on(&interrupts, &interrupted)
        })?;
        let (watch, connection) = (Arc::clone(&self.watch), Arc::clone(&self.connection));
        let begun = Arc::clone(&self.begun);
        thread("isolet-socket", move || {
            let _end = Abort;
            begun.add();
            if let Some(mailbox) = connection.get() {
                watch.serve(mailbox);
            }
            Ok(())
        })
    }

    fn mailbox(&self) -> io::Result<&Mailbox> {
        self.connection.get().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

fn thread(name: &str, main: impl FnOnce() -> io::Result<()> + Send + 'static) -> io::Result<()> {
    /// Small, because every copy has these threads.
    const STACK_BYTES: usize = 128 << 10;
    let thread = std::thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES);
    thread.spawn(main).map(drop)
}

/// Has the system forget copies of this worker that have ended. The parent watches them itself.
pub(super) fn forget_ended_copies() -> io::Result<()> {
    #[expect(unsafe_code, reason = "there is no safe binding")]
    // SAFETY: this sets no handler.
    let before = unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
    if before == libc::SIG_ERR { Err(io::Error::last_os_error()) } else { Ok(()) }
}
