//! Tests of `signal.alarm` and `signal.setitimer`: the handler is called wherever the program is.

use std::time::Duration;

use isolet::{Cell, Limits, Outcome, Termination, Value};

use crate::util::{eval, exec, raised, sandbox, session};

const TIME_LIMIT: &str = "
import asyncio, contextlib, queue, signal, threading, time
class TimeoutException(Exception): pass
@contextlib.contextmanager
def time_limit(seconds):
    def handler(number, frame): raise TimeoutException(f'{number} {frame is not None}')
    signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.signal(signal.SIGALRM, handler)
    try: yield
    finally: signal.setitimer(signal.ITIMER_REAL, 0)
async def forever(): await asyncio.sleep(1000)
async def blocked(): time.sleep(1000)
async def busy():
    while True: pass
def thread():
    t = threading.Thread(target=time.sleep, args=(0.3,)); t.start(); t.join(); time.sleep(1000)
";

#[tokio::test]
async fn a_time_limit_ends_whatever_the_program_does_and_the_session_lives() {
    let mut session = session().await;
    exec(&mut session, TIME_LIMIT).await;
    for code in [
        "while True: pass",
        "import re; re.match(r'(a+)+$', 'a' * 60 + 'b')",
        "10 ** 10 ** 8",
        "time.sleep(1000)",
        "asyncio.run(forever())",
        "asyncio.run(blocked())",
        "asyncio.run(busy())",
        "queue.Queue().get()",
        "thread()",
        "await forever()",
        "await asyncio.gather(forever(), forever())",
        "await blocked()",
        "await busy()",
    ] {
        let code = format!(
            "try:\n    with time_limit(0.02):\n        {code}\nexcept TimeoutException as error:\n    \
             caught = str(error)\ncaught"
        );
        assert_eq!(eval(&mut session, &*code).await, Value::from("14 True"), "{code}");
        exec(&mut session, "del caught").await;
    }
    // One that comes to nothing, and the whole of what CPython tells about them.
    let code = "with time_limit(100): pass\n\
                before = signal.alarm(7), signal.alarm(0), signal.getitimer(signal.ITIMER_REAL)\n\
                before, signal.setitimer(signal.ITIMER_REAL, 5, 2)";
    let list = |items: Vec<Value>| Value::List(items);
    let pair = || list(vec![0.0.into(), 0.0.into()]);
    let before = list(vec![0.into(), 7.into(), pair()]);
    assert_eq!(eval(&mut session, code).await, list(vec![before, pair()]));
    // An alarm ends with its run.
    let code = "signal.getitimer(signal.ITIMER_REAL)";
    assert_eq!(eval(&mut session, code).await, pair());
    let error = raised(&mut session, "signal.setitimer(signal.ITIMER_PROF, 1)").await;
    assert!(error.message.contains("use ITIMER_REAL"), "{error:?}");
}

#[tokio::test]
async fn a_handler_that_returns_lets_the_program_go_on_and_may_be_called_again() {
    let mut session = session().await;
    let code = "
import asyncio, signal, time
calls = []
signal.signal(signal.SIGALRM, lambda number, frame: calls.append(number))
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
start = time.monotonic()
time.sleep(0.05)
slept = time.monotonic() - start >= 0.05
while len(calls) < 4: pass
asyncio.run(asyncio.sleep(0.02))
await asyncio.sleep(0.02)
signal.alarm(0)
slept and set(calls) == {14}";
    assert_eq!(eval(&mut session, code).await, Value::Bool(true));
    let code = "signal.signal(signal.SIGALRM, signal.SIG_IGN)\nsignal.setitimer(0, 0.005)\n\
                time.sleep(0.02)\nsignal.getsignal(signal.SIGALRM).name";
    assert_eq!(eval(&mut session, code).await, "SIG_IGN".into());
    // Without a handler it ends the program, with the status that a shell would tell.
    let code = "signal.signal(signal.SIGALRM, signal.SIG_DFL)\nsignal.setitimer(0, 0.005)\n\
                while True: pass";
    let execution = session.run(code).await.unwrap();
    assert_eq!(*execution.outcome(), Outcome::Exited(142), "{execution:?}");
}

#[tokio::test]
async fn an_alarm_moves_no_deadline() {
    let limits = Limits::default().max_run_time(Duration::from_secs(1));
    let mut session = sandbox(limits).session().await.unwrap();
    let code = "import signal, time\n\
                signal.signal(signal.SIGALRM, lambda *_: None)\n\
                signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)\n";
    for endless in ["while True: pass", "while True: time.sleep(0.005)", "time.sleep(1000)"] {
        let execution = session.run(Cell::new(format!("{code}{endless}"))).await.unwrap();
        let outcome = execution.outcome();
        assert!(
            matches!(outcome, Outcome::Terminated(Termination::Deadline { .. })),
            "{execution:?}"
        );
        assert!(execution.session_alive(), "{endless}");
    }
    assert_eq!(eval(&mut session, "1").await, Value::Int(1));
}
