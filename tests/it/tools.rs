//! Tests of tools: how Python calls them, what reaches the host, what comes back.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use isolet::{
    ErrorKind, Limits, Outcome, Param, Session, Tool, ToolError, ToolSpec, TypeHint, Value,
};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::util::{builder, eval, exec, raised, session};

/// Searches the corpus.
#[derive(Deserialize, JsonSchema)]
struct Search {
    /// What to look for.
    query: String,
    #[serde(default = "ten")]
    limit: u32,
    tags: Option<Vec<String>>,
}

fn ten() -> u32 {
    10
}

fn search() -> Tool {
    Tool::from_fn("search", |args: Search, _| async move {
        let tags = args.tags.unwrap_or_default().join("+");
        Ok(format!("{}/{}/{tags}", args.query, args.limit))
    })
    .returns(TypeHint::Str)
}

/// Makes a tool that returns its argument.
fn echo() -> Tool {
    let spec = ToolSpec::new("echo").param(Param::new("x"));
    Tool::from_handler(
        spec,
        |args, _| async move { Ok(args.get("x").cloned().unwrap_or_default()) },
    )
}

async fn with(tool: Tool) -> Session {
    builder().tool(tool).build().unwrap().session().await.unwrap()
}

#[tokio::test]
async fn calls_work_by_position_and_by_keyword_with_defaults() {
    let mut session = with(search()).await;
    let cases = [
        ("search('a')", "a/10/"),
        ("search('a', 3)", "a/3/"),
        ("search(limit=4, query='b')", "b/4/"),
        ("search('a', 1, ['x', 'y'])", "a/1/x+y"),
        ("search(*['q'], **{'tags': ('t',)})", "q/10/t"),
        ("search('a', tags=None)", "a/10/"),
    ];
    for (code, expected) in cases {
        assert_eq!(eval(&mut session, code).await, Value::from(expected), "{code}");
    }
}

#[tokio::test]
async fn plain_calls_work_from_any_depth() {
    let mut session = with(echo()).await;
    let code = "
import functools, itertools
def f(n):
    return echo(n) if n == 0 else f(n - 1) + echo(n)
class A:
    made = echo('in a class body')
    def __init__(self): self.x = echo(1)
    @property
    def p(self): return echo(self.x + 1)
    def __lt__(self, other): return echo(True)
class M(type):
    def __getattr__(cls, name): return echo(name)
class B(metaclass=M): pass
def g():
    yield echo('a')
    yield from map(echo, 'bc')
async def co():
    return [echo(i) async for i in agen()]
async def agen():
    for i in range(2):
        yield echo(i)
out = [
    f(5),
    A.made, A().p, sorted([A(), A()]) and 1,
    B.anything,
    list(g()),
    sorted([3, 1, 2], key=echo),
    {k: echo(v) for k, v in {'a': 1}.items()},
    max(range(5), key=lambda n: echo(-n)),
    functools.reduce(lambda a, b: echo(a + b), [1, 2, 3]),
    [*filter(echo, [0, 1])],
    await co(),
    (lambda: (lambda: echo('deep'))())(),
]
try:
    raise ValueError
except ValueError:
    out.append(echo('handler'))
finally:
    out.append(echo('finally'))
with open('/tmp/x', 'w') as file:
    file.write(echo('file'))
out.append(open('/tmp/x').read())
import re
out.append(re.sub('[a-c]', lambda m: echo(m[0].upper()), 'abcd'))
out == [15, 'in a class body', 2, 1, 'anything', ['a', 'b', 'c'], [1, 2, 3], {'a': 1}, 0, 6, [1],
        [0, 1], 'deep', 'handler', 'finally', 'file', 'ABCd'] or out
";
    assert_eq!(eval(&mut session, code).await, Value::Bool(true));
}

