//! Tests of interrupts: the run ends with `KeyboardInterrupt`, and the session survives.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use isolet::{
    Cell, Execution, InterruptHandle, Limits, Outcome, Session, SessionState, Termination, Tool,
    ToolError, ToolSpec, Value,
};

use crate::util::{builder, eval, exec, session};

/// The guest's signal that it is ready: a single write, after which an interrupt may arrive.
const READY: &str = r"__import__('sys').stdout.write('ready\n')";

/// Runs `code`, which signals when it is ready, and then interrupts it.
async fn interrupted(session: &mut Session, code: &str) -> Execution {
    let handle = session.interrupt_handle();
    let mut run = session.run_streaming(code);
    run.next().await.unwrap();
    handle.interrupt();
    run.finish().await.unwrap()
}

/// Runs endless code, interrupts it, and checks that the session is unaffected.
async fn is_interrupted(code: &str) {
    let mut session = session().await;
    exec(&mut session, "x = 41").await;
    let code = if code.contains("READY") {
        format!("x += 1\n{}", code.replace("READY", READY))
    } else {
        format!("x += 1\n{READY}\n{code}")
    };
    let execution = interrupted(&mut session, &code).await;
    assert_eq!(
        *execution.outcome(),
        Outcome::Terminated(Termination::Interrupted),
        "{execution:?}"
    );
    assert_eq!(execution.stdout(), "ready\n");
    assert!(execution.session_alive());
    assert_eq!(session.state(), SessionState::Ready);
    assert_eq!(eval(&mut session, "x").await, Value::Int(42));
}

macro_rules! interruptible {
    ($($name:ident: $code:expr,)*) => {$(
        #[tokio::test]
        async fn $name() {
            is_interrupted($code).await;
        }
    )*};
}

interruptible! {
    a_busy_loop_is_interrupted: "while True: pass",
    a_sleep_is_interrupted: "import time\ntime.sleep(1000)",
    an_await_is_interrupted: "import asyncio\nawait asyncio.sleep(1000)",
    an_await_of_nothing_is_interrupted: "import asyncio\nawait asyncio.Future()",
    // An interrupt while Pyodide creates a task would leave the task incomplete, and asyncio's
    // clean-up would fail.
    an_asyncio_run_is_interrupted:
        "import asyncio\nasync def main():\n    READY\n    await asyncio.sleep(1000)\nasyncio.run(main())",
    a_task_group_is_interrupted:
        "import asyncio\nasync with asyncio.TaskGroup() as group:\n    \
         group.create_task(asyncio.sleep(1000))",
    a_loop_of_empty_sleeps_is_interrupted: "import asyncio\nwhile True: await asyncio.sleep(0)",
    a_regex_is_interrupted: "import re\nre.match(r'(a+)+$', 'a' * 60 + 'b')",
    a_join_is_interrupted:
        "import threading, time\nt = threading.Thread(target=time.sleep, args=(1000,))\nt.start()\nt.join()",
    a_lock_is_interrupted: "import threading\nwith (l := threading.Lock()):\n    l.acquire(timeout=1000)",
    a_thread_that_computes_is_interrupted:
        "import threading\ndef spin():\n    while True: pass\nthreading.Thread(target=spin).start()",
    // An interrupt between a wait for a lock and the lock's return is a `RuntimeError`, as in
    // CPython; `submit` has such a wait before the thread starts.
    a_pool_that_computes_is_interrupted:
        "from concurrent.futures import ThreadPoolExecutor\ndef spin():\n    READY\n    while True: pass\n\
         with ThreadPoolExecutor() as pool:\n    pool.submit(spin).result()",
    a_gather_of_futures_is_interrupted:
        "import asyncio\nloop = asyncio.get_running_loop()\n\
         await asyncio.gather(loop.create_future(), loop.create_future())",
    a_gather_with_a_child_that_is_done_is_interrupted:
        "import asyncio\nasync def done(): pass\nawait asyncio.gather(done(), asyncio.sleep(1000))",
    a_repr_is_interrupted: "class A:\n    def __repr__(self):\n        while True: pass\nA()",
}

#[tokio::test]
async fn tasks_that_the_run_waits_for_are_interrupted_and_not_left_behind() {
    let waits =
        ["await asyncio.sleep(1000)", "time.sleep(1000)", "asyncio.run(asyncio.sleep(1000))"];
    let ways = [
        "await asyncio.create_task(task())",
        "await asyncio.gather(task(), task())",
        "await asyncio.wait_for(task(), 10_000)",
        "asyncio.gather(task(), task())",
    ];
    for (wait, way) in waits.iter().flat_map(|wait| ways.iter().map(move |way| (wait, way))) {
        let mut session = session().await;
        let code = format!(
            "import asyncio, time\nasync def task():\n    {READY}\n    while True:\n        \
             try: {wait}\n        except Exception: pass\n{way}"
        );
        let execution = interrupted(&mut session, &code).await;
        let interrupted = Outcome::Terminated(Termination::Interrupted);
        assert_eq!(*execution.outcome(), interrupted, "{wait} {way}");
        let code = "import asyncio\nfor _ in range(5): await asyncio.sleep(0)\n\
                    [t.get_coro().__name__ for t in asyncio.all_tasks() if t.get_coro().__name__ == 'task']";
        let left = eval(&mut session, code).await;
        assert_eq!(left, Value::List(Vec::new()), "{wait} {way}");
    }
}

