//! The state that the ops of one isolate share, and its access to the session's messages.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use deno_core::v8;

use super::control::IsolateControl;
use super::extension::HostHandle;
use super::image::{Image, Library, SavedMemory};
use super::native_code::{Pending, SharedModules};
use super::ops::memory::WasmMemory;
use super::order::event_log::EventLog;
use super::order::recording::{InPlace, Recording};
use super::order::{Answerer, Order};
use super::pending::PendingCalls;
use super::restore::PagesAside;
use super::{Confine, Files};
use crate::image::saved::{Reader, Writer};
use crate::protocol::codec::CommandFrame;
use crate::protocol::{Inbox, Message};
use crate::support::watchdog::Armed;

/// How long a guest's thread waits for an answer before the guest is suspended and its event loop
/// served.
const PATIENCE: Duration = Duration::from_millis(1);

/// How long a guest's thread that cannot be suspended waits between two checks for an interrupt.
const LOOK_UP: Duration = Duration::from_millis(20);

/// After this many calls, arrived answers are collected. Far fewer than may wait to be read.
const UNANSWERED: u32 = 64;

/// The functions through which the host enters our JavaScript.
#[derive(Clone)]
pub(crate) struct EntryPoints {
    pub(crate) start: v8::Global<v8::Function>,
    pub(crate) handle: v8::Global<v8::Function>,
    pub(crate) interrupt: v8::Global<v8::Function>,
    /// Called when the guest waits and its event loop has nothing left to do.
    pub(crate) stalled: v8::Global<v8::Function>,
    pub(crate) peek: v8::Global<v8::Function>,
    /// Lets what comes next in a deterministic session happen.
    pub(crate) turn: v8::Global<v8::Function>,
    /// Makes the interpreter the saved session that the host has.
    pub(crate) restore: v8::Global<v8::Function>,
}

/// The monotonic clock of a session, in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SessionClock {
    /// Where it stood when the session was saved that it goes on from.
    pub(crate) saved_at: Option<f64>,
    /// What it is ahead of the host's.
    pub(crate) ahead: f64,
}

/// The state that the ops of one isolate share.
pub(crate) struct State {
    pub(crate) host: HostHandle,
    pub(crate) control: Arc<IsolateControl>,
    pub(crate) files: Files,
    /// CPython, until it is instantiated.
    pub(crate) module: Option<Pending>,
    pub(crate) image: Option<Image>,
    pub(crate) saved: Option<SavedMemory>,
    /// The modules that the interpreter imports before its image is taken.
    pub(crate) preload: Vec<String>,
    /// Confines the process, before anything of a package is used.
    pub(crate) confine: Option<Confine>,
    /// Set if the process was confined while the isolate booted.
    pub(crate) is_confined: bool,
    /// What a saved session starts from, in a copy of a template.
    pub(crate) pages_aside: Option<PagesAside>,
    /// The dynamic libraries that it has loaded.
    pub(crate) libraries: Vec<Library>,
    /// The modules compiled in this process.
    pub(crate) modules: SharedModules,
    pub(crate) booted: bool,
    pub(crate) entry_points: Option<EntryPoints>,
    /// The command, of which the guest takes what it has not taken yet.
    pub(crate) frame: CommandFrame,
    /// The guest's report on the current command, or why there is none. Empty if the host has it.
    pub(crate) report: Option<Result<Vec<u8>, String>>,
    /// Set while the guest carries out a peek.
    pub(crate) peeks: bool,
    /// The maximum length of a report, in bytes.
    pub(crate) max_report_bytes: u64,
    /// How long it looks for an answer before it sleeps.
    pub(crate) spinning: Duration,
    pub(crate) exited: Option<i32>,
    /// The order of what happens, in a deterministic session.
    pub(crate) order: Option<Order>,
    /// What has happened in a recorded session and the host does not know.
    pub(crate) log: Arc<EventLog>,
    /// Rings when the guest's alarm is due.
    pub(crate) alarm: Option<Armed>,
    /// Why the interpreter has died, if it has.
    pub(crate) died: Option<String>,
    pub(crate) calls: PendingCalls,
    pub(crate) inbox: Box<dyn Inbox>,
    /// Messages that arrived while the guest waited for another one.
    pub(crate) held: VecDeque<Message>,
    pub(crate) memory: WasmMemory,
    pub(crate) clock: SessionClock,
    /// The session that is being saved.
    pub(crate) writer: Option<Writer>,
    /// The saved session that is being restored.
    pub(crate) reader: Option<Reader>,
}

