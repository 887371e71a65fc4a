//! Tests of deterministic sessions: what a program takes from chance, time and the order of things
//! is the same each time.

use std::time::{Duration, Instant, SystemTime};

use isolet::{
    Isolation, Limits, Outcome, Param, Permissions, Sandbox, SandboxBuilder, Termination, Tool,
    ToolSpec, Value,
};

use crate::util::{self, Scratch, engine, exec};
use isolet_test_support::server::{Response, Server};

fn start_time() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_hours(500_000)
}

fn builder(seed: u64) -> SandboxBuilder {
    util::builder().deterministic(seed, start_time())
}

/// What a program prints in a new session of this sandbox.
async fn printed(sandbox: &Sandbox, program: &str) -> String {
    let mut session = sandbox.session().await.unwrap();
    exec(&mut session, program).await.stdout().to_owned()
}

const CHANCE_AND_TIME: &str = "
import asyncio, os, random, secrets, tempfile, threading, time, uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
print(random.random(), os.urandom(8).hex(), secrets.token_hex(4), uuid.uuid4(), uuid.uuid1())
print(time.time(), time.monotonic(), time.perf_counter_ns(), time.process_time(), datetime.now())
class Thing: pass
things = {Thing() for _ in range(50)}
print([id(thing) for thing in things], hash('text'), len({object() for _ in range(9)}))
print(tempfile.mkdtemp(), os.stat(tempfile.mkdtemp()).st_mtime)
order = []
def work(n):
    for step in range(3):
        time.sleep(random.random())
        order.append((n, step, time.monotonic()))
with ThreadPoolExecutor(4) as pool: list(pool.map(work, range(6)))
async def task(n):
    await asyncio.sleep(random.random())
    order.append((n, time.time()))
async def main():
    await asyncio.gather(*(task(n) for n in range(9)))
    try: await asyncio.wait_for(asyncio.sleep(99), 0.5)
    except TimeoutError: order.append('timeout')
asyncio.run(main())
print(order)
import js
print(js.Math.random(), js.Date.now(), js.Date.new().toISOString(), js.performance.now())
start = time.perf_counter()
while time.perf_counter() - start < 0.01: pass
print(sum(i * i for i in range(100_000)), time.perf_counter())
";

