//! Tests of calls that pause their run's clock: a person is asked, and no limit of time ends the
//! run meanwhile.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use isolet::{ClockPause, Execution, Limits, Outcome, Session, Termination, Tool, ToolSpec, Value};

use crate::util::{builder, eval};

/// The limits of both times, which the tests pass.
const LIMIT: Duration = Duration::from_secs(1);

/// A tool that takes `time`, paused or not.
fn takes(name: &str, time: Duration, is_paused: bool) -> Tool {
    Tool::from_handler(ToolSpec::new(name), move |_, cx| async move {
        let pause = is_paused.then(|| cx.pause_clock());
        tokio::time::sleep(time).await;
        drop(pause);
        Ok(Value::Bool(true))
    })
}

async fn start(tools: impl IntoIterator<Item = Tool>) -> Session {
    let limits = Limits::default().max_host_time(LIMIT).max_run_time(LIMIT);
    let limits = limits.max_grace(Duration::from_mins(2));
    let builder = tools.into_iter().fold(builder().limits(limits), isolet::SandboxBuilder::tool);
    builder.build().unwrap().session().await.unwrap()
}

fn is_host_time(execution: &Execution) -> bool {
    matches!(execution.outcome(), Outcome::Terminated(Termination::HostTime { .. }))
}

fn is_deadline(execution: &Execution) -> bool {
    matches!(execution.outcome(), Outcome::Terminated(Termination::Deadline { .. }))
}

#[tokio::test]
async fn a_paused_call_may_take_longer_than_any_limit() {
    let ask = takes("ask", LIMIT * 3, true).timeout(LIMIT / 2);
    let mut session = start([ask]).await;
    let execution = session.run("ask()").await.unwrap();
    assert_eq!(execution.value(), Some(&Value::Bool(true)), "{execution:?}");
    let usage = execution.usage();
    assert!(usage.host_time < LIMIT && usage.wall_time >= LIMIT * 3, "{usage:?}");
}

#[tokio::test]
async fn a_blocking_tool_can_pause_the_clock_too() {
    let ask = Tool::from_blocking_handler(ToolSpec::new("ask"), |_, cx| {
        let pauses = (cx.pause_clock(), cx.clone().pause_clock());
        drop(pauses.0);
        std::thread::sleep(LIMIT * 2);
        drop(pauses.1);
        Ok(Value::Bool(true))
    });
    let mut session = start([ask]).await;
    assert_eq!(eval(&mut session, "await ask()").await, Value::Bool(true));
}

#[tokio::test]
async fn other_calls_count_during_a_pause() {
    let ask = takes("ask", LIMIT * 30, true);
    let mut session = start([ask, takes("work", LIMIT * 30, false)]).await;
    let code = "import asyncio\nawait asyncio.gather(ask.aio(), work.aio())";
    let execution = session.run(code).await.unwrap();
    assert!(is_host_time(&execution) && execution.session_alive(), "{execution:?}");
}

#[tokio::test]
async fn time_counts_again_after_the_pause() {
    let quick = takes("ask", LIMIT * 2, true);
    let mut session = start([quick, takes("work", LIMIT * 30, false)]).await;
    assert!(is_host_time(&session.run("ask()\nwork()").await.unwrap()));
    assert!(is_deadline(&session.run("ask()\nwhile True: pass").await.unwrap()));
}

#[tokio::test]
async fn a_pause_that_outlives_its_call_has_no_effect() {
    let kept: Arc<Mutex<Vec<ClockPause>>> = Arc::default();
    let pauses = Arc::clone(&kept);
    let ask = Tool::from_handler(ToolSpec::new("ask"), move |_, cx| {
        pauses.lock().unwrap().push(cx.pause_clock());
        async move { Ok(Value::None) }
    });
    let mut session = start([ask]).await;
    let execution = session.run("ask()\nwhile True: pass").await.unwrap();
    assert!(is_deadline(&execution), "{execution:?}");
    assert_eq!(kept.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_paused_call_ends_with_its_run() {
    let mut session = start([takes("ask", LIMIT * 60, true)]).await;
    let code = "import asyncio\ntry: await asyncio.wait_for(ask(), 0.01)\n\
                except TimeoutError: pass\nwhile True: pass";
    assert!(is_deadline(&session.run(code).await.unwrap()));
}
