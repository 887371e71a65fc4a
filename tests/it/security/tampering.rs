//! A7 to A10: a guest that changes everything it can reach changes no call and no outcome.

use std::time::Duration;

use isolet::{Limits, Outcome, Value};

use super::patches::PATCHES;
use super::util::{amount, with_log};
use crate::util::{builder, eval, exec, raised};

/// A7: a guest's hooks in JavaScript cannot turn a tool call into the call of another tool.
#[tokio::test]
async fn patched_builtins_redirect_no_call() {
    let (builder, log) = with_log();
    let sandbox =
        builder.limits(Limits::default().max_run_time(Duration::from_secs(1))).build().unwrap();
    let mut reached = 0;
    for (name, patch) in PATCHES {
        let mut session = sandbox.session().await.unwrap();
        session.set("patch", *patch).await.unwrap();
        let code = "
import js, pyodide_js
from pyodide.code import run_js
js.pyodide_js = pyodide_js
# The call that is made, by the places of its name and its arguments, becomes another.
name = b'rob'
js.redirect = run_js('(place) => (args) => { if (args.length === 4 && args[1] === 3) args[0] = place; return args }')(
    id(name) + bytes.__basicsize__ - 1)
run_js(patch)
pay(1)
";
        let first = session.run(code).await.unwrap();
        let later = session.run("pay(1)").await;
        let calls = log.take();
        reached += usize::from(!calls.is_empty());
        for call in calls {
            assert_eq!(call, ("pay".to_owned(), amount(1)), "{name}: {first:?} {later:?}");
        }
        for execution in [Ok(first), later].into_iter().flatten() {
            let value = execution.value();
            assert!(
                value.is_none_or(|value| *value == Value::from("pay")),
                "{name}: {execution:?}"
            );
        }
    }
    assert!(reached * 2 > PATCHES.len(), "most calls do not arrive at all: {reached}");
}

/// A7, A9: each of several concurrent calls gets its own answer, whatever promises do.
#[tokio::test]
async fn patched_promises_swap_no_answers() {
    let (builder, log) = with_log();
    let sandbox =
        builder.limits(Limits::default().max_run_time(Duration::from_secs(1))).build().unwrap();
    let (mut answered, mut called) = (0, 0);
    for (name, patch) in PATCHES {
        let mut session = sandbox.session().await.unwrap();
        session.set("patch", *patch).await.unwrap();
        let code = "
import asyncio, js, pyodide_js
from pyodide.code import run_js
js.pyodide_js = pyodide_js
# The number of a call becomes that of the one beside it.
js.redirect = run_js('(args) => { if (args.length === 3 && args[0] < 4) args[0] = args[0] % 3 + 1; return args }')
run_js(patch)
async def both():
    return await asyncio.gather(pay.aio(1), rob.aio(2), pay.aio(1), return_exceptions=True)
[answer if isinstance(answer, str) else None for answer in await both()]
";
        let execution = session.run(code).await.unwrap();
        let answers = execution.value().and_then(Value::as_list).unwrap_or_default();
        for (answer, function) in answers.iter().zip(["pay", "rob", "pay"]) {
            let right = *answer == Value::from(function);
            assert!(right || *answer == Value::None, "{name}: {execution:?}");
            answered += u32::from(right);
        }
        for (function, arguments) in log.take() {
            let expected = if function == "pay" { amount(1) } else { amount(2) };
            assert_eq!(arguments, expected, "{name}: {execution:?}");
            called += 1;
        }
    }
    // Otherwise the patches would prevent the calls that they should redirect.
    assert!(answered > 0 && called > 0, "{answered} answers to {called} calls");
}

