//! Tests of what a specification can say of a tool: its style, the kinds of its parameters, its
//! names.

use std::sync::Arc;

use isolet::{ErrorKind, Param, Session, Tool, ToolSpec, TypeHint, Value};
use tokio::sync::Barrier;

use crate::util::{builder, eval, exec, raised};

async fn with(tool: Tool) -> Session {
    builder().tool(tool).build().unwrap().session().await.unwrap()
}

/// Makes a tool of this specification that returns its arguments.
fn told(spec: ToolSpec) -> Tool {
    Tool::from_handler(spec, |arguments, _| async { Ok(arguments) })
}

#[tokio::test]
async fn a_tool_in_the_async_style_is_a_coroutine_function() {
    let spec = ToolSpec::new("search")
        .param(Param::new("query").hint(TypeHint::Str))
        .returns(TypeHint::Dict(Box::new(TypeHint::Any)))
        .asynchronous();
    assert_eq!(spec.to_string(), "async search(query: str) -> dict");
    let mut session = with(told(spec)).await;
    let code = "
import asyncio, inspect
found = {'query': 'cats'}
assert inspect.iscoroutinefunction(search)
assert str(inspect.signature(search)) == '(query: str) -> dict'
assert (search.__name__, search.__qualname__) == ('search', 'search')
assert search.aio is search
assert await search('cats') == await search(query='cats') == found
assert await asyncio.gather(search('a'), search('b')) == [{'query': 'a'}, {'query': 'b'}]
assert inspect.iscoroutinefunction(search.map) and search.map.__qualname__ == 'search.map'
assert await search.map('ab') == [{'query': 'a'}, {'query': 'b'}]
assert asyncio.run(search('cats')) == found
async def nested():
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(search(word)) for word in ('a', 'b')]
    return [task.result()['query'] for task in tasks]
assert await nested() == ['a', 'b']
waiting = search('cats')
assert inspect.iscoroutine(waiting)
await waiting == found
";
    assert_eq!(eval(&mut session, code).await, Value::Bool(true));
    // The value of a cell is awaited.
    let found = Value::Dict(vec![("query".into(), "cats".into())]);
    assert_eq!(eval(&mut session, "search('cats')").await, found);
    let help = exec(&mut session, "help(search)").await;
    assert!(help.stdout().contains("async search(query: str) -> dict"), "{}", help.stdout());
    let exception = raised(&mut session, "await search(3)").await;
    assert_eq!(exception.to_string(), "TypeError: search() argument 'query' must be str, not int");
    let exception = raised(&mut session, "search()").await;
    assert_eq!(
        exception.to_string(),
        "TypeError: search() missing 1 required positional argument: 'query'"
    );
}

#[tokio::test]
async fn calls_in_the_async_style_run_side_by_side_whatever_the_function_is() {
    let spec = || ToolSpec::new("t").param(Param::new("x")).asynchronous();
    let (all, blocking) = (Arc::new(Barrier::new(3)), Arc::new(std::sync::Barrier::new(3)));
    let tools = [
        Tool::from_handler(spec(), move |arguments, _| {
            let all = Arc::clone(&all);
            async move {
                all.wait().await;
                Ok(arguments.get("x").cloned().unwrap_or_default())
            }
        }),
        Tool::from_blocking_handler(spec(), move |arguments, _| {
            blocking.wait();
            Ok(arguments.get("x").cloned().unwrap_or_default())
        }),
    ];
    for tool in tools {
        let mut session = with(tool).await;
        let code = "import asyncio\nawait asyncio.gather(t(1), t(2), t(3)), await t.map([4, 5, 6])";
        let list = |items: [i64; 3]| Value::List(items.map(Value::Int).to_vec());
        let expected = Value::List(vec![list([1, 2, 3]), list([4, 5, 6])]);
        assert_eq!(eval(&mut session, code).await, expected);
    }
}

#[tokio::test]
async fn a_tool_of_a_struct_can_have_the_async_style() {
    let tool = Tool::from_fn("now", |(): (), _| async { Ok(42) }).asynchronous();
    assert_eq!(tool.spec().to_string(), "async now()");
    let mut session = with(tool).await;
    assert_eq!(eval(&mut session, "await now() + await now.aio()").await, Value::Int(84));
}

