//! Tests of threads: concurrent tool calls, interrupts, deadlines, deadlocks, and what a run leaves
//! behind.

use std::sync::Arc;
use std::time::Duration;

use isolet::{Limits, Outcome, Param, Session, Termination, Tool, ToolSpec, Value};
use tokio::sync::{Barrier, Mutex, mpsc};

use crate::util::{builder, eval, exec, raised, session};

/// Makes a tool that returns its argument once `size` calls wait in it.
fn together(size: usize) -> Tool {
    let barrier = Arc::new(Barrier::new(size));
    Tool::from_handler(ToolSpec::new("t").param(Param::new("x")), move |args, _| {
        let barrier = Arc::clone(&barrier);
        async move {
            barrier.wait().await;
            Ok(args.get("x").cloned().unwrap_or_default())
        }
    })
}

/// Makes a tool that never returns. Its events report when a call begins and when it is cancelled.
fn endless() -> (Tool, mpsc::UnboundedReceiver<&'static str>) {
    struct Watched(mpsc::UnboundedSender<&'static str>);
    impl Drop for Watched {
        fn drop(&mut self) {
            let _ = self.0.send("ended");
        }
    }
    let (sender, events) = mpsc::unbounded_channel();
    let tool = Tool::from_handler(ToolSpec::new("endless").param(Param::new("x")), move |_, _| {
        let watched = Watched(sender.clone());
        async move {
            let _ = watched.0.send("began");
            std::future::pending().await
        }
    });
    (tool, events)
}

async fn with_tool(tool: Tool, limits: Limits) -> Session {
    builder().limits(limits).tool(tool).build().unwrap().session().await.unwrap()
}

#[tokio::test]
async fn host_calls_of_threads_go_side_by_side() {
    // None of the eight calls returns before all have begun.
    let ways = [
        "from concurrent.futures import ThreadPoolExecutor as P\n\
         with P(8) as pool: result = list(pool.map(t, range(8)))\nresult",
        "from concurrent.futures import ThreadPoolExecutor as P, as_completed\n\
         with P(8) as pool: fs = [pool.submit(t, i) for i in range(8)]\n\
         sorted(f.result() for f in as_completed(fs))",
        "import threading\nresult = [None] * 8\n\
         def work(i): result[i] = t(x=i)\n\
         threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]\n\
         for thread in threads: thread.start()\n\
         for thread in threads: thread.join()\nresult",
        "from multiprocessing.pool import ThreadPool\n\
         with ThreadPool(8) as pool: result = pool.map(t, range(8), chunksize=1)\nresult",
        "from multiprocessing.dummy import Pool\n\
         with Pool(8) as pool: result = pool.map(t, range(8), chunksize=1)\nresult",
        "import asyncio\nfrom concurrent.futures import ThreadPoolExecutor as P\n\
         asyncio.get_event_loop().set_default_executor(P(8))\n\
         await asyncio.gather(*[asyncio.to_thread(t, i) for i in range(8)])",
        "import asyncio\nloop = asyncio.get_running_loop()\n\
         with P(8) as pool:\n    \
         result = await asyncio.gather(*[loop.run_in_executor(pool, t, i) for i in range(8)])\nresult",
    ];
    let mut session = with_tool(together(8), Limits::default()).await;
    let expected = Value::List((0..8).map(Value::Int).collect());
    for way in ways {
        assert_eq!(eval(&mut session, way).await, expected, "{way}");
    }
}

#[tokio::test]
async fn an_error_of_a_host_function_is_the_futures() {
    let tool = Tool::from_handler(ToolSpec::new("t").param(Param::new("x")), |_, _| async {
        Err(isolet::ToolError::new("KeyError", "no such page"))
    });
    let mut session = with_tool(tool, Limits::default()).await;
    let code = "from concurrent.futures import ThreadPoolExecutor\n\
        with ThreadPoolExecutor() as pool: future = pool.submit(t, 1)\nrepr(future.exception())";
    assert_eq!(eval(&mut session, code).await, "KeyError('no such page')".into());
}

#[tokio::test]
async fn the_limit_of_host_time_ends_a_pool_of_host_calls_and_the_session_lives_on() {
    let (tool, mut events) = endless();
    let limits = Limits::default().max_host_time(Duration::from_secs(1));
    let mut session = with_tool(tool, limits.max_grace(Duration::from_mins(1))).await;
    let code = "from concurrent.futures import ThreadPoolExecutor\nimport time\n\
        def work(i):\n    time.sleep(0)\n    return endless(i)\n\
        with ThreadPoolExecutor(3) as pool: list(pool.map(work, range(20)))";
    let execution = session.run(code).await.unwrap();
    let outcome = execution.outcome();
    assert!(matches!(outcome, Outcome::Terminated(Termination::HostTime { .. })), "{execution:?}");
    assert!(execution.session_alive(), "{execution:?}");
    // All calls that began have ended; the others did not begin, or not for longer than that.
    assert_eq!(eval(&mut session, "import threading; threading.active_count()").await, 1.into());
    let (mut began, mut ended) = (0, 0);
    while let Ok(event) = events.try_recv() {
        *(if event == "began" { &mut began } else { &mut ended }) += 1;
    }
    assert!(began >= 1 && began == ended, "{began} began, {ended} ended");
}

#[tokio::test]
async fn an_interrupt_is_the_main_threads_and_caught_there() {
    let mut session = session().await;
    let code = "import sys, threading, time\n\
        def work():\n    sys.stdout.write('ready\\n')\n    time.sleep(1000)\n\
        thread = threading.Thread(target=work)\n\
        try:\n    thread.start()\n    thread.join()\n\
        except KeyboardInterrupt: print('caught')\n\
        thread.join()\nthread.is_alive()";
    let handle = session.interrupt_handle();
    let mut run = session.run_streaming(code);
    run.next().await.unwrap();
    handle.interrupt();
    let execution = run.finish().await.unwrap();
    assert_eq!(execution.value(), Some(&Value::Bool(false)), "{execution:?}");
    assert_eq!((execution.stdout(), execution.stderr()), ("ready\ncaught\n", ""));
}

#[tokio::test]
async fn a_wait_that_no_thread_can_end_is_a_deadlock() {
    let waits = [
        "import threading\nlock = threading.Lock()\nlock.acquire()\nlock.acquire()",
        "import queue\nqueue.Queue().get()",
        "import queue\nqueue.SimpleQueue().get()",
        "import threading\nthreading.Event().wait()",
        "import threading\nthreading.Barrier(2).wait()",
        "import threading\na = threading.Lock()\na.acquire()\n\
         t = threading.Thread(target=a.acquire)\nt.start()\nt.join()",
        "from concurrent.futures import ThreadPoolExecutor\nfrom concurrent.futures import Future\n\
         Future().result()",
    ];
    for code in waits {
        let mut session = session().await;
        let error = raised(&mut session, code).await;
        assert_eq!(error.type_name, "RuntimeError", "{code}");
        assert!(error.message.starts_with("deadlock: this waits"), "{code}: {}", error.message);
        assert_eq!(eval(&mut session, "40 + 2").await, 42.into());
    }
}

#[tokio::test]
async fn a_thread_that_a_cell_leaves_behind_goes_on_in_the_next() {
    let mut session = session().await;
    let code = "import threading, queue\nin_, out = queue.Queue(), queue.Queue()\n\
        def work():\n    while True: out.put(in_.get() * 2)\n\
        threading.Thread(target=work, daemon=True).start()";
    exec(&mut session, code).await;
    assert_eq!(eval(&mut session, "in_.put(21)\nout.get()").await, 42.into());
    assert_eq!(eval(&mut session, "in_.put(4)\nout.get()").await, 8.into());
}

#[tokio::test]
async fn a_host_call_does_not_outlive_its_run_in_a_thread() {
    let (tool, events) = endless();
    let events = Arc::new(Mutex::new(events));
    let theirs = Arc::clone(&events);
    // The run does not end before the call has begun.
    let begun = Tool::from_handler(ToolSpec::new("begun"), move |_, _| {
        let events = Arc::clone(&theirs);
        async move { Ok(Value::from(events.lock().await.recv().await.unwrap_or_default())) }
    });
    let sandbox = builder().tool(tool).tool(begun).build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    let code = "from concurrent.futures import ThreadPoolExecutor\n\
        pool = ThreadPoolExecutor()\nfuture = pool.submit(endless, 1)\nassert begun() == 'began'";
    exec(&mut session, code).await;
    assert_eq!(events.lock().await.recv().await, Some("ended"));
    let error = raised(&mut session, "future.result()").await;
    assert_eq!(error.message, "the run that made this call has ended");
}

#[tokio::test]
async fn a_submission_in_a_thread_counts() {
    let sandbox = builder().submit([Param::new("answer")]).build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    let code =
        "import threading\nt = threading.Thread(target=SUBMIT, args=(42,))\nt.start()\nt.join()";
    let execution = session.run(code).await.unwrap();
    assert!(matches!(execution.outcome(), Outcome::Submitted(_)), "{execution:?}");
    assert_eq!(execution.stderr(), "");
}

#[tokio::test]
async fn threads_are_limited_in_number() {
    let mut session = session().await;
    let code = "import threading\nend = threading.Event()\nthreads = []\n\
        try:\n    while True:\n        t = threading.Thread(target=end.wait)\n        t.start()\n        threads.append(t)\n\
        except RuntimeError as error: said = str(error)\n\
        end.set()\nfor t in threads: t.join()\n[len(threads), said, threading.active_count()]";
    let said = "can't start new thread: 1000 run, the limit is 1000";
    let expected = Value::List(vec![1000.into(), said.into(), 1.into()]);
    assert_eq!(eval(&mut session, code).await, expected);
}