/// A task that takes time to end, in a blocking call, has received the interrupt as well.
#[tokio::test]
async fn an_interrupt_that_ends_a_task_after_the_run_ends_nothing_else() {
    let mut session = session().await;
    let code = format!(
        "import asyncio\nbegun, last = asyncio.Event(), asyncio.Event()\n\
         async def slow():\n    begun.set()\n    try: await asyncio.sleep(1000)\n    \
         finally: await last.wait()\n\
         async def blocks(): asyncio.run(slow())\n\
         async def quick():\n    await begun.wait()\n    {READY}\n    await asyncio.sleep(1000)\n\
         tasks = [asyncio.ensure_future(blocks()), asyncio.ensure_future(quick())]\n\
         await asyncio.gather(*tasks)"
    );
    let execution = interrupted(&mut session, &code).await;
    assert_eq!(*execution.outcome(), Outcome::Terminated(Termination::Interrupted));
    let next = "still_there = not tasks[0].done()\nlast.set()\n\
                while not tasks[0].done(): await asyncio.sleep(0)\n\
                still_there, type(tasks[0].exception()).__name__";
    let expected = vec![Value::Bool(true), Value::from("KeyboardInterrupt")];
    assert_eq!(eval(&mut session, next).await, Value::List(expected));
}

#[tokio::test]
async fn a_future_that_is_the_last_value_can_be_interrupted() {
    let mut session = session().await;
    let code = format!("import asyncio\n{READY}\nasyncio.get_running_loop().create_future()");
    let execution = interrupted(&mut session, &code).await;
    assert_eq!(*execution.outcome(), Outcome::Terminated(Termination::Interrupted));
    assert_eq!(eval(&mut session, "1 + 1").await, Value::Int(2));
}

#[tokio::test]
async fn tasks_that_wait_for_each_other_can_be_interrupted() {
    let circle = "tasks = {}\nasync def wait(name): await tasks[name]\n\
                  tasks['one'] = asyncio.create_task(wait('other'))\n\
                  last = tasks['other'] = asyncio.create_task(wait('one'))";
    let chain = "async def wait(task): await task\nlast = asyncio.create_task(asyncio.sleep(1000))\n\
                 for _ in range(3000): last = asyncio.create_task(wait(last))";
    for tasks in [circle, chain] {
        let mut session = session().await;
        let code =
            format!("import asyncio\n{tasks}\nawait asyncio.sleep(0.01)\n{READY}\nawait last");
        let execution = interrupted(&mut session, &code).await;
        assert_eq!(*execution.outcome(), Outcome::Terminated(Termination::Interrupted), "{tasks}");
        assert_eq!(eval(&mut session, "1 + 1").await, Value::Int(2), "{tasks}");
    }
}

#[tokio::test]
async fn a_guest_that_catches_the_interrupt_goes_on() {
    let codes =
        ["while True: pass", "import time\n    time.sleep(1000)", "await asyncio.sleep(1000)"];
    for code in codes {
        let mut session = session().await;
        let code = format!(
            "import asyncio\ntry:\n    {READY}\n    {code}\nexcept KeyboardInterrupt:\n    \
             print('caught')\n'done'"
        );
        let execution = interrupted(&mut session, &code).await;
        assert_eq!(execution.value(), Some(&Value::from("done")), "{code}: {execution:?}");
        assert_eq!(execution.stdout(), "ready\ncaught\n");
    }
}

#[tokio::test]
async fn an_interrupted_guest_cleans_up() {
    let mut session = session().await;
    let code = format!("try:\n    {READY}\n    while True: pass\nfinally:\n    print('cleaned')");
    let execution = interrupted(&mut session, &code).await;
    assert_eq!(*execution.outcome(), Outcome::Terminated(Termination::Interrupted));
    assert_eq!(execution.stdout(), "ready\ncleaned\n");
}

#[tokio::test]
async fn an_interrupt_without_a_run_does_nothing_to_the_next() {
    let mut session = session().await;
    let handle = session.interrupt_handle();
    for code in ["sum(range(100_000))", "input", "await asyncio.sleep(0.01)", "time.sleep(0.01)"] {
        exec(&mut session, "import asyncio, time").await;
        handle.interrupt();
        exec(&mut session, code).await;
    }
    handle.interrupt();
    let cell = Cell::new("input()").stdin(isolet::Stdin::from_bytes("a\n"));
    assert_eq!(eval(&mut session, cell).await, Value::from("a"));
}