/// `f(a, b=2, /, c=3, *rest: int, d, e=..., **more: str)`
fn all_kinds() -> ToolSpec {
    ToolSpec::new("f")
        .param(Param::new("a").positional_only())
        .param(Param::new("b").positional_only().default_value(2))
        .param(Param::new("c").default_value(3))
        .param(Param::new("rest").hint(TypeHint::Int).var_positional().doc("More numbers."))
        .param(Param::new("d").keyword_only())
        .param(Param::new("e").keyword_only().optional())
        .param(Param::new("more").hint(TypeHint::Str).var_keyword())
}

#[tokio::test]
async fn parameters_of_all_kinds_arrive_as_python_binds_them() {
    let mut session = with(told(all_kinds())).await;
    let code = "
import inspect
def same(e=None, **wanted):
    return lambda got: got == ({'e': e} if e else {}) | wanted or print(got)
calls = [
    (f(1, d=4), same(a=1, b=2, c=3, rest=[], d=4, more={})),
    (f(1, 5, 6, d=4, e=7), same(a=1, b=5, c=6, rest=[], d=4, e=7, more={})),
    (f(1, 5, 6, 7, 8, d=4), same(a=1, b=5, c=6, rest=[7, 8], d=4, more={})),
    (f(1, c=6, d=4, g='x', h='y'), same(a=1, b=2, c=6, rest=[], d=4, more={'g': 'x', 'h': 'y'})),
    (f(1, d=4, a='x', b='y'), same(a=1, b=2, c=3, rest=[], d=4, more={'a': 'x', 'b': 'y'})),
    (f(1, d=4, rest='x', more='y'), same(a=1, b=2, c=3, rest=[], d=4, more={'rest': 'x', 'more': 'y'})),
    (f(1, d=4, **{'not a name': 'x'}), same(a=1, b=2, c=3, rest=[], d=4, more={'not a name': 'x'})),
    (await f.aio(1, 2, 3, 4, d=4), same(a=1, b=2, c=3, rest=[4], d=4, more={})),
]
assert all(check(got) for got, check in calls)
def real(a, b=2, /, c=3, *rest: int, d, e=..., **more: str): pass
shown = inspect.signature(f)
assert shown == inspect.signature(real), shown
str(shown)
";
    let signature = "(a, b=2, /, c=3, *rest: int, d, e=..., **more: str)";
    assert_eq!(all_kinds().to_string(), format!("f{signature}"));
    let shown = eval(&mut session, code).await;
    assert_eq!(shown, Value::from(signature.replace("...", "Ellipsis")));
    let help = exec(&mut session, "help(f)").await;
    assert!(help.stdout().contains("*rest: More numbers."), "{}", help.stdout());
    for (code, message) in [
        ("f(d=4)", "f() missing 1 required positional argument: 'a'"),
        ("f(1)", "f() missing 1 required keyword-only argument: 'd'"),
        ("f(1, 2, 3, 'x', d=4)", "f() argument 4 must be int, not str"),
        ("f(1, d=4, g=5)", "f() argument 'g' must be str, not int"),
        ("f(1, 2, 3, c=4, d=4)", "f() got multiple values for argument 'c'"),
        (
            "f(1, 2, 3, object(), d=4)",
            "f() cannot be called with this 'rest': a value of type object cannot cross to the host",
        ),
    ] {
        let exception = raised(&mut session, code).await;
        assert_eq!(exception.to_string(), format!("TypeError: {message}"), "{code}");
    }
}

#[tokio::test]
async fn functions_with_parameters_of_the_same_kinds_keep_their_own_names() {
    let spec = |name, [first, second]: [&str; 2]| {
        ToolSpec::new(name).param(Param::new(first)).param(Param::new(second).default_value(name))
    };
    let tools = [told(spec("f", ["x", "y"])), told(spec("g", ["y", "z"]))];
    let sandbox = tools.into_iter().fold(builder(), isolet::SandboxBuilder::tool).build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    let code = "[f(y=1, x=2), g(3), await g.aio(z=4, y=5), f.__name__, g.aio.__qualname__]";
    let dict = |[first, second]: [(&str, Value); 2]| {
        Value::Dict(vec![(first.0.into(), first.1), (second.0.into(), second.1)])
    };
    let expected = Value::List(vec![
        dict([("x", 2.into()), ("y", 1.into())]),
        dict([("y", 3.into()), ("z", "g".into())]),
        dict([("y", 5.into()), ("z", 4.into())]),
        "f".into(),
        "g.aio".into(),
    ]);
    assert_eq!(eval(&mut session, code).await, expected);
    let error = raised(&mut session, "g(z=1)").await;
    assert_eq!(error.message, "g() missing 1 required positional argument: 'y'");
}

