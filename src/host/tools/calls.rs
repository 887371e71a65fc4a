//! Serves the tool calls of one run.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use futures_util::future::{AbortHandle, Abortable, BoxFuture, FutureExt};
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::watch;

use super::queue::{Call, CallPermit, CallQueue};
use super::{SessionHandle, ToolContext, ToolHost, runtime};
use crate::data::tool::ToolError;
use crate::data::value::Value;
use crate::host::stop::{CallClock, RunClock};
use crate::protocol::codec;
use crate::support::offload;

/// How often a call is looked at whose timeout is close and stands still, at most.
const PAUSED_LOOK: Duration = Duration::from_millis(50);

type Outcome = Result<Value, ToolError>;

/// An encoded outcome.
type Answer = Vec<u8>;

/// The tool calls of one run. Dropping it cancels unfinished calls.
pub(crate) struct Calls {
    /// The number of the run.
    run: u64,
    session: SessionHandle,
    host: Arc<ToolHost>,
    queue: Arc<CallQueue>,
    clock: Arc<RunClock>,
    running: FuturesUnordered<BoxFuture<'static, (u32, Option<Answer>)>>,
}

impl Calls {
    pub(crate) fn new(session: SessionHandle, host: &Arc<ToolHost>, clock: &Arc<RunClock>) -> Self {
        static RUNS: AtomicU64 = AtomicU64::new(0);
        let (host, queue) = (Arc::clone(host), Arc::clone(host.queue()));
        let clock = Arc::clone(clock);
        let run = RUNS.fetch_add(1, Ordering::Relaxed) + 1;
        Self { run, session, host, queue, clock, running: FuturesUnordered::new() }
    }

    /// Starts calls as permits become free, and waits for the next one that ends. Waits forever if
    /// there are no calls.
    pub(crate) async fn next(&mut self) -> (u32, Answer) {
        std::future::poll_fn(|context| {
            self.queue.wake(context.waker());
            runtime::entered(|| {
                loop {
                    while let Some((call, permit)) = self.queue.next() {
                        self.start(call, permit);
                    }
                    match self.running.poll_next_unpin(context) {
                        Poll::Ready(Some((id, answer))) => {
                            let known = self.queue.end(id);
                            if let (true, Some(answer)) = (known, answer) {
                                return Poll::Ready((id, answer));
                            }
                        }
                        // The task is woken when a call may be started.
                        Poll::Ready(None) | Poll::Pending => return Poll::Pending,
                    }
                }
            })
        })
        .await
    }

    /// Cancels all calls and returns the numbers of those that were not answered.
    pub(crate) fn cancel_all(self) -> Vec<u32> {
        self.queue.cancel_all()
    }

    fn start(&mut self, call: Call, permit: Arc<CallPermit>) {
        let id = call.id;
        let (alive, over) = watch::channel(());
        let (abort, registration) = AbortHandle::new_pair();
        let spec = Arc::clone(&call.tool.spec);
        let clock = CallClock::new(&self.clock);
        let (session, host) = (self.session.clone(), Arc::downgrade(&self.host));
        let context = ToolContext::new(session, spec, (self.run, id), over, &permit, &clock, host);
        let served = serve(Arc::clone(&self.host), clock, call, context, permit);
        let served = Abortable::new(served, registration);
        self.running.push(served.map(move |answer| (id, answer.ok())).boxed());
        self.queue.begin(id, abort, alive);
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        self.queue.cancel_all();
    }
}

/// Calls the tool, and encodes what comes of it.
async fn serve(
    host: Arc<ToolHost>,
    clock: Arc<CallClock>,
    call: Call,
    context: ToolContext,
    permit: Arc<CallPermit>,
) -> Answer {
    let max_value_bytes = host.max_value_bytes();
    // Kept until the answer is encoded and counts as unread. Otherwise a guest could have any
    // number of large answers encoded at once.
    let _permit = Arc::clone(&permit);
    let outcome = outcome(host, clock, call, context, permit).await;
    let encode = move |outcome| codec::encode_answer(outcome, max_value_bytes);
    let is_much = offload::is_much(&outcome);
    let answer = offload::run(is_much, move || encode(outcome)).await;
    answer.unwrap_or_else(|reason| encode(Err(ToolError::new("RuntimeError", reason))))
}

