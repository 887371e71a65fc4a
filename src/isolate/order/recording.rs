//! What happens in a recorded session that its program does not determine is an [`Event`], which
//! the host records. A session that is replayed gets these events back, each at its position, and
//! is recorded again from where they end.

use std::collections::VecDeque;
use std::sync::Arc;

use super::event_log::EventLog;
use crate::isolate::control::IsolateControl;
use crate::isolate::extension::HostHandle;
use crate::protocol::happened::{Event, Script};
use crate::protocol::{HostReply, HostRequest};

/// What has happened in a recorded session, and what is to happen while it is replayed.
pub(crate) struct Recording {
    host: HostHandle,
    log: Arc<EventLog>,
    /// What is to happen next, as far as the host has said.
    script: VecDeque<Event>,
    /// How many requests were recorded, once no further event was.
    recorded_requests: Option<u64>,
    /// How often the guest has looked at the clock since the last event.
    looks: u64,
    /// How often it has checked for signals.
    checks: u64,
    /// How often it has looked for an interrupt.
    interrupt_looks: u64,
    /// An interrupt has ended a wait, and the guest has not taken it.
    is_interrupted: bool,
    /// The alarm is due, and the guest has not taken it.
    has_rung: bool,
}

/// How a wait in place for an answer ends without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InPlace {
    /// It is given up.
    NotSoon,
    Expired,
    Interrupted,
}

impl Recording {
    pub(crate) fn new(host: HostHandle, log: Arc<EventLog>) -> Self {
        log.start();
        let mut recording = Self {
            host,
            log,
            script: VecDeque::new(),
            recorded_requests: None,
            looks: 0,
            checks: 0,
            interrupt_looks: 0,
            is_interrupted: false,
            has_rung: false,
        };
        recording.fill();
        recording
    }

    /// Returns `true` while what happens was recorded before.
    pub(crate) fn is_replayed(&self) -> bool {
        let recorded = self.recorded_requests.unwrap_or(u64::MAX);
        !self.script.is_empty() || self.log.requests() < recorded
    }

    /// Nothing that was recorded happens any more.
    pub(crate) fn abandon(&mut self) {
        self.script.clear();
        self.recorded_requests = Some(0);
    }

    /// Begins a command, to which no interrupt applies that was meant for another one.
    pub(crate) fn begin(&mut self) {
        self.is_interrupted = false;
    }

    /// Looks at the clock, which stands at `now`, and in reality at `real`. Returns where it stands
    /// then.
    pub(crate) fn look(&mut self, now: f64, real: impl FnOnce() -> f64) -> f64 {
        self.looks += 1;
        if self.is_replayed() {
            return match self.script.front() {
                Some(&Event::Clock { look, now }) if look == self.looks => {
                    self.pop();
                    now
                }
                _ => now,
            };
        }
        let real = real();
        if real <= now {
            return now;
        }
        self.push(&Event::Clock { look: self.looks, now: real });
        real
    }

    /// The guest checks for signals. Returns `true` if its alarm has rung; `is_due` says whether it
    /// is due.
    pub(crate) fn check(&mut self, is_due: impl FnOnce() -> bool) -> bool {
        self.checks += 1;
        if !self.has_rung {
            let check = self.checks;
            self.has_rung = if self.is_replayed() {
                let rings = self.script.front() == Some(&Event::Alarm { check });
                if rings {
                    self.pop();
                }
                rings
            } else {
                let rings = is_due();
                if rings {
                    self.push(&Event::Alarm { check });
                }
                rings
            };
        }
        self.has_rung
    }

    /// The alarm is taken, or another one is set. Returns `true` if it had rung.
    pub(crate) fn silence(&mut self) -> bool {
        std::mem::take(&mut self.has_rung)
    }

    /// The guest looks for an interrupt. Returns `true` if there is one, and takes it.
    pub(crate) fn take_interrupt(&mut self, control: &IsolateControl) -> bool {
        if std::mem::take(&mut self.is_interrupted) {
            return true;
        }
        self.interrupt_looks += 1;
        if self.is_replayed() {
            let event = Event::Interrupt { look: self.interrupt_looks };
            let is_next = self.script.front() == Some(&event);
            if is_next {
                self.pop();
            }
            return is_next;
        }
        let is_interrupted = control.take_interrupt();
        if is_interrupted {
            self.push(&Event::Interrupt { look: self.interrupt_looks });
        }
        is_interrupted
    }

    /// The shell looks for an interrupt. Returns `true` if there is one, which Python takes later.
    pub(crate) fn look_in_shell(&mut self, control: &IsolateControl) -> bool {
        self.is_interrupted = self.take_interrupt(control);
        self.is_interrupted
    }

    /// An interrupt ends what the guest waits for.
    pub(crate) fn interrupt(&mut self) {
        self.is_interrupted = true;
    }

    /// Returns what is to happen next in a session that is replayed.
    pub(crate) fn next(&self) -> Option<&Event> {
        self.script.front()
    }

    /// What was to happen next has happened.
    pub(crate) fn pop(&mut self) -> Option<Event> {
        let event = self.script.pop_front();
        self.begin_position();
        self.fill();
        event
    }

    /// Tells the host what has happened.
    pub(crate) fn push(&mut self, event: &Event) {
        self.begin_position();
        self.log.push(event, &*self.host);
    }

    /// Returns how the wait in place for the answer to a call ends that begins now, if it was
    /// recorded that it ends without one.
    pub(crate) fn recorded_end(&mut self, call: u32) -> Option<InPlace> {
        let end = match *self.script.front()? {
            Event::NoAnswerSoon(of) if of == call => InPlace::NotSoon,
            Event::Expired(of) if of == call => InPlace::Expired,
            Event::InterruptInPlace(of) if of == call => InPlace::Interrupted,
            _ => return None,
        };
        self.pop();
        Some(end)
    }

    /// The wait in place for the answer to a call has ended without it.
    pub(crate) fn ended(&mut self, call: u32, end: InPlace) {
        self.push(&match end {
            InPlace::NotSoon => Event::NoAnswerSoon(call),
            InPlace::Expired => Event::Expired(call),
            InPlace::Interrupted => Event::InterruptInPlace(call),
        });
    }

    fn begin_position(&mut self) {
        (self.looks, self.checks, self.interrupt_looks) = (0, 0, 0);
    }

    /// Asks the host for what is to happen next.
    fn fill(&mut self) {
        while self.script.is_empty() && self.recorded_requests.is_none() {
            let script = match self.host.call(HostRequest::Order) {
                HostReply::Bytes(bytes) => postcard::from_bytes(&bytes).ok(),
                _ => None,
            };
            let Script { events, requests } =
                script.unwrap_or(Script { events: Vec::new(), requests: Some(0) });
            self.script.extend(events);
            self.recorded_requests = requests;
        }
    }
}
