//! Tests of plain tools that are awaited: they run side by side, as a program expects that awaits
//! them, and everything else means what it did.

use std::sync::Arc;

use isolet::{Param, Session, Tool, ToolModule, ToolSpec, Value};
use tokio::sync::Barrier;

use crate::util::{builder, eval, exec, raised};

/// The number of calls that the tools of [`side_by_side`] wait for.
const ALL: usize = 8;

/// A tool that answers only when [`ALL`] calls of it are running.
fn side_by_side(name: &str) -> Tool {
    let spec = ToolSpec::new(name).param(Param::new("x"));
    let all = Arc::new(Barrier::new(ALL));
    Tool::from_handler(spec, move |arguments, _| {
        let all = Arc::clone(&all);
        async move {
            all.wait().await;
            Ok(arguments.get("x").cloned().unwrap_or_default())
        }
    })
}

/// A tool that returns its argument.
fn echo() -> Tool {
    let spec = ToolSpec::new("echo").param(Param::new("x"));
    Tool::from_handler(spec, |arguments, _| async move {
        Ok(arguments.get("x").cloned().unwrap_or_default())
    })
}

async fn start() -> Session {
    let module = ToolModule::new("m", "", || async { Ok(vec![side_by_side("wait"), echo()]) });
    let builder = builder().tool(side_by_side("wait")).tool(echo()).module(module);
    builder.build().unwrap().session().await.unwrap()
}

#[tokio::test]
async fn a_plain_tool_can_be_awaited() {
    let mut session = start().await;
    let code = "
import asyncio
async def nested(x):
    return await m.echo(x) + await echo(x=x)
class Tools:
    echo = echo
    async def get(self):
        return await Tools.echo(4)
import tools
got = [
    await echo(1), await m.echo(2), await nested(3), await Tools().get(), await m.echo.aio(5),
    [await echo(x) for x in (6, 7)], asyncio.run(echo(8)), await asyncio.wait_for(m.echo(9), 60),
    await asyncio.shield(echo(10)), await echo.map([11]), await tools.call('m', 'echo', {'x': 12}),
    (await tools.search('echo'))[0]['name'], await tools.servers(),
]
got == [1, 2, 6, 4, 5, [6, 7], 8, 9, 10, [11], 12, 'm.echo', ['m']] or got
";
    assert_eq!(eval(&mut session, code).await, Value::Bool(true));
}

#[tokio::test]
async fn tools_that_asyncio_is_given_run_side_by_side() {
    let mut session = start().await;
    exec(&mut session, "import asyncio\nfrom asyncio import gather, create_task as start").await;
    let forms = [
        "await asyncio.gather(*[wait(x) for x in xs])",
        "await asyncio.gather(*(m.wait(x=x) for x in xs))",
        "await asyncio.gather(wait(0), wait(1), wait(2), wait(3), *[wait(x) for x in xs[4:]])",
        "await gather(*map(wait, xs))",
        "await gather(*[m.wait(x) if xs else None for x in xs])",
        "[await task for task in [asyncio.create_task(wait(x)) for x in xs]]",
        "[await task for task in [asyncio.ensure_future(m.wait(x)) for x in xs]]",
        "await gather(*[asyncio.wait_for(wait(x), timeout=60) for x in xs])",
        "sorted([await done for done in asyncio.as_completed([wait(x) for x in xs])])",
        "sorted([d.result() for d in (await asyncio.wait({wait(x) for x in xs}))[0]])",
        "[await task for task in [asyncio.get_event_loop().create_task(wait(x)) for x in xs]]",
        "await asyncio.gather(*[asyncio.create_task(coro=wait(x), name=str(x)) for x in xs])",
    ];
    for form in forms {
        let code =
            format!("xs = list(range({ALL}))\nasync def main():\n    return {form}\nawait main()");
        let expected = Value::List((0..8).map(Value::Int).collect());
        assert_eq!(eval(&mut session, code.as_str()).await, expected, "{form}");
    }
    let code = "
async def main():
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(m.wait(x)) for x in range(8)]
    return [task.result() for task in tasks]
asyncio.run(main())
";
    let expected = Value::List((0..8).map(Value::Int).collect());
    assert_eq!(eval(&mut session, code).await, expected);
}

#[tokio::test]
async fn calls_that_a_variable_keeps_until_they_are_awaited_run_side_by_side() {
    let mut session = start().await;
    exec(&mut session, "import asyncio\nfrom asyncio import gather\nxs = list(range(8))").await;
    let expected = Value::List((0..8).map(Value::Int).collect());
    let forms = [
        "tasks = [wait(x) for x in xs]\nawait asyncio.gather(*tasks)",
        "tasks = []\nfor x in xs:\n    tasks.append(m.wait(x=x))\nawait gather(*tasks)",
        "tasks: list = []\nfor x in xs: tasks += [wait(x)]\nresults = await gather(*tasks)\nresults",
        "tasks = {str(x): wait(x) for x in xs}\nawait gather(*tasks.values())",
        "tasks = {}\nfor x in xs:\n    tasks[x] = wait(x)\nawait gather(*list(tasks.values()))",
        "a, *others = xs\nfirst = wait(a)\nrest = [wait(x) for x in others]\nawait gather(first, *rest)",
        "async def main():\n    tasks = (wait(x) for x in xs)\n    return await gather(*tasks)\n\
         asyncio.run(main())",
        "calls = [wait(x) for x in xs]\n\
         sorted([(await each) for each in asyncio.as_completed(calls)])",
        "calls = [wait(x) for x in xs]\nsorted(d.result() for d in (await asyncio.wait(calls))[0])",
        "calls = [wait(x) for x in xs]\ntasks = [asyncio.create_task(call) for call in calls]\n\
         [await task for task in tasks]",
    ];
    for form in forms {
        assert_eq!(eval(&mut session, form).await, expected, "{form}");
    }
    let kept = "call = echo(1)\nlater = [echo(2), m.echo(3)]\ngot = [await call]\n\
                for each in later:\n    got.append(await each)\ngot";
    let expected = Value::List(vec![1.into(), 2.into(), 3.into()]);
    assert_eq!(eval(&mut session, kept).await, expected);
}

