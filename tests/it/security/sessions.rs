//! G1 to G7: nothing passes between sessions, or between runs, that should not.

use std::sync::{Arc, Mutex};

use isolet::{Param, Tool, ToolSpec, Value};

use super::util::{CANARY, Log, amount, with_log};
use crate::util::{assets_dir, builder, eval, exec};
use isolet_test_support::assets::image;

/// G1: nothing that one session plants appears in the next.
#[tokio::test]
async fn nothing_planted_is_in_the_next_session() {
    let plant = "
import asyncio, builtins, os, signal, sys, atexit, types
from pyodide.code import run_js
builtins.planted = planted = 'canary'
sys.modules['planted'] = types.ModuleType('planted')
sys.path.append('/planted')
os.environ['PLANTED'] = 'canary'
open('/home/user/planted', 'w').write('canary')
os.makedirs('/lib/python3.14/planted')
os.chdir('/tmp')
sys.setrecursionlimit(77)
str.__doc__ if False else None
os.getcwd = lambda: '/planted'
signal.signal(signal.SIGINT, signal.SIG_IGN)
run_js('globalThis.planted = 1; Object.prototype.planted = 1; Array.prototype.push = null; delete globalThis.Map')
";
    let look = "
import asyncio, builtins, os, signal, sys
from pyodide.code import run_js
[name for name, found in {
    'builtin': hasattr(builtins, 'planted'),
    'global': 'planted' in globals(),
    'module': 'planted' in sys.modules,
    'path': '/planted' in sys.path,
    'environment': 'PLANTED' in os.environ,
    'file': os.path.exists('/home/user/planted'),
    'package': os.path.exists('/lib/python3.14/planted'),
    'directory': os.getcwd() != '/home/user',
    'recursion': sys.getrecursionlimit() == 77,
    'handler': signal.getsignal(signal.SIGINT) is signal.SIG_IGN,
    'javascript': run_js('\"planted\" in {} || Array.prototype.push === null || typeof Map === \"undefined\"'),
}.items() if found]
";
    let sandbox = builder().build().unwrap();
    let mut first = sandbox.session().await.unwrap();
    exec(&mut first, plant).await;
    // While it is open, and afterwards.
    assert_eq!(eval(&mut sandbox.session().await.unwrap(), look).await, Value::List(Vec::new()));
    drop(first);
    assert_eq!(eval(&mut sandbox.session().await.unwrap(), look).await, Value::List(Vec::new()));
}

/// G1: sessions start with the same pages of the standard library, and each writes to its own copy.
#[tokio::test]
async fn what_a_session_writes_to_the_standard_library_no_other_has() {
    let spoil = "
with open('/lib/python314.zip', 'r+b') as file:
    size = file.seek(0, 2)
    file.seek(0)
    file.write(b'x' * size)
open('/lib/python314.zip', 'rb').read() == b'x' * size
";
    let dir = assets_dir();
    let sandbox = builder().build().unwrap();
    let mut before = sandbox.session().await.unwrap();
    let read = "open('/lib/python314.zip', 'rb').read()";
    let stdlib = eval(&mut before, read).await;
    let image = dir.join(image(&dir));
    let stored = std::fs::read(&image).unwrap();
    assert_eq!(eval(&mut sandbox.session().await.unwrap(), spoil).await, Value::Bool(true));
    let mut after = sandbox.session().await.unwrap();
    for session in [&mut before, &mut after] {
        assert!(eval(session, read).await == stdlib, "the standard library is another one");
    }
    assert!(stored == std::fs::read(&image).unwrap(), "the image on disk is another one");
}

/// G2: two sessions of one image draw different random numbers.
#[tokio::test]
async fn no_two_sessions_draw_alike() {
    let draw = "
import os, random, secrets, tempfile, uuid
from pyodide.code import run_js
{
    'random': random.random(), 'Random': random.Random().random(), 'SystemRandom': random.SystemRandom().random(),
    'secrets': secrets.token_hex(), 'urandom': os.urandom(8).hex(),
    'uuid4': str(uuid.uuid4()), 'uuid1': str(uuid.uuid1()), 'tempfile': tempfile.mkdtemp(),
    'Math.random': run_js('Math.random()'), 'crypto': run_js('crypto.getRandomValues(new Uint8Array(8)).join()'),
    'arc4random': run_js('(m) => m._emscripten_random?.() ?? Math.random()')(__import__('pyodide_js')._module),
}";
    let sandbox = builder().build().unwrap();
    let first = eval(&mut sandbox.session().await.unwrap(), draw).await;
    let second = eval(&mut sandbox.session().await.unwrap(), draw).await;
    let (Value::Dict(first), Value::Dict(second)) = (first, second) else {
        panic!("these are no draws");
    };
    let alike: Vec<_> = first.iter().zip(&second).filter(|(a, b)| a == b).collect();
    assert!(alike.is_empty() && first.len() == 11, "{alike:?}");
}

/// G4: between two runs no guest code runs, so that no tool is called.
#[tokio::test]
async fn nothing_is_called_between_two_runs() {
    let (builder, log) = with_log();
    let sandbox = builder.build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    let leave = "
import asyncio, js
from pyodide.ffi import create_proxy
async def later():
    while True:
        await asyncio.sleep(0)
        await rob.aio(1)
task = asyncio.ensure_future(later())
future = asyncio.get_event_loop().create_future()
future.add_done_callback(lambda _: rob(2))
future.set_result(None)
js.setTimeout(create_proxy(lambda: rob(3)), 0)
js.Promise.resolve(0).then(create_proxy(lambda _: rob(4)))
";
    exec(&mut session, leave).await;
    // Calls from the run's last turn of the event loop were made during the run.
    drop(log.take());
    // A whole run of another session gives any remaining code enough time.
    eval(&mut sandbox.session().await.unwrap(), "sum(range(1000))").await;
    let variables = session.variables().await.unwrap();
    assert!(variables.iter().any(|variable| variable.name == "task"));
    assert_eq!(log.take(), []);
}

