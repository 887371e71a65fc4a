//! Tests of deep structures and deep recursion: CPython's errors, or none, and a session that
//! survives, wherever it happens.

use std::time::Duration;

use isolet::{Cell, Limits, Outcome, Session, Tool, ToolSpec, Value};

use crate::util::{builder, eval, exec, raised, session};
use isolet_test_support::assets::{copy, run_with, spoil_stored_code};

const PROGRAM: &str = include_str!("programs/recursion.py");

/// Returns limits that are long enough: all parts together take seconds, and on a busy machine more
/// than the default of a run.
fn patient() -> Limits {
    Limits::default().max_run_time(Duration::from_mins(5))
}

/// Opens a session in which the program's parts are defined, and returns their names.
async fn with_parts() -> (Session, String) {
    let mut session = builder().limits(patient()).build().unwrap().session().await.unwrap();
    exec(&mut session, PROGRAM).await;
    let names = exec(&mut session, "print(*PARTS, sep='\\n')").await;
    let names = names.stdout().to_owned();
    assert!(names.lines().count() > 40, "{names}");
    (session, names)
}

/// Runs every part through `code`, in one session.
async fn every_part_is_survived(code: &str) {
    let (mut session, names) = with_parts().await;
    let execution = session.run(code).await.unwrap();
    assert_eq!(execution.stdout(), names, "{execution:?}");
    assert!(matches!(execution.outcome(), Outcome::Completed(_)), "{execution:?}");
    assert_eq!(eval(&mut session, "1 + 1").await, Value::Int(2));
}

#[tokio::test]
async fn every_part_is_survived_in_a_cell() {
    every_part_is_survived("check_all()").await;
}

#[tokio::test]
async fn every_part_is_survived_on_a_stack_that_was_suspended() {
    let code = "import asyncio, time\nawait asyncio.sleep(0.01)\n\
                def check_all():\n    for name, part in PARTS.items():\n        time.sleep(0.001)\n        \
                check(part)\n        time.sleep(0.001)\n        print(name)\ncheck_all()";
    every_part_is_survived(code).await;
}

#[tokio::test]
async fn every_part_is_survived_in_tasks() {
    let code = "import asyncio\nasync def one(name, part):\n    await asyncio.sleep(0)\n    check(part)\n    \
                await asyncio.sleep(0)\n    print(name)\n\
                for name, part in PARTS.items():\n    await asyncio.create_task(one(name, part))";
    every_part_is_survived(code).await;
}

#[tokio::test]
async fn every_part_is_survived_in_callbacks_of_the_event_loop() {
    let code = "import asyncio\nloop = asyncio.get_event_loop()\nasync def main():\n    \
                for name, part in PARTS.items():\n        done = loop.create_future()\n        \
                loop.call_soon(lambda: done.set_result(check(part)))\n        await done\n        \
                print(name)\nawait main()";
    every_part_is_survived(code).await;
}

#[tokio::test]
async fn every_part_is_survived_in_callbacks_of_javascript() {
    let code = "from pyodide.code import run_js\ncall = run_js('(f, x) => f(x)')\n\
                for name, part in PARTS.items():\n    call(check, part)\n    print(name)";
    every_part_is_survived(code).await;
}

#[tokio::test]
async fn every_part_is_survived_in_a_finalizer() {
    let code = "class Last:\n    def __init__(self, part): self.part = part\n    \
                def __del__(self): check(self.part)\n\
                for name, part in PARTS.items():\n    Last(part)\n    print(name)";
    every_part_is_survived(code).await;
}

/// The host lists the variables while the cell waits, which runs the `repr` of the guest's classes.
#[tokio::test]
async fn every_part_is_survived_while_a_run_waits() {
    let look = Tool::from_handler(ToolSpec::new("look"), |_, cx| async move {
        let shown = cx.session().variables().await?.into_iter().map(|variable| variable.repr);
        Ok(Value::List(shown.map(Value::from).collect()))
    });
    let sandbox = builder().limits(patient()).tool(look).build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    exec(&mut session, PROGRAM).await;
    let code = "
del PARTS['look']
survived = []
class All:
    def __repr__(self):
        for name, part in PARTS.items():
            check(part)
            survived.append(name)
        return 'all'
everything = All()
shown = look()
del everything
'all' in shown and survived == list(PARTS)
";
    assert_eq!(eval(&mut session, code).await, Value::Bool(true));
}

/// The first frames are then those of V8's baseline compiler, which are the largest.
#[test]
fn every_part_is_survived_without_the_code_that_v8_has_stored() {
    let scratch = copy("stored-code");
    spoil_stored_code(scratch.path());
    let code = format!("{PROGRAM}\ncheck_all()\nprint(*PARTS, sep='\\n')");
    let ran = run_with(scratch.path(), &code);
    let names: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(names.len() > 80 && names[..names.len() / 2] == names[names.len() / 2..], "{ran:?}");
}

