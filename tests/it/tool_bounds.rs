//! Tests of what tool calls may take of the host: places, threads, memory. A blocking tool keeps
//! what it has taken until it returns, whatever the guest does about its call.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use isolet::{
    Cell, Execution, Limits, Outcome, Param, Session, Stdin, Termination, Tool, ToolSpec, Value,
};
use tokio::sync::mpsc;

use crate::util::{self, builder, eval, exec, raised};

/// More time than the busiest machine needs.
const LONG: Duration = Duration::from_mins(2);

/// Waits for something that must happen.
async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LONG, future).await.unwrap_or_else(|_| panic!("it never came"))
}

/// Blocks tools until it is opened, or for a long time.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    fn pass(&self) {
        let (open, changed) = &*self.0;
        let open = open.lock().unwrap_or_else(PoisonError::into_inner);
        drop(changed.wait_timeout_while(open, LONG, |open| !*open));
    }

    fn open(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_all();
    }
}

/// Opens the gate on drop, so that no tool stays blocked however a test ends.
struct Opened(Gate);

impl Drop for Opened {
    fn drop(&mut self) {
        self.0.open();
    }
}

/// Makes a tool `slow(x)` that blocks at the gate and returns `x`, and returns its events and
/// counter.
fn slow(gate: &Gate) -> (Tool, mpsc::UnboundedReceiver<&'static str>, Arc<AtomicUsize>) {
    let (sender, events) = mpsc::unbounded_channel();
    let (gate, most) = (gate.clone(), Arc::new(AtomicUsize::new(0)));
    let (peak, now) = (Arc::clone(&most), AtomicUsize::new(0));
    let tool = Tool::from_blocking_handler(
        ToolSpec::new("slow").param(Param::new("x")),
        move |arguments, _| {
            peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            let _ = sender.send("began");
            gate.pass();
            now.fetch_sub(1, Ordering::SeqCst);
            let _ = sender.send("returned");
            Ok(arguments.get("x").cloned().unwrap_or_default())
        },
    );
    (tool, events, most)
}

fn limits() -> Limits {
    Limits::default().max_run_time(LONG)
}

async fn start(limits: Limits, tools: impl IntoIterator<Item = Tool>) -> Session {
    let builder = tools.into_iter().fold(builder(), isolet::SandboxBuilder::tool);
    builder.limits(limits).build().unwrap().session().await.unwrap()
}

/// Runs `code` concurrently with `host`, which reads its output and writes its input.
async fn beside<F: Future<Output = ()>>(
    session: &mut Session,
    code: &str,
    host: impl FnOnce(mpsc::UnboundedReceiver<Vec<u8>>, UnixStream) -> F,
) -> Execution {
    let (keyboard, stdin) = UnixStream::pair().unwrap();
    let (sender, printed) = mpsc::unbounded_channel();
    let cell = Cell::new(format!("import asyncio\n{code}")).stdin(Stdin::from_reader(stdin));
    let mut run = session.run_streaming(cell);
    let guest = async {
        while let Some(chunk) = run.next().await.map(util::output) {
            let _ = sender.send(chunk.bytes);
        }
        run.finish().await.unwrap()
    };
    let (execution, ()) = tokio::join!(guest, soon(host(printed, keyboard)));
    execution
}

/// E22: a cancelled call of a blocking tool keeps its place until the function has returned.
#[tokio::test]
async fn cancelled_functions_that_block_keep_their_places_until_they_return() {
    let gate = Gate::default();
    let _opened = Opened(gate.clone());
    let (tool, mut events, most) = slow(&gate);
    let mut session = start(limits().max_concurrent_tools(2), [tool]).await;
    let code = "
tasks = [asyncio.ensure_future(slow.aio(n)) for n in range(40)]
await asyncio.sleep(0)
input()
for task in tasks[:-1]:
    task.cancel()
await asyncio.sleep(0.05)
print('cancelled', flush=True)
await tasks[-1]
";
    let execution = beside(&mut session, code, async |mut printed, mut keyboard| {
        assert_eq!((events.recv().await, events.recv().await), (Some("began"), Some("began")));
        keyboard.write_all(b"\n").unwrap();
        assert!(printed.recv().await.is_some());
        assert!(events.try_recv().is_err(), "a third function has begun beside two that block");
        gate.open();
        let mut later = Vec::new();
        while later.len() < 4 {
            later.extend(events.recv().await);
        }
        assert_eq!(later.iter().filter(|event| **event == "began").count(), 1, "{later:?}");
    });
    let execution = execution.await;
    assert_eq!(execution.value(), Some(&Value::Int(39)), "{execution:?}");
    assert_eq!(most.load(Ordering::SeqCst), 2);
}

