//! `isolet serve --stdio`: the service on standard input and output, one frame per message. See
//! `docs/reference/protocol.md`.

mod client;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
#[cfg_attr(not(target_os = "linux"), path = "gate_unsupported.rs")]
mod gate;
mod messages;
mod numbers;

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use serde::Serialize;

use self::client::Stdout;
use self::gate::Gate;
use self::messages::Message;
use self::numbers::Numbers;
use crate::ending::{FAILED, end};
use crate::parent;
use crate::wire::Wire;
use isolet_service::core::{Engines, Failure, Service, Work};
use isolet_support::frames::Input;

/// The version of the protocol.
const PROTOCOL: i64 = 1;

/// The maximum number of threads that wait for messages.
const WAITING_THREADS: usize = 2;

/// Serves one client, the parent process, until its input ends or it asks for the end, and then
/// exits the process. `engines` creates the engines.
///
/// # Errors
///
/// Fails if `engines` does, or standard input cannot be polled.
pub fn serve(
    wire: Wire,
    engines: impl FnOnce() -> Result<Engines>,
) -> Result<std::convert::Infallible> {
    parent::end_with_it()?;
    let engines = engines()?;
    // Ctrl-C at the client's terminal also signals this process. The client decides what it means,
    // unless this is the first process of a container, or there is a person in the client's place.
    if !rustix::process::getpid().is_init() && !io::stdin().is_terminal() {
        ctrlc::set_handler(|| {}).context("Ctrl-C cannot be left to the client")?;
    }
    let input = rustix::stdio::stdin().try_clone_to_owned();
    let input = File::from(input.context("there is no standard input")?);
    let gate = input.try_clone().and_then(Gate::new).context("the input cannot be awaited")?;
    let client = Arc::new(Stdout::new(wire));
    let numbers = Numbers::new(Arc::clone(&client), Service::new(Arc::new(engines)));
    let connection = Arc::new(Connection {
        wire,
        client,
        numbers,
        gate,
        input: Mutex::new(Reading { input: Input::new(input), has_greeted: false, is_over: false }),
        waiting: AtomicUsize::new(0),
    });
    connection.add_thread()?;
    // One of the threads exits the process.
    loop {
        std::thread::park();
    }
}

/// The client's end of the pipes. Threads take turns: one reads a message and carries it out, while
/// the next one waits for another message.
struct Connection {
    wire: Wire,
    client: Arc<Stdout>,
    numbers: Arc<Numbers>,
    gate: Gate,
    input: Mutex<Reading>,
    /// The number of threads that wait for their turn or read.
    waiting: AtomicUsize,
}

struct Reading {
    input: Input<File>,
    has_greeted: bool,
    /// Set when a thread is about to exit the process.
    is_over: bool,
}

/// The next step after a message.
enum Step {
    /// Read the next message.
    Next,
    /// Work for this thread.
    Work(Work),
    /// An answer.
    Reply(i64, Result<Greeted, Failure>),
    /// Exit, after this answer.
    End(Option<(i64, Result<(), Failure>)>),
    /// Exit, because of the client's error.
    Fatal(String),
}

/// The answer to the first message.
#[derive(Serialize)]
struct Greeted {
    protocol: i64,
    version: &'static str,
}

impl Connection {
    /// Reads messages and carries them out, until the process exits.
    fn run(self: &Arc<Self>) {
        loop {
            self.waiting.fetch_add(1, Ordering::Relaxed);
            let step = loop {
                match self.next() {
                    Some(Step::Next) => {}
                    Some(step) => break step,
                    None => return,
                }
            };
            // Another thread has to read tool answers and interrupts.
            if self.waiting.fetch_sub(1, Ordering::Relaxed) == 1 {
                // Without another thread, this one continues to read after its work.
                let _ = self.add_thread();
            }
            match step {
                Step::Next => {}
                Step::Work(work) => work.run(),
                Step::Reply(number, result) => self.client.reply(number, result),
                Step::End(answer) => {
                    self.numbers.end_in_order();
                    if let Some((number, result)) = answer {
                        self.client.reply(number, result);
                    }
                    end(0);
                }
                Step::Fatal(reason) => {
                    self.numbers.end();
                    self.client.fatal(&reason);
                    // If standard error is closed, only the client gets the reason.
                    let _ = writeln!(io::stderr(), "error: {reason}");
                    end(FAILED);
                }
            }
            if self.waiting.load(Ordering::Relaxed) >= WAITING_THREADS {
                return;
            }
        }
    }

    fn add_thread(self: &Arc<Self>) -> Result<()> {
        let connection = Arc::clone(self);
        let thread = std::thread::Builder::new().name("isolet-serve".to_owned());
        thread.spawn(move || connection.run()).context("a thread that reads cannot start")?;
        Ok(())
    }

    /// Waits for a message and reads it. Returns `None` when another thread exits the process.
    fn next(&self) -> Option<Step> {
        let passed = self.gate.pass();
        let mut reading = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        if reading.is_over {
            return None;
        }
        let mut step = match passed {
            Ok(()) => self.step(&mut reading),
            Err(error) => Step::Fatal(error.to_string()),
        };
        reading.is_over = matches!(step, Step::End(_) | Step::Fatal(_));
        if !reading.is_over
            && let Err(error) = self.gate.open()
        {
            reading.is_over = true;
            step = Step::Fatal(error.to_string());
        }
        Some(step)
    }

    fn step(&self, reading: &mut Reading) -> Step {
        let decode = |frame: &[u8]| match self.wire.decode(frame) {
            Ok(decoded) => Message::read(decoded, &self.client),
            Err(reason) => match self.wire.head(frame) {
                Some((operation, number)) => Ok(Message::unreadable(&operation, number, &reason)),
                None => Err(reason),
            },
        };
        let message = match reading.input.next(decode) {
            Ok(Some(Ok(message))) => message,
            Ok(None) => return Step::End(None),
            Err(error) => return Step::Fatal(error.to_string()),
            Ok(Some(Err(reason))) => {
                return Step::Fatal(format!("a message cannot be read: {reason}"));
            }
        };
        match message {
            Message::Hello { number, protocol: PROTOCOL } => {
                reading.has_greeted = true;
                let version = env!("CARGO_PKG_VERSION");
                Step::Reply(number, Ok(Greeted { protocol: PROTOCOL, version }))
            }
            Message::Hello { number, protocol } => {
                let message = format!(
                    "the client speaks version {protocol} of the protocol, isolet {} speaks \
                     version {PROTOCOL}; install versions that belong together",
                    env!("CARGO_PKG_VERSION")
                );
                Step::End(Some((number, Err(Failure::protocol(message)))))
            }
            _ if !reading.has_greeted => {
                Step::Fatal("the first message has to be `hello`".to_owned())
            }
            Message::Answer { call, answer } => {
                self.numbers.answer(call, answer);
                Step::Next
            }
            Message::Request { number, request } => {
                self.numbers.accept(number, request).map_or(Step::Next, Step::Work)
            }
            Message::Shutdown { number } => Step::End(Some((number, Ok(())))),
            Message::Wrong { number, failure } => Step::Reply(number, Err(failure)),
        }
    }
}
