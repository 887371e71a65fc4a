//! Tests of the deadline: it ends every guest and keeps the output, and the session if possible.

use std::time::Duration;

use isolet::{
    Cell, ErrorKind, Execution, Limits, Outcome, Session, SessionState, Termination, Value,
};

use crate::util::{eval, exec, sandbox, session};

const LIMIT: Duration = Duration::from_millis(500);

/// More time than the busiest machine needs to raise an exception.
const LONG: Duration = Duration::from_mins(1);

/// Runs endless code, and returns the session and the result of the run.
async fn stopped(code: &str, grace: Duration) -> (Session, Execution) {
    let sandbox = sandbox(Limits::default().max_run_time(LONG).max_grace(grace));
    let mut session = sandbox.session().await.unwrap();
    let cell = Cell::new(format!("print('kept')\nx = 42\n{code}")).timeout(LIMIT);
    let execution = session.run(cell).await.unwrap();
    let Outcome::Terminated(Termination::Deadline { limit, observed }) = *execution.outcome()
    else {
        panic!("it was not the deadline: {execution:?}");
    };
    assert!(limit == LIMIT && observed >= LIMIT);
    assert!(execution.stdout().starts_with("kept\n"), "{execution:?}");
    (session, execution)
}

/// Runs code that an interrupt ends: the session survives with its variables.
async fn interrupted(code: &str) {
    let (mut session, execution) = stopped(code, LONG).await;
    assert!(execution.session_alive(), "{execution:?}");
    assert_eq!(session.state(), SessionState::Ready);
    assert_eq!(eval(&mut session, Cell::new("x")).await, Value::Int(42));
    // Nothing of it continues, and a run again has its whole time.
    exec(&mut session, "import time; time.sleep(0.1)").await;
}

/// Runs code that only a kill ends: the session is closed, and the next one is unaffected.
async fn killed(code: &str) {
    let (mut session, execution) = stopped(code, Duration::from_millis(100)).await;
    assert!(execution.locals().is_empty() && !execution.session_alive(), "{execution:?}");
    assert_eq!(session.state(), SessionState::Terminated);
    let error = session.run("1").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);
    session.reset().await.unwrap();
    let names = "[name for name in globals() if not name.startswith('_')]";
    assert_eq!(eval(&mut session, names).await, Value::List(Vec::new()));
}

macro_rules! endless {
    ($ends:ident: $($name:ident: $code:expr,)*) => {$(
        #[tokio::test]
        async fn $name() {
            $ends($code).await;
        }
    )*};
}

endless! { interrupted:
    a_busy_loop_is_interrupted: "while True: pass",
    a_catastrophic_regex_is_interrupted: "import re\nre.match(r'(a+)+$', 'a' * 60 + 'b')",
    a_huge_power_is_interrupted: "10 ** 10 ** 8",
    a_sort_by_a_key_is_interrupted: "while True: sorted(range(10 ** 5), key=lambda x: -x)",
    a_loop_of_json_is_interrupted:
        "import json\ndata = [[1, 'a', None]] * 1000\nwhile True: json.loads(json.dumps(data))",
    a_loop_of_zlib_is_interrupted:
        "import zlib\ndata = bytes(10 ** 6)\nwhile True: zlib.decompress(zlib.compress(data))",
    a_long_sleep_is_interrupted: "import time\ntime.sleep(1000)",
    an_awaited_sleep_is_interrupted: "import asyncio\nawait asyncio.sleep(1000)",
    an_await_of_nothing_is_interrupted: "import asyncio\nawait asyncio.Future()",
    an_asyncio_run_of_nothing_is_interrupted:
        "import asyncio\nasync def f(): await asyncio.Future()\nasyncio.run(f())",
    a_loop_of_empty_sleeps_is_interrupted: "import asyncio\nwhile True: await asyncio.sleep(0)",
    a_repr_that_never_ends_is_interrupted:
        "class A:\n    def __repr__(self):\n        while True: pass\nA()",
    a_repr_of_a_local_that_never_ends_is_interrupted:
        "class A:\n    def __repr__(self):\n        while True: pass\na = A()",
    a_recursion_with_a_raised_limit_is_interrupted:
        "import sys\nsys.setrecursionlimit(10**7)\ndef f(n): return f(n + 1)\n\
         while True:\n    try: f(0)\n    except RecursionError: pass",
    a_recursion_that_begins_again_after_each_error_is_interrupted:
        "def f():\n    try: f()\n    except RecursionError: f()\nf()",
    a_promise_that_never_settles_is_interrupted:
        "from pyodide.code import run_js\nawait run_js('new Promise(()=>{})')",
    a_compilation_that_never_ends_is_interrupted:
        "eval('(' * 100 + '1' + ')' * 100)\nwhile True: compile('x = 1\\n' * 10_000, 'x', 'exec')",
    an_endless_writer_of_files_is_interrupted:
        "while True:\n    with open('/tmp/x', 'wb') as f: f.write(bytes(1 << 16))",
}

