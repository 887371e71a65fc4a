//! The tool calls of one run while they are served.

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::Poll;

use futures_util::future::{AbortHandle, Abortable, BoxFuture, FutureExt};
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::watch;

use super::{Tool, ToolContext, ToolError, runtime};
use crate::limits::Limits;
use crate::session::SessionHandle;
use crate::value::Value;

/// A call that the host has accepted.
pub(crate) struct Call {
    pub(crate) id: u32,
    pub(crate) tool: Tool,
    pub(crate) arguments: Value,
}

/// What the guest's side does about calls.
pub(crate) enum CallEvent {
    Start(Call),
    Cancel(u32),
}

type Outcome = Result<Value, ToolError>;

/// The calls of one run. Dropping it cancels those that are not done.
pub(crate) struct Calls {
    session: SessionHandle,
    max_concurrent: usize,
    running: FuturesUnordered<BoxFuture<'static, (u32, Option<Outcome>)>>,
    started: HashMap<u32, Started>,
    waiting: VecDeque<Call>,
}

struct Started {
    abort: AbortHandle,
    /// Tells the function that its call is over, by being dropped.
    _alive: watch::Sender<()>,
}

impl Calls {
    pub(crate) fn new(session: SessionHandle, max_concurrent: usize) -> Self {
        Self {
            session,
            max_concurrent,
            running: FuturesUnordered::new(),
            started: HashMap::new(),
            waiting: VecDeque::new(),
        }
    }

    /// Starts or cancels a call. Returns the answer if it is known at once.
    pub(crate) fn handle(&mut self, event: CallEvent) -> Option<(u32, Outcome)> {
        match event {
            CallEvent::Start(call) if self.started.len() < self.max_concurrent => {
                self.start(call);
            }
            CallEvent::Start(call) if self.waiting.len() < Limits::WAITING_TOOL_CALLS => {
                self.waiting.push_back(call);
            }
            CallEvent::Start(call) => {
                let message = format!(
                    "{} calls of host functions are waiting, the limit is {}",
                    self.waiting.len() + 1,
                    Limits::WAITING_TOOL_CALLS
                );
                return Some((call.id, Err(ToolError::new("RuntimeError", message))));
            }
            CallEvent::Cancel(id) => {
                match self.started.remove(&id) {
                    Some(started) => started.abort.abort(),
                    None => self.waiting.retain(|call| call.id != id),
                }
                self.start_waiting();
            }
        }
        None
    }

    /// Waits for the next call that ends; forever if there is none.
    pub(crate) async fn next(&mut self) -> (u32, Outcome) {
        if self.running.is_empty() {
            return std::future::pending().await;
        }
        std::future::poll_fn(|context| {
            runtime::entered(|| {
                loop {
                    match self.running.poll_next_unpin(context) {
                        Poll::Ready(Some((id, outcome))) => {
                            let known = self.started.remove(&id).is_some();
                            self.start_waiting();
                            if let (true, Some(outcome)) = (known, outcome) {
                                return Poll::Ready((id, outcome));
                            }
                        }
                        // It is polled again when a call was started.
                        Poll::Ready(None) | Poll::Pending => return Poll::Pending,
                    }
                }
            })
        })
        .await
    }

    /// Cancels everything and returns the calls that nobody has answered.
    pub(crate) fn cancel_all(self) -> impl Iterator<Item = u32> {
        self.started.into_keys().chain(self.waiting.into_iter().map(|call| call.id))
    }

    fn start_waiting(&mut self) {
        while self.started.len() < self.max_concurrent
            && let Some(call) = self.waiting.pop_front()
        {
            self.start(call);
        }
    }

    fn start(&mut self, call: Call) {
        let Call { id, tool, arguments } = call;
        let (alive, over) = watch::channel(());
        let (abort, registration) = AbortHandle::new_pair();
        let context = ToolContext::new(self.session.clone(), Arc::clone(&tool.spec), id, over);
        let served = Abortable::new(serve(tool, arguments, context), registration);
        self.running.push(served.map(move |outcome| (id, outcome.ok())).boxed());
        self.started.insert(id, Started { abort, _alive: alive });
    }
}

/// Calls the function, within its time, and makes an error of a panic.
async fn serve(tool: Tool, arguments: Value, context: ToolContext) -> Outcome {
    let name = tool.spec.name.clone();
    let function = AssertUnwindSafe(async move { (tool.handler)(arguments, context).await });
    let function = function.catch_unwind();
    let outcome = match tool.timeout {
        None => function.await,
        Some(limit) => {
            let expired = async {
                match runtime::sleep(limit) {
                    Some(sleep) => sleep.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                outcome = function => outcome,
                () = expired => Ok(Err(ToolError::new(
                    "TimeoutError",
                    format!("{name}() took longer than {} s", limit.as_secs_f64()),
                ))),
            }
        }
    };
    outcome.unwrap_or_else(|panic| {
        let message = format!("{name}() failed inside: {}", panic_text(&*panic));
        Err(ToolError::new("RuntimeError", message))
    })
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked")
}
