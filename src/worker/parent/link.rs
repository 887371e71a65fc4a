//! The parent's side of a worker: answers its frames and stops it. A misbehaving worker affects
//! only its own session.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use bytes::Bytes;
use serde::Serialize;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use super::memory_kills;
use super::process::Process;
use super::reader::{Answer, By, Reader};
use super::reader_lease::ReaderLease;
use super::readers;
use super::watch::{Exceeded, HeldMemory, Watched, watch};
use super::writer::{Frame, FrameKind, Writer};
use crate::data::isolation::IsolationReport;
use crate::data::limits::Limits;
use crate::data::tool::ToolError;
use crate::protocol::codec;
use crate::protocol::{Control, Host, HostReply, HostRequest, Link, Message, Reply};
use crate::support::block_on::PollSource;
use crate::support::lock::lock;
use crate::worker::wire::output_ring::Consumer;
use crate::worker::wire::{self, BULK_BYTES, FileBytes, FromWorker, MessageHead, ToWorker};

/// The maximum number of messages that wait for a worker to read them: more than there can be tool
/// calls.
const QUEUED_MESSAGES: usize = 4 * Limits::WAITING_TOOL_CALLS;

/// The maximum size of the refusals that wait for a worker to read them, in bytes. What else waits
/// is bounded where it is made: answers of tools and of the network by their limits, and there is
/// one reply at a time.
const QUEUED_REFUSAL_BYTES: usize = 64 << 20;

/// The maximum size of what a worker says of itself when it is ready, in characters.
const READINESS_CHARS: usize = 64 << 10;

/// The maximum number of bytes that an event loop copies from a worker at once, except for reports.
const BRIEF_BYTES: usize = 256 << 10;

/// Small, because a worker's threads do little and there may be many.
const STACK_BYTES: usize = 512 << 10;

/// A worker's report when it is ready: its version, and the layers in force.
pub(crate) type Readiness = Result<(String, IsolationReport), String>;

/// A worker that was started.
pub(crate) struct Started {
    pub(crate) link: Link,
    pub(crate) control: Arc<WorkerControl>,
    pub(crate) ready: oneshot::Receiver<Readiness>,
}

/// The limits of a worker.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    /// The maximum length of a frame from the worker, in bytes.
    pub(crate) frame: u64,
    /// The maximum length of a report, in bytes.
    pub(crate) report: u64,
    /// The maximum memory that it may hold, in bytes.
    pub(crate) resident: u64,
}

pub(crate) struct WorkerControl {
    process: Mutex<Process>,
    /// `None` if the kernel does not report how much memory a process holds.
    memory: Option<HeldMemory>,
    resident_bytes: u64,
    /// The limit on its memory that it was killed for exceeding.
    overgrown: OnceLock<Exceeded>,
    /// Set once this process has killed it.
    is_terminated: AtomicBool,
    /// Takes the numbers of the runs to interrupt.
    interrupts: UnixStream,
    /// The number of the current or last run.
    run: AtomicU64,
    /// Set if an interrupt was requested in this run.
    asked: AtomicBool,
    /// The number of replies to commands that the worker owes.
    owed: AtomicUsize,
    /// The number of replies to peeks that it owes.
    owed_peeks: AtomicUsize,
    lease: Arc<ReaderLease>,
    /// The error that prevented the last fork.
    not_forked: Mutex<Option<i32>>,
}

/// Answers a worker's frames.
struct Answers {
    writer: Writer,
    host: Arc<dyn Host>,
    control: Arc<WorkerControl>,
    replies: mpsc::UnboundedSender<Reply>,
    /// Reports that arrived ahead of their replies.
    early: EarlyReports,
    ready: Option<oneshot::Sender<Readiness>>,
    report_bytes: u64,
    /// Set once the worker has said that it takes no more commands.
    has_given_up: bool,
}

/// Reports that arrived ahead of their replies: at most one of a command, and one of a peek into
/// it.
#[derive(Default)]
struct EarlyReports {
    command: Vec<u8>,
    peek: Vec<u8>,
}

/// This side's ends of what connects it with a worker.
pub(crate) struct Ends {
    pub(crate) socket: UnixStream,
    pub(crate) interrupts: UnixStream,
    pub(crate) ring: Consumer,
}

