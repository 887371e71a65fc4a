//! A15, A16: guest code that runs when objects are inspected or destroyed, and guests that undo our
//! Python.

use std::net::TcpListener;
use std::time::Duration;

use isolet::{Limits, Outcome, Termination, Value};

use super::util::{CANARY, amount, with_log};
use crate::util::{Scratch, builder, exec};

/// A15: guest code that runs when the guest's objects are inspected runs within the same deadline.
#[tokio::test]
async fn hooks_run_within_the_deadline() {
    let hooks = [
        "class A:\n    def __repr__(self):\n        while True: pass\nA()",
        "class A(str):\n    def __str__(self):\n        while True: pass\n    __repr__ = __str__\nraise ValueError(A())",
        "class A(Exception):\n    def __str__(self):\n        while True: pass\nraise A",
        "import collections\nclass A(collections.UserDict):\n    def keys(self):\n        while True: pass\n    \
         __iter__ = keys\nA(x=1)",
        "class A:\n    def __del__(self):\n        while True: pass\nA(); None",
        "class M(type):\n    def __getattribute__(s, n):\n        while True: pass\nclass A(metaclass=M): pass\nA()",
        "import sys\nclass A:\n    def flush(self):\n        while True: pass\nsys.stdout = A()",
        "from pyodide.code import run_js\nrun_js('throw { get stack() { for (;;); }, toString() { for (;;); } }')",
        "from pyodide.code import run_js\nrun_js('Error.prepareStackTrace = () => { for (;;); }; nosuch')",
        "from pyodide.code import run_js\nrun_js('Promise.reject({ get stack() { for (;;); } })')\n\
         import asyncio\nawait asyncio.sleep(60)",
    ];
    let limits = Limits::default().max_run_time(Duration::from_secs(1));
    let sandbox = builder().limits(limits).build().unwrap();
    for hook in hooks {
        let execution = sandbox.session().await.unwrap().run(hook).await.unwrap();
        let outcome = execution.outcome();
        assert!(
            matches!(outcome, Outcome::Terminated(Termination::Deadline { .. })),
            "{hook}: {execution:?}"
        );
    }
}

/// A15: no guest code runs after the end of its session.
#[tokio::test]
async fn no_hook_runs_at_the_end_of_a_session() {
    let (builder, log) = with_log();
    let sandbox = builder.build().unwrap();
    let hooks = "
import asyncio, atexit, weakref
class A:
    def __del__(self): rob(1)
a = A()
weakref.finalize(a, rob, 2)
atexit.register(rob, 3)
asyncio.get_event_loop().call_later(0, lambda: rob(4))
from pyodide.code import run_js
from pyodide.ffi import create_proxy
run_js('(f) => { new FinalizationRegistry(f).register({}, 5); setTimeout(f, 0, 6) }')(create_proxy(rob))
";
    let mut session = sandbox.session().await.unwrap();
    exec(&mut session, hooks).await;
    drop(session);
    // Another session, from start to end, gives the first one's thread enough time.
    sandbox.run("pay(1)").await.unwrap();
    assert_eq!(log.take(), [("pay".to_owned(), amount(1))]);
}

/// Tries Python's ways to the host, and prints the exception of each.
const PROBES: &str = "
import importlib
def probe(action):
    try: return repr(action())
    except BaseException as error: return type(error).__name__
def connect():
    import socket
    with socket.socket() as s:
        s.connect(server)
        s.send(b'stolen')
        return s.recv(1)
async def fetch():
    import js
    await js.fetch('http://%s:%d/' % server)
probes = [probe(action) for action in (
    lambda: open(file).read(),
    lambda: __import__('os').listdir(file.rpartition('/')[0]),
    lambda: canary in str(__import__('os').environ),
    lambda: __import__('os').system('touch ' + file + '.stolen') == 0,
    lambda: __import__('subprocess').run(['touch', file + '.stolen']).returncode == 0,
    lambda: __import__('os').fork(),
    lambda: __import__('ctypes').CDLL('libc.so.6').system(f'touch {file}.stolen'.encode()) == 0,
)]
probe(connect)
try: await fetch()
except BaseException as error: probes.append(type(error).__name__)
probes
";

/// A16: a guest that reverts all conveniences of our Python is allowed no more than before.
#[tokio::test]
async fn undoing_every_nicety_changes_no_verdict() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let scratch = Scratch::new("undone");
    let file = scratch.file("canary.txt", CANARY);
    let undo = "
import asyncio, gc, importlib, sys, time, types
from pyodide import webloop
asyncio.run, time.sleep = webloop._orig_run, webloop._orig_sleep
asyncio.set_event_loop_policy(webloop.WebLoopPolicy())
for finder in list(sys.meta_path):
    if '_isolet' in type(finder).__module__: sys.meta_path.remove(finder)
# Whatever holds a function of ours gets the one of a freshly loaded module, or nothing.
gc.unfreeze()
# Without these no cell is run any more, or no probe gets as far as what it tries.
needed = ('session', 'values', 'errors', 'variables', 'waits', 'programs', 'threads', 'locks', 'thread_data', 'errnos', 'cells')
ours = [d for d in gc.get_objects() if type(d) is dict and str(d.get('__name__', '')).startswith('_isolet_')]
for d in ours:
    for name in [n for n in d if not n.startswith('__') and isinstance(d[n], (types.FunctionType, type))]:
        if d['__name__'].removeprefix('_isolet_') not in needed:
            d[name] = lambda *a, **k: None
for name in ('socket', 'ssl', 'http.client', 'urllib.request', 'subprocess', 'os', 'io', 'posixpath', 'selectors'):
    try: importlib.reload(importlib.import_module(name))
    except Exception: pass
";
    let sandbox = builder().build().unwrap();
    let mut outcomes = Vec::new();
    for first in ["", undo] {
        let mut session = sandbox.session().await.unwrap();
        session.set("file", file.as_str()).await.unwrap();
        session.set("canary", CANARY).await.unwrap();
        session.set("address", address.to_string()).await.unwrap();
        exec(&mut session, "server = ('127.0.0.1', int(address.rpartition(':')[2]))").await;
        let _ = session.run(first).await.unwrap();
        let execution = session.run(PROBES).await.unwrap();
        outcomes.push(execution.value().cloned());
    }
    for outcome in outcomes {
        let Some(Value::List(probes)) = outcome else { panic!("there is no outcome") };
        assert_eq!(probes.len(), 8, "{probes:?}");
        for probe in &probes {
            let probe = probe.as_str().unwrap();
            let failed = probe.ends_with("Error") || probe == "JsException" || probe == "False";
            assert!(failed, "{probes:?}");
        }
    }
    server.set_nonblocking(true).unwrap();
    assert!(server.accept().is_err(), "a server was reached");
    assert!(!std::path::Path::new(&format!("{file}.stolen")).exists(), "a process ran");
}