#[tokio::test]
async fn a_run_whose_flag_is_set_is_interrupted_as_it_begins() {
    let mut session = session().await;
    let flag = Arc::new(AtomicBool::new(true));
    for code in ["while True: pass", "import asyncio\nawait asyncio.sleep(1000)", "input()"] {
        let cell = Cell::new(code).interrupt_flag(Arc::clone(&flag));
        let execution = session.run(cell).await.unwrap();
        assert_eq!(
            *execution.outcome(),
            Outcome::Terminated(Termination::Interrupted),
            "{execution:?}"
        );
    }
    let cell = Cell::new("42").interrupt_flag(Arc::new(AtomicBool::new(false)));
    assert_eq!(eval(&mut session, cell).await, Value::Int(42));
}

#[tokio::test]
async fn an_interrupt_of_a_closed_session_does_nothing() {
    let handle: InterruptHandle = {
        let session = session().await;
        session.interrupt_handle()
    };
    handle.interrupt();
    assert_eq!(eval(&mut session().await, "1").await, Value::Int(1));
}

#[tokio::test]
async fn a_session_can_be_interrupted_many_times() {
    let mut session = session().await;
    for _ in 0..5 {
        for code in ["while True: pass", "import asyncio\nawait asyncio.sleep(1000)"] {
            let execution = interrupted(&mut session, &format!("{READY}\n{code}")).await;
            assert_eq!(*execution.outcome(), Outcome::Terminated(Termination::Interrupted));
        }
    }
    assert_eq!(eval(&mut session, "1").await, Value::Int(1));
}

#[tokio::test]
async fn an_interrupt_reaches_only_its_own_session() {
    let mut one = session().await;
    let mut other = session().await;
    let beside =
        async { eval(&mut other, "import time\nfor _ in range(50): time.sleep(0.001)\n1").await };
    let code = format!("{READY}\nwhile True: pass");
    let (execution, value) = tokio::join!(interrupted(&mut one, &code), beside);
    assert_eq!(*execution.outcome(), Outcome::Terminated(Termination::Interrupted));
    assert_eq!(value, Value::Int(1));
}

/// Pyodide's function that wakes an `await` of a promise, in which no interrupt may be raised.
#[tokio::test]
async fn an_interrupt_while_a_wait_ends_is_not_lost() {
    let waits = [
        "time.sleep(0.001)",
        "await asyncio.sleep(0.001)",
        "await run_js('Promise.resolve(1)')",
        "run_sync(run_js('Promise.resolve(1)'))",
        "run_sync(run_js('Promise.reject(1)'))",
        "await asyncio.create_task(task())",
    ];
    for wait in waits {
        let mut session = session().await;
        let code = format!(
            "import _pyodide._future_helper as helper, asyncio, sys, time\n\
             from pyodide.code import run_js\nfrom pyodide.ffi import run_sync\n\
             async def task(): await run_js('Promise.resolve(1)')\n\
             def set_result(future, value):\n    {READY}\n    \
             for _ in range(1_000_000): pass\n    future.set_result(value)\n\
             def set_exception(future, value):\n    {READY}\n    \
             for _ in range(1_000_000): pass\n    future.set_exception(value)\n\
             helper.set_result.__code__ = set_result.__code__\n\
             helper.set_exception.__code__ = set_exception.__code__\n\
             {wait}\n\
             {READY}\nwhile True: pass"
        );
        let execution = interrupted(&mut session, &code).await;
        let expected = Outcome::Terminated(Termination::Interrupted);
        assert_eq!(*execution.outcome(), expected, "{wait}: {execution:?}");
        assert!(execution.stdout().lines().all(|line| line == "ready"), "{wait}: {execution:?}");
    }
}

#[tokio::test]
async fn an_interrupt_at_any_moment_around_an_answer_is_not_lost() {
    const DELAYS: u64 = 400;
    const RUNS: usize = 2000;
    let (sender, calls) = mpsc::channel();
    let tool = Tool::from_handler(ToolSpec::new("begin"), move |_, _| {
        let told = sender.send(());
        async move { told.map(|()| Value::None).map_err(|_| ToolError::new("RuntimeError", "gone")) }
    });
    let limits = Limits::default().max_run_time(Duration::from_secs(10));
    let mut session = builder().limits(limits).tool(tool).build().unwrap().session().await.unwrap();
    let handle = session.interrupt_handle();
    let interrupting = thread::spawn(move || {
        for (delay, ()) in (0..DELAYS).map(Duration::from_micros).cycle().zip(calls).take(RUNS) {
            let begun = Instant::now();
            while begun.elapsed() < delay {
                std::hint::spin_loop();
            }
            handle.interrupt();
        }
    });
    for number in 0..RUNS {
        let execution = session.run("begin()\nwhile True: pass").await.unwrap();
        assert_eq!(
            *execution.outcome(),
            Outcome::Terminated(Termination::Interrupted),
            "{number}: {execution:?}"
        );
    }
    interrupting.join().unwrap();
}