/// Starts to read from a worker, on the event loop if there is one. It owes so many replies without
/// a command. `first` writes to the worker before anything else does.
pub(crate) fn start(
    ends: Ends,
    process: Process,
    host: Arc<dyn Host>,
    bounds: Bounds,
    owed: usize,
    event_loop: Option<&Handle>,
    first: impl FnOnce(&UnixStream) -> io::Result<()>,
) -> io::Result<Started> {
    let Ends { socket, interrupts, ring } = ends;
    let (sink, replies) = mpsc::unbounded_channel();
    let (sender, ready) = oneshot::channel();
    let memory = HeldMemory::of(&process).ok();
    memory_kills::watch();
    let control = Arc::new(WorkerControl {
        process: Mutex::new(process),
        memory,
        resident_bytes: bounds.resident,
        overgrown: OnceLock::new(),
        is_terminated: AtomicBool::new(false),
        interrupts,
        run: AtomicU64::new(0),
        asked: AtomicBool::new(false),
        owed: AtomicUsize::new(owed),
        owed_peeks: AtomicUsize::new(0),
        lease: Arc::default(),
        not_forked: Mutex::default(),
    });
    let begun = first(&socket).or_else(|error| match error.kind() {
        // The worker has already ended; the reading thread reports how.
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Ok(()),
        _ => Err(error),
    });
    let begun = begun.and_then(|()| {
        let writer = Writer::new(socket.try_clone()?);
        let answers = Answers {
            writer: writer.clone(),
            host,
            control: Arc::clone(&control),
            replies: sink,
            early: EarlyReports::default(),
            ready: Some(sender),
            report_bytes: bounds.report,
            has_given_up: false,
        };
        let reader = Reader::new(socket, ring, bounds.frame, Box::new(answers));
        let watched: Weak<WorkerControl> = Arc::downgrade(&control);
        watch(watched)?;
        readers::read(reader, Arc::clone(&control.lease), event_loop)?;
        Ok(writer)
    });
    let writer = match begun {
        Ok(writer) => writer,
        Err(error) => {
            let _ = control.end();
            return Err(error);
        }
    };
    let shared = Arc::clone(&control);
    let messages = Arc::new(move |message| {
        match message {
            Message::Command(_) | Message::Restore(_) => {
                shared.owed.fetch_add(1, Ordering::Relaxed);
            }
            Message::Peek(..) => {
                shared.owed_peeks.fetch_add(1, Ordering::Relaxed);
            }
            Message::Answer(..) | Message::Fork => {}
        }
        readers::expect_answer(&shared.lease);
        // If the worker is gone, its replies report it. A worker that cannot be written to is
        // killed.
        if shared.send(&writer, message).is_err() {
            shared.terminate();
        }
    });
    let source: Arc<dyn PollSource> = Arc::clone(&control.lease) as _;
    let link = Link {
        messages,
        replies,
        control: Arc::clone(&control) as _,
        source: Some(source),
        forker: None,
    };
    Ok(Started { link, control, ready })
}

pub(crate) fn thread(name: &str, main: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let thread = std::thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES);
    thread.spawn(main).map(drop)
}

