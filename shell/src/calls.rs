//! Commands that the host carries out: a call waits for its answer, and others go on meanwhile.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use bashkit::{Builtin, BuiltinContext, CommandResolver, Error, ExecResult, Result, async_trait};
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
    /// Whether it has the live input of the run. What was given and not read comes with the call.
    live: bool,
    #[serde(skip)]
    pub(crate) stdin: Vec<u8>,
}

/// The calls of a session.
#[derive(Default)]
pub(crate) struct Calls {
    last_id: u32,
    asked: VecDeque<Call>,
    waiting: HashMap<u32, Waker>,
    answers: HashMap<u32, ExecResult>,
}

impl Calls {
    /// The next call that the host has not seen.
    pub(crate) fn next(&mut self) -> Option<Call> {
        self.asked.pop_front()
    }

    /// Gives the answer to the command, if it still waits.
    pub(crate) fn answer(&mut self, id: u32, answer: ExecResult) {
        if let Some(waker) = self.waiting.remove(&id) {
            self.answers.insert(id, answer);
            waker.wake();
        }
    }

    /// Lets all commands look whether they are cancelled.
    pub(crate) fn wake(&self) {
        for waker in self.waiting.values() {
            waker.wake_by_ref();
        }
    }

    fn forget(&mut self, id: u32) {
        self.asked.retain(|call| call.id != id);
        self.waiting.remove(&id);
        self.answers.remove(&id);
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
    async fn execute(&self, ctx: BuiltinContext<'_>) -> Result<ExecResult> {
        let live = ctx.live_input().cloned();
        let id = {
            let mut calls = lock(&self.desk.calls);
            calls.last_id = calls.last_id.wrapping_add(1);
            let id = calls.last_id;
            calls.asked.push_back(Call {
                id,
                name: self.name.clone(),
                args: ctx.args.to_vec(),
                env: ctx.env.clone(),
                cwd: ctx.cwd.to_string_lossy().into_owned(),
                piped: ctx.stdin.is_some(),
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
        poll_fn(|context| {
            if self.desk.is_cancelled() {
                return Poll::Ready(Err(Error::Cancelled));
            }
            let mut calls = lock(&self.desk.calls);
            if let Some(answer) = calls.answers.remove(&id) {
                return Poll::Ready(Ok(answer));
            }
            calls.waiting.insert(id, context.waker().clone());
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
