//! What became of a command: the host's verdict, the isolate's reply and the guest's account put together.

use std::time::Duration;

use super::shared::Shared;
use super::state::SessionState;
use crate::data::execution::Termination;
use crate::data::output::Captured;
use crate::data::value::Value;
use crate::host::stop::{Cause, Decided, Passage, StoppableHost};
use crate::protocol::codec;
use crate::protocol::{Reply, Report};

/// A command that has ended.
pub(super) struct Finished {
    pub(super) ending: Ending,
    pub(super) memory_bytes: u64,
    pub(super) stdout: Captured,
    pub(super) stderr: Captured,
    pub(super) tool_calls: u64,
    pub(super) submission: Option<Value>,
    pub(super) wall_time: Duration,
}

pub(super) enum Ending {
    /// The guest gave an account of it.
    Reported(Report),
    Exited(i32),
    /// The host stopped it; the guest's account, if it still gave one.
    Stopped(Termination, Report),
}

impl Shared {
    pub(super) fn finish(
        &self,
        reply: Option<Reply>,
        report: Result<Report, String>,
        Decided { cause, killed }: Decided,
        wall_time: Duration,
        limit: Duration,
    ) -> Finished {
        let finished = self.host.finish();
        let stopped = match cause {
            Cause::Finished => None,
            Cause::Deadline => Some(Termination::Deadline { limit, observed: wall_time }),
            Cause::Limit { kind, limit, observed } => {
                Some(Termination::Limit { kind, limit, observed })
            }
        };
        let died = |reason: String| {
            let reason = codec::tail(&reason);
            let ending = Ending::Stopped(Termination::Died { reason }, Report::default());
            (SessionState::Died, ending, 0)
        };
        // What the host has decided counts, whatever the guest says.
        let (state, ending, memory_bytes) = match (stopped, reply, report) {
            (Some(termination), Some(Reply::Done { memory_bytes }), Ok(report)) if !killed => {
                (SessionState::Ready, Ending::Stopped(termination, report), memory_bytes)
            }
            (Some(termination), ..) => {
                self.stopper.kill();
                let ending = Ending::Stopped(termination, Report::default());
                (SessionState::Terminated, ending, 0)
            }
            (None, Some(Reply::Done { memory_bytes }), Ok(report)) => {
                (SessionState::Ready, Ending::Reported(report), memory_bytes)
            }
            (None, Some(Reply::Done { .. }), Err(reason)) => {
                self.stopper.kill();
                died(unreadable(&reason))
            }
            (None, Some(Reply::OutOfMemory { limit, observed }), _) => {
                let termination = Termination::Memory { limit, observed };
                let ending = Ending::Stopped(termination, Report::default());
                (SessionState::Terminated, ending, 0)
            }
            (None, Some(Reply::Exited(status)), _) => {
                (SessionState::Exited, Ending::Exited(status), 0)
            }
            (None, Some(Reply::Failed(reason)), _) => died(reason),
            (None, Some(Reply::Terminated | Reply::Peeked(_) | Reply::Booted) | None, _) => {
                self.stopper.kill();
                died("it ended during the run".to_owned())
            }
        };
        self.set_state(state);
        let is_over = state != SessionState::Ready;
        self.host.shut(if is_over { Passage::Closed } else { Passage::Idle });
        Finished {
            ending,
            memory_bytes,
            stdout: finished.stdout,
            stderr: finished.stderr,
            tool_calls: finished.tool_calls,
            submission: finished.submission,
            wall_time,
        }
    }
}

/// Why a report is none.
pub(super) fn unreadable(reason: &str) -> String {
    format!("its report cannot be read: {reason}")
}
