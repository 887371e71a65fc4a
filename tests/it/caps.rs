//! Tests of counts with a limit: beyond it there is an error or outcome with the limit and the
//! count.

use std::time::Duration;

use isolet::{
    Cell, ErrorKind, LimitKind, Limits, Outcome, SessionState, Termination, Tool, ToolSpec, Value,
};

use crate::util::{builder, eval, exec, raised, sandbox, session};

/// More time than the busiest machine needs to raise an exception.
const LONG: Duration = Duration::from_mins(1);

fn calling(limits: Limits) -> isolet::Sandbox {
    let tool = Tool::from_handler(ToolSpec::new("t"), |_, _| async { Ok(Value::None) });
    builder().limits(limits.max_grace(LONG)).tool(tool).build().unwrap()
}

#[tokio::test]
async fn tool_calls_of_a_run_are_capped_and_the_session_lives_on() {
    let mut session = calling(Limits::default().max_tool_calls(5)).session().await.unwrap();
    let at_limit = exec(&mut session, "for _ in range(5): t()").await;
    assert_eq!(at_limit.usage().tool_calls, 5);
    let execution = session.run("n = 0\nwhile True:\n    t()\n    n += 1").await.unwrap();
    let Outcome::Terminated(termination) = execution.outcome() else { panic!("{execution:?}") };
    let expected = Termination::Limit { kind: LimitKind::ToolCalls, limit: 5, observed: 6 };
    assert_eq!(*termination, expected);
    assert_eq!(
        termination.to_string(),
        "the run was terminated at 6 tool calls, the limit is 5 (`Limits::max_tool_calls`)"
    );
    assert_eq!(execution.usage().tool_calls, 5);
    // The next run starts counting at zero.
    assert_eq!(eval(&mut session, "t(); n").await, Value::Int(5));
}

#[tokio::test]
async fn a_guest_that_catches_the_end_of_its_calls_makes_no_more_of_them() {
    let limits = Limits::default().max_tool_calls(5).max_grace(Duration::from_millis(200));
    let counted = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let count = std::sync::Arc::clone(&counted);
    let tool = Tool::from_handler(ToolSpec::new("t"), move |_, _| {
        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        async { Ok(Value::None) }
    });
    let sandbox = builder().limits(limits).tool(tool).build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    // Interrupts also come between two turns of the inner loop, so it stands in others.
    let code = "def spin(depth):\n    while True:\n        try: spin(depth - 1) if depth else t()\n        \
                except BaseException: pass\nspin(20)";
    let execution = session.run(code).await.unwrap();
    assert!(matches!(execution.outcome(), Outcome::Terminated(Termination::Limit { .. })));
    assert_eq!(counted.load(std::sync::atomic::Ordering::Relaxed), 5);
    assert_eq!(session.state(), SessionState::Terminated);
}

#[tokio::test]
async fn refused_calls_are_capped() {
    let mut session = calling(Limits::default().max_refusals(9)).session().await.unwrap();
    let code = "t.__globals__ if False else None\nfrom pyodide.code import run_js\n\
                while True:\n    try: t(1, 2, 3)\n    except TypeError: pass\n    \
                try: open('/lib/python3.14/site-packages/x', 'w')\n    except OSError: pass";
    let execution = session.run(code).await.unwrap();
    let Outcome::Terminated(termination) = execution.outcome() else { panic!("{execution:?}") };
    let expected = Termination::Limit { kind: LimitKind::Refusals, limit: 9, observed: 10 };
    assert_eq!(*termination, expected);
    assert!(execution.session_alive());
}

#[tokio::test]
async fn code_that_is_too_long_is_not_run() {
    let mut session = sandbox(Limits::default().max_source_bytes(100)).session().await.unwrap();
    let error = session.run(" ".repeat(101)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert!(error.session_survives());
    assert_eq!(
        error.to_string(),
        "the code has 101 bytes, the limit is 100 bytes (`Limits::max_source_bytes`)"
    );
    let error = session.is_incomplete(" ".repeat(101)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert_eq!(eval(&mut session, format!("42{}", " ".repeat(98))).await, Value::Int(42));
}

#[tokio::test]
async fn sessions_of_an_engine_are_capped() {
    // Another engine, whose sessions no other test has open.
    let engine = crate::util::engine_builder().max_sessions(2).build().unwrap();
    let sandbox = isolet::Sandbox::builder(&engine).build().unwrap();
    let mut first = sandbox.session().await.unwrap();
    let second = sandbox.session().await.unwrap();
    let error = sandbox.session().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert_eq!(error.to_string(), "too many sessions of the engine: limit 2, needed 3");
    first.reset().await.unwrap();
    drop(second);
    let mut third = sandbox.session().await.unwrap();
    assert_eq!(eval(&mut third, "40 + 2").await, Value::Int(42));
}

#[tokio::test]
async fn lines_of_output_are_capped() {
    let mut session = sandbox(Limits::default().max_output_lines(4)).session().await.unwrap();
    let execution = exec(&mut session, "for i in range(100): print(i)").await;
    assert_eq!(execution.stdout(), "0\n1\n\n[... 280 bytes dropped ...]\n98\n99\n");
    assert_eq!(execution.truncated().stdout_bytes, 280);
}

#[tokio::test]
async fn pending_timers_are_capped() {
    let mut session = session().await;
    let code = "from pyodide.code import run_js\n\
                run_js('for (let i = 0; i < 200000; i++) setTimeout(() => {}, 1e9)')";
    let exception = raised(&mut session, Cell::new(code)).await;
    let limit = Limits::PENDING_TIMERS;
    let sentence = format!("too many timers: limit {limit}, needed {}", limit + 1);
    assert!(exception.message.contains(&sentence), "{exception}");
    assert_eq!(eval(&mut session, "40 + 2").await, Value::Int(42));
}
