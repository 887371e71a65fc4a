//! The two pipes of the protocol: a thread that reads lines, and a lock for writing them.

use std::collections::HashMap;
use std::io::{self, BufRead, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use isolet::Value;
use rmcp::model::RequestId;
use serde::de::IgnoredAny;
use tokio::sync::{mpsc, oneshot};

use super::messages::Incoming;
use crate::cli::mcp::wire::{self, Outline};

/// Routes the answers to tool calls.
#[derive(Clone, Default)]
pub(super) struct Channel(Arc<Mutex<Calls>>);

/// The result of a tool call: the client's answer, or the reason why there is no valid one.
pub(super) type Answer = Result<Box<Incoming>, String>;

/// The tool calls that the client has not answered yet.
#[derive(Default)]
struct Calls {
    last: u64,
    waiting: HashMap<String, oneshot::Sender<Answer>>,
    closed: bool,
}

/// A line from the client, except answers to tool calls.
pub(super) enum Request {
    Message(Box<Incoming>),
    /// A line that is not JSON: the number of the request, if it has one, and the reason.
    Garbage(Value, String),
    /// JSON that is not a message of the protocol.
    Stranger,
}

impl Channel {
    /// Starts to read standard input. The receiver ends with it.
    pub(super) fn open() -> io::Result<(Self, mpsc::UnboundedReceiver<Request>)> {
        let channel = Self::default();
        let (sender, requests) = mpsc::unbounded_channel();
        let reader = channel.clone();
        let read = move || {
            reader.read(io::stdin().lock(), &sender);
            reader.close();
        };
        std::thread::Builder::new().name("isolet-dspy-stdin".to_owned()).spawn(read)?;
        Ok((channel, requests))
    }

    /// Returns the number of a new tool call and the receiver of its answer. After standard input
    /// has ended, the receiver gets no answer.
    pub(super) fn expect_answer(&self) -> (String, oneshot::Receiver<Answer>) {
        let (sender, receiver) = oneshot::channel();
        let mut calls = lock(&self.0);
        calls.last += 1;
        let id = format!("tc_{}", calls.last);
        if !calls.closed {
            calls.waiting.insert(id.clone(), sender);
        }
        (id, receiver)
    }

    fn read(&self, mut input: impl BufRead, requests: &mpsc::UnboundedSender<Request>) {
        let mut line = Vec::new();
        loop {
            match input.read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            // JavaScript and Python write half a surrogate pair.
            let text = std::mem::take(&mut line);
            let text = wire::mended(text).unwrap_or_else(|(text, _)| text);
            let request = match serde_json::from_slice::<Incoming>(&text) {
                Ok(message) if message.method.is_none() => match self.route(message.into()) {
                    None => continue,
                    Some(stray) => Request::Message(stray),
                },
                Ok(message) => Request::Message(message.into()),
                Err(error) if self.fail_all(&error.to_string()) => continue,
                Err(_) if serde_json::from_slice::<IgnoredAny>(&text).is_ok() => Request::Stranger,
                Err(error) => Request::Garbage(number(&text), error.to_string()),
            };
            if requests.send(request).is_err() {
                return;
            }
        }
    }

    /// Passes an answer to the call that waits for it. Returns the message if no call does.
    fn route(&self, message: Box<Incoming>) -> Option<Box<Incoming>> {
        let waiting = message.id.as_str().and_then(|id| lock(&self.0).waiting.remove(id));
        if let Some(sender) = waiting {
            // Sending fails if the call was cancelled meanwhile.
            let _ = sender.send(Ok(message));
            return None;
        }
        let reason = format!("Unexpected response: no call has the id {}", message.id);
        if self.fail_all(&reason) { None } else { Some(message) }
    }

    /// Ends all waiting calls, because an answer cannot be assigned to one of them. Returns `true`
    /// if there were any.
    fn fail_all(&self, reason: &str) -> bool {
        let waiting = std::mem::take(&mut lock(&self.0).waiting);
        let any = !waiting.is_empty();
        for sender in waiting.into_values() {
            let _ = sender.send(Err(reason.to_owned()));
        }
        any
    }

    fn close(&self) {
        let mut calls = lock(&self.0);
        calls.closed = true;
        calls.waiting.clear();
    }
}

/// Returns the number of the request in a line that is not JSON.
fn number(line: &[u8]) -> Value {
    match Outline::of(line).id {
        Some(RequestId::Number(number)) => Value::Int(number),
        Some(RequestId::String(text)) => Value::from(&*text),
        None => Value::None,
    }
}

/// Writes one line to the client.
pub(super) fn write(line: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    for (at, piece) in line.split('\u{7f}').enumerate() {
        // The only control character that Python's `json.dumps` does not escape.
        stdout.write_all(if at > 0 { b"\\u007f" } else { b"" })?;
        stdout.write_all(piece.as_bytes())?;
    }
    stdout.write_all(b"\n")?;
    stdout.flush()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