/// G5: only the sessions that have a tool can call it, by no name or number of another session's
/// tool.
#[tokio::test]
async fn a_function_of_one_session_is_none_of_another() {
    let (with, log) = with_log();
    let mut one = with.build().unwrap().session().await.unwrap();
    let mut other = builder().build().unwrap().session().await.unwrap();
    let reach = "
import gc
from pyodide.ffi import JsProxy
gc.unfreeze()
held = [o for h in gc.get_objects() for o in gc.get_referents(h) if isinstance(o, JsProxy)]
bridge = {o.name: o for o in held if getattr(o, 'name', None) in ('call', 'answered', 'answer')}
import marshal
name, arguments = b'rob', marshal.dumps({'amount': 1}, 2)
header = bytes.__basicsize__ - 1
number = bridge['call'](id(name) + header, len(name), id(arguments) + header, len(arguments))
size = await bridge['answered'](number)
answer = bytes(size)
bridge['answer'](number, id(answer) + header, size)
str(marshal.loads(answer))
";
    assert_eq!(eval(&mut one, reach).await, Value::from("[True, 'rob']"));
    assert_eq!(log.take(), [("rob".to_owned(), amount(1))]);
    let Value::Str(refusal) = eval(&mut other, reach).await else {
        panic!("the answer is no text");
    };
    assert!(refusal.starts_with("[False, 'NameError', "), "{refusal}");
    assert_eq!(log.take(), []);
}

/// G5: a reference to a replaced tool calls its replacement.
#[tokio::test]
async fn a_saved_reference_calls_no_function_that_was_replaced() {
    let (old, new) = (Log::default(), Log::default());
    let spec = || ToolSpec::new("pay").param(Param::new("amount"));
    let sandbox = builder().tool(old.tool(spec())).build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    exec(&mut session, "saved = pay").await;
    session.register(new.tool(spec())).await.unwrap();
    exec(&mut session, "saved(1)").await;
    assert_eq!((old.take().len(), new.take().len()), (0, 1));
}

/// G6: memory that a session gets contains nothing of earlier sessions.
#[tokio::test]
async fn fresh_memory_is_zero() {
    let fill = "
from pyodide.code import run_js
filled = bytearray(b'canary-7c41e9d2') * 2_000_000
run_js('globalThis.filled = Array.from({ length: 30 }, () => new Uint8Array(1e6).fill(99)); null')
";
    let look = "
from pyodide.code import run_js
import pyodide_js
grown = bytearray(1)
grown *= 30_000_000
run_js('''(memory, reversed) => {
    const needle = [...reversed].reverse().map((letter) => letter.charCodeAt(0));
    let found = 0;
    for (let at = memory.indexOf(needle[0]); at >= 0; at = memory.indexOf(needle[0], at + 1)) {
        if (needle.every((byte, i) => memory[at + i] === byte)) found++;
    }
    const fresh = Array.from({ length: 30 }, () => new Uint8Array(1e6));
    return found + fresh.filter((bytes) => bytes.some((byte) => byte !== 0)).length;
}''')(pyodide_js._module.HEAPU8, reversed_canary)";
    let sandbox = builder().build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    exec(&mut session, fill).await;
    drop(session);
    let mut session = sandbox.session().await.unwrap();
    session.set("reversed_canary", CANARY.chars().rev().collect::<String>()).await.unwrap();
    assert_eq!(eval(&mut session, look).await, Value::Int(0));
}

/// G7: concurrent sessions with different permissions each get their own.
#[tokio::test]
async fn sessions_side_by_side_get_each_their_own() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sandboxes = [0, 1, 2].map(|number: i64| {
        let seen = Arc::clone(&seen);
        let spec = ToolSpec::new("mine").param(Param::new("x"));
        let mine = Tool::from_handler(spec, move |arguments, _| {
            seen.lock().unwrap().push((number, arguments.get("x").cloned()));
            async move { Ok(Value::Int(number)) }
        });
        let permissions = isolet::Permissions::none().env("NUMBER", number.to_string());
        builder().tool(mine).permissions(permissions).build().unwrap()
    });
    let code = "
import os, asyncio
answers = set()
for _ in range(30):
    answers |= {mine(x), *(await asyncio.gather(mine.aio(x), mine.aio(x)))}
    await asyncio.sleep(0)
[sorted(answers), int(os.environ['NUMBER'])]
";
    let runs = sandboxes.iter().enumerate().map(async |(number, sandbox)| {
        let mut session = sandbox.session().await.unwrap();
        let number = i64::try_from(number).unwrap();
        session.set("x", number).await.unwrap();
        let value = eval(&mut session, code).await;
        assert_eq!(value, Value::List(vec![Value::List(vec![number.into()]), number.into()]));
    });
    let runs: Vec<_> = runs.collect();
    futures_util::future::join_all(runs).await;
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 3 * 90);
    assert!(seen.iter().all(|(number, x)| *x == Some(Value::Int(*number))));
}
