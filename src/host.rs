//! The host of one session: where its output goes and its input, entropy and time come from.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::mpsc;

use crate::limits::Limits;
use crate::output::{Capture, Captured, Stream};
use crate::stdin::{Input, InputPump, Stdin};
use crate::waist::{Host, HostReply, HostRequest};

/// Holds the policy of one session and the streams of its current run.
pub(crate) struct SessionHost {
    started: Instant,
    run: Mutex<RunStreams>,
    input: Mutex<std::sync::Arc<InputPump>>,
}

struct RunStreams {
    stdout: Capture,
    stderr: Capture,
    /// Gets the heads of both streams as they come, which bounds what can pile up in it.
    sink: Option<mpsc::UnboundedSender<(Stream, Vec<u8>)>>,
}

impl SessionHost {
    pub(crate) fn new() -> Self {
        Self {
            started: Instant::now(),
            run: Mutex::new(RunStreams::new(&Limits::default(), None)),
            input: Mutex::new(InputPump::new(Stdin::empty()).into()),
        }
    }

    /// Opens the streams of a run; what was left of the last run's is gone.
    pub(crate) fn begin(
        &self,
        limits: &Limits,
        stdin: Stdin,
        sink: Option<mpsc::UnboundedSender<(Stream, Vec<u8>)>>,
    ) {
        *lock(&self.run) = RunStreams::new(limits, sink);
        *lock(&self.input) = InputPump::new(stdin).into();
    }

    /// Closes the streams of a run and returns what they got.
    pub(crate) fn finish(&self) -> (Captured, Captured) {
        let closed = RunStreams::new(&Limits::default(), None);
        let streams = std::mem::replace(&mut *lock(&self.run), closed);
        *lock(&self.input) = InputPump::new(Stdin::empty()).into();
        (streams.stdout.finish(), streams.stderr.finish())
    }

    /// Ends a wait for input.
    pub(crate) fn interrupt_input(&self) {
        lock(&self.input).interrupt();
    }
}

impl RunStreams {
    fn new(limits: &Limits, sink: Option<mpsc::UnboundedSender<(Stream, Vec<u8>)>>) -> Self {
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
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
