//! Tests of tool calls that wait: concurrent, limited, cancelled, and what the host can do
//! meanwhile.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use isolet::{
    Error, ErrorKind, Limits, Outcome, Param, SandboxBuilder, Session, Termination, Tool, ToolSpec,
    Value,
};
use tokio::sync::{Barrier, mpsc};

use crate::util::{builder, eval, exec, raised};

fn int_param(name: &str) -> ToolSpec {
    ToolSpec::new(name).param(Param::new("x"))
}

/// Makes a tool that returns its argument once `Barrier` has as many calls as it needs.
fn together(size: usize) -> Tool {
    let barrier = Arc::new(Barrier::new(size));
    Tool::from_handler(int_param("t"), move |args, _| {
        let barrier = Arc::clone(&barrier);
        async move {
            barrier.wait().await;
            Ok(args.get("x").cloned().unwrap_or_default())
        }
    })
}

async fn start(builder: SandboxBuilder) -> Session {
    builder.build().unwrap().session().await.unwrap()
}

/// Sends an event when a call begins and, on drop, when it is cancelled.
struct Watched(mpsc::UnboundedSender<&'static str>);

impl Drop for Watched {
    fn drop(&mut self) {
        let _ = self.0.send("dropped");
    }
}

/// Waits for a tool's next event, for more time than the busiest machine needs.
async fn next(events: &mut mpsc::UnboundedReceiver<&'static str>) -> Option<&'static str> {
    let next = tokio::time::timeout(Duration::from_mins(2), events.recv());
    next.await.unwrap_or_else(|_| panic!("the tool says nothing"))
}

/// Makes a tool that never returns, and returns the events of its calls.
fn endless() -> (Tool, mpsc::UnboundedReceiver<&'static str>) {
    let (sender, events) = mpsc::unbounded_channel();
    let tool = Tool::from_handler(int_param("endless"), move |_, _| {
        let watched = Watched(sender.clone());
        async move {
            let _ = watched.0.send("began");
            std::future::pending().await
        }
    });
    (tool, events)
}

#[tokio::test]
async fn gathered_calls_run_side_by_side() {
    // No call returns before all have begun.
    let limits = Limits::default().max_concurrent_tools(300);
    let mut session = start(builder().limits(limits).tool(together(300))).await;
    let code =
        "import asyncio; await asyncio.gather(*[t.aio(i) for i in range(300)]) == [*range(300)]";
    assert_eq!(eval(&mut session, code).await, Value::Bool(true));
    assert_eq!(eval(&mut session, "t.map(range(300)) == [*range(300)]").await, Value::Bool(true));
}

#[tokio::test]
async fn plain_calls_in_tasks_run_side_by_side_too() {
    let mut session = start(builder().tool(together(3))).await;
    let code = "
import asyncio
async def worker(n):
    return t(n)
await asyncio.gather(worker(1), worker(2), worker(3))
";
    let expected = Value::List(vec![1.into(), 2.into(), 3.into()]);
    assert_eq!(eval(&mut session, code).await, expected);
}

#[tokio::test]
async fn no_more_calls_run_at_once_than_the_cap() {
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (now, peak) = (Arc::clone(&running), Arc::clone(&most));
    // No call ends before the maximum number is running.
    let full = Arc::new(tokio::sync::Barrier::new(5));
    let tool = Tool::from_handler(int_param("t"), move |args, _| {
        let (now, peak, full) = (Arc::clone(&now), Arc::clone(&peak), Arc::clone(&full));
        async move {
            peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            full.wait().await;
            now.fetch_sub(1, Ordering::SeqCst);
            Ok(args.get("x").cloned().unwrap_or_default())
        }
    });
    let limits = Limits::default().max_concurrent_tools(5);
    let mut session = start(builder().limits(limits).tool(tool)).await;
    assert_eq!(eval(&mut session, "t.map(range(500)) == [*range(500)]").await, Value::Bool(true));
    assert_eq!((running.load(Ordering::SeqCst), most.load(Ordering::SeqCst)), (0, 5));
}

#[tokio::test]
async fn blocking_tools_run_side_by_side_on_threads_of_their_own() {
    let barrier = Arc::new(std::sync::Barrier::new(8));
    let tool = Tool::from_blocking_handler(int_param("t"), move |args, _| {
        barrier.wait();
        Ok(args.get("x").cloned().unwrap_or_default())
    });
    let mut session = start(builder().tool(tool)).await;
    assert_eq!(eval(&mut session, "t.map(range(8)) == [*range(8)]").await, Value::Bool(true));
}

#[tokio::test]
async fn map_takes_several_iterables_and_can_return_exceptions() {
    let spec = ToolSpec::new("div").param(Param::new("a")).param(Param::new("b"));
    let tool = Tool::from_handler(spec, |args, _| async move {
        let number = |name| args.get(name).and_then(Value::as_i64).unwrap_or_default();
        let divided = number("a").checked_div(number("b"));
        divided
            .map(Value::Int)
            .ok_or_else(|| isolet::ToolError::new("ZeroDivisionError", "by zero"))
    });
    let mut session = start(builder().tool(tool)).await;
    assert_eq!(
        eval(&mut session, "div.map([6, 8], [3, 2])").await,
        Value::List(vec![2.into(), 4.into()])
    );
    assert_eq!(
        raised(&mut session, "div.map([1, 2], [0, 1])").await.type_name,
        "ZeroDivisionError"
    );
    let code = "[type(x).__name__ for x in div.map([1, 2], [0, 1], return_exceptions=True)]";
    let kinds = Value::List(vec!["ZeroDivisionError".into(), "int".into()]);
    assert_eq!(eval(&mut session, code).await, kinds);
    assert_eq!(eval(&mut session, "div.map([])").await, Value::List(vec![]));
}

#[tokio::test]
async fn a_tool_that_takes_too_long_raises_timeout_error_and_is_cancelled() {
    let (tool, mut events) = endless();
    let mut session = start(builder().tool(tool.timeout(Duration::from_millis(20)))).await;
    let exception = raised(&mut session, "endless(1)").await;
    assert_eq!(exception.to_string(), "TimeoutError: endless() took longer than 0.02 s");
    assert_eq!(
        (next(&mut events).await, next(&mut events).await),
        (Some("began"), Some("dropped"))
    );
    assert_eq!(eval(&mut session, "40 + 2").await, Value::Int(42));
}

#[tokio::test]
async fn the_limit_of_host_time_ends_a_wait_for_a_tool_and_cancels_it() {
    let (tool, mut events) = endless();
    let limits = Limits::default().max_host_time(Duration::from_millis(100));
    let mut session = start(builder().limits(limits).tool(tool)).await;
    let execution = session.run("print('before')\nendless(1)").await.unwrap();
    assert!(
        matches!(execution.outcome(), Outcome::Terminated(Termination::HostTime { .. })),
        "{execution:?}"
    );
    assert_eq!((execution.stdout(), execution.usage().tool_calls), ("before\n", 1));
    assert_eq!(
        (next(&mut events).await, next(&mut events).await),
        (Some("began"), Some("dropped"))
    );
}

#[tokio::test]
async fn a_blocking_tool_that_never_returns_does_not_hold_up_the_limit_of_host_time() {
    let tool = Tool::from_blocking_handler(int_param("t"), |_, cx| {
        // Ends only when it is cancelled.
        while !cx.is_cancelled() {
            std::thread::yield_now();
        }
        Ok(Value::None)
    });
    let limits = Limits::default().max_host_time(Duration::from_millis(100));
    let mut session = start(builder().limits(limits).tool(tool)).await;
    let execution = session.run("t(1)").await.unwrap();
    assert!(
        matches!(execution.outcome(), Outcome::Terminated(Termination::HostTime { .. })),
        "{execution:?}"
    );
}

#[tokio::test]
async fn dropping_the_run_cancels_its_calls() {
    let (tool, mut events) = endless();
    let mut session = start(builder().tool(tool)).await;
    tokio::select! {
        execution = session.run("endless(1)") => panic!("{execution:?}"),
        event = events.recv() => assert_eq!(event, Some("began")),
    }
    assert_eq!(next(&mut events).await, Some("dropped"));
}

#[tokio::test]
async fn an_interrupt_ends_a_wait_for_a_tool_and_the_session_lives_on() {
    let (tool, mut events) = endless();
    let mut session = start(builder().tool(tool)).await;
    let interrupt = session.interrupt_handle();
    let (execution, began) = tokio::join!(session.run("endless(1)"), async {
        let event = next(&mut events).await;
        interrupt.interrupt();
        event
    });
    assert_eq!(began, Some("began"));
    let execution = execution.unwrap();
    assert_eq!(execution.outcome(), &Outcome::Terminated(Termination::Interrupted));
    assert_eq!(next(&mut events).await, Some("dropped"));
    assert_eq!(eval(&mut session, "40 + 2").await, Value::Int(42));
}

#[tokio::test]
async fn a_cancelled_task_cancels_its_call_and_the_run_goes_on() {
    let (tool, mut events) = endless();
    let mut session = start(builder().tool(tool)).await;
    let code = "
import asyncio
try:
    await asyncio.wait_for(endless.aio(1), 0.01)
except TimeoutError:
    out = 'timed out'
out
";
    assert_eq!(eval(&mut session, code).await, Value::from("timed out"));
    assert_eq!(
        (next(&mut events).await, next(&mut events).await),
        (Some("began"), Some("dropped"))
    );
}

#[tokio::test]
async fn calls_left_behind_by_a_run_are_cancelled_and_their_tasks_told() {
    let (tool, events) = endless();
    let events = Arc::new(tokio::sync::Mutex::new(events));
    let seen = Arc::clone(&events);
    // When this call has answered, the other one has begun.
    let other = Tool::from_handler(int_param("other"), move |_, _| {
        let seen = Arc::clone(&seen);
        async move { Ok(seen.lock().await.recv().await.map_or(Value::None, Value::from)) }
    });
    let mut session = start(builder().tool(tool).tool(other)).await;
    let code = "import asyncio; task = asyncio.ensure_future(endless.aio(1)); await other.aio(1)";
    exec(&mut session, code).await;
    assert_eq!(next(&mut *events.lock().await).await, Some("dropped"));
    let exception = raised(&mut session, "await task").await;
    assert_eq!(exception.to_string(), "RuntimeError: the run that made this call has ended");
}

#[tokio::test]
async fn variables_can_be_read_while_a_run_waits_for_a_tool() {
    let tool = Tool::from_handler(int_param("look"), |args, cx| async move {
        let name = args.get("x").and_then(Value::as_str).unwrap_or_default().to_owned();
        let value = cx.session().get(&name).await?;
        let names = cx.session().variables().await?;
        let names = names.into_iter().map(|variable| Value::from(variable.name));
        Ok(Value::List(vec![value.into(), Value::List(names.collect())]))
    });
    let mut session = start(builder().tool(tool)).await;
    let code = "
a, b = {'k': [1, 2]}, 'text'
def f():
    local = 1
    return look('a')
out = [f(), look('missing'), await look.aio('b')]
out
";
    let names = || Value::List(vec!["a".into(), "b".into(), "f".into()]);
    let dict = Value::Dict(vec![("k".into(), Value::List(vec![1.into(), 2.into()]))]);
    let expected = Value::List(vec![
        Value::List(vec![dict, names()]),
        Value::List(vec![Value::None, names()]),
        Value::List(vec!["text".into(), names()]),
    ]);
    assert_eq!(eval(&mut session, code).await, expected);
}

#[tokio::test]
async fn many_reads_at_once_during_a_run_are_all_answered() {
    let tool = Tool::from_handler(int_param("look"), |_, cx| async move {
        let reads = (0..50).map(|_| cx.session().get("x"));
        let mut sum = 0;
        for read in reads {
            sum += read.await?.and_then(|value| value.as_i64()).unwrap_or_default();
        }
        Ok(Value::Int(sum))
    });
    let mut session = start(builder().tool(tool)).await;
    let code = "x = 1\nsum(look.map(range(20)))";
    assert_eq!(eval(&mut session, code).await, Value::Int(1000));
}

#[tokio::test]
async fn running_code_from_inside_a_tool_is_refused_as_busy() {
    let kinds = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&kinds);
    let tool = Tool::from_handler(int_param("t"), move |_, cx| {
        let seen = Arc::clone(&seen);
        async move {
            let error = cx.session().run("1").await.unwrap_err();
            seen.lock().unwrap().push((error.kind(), error.session_survives()));
            Err(error.into())
        }
    });
    let mut session = start(builder().tool(tool)).await;
    let exception = raised(&mut session, "t(1)").await;
    assert!(exception.message.contains("is busy, something runs in it already"), "{exception}");
    assert_eq!(*kinds.lock().unwrap(), [(ErrorKind::Busy, true)]);
    assert_eq!(eval(&mut session, "40 + 2").await, Value::Int(42));
}

#[tokio::test]
async fn a_handle_runs_code_when_the_session_is_idle_and_not_after_its_end() {
    let mut session = start(builder()).await;
    let handle = session.handle();
    handle.run("x = 1").await.unwrap();
    assert_eq!(eval(&mut session, "x").await, Value::Int(1));
    assert_eq!(handle.get("x").await.unwrap(), Some(Value::Int(1)));
    drop(session);
    let closed = |error: Error| (error.kind(), error.to_string());
    let expected =
        (ErrorKind::Closed, "the session is closed by its owner, make a new one".to_owned());
    assert_eq!(closed(handle.run("x").await.unwrap_err()), expected);
    assert_eq!(closed(handle.get("x").await.unwrap_err()), expected);
}

#[tokio::test]
async fn a_call_knows_its_session_and_its_number_and_can_log() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let calls = Arc::clone(&seen);
    let tool = Tool::from_handler(int_param("t"), move |args, cx| {
        calls.lock().unwrap().push((cx.session_id(), cx.call_id()));
        cx.log(format_args!("got {}", args.get("x").cloned().unwrap_or_default()));
        async { Ok(Value::None) }
    });
    let mut session = start(builder().tool(tool)).await;
    let execution = exec(&mut session, "t('a')\nt(2)").await;
    assert_eq!((execution.stdout(), execution.stderr()), ("", "[t] got 'a'\n[t] got 2\n"));
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0].0, session.handle().id());
    assert!(seen[0].0 == seen[1].0 && seen[0].1 != seen[1].1, "{seen:?}");
}

