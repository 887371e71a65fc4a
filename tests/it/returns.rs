//! Tests of `return` at the top level of a cell: it does what it does in a function.

use isolet::{Cell, Outcome, Session, Termination, Value};

use crate::util::{eval, exec, raised, run, session};

fn returning(code: impl Into<String>) -> Cell {
    Cell::new(code).allow_return()
}

/// What the code of the cases uses.
const PRELUDE: &str = "
import asyncio, contextlib
class Entered:
    def __init__(self, suppresses=False): self.suppresses = suppresses
    def __enter__(self): print('enter')
    def __exit__(self, kind, *_):
        print('exit', kind and kind.__name__)
        return self.suppresses
    async def __aenter__(self): self.__enter__()
    async def __aexit__(self, *error): return self.__exit__(*error)
class Fails(Entered):
    def __exit__(self, *_): raise KeyError('exit')
async def numbers():
    for i in range(5):
        await asyncio.sleep(0)
        yield i
";

/// Code that returns at its top level, as the body of a function would.
const CASES: &[&str] = &[
    "return 42",
    "return",
    "print(1)\nreturn print(2)\nprint(3)",
    "if True: return 1\nreturn 2",
    "if False: return 1\nelif 0: return 2\nelif 1: return 3\nelse: return 4",
    "if False: return 1",
    "for i in range(5):\n    if i == 3: return i\nelse: print('else')\nprint('after')",
    "for i in range(5):\n    if i == 9: return i\nelse: print('else')\nprint('after')\nreturn 'end'",
    "for i in range(2):\n    break\nelse: return 1\nreturn 2",
    "for i in range(2): pass\nelse: return 1\nreturn 2",
    "for i in range(3):\n    for j in range(3):\n        while True:\n            if j == 2: return i, j\n            break\n        else: print('no')",
    "while True:\n    while True:\n        break\n    return 'out'",
    "try: return 1\nfinally: print('finally')",
    "try: return 1\nexcept BaseException: print('no')\nelse: print('no')\nfinally: print('finally')",
    "try: return 1\nexcept: return 2",
    "try: 1 / 0\nexcept ZeroDivisionError as error: return str(error)\nfinally: print('finally')",
    "try: pass\nexcept Exception: pass\nelse: return 'else'",
    "for i in range(3):\n    try:\n        if i == 1: return i\n    finally: print('finally', i)",
    "for i in range(3):\n    try: return i\n    finally:\n        if i < 2: continue\nprint('no')",
    "for i in range(3):\n    try: return i\n    finally: break\nfor i in range(2): print(i)\nreturn 'replaced'",
    "try: return 1\nfinally: return 2",
    "for i in range(2):\n    try:\n        try: return i\n        finally: raise KeyError(i)\n    except KeyError as error: print('caught', error)\nreturn 'not that'",
    "try:\n    try: return 1\n    finally:\n        for i in range(2):\n            try: raise KeyError\n            except KeyError: print('inner')\nfinally: print('outer')",
    "try: return 'first'\nfinally:\n    for i in range(3):\n        if i == 5: return 'second'\n        print(i)",
    "try: return 'first'\nfinally:\n    for i in range(3):\n        if i == 2: return 'second'\n        print(i)",
    "with Entered(): return 1",
    "with Entered(True), Entered(): return 1\nreturn 2",
    "with Entered():\n    for i in range(3):\n        with Entered(): return i",
    "with Entered(True):\n    with Fails(): return 1\nprint('goes on')\nfor i in range(2): pass\nreturn 2",
    "with Fails(): return 1",
    "async with Entered(): return 1",
    "async for i in numbers():\n    if i == 2: return i\nelse: print('else')",
    "async for i in numbers():\n    async for j in numbers():\n        try:\n            if i + j == 3: return [i, j]\n        finally: await asyncio.sleep(0)",
    "return await asyncio.sleep(0, 'slept')",
    "match [1, 2]:\n    case [a, b]: return a + b\n    case _: return 0",
    "match 5:\n    case 1: return 1\nreturn 'none'",
    "def f(): return 1\nasync def g(): return 2\nclass A:\n    def m(self): return 3\nreturn [f(), await g(), A().m(), (lambda: 4)()]",
    "def f():\n    for i in range(3): return i\nprint(f())",
    "raise ValueError('before')\nreturn 1",
    "return 1 / 0",
    "try: return 1 / 0\nexcept ZeroDivisionError: print('caught')\nreturn 2",
];

/// The result of a run, in a form that can be compared.
async fn result(session: &mut Session, cell: Cell) -> String {
    let execution = session.run(cell).await.unwrap();
    let outcome = match execution.outcome() {
        Outcome::Completed(value) => format!("{:?}", value.clone().unwrap_or_default()),
        Outcome::Raised(exception) => exception.to_string(),
        other => panic!("{other:?}"),
    };
    format!("{outcome} {:?}", execution.stdout())
}

#[tokio::test]
async fn a_cell_returns_as_a_function_does() {
    let mut session = session().await;
    exec(&mut session, PRELUDE).await;
    for code in CASES {
        let body = code.replace('\n', "\n    ");
        let function = format!("async def function():\n    {body}\nawait function()");
        let expected = result(&mut session, Cell::new(function)).await;
        assert_eq!(result(&mut session, returning(*code)).await, expected, "{code}");
        // The same again, from the compiled code that is kept.
        assert_eq!(result(&mut session, returning(*code)).await, expected, "{code}");
    }
    let left = "[name for name in globals() if name.startswith(('<', '_<'))]";
    assert_eq!(eval(&mut session, left).await, Value::List(Vec::new()));
}