#[tokio::test]
async fn a_variable_that_is_used_otherwise_too_holds_values() {
    let mut session = start().await;
    let code = "
import asyncio
def gather(*values): return list(values)
mine = [echo(x) for x in (1, 2)]
got = [gather(*mine)]
shown = [echo(3)]
print(shown)
try:
    await asyncio.gather(*shown)
except TypeError as error:
    got.append(shown)
texts = []
for text in ['a', 'b']:
    texts.append(echo(text))
got.append(','.join(texts))
pages = {n: echo(n) for n in (1, 2)}
got.append(sum(pages.values()))
before = echo(5)
late = await later.gather(before) if 'later' in globals() else before
got.append(late)
got == [[1, 2], [3], 'a,b', 3, 5] or got
";
    assert_eq!(eval(&mut session, code).await, Value::Bool(true));
    // What a cell fills, another one may read.
    let fill = "kept, named = [], {}\nawait asyncio.sleep(0)\nfor x in (1, 2):\n    \
                kept.append(echo(x))\n    named[x] = echo(x)";
    exec(&mut session, "import asyncio").await;
    exec(&mut session, fill).await;
    assert_eq!(eval(&mut session, "kept == [1, 2] and sum(named.values())").await, 3.into());
}

#[tokio::test]
async fn thirty_slow_calls_in_one_gather_overlap() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let highest = Arc::clone(&most);
    let tool = Tool::from_handler(ToolSpec::new("slow").param(Param::new("x")), move |_, _| {
        let (running, most) = (Arc::clone(&running), Arc::clone(&most));
        async move {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
            running.fetch_sub(1, Ordering::SeqCst);
            Ok(Value::None)
        }
    });
    let mut session = builder().tool(tool).build().unwrap().session().await.unwrap();
    exec(&mut session, "import asyncio\nawait asyncio.gather(*[slow(n) for n in range(30)])").await;
    assert_eq!(highest.load(Ordering::SeqCst), 16);
}

#[tokio::test]
async fn what_is_not_awaited_by_asyncio_stays_a_value() {
    let mut session = start().await;
    let code = "
import asyncio
class Client:
    def create_task(self, title): return ['made', title]
    def gather(self, *values): return values
    def run(self, value): return value
def gather(*values): return list(values)
async def wait_for(value): return value
client = Client()
async def main(): return echo('plain')
async def takes(value): return value
got = [
    client.create_task(echo('a')), client.gather(echo(1), echo(2)), client.run(echo('c')),
    gather(*[echo(x) for x in (1, 2)]), await wait_for(echo('d')), await takes(echo('e')),
    await main(), await asyncio.to_thread(echo, 'f'), await asyncio.sleep(0, echo('g')),
    await asyncio.create_task(takes(echo('h')), name=echo('name')),
    await asyncio.gather(takes(echo('i')), asyncio.sleep(0, 'j')),
    await asyncio.wait_for(takes('k'), echo(60)), [x for x in map(echo, 'lm')],
]
got == [['made', 'a'], (1, 2), 'c', [1, 2], 'd', 'e', 'plain', 'f', 'g', 'h', ['i', 'j'], 'k',
        ['l', 'm']] or got
";
    assert_eq!(eval(&mut session, code).await, Value::Bool(true));
    let exception = raised(&mut session, "x = echo(1)\nprint(x)\nawait x").await;
    assert!(exception.message.contains("can't be awaited"), "{exception}");
}

#[tokio::test]
async fn tracebacks_of_awaited_tools_have_the_lines_of_the_cell() {
    let mut session = start().await;
    let code = "import asyncio\n\nasync def f():\n    return await asyncio.gather(\n        \
                echo(1),\n        echo(\n            2, 3),\n    )\n\nawait f()";
    let exception = raised(&mut session, code).await;
    let traceback = &exception.traceback;
    assert!(exception.message.contains("takes 1 positional argument but 2"), "{exception}");
    for line in ["line 10, in <module>", "line 6, in f", "echo("] {
        assert!(traceback.contains(line), "{traceback}");
    }
    for hidden in ["choose", "isolet>"] {
        assert!(!traceback.contains(hidden), "{traceback}");
    }
    let exception = raised(&mut session, "await nothing(1)").await;
    assert_eq!(exception.to_string(), "NameError: name 'nothing' is not defined");
    assert!(exception.traceback.contains("    await nothing(1)\n          ^^^^^^^\n"));
}

#[tokio::test]
async fn code_that_is_nested_as_deep_as_python_takes_is_rewritten() {
    let mut session = start().await;
    let sum = "1 + ".repeat(1500);
    assert_eq!(eval(&mut session, format!("{sum} await echo(1)").as_str()).await, 1501.into());
    let path = format!("asyncio{}", ".x".repeat(500));
    let code = format!(
        "import asyncio\ntry:\n  {path}.gather(await echo(1))\nexcept AttributeError:\n  x = 1\nx"
    );
    assert_eq!(eval(&mut session, code.as_str()).await, 1.into());
}