#[tokio::test]
async fn a_function_that_runs_at_exit_may_recurse() {
    let mut session = builder().limits(patient()).build().unwrap().session().await.unwrap();
    let code = format!("{PROGRAM}\nimport atexit\natexit.register(check_all)");
    let execution = session.run(Cell::new(code).program()).await.unwrap();
    assert!(execution.stdout().ends_with("javascript_that_calls_python\n"), "{execution:?}");
    assert_eq!(eval(&mut session, "1 + 1").await, Value::Int(2));
}

#[tokio::test]
async fn whatever_is_deep_can_be_reported() {
    let (mut session, _) = with_parts().await;
    let code = "deep = nested()\nhead = None\nfor n in range(DEEP): head = Node(n, head)\n\
                class Shown:\n    def __init__(self, inner): self.inner = inner\n    \
                def __repr__(self): return f'<{self.inner!r}>'\n\
                shown = None\nfor n in range(DEEP): shown = Shown(shown)\n\
                error = ValueError('first')\nfor n in range(5_000):\n    outer = ValueError(n)\n    \
                outer.__cause__ = error\n    error = outer\n\
                class Odd(Exception):\n    def __str__(self): return str(self)\n    __repr__ = __str__";
    let bound = exec(&mut session, code).await;
    let names: Vec<&str> = bound.locals().iter().map(|local| local.name.as_str()).collect();
    assert!(["deep", "head", "shown"].iter().all(|name| names.contains(name)), "{names:?}");
    for code in ["deep", "head", "shown", "[deep]", "{1: shown}"] {
        let execution = exec(&mut session, code).await;
        assert!(execution.value_error().is_some() && execution.repr().is_some(), "{code}");
    }
    for code in [
        "raise error",
        "raise ValueError(deep)",
        "raise ValueError(shown)",
        "raise ValueError from error",
    ] {
        assert_eq!(raised(&mut session, code).await.type_name, "ValueError", "{code}");
    }
    assert_eq!(raised(&mut session, "raise Odd").await.type_name, "Odd");
    assert!(session.run("raise SystemExit(shown)").await.unwrap().session_alive());
    assert!(session.get("deep").await.is_err());
    assert!(session.variables().await.unwrap().len() > 10);
    assert_eq!(eval(&mut session, "1 + 1").await, Value::Int(2));
}

#[tokio::test]
async fn as_many_calls_go_through_c_as_python_allows() {
    let mut session = session().await;
    let code = "import functools\ndepth = 0\n\
                class Asked:\n    def __getattr__(self, name):\n        global depth\n        depth += 1\n        \
                return getattr(self, name)\n\
                def mapped(item):\n    global depth\n    depth += 1\n    return list(map(mapped, [item]))\n\
                @functools.cache\ndef count(n):\n    return n and count(n - 1) + 1\n\
                def depth_of(call):\n    global depth\n    depth = 0\n    \
                try: call()\n    except RecursionError as error: return depth, str(error)";
    exec(&mut session, code).await;
    for call in ["lambda: Asked().x", "lambda: mapped(1)"] {
        let ended = eval(&mut session, format!("depth_of({call})")).await;
        let Value::List(ended) = ended else { panic!("{ended}") };
        assert!(
            matches!(&ended[1], Value::Str(why) if why.starts_with("maximum recursion depth")),
            "{ended:?}"
        );
        assert!(matches!(&ended[0], Value::Int(depth) if *depth > 480), "{ended:?}");
    }
    let code = "import sys\nsys.setrecursionlimit(10_000)\ncount(1200)";
    assert_eq!(eval(&mut session, code).await, Value::Int(1200));
}

#[tokio::test]
async fn a_traceback_of_very_many_calls_is_told_by_both_its_ends() {
    let mut session = session().await;
    let code = "import sys\nsys.setrecursionlimit(10**7)\n\
                def f(n): return f(n + 1) if n < 100_000 else g()\ndef g(): 1 / 0\n\
                def start(): f(0)\nstart()";
    let exception = raised(&mut session, code).await;
    for part in [" frames dropped ...]\n", "in start", "in f", "in g", "ZeroDivisionError"] {
        assert!(exception.traceback.contains(part), "{part}: {}", exception.traceback);
    }
    assert_eq!(eval(&mut session, "sys.getrecursionlimit()").await, Value::Int(10_000_000));
}

#[tokio::test]
async fn an_exception_that_comes_from_many_others_is_told_with_the_nearest_of_them() {
    let mut session = session().await;
    let code = "def deep(n):\n    if n: return deep(n - 1)\n    raise RecursionError('deepest')\n\
                def chain(n):\n    if n == 0: return deep(900)\n    \
                try: chain(n - 1)\n    except RecursionError: deep(900)\n\
                kept = None\ntry: chain(40)\nexcept RecursionError as error: kept = error\n\
                raise kept";
    let exception = raised(&mut session, code).await;
    assert!(exception.traceback.starts_with("[... more exceptions dropped ...]\n"));
    assert!(exception.traceback.ends_with("RecursionError: deepest\n"), "{exception:?}");
    // Only the text is shorter.
    let code = "found, one = 0, kept\nwhile one is not None:\n    found += 1\n    \
                one = one.__context__\nfound";
    assert_eq!(eval(&mut session, code).await, 41.into());
}
