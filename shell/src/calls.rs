//! Commands that the host carries out: a call waits for its answer, and others go on meanwhile.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use bashkit::{
    Builtin, BuiltinContext, CommandResolver, Error, ExecResult, LiveOutput, OutputStream, Result,
    async_trait,
};
use serde::Serialize;

use crate::executor::lock;

/// What the host is asked for.
#[derive(Serialize)]
pub(crate) struct Call {
    pub(crate) id: u32,
    name: String,
    args: Vec<String>,
    env: HashMap<String, String>,
    cwd: String,
    /// Whether the command has a standard input of its own; else it has the run's.
    piped: bool,
    /// Whether that is a pipe, of which what comes with the call is the beginning.
    more: bool,
    /// Whether the caller sees its standard output at once, which is no pipe and no file.
    seen: bool,
    /// Whether it has the live input of the run. What was given and not read comes with the call.
    live: bool,
    #[serde(skip)]
    pub(crate) stdin: Vec<u8>,
}

/// A command that the host carries out.
struct Open {
    waker: Option<Waker>,
    output: LiveOutput,
    answer: Option<i32>,
    input: Input,
}

/// What is known of the pipe that a command reads.
#[derive(Default, PartialEq)]
enum Input {
    #[default]
    Unasked,
    Asked,
    Read(Vec<u8>),
}

/// The calls of a session.
#[derive(Default)]
pub(crate) struct Calls {
    last_id: u32,
    asked: VecDeque<Call>,
    open: HashMap<u32, Open>,
}

impl Calls {
    fn open(&mut self, output: LiveOutput) -> u32 {
        self.last_id = self.last_id.wrapping_add(1);
        let open = Open { waker: None, output, answer: None, input: Input::Unasked };
        self.open.insert(self.last_id, open);
        self.last_id
    }

    /// The next call that the host has not seen.
    pub(crate) fn next(&mut self) -> Option<Call> {
        self.asked.pop_front()
    }

    /// Gives the status to the command, if it still waits.
    pub(crate) fn answer(&mut self, id: u32, status: i32) {
        if let Some(open) = self.open.get_mut(&id) {
            open.answer = Some(status);
            open.wake();
        }
    }

    /// Writes to a stream of the command; false if it does not wait any more.
    pub(crate) fn write(&mut self, id: u32, stream: OutputStream, bytes: &[u8]) -> bool {
        let Some(open) = self.open.get_mut(&id) else { return false };
        open.output.write(stream, bytes);
        open.wake();
        true
    }

    /// Whether the command still waits, and whether its output is broken.
    pub(crate) fn output(&self, id: u32) -> Option<&LiveOutput> {
        self.open.get(&id).map(|open| &open.output)
    }

    /// Asks for more of the pipe that the command reads.
    pub(crate) fn ask(&mut self, id: u32) {
        if let Some(open) = self.open.get_mut(&id)
            && open.input == Input::Unasked
        {
            open.input = Input::Asked;
            open.wake();
        }
    }

    /// What was read since; nothing at the end of the input, or of the command.
    pub(crate) fn read(&mut self, id: u32) -> Option<Vec<u8>> {
        let Some(open) = self.open.get_mut(&id) else { return Some(Vec::new()) };
        match std::mem::take(&mut open.input) {
            Input::Read(bytes) => Some(bytes),
            other => {
                open.input = other;
                None
            }
        }
    }

    /// Lets all commands look whether they are cancelled.
    pub(crate) fn wake(&self) {
        for open in self.open.values() {
            open.wake();
        }
    }

    fn forget(&mut self, id: u32) {
        self.asked.retain(|call| call.id != id);
        self.open.remove(&id);
    }
}

impl Open {
    fn wake(&self) {
        if let Some(waker) = &self.waker {
            waker.wake_by_ref();
        }
    }
}

/// What the commands of a session share with it.
#[derive(Clone, Default)]
pub(crate) struct Desk {
    pub(crate) calls: Arc<Mutex<Calls>>,
    pub(crate) cancelled: Arc<Mutex<Option<Arc<AtomicBool>>>>,
}

impl Desk {
    pub(crate) fn is_cancelled(&self) -> bool {
        lock(&self.cancelled).as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
    }
}

/// A call whose command was stopped, as by `timeout`, is forgotten.
struct Pending<'a>(&'a Desk, u32);

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        lock(&self.0.calls).forget(self.1);
    }
}

/// A command of the host.
pub(crate) struct HostCommand {
    pub(crate) name: String,
    pub(crate) desk: Desk,
}

#[async_trait]
impl Builtin for HostCommand {
    fn is_live(&self) -> bool {
        true
    }

    async fn execute(&self, ctx: BuiltinContext<'_>) -> Result<ExecResult> {
        let live = ctx.live_input().cloned();
        let pipe = ctx.stdin_stream().filter(|_| live.is_none());
        let output = ctx.live_output().cloned().unwrap_or_default();
        let id = {
            let mut calls = lock(&self.desk.calls);
            let id = calls.open(output.clone());
            calls.asked.push_back(Call {
                id,
                name: self.name.clone(),
                args: ctx.args.to_vec(),
                env: ctx.env.clone(),
                cwd: ctx.cwd.to_string_lossy().into_owned(),
                piped: ctx.stdin.is_some() || pipe.is_some(),
                more: pipe.is_some(),
                seen: output.reaches_caller(),
                live: live.is_some(),
                stdin: match (ctx.stdin, live) {
                    (Some(data), _) => data.as_bytes().to_vec(),
                    (None, Some(live)) => live.take(),
                    (None, None) => Vec::new(),
                },
            });
            id
        };
        let _pending = Pending(&self.desk, id);
        let mut reading = pipe.as_ref().map(|pipe| Box::pin(pipe.read()));
        poll_fn(|context| {
            if self.desk.is_cancelled() {
                return Poll::Ready(Err(Error::Cancelled));
            }
            let is_asked = {
                let mut calls = lock(&self.desk.calls);
                let Some(open) = calls.open.get_mut(&id) else {
                    return Poll::Ready(Err(Error::Cancelled));
                };
                if let Some(status) = open.answer {
                    return Poll::Ready(Ok(ExecResult { exit_code: status, ..Default::default() }));
                }
                open.waker = Some(context.waker().clone());
                open.input == Input::Asked
            };
            if !is_asked {
                return Poll::Pending;
            }
            let bytes = match (&mut reading, &pipe) {
                (Some(read), Some(pipe)) => {
                    let bytes = std::task::ready!(read.as_mut().poll(context))?;
                    *read = Box::pin(pipe.read());
                    bytes
                }
                _ => Vec::new(),
            };
            if let Some(open) = lock(&self.desk.calls).open.get_mut(&id) {
                open.input = Input::Read(bytes);
            }
            Poll::Pending
        })
        .await
    }
}

/// Leaves every command that the shell does not know to the host.
pub(crate) struct Others(pub(crate) Desk);

impl CommandResolver for Others {
    fn resolve(&self, name: &str) -> Option<Arc<dyn Builtin>> {
        Some(Arc::new(HostCommand { name: name.to_owned(), desk: self.0.clone() }))
    }
}