impl Answer for Answers {
    fn is_for_thread(&self, by: By, frame: &FromWorker<'_>, body: &[u8]) -> bool {
        let on_event_loop = by == By::EventLoop;
        let is_for_thread = |request: &HostRequest<'_>| {
            // What has a reply waits for the worker to read earlier ones.
            let is_brief = || {
                is_brief(request) && (request.is_one_way() || self.writer.waiting_replies() == 0)
            };
            self.host.may_wait(request) || on_event_loop && !is_brief()
        };
        match frame {
            _ if by == By::Thread => false,
            FromWorker::Request(request) => is_for_thread(request),
            FromWorker::Write(stream) => is_for_thread(&HostRequest::Write(*stream, body)),
            FromWorker::ReadFile { .. } => on_event_loop,
            _ => false,
        }
    }

    fn answer(&mut self, frame: FromWorker<'_>, body: &[u8]) -> io::Result<()> {
        match frame {
            FromWorker::Request(request) => self.carry_out(request)?,
            FromWorker::Write(stream) => self.carry_out(HostRequest::Write(stream, body))?,
            FromWorker::ReadFile { file, offset, length } => {
                let length = usize::try_from(length).unwrap_or(usize::MAX).min(BULK_BYTES);
                let mut bytes = vec![0; length];
                let read = self.host.read_file(file, offset, &mut bytes);
                let read = read.map(|count| {
                    bytes.truncate(usize::try_from(count).unwrap_or(usize::MAX));
                    FileBytes(bytes)
                });
                self.answer_request(&ToWorker::FileBytes(read))?;
            }
            // The reader itself knows what to do with them.
            FromWorker::Output { .. } | FromWorker::Report { .. } | FromWorker::Reply(_) => {
                return Err(io::ErrorKind::Unsupported.into());
            }
            FromWorker::Ready { version, report } => {
                let needed = version.len() + report.to_string().len();
                if needed > READINESS_CHARS {
                    let message =
                        format!("its readiness: limit {READINESS_CHARS} bytes, needed {needed}");
                    return Err(violation(&message));
                }
                if let Some(ready) = self.ready.take() {
                    let _ = ready.send(Ok((version.to_owned(), report)));
                }
            }
            FromWorker::NotForked(error) => *lock(&self.control.not_forked) = Some(error),
            FromWorker::NotReady(reason) => {
                if let Some(ready) = self.ready.take() {
                    let _ = ready.send(Err(codec::tail(reason)));
                }
            }
        }
        let queued = self.writer.waiting_refusal_bytes();
        if queued > QUEUED_REFUSAL_BYTES {
            let message = format!(
                "requests without reading the refusals: limit {QUEUED_REFUSAL_BYTES} bytes, \
                 waiting {queued}"
            );
            return Err(violation(&message));
        }
        let queued = self.writer.waiting_messages();
        if queued > QUEUED_MESSAGES {
            let message = format!(
                "requests without reading the answers: limit {QUEUED_MESSAGES}, waiting {queued}"
            );
            return Err(violation(&message));
        }
        Ok(())
    }

    fn report(&mut self, is_peek: bool, report: Vec<u8>) -> io::Result<()> {
        let WorkerControl { owed, owed_peeks, .. } = &*self.control;
        if (if is_peek { owed_peeks } else { owed }).load(Ordering::Relaxed) == 0 {
            return Err(violation("a report that nobody has asked for"));
        }
        let (needed, limit) = (report.len() as u64, self.report_bytes);
        if needed > limit {
            return Err(violation(&format!("a report of {needed} bytes, the limit is {limit}")));
        }
        // If there are several, the last one counts.
        let early = &mut self.early;
        *(if is_peek { &mut early.peek } else { &mut early.command }) = report;
        Ok(())
    }

    fn reply(&mut self, mut reply: Reply) -> io::Result<()> {
        let is_peek = matches!(reply, Reply::Peeked { .. });
        let WorkerControl { owed, owed_peeks, .. } = &*self.control;
        let owed = if is_peek { owed_peeks } else { owed };
        let one_less = |owed: usize| owed.checked_sub(1);
        let is_owed = owed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok();
        // It may say at any time that it takes no more commands, once.
        let gives_up = !is_peek && !matches!(reply, Reply::Done { .. });
        if !is_owed && (!gives_up || self.has_given_up) {
            return Err(violation("a reply that nobody has asked for"));
        }
        self.has_given_up |= gives_up;
        if let Reply::Failed(reason) | Reply::Peeked { refusal: Some(reason), .. } = &mut reply {
            *reason = codec::tail(reason);
        }
        let early = match reply {
            Reply::Peeked { .. } => std::mem::take(&mut self.early.peek),
            _ => std::mem::take(&mut self.early.command),
        };
        if let Some(report) = reply.report().filter(|report| report.is_empty()) {
            *report = early;
        }
        // The session may be gone; the worker is then about to be killed.
        let _ = self.replies.send(reply);
        Ok(())
    }

    /// Handles the worker's end.
    fn end(&mut self, reason: io::Result<()>) {
        let status = self.control.end();
        let reason = match reason {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                format!("the worker was killed, since it sent {error}")
            }
            _ => self.control.memory_kill(&status).unwrap_or_else(|| ending(status)),
        };
        if let Some(ready) = self.ready.take() {
            let _ = ready.send(Err(reason.clone()));
        }
        let reply = match self.control.overgrown.get() {
            Some(&Exceeded { kind, limit, held }) => {
                Reply::OutOfMemory { kind, limit, observed: held }
            }
            None => Reply::Failed(reason),
        };
        // If nobody receives replies any more, nobody needs this one.
        let _ = self.replies.send(reply);
    }
}

/// Returns `true` if an event loop may carry out the request: it waits for no file, and what it
/// copies is small.
fn is_brief(request: &HostRequest<'_>) -> bool {
    match request {
        HostRequest::Write(_, bytes) | HostRequest::Display(bytes) => bytes.len() <= BRIEF_BYTES,
        HostRequest::CallTool { arguments, .. } => arguments.len() <= BRIEF_BYTES,
        HostRequest::Happened(events) => events.len() <= BRIEF_BYTES,
        // Each session begins with a request for the mount points.
        HostRequest::CancelCall(_)
        | HostRequest::FileWritten { .. }
        | HostRequest::MountPoints
        | HostRequest::Now
        | HostRequest::WallClock => true,
        _ => false,
    }
}