#[tokio::test]
async fn chance_and_time_depend_on_the_seed_and_the_start() {
    let sandbox = builder(7).build().unwrap();
    let first = printed(&sandbox, CHANCE_AND_TIME).await;
    assert_eq!(first, printed(&sandbox, CHANCE_AND_TIME).await);
    let other = printed(&builder(8).build().unwrap(), CHANCE_AND_TIME).await;
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let (first, other) = (lines(&first), lines(&other));
    for (line, other) in first.iter().zip(&other) {
        if line.contains("1800000000") || line.contains("2027-01-15") || line.starts_with('[') {
            continue;
        }
        assert_ne!(line, other, "the seed matters");
    }
    assert!(first[1].starts_with("1800000000.0"), "{}", first[1]);
    let later = util::builder().deterministic(7, start_time() + Duration::from_secs(5));
    let later = lines(&printed(&later.build().unwrap(), CHANCE_AND_TIME).await);
    assert!(later[1].starts_with("1800000005.0"), "{}", later[1]);
    assert_eq!(
        first[0].split(' ').take(3).collect::<Vec<_>>(),
        later[0].split(' ').take(3).collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn waits_take_no_time_and_move_the_clock() {
    let sandbox = builder(7).build().unwrap();
    let started = Instant::now();
    let code = "
import asyncio, queue, threading, time
start = time.monotonic()
time.sleep(3600)
asyncio.run(asyncio.sleep(3600))
threading.Event().wait(3600)
try: queue.Queue().get(timeout=3600)
except queue.Empty: pass
await asyncio.sleep(3600)
print(round(time.monotonic() - start))";
    assert_eq!(printed(&sandbox, code).await, "18000\n");
    assert!(started.elapsed() < Duration::from_hours(1));
}

/// A tool that answers after so many milliseconds, each time other ones.
fn slow(name: &str, delays: &'static [u64]) -> Tool {
    let spec = ToolSpec::new(name).param(Param::new("n"));
    Tool::from_handler(spec, move |args, _| async move {
        let n = args.get("n").and_then(Value::as_i64).unwrap_or_default();
        let delay = delays[usize::try_from(n).unwrap_or_default() % delays.len()];
        tokio::time::sleep(Duration::from_millis(delay)).await;
        Ok(n.into())
    })
}

#[tokio::test]
async fn answers_of_tools_come_in_the_order_of_the_calls() {
    let code = "
import asyncio, threading, time
order = []
async def call(n):
    order.append((await search.aio(n), time.monotonic()))
async def ticks():
    for n in range(3):
        await asyncio.sleep(0.001)
        order.append(('tick', n))
async def main():
    await asyncio.gather(*(call(n) for n in range(6)), ticks())
    try: order.append(await asyncio.wait_for(search.aio(0), 0.001))
    except TimeoutError: order.append('no time passes while a tool is called')
asyncio.run(main())
def thread(n): order.append((n, search(n)))
threads = [threading.Thread(target=thread, args=(n,)) for n in range(6)]
for t in threads: t.start()
for t in threads: t.join()
print(order, search(3), time.monotonic())";
    let mut outputs = Vec::new();
    for delays in [&[30, 1, 20, 2, 10, 3], &[1, 30, 2, 20, 3, 10]] {
        let sandbox = builder(7).tool(slow("search", delays)).build().unwrap();
        outputs.push(printed(&sandbox, code).await);
    }
    assert_eq!(outputs[0], outputs[1]);
    assert!(outputs[0].contains("[(0, "), "{}", outputs[0]);
    assert!(!outputs[0].contains("no time passes"), "{}", outputs[0]);
}

#[tokio::test]
async fn each_wait_that_nothing_will_end_is_an_error() {
    let code = "
import threading, time
for wait in (threading.Lock(), threading.Semaphore(0), threading.Lock()):
    time.sleep(0.1)
    if hasattr(wait, 'locked'): wait.acquire()
    try: wait.acquire()
    except RuntimeError as error: print(str(error)[:8])";
    assert_eq!(printed(&builder(7).build().unwrap(), code).await, "deadlock\n".repeat(3));
}

#[tokio::test]
async fn servers_are_waited_for_in_real_time() {
    let server = Server::start(|request| {
        if request.path == "/slow" {
            std::thread::sleep(Duration::from_millis(200));
        }
        Response(200, Vec::new(), request.path.clone().into_bytes())
    });
    let url = server.url("");
    let permissions = Permissions::none().allow_net(&server.rule()).unwrap();
    let sandbox = builder(7).permissions(permissions).build().unwrap();
    let code = format!(
        "import asyncio, time, urllib.request
def get(path): return urllib.request.urlopen({url:?} + path).read().decode()
start = time.monotonic()
print(get('/a'), get('/slow'), time.monotonic() - start >= 0.15)
async def main():
    slow = asyncio.create_task(asyncio.to_thread(get, '/slow'))
    ticks = 0
    while not slow.done():
        await asyncio.sleep(0.01)
        ticks += 1
    print(await slow, 5 < ticks < 100)
asyncio.run(main())"
    );
    assert_eq!(printed(&sandbox, &code).await, "/a /slow True\n/slow True\n");
}

#[tokio::test]
async fn an_alarm_comes_at_the_same_step_of_a_program_that_computes() {
    let code = "
import signal
class Late(Exception): pass
def late(*_): raise Late
signal.signal(signal.SIGALRM, late)
signal.setitimer(signal.ITIMER_REAL, 0.02)
steps = 0
try:
    while True: steps += 1
except Late: print(steps)";
    let sandbox = builder(7).build().unwrap();
    let steps = printed(&sandbox, code).await;
    assert_eq!(steps, printed(&sandbox, code).await);
    assert!(steps.trim().parse::<u64>().unwrap() > 1000, "{steps}");
}

#[tokio::test]
async fn limits_and_interrupts_hold_as_in_other_sessions() {
    let limits = Limits::default().max_run_time(Duration::from_millis(300));
    let sandbox = builder(7).limits(limits).build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    for code in [
        "while True: pass",
        "import asyncio; await asyncio.Future()",
        "import asyncio\nwhile True: await asyncio.sleep(0)",
        "import asyncio\nwhile True: await asyncio.sleep(1)",
        "import time\nwhile True: time.sleep(1)",
        "import os; os.system('while :; do sleep 1; done')",
    ] {
        let ran = session.run(code).await.unwrap();
        assert!(matches!(ran.outcome(), Outcome::Terminated(_)), "{code}: {ran:?}");
        assert!(ran.session_alive(), "{code}");
    }
    assert_eq!(util::eval(&mut session, "6 * 7").await, 42.into());
    let sandbox = Sandbox::builder(engine()).deterministic(7, start_time()).build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    let handle = session.interrupt_handle();
    let mut run =
        session.run_streaming("import asyncio\nprint('waits', flush=True)\nawait asyncio.Future()");
    let mut output = run.take_output().unwrap();
    let interrupt = async {
        assert!(util::output(output.next().await.unwrap()).bytes.starts_with(b"waits"));
        handle.interrupt();
    };
    let (execution, ()) = tokio::join!(run.finish(), interrupt);
    let execution = execution.unwrap();
    assert_eq!(
        *execution.outcome(),
        Outcome::Terminated(Termination::Interrupted),
        "{execution:?}"
    );
}

const DRAW: &str = "
import os, random, time
print(random.random(), os.urandom(4).hex(), time.time(), time.monotonic())";

#[tokio::test]
async fn a_session_that_was_saved_goes_on_as_it_would_have() {
    let dir = Scratch::new("determinism");
    let (file, sandbox) = (dir.path().join("session"), builder(7).build().unwrap());
    let mut session = sandbox.session().await.unwrap();
    exec(&mut session, DRAW).await;
    session.save(&file).await.unwrap();
    let expected = exec(&mut session, DRAW).await.stdout().to_owned();
    let restore = async |sandbox: Sandbox| {
        let mut session = sandbox.restore(&file).await.unwrap();
        exec(&mut session, DRAW).await.stdout().to_owned()
    };
    assert_eq!(restore(sandbox).await, expected);
    assert_eq!(restore(util::builder().build().unwrap()).await, expected, "by the file alone");
    // With another seed all chance is another one from there on, and the clock goes on.
    let others =
        [restore(builder(8).build().unwrap()).await, restore(builder(8).build().unwrap()).await];
    assert_eq!(others[0], others[1]);
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let (other, expected) = (words(&others[0]), words(&expected));
    assert!(other[0] != expected[0] && other[1] != expected[1], "{other:?}");
    assert_eq!(other[2][..12], expected[2][..12]);
    // A session that was none becomes one, whose monotonic clock does not go back.
    let mut plain = util::session().await;
    exec(&mut plain, "import time; before = time.monotonic()").await;
    plain.save(&file).await.unwrap();
    let mut session = builder(7).build().unwrap().restore(&file).await.unwrap();
    let code = "now = time.monotonic(); now - before, time.time() - 1.8e9 - now";
    let found = util::eval(&mut session, code).await;
    let ahead: Vec<f64> = found.as_list().unwrap().iter().map(|t| t.as_f64().unwrap()).collect();
    assert!((0.0..60.0).contains(&ahead[0]) && ahead[1].abs() < 0.1, "{ahead:?}");
}

/// The file is not trusted, and its digest can be made right.
#[tokio::test]
async fn a_saved_order_that_was_changed_is_refused_or_none() {
    let dir = Scratch::new("determinism-changed");
    let (file, sandbox) = (dir.path().join("session"), builder(7).build().unwrap());
    sandbox.session().await.unwrap().save(&file).await.unwrap();
    let whole = std::fs::read(&file).unwrap();
    let contents = whole.len() - 32;
    let key = b"\"order\":\"7 ";
    let at = whole.windows(key.len()).position(|bytes| bytes == key).unwrap();
    for (change, is_refused) in [(b"\"order\":\"x ", true), (b"\"orfer\":\"7 ", false)] {
        let mut changed = whole.clone();
        changed[at..at + change.len()].copy_from_slice(change);
        let digest = *blake3::hash(&changed[..contents]).as_bytes();
        changed[contents..].copy_from_slice(&digest);
        std::fs::write(&file, changed).unwrap();
        match util::builder().build().unwrap().restore(&file).await {
            Ok(mut session) => {
                assert!(!is_refused);
                exec(&mut session, "import asyncio; await asyncio.sleep(0.01)").await;
            }
            Err(error) => assert!(is_refused, "{error}"),
        }
    }
}

/// As CPython does, a copy seeds `random` anew, from what is there for all of them.
#[tokio::test]
async fn copies_of_a_session_go_on_alike() {
    if util::isolation() == Isolation::Thread {
        return;
    }
    let sandbox = builder(7).forkable(3).build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    exec(&mut session, DRAW).await;
    let mut copies = [session.fork().await.unwrap(), session.fork().await.unwrap()];
    let mut drawn = Vec::new();
    for copy in &mut copies {
        drawn.push(exec(copy, DRAW).await.stdout().to_owned());
    }
    assert_eq!(drawn[0], drawn[1]);
}

#[tokio::test]
async fn a_weak_reference_of_javascript_does_not_depend_on_when_garbage_is_collected() {
    let mut session = builder(7).build().unwrap().session().await.unwrap();
    let program = "
from pyodide.code import run_js
weak = run_js('new WeakRef({ found: 7 })')
run_js('for (let i = 0; i < 300; i++) new Array(100000).fill(i)')
print(weak.deref().found, run_js('String(new WeakRef({}))'))
for value in ('1', 'null', 'Symbol.for(\"a\")'):
    try: run_js(f'new WeakRef({value})')
    except Exception as error: print(str(error).splitlines()[0])
";
    let printed = exec(&mut session, program).await.stdout().to_owned();
    let expected = "TypeError: invalid value used in WeakRef\n".repeat(3);
    assert_eq!(printed, format!("7 [object WeakRef]\n{expected}"));
}
