//! Tests every limit in every state that a guest can be in when it reaches the limit: the outcome
//! is always the same, and the next session is unaffected.

use std::time::Duration;

use isolet::{
    Cell, Execution, LimitKind, Limits, Mount, Outcome, Permissions, Sandbox, Session,
    SessionState, Termination, Tool, ToolSpec, Value,
};

use crate::util::{Scratch, builder, eval};

/// The code around the call of `hit()`.
const STATES: &[(&str, &str)] = &[
    ("in Python", "hit()"),
    ("in C code", "sorted([2, 1], key=lambda _: hit() or 0)"),
    ("in C code of a module", "import re\nre.sub('a', lambda _: hit() or '', 'a')"),
    ("in JavaScript", "from pyodide.code import run_js\nrun_js('f => f()')(hit)"),
    (
        "in a task after a wait",
        "import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    hit()\n\
         await asyncio.create_task(f())",
    ),
    ("in output", "class A:\n    def __str__(self):\n        hit()\n        return ''\nprint(A())"),
    (
        "in the value's repr",
        "class A:\n    def __repr__(self):\n        hit()\n        return ''\nA()",
    ),
    ("in an exception's handler", "try:\n    1 / 0\nexcept ZeroDivisionError:\n    hit()"),
    ("in teardown", "import atexit\natexit.register(hit)"),
];

/// The time limit of a run that is meant to reach its deadline.
const SHORT: Duration = Duration::from_millis(500);

/// More time than the busiest machine needs to raise an exception.
const LONG: Duration = Duration::from_mins(1);

struct Hit {
    /// The body of `hit`.
    body: &'static str,
    limits: Limits,
    /// The time limit of the run in which `hit` is called. The runs before and after it may take
    /// longer.
    run_time: Duration,
    expected: fn(&Execution, &Session) -> bool,
    /// The states in which Python itself handles what `hit` raises.
    not: &'static [&'static str],
}

fn sandbox(limits: Limits, scratch: &Scratch) -> Sandbox {
    let mount = Mount::read_only(scratch.path()).unwrap();
    builder()
        .limits(limits)
        .permissions(Permissions::none().mount("/ro", mount).unwrap())
        .tool(Tool::from_handler(ToolSpec::new("never"), |_, _| std::future::pending()))
        .tool(Tool::from_handler(ToolSpec::new("quick"), |_, _| async { Ok(Value::None) }))
        .build()
        .unwrap()
}

async fn check(name: &str, hit: Hit) {
    let scratch = Scratch::new(&format!("matrix-{name}"));
    let sandbox = sandbox(hit.limits, &scratch);
    for (state, code) in STATES.iter().filter(|(state, _)| !hit.not.contains(state)) {
        let mut session = sandbox.session().await.unwrap();
        let code = format!("print('kept')\ndef hit():\n{}\n{code}", hit.body);
        let cell = Cell::new(code).program().timeout(hit.run_time);
        let execution = session.run(cell).await.unwrap();
        assert!((hit.expected)(&execution, &session), "{name} {state}: {execution:?}");
        assert!(execution.stdout().starts_with("kept\n"), "{name} {state}: {execution:?}");
        assert_eq!(execution.session_alive(), session.state() == SessionState::Ready);
        if !execution.session_alive() {
            session.reset().await.unwrap();
            let new = eval(&mut session, "'hit' not in globals()").await;
            assert_eq!(new, Value::Bool(true), "{name} {state}");
        }
        assert_eq!(eval(&mut session, "40 + 2").await, Value::Int(42), "{name} {state}");
    }
}

fn limits() -> Limits {
    Limits::default().max_run_time(LONG).max_grace(LONG)
}

fn is_deadline(execution: &Execution) -> bool {
    matches!(execution.outcome(), Outcome::Terminated(Termination::Deadline { .. }))
}

fn is_limit(execution: &Execution, kind: LimitKind, limit: u64) -> bool {
    let observed = limit + 1;
    *execution.outcome() == Outcome::Terminated(Termination::Limit { kind, limit, observed })
}

