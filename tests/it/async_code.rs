//! Tests of async guests: top-level await, `asyncio.run` and tasks that outlive their cell.

use isolet::{Cell, Value};

use crate::util::{eval, exec, raised, session};

#[tokio::test]
async fn await_works_at_the_top_level() {
    let mut session = session().await;
    let code = "import asyncio\nasync def f():\n    await asyncio.sleep(0.001)\n    return 42";
    exec(&mut session, code).await;
    assert_eq!(eval(&mut session, "await f()").await, Value::Int(42));
    assert_eq!(eval(&mut session, "x = await f()\nx + 1").await, Value::Int(43));
    let code = "async with asyncio.timeout(10):\n    y = [await f() for _ in range(2)]\ny";
    assert_eq!(eval(&mut session, code).await, Value::from(vec![42, 42]));
}

#[tokio::test]
async fn asyncio_run_works_in_sync_code_and_more_than_once() {
    let mut session = session().await;
    let code = "import asyncio\n\
                async def f(x):\n    await asyncio.sleep(0)\n    return x\n\
                def sync(x): return asyncio.run(f(x))\n\
                sync(1) + sync(2)";
    assert_eq!(eval(&mut session, code).await, Value::Int(3));
    assert_eq!(eval(&mut session, "asyncio.run(f(4))").await, Value::Int(4));
}

#[tokio::test]
async fn tasks_run_side_by_side() {
    let mut session = session().await;
    let code = "import asyncio\n\
                log = []\n\
                async def f(name, delay):\n    \
                    log.append(name)\n    \
                    await asyncio.sleep(delay)\n    \
                    log.append(name.upper())\n    \
                    return name\n\
                names = await asyncio.gather(f('a', 0.02), f('b', 0.001))\n\
                async with asyncio.TaskGroup() as group:\n    \
                    tasks = [group.create_task(f(name, 0)) for name in 'cd']\n\
                ''.join(log), names, [task.result() for task in tasks]";
    let value = eval(&mut session, code).await;
    let list = value.as_list().unwrap();
    assert_eq!(list[0], Value::from("abBAcdCD"));
    assert_eq!(list[1], Value::from(vec!["a", "b"]));
    assert_eq!(list[2], Value::from(vec!["c", "d"]));
}

#[tokio::test]
async fn a_task_left_behind_goes_on_in_a_later_run() {
    let mut session = session().await;
    let code = "import asyncio\n\
                done = []\n\
                gate = asyncio.Event()\n\
                async def work():\n    await gate.wait()\n    done.append(1)\n\
                task = asyncio.create_task(work())\n\
                _ = await asyncio.sleep(0)";
    exec(&mut session, code).await;
    assert_eq!(eval(&mut session, "done").await, Value::List(Vec::new()));
    assert_eq!(eval(&mut session, "gate.set()\nawait task\ndone").await, Value::from(vec![1]));
}

#[tokio::test]
async fn a_cell_that_awaits_only_at_its_end_has_a_running_loop_from_its_start() {
    let mut session = session().await;
    let code = "import asyncio\n\
                async def f(): return 1\n\
                task = asyncio.create_task(f())\n\
                await task";
    assert_eq!(eval(&mut session, code).await, Value::Int(1));
}

#[tokio::test]
async fn a_loop_runs_in_a_cell_that_awaits_nothing_and_tasks_go_on() {
    let mut session = session().await;
    let code = "import asyncio\nsteps = []\n\
                async def work():\n    for n in range(3):\n        steps.append(n)\n        \
                await asyncio.sleep(0)\n    return 'done'\n\
                task = asyncio.create_task(work())\nloop = asyncio.get_running_loop()\nsteps == []";
    assert_eq!(eval(&mut session, code).await, Value::Bool(true));
    assert_eq!(eval(&mut session, "len(steps) > 0").await, Value::Bool(true));
    exec(&mut session, "asyncio.run(asyncio.sleep(0))").await;
    let same = "loop is asyncio.get_running_loop() is asyncio.get_event_loop()";
    assert_eq!(eval(&mut session, same).await, Value::Bool(true));
    for _ in 0..3 {
        exec(&mut session, "0").await;
    }
    assert_eq!(eval(&mut session, "task.done() and task.result()").await, Value::from("done"));
    assert_eq!(eval(&mut session, "await task").await, Value::from("done"));
}

