//! Tests of host time: the run time stands still while tools are running, and the limit of host
//! time bounds what a guest can do meanwhile.

use std::sync::Arc;
use std::time::Duration;

use isolet::{
    Cell, Execution, Limits, Outcome, Param, Session, SessionState, Termination, Tool, ToolSpec,
    Value,
};
use tokio::sync::{Semaphore, mpsc};

use crate::util::{self, builder, eval, exec};

/// The limit that a test reaches, or passes.
const LIMIT: Duration = Duration::from_secs(3);

/// More time than the busiest machine needs.
const LONG: Duration = Duration::from_mins(2);

/// A tool `wait()` that sends an event when it begins and ends, and waits for a permit.
struct Waiting {
    tool: Tool,
    events: mpsc::UnboundedReceiver<&'static str>,
    permits: Arc<Semaphore>,
}

/// Sends an event on drop.
struct Ended(mpsc::UnboundedSender<&'static str>);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.send("ended");
    }
}

fn spec() -> ToolSpec {
    ToolSpec::new("wait").param(Param::new("x").default_value(0))
}

fn waiting() -> Waiting {
    let (sender, events) = mpsc::unbounded_channel();
    let permits = Arc::new(Semaphore::new(0));
    let granted = Arc::clone(&permits);
    let tool = Tool::from_handler(spec(), move |_, _| {
        let (ended, granted) = (Ended(sender.clone()), Arc::clone(&granted));
        async move {
            let _ = ended.0.send("began");
            granted.acquire().await?.forget();
            Ok(Value::None)
        }
    });
    Waiting { tool, events, permits }
}

/// As [`waiting`], but the function blocks its thread, also when its call was cancelled.
fn blocking() -> Waiting {
    let (sender, events) = mpsc::unbounded_channel();
    let permits = Arc::new(Semaphore::new(0));
    let granted = Arc::clone(&permits);
    let tool = Tool::from_blocking_handler(spec(), move |_, _| {
        let ended = Ended(sender.clone());
        let _ = ended.0.send("began");
        let permit = tokio::runtime::Handle::current().block_on(granted.acquire());
        permit?.forget();
        Ok(Value::None)
    });
    Waiting { tool, events, permits }
}

impl Waiting {
    /// Waits for the next event.
    async fn next(&mut self) -> &'static str {
        let next = tokio::time::timeout(LONG, self.events.recv()).await;
        next.unwrap_or_else(|_| panic!("the tool says nothing")).unwrap()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.permits.close();
    }
}

async fn start(limits: Limits, tool: &Tool) -> Session {
    let builder = builder().limits(limits.max_grace(LONG)).tool(tool.clone());
    builder.build().unwrap().session().await.unwrap()
}

/// Lets at least this much time pass: a guest beside computes until its own deadline.
async fn pass(time: Duration) {
    let cell = Cell::new("while True: pass").timeout(time);
    let execution = util::run(cell).await;
    assert!(is_deadline(&execution), "{execution:?}");
}

fn is_deadline(execution: &Execution) -> bool {
    matches!(execution.outcome(), Outcome::Terminated(Termination::Deadline { .. }))
}

/// Checks that the limit of host time ended the run, and that the session lives on.
async fn ended_by_host_time(session: &mut Session, execution: &Execution) {
    let Outcome::Terminated(Termination::HostTime { limit, observed }) = *execution.outcome()
    else {
        panic!("it was not the limit of host time: {execution:?}");
    };
    assert!(limit == LIMIT && observed >= LIMIT, "{execution:?}");
    assert!(execution.usage().host_time >= observed, "{execution:?}");
    assert!(execution.session_alive(), "{execution:?}");
    let message = Termination::HostTime { limit, observed }.to_string();
    assert!(message.ends_with("s, the limit is 3 s (`Limits::max_host_time`)"), "{message}");
    assert_eq!(eval(session, "x").await, Value::Int(42));
}

#[tokio::test]
async fn a_run_outlives_its_limit_while_its_tools_run() {
    for mut tool in [waiting(), blocking()] {
        let mut session = start(Limits::default().max_run_time(LIMIT), &tool.tool).await;
        let host = async {
            for _ in 0..2 {
                assert_eq!(tool.next().await, "began");
                pass(LIMIT + LIMIT / 2).await;
                tool.permits.add_permits(1);
                assert_eq!(tool.next().await, "ended");
            }
        };
        let (execution, ()) = tokio::join!(session.run("wait(); await wait.aio(); 42"), host);
        let execution = execution.unwrap();
        assert_eq!(execution.value(), Some(&Value::Int(42)), "{execution:?}");
        let usage = execution.usage();
        assert!(usage.host_time >= LIMIT * 3 && usage.wall_time >= usage.host_time, "{usage:?}");
    }
}

#[tokio::test]
async fn tools_side_by_side_stop_the_clock_until_the_last_has_ended() {
    let mut tool = waiting();
    let mut session = start(Limits::default().max_run_time(LIMIT), &tool.tool).await;
    let host = async {
        for _ in 0..2 {
            assert_eq!(tool.next().await, "began");
        }
        tool.permits.add_permits(1);
        assert_eq!(tool.next().await, "ended");
        pass(LIMIT + LIMIT / 2).await;
        tool.permits.add_permits(1);
    };
    let (execution, ()) = tokio::join!(session.run("wait.map([1, 2])"), host);
    let execution = execution.unwrap();
    assert!(matches!(execution.outcome(), Outcome::Completed(_)), "{execution:?}");
    let usage = execution.usage();
    assert!(usage.host_time >= LIMIT && usage.wall_time >= usage.host_time, "{usage:?}");
}

