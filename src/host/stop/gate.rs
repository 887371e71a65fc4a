//! The gate: refuses an isolate's requests except while a command is under way.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::protocol::HostRequest;

/// The states of the gate, each stricter than the one before. A guest may outlive the kill of its
/// isolate, and an attacker in a worker may send requests at any time: neither has any effect on
/// the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Passage {
    /// A command is under way: all requests pass.
    Open,
    /// The command was killed: only output that the guest wrote before passes, and the clocks.
    Output,
    /// No command is under way: only requests that free something pass, and the clocks.
    Idle,
    /// The session is over: only the clocks pass, permanently.
    Closed,
}

/// Decides which requests reach the host.
pub(crate) struct Gate(AtomicU8);

impl Gate {
    /// Makes an open gate: an isolate starts its session before the first command.
    pub(crate) fn new() -> Self {
        Self(AtomicU8::new(Passage::Open as u8))
    }

    /// Opens the gate for a command, unless the session is over.
    pub(crate) fn open(&self) {
        self.change(|current| (current < Passage::Closed as u8).then_some(Passage::Open as u8));
    }

    /// Shuts the gate to this state. A stricter state stays.
    pub(crate) fn shut(&self, passage: Passage) {
        self.change(|current| (current < passage as u8).then_some(passage as u8));
    }

    /// Returns the reason why a request does not pass, if it does not.
    pub(crate) fn refusal(&self, request: &HostRequest<'_>) -> Option<&'static str> {
        let passage = self.0.load(Ordering::Acquire);
        if passage == Passage::Open as u8 {
            return None;
        }
        let passes = match request {
            HostRequest::Write(..) | HostRequest::Display(_) => passage == Passage::Output as u8,
            HostRequest::CancelCall(_) | HostRequest::NetClose(_) => {
                passage != Passage::Closed as u8
            }
            HostRequest::Now | HostRequest::WallClock => true,
            _ => false,
        };
        (!passes).then(|| Self::reason(passage))
    }

    /// Returns `true` if a command is under way, so that files may be read.
    pub(crate) fn is_open(&self) -> bool {
        self.0.load(Ordering::Acquire) == Passage::Open as u8
    }

    fn reason(passage: u8) -> &'static str {
        if passage == Passage::Idle as u8 {
            "nothing runs in the session"
        } else {
            "the session was stopped"
        }
    }

    fn change(&self, to: impl Fn(u8) -> Option<u8>) {
        // `to` returns `None` if there is nothing to change.
        let _ = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::output::Stream;

    const WRITE: HostRequest<'static> = HostRequest::Write(Stream::Stdout, b"x");
    const CALL: HostRequest<'static> = HostRequest::CallTool { call: 1, tool: "f", arguments: b"" };

    #[test]
    fn each_state_lets_less_pass_than_the_one_before() {
        let gate = Gate::new();
        assert!(gate.refusal(&CALL).is_none() && gate.is_open());
        gate.shut(Passage::Output);
        assert!(gate.refusal(&CALL).is_some() && gate.refusal(&WRITE).is_none());
        assert!(!gate.is_open());
        gate.shut(Passage::Idle);
        assert!(gate.refusal(&WRITE).is_some());
        assert!(gate.refusal(&HostRequest::NetClose(1)).is_none());
        gate.shut(Passage::Output);
        assert!(gate.refusal(&WRITE).is_some(), "it opened again");
        gate.shut(Passage::Closed);
        assert!(gate.refusal(&HostRequest::NetClose(1)).is_some());
        assert!(gate.refusal(&HostRequest::Now).is_none());
    }

    #[test]
    fn a_command_opens_it_until_the_session_is_over() {
        let gate = Gate::new();
        gate.shut(Passage::Idle);
        gate.open();
        assert!(gate.refusal(&CALL).is_none());
        gate.shut(Passage::Closed);
        gate.open();
        assert!(gate.refusal(&CALL).is_some());
    }
}