#[tokio::test]
async fn a_cells_last_value_is_awaited() {
    let mut session = session().await;
    let code = "import asyncio\nasync def main():\n    await asyncio.sleep(0)\n    print('ran')\n    return 42\n\
                main()";
    let execution = exec(&mut session, code).await;
    assert_eq!((execution.stdout(), execution.value()), ("ran\n", Some(&Value::Int(42))));
    for code in [
        "asyncio.create_task(main())",
        "await asyncio.sleep(0)\nmain()",
        "asyncio.gather(main())",
        "class A:\n    def __await__(self): return main().__await__()\nA()",
    ] {
        let execution = exec(&mut session, code).await;
        assert_eq!(execution.stdout(), "ran\n", "{code}");
        assert!(execution.value().is_some(), "{code}: {execution:?}");
    }
    let code = "async def fails(): 1 / 0\nfails()";
    assert_eq!(raised(&mut session, code).await.type_name, "ZeroDivisionError");
    // The same as python and its prompt do.
    for cell in [Cell::new("main()").interactive(), Cell::new("main()").program()] {
        let execution = session.run(cell).await.unwrap();
        assert_eq!(execution.value(), None);
        assert!(execution.repr().unwrap().starts_with("<coroutine object main"), "{execution:?}");
    }
}

#[tokio::test]
async fn tasks_may_start_at_once_and_timers_tell_when() {
    let mut session = session().await;
    let code = "import asyncio\nsteps = []\nasync def work(n):\n    \
                asyncio.current_task().add_done_callback(lambda _: steps.append('called'))\n    \
                steps.append(n)\n    await asyncio.sleep(0)\n    return n\n\
                async def main():\n    loop = asyncio.get_running_loop()\n    \
                first = asyncio.Task(work(1), loop=loop, eager_start=True)\n    \
                second = loop.create_task(work(2), eager_start=True, name='second')\n    \
                loop.set_task_factory(asyncio.eager_task_factory)\n    \
                third = asyncio.create_task(work(3))\n    loop.set_task_factory(None)\n    \
                last = asyncio.create_task(work(4))\n    begun = list(steps)\n    \
                timer, now = loop.call_later(10, print), loop.time()\n    \
                at = loop.call_at(now - 5, steps.append, 'past')\n    \
                results = await asyncio.gather(first, second, third, last)\n    \
                told = 9 < timer.when() - now <= 11 and at.when() == now - 5\n    timer.cancel()\n    \
                return begun, results, told, second.get_name(), timer.cancelled(), 'past' in steps\n\
                str(await main())";
    let expected = "([1, 2, 3], [1, 2, 3, 4], True, 'second', True, True)";
    assert_eq!(eval(&mut session, code).await, Value::from(expected));
}

#[tokio::test]
async fn an_exception_of_an_awaited_task_is_raised_where_it_is_awaited() {
    let mut session = session().await;
    let code = "import asyncio\n\
                async def f():\n    raise KeyError('k')\n\
                try:\n    await asyncio.gather(f())\nexcept KeyError as error:\n    caught = error.args[0]\n\
                caught";
    assert_eq!(eval(&mut session, code).await, Value::from("k"));
}

#[tokio::test]
async fn timeouts_of_the_guest_are_its_own_exceptions() {
    let mut session = session().await;
    let code = "import asyncio\nawait asyncio.wait_for(asyncio.Future(), 0.01)";
    assert_eq!(raised(&mut session, code).await.type_name, "TimeoutError");
    let code = "async with asyncio.timeout(0.01):\n    await asyncio.sleep(3600)";
    assert_eq!(raised(&mut session, code).await.type_name, "TimeoutError");
    assert_eq!(eval(&mut session, "1").await, Value::Int(1));
}

#[tokio::test]
async fn a_cancelled_await_is_raised() {
    let mut session = session().await;
    let code = "import asyncio\n\
                task = asyncio.create_task(asyncio.sleep(3600))\n\
                asyncio.get_running_loop().call_soon(task.cancel)\n\
                await task";
    assert_eq!(raised(&mut session, code).await.type_name, "CancelledError");
    assert_eq!(eval(&mut session, "task.cancelled()").await, Value::Bool(true));
}

