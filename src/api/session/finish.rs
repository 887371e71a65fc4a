//! Decides how a command ended, from the host's stop, the isolate's reply and the guest's report.

use std::time::Duration;

use super::shared::Shared;
use super::state::SessionState;
use crate::data::execution::Termination;
use crate::host::FinishedRun;
use crate::host::saved::SavedWriter;
use crate::host::stop::{Cause, Passage, Stop, Stoppable};
use crate::protocol::codec;
use crate::protocol::{Reply, Report, Status};

/// A command that has ended.
pub(super) struct Ended {
    /// The guest's report, as far as the host accepts it.
    pub(super) report: Report,
    /// Why the host ended the command, if it did.
    pub(super) termination: Option<Termination>,
    pub(super) memory_bytes: u64,
    pub(super) wall_time: Duration,
    pub(super) host_time: Duration,
    pub(super) run: FinishedRun,
    /// What the guest has saved, or why it could not be, if it was to.
    pub(super) saved: Option<Result<Box<SavedWriter>, String>>,
}

impl Shared {
    /// Decides how a command ended and which state the session is in afterwards. `report` is the
    /// guest's decoded report.
    pub(super) fn finish(
        &self,
        reply: Option<Reply>,
        report: Result<Report, String>,
        Stop { cause, killed, times }: Stop,
        wall_time: Duration,
        run_time: Duration,
    ) -> Ended {
        let mut run = self.host.finish();
        let stopped = cause.map(|cause| match cause {
            Cause::Deadline => Termination::Deadline { limit: run_time, observed: times.guest },
            Cause::HostTime => {
                Termination::HostTime { limit: self.limits.host_time(), observed: times.host }
            }
            Cause::Limit { kind, limit, observed } => Termination::Limit { kind, limit, observed },
        });
        let died = |reason: &str| Termination::Died { reason: codec::tail(reason) };
        // The host's decision overrides the guest's report.
        let (state, termination, report, memory_bytes) = match (stopped, reply, report) {
            (stopped, Some(Reply::Done { memory_bytes, .. }), Ok(report)) if !killed => {
                (SessionState::Ready, stopped, report, memory_bytes)
            }
            (Some(termination), ..) => {
                self.stopper.kill();
                (SessionState::Terminated, Some(termination), Report::default(), 0)
            }
            (None, Some(Reply::OutOfMemory { kind, limit, observed }), _) => {
                let termination = Termination::Memory { kind, limit, observed };
                (SessionState::Terminated, Some(termination), Report::default(), 0)
            }
            (None, Some(Reply::Exited(status)), _) => {
                // The guest ended its interpreter before the run completed.
                run.submission = None;
                let report = Report { status: Status::Exited(status, None), ..Report::default() };
                (SessionState::Exited, None, report, 0)
            }
            (None, Some(Reply::Failed(reason)), _) => {
                (SessionState::Died, Some(died(&reason)), Report::default(), 0)
            }
            (None, Some(Reply::Done { .. }), Err(reason)) => {
                self.stopper.kill();
                let termination = died(&unreadable(&reason));
                (SessionState::Died, Some(termination), Report::default(), 0)
            }
            (None, ..) => {
                self.stopper.kill();
                let termination = died("it ended during the run");
                (SessionState::Died, Some(termination), Report::default(), 0)
            }
        };
        self.set_state(state);
        let is_over = state != SessionState::Ready;
        self.host.shut(if is_over { Passage::Closed } else { Passage::Idle });
        let host_time = times.host;
        Ended { report, termination, memory_bytes, wall_time, host_time, run, saved: None }
    }
}

/// Returns the message for a report that cannot be read.
pub(super) fn unreadable(reason: &str) -> String {
    format!("its report cannot be read: {reason}")
}
