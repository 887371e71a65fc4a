//! The parent's end of a worker: a thread that reads its frames and answers them, a thread that writes to
//! it, and the means to stop it. Whatever the worker sends, and however it ends, costs its own session only.

use std::io::{self, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{mpsc, oneshot};

use super::wire::{self, BULK_BYTES, FileBytes, FromWorker, ToWorker};
use crate::isolation::IsolationReport;
use crate::limits::Limits;
use crate::waist::{Control, Host, HostRequest, Link, Message, Reply};

/// What is read of a worker at once.
const READ_BYTES: usize = 64 << 10;

/// Messages that may wait for a worker to read them: more than there can be calls of host functions.
const QUEUED_MESSAGES: usize = 4 * Limits::WAITING_TOOL_CALLS;

/// The threads of a worker do little, and there may be many.
const STACK_BYTES: usize = 512 << 10;

/// What a worker says when it is ready: which program it is, and what is in force.
pub(super) type Readiness = Result<(String, IsolationReport), String>;

/// A worker that was started.
pub(super) struct Started {
    pub(super) link: Link,
    pub(super) ready: oneshot::Receiver<Readiness>,
}

/// What is to be written to a worker.
enum Outgoing {
    Message(Message),
    Interrupt,
    ClearInterrupt,
    /// The worker is gone.
    Stop,
}

struct WorkerControl {
    child: Mutex<Child>,
    outgoing: mpsc::UnboundedSender<Outgoing>,
    /// An interrupt was asked for in this run.
    asked: AtomicBool,
    /// Replies that the worker owes: one to each command and peek, and one that says that it could not start.
    owed: AtomicUsize,
    /// Messages that it has not read yet.
    queued: AtomicUsize,
}

/// What the reading thread works with.
struct Reader {
    socket: UnixStream,
    writer: Arc<Mutex<UnixStream>>,
    host: Arc<dyn Host>,
    control: Arc<WorkerControl>,
    replies: mpsc::UnboundedSender<Reply>,
    ready: Option<oneshot::Sender<Readiness>>,
    max_frame_bytes: u64,
}

/// Starts the threads of a worker. `first` writes to it before anybody else.
pub(super) fn start(
    socket: UnixStream,
    child: Child,
    host: Arc<dyn Host>,
    max_frame_bytes: u64,
    first: impl FnOnce(&UnixStream) -> io::Result<()>,
) -> io::Result<Started> {
    let (outgoing, queue) = mpsc::unbounded_channel();
    let (sink, replies) = mpsc::unbounded_channel();
    let (sender, ready) = oneshot::channel();
    let control = Arc::new(WorkerControl {
        child: Mutex::new(child),
        outgoing: outgoing.clone(),
        asked: AtomicBool::new(false),
        owed: AtomicUsize::new(1),
        queued: AtomicUsize::new(0),
    });
    let begun = first(&socket).or_else(|error| match error.kind() {
        // It has ended already; the reading thread says how.
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Ok(()),
        _ => Err(error),
    });
    let begun = begun.and_then(|()| {
        let writer = Arc::new(Mutex::new(socket.try_clone()?));
        let reader = Reader {
            socket,
            writer: Arc::clone(&writer),
            host,
            control: Arc::clone(&control),
            replies: sink,
            ready: Some(sender),
            max_frame_bytes,
        };
        thread("isolet-from-worker", move || reader.serve())?;
        let control = Arc::clone(&control);
        thread("isolet-to-worker", move || write(queue, &writer, &control))
    });
    if let Err(error) = begun {
        let _ = control.end();
        return Err(error);
    }
    let counts = Arc::clone(&control);
    let messages = Arc::new(move |message| {
        if matches!(message, Message::Command(_) | Message::Peek(..)) {
            counts.owed.fetch_add(1, Ordering::Relaxed);
        }
        counts.queued.fetch_add(1, Ordering::Relaxed);
        // A worker that is gone says so by its replies.
        let _ = outgoing.send(Outgoing::Message(message));
    });
    Ok(Started { link: Link { messages, replies, control }, ready })
}

fn thread(name: &str, main: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let thread = std::thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES);
    thread.spawn(main).map(drop)
}

/// Writes what is queued until the worker is gone. A worker that does not read holds up this thread only.
fn write(
    mut queue: mpsc::UnboundedReceiver<Outgoing>,
    writer: &Mutex<UnixStream>,
    control: &WorkerControl,
) {
    while let Some(outgoing) = queue.blocking_recv() {
        let content = match outgoing {
            Outgoing::Message(message) => {
                control.queued.fetch_sub(1, Ordering::Relaxed);
                ToWorker::Message(message)
            }
            Outgoing::Interrupt => ToWorker::Interrupt,
            Outgoing::ClearInterrupt => ToWorker::ClearInterrupt,
            Outgoing::Stop => return,
        };
        let sent = wire::encode(&content).and_then(|frame| lock(writer).write_all(&frame));
        if sent.is_err() {
            // The reading thread sees why.
            return;
        }
    }
}

