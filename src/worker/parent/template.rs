//! A template: a process that has booted an interpreter, runs no session, and makes workers by
//! forking itself. These start in milliseconds and share the memory that they do not write to.

use std::collections::HashMap;
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::{Arc, Condvar, Mutex, PoisonError, mpsc};

use rustix::process::{Pid, Signal, kill_process_group, pidfd_send_signal};
use tokio::sync::{RwLock, oneshot};

use super::launch::{START_TIME, in_time};
use super::link::thread;
use super::process::{has_ended, number as process_number};
use super::strays::Processes;
use crate::support::lock::lock;
use crate::worker::wire::template_record::Record;

/// The parent's end of a template. Dropping it ends the template and its workers.
pub(crate) struct Template {
    socket: UnixStream,
    shared: Arc<Shared>,
}

struct Shared {
    workers: Mutex<Workers>,
    /// Notified when no worker is expected any more.
    settled: Condvar,
    /// Locked to write while strays are looked for, so that no worker is made meanwhile.
    making: RwLock<()>,
    processes: Arc<Processes>,
    first: Mutex<First>,
}

/// The process that this one has started: the template, or the one that has made it.
struct First {
    child: Child,
    /// Set when its number may belong to another process.
    is_reaped: bool,
}

#[derive(Default)]
struct Workers {
    last: u64,
    /// Set when the template has ended.
    is_gone: bool,
    expected: HashMap<u64, oneshot::Sender<io::Result<OwnedFd>>>,
    running: HashMap<u64, Running>,
}

struct Running {
    ended: mpsc::Sender<i32>,
    /// The number of its process, when that is known.
    process: Option<u32>,
}

/// A worker that a template has forked.
pub(crate) struct Forked {
    fd: OwnedFd,
    status: mpsc::Receiver<i32>,
    /// Kept, so that the template ends only after the last of its workers.
    template: Arc<Template>,
}

impl Template {
    /// Waits until a started template is ready. `socket` is the one over which it was set up.
    pub(super) fn new(socket: UnixStream, child: Child) -> io::Result<Self> {
        let processes = Arc::new(Processes::new(child.id()));
        let shared = Arc::new(Shared {
            workers: Mutex::default(),
            settled: Condvar::new(),
            making: RwLock::new(()),
            processes,
            first: Mutex::new(First { child, is_reaped: false }),
        });
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

    /// Forks a worker that gets these sockets and this memory for output.
    pub(super) async fn fork(
        self: &Arc<Self>,
        socket: UnixStream,
        interrupts: UnixStream,
        output: BorrowedFd<'_>,
    ) -> io::Result<Forked> {
        let gone = || io::Error::other("the template has ended");
        let _making = self.shared.making.read().await;
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
            workers.running.insert(number, Running { ended, process: None });
            // Sent while the lock is held, so that records go out one by one. The template reads
            // them at once.
            let fds = [socket.as_fd(), interrupts.as_fd(), output];
            Record::Fork(number).send(&self.socket, &fds)?;
            (expected, status)
        };
        drop((socket, interrupts));
        let fd = expected.await.map_err(|_| gone())??;
        Ok(Forked { fd, status, template: Arc::clone(self) })
    }

    pub(super) fn is_gone(&self) -> bool {
        lock(&self.shared.workers).is_gone
    }

    /// Returns the processes that come from it, if it makes forkable workers.
    pub(super) fn processes(&self) -> &Arc<Processes> {
        &self.shared.processes
    }

    /// Kills what comes from the template and is in no session. Returns `false` if there may still
    /// be something. Waits for a moment; may not be called on an event loop.
    pub(super) fn end_strays(&self) -> bool {
        let _making = self.shared.making.blocking_write();
        let workers = lock(&self.shared.workers);
        let is_unsettled = |workers: &mut Workers| !workers.is_gone && !workers.expected.is_empty();
        let settled = self.shared.settled.wait_timeout_while(workers, START_TIME, is_unsettled);
        let (workers, waited) = settled.unwrap_or_else(PoisonError::into_inner);
        let is_gone = workers.is_gone;
        drop(workers);
        // With the template, everything that comes from it is killed.
        is_gone || !waited.timed_out() && self.shared.processes.end_strays()
    }

    /// Kills the template and its workers.
    pub(super) fn kill(&self) {
        self.shared.kill();
    }
}