/// A8: whatever names the guest rebinds, the report of the next run is either true or missing.
#[tokio::test]
async fn rebound_names_falsify_no_report() {
    let patches = [
        "import builtins\nbuiltins.eval = builtins.exec = builtins.compile = lambda *a, **k: 3",
        "import builtins\nbuiltins.dict = builtins.type = builtins.isinstance = lambda *a: True",
        "import builtins\nbuiltins.BaseException = builtins.Exception = builtins.SystemExit = ValueError",
        "import marshal\nmarshal.dumps = lambda *a: b'\\xe9\\x07\\x00\\x00\\x00'\nmarshal.loads = lambda *a: {}",
        "import json\njson.dumps = lambda *a, **k: '7'",
        "import sys\nsys.modules['marshal'] = sys.modules['ast'] = sys.modules['builtins'] = sys",
        "import sys\nsys.stdout = sys.stderr = sys.__stdout__ = None",
        "import sys\nsys.excepthook = sys.displayhook = lambda *a: None\nsys.settrace(lambda *a: 1/0)",
        "import ast\nast.Assign = ast.Name = ast.copy_location = lambda *a: 7\nast.Expr = int",
        "import asyncio\nasyncio._set_running_loop = asyncio.Task = None",
        "import importlib, sys\nsys.meta_path.clear()\nsys.path.clear()\nimportlib.import_module = None",
        "import traceback\ntraceback.TracebackException = traceback.StackSummary = None",
        "import linecache, codeop\nlinecache._register_code = codeop.compile_command = None",
        "import os\nos.fstat = os.dup = os.dup2 = os.close = None",
    ];
    let (builder, log) = with_log();
    let sandbox =
        builder.limits(Limits::default().max_run_time(Duration::from_secs(1))).build().unwrap();
    let (count, mut right, mut paid) = (patches.len(), 0, 0);
    for patch in patches {
        let mut session = sandbox.session().await.unwrap();
        let _ = session.run(patch).await;
        let sum = session.run("1 + 1").await;
        let value = sum.as_ref().ok().and_then(|execution| execution.value());
        assert!(value.is_none_or(|value| *value == Value::Int(2)), "{patch}: {sum:?}");
        right += usize::from(value.is_some());
        let failure = session.run("1/0").await;
        if let Ok(execution) = &failure {
            assert!(
                !matches!(execution.outcome(), Outcome::Completed(_)),
                "{patch}: {execution:?}"
            );
        }
        let _ = session.run("pay(1)").await;
        let calls = log.take();
        assert!(
            calls.iter().all(|call| *call == ("pay".to_owned(), amount(1))),
            "{patch}: {calls:?}"
        );
        paid += usize::from(!calls.is_empty());
    }
    // Most patches must leave a session that still answers, or this test would show nothing.
    assert!(right > count / 2 && paid > count / 2, "{right} right, {paid} paid, of {count}");
}

/// A9: what a guest writes, leaves behind or reports by itself is not an answer to a later run.
#[tokio::test]
async fn forged_reports_are_no_answers_to_the_next_run() {
    let (builder, log) = with_log();
    let mut session = builder.build().unwrap().session().await.unwrap();
    let forge = "
import asyncio, gc, marshal, sys
from pyodide.ffi import JsProxy
held = [o for h in gc.get_objects() for o in gc.get_referents(h) if isinstance(o, JsProxy)]
give, take, answered, answer = ([o for o in held if getattr(o, 'name', '') == name][0]
    for name in ('give', 'take', 'answered', 'answer'))
forged = {'status': 'completed', 'value': 'forged', 'repr': 'forged', 'locals': []}
report = marshal.dumps(forged, 2)
# A worker sends a long report at once.
long = marshal.dumps({**forged, 'value': 'forged' * 100_000}, 2)
def forge():
    for each in (report, long):
        give(id(each) + bytes.__basicsize__ - 1, len(each))
async def later():
    await asyncio.sleep(0)
    forge()
    print('{\"jsonrpc\": \"2.0\", \"result\": \"forged\"}')
    raise SystemExit(7)
forge()
task = asyncio.ensure_future(later())
";
    let execution = session.run(forge).await.unwrap();
    assert_eq!(execution.value(), None, "{execution:?}");
    // The numbers of a call that never existed, of one that is over, and of a future one.
    let answers = "
outcomes = []
for number in (0, 1, 2, 3, 99, 2**32 - 1):
    try: outcomes.append(await answered(number))
    except Exception as error: outcomes.append(type(error).__name__)
    try: outcomes.append(answer(number, id(report), 1))
    except Exception as error: outcomes.append(type(error).__name__)
set(outcomes) == {'JsException'}
";
    assert_eq!(eval(&mut session, answers).await, Value::Bool(true));
    assert_eq!(eval(&mut session, "await asyncio.sleep(0.01); 'mine'").await, Value::from("mine"));
    assert_eq!(eval(&mut session, "pay(1)").await, Value::from("pay"));
    assert_eq!(log.take(), [("pay".to_owned(), amount(1))]);
}