impl Reader {
    /// Answers the worker's frames until there are no more, then sees to its end.
    fn serve(mut self) {
        let violation = self.answer_frames().err();
        let status = self.control.end();
        let reason = match violation {
            Some(error) if error.kind() == io::ErrorKind::InvalidData => {
                format!("the worker was killed, since it sent {error}")
            }
            _ => ending(status),
        };
        if let Some(ready) = self.ready.take() {
            let _ = ready.send(Err(reason.clone()));
        }
        // Who does not listen any more does not have to know.
        let _ = self.replies.send(Reply::Failed(reason));
        let _ = self.control.outgoing.send(Outgoing::Stop);
    }

    fn answer_frames(&mut self) -> io::Result<()> {
        let mut socket = BufReader::with_capacity(READ_BYTES, self.socket.try_clone()?);
        let mut content = Vec::new();
        while wire::receive(&mut socket, &mut content, self.max_frame_bytes)? {
            match wire::decode(&content)? {
                FromWorker::Request(request) => self.answer(request)?,
                FromWorker::ReadFile { file, offset, length } => {
                    let length = usize::try_from(length).unwrap_or(usize::MAX).min(BULK_BYTES);
                    let mut bytes = vec![0; length];
                    let read = self.host.read_file(file, offset, &mut bytes);
                    let read = read.map(|count| {
                        bytes.truncate(usize::try_from(count).unwrap_or(usize::MAX));
                        FileBytes(bytes)
                    });
                    self.send(&ToWorker::FileBytes(read))?;
                }
                FromWorker::Reply(reply) => {
                    let owed = &self.control.owed;
                    let one_less = |owed: usize| owed.checked_sub(1);
                    if owed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_err() {
                        return Err(violation("a reply that nobody has asked for"));
                    }
                    // The session may be gone; then the worker is about to be killed.
                    let _ = self.replies.send(reply);
                }
                FromWorker::Ready { version, report } => {
                    if let Some(ready) = self.ready.take() {
                        let _ = ready.send(Ok((version.to_owned(), report)));
                    }
                }
                FromWorker::NotReady(reason) => {
                    if let Some(ready) = self.ready.take() {
                        let _ = ready.send(Err(reason.to_owned()));
                    }
                }
            }
            content.shrink_to(READ_BYTES);
            let queued = self.control.queued.load(Ordering::Relaxed);
            if queued > QUEUED_MESSAGES {
                let message = format!(
                    "requests without reading the answers: limit {QUEUED_MESSAGES}, waiting {queued}"
                );
                return Err(violation(&message));
            }
        }
        Ok(())
    }

    fn answer(&self, request: HostRequest<'_>) -> io::Result<()> {
        let one_way = request.is_one_way();
        let reply = self.host.call(request);
        if one_way { Ok(()) } else { self.send(&ToWorker::Reply(reply)) }
    }

    fn send(&self, content: &ToWorker) -> io::Result<()> {
        wire::send(&mut *lock(&self.writer), content)
    }
}

impl WorkerControl {
    /// Kills the worker, if it still lives, and waits until it is gone.
    fn end(&self) -> io::Result<ExitStatus> {
        let mut child = lock(&self.child);
        // It fails only if the worker is gone already.
        let _ = child.kill();
        child.wait()
    }
}

impl Control for WorkerControl {
    fn interrupt(&self) {
        self.asked.store(true, Ordering::Release);
        let _ = self.outgoing.send(Outgoing::Interrupt);
    }

    fn clear_interrupt(&self) {
        self.asked.store(false, Ordering::Release);
        let _ = self.outgoing.send(Outgoing::ClearInterrupt);
    }

    fn interrupted(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }

    /// Nothing ends a guest as surely and as quickly as the end of its process, and nothing of it is
    /// needed any more: what it has written is in the socket or here.
    fn terminate(&self) {
        let _ = lock(&self.child).kill();
    }
}

fn violation(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// How the worker ended.
fn ending(status: io::Result<ExitStatus>) -> String {
    match status {
        Ok(status) => match (status.signal(), status.code()) {
            (Some(signal), _) => format!("the worker was killed by signal {}", named(signal)),
            (None, Some(code)) => format!("the worker ended with status {code}"),
            (None, None) => format!("the worker ended: {status}"),
        },
        Err(error) => format!("the worker ended, and nobody knows how: {error}"),
    }
}

fn named(signal: i32) -> String {
    let name = match rustix::process::Signal::from_named_raw(signal) {
        Some(rustix::process::Signal::SYS) => {
            "SIGSYS: it tried a system call that it must not make"
        }
        Some(rustix::process::Signal::KILL) => "SIGKILL",
        Some(rustix::process::Signal::SEGV) => "SIGSEGV",
        Some(rustix::process::Signal::ABORT) => "SIGABRT",
        Some(rustix::process::Signal::TRAP) => "SIGTRAP",
        Some(rustix::process::Signal::BUS) => "SIGBUS",
        Some(rustix::process::Signal::ILL) => "SIGILL",
        _ => return signal.to_string(),
    };
    format!("{signal} ({name})")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