/// Runs code that only the second interrupt ends, which comes at half of the grace.
async fn interrupted_twice(code: &str) {
    let (mut session, execution) = stopped(code, Duration::from_secs(4)).await;
    assert!(execution.session_alive(), "{execution:?}");
    assert_eq!(eval(&mut session, "x").await, Value::Int(42));
}

endless! { interrupted_twice:
    two_tasks_in_a_row_are_interrupted:
        "import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    while True: pass\n\
         await asyncio.gather(f(), f())",
    a_finally_that_does_not_end_is_interrupted:
        "try:\n    while True: pass\nfinally:\n    while True: pass",
    an_await_that_refuses_to_be_cancelled_is_interrupted:
        "import asyncio\nwhile True:\n    try:\n        await asyncio.sleep(1000)\n    \
         except BaseException: pass",
    a_str_of_an_exception_that_never_ends_is_interrupted:
        "class A(Exception):\n    def __str__(self):\n        while True: pass\nraise A",
}

endless! { killed:
    a_loop_that_catches_everything_is_killed:
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
    a_finally_that_never_ends_is_killed:
        "try:\n    while True: pass\nfinally:\n    while True:\n        try:\n            \
         while True: pass\n        except BaseException: pass",
    a_sum_in_c_is_killed: "sum(range(10 ** 12))",
    a_search_in_c_is_killed: "10 ** 12 - 0.5 in range(10 ** 12)",
    a_handler_that_ignores_interrupts_is_killed:
        "import signal\nsignal.signal(signal.SIGINT, lambda *_: None)\nwhile True: pass",
    a_loop_in_javascript_is_killed: "from pyodide.code import run_js\nrun_js('for(;;){}')",
    an_optimized_loop_around_another_is_killed:
        "from pyodide.code import run_js\nrun_js('for(;;) new Array(1000).fill(0)')",
    an_optimized_function_that_never_ends_is_killed:
        "from pyodide.code import run_js\nrun_js('(() => { for(;;) new Array(1000).fill(0) })()')",
    a_loop_of_microtasks_is_killed:
        "import asyncio\nfrom pyodide.code import run_js\n\
         run_js('f=()=>Promise.resolve().then(f);f();0')\nawait asyncio.sleep(0)",
    a_regex_of_javascript_is_killed:
        "from pyodide.code import run_js\nrun_js('/(a+)+$/.test(\"a\".repeat(60) + \"b\")')",
    a_getter_that_never_ends_is_killed:
        "from pyodide.code import run_js\nrun_js('({get x(){for(;;){}}})').x",
    a_guest_that_clears_the_signal_flag_is_killed:
        "import pyodide_js\nfrom pyodide.code import run_js\n\
         clear = run_js('m => () => { m.HEAP8[m._Py_EMSCRIPTEN_SIGNAL_HANDLING] = 0; }')(\
         pyodide_js._module)\nwhile True: clear()",
}