impl Drop for Template {
    fn drop(&mut self) {
        // Fails only if the template is already gone.
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

impl Shared {
    /// Serves the template until it is gone. After that nobody gets an answer.
    fn serve(&self, socket: &UnixStream) {
        // Any result means that the template is gone.
        let _ = self.read(socket);
        let mut workers = lock(&self.workers);
        workers.is_gone = true;
        workers.expected.clear();
        workers.running.clear();
        self.settled.notify_all();
        drop(workers);
        self.end();
    }

    fn kill(&self) {
        lock(&self.first).kill();
    }

    fn end(&self) {
        let mut first = lock(&self.first);
        first.kill();
        first.is_reaped = first.child.wait().is_ok();
    }

    /// Reads the template's records until it is gone.
    fn read(&self, socket: &UnixStream) -> io::Result<()> {
        while let Some((record, fds)) = Record::receive(socket)? {
            let mut workers = lock(&self.workers);
            match record {
                Record::Forked(number) => {
                    // The kernel leaves a descriptor out where this process may have no more of
                    // them. That is the end of one worker, not of the template and all the others.
                    let no_more = || io::Error::from_raw_os_error(libc::EMFILE);
                    let fd = fds.into_iter().next().ok_or_else(no_more);
                    let process = fd.as_ref().ok().and_then(|fd| process_number(fd).ok());
                    process.inspect(|process| self.processes.add(*process));
                    if let Some(running) = workers.running.get_mut(&number) {
                        running.process = process;
                    }
                    if let Some(expected) = workers.expected.remove(&number) {
                        // A worker that is not taken over ends, since its sockets are dropped.
                        let _ = expected.send(fd);
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
                        running.process.inspect(|process| self.processes.remove(*process));
                        let _ = running.ended.send(status);
                    }
                }
                Record::Ready | Record::Fork(_) => return Err(io::ErrorKind::InvalidData.into()),
            }
            if workers.expected.is_empty() {
                self.settled.notify_all();
            }
        }
        Ok(())
    }
}

impl First {
    /// Kills the process, and its group: it leads one, in which everything is that comes from it.
    fn kill(&mut self) {
        let group = Pid::from_raw(self.child.id().cast_signed()).filter(|_| !self.is_reaped);
        // Both fail only if there is nobody any more.
        let _ = group.map(|group| kill_process_group(group, Signal::KILL));
        let _ = self.child.kill();
    }
}

impl Forked {
    /// Returns `true` if the worker has ended.
    pub(super) fn has_ended(&self) -> bool {
        has_ended(&self.fd)
    }

    /// Returns the descriptor of the worker's process.
    pub(super) fn descriptor(&self) -> &OwnedFd {
        &self.fd
    }

    /// Returns the template that the worker was copied from.
    pub(super) fn template(&self) -> &Arc<Template> {
        &self.template
    }

    pub(super) fn kill(&self) -> io::Result<()> {
        Ok(pidfd_send_signal(&self.fd, Signal::KILL)?)
    }

    /// Waits for the worker's end. Returns its status as the kernel reported it.
    pub(super) fn wait(&self) -> io::Result<i32> {
        self.status.recv().map_err(|_| io::Error::other("its template has ended"))
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[tokio::test]
    async fn a_worker_whose_descriptor_cannot_be_received_takes_no_other_one_along() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        Record::Ready.send(&theirs, &[]).unwrap();
        // Ends when its input does.
        let child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let template = Arc::new(Template::new(ours, child).unwrap());
        let forked = async |is_received: bool| {
            let fork = async {
                let ((socket, _), (interrupts, _)) =
                    (UnixStream::pair().unwrap(), UnixStream::pair().unwrap());
                template.fork(socket, interrupts, theirs.as_fd()).await
            };
            let answer = async {
                let Some((Record::Fork(number), fds)) = Record::receive(&theirs).unwrap() else {
                    panic!("nothing was to be forked");
                };
                assert_eq!(fds.len(), 3);
                // As the kernel leaves out descriptors.
                let fds: &[_] = if is_received { &[theirs.as_fd()] } else { &[] };
                Record::Forked(number).send(&theirs, fds).unwrap();
            };
            tokio::join!(fork, answer).0
        };
        let living = forked(true).await.unwrap();
        let lost = forked(false).await.err().unwrap();
        assert_eq!(lost.raw_os_error(), Some(libc::EMFILE));
        assert!(!template.is_gone() && forked(true).await.is_ok());
        Record::Ended(1, 9).send(&theirs, &[]).unwrap();
        assert_eq!(living.wait().unwrap(), 9);
    }
}