#[tokio::test]
async fn a_call_is_over_for_its_context_when_it_is_over() {
    let (sender, mut contexts) = mpsc::unbounded_channel();
    let tool = Tool::from_handler(int_param("t"), move |_, cx| {
        assert!(!cx.is_cancelled());
        let _ = sender.send(cx);
        async { Ok(Value::None) }
    });
    let mut session = start(builder().tool(tool)).await;
    exec(&mut session, "t(1)").await;
    let context = contexts.recv().await.unwrap();
    context.cancelled().await;
    assert!(context.is_cancelled());
    context.log("too late");
    assert_eq!(exec(&mut session, "1").await.stderr(), "");
}

#[tokio::test]
async fn a_call_can_wait_for_all_that_run_side_by_side_with_it() {
    let (begun, seen) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
    let (count, saw) = (Arc::clone(&begun), Arc::clone(&seen));
    let tool = Tool::from_handler(int_param("t"), move |_, cx| {
        count.fetch_add(1, Ordering::SeqCst);
        let (count, saw) = (Arc::clone(&count), Arc::clone(&saw));
        async move {
            cx.session().settled().await;
            saw.lock().unwrap().push(count.load(Ordering::SeqCst));
            Ok(Value::None)
        }
    });
    let limits = Limits::default().max_concurrent_tools(40);
    let mut session = start(builder().limits(limits).tool(tool)).await;
    for code in [
        "t.map(range(30))",
        "import asyncio\nawait asyncio.gather(*[t.aio(i) for i in range(30)])",
        "async def step(i):\n    await asyncio.sleep(0)\n    return await t.aio(i)\n\
         await asyncio.gather(*[step(i) for i in range(30)])",
    ] {
        begun.store(0, Ordering::SeqCst);
        exec(&mut session, code).await;
        assert_eq!(std::mem::take(&mut *seen.lock().unwrap()), [30; 30], "{code}");
    }
    exec(&mut session, "t(1)").await;
    // Nothing runs now.
    session.handle().settled().await;
}

