//! The client of a node's service: answers go to who waits for them, and what a run says while it
//! runs to who listens.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use isolet::{AuditEvent, Display, Stream, ToolError, Value};
use opentelemetry::trace::SpanContext;
use prometheus_client::metrics::counter::Counter;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use super::super::{Client, Failure, Service, lock};
use super::audit::Audit;
use super::discretion::Discretion;
use super::traces::{Traced, Traces};

/// How many events of a run wait for who listens. Then the guest waits.
const MAX_EVENTS: usize = 32;

/// What a run says while it runs.
#[derive(Debug)]
pub(crate) enum Event {
    Output(Stream, String),
    Display(Value),
    /// The guest calls a tool of the client.
    Call {
        call: u64,
        tool: String,
        arguments: Value,
    },
    /// Nobody waits for a call any more.
    Uncall(u64),
}

/// The events of a run. When this is dropped, nobody listens any more.
pub(crate) struct Events {
    replies: Arc<Replies>,
    run: i64,
    receiver: mpsc::Receiver<Event>,
}

impl Events {
    /// Waits for the next event; `None` once the run's answer has come.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        self.receiver.recv().await
    }

    /// Returns an event that has come already.
    pub(crate) fn try_next(&mut self) -> Option<Event> {
        self.receiver.try_recv().ok()
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        lock(&self.replies.listeners).remove(&self.run);
    }
}

/// Who listens to a run.
struct Listener {
    sender: mpsc::Sender<Event>,
    /// The span of the run.
    run: Option<SpanContext>,
}

/// A call that somebody answers.
struct PassedOn {
    session: i64,
    run: i64,
    /// Ends with the call.
    _traced: Traced,
}

/// The answers and events of a node's service.
pub(super) struct Replies {
    audit: Arc<Audit>,
    traces: Arc<Traces>,
    discretion: Discretion,
    /// Set once those who ask are clients, and not the node itself.
    has_clients: AtomicBool,
    /// Counts the calls that are passed on.
    tool_calls: Counter,
    service: OnceLock<Weak<Service>>,
    waiting: Mutex<HashMap<i64, oneshot::Sender<Result<Value, Failure>>>>,
    listeners: Mutex<HashMap<i64, Listener>>,
    /// Each call that was passed on.
    calls: Mutex<HashMap<u64, PassedOn>>,
}

impl Replies {
    pub(super) fn new(
        audit: Arc<Audit>,
        traces: Arc<Traces>,
        discretion: Discretion,
        tool_calls: Counter,
    ) -> Self {
        Self {
            audit,
            traces,
            discretion,
            has_clients: AtomicBool::new(false),
            tool_calls,
            service: OnceLock::new(),
            waiting: Mutex::default(),
            listeners: Mutex::default(),
            calls: Mutex::default(),
        }
    }

    /// Says that those who ask are clients from now on: answers have no paths of the machine.
    pub(super) fn has_clients(&self) {
        self.has_clients.store(true, Ordering::Relaxed);
    }

    /// Sets whose client it is.
    pub(super) fn serve(&self, service: &Arc<Service>) {
        let _ = self.service.set(Arc::downgrade(service));
    }

    /// Returns what will receive the answer to a request.
    pub(super) fn expect(&self, request: i64) -> oneshot::Receiver<Result<Value, Failure>> {
        let (sender, answer) = oneshot::channel();
        lock(&self.waiting).insert(request, sender);
        answer
    }

    /// Returns what receives the events of a run, which has this span, until its answer has come.
    pub(super) fn listen(self: &Arc<Self>, run: i64, traced: Option<SpanContext>) -> Events {
        let (sender, receiver) = mpsc::channel(MAX_EVENTS);
        lock(&self.listeners).insert(run, Listener { sender, run: traced });
        Events { replies: Arc::clone(self), run, receiver }
    }

    /// Takes a call that waits for its answer, if it is of this session.
    pub(super) fn take_call(&self, call: u64, session: i64) -> bool {
        let mut calls = lock(&self.calls);
        let is_its = calls.get(&call).is_some_and(|its| its.session == session);
        is_its && calls.remove(&call).is_some()
    }

    /// Passes an event on. Waits while there are too many. Returns `false` if nobody listens.
    fn tell(&self, run: i64, event: Event) -> bool {
        let sender = lock(&self.listeners).get(&run).map(|listener| listener.sender.clone());
        let Some(sender) = sender else { return false };
        match sender.try_send(event) {
            Ok(()) => true,
            Err(TrySendError::Closed(_)) => false,
            Err(TrySendError::Full(event)) => {
                // The thread may be one of those that carry out all requests.
                tokio::task::block_in_place(|| sender.blocking_send(event)).is_ok()
            }
        }
    }
}

impl Client for Replies {
    fn reply(&self, request: i64, result: Result<Value, Failure>) {
        lock(&self.listeners).remove(&request);
        let has_clients = self.has_clients.load(Ordering::Relaxed);
        let result = if has_clients { self.discretion.told(result) } else { result };
        if let Some(sender) = lock(&self.waiting).remove(&request) {
            // Who has asked may be gone.
            let _ = sender.send(result);
        }
    }

    fn has_room(&self, run: i64) -> bool {
        lock(&self.listeners).get(&run).is_none_or(|listener| listener.sender.capacity() > 0)
    }

    fn output(&self, run: i64, stream: Stream, text: String) {
        self.tell(run, Event::Output(stream, text));
    }

    fn display(&self, run: i64, display: &Display) {
        self.tell(run, Event::Display(super::super::display_value(display)));
    }

    fn call(&self, call: u64, session: i64, run: i64, tool: &str, arguments: Value) {
        let context = lock(&self.listeners).get(&run).and_then(|listener| listener.run.clone());
        let traced = self.traces.call(context, tool);
        lock(&self.calls).insert(call, PassedOn { session, run, _traced: traced });
        if self.tell(run, Event::Call { call, tool: tool.to_owned(), arguments }) {
            self.tool_calls.inc();
            return;
        }
        lock(&self.calls).remove(&call);
        if let Some(service) = self.service.get().and_then(Weak::upgrade) {
            let text = format!("nobody answers `{tool}`: the run's events are not read");
            service.answer(call, Err(ToolError::new("RuntimeError", text)));
        }
    }

    fn uncall(&self, call: u64) {
        let Some(PassedOn { run, .. }) = lock(&self.calls).remove(&call) else { return };
        // Without waiting: who is too slow learns it from the end of the run.
        if let Some(listener) = lock(&self.listeners).get(&run) {
            let _ = listener.sender.try_send(Event::Uncall(call));
        }
    }

    fn audit(&self, _sandbox: i64, session: i64, event: &AuditEvent) {
        self.audit.access(session, event);
    }

    fn may_access(&self, session: i64) -> Result<(), String> {
        self.audit.check_access(session)
    }
}