#[tokio::test]
async fn help_and_inspect_show_the_whole_signature() {
    let mut session = with(search()).await;
    let code = "import inspect; str(inspect.signature(search))";
    let signature = "(query: str, limit: int = 10, tags: list[str] | None = None) -> str";
    assert_eq!(eval(&mut session, code).await, Value::from(signature));
    let code = "str(inspect.signature(search.aio)), inspect.iscoroutinefunction(search.aio)";
    let aio = Value::List(vec![signature.into(), true.into()]);
    assert_eq!(eval(&mut session, code).await, aio);
    let help = exec(&mut session, "help(search)").await;
    let expected = format!(
        "Help on function search in module __main__:\n\nsearch{signature}\n    \
         Searches the corpus.\n\n    Args:\n        query: What to look for.\n\n"
    );
    assert_eq!(help.stdout(), expected);
    assert_eq!(search().spec().to_string(), format!("search{signature}"));
}

#[tokio::test]
async fn wrong_calls_are_refused_in_pythons_words_before_the_host_runs() {
    let calls = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&calls);
    let spec = ToolSpec::new("t")
        .param(Param::new("a").hint(TypeHint::Int))
        .param(
            Param::new("b")
                .hint(TypeHint::List(Box::new(TypeHint::Str)))
                .default_value(Value::List(vec![])),
        )
        .param(Param::new("c").keyword_only().default_value(Value::None));
    let tool = Tool::from_handler(spec, move |_, _| {
        counted.fetch_add(1, Ordering::Relaxed);
        async { Ok(Value::None) }
    });
    let mut session = with(tool).await;
    let cases = [
        ("t()", "t() missing 1 required positional argument: 'a'"),
        ("t(1, [], 2)", "t() takes from 1 to 2 positional arguments but 3 were given"),
        ("t(1, d=2)", "t() got an unexpected keyword argument 'd'"),
        ("t(1, a=2)", "t() got multiple values for argument 'a'"),
        ("t('1')", "t() argument 'a' must be int, not str"),
        ("t(True)", "t() argument 'a' must be int, not bool"),
        ("t(1.0)", "t() argument 'a' must be int, not float"),
        ("t(1, 'x')", "t() argument 'b' must be list[str], not str"),
        ("t(1, ['x', 1])", "t() argument 'b' must be list[str], but item 1 is int"),
        (
            "t(1, c=object())",
            "t() cannot be called with this 'c': a value of type object cannot cross to the host",
        ),
    ];
    for (code, message) in cases {
        let exception = raised(&mut session, code).await;
        assert_eq!(
            (exception.type_name.as_str(), exception.message.as_str()),
            ("TypeError", message)
        );
    }
    assert_eq!(calls.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn arguments_that_rust_cannot_take_raise_before_the_function_runs() {
    let mut session = with(search()).await;
    let exception = raised(&mut session, "search('a', -1)").await;
    assert_eq!(exception.type_name, "ValueError");
    assert!(exception.message.contains("search() cannot take these arguments"), "{exception}");
    assert!(exception.message.contains("-1"), "{exception}");
}

#[tokio::test]
async fn results_of_every_kind_keep_their_type() {
    let mut session = with(echo()).await;
    let code = "
import math
values = [None, True, False, 0, -1, 2**31, -2**63, 2**64, -10**40, 0.0, -0.5, math.inf, '', 'x' * 70000,
          'gr\\u00fc\\u00df \\U0001f600', b'', b'\\x00\\xff', [], [1, [2, [3]]], {}, {'a': {'b': None}},
          {1: 'int', 2.5: 'float', None: 'none', b'b': 'bytes', True or 0: 'bool'}]
for value in values:
    back = echo(value)
    assert back == value and type(back) is type(value), (value, back)
assert math.isnan(echo(math.nan))
assert math.copysign(1, echo(-0.0)) == -1
assert list(echo({'b': 1, 'a': 2})) == ['b', 'a']
assert echo((1, 2)) == [1, 2] and sorted(echo({3, 4})) == [3, 4]
";
    exec(&mut session, code).await;
}

#[tokio::test]
async fn errors_are_exceptions_with_the_hosts_class_and_message() {
    let spec = ToolSpec::new("fail").param(Param::new("kind")).param(Param::new("text"));
    let spec = spec.param(Param::new("bases").default_value(""));
    let tool = Tool::from_handler(spec, |args, _| async move {
        let text = |name| args.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let error = ToolError::new(text("kind"), text("text"));
        let bases = text("bases");
        Err(bases.split_whitespace().map(str::to_owned).fold(error, ToolError::based_on))
    });
    let mut session = with(tool).await;
    let code = "
def caught(kind, text='no', bases=''):
    try:
        fail(kind, text, bases)
    except Exception as error:
        return f'{type(error).__name__}({type(error).__mro__[1].__name__}): {error}'
[caught(kind) for kind in ('ValueError', 'KeyError', 'PermissionError', 'RateLimited', 'SystemExit',
                           'UnicodeDecodeError', 'print', 'not a name')
] + [caught(kind, bases=bases) for kind, bases in (
    ('NoSuchPage', 'LookupError'), ('Unreadable', 'OSError json.decoder.JSONDecodeError ValueError'),
    ('JSONDecodeError', 'json.decoder.JSONDecodeError ValueError'), ('TimeoutError', 'Exception'),
    ('KeyError', 'ValueError'), ('Lost', 'no.such.Error os.path print KeyboardInterrupt'),
    ('Odd', 'tkinter.TclError OSError'))]
";
    let expected = [
        "ValueError(Exception): no",
        "KeyError(LookupError): 'no'",
        "PermissionError(OSError): no",
        "RateLimited(RuntimeError): no",
        "SystemExit(RuntimeError): no",
        "UnicodeDecodeError(UnicodeDecodeError): no",
        "print(RuntimeError): no",
        "not a name(RuntimeError): no",
        "NoSuchPage(LookupError): no",
        "Unreadable(OSError): no",
        "JSONDecodeError(ValueError): no",
        "TimeoutError(OSError): no",
        "KeyError(ValueError): no",
        "Lost(RuntimeError): no",
        "Odd(OSError): no",
    ];
    let expected = Value::List(expected.map(Value::from).into());
    assert_eq!(eval(&mut session, code).await, expected);
    let exception =
        raised(&mut session, "x = 1\n\ndef f():\n    fail('ValueError', 'bad')\nf()").await;
    assert_eq!(
        exception.traceback,
        "Traceback (most recent call last):\n  File \"<cell>\", line 5, in <module>\n    f()\n    ~^^\n  \
         File \"<cell>\", line 4, in f\n    fail('ValueError', 'bad')\n    ~~~~^^^^^^^^^^^^^^^^^^^^^\n\
         ValueError: bad\n"
    );
}

#[tokio::test]
async fn a_rust_error_says_what_it_and_its_sources_say() {
    let tool =
        Tool::from_fn("t", |(): (), _| async move { "ten".parse::<u8>().map_err(Into::into) });
    let exception = raised(&mut with(tool).await, "t()").await;
    assert_eq!(exception.to_string(), "RuntimeError: invalid digit found in string");
}

#[tokio::test]
async fn a_panic_in_a_tool_is_an_exception_and_the_session_lives_on() {
    let spec = ToolSpec::new("t").param(Param::new("x"));
    let tool = Tool::from_handler(spec, |args, _| async move {
        assert!(args.get("x") == Some(&Value::Int(1)), "x is not 1");
        Ok(Value::None)
    });
    let mut session = with(tool).await;
    let exception = raised(&mut session, "t(2)").await;
    assert_eq!(exception.to_string(), "RuntimeError: t() failed inside: x is not 1");
    assert_eq!(eval(&mut session, "t(1)").await, Value::None);
}

#[tokio::test]
async fn ten_thousand_calls_in_one_run_grow_nothing() {
    let mut session = with(echo()).await;
    // The first calls fill caches and arenas.
    exec(&mut session, "for i in range(1000): assert echo('x' * 1000) == 'x' * 1000").await;
    let before = exec(&mut session, "1").await.usage().peak_memory_bytes;
    let run =
        exec(&mut session, "for i in range(10_000): assert echo([i, 'x' * 1000])[0] == i").await;
    assert_eq!(run.usage().tool_calls, 10_000);
    assert_eq!(run.usage().peak_memory_bytes, before);
    let alive = "import gc; sum(1 for o in gc.get_objects() if type(o).__name__ == 'JsProxy')";
    let Value::Int(proxies) = eval(&mut session, alive).await else { panic!("no number") };
    assert!(proxies < 100, "{proxies} JavaScript objects are kept alive");
}

#[tokio::test]
async fn an_overlong_argument_or_result_is_refused_with_both_numbers() {
    let limits = Limits::default().max_value_bytes(1000);
    let spec = ToolSpec::new("t").param(Param::new("x"));
    let tool = Tool::from_handler(spec, |_, _| async { Ok("y".repeat(2000).into()) });
    let mut session = builder().limits(limits).tool(tool).build().unwrap().session().await.unwrap();
    let exception = raised(&mut session, "t('x' * 2000)").await;
    assert_eq!(
        exception.to_string(),
        "ValueError: the arguments of t() have 2013 bytes, the limit is 1000 bytes"
    );
    let exception = raised(&mut session, "t('x')").await;
    assert!(exception.message.contains("2005 bytes"), "{exception}");
    assert!(exception.message.contains("1000 bytes"), "{exception}");
}

#[tokio::test]
async fn a_budget_of_calls_is_kept_by_the_host() {
    let calls = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&calls);
    let tool = Tool::from_fn("t", move |(): (), _| {
        counted.fetch_add(1, Ordering::Relaxed);
        async { Ok(1) }
    });
    let mut session = with(tool.max_calls(3)).await;
    exec(&mut session, "t(), t()").await;
    let exception = raised(&mut session, "t()\nt()").await;
    assert_eq!(exception.to_string(), "RuntimeError: t() was called 3 times, the limit is 3");
    assert_eq!(calls.load(Ordering::Relaxed), 3);
    session.reset().await.unwrap();
    exec(&mut session, "t()").await;
}