#[test]
fn tools_that_use_tokio_work_for_callers_without_a_runtime() {
    let tool = Tool::from_handler(int_param("t"), |_, _| async move {
        let spawned = tokio::spawn(async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            "slept"
        });
        Ok(spawned.await?.into())
    });
    let sandbox = builder().tool(tool).build().unwrap();
    let mut session = sandbox.blocking().session().unwrap();
    let execution = session.run("t.map(range(3))").unwrap();
    let expected = Value::List(vec!["slept".into(), "slept".into(), "slept".into()]);
    assert_eq!(execution.value(), Some(&expected));
}

#[tokio::test]
async fn a_tool_sees_the_task_locals_of_the_run_that_called_it() {
    tokio::task_local! {
        static USER: &'static str;
    }
    let tool = Tool::from_handler(int_param("who"), |_, _| async { Ok(USER.get().into()) });
    let mut session = start(builder().tool(tool)).await;
    let execution = USER.scope("ada", session.run("who(1)")).await.unwrap();
    assert_eq!(execution.value(), Some(&Value::from("ada")));
}

/// A stack with JavaScript functions on it cannot be suspended. The guest's thread blocks there.
#[tokio::test]
async fn a_callback_of_javascript_may_call_a_function_that_takes_long() {
    let nap = Tool::from_handler(int_param("nap"), |args, _| async move {
        tokio::time::sleep(Duration::from_millis(50)).await;
        Ok(args.get("x").cloned().unwrap_or_default())
    });
    let mut session = start(builder().tool(nap).submit([Param::new("answer")])).await;
    let code = "
import js
from pyodide.code import run_js
from pyodide.ffi import create_proxy
[
    run_js('f => f(7)')(nap),
    [*run_js('f => [1, 2].map(x => f(x))')(nap)],
    await js.Promise.resolve(0).then(create_proxy(lambda _: nap('later'))),
    nap(8),
]
";
    let expected =
        vec![7.into(), Value::List(vec![1.into(), 2.into()]), "later".into(), Value::Int(8)];
    assert_eq!(eval(&mut session, code).await, Value::List(expected));
    let execution = session.run("run_js('f => f(9)')(lambda x: SUBMIT(nap(x)))").await.unwrap();
    let submitted = Value::Dict(vec![("answer".into(), Value::Int(9))]);
    assert_eq!(execution.outcome(), &Outcome::Submitted(submitted), "{execution:?}");
}