#[tokio::test]
async fn the_value_is_what_was_returned_or_the_last_expressions() {
    let mut session = session().await;
    exec(&mut session, "x = 1").await;
    let cases = [
        ("if x: return 'returned'\n'last'", Some("'returned'")),
        ("if not x: return 'returned'\n'last'", Some("'last'")),
        ("return\n'last'", None),
        ("return None", Some("None")),
        ("return 'a'; 'last'", Some("'a'")),
        ("x = 2\nif x: return x", Some("2")),
        ("if not x: return x", None),
        ("async def f(): return 'awaited'\nreturn f()", Some("'awaited'")),
        ("return object", Some("<class 'object'>")),
        ("'no return'", Some("'no return'")),
        ("", None),
    ];
    for (code, repr) in cases {
        let execution = session.run(returning(code)).await.unwrap();
        assert!(matches!(execution.outcome(), Outcome::Completed(_)), "{code}: {execution:?}");
        assert_eq!(execution.repr(), repr, "{code}");
    }
}

#[tokio::test]
async fn a_cell_that_returns_is_no_function() {
    let mut session = session().await;
    let code = "
from math import *
import math as renamed
number: int = 3
class A:
    class B: pass
exec('made = 1')
def f(): global g; g = number
f()
names = sorted(set(locals()) & {'number', 'A', 'made', 'g', 'pi', 'renamed'})
assert locals() is globals() and __name__ == '__main__'
[number := number + 1 for _ in range(2)]
if True: return names, A.B.__qualname__, f.__qualname__
unreachable = 1
";
    let names = ["A", "g", "made", "number", "pi", "renamed"].map(Value::from).to_vec();
    let expected = vec![Value::List(names), "A.B".into(), "f".into()];
    assert_eq!(eval(&mut session, returning(code)).await, Value::List(expected));
    let kept = "number, g, made, A.B, 'unreachable' in globals()";
    let kept = eval(&mut session, format!("repr(({kept}))")).await;
    assert_eq!(kept, "(5, 3, 1, <class '__main__.A.B'>, False)".into());
    let future = "'doc'\nfrom __future__ import annotations\ndef f(x: missing): pass\nreturn f.__annotations__";
    let annotations = Value::Dict(vec![("x".into(), "missing".into())]);
    assert_eq!(eval(&mut session, returning(future)).await, annotations);
}

#[tokio::test]
async fn what_is_no_return_of_the_cell_stays_a_syntax_error() {
    let mut session = session().await;
    let cases = [
        ("class A:\n    return 1", "'return' outside function"),
        ("return 1\nclass A:\n    if x: return 1", "'return' outside function"),
        ("return 1\nbreak", "'break' outside loop"),
        ("if x: break\nreturn 1", "'break' outside loop"),
        ("return 1\nif x: continue", "'continue' not properly in loop"),
        ("for i in []: return i\nelse: break", "'break' outside loop"),
        (
            "try: x\nexcept* ValueError: return 1",
            "'break', 'continue' and 'return' cannot appear in an except* block",
        ),
        (
            "return 1\nfrom __future__ import annotations",
            "from __future__ imports must occur at the beginning of the file",
        ),
        ("return 1\nyield 2", "'yield' outside function"),
    ];
    for (code, message) in cases {
        let exception = raised(&mut session, returning(code)).await;
        assert_eq!(exception.type_name, "SyntaxError", "{code}");
        assert!(exception.message.starts_with(message), "{code}: {exception}");
    }
    // Without the permission it is as in a module.
    let exception = raised(&mut session, "return 1").await;
    assert!(exception.to_string().starts_with("SyntaxError: 'return' outside function"));
    assert_eq!(eval(&mut session, returning("return 1")).await, Value::Int(1));
    let exception = raised(&mut session, "return 1").await;
    assert!(exception.to_string().starts_with("SyntaxError: 'return' outside function"));
}

#[tokio::test]
async fn tracebacks_and_variables_are_those_of_the_cell() {
    let mut session = session().await;
    let code = "a = 1\nfor i in range(3):\n    if i == 2: return b\n";
    let exception = raised(&mut session, returning(code).name("<cell>")).await;
    let traceback = "Traceback (most recent call last):\n  File \"<cell>\", line 3, in <module>\n    \
                     if i == 2: return b\n                      ^\nNameError: name 'b' is not defined";
    assert!(exception.traceback.starts_with(traceback), "{}", exception.traceback);
    let execution = session.run(returning("c = 1\ntry: return c\nfinally: d = 2")).await.unwrap();
    let names: Vec<_> = execution.locals().iter().map(|local| local.name.as_str()).collect();
    assert_eq!(names, ["c", "d"]);
    assert_eq!(session.variables().await.unwrap().len(), 4);
}

#[tokio::test]
async fn a_long_chain_of_conditions_may_return() {
    let conditions = (1..900).map(|i| format!("elif x == {i}: return {i}\n"));
    let code = format!("x = 700\nif x == 0: return 0\n{}", conditions.collect::<String>());
    assert_eq!(run(returning(code)).await.value(), Some(&Value::Int(700)));
}

#[tokio::test]
async fn a_loop_that_would_return_can_be_interrupted() {
    let mut session = session().await;
    let handle = session.interrupt_handle();
    let code = "import sys\nwhile True:\n    sys.stdout.write('x')\n    if not sys: return 1";
    let mut stream = session.run_streaming(returning(code));
    stream.next().await.unwrap();
    handle.interrupt();
    let execution = stream.finish().await.unwrap();
    assert_eq!(execution.outcome(), &Outcome::Terminated(Termination::Interrupted));
    let left = "[name for name in globals() if name.startswith('_<')]";
    assert_eq!(eval(&mut session, left).await, Value::List(Vec::new()));
}