#[tokio::test]
async fn tools_can_be_registered_later_and_replaced() {
    let mut session = session().await;
    assert_eq!(raised(&mut session, "echo(1)").await.type_name, "NameError");
    session.register(echo()).await.unwrap();
    assert_eq!(eval(&mut session, "echo(1)").await, Value::Int(1));
    let other = Tool::from_fn("echo", |(): (), _| async { Ok("other") });
    session.register(other).await.unwrap();
    assert_eq!(eval(&mut session, "echo()").await, Value::from("other"));
    session.reset().await.unwrap();
    assert_eq!(raised(&mut session, "echo()").await.type_name, "NameError");
}

#[tokio::test]
async fn what_python_cannot_define_is_refused_when_the_sandbox_is_built() {
    let handler = |spec| Tool::from_handler(spec, |_, _| async { Ok(Value::None) });
    let cases = [
        (
            handler(ToolSpec::new("a b")),
            "`a b` cannot be a tool's name, it is no Python identifier",
        ),
        (
            handler(ToolSpec::new("x): pass\nimport os\ndef f(")),
            "`x): pass\\nimport os\\ndef f(` cannot be a tool's name, it is no Python identifier",
        ),
        (
            handler(ToolSpec::new("t").param(Param::new("class"))),
            "`class` cannot be a parameter of `t`, it is no Python identifier",
        ),
        (
            handler(ToolSpec::new("t").param(Param::new("a")).param(Param::new("a"))),
            "`t` has two parameters named `a`",
        ),
        (
            handler(
                ToolSpec::new("t").param(Param::new("a").default_value(1)).param(Param::new("b")),
            ),
            "the parameter `b` of `t` has no default, but `a` before it has",
        ),
        (
            Tool::from_fn("t", |text: String, _| async move { Ok(text) }),
            "the arguments of the tool `t` have to be a struct with named fields, they are of the \
             schema type `string`",
        ),
    ];
    for (tool, message) in cases {
        let error = builder().tool(tool).build().unwrap_err();
        assert_eq!((error.kind(), error.to_string()), (ErrorKind::Config, message.to_owned()));
    }
    let error = builder().tool(echo()).tool(echo()).build().unwrap_err();
    assert_eq!(error.to_string(), "there are two tools of the name `echo`");
}

