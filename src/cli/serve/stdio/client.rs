//! The client on standard output: writes replies and events as frames.

use std::io;
use std::sync::{Mutex, PoisonError};

use isolet::{AuditEvent, Display, Stream, Value};

use super::super::wire::Wire;
use crate::cli::frames::{self, Frame, MAX_BYTES};
use crate::cli::{audit, json_text};
use crate::service::{Client, Failure, display_value};

/// Standard output, on which frames do not mix.
pub(super) struct Stdout {
    wire: Wire,
    turn: Mutex<()>,
}

impl Stdout {
    pub(super) fn new(wire: Wire) -> Self {
        Self { wire, turn: Mutex::default() }
    }

    /// Says why the connection ends.
    pub(super) fn fatal(&self, reason: &str) {
        // What does not fit into a frame is no reason.
        let _ = self.send(vec!["fatal".into(), reason.into()]);
    }

    /// Writes a message. Returns its length if it is too long.
    fn send(&self, message: Vec<Value>) -> Result<(), usize> {
        let mut frame = Frame::new();
        self.wire.encode(&Value::List(message), frame.body());
        let frame = frame.finish()?;
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = frames::write(&frame) {
            gone(&error);
        }
        drop(turn);
        Ok(())
    }

    /// Writes an event. One that does not fit into a frame is left out: its run has the same in its
    /// result, within its limits.
    fn tell(&self, message: Vec<Value>) {
        let _ = self.send(message);
    }
}

/// Ends the process, because nobody reads its output any more.
fn gone(error: &io::Error) -> ! {
    let is_expected = error.kind() == io::ErrorKind::BrokenPipe;
    super::super::end(if is_expected { 0 } else { crate::cli::exit::FAILED })
}

impl Client for Stdout {
    fn reply(&self, request: i64, result: Result<Value, Failure>) {
        let message = match result {
            Ok(value) => vec!["ok".into(), request.into(), value],
            Err(failure) => vec!["error".into(), request.into(), error(&failure)],
        };
        if let Err(bytes) = self.send(message) {
            let failure = Failure {
                kind: "value",
                message: format!("the answer has {bytes} bytes, the limit is {MAX_BYTES} bytes"),
                hint: Some(
                    "lower the limits `value_bytes`, `stdout_bytes` and `display_bytes`".to_owned(),
                ),
                session_alive: true,
            };
            self.tell(vec!["error".into(), request.into(), error(&failure)]);
        }
    }

    fn output(&self, run: i64, stream: Stream, text: String) {
        let stream = match stream {
            Stream::Stderr => 2i64,
            _ => 1,
        };
        self.tell(vec!["output".into(), run.into(), stream.into(), text.into()]);
    }

    fn display(&self, run: i64, display: &Display) {
        self.tell(vec!["display".into(), run.into(), display_value(display)]);
    }

    fn call(&self, call: u64, session: i64, run: i64, tool: &str, arguments: Value) {
        self.tell(vec![
            "call".into(),
            call.into(),
            session.into(),
            run.into(),
            tool.into(),
            arguments,
        ]);
    }

    fn uncall(&self, call: u64) {
        self.tell(vec!["uncall".into(), call.into()]);
    }

    fn audit(&self, sandbox: i64, session: i64, event: &AuditEvent) {
        let event = audit::line(event).to_string();
        let event = json_text::parse(&event).unwrap_or_default();
        self.tell(vec!["audit".into(), sandbox.into(), session.into(), event]);
    }
}

fn error(failure: &Failure) -> Value {
    let hint = failure.hint.as_deref().map_or(Value::None, Value::from);
    Value::dict([
        ("kind", failure.kind.into()),
        ("message", failure.message.as_str().into()),
        ("hint", hint),
        ("session_alive", failure.session_alive.into()),
    ])
}
