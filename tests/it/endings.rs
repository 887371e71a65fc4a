//! Tests of the end of a program: it loses nothing that `python` would keep.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use isolet::{
    Cell, ErrorKind, Limits, Mount, Outcome, Permissions, Sandbox, Session, SessionState,
    Termination, Tool, ToolSpec, Value,
};

use crate::util::{Scratch, builder, eval, exec, session};

/// Programs that leave something open, and what is then true of `data`, the bytes of `/data/f`.
const PROGRAMS: [(&str, &str); 35] = [
    ("f = open(p, 'w'); f.write('x' * 10)", "data == b'x' * 10"),
    ("f = open(p, 'wb'); f.write(b'x' * 10)", "data == b'x' * 10"),
    ("open(p, 'w').close(); f = open(p, 'a'); f.write('x')", "data == b'x'"),
    ("f = open(p, 'w+'); f.write('x'); f.seek(0); f.write('y')", "data == b'y'"),
    ("f = open(p, 'w'); f.write('x'); 1 / 0", "data == b'x'"),
    ("import sys; f = open(p, 'w'); f.write('x'); sys.exit(1)", "data == b'x'"),
    ("f = open(p, 'w'); f.write('x'); raise KeyboardInterrupt", "data == b'x'"),
    (
        "import atexit\nf = open(p, 'w'); f.write('x')\natexit.register(lambda: f.write('y'))",
        "data == b'xy'",
    ),
    ("import gzip; f = gzip.open(p, 'wb'); f.write(b'x')", "gzip.decompress(data) == b'x'"),
    ("import gzip; f = gzip.open(p, 'wt'); f.write('x')", "gzip.decompress(data) == b'x'"),
    (
        "import gzip\nraw = open(p, 'wb'); f = gzip.GzipFile(fileobj=raw, mode='wb'); f.write(b'x')",
        "gzip.decompress(data) == b'x'",
    ),
    ("import bz2; f = bz2.open(p, 'wb'); f.write(b'x')", "bz2.decompress(data) == b'x'"),
    ("import lzma; f = lzma.open(p, 'wb'); f.write(b'x')", "lzma.decompress(data) == b'x'"),
    ("import pickle; f = open(p, 'wb'); pickle.dump([1], f)", "pickle.loads(data) == [1]"),
    ("import json; f = open(p, 'w'); json.dump([1], f)", "data == b'[1]'"),
    (
        "import wave\nw = wave.open(p, 'wb'); w.setparams((1, 2, 8000, 0, 'NONE', ''))\n\
         w.writeframes(bytes(20))",
        "wave.open(p).getnframes() == 10",
    ),
    ("import codecs; f = codecs.open(p, 'w', 'utf-16-le'); f.write('x')", "data == b'x\\0'"),
    (
        "import tempfile, os\nf = tempfile.NamedTemporaryFile('w', dir='/data', delete=False)\n\
         f.write('x'); os.rename(f.name, p)",
        "data == b'x'",
    ),
    (
        "import os\nf = os.fdopen(os.open(p, os.O_WRONLY | os.O_CREAT), 'w'); f.write('x')",
        "data == b'x'",
    ),
    ("import pathlib; f = pathlib.Path(p).open('w'); f.write('x')", "data == b'x'"),
    (
        "import contextlib\ns = contextlib.ExitStack(); f = s.enter_context(open(p, 'w'))\n\
         f.write('x')",
        "data == b'x'",
    ),
    (
        "class Log:\n    def __init__(self): self.f = open(p, 'w')\nlog = Log(); log.f.write('x')",
        "data == b'x'",
    ),
    (
        "import threading\nclass T(threading.Thread):\n    def run(self):\n        \
         self.f = open(p, 'w'); self.f.write('x')\nt = T(); t.start(); t.join()",
        "data == b'x'",
    ),
    (
        "import threading, time\ndef late():\n    global f\n    time.sleep(0.01)\n    \
         f = open(p, 'w'); f.write('x')\nthreading.Thread(target=late).start()",
        "data == b'x'",
    ),
    (
        "from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(2)\n\
         f = open(p, 'w'); pool.submit(f.write, 'x')",
        "data == b'x'",
    ),
    (
        "import shelve\ns = shelve.open('/data/shelf'); s['a'] = 1; open(p, 'w').write('x')",
        "sorted(os.listdir('/data')) == ['f', 'shelf'] and shelve.open('/data/shelf')['a'] == 1",
    ),
    ("import csv; w = csv.writer(open(p, 'w', newline='')); w.writerow([1])", "data == b'1\\r\\n'"),
    (
        "import zipfile; z = zipfile.ZipFile(p, 'w'); z.writestr('x', 'y')",
        "zipfile.ZipFile(p).read('x') == b'y'",
    ),
    ("import sys; sys.stdout = open(p, 'w'); print('x')", "data == b'x\\n'"),
    ("def f(): yield open(p, 'w').write('x')\nnext(f())", "data == b'x'"),
    ("files = {'a': [open(p, 'w')]}; files['a'][0].write('x')", "data == b'x'"),
    ("class C: pass\nc = C(); c.me = c; c.f = open(p, 'w'); c.f.write('x')", "data == b'x'"),
    (
        "log = open(p, 'w')\nclass R:\n    def __del__(self): log.write(name)\nr = [R()]\n\
         name = 'x'",
        "data == b'x'",
    ),
    (
        "def numbers():\n    try:\n        yield 1\n    finally:\n        log.write('x')\n\
         log = open(p, 'w'); n = numbers(); next(n)",
        "data == b'x'",
    ),
    (
        "import functools, types, sys\nsys.modules['kept'] = m = types.ModuleType('kept')\n\
         m.f = open(p, 'w'); m.f.write('x')",
        "data == b'x'",
    ),
];