#[tokio::test]
async fn the_guest_cannot_redirect_or_forge_a_call() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let spec = ToolSpec::new("pay").param(Param::new("amount").hint(TypeHint::Int));
    let pay = Tool::from_handler(spec, move |args, cx| {
        log.lock().unwrap().push((cx.tool_name().to_owned(), args));
        async { Ok(Value::from("paid")) }
    });
    let mut session = with(pay).await;
    let code = "
import json, marshal, builtins, js
json.dumps = marshal.dumps = builtins.dict = lambda *a, **k: b'forged'
js.eval('Object.prototype.toJSON = () => ({name: \"steal\"}); Promise.prototype.then = null')
str.__eq__
pay(1)
";
    let outcome = session.run(code).await.unwrap();
    assert!(!matches!(outcome.outcome(), Outcome::Terminated(_)), "{outcome:?}");
    // A guest that takes the function apart gets the host's refusal.
    let forged = "
scope = pay.__globals__
def forge(tool, arguments):
    try:
        return scope['<call>'].func(tool, arguments)
    except Exception as error:
        return f'{type(error).__name__}: {error}'
[forge('steal', {}), forge('pay', {'amount': 'all'}), forge('pay', {}), forge('pay', {'amount': 1, 'to': 'me'})]
";
    let mut session = {
        let log = Arc::clone(&seen);
        let spec = ToolSpec::new("pay").param(Param::new("amount").hint(TypeHint::Int));
        with(Tool::from_handler(spec, move |args, cx| {
            log.lock().unwrap().push((cx.tool_name().to_owned(), args));
            async { Ok(Value::from("paid")) }
        }))
        .await
    };
    let refusals = [
        "NameError: there is no tool 'steal'",
        "TypeError: pay() argument 'amount' must be int, not str",
        "TypeError: pay() missing 1 required positional argument: 'amount'",
        "TypeError: pay() got an unexpected keyword argument 'to'",
    ];
    let refusals = Value::List(refusals.map(Value::from).into());
    assert_eq!(eval(&mut session, forged).await, refusals);
    for (name, args) in seen.lock().unwrap().iter() {
        assert_eq!((name.as_str(), args), ("pay", &Value::Dict(vec![("amount".into(), 1.into())])));
    }
}

#[tokio::test]
async fn a_group_of_exceptions_is_one_in_the_guest() {
    let tool = Tool::from_handler(ToolSpec::new("fail"), |_, _| async {
        let first = ToolError::new("ValueError", "a");
        let inner = ToolError::new("ExceptionGroup", "inner")
            .with_exception(ToolError::new("NoSuchPage", "page 7").based_on("LookupError"));
        Err(ToolError::new("ExceptionGroup", "some").with_exception(first).with_exception(inner))
    });
    let sandbox = builder().tool(tool).build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    let code = "
seen = []
try:
    fail()
except* ValueError as group:
    seen.append(repr(group))
except* LookupError as group:
    seen.append(repr(group.exceptions[0].exceptions))
'; '.join(seen)";
    let expected = "ExceptionGroup('some', [ValueError('a')]); (NoSuchPage('page 7'),)";
    assert_eq!(eval(&mut session, code).await, Value::from(expected));
}