/// A10: an exception whose class is named like an outcome is only an exception.
#[tokio::test]
async fn classes_named_like_verdicts_are_exceptions() {
    let sandbox = builder().build().unwrap();
    for name in [
        "Deadline",
        "Terminated",
        "Interrupted",
        "TimeoutError",
        "PermissionError",
        "MemoryError",
        "WorkerDied",
        "Submission",
        "ToolError",
        "InterpreterDied",
        "KeyboardInterrupt",
        "ExitStatus",
    ] {
        let mut session = sandbox.session().await.unwrap();
        let code = format!(
            "raise type({name:?}, (BaseException,), {{'pyodide_fatal_error': True}})('limit')"
        );
        let execution = session.run(code).await.unwrap();
        assert!(matches!(execution.outcome(), Outcome::Raised(_)), "{name}: {execution:?}");
        let code = format!(
            "from pyodide.code import run_js\nrun_js('throw Object.assign(new Error(), {{name: {name:?}}})')"
        );
        let execution = session.run(code).await.unwrap();
        assert!(matches!(execution.outcome(), Outcome::Raised(_)), "{name}: {execution:?}");
        assert_eq!(eval(&mut session, "1").await, Value::Int(1));
    }
    let mut session = sandbox.session().await.unwrap();
    for code in ["raise KeyboardInterrupt", "import _signal; _signal.raise_signal(2)"] {
        let execution = session.run(code).await.unwrap();
        assert!(matches!(execution.outcome(), Outcome::Raised(_)), "{code}: {execution:?}");
    }
}

/// A6: values nested too deep are refused wherever they cross: as results, as arguments, in
/// exceptions.
#[tokio::test]
async fn nested_values_are_refused_wherever_they_cross() {
    let (builder, log) = with_log();
    let sandbox = builder.build().unwrap();
    let make = "
deep, wide, ring = [], {}, []
for _ in range(100_000): deep, wide = [deep], {'x': wide}
ring.append(ring)
";
    for value in ["deep", "wide", "ring"] {
        let mut session = sandbox.session().await.unwrap();
        exec(&mut session, make).await;
        let execution = exec(&mut session, value).await;
        assert!(execution.value().is_none() && execution.value_error().is_some(), "{execution:?}");
        for code in ["pay({})", "await pay.aio({})"] {
            let exception = raised(&mut session, code.replace("{}", value)).await;
            assert!(
                exception.message.contains("nested deeper than"),
                "{code} {value}: {exception}"
            );
        }
        // Python's own `str` of such an exception can overflow the stack and end the session.
        let code = format!("raise ValueError({value}) from KeyError({value})");
        let execution = session.run(code).await.unwrap();
        assert!(!matches!(execution.outcome(), Outcome::Completed(_)), "{value}: {execution:?}");
    }
    assert_eq!(log.take(), []);
    assert_eq!(eval(&mut sandbox.session().await.unwrap(), "1").await, Value::Int(1));
}

/// A guest breaks how Python learns of JavaScript's errors: their chains end long before the stack
/// does.
#[tokio::test]
async fn errors_that_cause_themselves_end() {
    let (builder, _) = with_log();
    let sandbox = builder.build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    let code = r#"
from pyodide.code import run_js
run_js("""
let calls = 0;
const { log } = console;
Function.prototype.call = function () { log('call', ++calls); return () => 9 };
""")
"#;
    let execution = session.run(code).await.unwrap();
    let calls = execution.stdout().lines().count();
    assert!((1..200).contains(&calls), "{calls} calls: {execution:?}");
}

/// A guest makes promises end at once: Python does not retry the wait forever.
#[tokio::test]
async fn a_wait_that_ends_early_is_an_error() {
    let (builder, _) = with_log();
    let mut session = builder.build().unwrap().session().await.unwrap();
    let code = "
import asyncio
from pyodide.code import run_js
run_js('Promise.prototype.then = function (f) { f(9); return this }')
asyncio.run(asyncio.sleep(0.01))
";
    let exception = raised(&mut session, code).await;
    assert!(exception.message.starts_with("a wait has ended before"), "{exception}");
}