#[tokio::test]
async fn a_call_in_a_callback_of_javascript_can_be_interrupted() {
    let (tool, mut events) = endless();
    let mut session = start(builder().tool(tool)).await;
    let handle = session.interrupt_handle();
    let code = "from pyodide.code import run_js\nrun_js('f => f(1)')(endless)";
    let (execution, ()) = tokio::join!(session.run(code), async {
        assert_eq!(next(&mut events).await, Some("began"));
        handle.interrupt();
        assert_eq!(next(&mut events).await, Some("dropped"));
    });
    let execution = execution.unwrap();
    let interrupted = Outcome::Terminated(Termination::Interrupted);
    assert_eq!(execution.outcome(), &interrupted, "{execution:?}");
    assert_eq!(eval(&mut session, "1 + 1").await, Value::Int(2));
}

#[tokio::test]
async fn long_values_read_while_a_run_waits_and_its_own_do_not_mix() {
    let look = Tool::from_handler(ToolSpec::new("look"), |_, cx| async move {
        for (name, letter) in [("a", "a"), ("b", "b"), ("small", "s")] {
            let value = cx.session().get(name).await?.unwrap();
            let length = if name == "small" { 1 } else { 300_000 };
            assert_eq!(value, Value::from(letter.repeat(length)));
        }
        Ok(Value::None)
    });
    let mut session = builder().tool(look).build().unwrap().session().await.unwrap();
    exec(&mut session, "a, b, small = 'a' * 300_000, 'b' * 300_000, 's'").await;
    for _ in 0..3 {
        let value = eval(&mut session, "look(); 'c' * 300_000").await;
        assert_eq!(value, Value::from("c".repeat(300_000)));
        assert_eq!(eval(&mut session, "look(); 'short'").await, Value::from("short"));
    }
}