/// E22: calls that a run has left behind count in the next one.
#[tokio::test]
async fn a_function_that_outlives_its_run_keeps_its_place() {
    let gate = Gate::default();
    let _opened = Opened(gate.clone());
    let (tool, mut events, _) = slow(&gate);
    let (sender, mut seen) = mpsc::unbounded_channel();
    let quick = Tool::from_fn("quick", move |(): (), _| {
        let _ = sender.send("quick");
        async { Ok("quick") }
    });
    let mut session = start(limits().max_concurrent_tools(1), [tool, quick]).await;
    let left = "task = asyncio.ensure_future(slow.aio(1))\nawait asyncio.sleep(0)\ninput()";
    beside(&mut session, left, async |_, mut keyboard| {
        assert_eq!(events.recv().await, Some("began"));
        keyboard.write_all(b"\n").unwrap();
    })
    .await;
    let next = "print('next', flush=True)\nquick()";
    let execution = beside(&mut session, next, async |mut printed, _keyboard| {
        assert!(printed.recv().await.is_some());
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(seen.try_recv().is_err(), "a function has begun beside one that blocks");
        gate.open();
        assert_eq!(events.recv().await, Some("returned"));
        assert_eq!(seen.recv().await, Some("quick"));
    });
    assert_eq!(execution.await.value(), Some(&Value::from("quick")));
}

/// E22: however many tools of one session block, those of another session have threads.
#[tokio::test]
async fn functions_that_block_starve_no_other_session() {
    const MANY: usize = 600;
    let gate = Gate::default();
    let _opened = Opened(gate.clone());
    let (tool, mut events, most) = slow(&gate);
    let mut greedy = start(limits().max_concurrent_tools(MANY), [tool]).await;
    let quick = Tool::from_blocking_fn("quick", |(): (), _| Ok("quick"));
    let mut other = start(limits(), [quick]).await;
    let code = format!("slow.map(range({MANY})) == [*range({MANY})]");
    let execution = beside(&mut greedy, &code, async |_, _| {
        for _ in 0..MANY {
            assert_eq!(events.recv().await, Some("began"));
        }
        assert_eq!(eval(&mut other, "quick()").await, Value::from("quick"));
        gate.open();
    });
    assert_eq!(execution.await.value(), Some(&Value::Bool(true)));
    assert_eq!(most.load(Ordering::SeqCst), MANY);
}

#[tokio::test]
async fn late_results_are_dropped() {
    let gate = Gate::default();
    let _opened = Opened(gate.clone());
    let (tool, mut events, _) = slow(&gate);
    let quick = Tool::from_fn("quick", |(): (), _| async { Ok("quick") });
    let mut session = start(limits(), [tool, quick]).await;
    // A thread cannot be cancelled: its result arrives when nobody waits for it any more.
    let code = "
task = asyncio.ensure_future(slow.aio('late'))
await asyncio.sleep(0)
input()
task.cancel()
quick()
";
    let execution = beside(&mut session, code, async |_, mut keyboard| {
        assert_eq!(events.recv().await, Some("began"));
        keyboard.write_all(b"\n").unwrap();
    });
    assert_eq!(execution.await.value(), Some(&Value::from("quick")));
    gate.open();
    assert_eq!(soon(events.recv()).await, Some("returned"));
    for _ in 0..3 {
        assert_eq!(eval(&mut session, "quick()").await, Value::from("quick"));
    }
}

/// Returns how many calls succeeded, and the messages of those that failed.
fn results(execution: &Execution) -> (usize, Vec<&str>) {
    let results = execution.value().and_then(Value::as_list).unwrap();
    let refused: Vec<&str> = results.iter().filter_map(Value::as_str).collect();
    (results.len() - refused.len(), refused)
}

/// E23: the arguments of waiting calls together stay within their limit of the host's memory.
#[tokio::test]
async fn arguments_of_calls_that_wait_are_bounded_together() {
    let gate = Gate::default();
    let _opened = Opened(gate.clone());
    let (tool, mut events, _) = slow(&gate);
    let limits = limits().max_concurrent_tools(1).max_call_bytes(1 << 20);
    let mut session = start(limits, [tool]).await;
    let code = "
tasks = [asyncio.ensure_future(slow.aio('x' * 100_000)) for _ in range(25)]
await asyncio.sleep(0)
print('asked', flush=True)
results = await asyncio.gather(*tasks, return_exceptions=True)
[repr(one) if isinstance(one, Exception) else None for one in results]
";
    let execution = beside(&mut session, code, async |mut printed, _keyboard| {
        assert!(printed.recv().await.is_some());
        gate.open();
    });
    let execution = execution.await;
    let (succeeded, refused) = results(&execution);
    // The first call may begin while the guest still asks, and counts twice while it is decoded.
    assert!([9, 10].contains(&succeeded), "{succeeded}");
    assert_eq!(succeeded + refused.len(), 25);
    for message in refused {
        let (needed, rest) = message
            .strip_prefix(
                "RuntimeError('with this call the arguments of unfinished tool calls take ",
            )
            .and_then(|rest| rest.split_once(' '))
            .unwrap();
        assert!((1_048_577..1_200_000).contains(&needed.parse::<u64>().unwrap()), "{message}");
        assert_eq!(rest, "bytes, the limit is 1048576 bytes')");
    }
    let mut seen = 0;
    while events.try_recv().is_ok() {
        seen += 1;
    }
    assert_eq!(seen, 20, "ten functions have begun and returned");
}

