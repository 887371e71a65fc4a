//! A template: a worker that has booted an interpreter and runs no session, but makes workers that
//! have one by forking itself. They start in milliseconds, and share the memory that they do not
//! write to.

use std::collections::HashMap;
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::{Arc, Mutex, mpsc};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, pidfd_send_signal};
use tokio::sync::oneshot;

use super::launch::in_time;
use super::link::thread;
use crate::support::lock::lock;
use crate::worker::wire::template_record::Record;

/// The parent's end of a template. When it is dropped the template ends, and its workers with it.
pub(crate) struct Template {
    socket: UnixStream,
    shared: Arc<Shared>,
}

struct Shared {
    workers: Mutex<Workers>,
    process: Mutex<Child>,
}

#[derive(Default)]
struct Workers {
    last: u64,
    /// The template has ended.
    is_gone: bool,
    expected: HashMap<u64, oneshot::Sender<io::Result<OwnedFd>>>,
    running: HashMap<u64, mpsc::Sender<i32>>,
}

/// A worker that a template has made.
pub(crate) struct Forked {
    fd: OwnedFd,
    status: mpsc::Receiver<i32>,
    /// It ends with the last of its workers.
    _template: Arc<Template>,
}

impl Template {
    /// Waits until a template that was started is ready. `socket` is the one over which it was set
    /// up.
    pub(super) fn new(socket: UnixStream, child: Child) -> io::Result<Self> {
        let shared = Arc::new(Shared { workers: Mutex::default(), process: Mutex::new(child) });
        let stuck = Arc::clone(&shared);
        let _armed = in_time(move || stuck.kill())?;
        let begun = Record::receive(&socket).and_then(|said| match said {
            Some((Record::Ready, _)) => {
                let (shared, reader) = (Arc::clone(&shared), socket.try_clone()?);
                thread("isolet-from-template", move || shared.serve(&reader))
            }
            _ => Err(io::Error::other("the template did not become ready")),
        });
        match begun {
            Ok(()) => Ok(Self { socket, shared }),
            Err(error) => {
                shared.end();
                Err(error)
            }
        }
    }

    /// Has a worker made that gets these sockets.
    pub(super) async fn fork(
        self: &Arc<Self>,
        socket: UnixStream,
        interrupts: UnixStream,
    ) -> io::Result<Forked> {
        let gone = || io::Error::other("the template has ended");
        let (expected, status) = {
            let mut workers = lock(&self.shared.workers);
            if workers.is_gone {
                return Err(gone());
            }
            workers.last += 1;
            let number = workers.last;
            let (sender, expected) = oneshot::channel();
            let (ended, status) = mpsc::channel();
            workers.expected.insert(number, sender);
            workers.running.insert(number, ended);
            // While the lock is held, so that records go out one by one. The template reads them at
            // once.
            Record::Fork(number).send(&self.socket, &[socket.as_fd(), interrupts.as_fd()])?;
            (expected, status)
        };
        drop((socket, interrupts));
        let fd = expected.await.map_err(|_| gone())??;
        Ok(Forked { fd, status, _template: Arc::clone(self) })
    }

    pub(super) fn is_gone(&self) -> bool {
        lock(&self.shared.workers).is_gone
    }

    /// Kills it, and its workers with it.
    pub(super) fn kill(&self) {
        self.shared.kill();
    }
}

impl Drop for Template {
    fn drop(&mut self) {
        // It fails only if the template is gone already.
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

impl Shared {
    /// Serves the template until it is gone. Nobody gets an answer any more then.
    fn serve(&self, socket: &UnixStream) {
        // Whatever it ends with, it is the end.
        let _ = self.read(socket);
        let mut workers = lock(&self.workers);
        workers.is_gone = true;
        workers.expected.clear();
        workers.running.clear();
        drop(workers);
        self.end();
    }

    fn kill(&self) {
        // It fails only if the template has ended already.
        let _ = lock(&self.process).kill();
    }

    fn end(&self) {
        self.kill();
        let _ = lock(&self.process).wait();
    }

    /// Takes what the template says until it is gone.
    fn read(&self, socket: &UnixStream) -> io::Result<()> {
        while let Some((record, fds)) = Record::receive(socket)? {
            let mut workers = lock(&self.workers);
            match record {
                Record::Forked(number) => {
                    let fd = fds.into_iter().next().ok_or(io::ErrorKind::InvalidData)?;
                    if let Some(expected) = workers.expected.remove(&number) {
                        // Who does not wait any more drops the sockets, and the worker ends.
                        let _ = expected.send(Ok(fd));
                    }
                }
                Record::Failed(number, error) => {
                    workers.running.remove(&number);
                    if let Some(expected) = workers.expected.remove(&number) {
                        let _ = expected.send(Err(io::Error::from_raw_os_error(error)));
                    }
                }
                Record::Ended(number, status) => {
                    if let Some(running) = workers.running.remove(&number) {
                        let _ = running.send(status);
                    }
                }
                Record::Ready | Record::Fork(_) => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
        Ok(())
    }
}

impl Forked {
    /// Whether it has ended: its descriptor can be read then.
    pub(super) fn has_ended(&self) -> bool {
        let mut ended = [PollFd::new(&self.fd, PollFlags::IN)];
        poll(&mut ended, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
    }

    /// The descriptor of its process.
    pub(super) fn descriptor(&self) -> &OwnedFd {
        &self.fd
    }

    pub(super) fn kill(&self) -> io::Result<()> {
        Ok(pidfd_send_signal(&self.fd, Signal::KILL)?)
    }

    /// Waits for its end and returns its status as the kernel gave it.
    pub(super) fn wait(&self) -> io::Result<i32> {
        self.status.recv().map_err(|_| io::Error::other("its template has ended"))
    }
}