impl State {
    /// Takes the next message, if there is one.
    pub(super) fn try_message(&mut self) -> Option<Message> {
        self.held.pop_front().or_else(|| self.inbox.try_take())
    }

    pub(super) fn poll_message(&mut self, context: &mut Context<'_>) -> Poll<Option<Message>> {
        match self.held.pop_front() {
            Some(message) => Poll::Ready(Some(message)),
            None => self.inbox.poll_take(context),
        }
    }

    /// Opens a call. Arrived answers are collected meanwhile, because a guest that makes many calls
    /// before it waits for one would leave them to accumulate.
    pub(crate) fn open_call(&mut self, answerer: Answerer) -> Option<u32> {
        let call = self.calls.open(answerer)?;
        if call.is_multiple_of(UNANSWERED) {
            while let Some(message) = self.inbox.try_take() {
                match message {
                    Message::Answer(call, answer) => self.calls.answer(call, answer),
                    message => self.held.push_back(message),
                }
            }
        }
        Some(call)
    }

    /// Waits for the answer to a call on this thread, as long as that is cheaper than suspending
    /// the guest. Returns `false` if the guest is to be suspended. Other messages end the wait and
    /// are left to the event loop.
    pub(crate) fn wait_for_answer(&mut self, call: u32) -> bool {
        // In a deterministic session nothing depends on how long it takes.
        let patience = if self.order.is_some() { Duration::MAX } else { PATIENCE };
        if self.recorded_end(call).is_some() {
            return false;
        }
        let end = self.in_place(call, patience, false);
        if end.is_some() {
            self.record_end(call, InPlace::NotSoon);
        }
        end.is_none()
    }

    /// Waits for the answer to a call until `limit` has passed, or the guest is stopped or
    /// interrupted. Returns how the wait has ended if not with an answer. Other messages are left
    /// to the event loop.
    pub(crate) fn block_on_answer(&mut self, call: u32, limit: Duration) -> Option<InPlace> {
        if let Some(end) = self.recorded_end(call) {
            return Some(end);
        }
        let is_host = self.calls.answerer(call) == Some(Answerer::Host);
        // The clock of a deterministic session stands still.
        let stands_still = is_host && self.order.as_ref().is_some_and(Order::is_virtual);
        let limit = if stands_still { Duration::MAX } else { limit };
        let end = self.in_place(call, limit, true);
        if let Some(end) = end {
            self.record_end(call, end);
        }
        end
    }

    /// Returns the recording of a recorded session.
    pub(crate) fn recording(&mut self) -> Option<&mut Recording> {
        self.order.as_mut()?.recording()
    }

    /// Returns how a wait in place has ended in a recorded session that is replayed, if it has not
    /// with an answer.
    fn recorded_end(&mut self, call: u32) -> Option<InPlace> {
        self.recording()?.recorded_end(call)
    }

    fn record_end(&mut self, call: u32, end: InPlace) {
        if let Some(recording) = self.recording() {
            recording.ended(call, end);
        }
    }

    /// Waits in place for the answer to a call. Returns how the wait has ended if not with one.
    /// Other messages are kept, and end the wait unless it is `patient`.
    fn in_place(&mut self, call: u32, limit: Duration, patient: bool) -> Option<InPlace> {
        // Then it has ended with an answer.
        let is_replayed = self.recording().is_some_and(|recording| recording.is_replayed());
        let start = Instant::now();
        while self.calls.is_open(call) {
            match self.inbox.try_take() {
                Some(Message::Answer(call, answer)) => self.calls.answer(call, answer),
                Some(message) => {
                    self.held.push_back(message);
                    if !patient && !is_replayed {
                        return Some(InPlace::NotSoon);
                    }
                }
                None => {
                    let left = limit.saturating_sub(start.elapsed());
                    let has_interrupt = self.control.has_interrupt() && !is_replayed;
                    if self.control.is_stopped() || has_interrupt {
                        return Some(InPlace::Interrupted);
                    }
                    if left.is_zero() && !is_replayed {
                        return Some(InPlace::Expired);
                    }
                    self.inbox.wait(self.spinning, left.min(LOOK_UP));
                }
            }
        }
        None
    }
}