fn sandbox(scratch: &Scratch) -> Sandbox {
    let mount = Mount::read_write(scratch.path()).unwrap();
    let permissions = Permissions::none().mount("/data", mount).unwrap();
    builder().permissions(permissions).build().unwrap()
}

#[tokio::test]
async fn a_program_keeps_what_it_has_written_to_files_that_it_leaves_open() {
    let scratch = Scratch::new("endings");
    let mut session = sandbox(&scratch).session().await.unwrap();
    for (code, check) in PROGRAMS {
        let program = Cell::new(format!("p = '/data/f'\n{code}")).program();
        let ran = session.run(program).await.unwrap();
        let size = fs::metadata(scratch.path().join("f")).map_or(0, |file| file.len());
        assert!(size > 0, "{code}: {ran:?}");
        let check = format!(
            "import bz2, gzip, lzma, os, pickle, shelve, wave, zipfile\np = '/data/f'\n\
             data = open(p, 'rb').read()\nis_kept = {check}\n\
             for name in os.listdir('/data'): os.remove('/data/' + name)\nis_kept"
        );
        assert_eq!(eval(&mut session, &*check).await, Value::Bool(true), "{code}");
    }
}

#[tokio::test]
async fn the_objects_of_a_program_are_deleted_and_the_next_one_begins_anew() {
    let mut session = session().await;
    let code = "
import atexit
class R:
    def __init__(self, name): self.name = name
    def __del__(self): print('del', self.name, word)
    def __repr__(self): return self.name
word = 'w'
r = R('plain')
kept = [R('listed')]
c = R('cyclic'); c.me = c
atexit.register(print, 'atexit')
print('end')
r";
    let execution = session.run(Cell::new(code).program()).await.unwrap();
    let mut lines: Vec<_> = execution.stdout().lines().collect();
    assert_eq!(lines[..2], ["end", "atexit"]);
    lines[2..].sort_unstable();
    assert_eq!(lines[2..], ["del cyclic w", "del listed w", "del plain w"]);
    assert_eq!(execution.stderr(), "");
    assert!(execution.locals().iter().any(|local| local.name == "word"));
    let names = "[name for name in globals() if not name.startswith('_')]";
    assert_eq!(eval(&mut session, names).await, Value::List(Vec::new()));

    // A session that goes on keeps its variables, and what is in the buffers is written.
    let code = "f = open('/tmp/f', 'w'); f.write('x'); x = 5";
    session.run(Cell::new(code).program().keep_variables()).await.unwrap();
    let code = "(x, open('/tmp/f').read(), f.write('y'), f.close())[:2]";
    assert_eq!(eval(&mut session, code).await, vec![Value::from(5), "x".into()].into());
}

#[tokio::test]
async fn a_finalizer_that_never_ends_is_ended_by_the_time_limit() {
    let limits = Limits::default().max_run_time(std::time::Duration::from_millis(500));
    let mut session = crate::util::sandbox(limits).session().await.unwrap();
    let code = "class R:\n    def __del__(self):\n        while True: pass\nr = R()\nprint('end')";
    let execution = session.run(Cell::new(code).program()).await.unwrap();
    let outcome = execution.outcome();
    assert!(matches!(outcome, Outcome::Terminated(Termination::Deadline { .. })), "{execution:?}");
    assert_eq!(execution.stdout(), "end\n");
}

/// What a session leaves open in `/data`.
const OPEN: &str = "import atexit\nf = open('/data/f', 'w'); f.write('hi')\n\
                    g = open('/data/g', 'w'); atexit.register(g.write, 'bye')\nNone";

fn text(scratch: &Scratch, name: &str) -> String {
    fs::read_to_string(scratch.path().join(name)).unwrap()
}

#[tokio::test]
async fn a_session_that_is_closed_keeps_what_it_has_written_and_one_that_is_dropped_ends_at_once() {
    let scratch = Scratch::new("endings-close");
    let sandbox = sandbox(&scratch);
    let mut session = sandbox.session().await.unwrap();
    exec(&mut session, OPEN).await;
    assert_eq!((text(&scratch, "f"), text(&scratch, "g")), (String::new(), String::new()));
    session.close().await;
    assert_eq!((text(&scratch, "f").as_str(), text(&scratch, "g").as_str()), ("hi", "bye"));
    assert_eq!(session.state(), SessionState::Closed);
    assert_eq!(session.run("1").await.unwrap_err().kind(), ErrorKind::Closed);
    session.close().await;

    // Nothing of the guest runs after it was dropped or killed.
    for end in [drop as fn(Session), |session| session.interrupt_handle().kill()] {
        let mut session = sandbox.session().await.unwrap();
        exec(&mut session, OPEN).await;
        end(session);
        assert_eq!((text(&scratch, "f"), text(&scratch, "g")), (String::new(), String::new()));
    }
    let mut session = sandbox.session().await.unwrap();
    exec(&mut session, OPEN).await;
    session.interrupt_handle().kill();
    session.close().await;
    assert_eq!(text(&scratch, "f"), "");
}

