//! The two pipes of the protocol: a thread that reads lines, and a lock for writing them.

use std::collections::HashMap;
use std::io::{self, BufRead, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use isolet::Value;
use serde::de::IgnoredAny;
use tokio::sync::{mpsc, oneshot};

use super::messages::Incoming;
use isolet_support::frames;
use isolet_support::json_rpc::{self, Assembly, Line, Outline};
use isolet_support::json_text::message_id;

/// The most requests that wait for their turn. A client that sends more waits until they are read.
const MAX_WAITING: usize = 1_024;

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
    /// JSON that is not a message of the protocol, and its number.
    Stranger(Value),
}

impl Channel {
    /// Starts to read standard input. The receiver ends with it.
    pub(super) fn open() -> io::Result<(Self, mpsc::Receiver<Request>)> {
        let channel = Self::default();
        let (sender, requests) = mpsc::channel(MAX_WAITING);
        let reader = channel.clone();
        let read = move || {
            reader.read(io::stdin().lock(), frames::MAX_BYTES, &sender);
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

    fn read(&self, mut input: impl BufRead, max_bytes: usize, requests: &mpsc::Sender<Request>) {
        let mut assembly = Assembly::new(max_bytes);
        while let Some(line) = next(&mut input, &mut assembly) {
            let text = match line {
                Line::Whole(line) => line,
                Line::TooLong(start, end, bytes) => {
                    let reason = format!("it has {bytes} bytes, the limit is {max_bytes}");
                    let number = message_id(Outline::of_ends(&start, &end));
                    if !self.fail_all(&reason)
                        && requests.blocking_send(Request::Garbage(number, reason)).is_err()
                    {
                        return;
                    }
                    continue;
                }
            };
            // JavaScript and Python write half a surrogate pair.
            let text = json_rpc::mended(text).unwrap_or_else(|(text, _)| text);
            let request = match serde_json::from_slice::<Incoming>(&text) {
                Ok(message) if message.method.is_none() => match self.route(message.into()) {
                    None => continue,
                    Some(stray) => Request::Message(stray),
                },
                Ok(message) => Request::Message(message.into()),
                Err(error) if self.fail_all(&error.to_string()) => continue,
                Err(error) => {
                    let number = message_id(Outline::of(&text));
                    if serde_json::from_slice::<IgnoredAny>(&text).is_ok() {
                        Request::Stranger(number)
                    } else {
                        Request::Garbage(number, error.to_string())
                    }
                }
            };
            if requests.blocking_send(request).is_err() {
                return;
            }
        }
    }

    /// Passes an answer to the call that waits for it. Returns the message if no call does.
    fn route(&self, message: Box<Incoming>) -> Option<Box<Incoming>> {
        let waiting = message.id.as_str().and_then(|id| lock(&self.0).waiting.remove(id));
        if let Some(sender) = waiting {
            // Sending fails if the call has been cancelled.
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

/// Reads a line. Returns `None` at the end of the input.
fn next(input: &mut impl BufRead, assembly: &mut Assembly) -> Option<Line> {
    loop {
        let available = match input.fill_buf() {
            Ok(available) => available,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return None,
        };
        if available.is_empty() {
            return assembly.rest();
        }
        let (consumed, line) = assembly.push(available);
        input.consume(consumed);
        if line.is_some() {
            return line;
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_cannot_be_read_is_answered_with_its_number() {
        let long = "x".repeat(500);
        let text = format!(
            "{{\"method\":\"execute\",\"params\":{{\"code\":\"{long}\"}},\"id\":3}}\n\
             {{\"method\":\"execute\",\"params\":NaN,\"id\":\"a\"}}\n\
             {{\"method\":5,\"id\":4}}\n[]\n{{\"id\":5,\"x\":\"\u{1}"
        );
        let (sender, mut requests) = mpsc::channel(MAX_WAITING);
        Channel::default().read(text.as_bytes(), 400, &sender);
        drop(sender);
        let mut read = Vec::new();
        while let Some(request) = requests.blocking_recv() {
            read.push(match request {
                Request::Message(message) => (message.id, "a message".to_owned()),
                Request::Garbage(number, reason) => (number, reason),
                Request::Stranger(number) => (number, "a stranger".to_owned()),
            });
        }
        let numbers: Vec<Value> = read.iter().map(|(number, _)| number.clone()).collect();
        assert_eq!(numbers, [3.into(), "a".into(), 4.into(), Value::None, 5.into()], "{read:?}");
        assert_eq!(read[0].1, "it has 548 bytes, the limit is 400");
        assert_eq!(read[2].1, "a stranger");
    }
}
