//! The host of one session: where its output goes, where its input, entropy and time come from, and
//! what it may reach.

mod exchanges;
mod packages;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::mpsc;

use self::exchanges::{Answers, Exchanges};
pub(crate) use self::packages::SessionPackages;
use crate::audit::{Access, AuditLog};
use crate::fs::{FileEvent, FileLimits, FileSystem};
use crate::limits::Limits;
use crate::output::{Capture, Captured, Stream};
use crate::packages::PackageTree;
use crate::sandbox::Sandbox;
use crate::stdin::{Input, InputPump, Stdin};
use crate::tool::{CallEvent, ToolError, ToolHost};
use crate::value::Value;
use crate::waist::{Host, HostReply, HostRequest, Message};

/// Where the guest's Python looks for packages.
const SITE_PACKAGES: &str = "/lib/python3.14/site-packages";

/// The finest step of the clocks that a guest sees, which is that of JavaScript's `Date`. A finer one
/// measures what the guest must not know, such as what lies in the processor's caches.
const CLOCK_STEP: Duration = Duration::from_millis(1);

/// Where a run's output goes as it comes.
pub(crate) type Sink = mpsc::UnboundedSender<(Stream, Vec<u8>)>;

/// Holds the policy of one session and the streams of its current run.
pub(crate) struct SessionHost {
    started: Instant,
    run: Mutex<RunStreams>,
    input: Mutex<Arc<InputPump>>,
    tools: ToolHost,
    mount_points: Vec<String>,
    files: FileSystem,
    exchanges: Exchanges,
    packages: SessionPackages,
    audit: AuditLog,
    answers: Answers,
}

/// What the host has of a run that is over.
pub(crate) struct FinishedRun {
    pub(crate) stdout: Captured,
    pub(crate) stderr: Captured,
    pub(crate) tool_calls: u64,
    pub(crate) submission: Option<Value>,
}

struct RunStreams {
    stdout: Capture,
    stderr: Capture,
    /// Gets the heads of both streams as they come, which bounds what can pile up in it.
    sink: Option<Sink>,
}

impl SessionHost {
    /// Makes the host of session number `session`, whose guest may call nothing yet; what it does
    /// about calls goes to `events`.
    pub(crate) fn new(
        sandbox: &Sandbox,
        session: u64,
        events: mpsc::UnboundedSender<CallEvent>,
    ) -> Self {
        let permissions = sandbox.permissions();
        let audit = sandbox.audit(session);
        let answers: Answers = Arc::new(OnceLock::new());
        let tree = Arc::new(PackageTree::new());
        let mut mounts = permissions.mounts.clone();
        mounts.add_tree(SITE_PACKAGES, Arc::clone(&tree) as _);
        let packages = SessionPackages::new(
            Arc::clone(sandbox.packages()),
            tree,
            audit.clone(),
            Arc::clone(&answers),
        );
        Self {
            started: Instant::now(),
            run: Mutex::new(RunStreams::new(&Limits::default(), None)),
            input: Mutex::new(InputPump::new(Stdin::empty()).into()),
            tools: ToolHost::new(events, sandbox.limits().value_bytes(), audit.clone()),
            mount_points: mounts.guest_paths().map(str::to_owned).collect(),
            files: FileSystem::new(&mounts, FileLimits::default(), file_events(&audit)),
            exchanges: Exchanges::new(&permissions.net, &audit, Arc::clone(&answers)),
            packages,
            audit,
            answers,
        }
    }

    /// Connects the host to the isolate that it answers.
    pub(crate) fn connect(&self, messages: &mpsc::UnboundedSender<Message>) {
        // A host serves one isolate; there is no second one to connect.
        let _ = self.answers.set(messages.downgrade());
    }

    /// The session's packages.
    pub(crate) fn packages(&self) -> &SessionPackages {
        &self.packages
    }

    /// The number of the overlay at a guest path.
    pub(crate) fn overlay(&self, path: &str) -> Option<usize> {
        let index = self.mount_points.iter().position(|point| point == path)?;
        self.files.is_overlay(index).then_some(index)
    }

    /// The session's files beneath its mount points.
    pub(crate) fn files(&self) -> &FileSystem {
        &self.files
    }

    /// The functions that the guest may call.
    pub(crate) fn tools(&self) -> &ToolHost {
        &self.tools
    }

    /// Opens the streams of a run; what was left of the last run's is gone.
    pub(crate) fn begin(&self, limits: &Limits, stdin: Stdin, sink: Option<Sink>) {
        *lock(&self.run) = RunStreams::new(limits, sink);
        *lock(&self.input) = InputPump::new(stdin).into();
        self.tools.begin();
        self.exchanges.begin_run();
    }