#[tokio::test]
async fn async_errors_show_only_the_guests_frames() {
    let mut session = session().await;
    let code = "import asyncio\n\
                async def f():\n    await asyncio.sleep(0)\n    raise ValueError('x')\n\
                await f()";
    let exception = raised(&mut session, code).await;
    assert_eq!(
        exception.traceback,
        "Traceback (most recent call last):\n  \
           File \"<cell>\", line 5, in <module>\n    \
             await f()\n  \
           File \"<cell>\", line 4, in f\n    \
             raise ValueError('x')\n\
         ValueError: x\n"
    );
    let codes = [
        "asyncio.run(f())",
        "await asyncio.gather(f(), f())",
        "async with asyncio.TaskGroup() as group:\n    group.create_task(f())",
        "await asyncio.wait_for(f(), 10)",
        "asyncio.get_event_loop().run_until_complete(f())",
    ];
    for code in codes {
        let traceback = raised(&mut session, code).await.traceback;
        assert!(traceback.contains("in f\n"), "{code}: {traceback}");
        assert!(traceback.contains("in <module>\n"), "{code}: {traceback}");
        for ours in ["isolet", "pyodide", "webloop", "run_sync", "JsException"] {
            assert!(!traceback.contains(ours), "{code}: {traceback}");
        }
    }
}

#[tokio::test]
async fn generators_and_comprehensions_may_be_async() {
    let mut session = session().await;
    let code = "async def numbers():\n    for i in range(3):\n        yield i\n\
                [i async for i in numbers()]";
    assert_eq!(eval(&mut session, code).await, Value::from(vec![0, 1, 2]));
    let code = "total = 0\nasync for i in numbers():\n    total += i\ntotal";
    assert_eq!(eval(&mut session, code).await, Value::Int(3));
}

#[tokio::test]
async fn an_exit_inside_a_coroutine_is_an_exit() {
    let mut session = session().await;
    let code = "import asyncio, sys\nasync def f():\n    await asyncio.sleep(0)\n    sys.exit(5)";
    exec(&mut session, code).await;
    for code in ["await f()", "asyncio.run(f())", "await asyncio.create_task(f())"] {
        let execution = session.run(code).await.unwrap();
        assert_eq!(*execution.outcome(), isolet::Outcome::Exited(5), "{code}");
        assert_eq!((execution.stdout(), execution.stderr()), ("", ""), "{code}");
    }
}

#[tokio::test]
async fn the_error_of_a_task_is_reported_only_if_nobody_asks_for_it() {
    let mut session = session().await;
    let code = "import asyncio\nasync def boom(): raise ValueError('late')\n\
                async def wait(): await asyncio.sleep(0.002)\n\
                def start(): return asyncio.create_task(boom())";
    exec(&mut session, code).await;
    for handled in [
        "t = start(); await wait()\ntry: await t\nexcept ValueError: pass",
        "ts = [start(), start()]; await wait()\nawait asyncio.gather(*ts, return_exceptions=True)",
        "t = start(); await wait(); t.exception()",
        "t = asyncio.ensure_future(boom())\nwhile not t.done(): await wait()\nt.exception()",
        "t = start()\nawait asyncio.wait([t]); t.exception()",
        "t = asyncio.create_task(asyncio.to_thread(lambda: 1 / 0)); await wait(); await wait()\n\
         await asyncio.wait([t]); t.exception()",
    ] {
        let execution =
            exec(&mut session, &*format!("{handled}\ndel t").replace("ts = ", "t = ts = ")).await;
        assert_eq!(execution.stderr(), "", "{handled}");
    }
    let execution = exec(&mut session, "t = start(); await wait(); del t").await;
    let stderr = execution.stderr();
    assert!(
        stderr.starts_with("Task exception was never retrieved\nfuture: <Task finished"),
        "{stderr}"
    );
    assert!(stderr.ends_with("ValueError: late\n"), "{stderr}");
    let code = "told = []\n\
                asyncio.get_running_loop().set_exception_handler(lambda _, c: told.append(c))\n\
                t = start(); await wait(); del t; await wait()\n\
                [(c['message'], repr(c['exception']), c['future'].done()) for c in told]";
    let told: Vec<Value> =
        vec!["Task exception was never retrieved".into(), "ValueError('late')".into(), true.into()];
    assert_eq!(eval(&mut session, code).await, Value::List(vec![told.into()]));
}