#[tokio::test]
async fn signatures_are_written_as_python_writes_them() {
    let specs = [
        (vec![Param::new("a").positional_only()], "f(a, /)"),
        (vec![Param::new("a").positional_only(), Param::new("b").keyword_only()], "f(a, /, *, b)"),
        (vec![Param::new("a"), Param::new("b").keyword_only()], "f(a, *, b)"),
        (vec![Param::new("a").keyword_only(), Param::new("b").keyword_only()], "f(*, a, b)"),
        (vec![Param::new("a").var_positional(), Param::new("b").keyword_only()], "f(*a, b)"),
        (vec![Param::new("a").positional_only(), Param::new("b").var_keyword()], "f(a, /, **b)"),
        (vec![Param::new("a").var_keyword()], "f(**a)"),
    ];
    for (params, signature) in specs {
        let spec = params.into_iter().fold(ToolSpec::new("f"), ToolSpec::param);
        assert_eq!(spec.to_string(), signature);
        let mut session = with(told(spec)).await;
        let shown = eval(&mut session, "import inspect; f'f{inspect.signature(f)}'").await;
        assert_eq!(shown, Value::from(signature));
    }
}

#[test]
fn parameters_in_an_order_that_python_has_not_are_refused_with_both_names() {
    let (a, b) = (|| Param::new("a"), || Param::new("b"));
    let cases = [
        (
            a(),
            b().positional_only(),
            "the positional-only parameter `b` of `f` comes after the standard parameter `a`, it has to come before it",
        ),
        (
            a().var_positional(),
            b(),
            "the standard parameter `b` of `f` comes after the var-positional parameter `a`, it has to come before it",
        ),
        (
            a().keyword_only(),
            b(),
            "the standard parameter `b` of `f` comes after the keyword-only parameter `a`, it has to come before it",
        ),
        (
            a().keyword_only(),
            b().var_positional(),
            "the var-positional parameter `b` of `f` comes after the keyword-only parameter `a`, it has to come before it",
        ),
        (
            a().var_keyword(),
            b().keyword_only(),
            "the keyword-only parameter `b` of `f` comes after the var-keyword parameter `a`, it has to come before it",
        ),
        (
            a().var_positional(),
            b().var_positional(),
            "`f` has two var-positional parameters, `a` and `b`, it can have one",
        ),
        (
            a().var_keyword(),
            b().var_keyword(),
            "`f` has two var-keyword parameters, `a` and `b`, it can have one",
        ),
        (
            a(),
            b().var_positional().default_value(1),
            "the var-positional parameter `b` of `f` has a default, it cannot have one",
        ),
        (
            a(),
            b().var_keyword().optional(),
            "the var-keyword parameter `b` of `f` has a default, it cannot have one",
        ),
        (
            a().positional_only().default_value(1),
            b(),
            "the parameter `b` of `f` has no default, but `a` before it has",
        ),
    ];
    for (first, second, message) in cases {
        let spec = ToolSpec::new("f").param(first).param(second);
        let error = builder().tool(told(spec)).build().unwrap_err();
        assert_eq!((error.kind(), error.to_string()), (ErrorKind::Config, message.to_owned()));
    }
}

#[tokio::test]
async fn names_may_begin_with_underscores() {
    let names = ["__dspy_call__", "__private", "_", "__", "_a__b_", "__init__"];
    for name in names {
        let spec = ToolSpec::new(name)
            .param(Param::new("__self__").positional_only().default_value(0))
            .param(Param::new("_x").default_value(1))
            .param(Param::new("_").var_positional())
            .param(Param::new("__").keyword_only().default_value(2))
            .param(Param::new("__dict__").var_keyword());
        let mut session = with(told(spec)).await;
        let code = format!(
            "def nested(): return {name}(1, 2, 3, __=4, __a__=5)\n\
             class A:\n    result = [globals()[{name:?}](1, 2, 3, __=4, __a__=5)]\n\
             all(got == {{'__self__': 1, '_x': 2, '_': [3], '__': 4, '__dict__': {{'__a__': 5}}}}\n    \
             for got in [nested(), *A.result, await {name}.aio(1, 2, 3, __=4, __a__=5)])"
        );
        assert_eq!(eval(&mut session, code.as_str()).await, Value::Bool(true), "{name}");
        let execution = exec(&mut session, format!("{name}.map([7])[0]['__self__']")).await;
        assert_eq!(execution.value(), Some(&Value::Int(7)), "{name}");
    }
}
