//! The two pipes of the protocol: a thread that reads lines, and a lock to write them.

use std::collections::HashMap;
use std::io::{self, BufRead, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use isolet::Value;
use tokio::sync::{mpsc, oneshot};

use super::messages::Incoming;

/// Where the answers to tool calls arrive.
#[derive(Clone, Default)]
pub(super) struct Channel(Arc<Mutex<Calls>>);

/// The tool calls that the client has not answered.
#[derive(Default)]
struct Calls {
    last: u64,
    waiting: HashMap<String, oneshot::Sender<Incoming>>,
    closed: bool,
}

/// What the reader thread has read that is no answer to a tool call.
pub(super) enum Request {
    Message(Box<Incoming>),
    /// A line that is no JSON, and why.
    Garbage(String),
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

    /// Makes the number of a tool call and where its answer will arrive, which is nowhere when
    /// standard input has ended.
    pub(super) fn expect_answer(&self) -> (String, oneshot::Receiver<Incoming>) {
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
            line.clear();
            match input.read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) if line.trim_ascii().is_empty() => continue,
                Ok(_) => {}
            }
            let request = match serde_json::from_slice::<Incoming>(&line) {
                Ok(message) if message.method.is_none() => match self.route(message) {
                    None => continue,
                    Some(stray) => Request::Message(stray.into()),
                },
                Ok(message) => Request::Message(message.into()),
                Err(error) => Request::Garbage(error.to_string()),
            };
            // A 100 MiB variable was in it.
            line.shrink_to(1 << 16);
            if requests.send(request).is_err() {
                return;
            }
        }
    }

    /// Gives an answer to the call that waits for it; back if none does.
    fn route(&self, message: Incoming) -> Option<Incoming> {
        let Value::Str(id) = &message.id else {
            return Some(message);
        };
        match lock(&self.0).waiting.remove(id) {
            // The call may have been cancelled meanwhile.
            Some(sender) => drop(sender.send(message)),
            None if id.starts_with("tc_") => {}
            None => return Some(message),
        }
        None
    }

    fn close(&self) {
        let mut calls = lock(&self.0);
        calls.closed = true;
        calls.waiting.clear();
    }
}

/// Writes one line to the client.
pub(super) fn write(line: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(line.as_bytes())?;
    stdout.write_all(b"\n")?;
    stdout.flush()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
