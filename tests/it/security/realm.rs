//! A1 to A5, A11, A20, A22: the way from Python to JavaScript to the host offers nothing to
//! exploit.

use std::net::TcpListener;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use isolet::{Limits, Outcome, Value};

use super::util::{CANARY, with_log};
use crate::util::{Scratch, eval, exec, session};

/// The globals of a JavaScript that has the host's powers. Each is searched for with `eval` in the
/// global scope.
const POWERS: &str = "['Deno', 'process', 'require', 'module', 'Buffer', 'core', 'ops', '__bootstrap', \
    '__infra', '__timers', 'primordials', 'importScripts', 'Worker', 'SharedWorker', 'ShadowRealm', \
    'SharedArrayBuffer', 'Atomics', 'XMLHttpRequest', 'WebSocket', 'EventSource', 'inspector', 'gc', \
    'load', 'read', 'print', 'd8', 'os', 'scriptArgs'].filter(n => (0, eval)(`typeof ${n}`) !== \
    'undefined').join()";

/// A1, A3: however guest code gets to JavaScript, it arrives in a realm without the host's powers.
#[tokio::test]
async fn every_way_to_javascript_ends_in_the_same_empty_realm() {
    let ways = [
        ("run_js", "run_js(powers)"),
        ("js.eval", "js.eval(powers)"),
        ("Function", "js.Function.new('return ' + powers)()"),
        (
            "a constructor's constructor",
            "run_js('({})').constructor.constructor('return ' + powers)()",
        ),
        ("a proxy of a function", "js.fetch.constructor.constructor('return ' + powers)()"),
        ("pyodide_js", "pyodide_js.constructor.constructor('return ' + powers)()"),
        ("_api", "pyodide_js._api.constructor.constructor('return ' + powers)()"),
        ("_module", "pyodide_js._module.constructor.constructor('return ' + powers)()"),
        ("an error", "caught().js_error.constructor.constructor('return ' + powers)()"),
        ("an async function", "await run_js('(async () => {}).constructor')('return ' + powers)()"),
        ("a generator", "run_js('(function*(){}).constructor')('return ' + powers)().next().value"),
        (
            "a timer",
            "await run_js('new Promise(r => setTimeout(p => r((0, eval)(p)), 1, powers))')",
        ),
        (
            "a stack frame",
            "run_js(f'''(() => {{ Error.prepareStackTrace = (_, f) => f[0].constructor
            .constructor(\"return \" + powers)(); return new Error().stack }})()''')",
        ),
        ("Emscripten's script runner", "script(powers.encode()).decode()"),
        (
            "Emscripten's export",
            "pyodide_js._module._emscripten_run_script_string.constructor('return ' \
            + powers)()",
        ),
    ];
    let mut session = session().await;
    session.set("powers", POWERS).await.unwrap();
    exec(
        &mut session,
        "
import ctypes, js, pyodide_js
from pyodide.code import run_js
js.powers = powers
script = ctypes.CDLL(None).emscripten_run_script_string
script.argtypes, script.restype = [ctypes.c_char_p], ctypes.c_char_p
class Caught: pass
def caught():
    result = Caught()
    try: run_js('nosuch')
    except Exception as error: result.js_error = getattr(error, 'js_error', error)
    return result",
    )
    .await;
    for (way, code) in ways {
        assert_eq!(eval(&mut session, code).await, Value::from(""), "{way}");
    }
}

/// A2: every object that isolet made leads to the isolate's own `Function`, and none to another
/// realm.
#[tokio::test]
async fn constructors_of_our_objects_are_the_guests_own() {
    let code = "
from pyodide.code import run_js
import gc
from pyodide.ffi import JsProxy
gc.unfreeze()
held = [o for h in gc.get_objects() for o in gc.get_referents(h) if isinstance(o, JsProxy)]
foreign = run_js('''(value) => {
    for (let at = value; at !== null; at = Object.getPrototypeOf(at)) {
        const maker = Object.getOwnPropertyDescriptor(at, \"constructor\")?.value;
        if (maker !== undefined && !(maker instanceof Function)) return true;
        const last = Object.getPrototypeOf(at) === null;
        if (last && at !== Object.prototype && at !== value) return true;
    }
    return typeof value === \"function\" && value.constructor(\"return globalThis\")() !== globalThis;
}''')
len(held) > 10, [str(o) for o in held if foreign(o)]
";
    let expected = Value::List(vec![Value::Bool(true), Value::List(Vec::new())]);
    assert_eq!(eval(&mut session().await, code).await, expected);
}

/// A3: even with everything that ctypes offers, no function of the host is called and no other
/// session is changed.
#[tokio::test]
async fn ctypes_changes_the_guests_own_memory_only() {
    let (builder, log) = with_log();
    let sandbox = builder.build().unwrap();
    let mut other = sandbox.session().await.unwrap();
    exec(&mut other, "x = 'mine' * 1000").await;
    let codes = [
        "import ctypes\nctypes.CDLL(None).emscripten_run_script(b'globalThis.rob?.(1); Deno.exit(1)')",
        "import ctypes\nctypes.CDLL(None).abort()",
        "import ctypes\nctypes.pythonapi.Py_FatalError(b'x')",
        "import ctypes\nfor at in range(0, 1 << 24, 4096): ctypes.memset(at, 65, 4096)",
    ];
    for code in codes {
        let mut session = sandbox.session().await.unwrap();
        let _ = session.run(code).await;
        assert_eq!(eval(&mut other, "x == 'mine' * 1000").await, Value::Bool(true), "{code}");
    }
    assert_eq!(log.take(), []);
}

/// A5: whatever our functions are called with, the guest gets an exception and the host is not
/// harmed.
#[tokio::test]
async fn odd_arguments_are_exceptions() {
    let (builder, log) = with_log();
    // Some of the lengths are large, and a worker must then send as much.
    let limits = Limits::default().max_run_time(Duration::from_mins(10));
    let sandbox = builder.limits(limits).build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    session.set("fuzzer", include_str!("fuzz.js")).await.unwrap();
    let fuzz = "
from pyodide.code import run_js
import gc
from pyodide.ffi import JsProxy
gc.unfreeze()
held = [o for h in gc.get_objects() for o in gc.get_referents(h) if isinstance(o, JsProxy)]
bridge = [o for o in held if o.typeof == 'function' and o.constructor.name in ('Function', 'AsyncFunction')]
await run_js(f'({fuzzer})')(*bridge)
";
    let execution = session.run(fuzz).await.unwrap();
    // Any outcome of its own run is fine: an interrupt is among what it calls.
    let Some((_, made)) = execution.stdout().rsplit_once("\nmade ") else {
        panic!("it did not come to its end: {execution:?}");
    };
    let calls: u32 = made.split(' ').next().unwrap().parse().unwrap();
    assert!(calls > 50_000, "{calls}");
    assert_eq!(log.take(), []);
    assert_eq!(eval(&mut sandbox.session().await.unwrap(), "1 + 1").await, Value::Int(2));
}

/// A11: every `import()` is rejected in the same way, without access to files or servers.
#[tokio::test]
async fn every_import_is_rejected() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let scratch = Scratch::new("import");
    let file = scratch.file("module.js", format!("globalThis.stolen = '{CANARY}'"));
    let specifiers = [
        file.clone(),
        format!("file://{file}"),
        format!("http://{}/x.js", server.local_addr().unwrap()),
        format!("https://{}/x.js", server.local_addr().unwrap()),
        "data:text/javascript,globalThis.stolen=1".to_owned(),
        "blob:null/x".to_owned(),
        "npm:left-pad".to_owned(),
        "jsr:@std/fs".to_owned(),
        "node:fs".to_owned(),
        "ext:core/ops".to_owned(),
        "ext:core/mod.js".to_owned(),
        "ext:isolet/session.js".to_owned(),
        "isolet:pyodide.asm.mjs".to_owned(),
        "./x.js".to_owned(),
        "../x.js".to_owned(),
        "x".to_owned(),
        String::new(),
    ];
    let mut session = session().await;
    session.set("specifiers", Value::from(specifiers.to_vec())).await.unwrap();
    let code = "
from pyodide.code import run_js
from pyodide.ffi import to_js
outcomes = await run_js('''async (specifiers) => {
    const outcomes = new Set();
    const ways = [
        (s) => import(s),
        (s) => import(s, { with: { type: 'json' } }),
        (s) => import(s, { with: { get type() { throw new TypeError('a getter') } } }),
        (s) => new Function('s', 'return import(s)')(s),
        (s) => (0, eval)('(s) => import.source(s)')(s),
        (s) => (0, eval)('(s) => import.defer(s)')(s),
        (s) => new Promise((resolve, reject) => {
            globalThis.settle = [resolve, reject];
            setTimeout(eval, 0, `import(${JSON.stringify(s)}).then(...settle)`);
        }),
    ];
    for (const specifier of specifiers) {
        for (const way of ways) {
            try {
                await way(specifier);
                outcomes.add(`imported ${specifier}`);
            } catch (error) {
                outcomes.add(`${error.name}: ${error.message}`);
            }
        }
    }
    return [...outcomes].sort();
}''')(to_js(specifiers))
outcomes.to_py(), hasattr(__import__('js'), 'stolen')
";
    let refusals = ["TypeError: a getter", "TypeError: modules cannot be imported in this sandbox"];
    let expected = Value::List(vec![Value::from(refusals.to_vec()), Value::Bool(false)]);
    assert_eq!(eval(&mut session, code).await, expected);
    server.set_nonblocking(true).unwrap();
    assert!(server.accept().is_err(), "a server was reached");
}