/// E23: if a guest makes calls and reads no results, the host keeps only a limited amount of them.
/// None is lost.
#[tokio::test]
async fn results_that_the_guest_does_not_read_are_bounded_together() {
    const CALLS: i64 = 500;
    let (opener, gate) = tokio::sync::watch::channel(false);
    let (sender, mut served) = mpsc::unbounded_channel();
    let spec = ToolSpec::new("page").param(Param::new("n"));
    let page = Tool::from_handler(spec, move |_, _| {
        let (mut gate, sender) = (gate.clone(), sender.clone());
        async move {
            // Its sender lives as long as the test.
            let _ = gate.wait_for(|open| *open).await;
            let _ = sender.send(());
            Ok(Value::from("x".repeat(100_000)))
        }
    });
    let limits = limits().max_concurrent_tools(2).max_call_bytes(1 << 20);
    let mut session = start(limits, [page]).await;
    let handle = session.interrupt_handle();
    let code = format!(
        "tasks = [asyncio.ensure_future(page.aio(n)) for n in range({CALLS})]
await asyncio.sleep(0)
print('asked', flush=True)
while True: pass"
    );
    let execution = beside(&mut session, &code, async |mut printed, _keyboard| {
        assert!(printed.recv().await.is_some());
        opener.send(true).unwrap();
        for _ in 0..11 {
            assert!(served.recv().await.is_some());
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        // Two calls that are under way, and those whose results fit into a socket.
        let further = std::iter::from_fn(|| served.try_recv().ok()).count();
        assert!(further < 10, "{further} further calls were served");
        handle.interrupt();
    });
    let execution = execution.await;
    let interrupted = Outcome::Terminated(Termination::Interrupted);
    assert_eq!(execution.outcome(), &interrupted, "{execution:?}");
    let all = format!("sum(map(len, page.map(range({CALLS}))))");
    assert_eq!(eval(&mut session, all).await, Value::Int(100_000 * CALLS));
}

/// E23: arguments with small encodings that are large in memory are counted with their size in
/// memory.
#[tokio::test]
async fn decoded_arguments_are_bounded_together() {
    let gate = Gate::default();
    let _opened = Opened(gate.clone());
    let (tool, mut events, _) = slow(&gate);
    let limits = limits().max_concurrent_tools(8).max_call_bytes(1 << 20);
    let mut session = start(limits, [tool]).await;
    let code = "
tasks = [asyncio.ensure_future(slow.aio([None] * 10_000)) for _ in range(8)]
while sum(task.done() for task in tasks) < 5:
    await asyncio.sleep(0.001)
print('refused', flush=True)
results = await asyncio.gather(*tasks, return_exceptions=True)
[str(one) if isinstance(one, Exception) else None for one in results]
";
    let execution = beside(&mut session, code, async |mut printed, _keyboard| {
        assert!(printed.recv().await.is_some());
        gate.open();
    });
    let execution = execution.await;
    let (succeeded, refused) = results(&execution);
    assert_eq!((succeeded, refused.len()), (3, 5));
    assert!(refused.iter().all(|message| message.ends_with("the limit is 1048576 bytes")));
    assert_eq!(execution.usage().tool_calls, 3);
    assert_eq!(events.recv().await, Some("began"));
}

#[tokio::test]
async fn an_argument_that_takes_too_much_memory_is_refused_with_both_numbers() {
    let quick = Tool::from_handler(ToolSpec::new("quick").param(Param::new("x")), |_, _| async {
        panic!("it was called")
    });
    let mut session = start(limits().max_value_bytes(100_000), [quick]).await;
    let exception = raised(&mut session, "quick([None] * 50_000)").await;
    assert_eq!(
        exception.to_string(),
        "ValueError: the arguments of quick() take 1600144 bytes of the host's memory, the limit is 100000 bytes"
    );
    exec(&mut session, "1").await;
}