impl Answers {
    fn carry_out(&self, request: HostRequest<'_>) -> io::Result<()> {
        let one_way = request.is_one_way();
        let call = match request {
            HostRequest::CallTool { call, .. } | HostRequest::NetStart { call, .. } => Some(call),
            _ => None,
        };
        match (self.host.call(request), call) {
            (HostReply::Refused(class, message), Some(call)) => {
                let error = ToolError::new(class, message).shortened();
                let refusal = codec::encode_answer(Err(error), u64::MAX);
                let answer = Message::Answer(call, refusal.into());
                self.control.send_as(FrameKind::Refusal, &self.writer, answer)
            }
            _ if one_way => Ok(()),
            (reply, _) => self.answer_request(&ToWorker::Reply(reply)),
        }
    }

    /// Answers a request. Waits while the worker has not read earlier answers.
    fn answer_request(&self, content: &impl Serialize) -> io::Result<()> {
        self.writer.wait_for_replies();
        self.writer.send(FrameKind::Reply, Frame::new(wire::encode(content)?, Bytes::new()))
    }
}

impl WorkerControl {
    fn send(&self, writer: &Writer, message: Message) -> io::Result<()> {
        self.send_as(FrameKind::Message, writer, message)
    }

    fn send_as(&self, kind: FrameKind, writer: &Writer, message: Message) -> io::Result<()> {
        let before = match message {
            Message::Command(_) | Message::Restore(_) => {
                wire::encode(&ToWorker::Run(self.run.load(Ordering::Acquire)))?
            }
            _ => Vec::new(),
        };
        let (head, body) = MessageHead::split(message);
        let head = wire::encode_after(before, &ToWorker::Message(head), body.len())?;
        writer.send(kind, Frame::new(head, body))
    }

    /// Returns the number of the process.
    pub(super) fn process_number(&self) -> io::Result<u32> {
        lock(&self.process).number()
    }

    /// Forgets why the last fork failed.
    pub(super) fn begin_fork(&self) {
        lock(&self.not_forked).take();
    }

    /// Returns why the worker cannot be copied, if it has said so.
    pub(super) fn not_forked(&self) -> Option<io::Error> {
        lock(&self.not_forked).map(io::Error::from_raw_os_error)
    }

    /// Kills the worker, if it still runs, and waits for its end.
    fn end(&self) -> io::Result<ExitStatus> {
        let mut process = lock(&self.process);
        // Killing fails only if the worker is already gone.
        let _ = process.kill();
        process.wait()
    }

    /// Returns why the kernel has killed the worker, if it has because memory ran out.
    fn memory_kill(&self, status: &io::Result<ExitStatus>) -> Option<String> {
        let signal = status.as_ref().ok().and_then(ExitStatus::signal);
        let is_foreign =
            signal == Some(libc::SIGKILL) && !self.is_terminated.load(Ordering::Acquire);
        if is_foreign { memory_kills::take() } else { None }
    }
}

impl Watched for WorkerControl {
    fn is_busy(&self) -> bool {
        let owes = |owed: &AtomicUsize| owed.load(Ordering::Relaxed) > 0;
        owes(&self.owed) || owes(&self.owed_peeks)
    }

    fn check_memory(&self) {
        let exceeded = |memory: &HeldMemory| memory.exceeded(self.resident_bytes);
        if let Some(exceeded) = self.memory.as_ref().and_then(exceeded) {
            let _ = self.overgrown.set(exceeded);
            self.terminate();
        }
    }
}

impl Control for WorkerControl {
    fn interrupt(&self) {
        self.asked.store(true, Ordering::Release);
        let run = self.run.load(Ordering::Acquire).to_le_bytes();
        // A full socket means that the worker has left thousands of interrupts unread. It is killed
        // in the end.
        let _ = (&self.interrupts).write(&run);
    }

    fn clear_interrupt(&self) {
        self.run.fetch_add(1, Ordering::AcqRel);
        self.asked.store(false, Ordering::Release);
    }

    fn interrupted(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }

    fn is_alive(&self) -> bool {
        // If it is locked, another thread is killing the process or waiting for its end.
        self.process.try_lock().is_ok_and(|mut process| !process.has_ended())
    }

    /// Kills the process, which ends a guest faster and more reliably than anything else. Nothing
    /// of the worker is needed any more: its output is in the socket or was already received.
    fn terminate(&self) {
        let mut process = lock(&self.process);
        // One that can no longer be written to may have been killed by somebody else.
        if !process.has_ended() {
            self.is_terminated.store(true, Ordering::Release);
        }
        let _ = process.kill();
        drop(process);
        self.lease.leave_to_thread();
    }
}

fn violation(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Describes how the worker ended.
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
        Some(rustix::process::Signal::XCPU) => {
            "SIGXCPU: it used up its processor time (`ulimit -t`, RLIMIT_CPU)"
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