#[tokio::test]
async fn an_endless_printer_is_ended_and_its_head_and_tail_are_kept() {
    let limits = Limits::default().max_run_time(LIMIT).max_stdout_bytes(1000);
    let execution = sandbox(limits).run("while True: print('x')").await.unwrap();
    assert!(matches!(execution.outcome(), Outcome::Terminated(Termination::Deadline { .. })));
    assert!(
        execution.stdout().starts_with("x\nx\n") && execution.stdout().trim_end().ends_with("\nx")
    );
    assert!(execution.truncated().stdout_bytes > 0);
}

#[tokio::test]
async fn the_guest_cannot_move_its_deadline() {
    interrupted(
        "import time, datetime, asyncio\n\
         time.time = time.monotonic = time.perf_counter = lambda: 0\n\
         asyncio.get_running_loop().time = lambda: 0\n\
         while True: await asyncio.sleep(0)",
    )
    .await;
}

#[tokio::test]
async fn each_run_has_a_deadline_of_its_own() {
    let limits = Limits::default().max_run_time(Duration::from_secs(3));
    let mut session = sandbox(limits).session().await.unwrap();
    for _ in 0..4 {
        exec(&mut session, "import time; time.sleep(1)").await;
    }
    assert_eq!(session.state(), SessionState::Ready);
}

#[tokio::test]
async fn a_check_of_code_has_a_deadline_too() {
    let limits = Limits::default().max_run_time(LIMIT).max_grace(LONG);
    let mut session = sandbox(limits).session().await.unwrap();
    let code =
        "import codeop\ndef forever(*args):\n    while True: pass\ncodeop._maybe_compile = forever";
    exec(&mut session, code).await;
    let error = session.is_incomplete("x").await.unwrap_err();
    assert!(error.kind() == ErrorKind::Limit && error.session_survives(), "{error:?}");
    assert_eq!(session.state(), SessionState::Ready);
}

#[tokio::test]
async fn a_dropped_run_is_killed_and_its_session_closed() {
    let mut session = session().await;
    let mut run = session.run_streaming("print('started')\nwhile True: pass");
    run.next().await.unwrap();
    drop(run);
    assert_eq!(session.state(), SessionState::Abandoned);
    assert_eq!(session.run("1").await.unwrap_err().kind(), ErrorKind::Closed);
}

#[tokio::test]
async fn a_dropped_session_ends_its_thread() {
    // Only the guest's reader holds this end of the pipe.
    let (reader, writer) = std::io::pipe().unwrap();
    let mut session = session().await;
    let cell = Cell::new("print('started')\nwhile True: pass");
    let mut run = session.run_streaming(cell.stdin(isolet::Stdin::from_reader(reader)));
    run.next().await.unwrap();
    drop(run);
    drop(session);
    let (mut writer, (ended, told)) = (writer, std::sync::mpsc::channel());
    std::thread::spawn(move || {
        while std::io::Write::write_all(&mut writer, &[0; 4096]).is_ok() {}
        ended.send(()).unwrap();
    });
    // Long enough that only a hang reaches it.
    told.recv_timeout(std::time::Duration::from_mins(1)).expect("the thread has not ended");
}

#[tokio::test]
async fn a_kill_does_not_disturb_a_session_beside_it() {
    let killed = async {
        for _ in 0..3 {
            killed("sum(range(10 ** 12))").await;
        }
    };
    let disturbed = async {
        let mut session = session().await;
        for i in 0..10 {
            let code = format!("import time\nfor _ in range(100): time.sleep(0.001)\n{i}");
            assert_eq!(eval(&mut session, code).await, Value::Int(i));
        }
        assert_eq!(session.state(), SessionState::Ready);
    };
    tokio::join!(killed, disturbed);
}