/// A20: no clock of the guest is finer than a millisecond, and no two threads could build one.
#[tokio::test]
async fn clocks_are_coarse() {
    let mut session = session().await;
    let code = "
import time
from pyodide.code import run_js
whole = lambda ms: abs(ms - round(ms)) < 1e-3
clocks = {
    'perf_counter': lambda: time.perf_counter_ns() / 1e6,
    'monotonic': lambda: time.monotonic_ns() / 1e6,
    'process_time': lambda: time.process_time_ns() / 1e6,
    'time': lambda: (time.time() % 1e5) * 1e3,
    'clock_gettime': lambda: (time.clock_gettime(time.CLOCK_REALTIME) % 1e5) * 1e3,
    'performance.now': run_js('() => performance.now()'),
    'Date.now': run_js('() => Date.now()'),
    'emscripten': run_js('(m) => () => m._emscripten_get_now()')(__import__('pyodide_js')._module),
}
[name for name, clock in clocks.items() if not all(whole(clock()) for _ in range(20000))]
";
    assert_eq!(eval(&mut session, code).await, Value::List(Vec::new()));
    let shared = "
from pyodide.code import run_js
run_js('''[typeof SharedArrayBuffer, typeof Atomics,
    new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true }).buffer.constructor.name,
    new WebAssembly.Memory.prototype.constructor({ initial: 1, maximum: 1, shared: true }).buffer.constructor.name,
].join()''')";
    let expected = Value::from("undefined,undefined,ArrayBuffer,ArrayBuffer");
    assert_eq!(eval(&mut session, shared).await, expected);
}