#[tokio::test]
async fn a_deadline_interrupts_python() {
    let body = "    while True: pass";
    let expected =
        |execution: &Execution, _: &Session| is_deadline(execution) && execution.session_alive();
    check("interrupt", Hit { body, limits: limits(), run_time: SHORT, expected, not: &[] }).await;
}

#[tokio::test]
async fn the_limit_of_host_time_ends_a_call_that_never_returns() {
    let body = "    never()";
    let limits = limits().max_host_time(SHORT);
    let expected = |execution: &Execution, _: &Session| {
        matches!(
            *execution.outcome(),
            Outcome::Terminated(Termination::HostTime { limit: SHORT, observed })
                if observed >= SHORT
        ) && execution.session_alive()
    };
    check("never", Hit { body, limits, run_time: LONG, expected, not: &[] }).await;
}

#[tokio::test]
async fn a_deadline_kills_c_code() {
    let body = "    sum(range(10 ** 12))";
    let limits = limits().max_grace(Duration::from_millis(50));
    let expected = |execution: &Execution, session: &Session| {
        is_deadline(execution) && session.state() == SessionState::Terminated
    };
    check("kill-c", Hit { body, limits, run_time: SHORT, expected, not: &[] }).await;
}

#[tokio::test]
async fn a_deadline_kills_javascript() {
    let body = "    from pyodide.code import run_js\n    run_js('for (;;) {}')";
    let limits = limits().max_grace(Duration::ZERO);
    let expected = |execution: &Execution, session: &Session| {
        is_deadline(execution) && session.state() == SessionState::Terminated
    };
    check("kill-js", Hit { body, limits, run_time: SHORT, expected, not: &[] }).await;
}

#[tokio::test]
async fn calls_of_host_functions_end_at_their_limit() {
    let body = "    while True:\n        try: quick()\n        except Exception: pass";
    let limits = Limits::default().max_grace(LONG).max_tool_calls(7);
    let expected =
        |execution: &Execution, _: &Session| is_limit(execution, LimitKind::ToolCalls, 7);
    check("calls", Hit { body, limits, run_time: LONG, expected, not: &[] }).await;
}

#[tokio::test]
async fn refusals_end_at_their_limit() {
    let body = "    while True:\n        try: open('/ro/x', 'w')\n        except OSError: pass";
    let limits = Limits::default().max_grace(LONG).max_refusals(7);
    let expected = |execution: &Execution, _: &Session| is_limit(execution, LimitKind::Refusals, 7);
    check("refusals", Hit { body, limits, run_time: LONG, expected, not: &[] }).await;
}

#[tokio::test]
async fn python_at_its_memory_limit_goes_on() {
    let body = "    try: bytearray(10 ** 9)\n    except MemoryError: print('full')";
    let limits = Limits::default().max_memory_bytes(128 << 20);
    let expected = |execution: &Execution, _: &Session| {
        matches!(execution.outcome(), Outcome::Completed(_))
            && execution.stdout().contains("full\n")
    };
    check("memory", Hit { body, limits, run_time: LONG, expected, not: &[] }).await;
}

#[tokio::test]
async fn javascript_at_its_memory_limit_is_ended() {
    let body =
        "    from pyodide.code import run_js\n    run_js('a = []; for (;;) a.push({x: [a]})')";
    let limits = Limits::default().max_memory_bytes(128 << 20);
    let expected = |execution: &Execution, session: &Session| {
        matches!(execution.outcome(), Outcome::Terminated(Termination::Memory { .. }))
            && session.state() == SessionState::Terminated
    };
    check("heap", Hit { body, limits, run_time: LONG, expected, not: &[] }).await;
}

#[tokio::test]
async fn a_dead_interpreter_is_told() {
    let body = "    import os\n    os.abort()";
    let expected = |execution: &Execution, session: &Session| {
        matches!(execution.outcome(), Outcome::Terminated(Termination::Died { .. }))
            && session.state() == SessionState::Died
    };
    check("abort", Hit { body, limits: Limits::default(), run_time: LONG, expected, not: &[] })
        .await;
}
