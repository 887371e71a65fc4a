//! Tool calls that wait for the client's answer, by the numbers that wires give them.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use isolet::{ToolError, Value};
use tokio::sync::oneshot;

use super::session::SessionEntry;
use super::{Listener, ToolCall};
use isolet::internals::lock;

/// The value that a tool of the client has returned, or the exception that it has raised.
pub type Answer = Result<Value, ToolError>;

/// The unanswered calls.
#[derive(Default)]
pub(crate) struct Calls(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    last: u64,
    answers: HashMap<Key, (Arc<SessionEntry>, oneshot::Sender<Answer>)>,
}

/// How an unanswered call is found.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    /// By its number in the service.
    Service(u64),
    /// By its session and its number there, which it keeps when it is made again. The session is
    /// told by its address, which is no other's while the call waits and holds it.
    Session(usize, u64),
}

impl Key {
    fn of_session(session: &Arc<SessionEntry>, id: u64) -> Self {
        Self::Session(Arc::as_ptr(session).addr(), id)
    }

    /// Returns the number on the wires.
    fn number(self) -> u64 {
        match self {
            Self::Service(number) | Self::Session(_, number) => number,
        }
    }
}

/// An unanswered call. Dropping it tells the client that the call was cancelled.
pub(crate) struct CallUnderWay {
    key: Key,
    calls: Arc<Calls>,
    listener: Arc<dyn Listener>,
    answer: oneshot::Receiver<Answer>,
    /// The listener's data, dropped with the call.
    _kept: Option<Box<dyn Any + Send>>,
}

impl Calls {
    /// Asks a listener to call a tool, with a new number or that of the session. `None` if the
    /// listener has no client to ask.
    pub(crate) fn ask(
        self: &Arc<Self>,
        session: &Arc<SessionEntry>,
        listener: Arc<dyn Listener>,
        (id, tool, arguments): (u64, &str, Value),
    ) -> Option<CallUnderWay> {
        let (sender, answer) = oneshot::channel();
        let mut waiting = lock(&self.0);
        let key = if session.owner().keeps_call_ids() {
            Key::of_session(session, id)
        } else {
            waiting.last += 1;
            Key::Service(waiting.last)
        };
        waiting.answers.insert(key, (Arc::clone(session), sender));
        drop(waiting);
        let Some(kept) = listener.call(ToolCall { number: key.number(), id, tool, arguments })
        else {
            lock(&self.0).answers.remove(&key);
            return None;
        };
        Some(CallUnderWay { key, calls: Arc::clone(self), listener, answer, _kept: kept.0 })
    }

    /// Passes on an answer. Returns `false` if the call is no longer waiting, or belongs to another
    /// session.
    pub(crate) fn answer(
        &self,
        call: u64,
        session: Option<&Arc<SessionEntry>>,
        answer: Answer,
    ) -> bool {
        let key = match session {
            Some(session) if session.owner().keeps_call_ids() => Key::of_session(session, call),
            _ => Key::Service(call),
        };
        let mut waiting = lock(&self.0);
        let is_its = waiting
            .answers
            .get(&key)
            .is_some_and(|(its, _)| session.is_none_or(|session| Arc::ptr_eq(its, session)));
        let sender = if is_its { waiting.answers.remove(&key) } else { None };
        drop(waiting);
        // Sending fails if the call was cancelled in the meantime.
        sender.is_some_and(|(_, sender)| sender.send(answer).is_ok())
    }
}

/// A listener's data for a call, dropped when the call is over.
pub struct Kept(pub Option<Box<dyn Any + Send>>);

impl CallUnderWay {
    /// Waits for the answer.
    pub(crate) async fn answer(mut self) -> Option<Answer> {
        (&mut self.answer).await.ok()
    }
}

impl Drop for CallUnderWay {
    fn drop(&mut self) {
        if lock(&self.calls.0).answers.remove(&self.key).is_some() {
            self.listener.uncall(self.key.number());
        }
    }
}
