//! The host of one session: where its output goes and its input, entropy and time come from.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::mpsc;

use crate::limits::Limits;
use crate::output::{Capture, Captured, Stream};
use crate::stdin::{Input, InputPump, Stdin};
use crate::tool::{CallEvent, ToolError, ToolHost};
use crate::value::Value;
use crate::waist::{Host, HostReply, HostRequest};

/// Where a run's output goes as it comes.
pub(crate) type Sink = mpsc::UnboundedSender<(Stream, Vec<u8>)>;

/// Holds the policy of one session and the streams of its current run.
pub(crate) struct SessionHost {
    started: Instant,
    run: Mutex<RunStreams>,
    input: Mutex<std::sync::Arc<InputPump>>,
    tools: ToolHost,
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
    /// Makes a host whose guest may call nothing yet; what it does about calls goes to `events`.
    pub(crate) fn new(events: mpsc::UnboundedSender<CallEvent>, max_value_bytes: u64) -> Self {
        Self {
            started: Instant::now(),
            run: Mutex::new(RunStreams::new(&Limits::default(), None)),
            input: Mutex::new(InputPump::new(Stdin::empty()).into()),
            tools: ToolHost::new(events, max_value_bytes),
        }
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
    }

    /// Closes the streams of a run and returns what the host has of it.
    pub(crate) fn finish(&self) -> FinishedRun {
        let closed = RunStreams::new(&Limits::default(), None);
        let streams = std::mem::replace(&mut *lock(&self.run), closed);
        *lock(&self.input) = InputPump::new(Stdin::empty()).into();
        let (tool_calls, submission) = self.tools.finish();
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
                let input = std::sync::Arc::clone(&lock(&self.input));
                match input.read(max) {
                    Input::Bytes(bytes) => HostReply::Bytes(bytes),
                    Input::Interrupted => HostReply::Interrupted,
                }
            }
            HostRequest::Entropy(bytes) => match getrandom::fill(bytes) {
                Ok(()) => HostReply::Done,
                Err(error) => HostReply::Failed(format!("the system gave no entropy: {error}")),
            },
            HostRequest::Now => HostReply::Time(self.started.elapsed().as_secs_f64() * 1e3),
            HostRequest::WallClock => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                HostReply::Time(now.as_secs_f64() * 1e3)
            }
            HostRequest::CallTool { call, tool, arguments } => {
                done_or_refused(self.tools.call(call, tool, arguments))
            }
            HostRequest::CancelCall(call) => {
                self.tools.cancel(call);
                HostReply::Done
            }
            HostRequest::Fetch(address) => HostReply::Refused(no_network(address)),
            HostRequest::VerifyModule(_) => HostReply::Refused(ToolError::new(
                "PermissionError",
                "WebAssembly code that is not part of a loaded package cannot be compiled",
            )),
            HostRequest::Submit(fields) => done_or_refused(self.tools.submit(fields)),
        }
    }
}

/// The refusal of a request to the network, by what the guest calls the server.
fn no_network(address: &str) -> ToolError {
    const SHOWN: usize = 100;
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let server = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let server = server.rsplit('@').next().unwrap_or_default();
    let server: String = server.chars().take(SHOWN).filter(|c| !c.is_control()).collect();
    let message = format!("network access to {server} is not allowed; allow-net does not cover it");
    ToolError::new("PermissionError", message)
}

fn done_or_refused(result: Result<(), ToolError>) -> HostReply {
    result.map_or_else(HostReply::Refused, |()| HostReply::Done)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