    /// Closes the streams of a run and returns what the host has of it.
    pub(crate) fn finish(&self) -> FinishedRun {
        let closed = RunStreams::new(&Limits::default(), None);
        let streams = std::mem::replace(&mut *lock(&self.run), closed);
        *lock(&self.input) = InputPump::new(Stdin::empty()).into();
        let (tool_calls, submission) = self.tools.finish();
        self.exchanges.end_run();
        self.audit.end_run();
        let (stdout, stderr) = (streams.stdout.finish(), streams.stderr.finish());
        FinishedRun { stdout, stderr, tool_calls, submission }
    }

    /// Ends a wait for input.
    pub(crate) fn interrupt_input(&self) {
        lock(&self.input).interrupt();
    }
}

impl RunStreams {
    fn new(limits: &Limits, sink: Option<Sink>) -> Self {
        Self {
            stdout: Capture::new(limits.stdout_bytes()),
            stderr: Capture::new(limits.stderr_bytes()),
            sink,
        }
    }
}

impl Host for SessionHost {
    fn call(&self, request: HostRequest<'_>) -> HostReply {
        match request {
            HostRequest::Write(stream, bytes) => {
                let mut run = lock(&self.run);
                let head = match stream {
                    Stream::Stdout => run.stdout.write(bytes),
                    Stream::Stderr => run.stderr.write(bytes),
                };
                if let (Some(sink), false) = (&run.sink, head.is_empty()) {
                    // Nobody listening any more is no reason to stop the guest.
                    let _ = sink.send((stream, head.to_vec()));
                }
                HostReply::Done
            }
            HostRequest::ReadStdin(max) => {
                let input = Arc::clone(&lock(&self.input));
                match input.read(max) {
                    Input::Bytes(bytes) => HostReply::Bytes(bytes),
                    Input::Interrupted => HostReply::Interrupted,
                }
            }
            HostRequest::Entropy(bytes) => match getrandom::fill(bytes) {
                Ok(()) => HostReply::Done,
                Err(error) => HostReply::Failed(format!("the system gave no entropy: {error}")),
            },
            HostRequest::Now => HostReply::Time(coarse(self.started.elapsed())),
            HostRequest::WallClock => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH);
                HostReply::Time(coarse(now.unwrap_or_default()))
            }
            HostRequest::CallTool { call, tool, arguments } => {
                done_or_refused(self.tools.call(call, tool, arguments))
            }
            HostRequest::CancelCall(call) => {
                self.tools.cancel(call);
                HostReply::Done
            }
            HostRequest::MountPoints => HostReply::MountPoints(self.mount_points.clone()),
            HostRequest::File(request) => HostReply::File(self.files.call(request)),
            HostRequest::NetCheck { host, port } => {
                done_or_refused(self.exchanges.check(host, port))
            }
            HostRequest::NetStart { call, request } => {
                self.exchanges.start(call, request);
                HostReply::Done
            }
            HostRequest::NetSend { call, exchange, chunk } => {
                self.exchanges.send(call, exchange, chunk);
                HostReply::Done
            }
            HostRequest::NetRead { call, exchange, max } => {
                self.exchanges.read(call, exchange, max);
                HostReply::Done
            }
            HostRequest::NetClose(exchange) => {
                self.exchanges.close(exchange);
                HostReply::Done
            }
            HostRequest::Import { call, module } => {
                self.packages.import(call, module);
                HostReply::Done
            }
            HostRequest::VerifyModule(code) => done_or_refused(self.packages.verify(code)),
            HostRequest::Submit(fields) => done_or_refused(self.tools.submit(fields)),
        }
    }
}

/// Has the audit log told of what happens to files.
fn file_events(audit: &AuditLog) -> Arc<dyn Fn(FileEvent) + Send + Sync> {
    let audit = audit.clone();
    Arc::new(move |event: FileEvent| {
        audit.tell(event.allowed, event.reason, || Access::File {
            operation: event.operation.to_owned(),
            path: event.path,
        });
    })
}

/// A time in milliseconds, in whole steps of the guest's clocks.
fn coarse(time: Duration) -> f64 {
    let steps = (time.as_secs_f64() / CLOCK_STEP.as_secs_f64()).floor();
    steps * CLOCK_STEP.as_secs_f64() * 1e3
}

fn done_or_refused(result: Result<(), ToolError>) -> HostReply {
    result.map_or_else(HostReply::Refused, |()| HostReply::Done)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
