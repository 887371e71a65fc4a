//! The client on standard output: writes answers and events as frames.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use isolet::{AuditEvent, Stream};
use serde::Serialize;

use crate::wire::Wire;
use isolet_service::core::{
    Display, Failure, FailureKind, Kept, Listener, Owner, Plain, Reply, ToolCall,
};
use isolet_support::audit_line;
use isolet_support::frames::{self, Frame, MAX_BYTES};

/// Standard output, locked for each frame.
pub(super) struct Stdout {
    wire: Wire,
    turn: Mutex<()>,
}

impl Stdout {
    pub(super) fn new(wire: Wire) -> Self {
        Self { wire, turn: Mutex::default() }
    }

    /// Sends the reason for ending the connection.
    pub(super) fn fatal(&self, reason: &str) {
        // Fails only if the reason exceeds a frame.
        let _ = self.send(&("fatal", reason));
    }

    /// Writes a message. Fails with the reason if it exceeds a frame.
    fn send(&self, message: &impl Serialize) -> Result<(), String> {
        let mut frame = Frame::default();
        self.wire.encode(message, frame.body())?;
        let frame = frame.finish().map_err(|bytes| {
            format!("the answer has {bytes} bytes, the limit is {MAX_BYTES} bytes")
        })?;
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = frames::write(&frame) {
            gone(&error);
        }
        drop(turn);
        Ok(())
    }

    /// Writes an event. One that exceeds a frame is dropped: the result of its run has the same
    /// data, within its limits.
    fn send_or_drop(&self, message: &impl Serialize) {
        let _ = self.send(message);
    }
}

/// Exits the process, because its output is closed.
fn gone(error: &io::Error) -> ! {
    let is_expected = error.kind() == io::ErrorKind::BrokenPipe;
    crate::ending::end(if is_expected { 0 } else { crate::ending::FAILED })
}

impl Stdout {
    /// Answers a request.
    pub(super) fn reply(&self, request: i64, result: Result<impl Serialize, Failure>) {
        let sent = match result {
            Ok(answer) => self.send(&("ok", request, answer)),
            Err(failure) => self.send(&("error", request, failure)),
        };
        if let Err(reason) = sent {
            let failure = Failure {
                kind: FailureKind::Value,
                message: reason,
                hint: Some(
                    "lower the limits `value_bytes`, `stdout_bytes` and `display_bytes`".to_owned(),
                ),
                session_alive: true,
            };
            self.send_or_drop(&("error", request, failure));
        }
    }

    /// Creates the reply of a request.
    pub(super) fn answers<T: Serialize + Send + 'static>(
        self: &Arc<Self>,
        request: i64,
    ) -> Reply<T> {
        self.answers_as(request, |answer| answer)
    }

    /// Creates the reply of a request, whose answer `form` converts.
    pub(super) fn answers_as<T: Send + 'static, A: Serialize>(
        self: &Arc<Self>,
        request: i64,
        form: impl FnOnce(T) -> A + Send + 'static,
    ) -> Reply<T> {
        let client = Arc::clone(self);
        Reply::new(move |result| client.reply(request, result.map(form)))
    }
}

/// The listener of a run, which is named by the number of its request.
pub(super) struct RunListener {
    pub(super) client: Arc<Stdout>,
    pub(super) session: i64,
    pub(super) run: i64,
}

impl Listener for RunListener {
    fn has_room(&self) -> bool {
        true
    }

    fn output(&self, stream: Stream, text: String) {
        let stream = match stream {
            Stream::Stderr => 2,
            _ => 1,
        };
        self.client.send_or_drop(&("output", self.run, stream, text));
    }

    fn display(&self, display: Display) {
        self.client.send_or_drop(&("display", self.run, display));
    }

    fn call(&self, call: ToolCall<'_>) -> Option<Kept> {
        let ToolCall { number, id, tool, arguments } = call;
        let arguments = Plain(arguments);
        self.client.send_or_drop(&("call", number, self.session, self.run, tool, arguments, id));
        Some(Kept(None))
    }

    fn uncall(&self, call: u64) {
        self.client.send_or_drop(&("uncall", call));
    }
}

/// The owner of a session, or of accesses without a session.
pub(super) struct ClientOwner {
    pub(super) client: Arc<Stdout>,
    pub(super) sandbox: i64,
    pub(super) session: i64,
}

impl Owner for ClientOwner {
    fn name(&self) -> String {
        self.session.to_string()
    }

    fn audit(&self, event: &AuditEvent) {
        self.client.send_or_drop(&("audit", self.sandbox, self.session, audit_line::line(event)));
    }

    fn may_access(&self) -> Result<(), String> {
        Ok(())
    }

    fn listener(&self) -> Option<Arc<dyn Listener>> {
        let (client, session) = (Arc::clone(&self.client), self.session);
        Some(Arc::new(RunListener { client, session, run: 0 }))
    }
}