#[tokio::test]
async fn a_session_that_starts_over_keeps_what_it_has_written_and_nothing_else() {
    let scratch = Scratch::new("endings-reset");
    let mut session = sandbox(&scratch).session().await.unwrap();
    exec(&mut session, OPEN).await;
    session.reset().await.unwrap();
    assert_eq!((text(&scratch, "f").as_str(), text(&scratch, "g").as_str()), ("hi", "bye"));
    assert_eq!(eval(&mut session, "'f' in globals()").await, Value::Bool(false));
    // Whatever hangs then ends with its session.
    let hang = "import time\nclass R:\n    def __del__(self): time.sleep(10**6)\nr = R()";
    exec(&mut session, &*format!("{OPEN}\n{hang}")).await;
    session.reset().await.unwrap();
    assert_eq!(text(&scratch, "f"), "hi");
    assert_eq!(eval(&mut session, "40 + 2").await, 42.into());
}

#[tokio::test]
async fn a_program_that_was_ended_has_written_its_files() {
    let mut session = session().await;
    exec(&mut session, "f = open('/tmp/f', 'w'); f.write('hi')\nNone").await;
    session.end_program().await;
    assert_eq!(session.files().get("/tmp/f").await.unwrap().as_deref(), Some(&b"hi"[..]));
    session.close().await;
    // There is nothing to end any more.
    session.end_program().await;
    assert_eq!(session.state(), SessionState::Closed);
}

#[tokio::test]
async fn the_end_of_a_session_calls_no_tool_and_is_killed_if_it_hangs() {
    let scratch = Scratch::new("endings-hang");
    let called = Arc::new(AtomicBool::new(false));
    let canary = Arc::clone(&called);
    let tool = Tool::from_handler(ToolSpec::new("late"), move |_, _| {
        canary.store(true, Ordering::SeqCst);
        async { Ok(Value::None) }
    });
    let mount = Mount::read_write(scratch.path()).unwrap();
    let permissions = Permissions::none().mount("/data", mount).unwrap();
    let sandbox = builder().permissions(permissions).tool(tool).build().unwrap();
    let hangs = [
        "class R:\n    def __del__(self):\n        while True:\n            \
         try:\n                while True: pass\n            except BaseException: pass\nr = R()",
        "class R:\n    def __del__(self): time.sleep(10**6)\nr = R()",
        "t = threading.Thread(target=time.sleep, args=(10**6,)); t.start()",
        "atexit.register(time.sleep, 10**6)",
    ];
    for hang in hangs {
        let mut session = sandbox.session().await.unwrap();
        let code = format!("import threading, time\n{OPEN}\natexit.register(late)\n{hang}\nNone");
        exec(&mut session, &*code).await;
        session.close().await;
        assert_eq!(text(&scratch, "f"), "hi", "{hang}");
    }
    assert!(!called.load(Ordering::SeqCst));
}

#[tokio::test]
async fn what_a_cell_sets_in_its_context_is_there_in_the_next() {
    let sandbox = builder().build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    let code = "import asyncio, contextvars, decimal, time\n\
                v = contextvars.ContextVar('v', default=0)\ntoken = v.set(5)\n\
                decimal.getcontext().prec = 10";
    exec(&mut session, code).await;
    let code = "async def f(): v.set(v.get() + 1)\n\
                await f()\nawait asyncio.gather(f(), f())\n(v.get(), str(decimal.Decimal(1) / 7))";
    let found = vec![Value::from(6), "0.1428571429".into()].into();
    assert_eq!(eval(&mut session, code).await, found);
    let mut copy = session.fork().await;
    let sessions: [Option<&mut Session>; 2] = [Some(&mut session), copy.as_mut().ok()];
    for session in sessions.into_iter().flatten() {
        // Tasks that block while the cell is in its context.
        let code = "async def g():\n    v.set(9); time.sleep(0.01); await asyncio.sleep(0)\n    \
                    return v.get()\nasync def h(): return await asyncio.gather(g(), g())\n\
                    (asyncio.run(h()), v.get(), v.reset(token), v.get())";
        let nines = vec![Value::from(9), 9.into()].into();
        let found = vec![nines, 6.into(), Value::None, 0.into()].into();
        assert_eq!(eval(session, code).await, found);
        // What a value's text depends on as well.
        exec(session, "class P:\n    def __repr__(self): return str(v.get())\nv.set(7)").await;
        let execution = session.run("P()").await.unwrap();
        assert_eq!(execution.repr(), Some("7"));
    }
}