#[tokio::test]
async fn a_guest_that_computes_after_a_call_reaches_its_deadline() {
    let mut tool = waiting();
    let mut session = start(Limits::default().max_run_time(LIMIT), &tool.tool).await;
    let host = async {
        assert_eq!(tool.next().await, "began");
        pass(LIMIT * 2).await;
        tool.permits.add_permits(1);
    };
    let code = "x = 42\nwait()\nwhile True: pass";
    let (execution, ()) = tokio::join!(session.run(code), host);
    let execution = execution.unwrap();
    let Outcome::Terminated(Termination::Deadline { limit, observed }) = *execution.outcome()
    else {
        panic!("it was not the deadline: {execution:?}");
    };
    let usage = execution.usage();
    assert!(limit == LIMIT && observed >= LIMIT && usage.host_time >= LIMIT * 2, "{execution:?}");
    // The time of the tool is in neither of the numbers that the message has.
    assert!(observed + usage.host_time <= usage.wall_time, "{execution:?}");
    assert_eq!(eval(&mut session, "x").await, Value::Int(42));
}

#[tokio::test]
async fn a_tool_that_never_answers_ends_by_the_host_time() {
    for mut tool in [waiting(), blocking()] {
        let mut session = start(Limits::default().max_host_time(LIMIT), &tool.tool).await;
        let execution = session.run("x = 42\nwait()").await.unwrap();
        ended_by_host_time(&mut session, &execution).await;
        assert_eq!(tool.next().await, "began");
        tool.permits.close();
        assert_eq!(tool.next().await, "ended");
    }
}

#[tokio::test]
async fn a_guest_that_catches_the_limit_of_host_time_is_killed() {
    let tool = waiting();
    let limits = Limits::default().max_host_time(LIMIT).max_grace(Duration::from_millis(100));
    let sandbox = builder().limits(limits).tool(tool.tool.clone()).build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    // Interrupts also come between two turns of the inner loop, so it stands in others.
    let code = "print('kept')\ndef spin(depth):\n    while True:\n        \
                try: spin(depth - 1) if depth else wait()\n        \
                except BaseException: pass\nspin(20)";
    let execution = session.run(code).await.unwrap();
    let outcome = execution.outcome();
    assert!(matches!(outcome, Outcome::Terminated(Termination::HostTime { .. })), "{execution:?}");
    assert!(!execution.session_alive() && execution.stdout() == "kept\n", "{execution:?}");
    assert_eq!(session.state(), SessionState::Terminated);
}

#[tokio::test]
async fn computing_during_a_call_is_bounded_by_the_host_time() {
    // Neither of them would end within the run time, which is as long, if it counted.
    let ways = ["while True: pass", "import time\ntime.sleep(1000)", "await asyncio.sleep(1000)"];
    for way in ways {
        let mut tool = waiting();
        let limits = Limits::default().max_host_time(LIMIT).max_run_time(LIMIT);
        let mut session = start(limits, &tool.tool).await;
        let code = format!(
            "import asyncio\nx = 42\ntask = asyncio.ensure_future(wait.aio())\n\
             await asyncio.sleep(0)\n{way}"
        );
        let execution = session.run(code).await.unwrap();
        ended_by_host_time(&mut session, &execution).await;
        assert_eq!((tool.next().await, tool.next().await), ("began", "ended"));
    }
}

#[tokio::test]
async fn the_host_time_of_all_calls_is_added_up_and_begins_anew_with_each_run() {
    let mut tool = waiting();
    let mut session = start(Limits::default().max_host_time(LIMIT), &tool.tool).await;
    let host = async {
        for _ in 0..2 {
            assert_eq!(tool.next().await, "began");
            pass(LIMIT * 3 / 4).await;
            tool.permits.add_permits(1);
            assert_eq!(tool.next().await, "ended");
        }
    };
    let (execution, ()) =
        tokio::join!(session.run("x = 42\nwait()\nwait()\nwhile True: pass"), host);
    ended_by_host_time(&mut session, &execution.unwrap()).await;
    tool.permits.forget_permits(1);
    tool.permits.add_permits(1);
    exec(&mut session, "wait()").await;
}

#[tokio::test]
async fn calls_that_wait_to_be_started_are_no_host_time() {
    let mut tool = blocking();
    let limits = Limits::default().max_concurrent_tools(1);
    let mut session = start(limits, &tool.tool).await;
    // The function goes on when its run has ended, and keeps the only place.
    let left = "import asyncio\ntask = asyncio.ensure_future(wait.aio())\nawait asyncio.sleep(60)";
    let handle = session.interrupt_handle();
    let (execution, event) = tokio::join!(session.run(left), async {
        let event = tool.next().await;
        handle.interrupt();
        event
    });
    assert!(event == "began" && execution.unwrap().session_alive());
    let execution = session.run(Cell::new("wait()").timeout(LIMIT)).await.unwrap();
    assert!(is_deadline(&execution), "{execution:?}");
    assert_eq!(execution.usage().host_time, Duration::ZERO);
}

#[tokio::test]
async fn a_cancelled_function_is_no_host_time() {
    let mut tool = blocking();
    let mut session = start(Limits::default(), &tool.tool).await;
    let code = "import asyncio\ntry: await asyncio.wait_for(wait.aio(), 0.01)\n\
                except TimeoutError: pass\nwhile True: pass";
    let execution = session.run(Cell::new(code).timeout(LIMIT)).await.unwrap();
    assert!(is_deadline(&execution), "{execution:?}");
    assert_eq!(tool.next().await, "began");
    assert!(tool.events.try_recv().is_err(), "the function has ended");
}