/// Decodes the arguments, calls the tool within its timeout, and turns a panic into an error.
async fn outcome(
    host: Arc<ToolHost>,
    clock: Arc<CallClock>,
    call: Call,
    context: ToolContext,
    permit: Arc<CallPermit>,
) -> Outcome {
    let Call { tool, arguments, charge, .. } = call;
    let tool = host.loaded(tool).await?;
    let name = tool.spec.name.clone();
    let is_much = offload::is_much_to_decode(&arguments);
    let charged = Arc::clone(&permit);
    let prepare = {
        let tool = tool.clone();
        move || {
            let prepared = host.prepare(&tool, &arguments, &charged);
            drop((arguments, charge));
            prepared
        }
    };
    let timeout = tool.timeout;
    let call_clock = Arc::clone(&clock);
    let function = AssertUnwindSafe(async move {
        let arguments = offload::run(is_much, prepare).await;
        let arguments = arguments.map_err(|error| ToolError::new("RuntimeError", error))??;
        // Dropped with this future. So the host time of a cancelled call ends, even if its function
        // blocks a thread and goes on.
        let _serving = clock.serve();
        (tool.handler)(arguments, context).await
    });
    let function = function.catch_unwind();
    let outcome = match timeout {
        None => function.await,
        Some(limit) => {
            tokio::select! {
                biased;
                outcome = function => outcome,
                () = expired(limit, &call_clock) => Ok(Err(ToolError::new(
                    "TimeoutError",
                    format!("{name}() took longer than {} s", limit.as_secs_f64()),
                ))),
            }
        }
    };
    drop(permit);
    outcome.unwrap_or_else(|panic| {
        let message = format!("{name}() failed inside: {}", panic_text(&*panic));
        Err(ToolError::new("RuntimeError", message))
    })
}

/// Waits until the call has taken this long, without its pauses.
async fn expired(limit: Duration, clock: &CallClock) {
    let started = Instant::now();
    loop {
        let now = Instant::now();
        let (pauses, is_paused) = clock.paused(now);
        let passed = now.saturating_duration_since(started).saturating_sub(pauses);
        let left = limit.saturating_sub(passed);
        let wait = match (left.is_zero(), is_paused) {
            (true, false) => return,
            (_, false) => left,
            (_, true) => left.max(PAUSED_LOOK),
        };
        match runtime::sleep(wait) {
            Some(sleep) => sleep.await,
            None => std::future::pending().await,
        }
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::limits::Limits;
    use crate::data::tool::ToolSpec;
    use crate::data::value::marshal;
    use crate::host::audit::{AuditLog, Auditor};
    use crate::host::stop::RunCounters;
    use crate::host::tools::no_session::no_session;
    use crate::host::tools::{ModuleSet, Tool};

    /// More than any test takes.
    const LIMIT: Duration = Duration::from_hours(1);

    #[tokio::test]
    async fn a_call_keeps_its_place_until_its_answer_is_encoded() {
        const ITEMS: usize = 1 << 20;
        let limits = Limits::default().max_concurrent_tools(1);
        let counters = Arc::new(RunCounters::new(&limits));
        let audit = AuditLog::new(Auditor::default(), 1, Arc::clone(&counters));
        let host = Arc::new(ToolHost::new(&limits, &ModuleSet::default(), audit, counters));
        let tool = Tool::from_handler(ToolSpec::new("large"), |_, _| async {
            Ok(Value::List(vec![Value::None; ITEMS]))
        });
        let mut arguments = Vec::new();
        marshal::encode(&Value::Dict(Vec::new()), &mut arguments);
        for id in 1..=2 {
            let charge = host.queue().admit(id, arguments.len()).unwrap();
            let (tool, arguments) = (tool.clone(), arguments.clone());
            host.queue().push(Call { id, tool, arguments, charge });
        }
        let clock = Arc::new(RunClock::new(Instant::now(), LIMIT, LIMIT));
        let mut calls = Calls::new(no_session(1), &host, &clock);
        let (call, permit) = host.queue().next().unwrap();
        calls.start(call, permit);

        // The function has returned, and a thread encodes what it has returned.
        assert!(calls.running.next().now_or_never().is_none());
        assert!(host.queue().next().is_none(), "another call would have its answer encoded, too");
        let (id, answer) = calls.running.next().await.unwrap();
        assert_eq!(id, 1);
        assert!(answer.unwrap().len() >= ITEMS);
        assert_eq!(host.queue().next().unwrap().0.id, 2);
    }
}