/// A20, G3: the clocks still show the host's time, and move forward.
#[tokio::test]
async fn clocks_tell_the_hosts_time() {
    let mut session = session().await;
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    // The guest's clock lags by up to one step.
    let before = now().saturating_sub(Duration::from_millis(1));
    let code = "import time\nfrom pyodide.code import run_js\n\
                ticks = [time.monotonic() for _ in range(10000)]\n\
                time.time(), run_js('Date.now()') / 1000, ticks == sorted(ticks), ticks[0] >= 0";
    let value = eval(&mut session, code).await;
    let after = now();
    let [Value::Float(python), Value::Float(javascript), sorted, positive] =
        value.as_list().unwrap()
    else {
        panic!("these are no times: {value:?}");
    };
    for time in [*python, *javascript] {
        assert!((before.as_secs_f64()..=after.as_secs_f64()).contains(&time), "{time}");
    }
    assert_eq!((sorted, positive), (&Value::Bool(true), &Value::Bool(true)));
}

/// A22: there is nothing that a debugger could attach to, and requesting one has no effect.
#[tokio::test]
async fn a_debugger_statement_does_nothing() {
    let code = "from pyodide.code import run_js\nrun_js('debugger; console.profile?.(); typeof inspector')";
    let execution = exec(&mut session().await, code).await;
    assert_eq!(*execution.outcome(), Outcome::Completed(Some(Value::from("undefined"))));
    assert_eq!(execution.stderr(), "");
}
