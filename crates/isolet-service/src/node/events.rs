//! The events of a run under way, from the guest's thread to the client's stream.

use std::sync::Arc;

use isolet::{Stream, Value};
use opentelemetry::trace::SpanContext;
use prometheus_client::metrics::counter::Counter;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::traces::Traces;
use crate::core::{Display, Kept, Listener, ToolCall};

/// How many events are buffered for a client. The guest waits while the buffer is full.
const MAX_EVENTS: usize = 32;

/// An event of a run.
#[derive(Debug)]
pub enum Event {
    Output(Stream, String),
    Display(Display),
    /// The guest calls a tool of the client.
    Call {
        call: u64,
        tool: String,
        arguments: Value,
    },
    /// The call was cancelled.
    Uncall(u64),
}

/// Receives the events of a run. Dropping it discards further events.
pub struct Events(mpsc::Receiver<Event>);

impl Events {
    /// Waits for the next event.
    pub async fn next(&mut self) -> Option<Event> {
        self.0.recv().await
    }

    /// Returns an event that has arrived already.
    pub fn try_next(&mut self) -> Option<Event> {
        self.0.try_recv().ok()
    }
}

/// Sends the events of a run to its stream.
pub(crate) struct EventSender {
    sender: mpsc::Sender<Event>,
    /// The span of the run.
    run: Option<SpanContext>,
    traces: Arc<Traces>,
    /// Counts the calls sent to clients.
    tool_calls: Counter,
}

impl EventSender {
    /// Creates the sender and the receiver of a run's events; `run` is its span.
    pub(crate) fn new(
        run: Option<SpanContext>,
        traces: Arc<Traces>,
        tool_calls: Counter,
    ) -> (Self, Events) {
        let (sender, receiver) = mpsc::channel(MAX_EVENTS);
        (Self { sender, run, traces, tool_calls }, Events(receiver))
    }

    /// Sends an event, waiting while the buffer is full. Returns `false` if the receiver is gone.
    fn send(&self, event: Event) -> bool {
        match self.sender.try_send(event) {
            Ok(()) => true,
            Err(TrySendError::Closed(_)) => false,
            Err(TrySendError::Full(event)) => {
                // This may be a thread of the runtime that serves requests.
                tokio::task::block_in_place(|| self.sender.blocking_send(event)).is_ok()
            }
        }
    }
}

impl Listener for EventSender {
    fn has_room(&self) -> bool {
        self.sender.capacity() > 0 || self.sender.is_closed()
    }

    fn output(&self, stream: Stream, text: String) {
        self.send(Event::Output(stream, text));
    }

    fn display(&self, display: Display) {
        self.send(Event::Display(display));
    }

    fn call(&self, call: ToolCall<'_>) -> Option<Kept> {
        let ToolCall { number, tool, arguments, .. } = call;
        let traced = self.traces.call(self.run.clone(), tool);
        let is_sent = self.send(Event::Call { call: number, tool: tool.to_owned(), arguments });
        is_sent.then(|| {
            self.tool_calls.inc();
            Kept(Some(Box::new(traced)))
        })
    }

    fn uncall(&self, call: u64) {
        // Without waiting: if the buffer is full, the client learns it from the end of the run.
        let _ = self.sender.try_send(Event::Uncall(call));
    }
}

/// Discards all events.
pub(crate) struct NoListener;

impl Listener for NoListener {
    fn has_room(&self) -> bool {
        true
    }

    fn output(&self, _: Stream, _: String) {}

    fn display(&self, _: Display) {}

    fn call(&self, _: ToolCall<'_>) -> Option<Kept> {
        None
    }

    fn uncall(&self, _: u64) {}
}
