//! Tests of what a specification can say of a tool: its style, the kinds of its parameters, its
//! names.

use std::sync::Arc;

use isolet::{Param, Session, Tool, ToolSpec, TypeHint, Value};
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
