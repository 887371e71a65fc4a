//! Tests of checkpoints: a session goes on after a run that has ended its interpreter.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use isolet::{
    ErrorKind, Execution, Limits, Mount, Outcome, Param, Permissions, SandboxBuilder, Session,
    SessionState, Tool, ToolSpec, Value,
};

use crate::util::{Scratch, builder, eval, exec, raised};

/// How often a test looks whether the state was kept in the background, and the time between.
const LOOKS: u32 = 200;
const BETWEEN: Duration = Duration::from_millis(100);

fn checkpointed() -> SandboxBuilder {
    builder().checkpoint(true)
}

async fn session() -> Session {
    checkpointed().build().unwrap().session().await.unwrap()
}

/// Returns how many runs were lost by one that must have ended the interpreter.
fn lost(execution: &Execution) -> u64 {
    assert!(execution.session_alive(), "{execution:?}");
    execution.restored().unwrap_or_else(|| panic!("{execution:?}")).lost_runs
}

#[tokio::test]
async fn a_session_goes_on_from_its_state_before_a_run_that_ended_the_interpreter() {
    let mut session = session().await;
    let code = "
import os
class Point:
    def __init__(self, x): self.x = x
p = Point(1)
with open('/tmp/note', 'w') as f: f.write('before')
numbers = iter(range(5)); next(numbers)
";
    exec(&mut session, code).await;
    session.checkpoint().await.unwrap();
    for end in ["os._exit(3)", "os.abort()"] {
        let code = format!("p.x = 2; later = 1; open('/tmp/note', 'w').close(); {end}");
        let ended = session.run(code).await.unwrap();
        assert_eq!(lost(&ended), 1);
        let state = "[p.x, 'later' in globals(), open('/tmp/note').read(), list(numbers)]";
        let expected = "[1, False, 'before', [1, 2, 3, 4]]";
        // The state is as it was each time: reading the numbers is lost with the run that follows.
        assert_eq!(eval(&mut session, state).await.to_string(), expected);
        let again = session.run("import os; os._exit(0)").await.unwrap();
        assert_eq!(lost(&again), 2);
    }
    let exited = session.run("print('said'); os._exit(3)").await.unwrap();
    assert_eq!((exited.outcome(), exited.stdout()), (&Outcome::Exited(3), "said\n"));
}

#[tokio::test]
async fn before_its_first_checkpoint_a_session_starts_afresh_and_says_what_it_lost() {
    let mut session = session().await;
    exec(&mut session, "x = 1").await;
    let ended = session.run("import os; os._exit(0)").await.unwrap();
    assert_eq!(lost(&ended), 2);
    assert_eq!(raised(&mut session, "x").await.type_name, "NameError");
}

#[tokio::test]
async fn an_idle_session_is_kept_in_the_background() {
    let mut session = session().await;
    exec(&mut session, "x = 41").await;
    for _ in 0..LOOKS {
        tokio::time::sleep(BETWEEN).await;
        let ended = session.run("import os; os._exit(0)").await.unwrap();
        if lost(&ended) == 1 {
            assert_eq!(eval(&mut session, "x + 1").await, Value::Int(42));
            return;
        }
        // It was not yet kept, so it began afresh.
        exec(&mut session, "x = 41").await;
    }
    panic!("the state was never kept");
}

#[tokio::test]
async fn runs_that_come_while_the_state_is_kept_wait_for_it() {
    let mut session = session().await;
    exec(&mut session, "x = 0; held = [bytes(100) for i in range(50_000)]").await;
    let handle = session.handle();
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(55)).await;
        exec(&mut session, "x += 1").await;
        handle.run("x += 1").await.unwrap();
    }
    assert_eq!(eval(&mut session, "x").await, Value::Int(40));
}

#[tokio::test]
async fn limits_that_end_an_interpreter_end_only_the_run() {
    let limits = Limits::default()
        .max_run_time(Duration::from_millis(300))
        .max_grace(Duration::from_millis(50));
    let mut session = checkpointed().limits(limits).build().unwrap().session().await.unwrap();
    exec(&mut session, "x = 41").await;
    session.checkpoint().await.unwrap();
    for end in [
        "sum(range(10**12))",
        "from pyodide.code import run_js\nrun_js('let a = []; while (true) a.push(new Array(1e6))')",
    ] {
        let ended = session.run(end).await.unwrap();
        assert!(matches!(ended.outcome(), Outcome::Terminated(_)), "{end}: {ended:?}");
        // Either lets the session live on by itself, or it was restored.
        assert!(ended.session_alive(), "{end}: {ended:?}");
        assert_eq!(eval(&mut session, "x + 1").await, Value::Int(42));
    }
}

#[tokio::test]
async fn calls_of_tools_count_on_and_tools_that_were_registered_later_are_there() {
    let calls = Arc::new(AtomicU64::new(0));
    let tool = |name: &str| {
        let calls = Arc::clone(&calls);
        Tool::from_handler(ToolSpec::new(name), move |_, _| {
            calls.fetch_add(1, Ordering::SeqCst);
            async { Ok(Value::None) }
        })
        .max_calls(2)
    };
    let sandbox = checkpointed().tool(tool("first")).build().unwrap();
    for is_kept in [false, true] {
        calls.store(0, Ordering::SeqCst);
        let mut session = sandbox.session().await.unwrap();
        if is_kept {
            session.checkpoint().await.unwrap();
        }
        session.register(tool("second")).await.unwrap();
        session.set_submit([Param::new("answer")]).await.unwrap();
        exec(&mut session, "first(); second()").await;
        let ended = session.run("first(); second(); import os; os._exit(0)").await.unwrap();
        assert_eq!(lost(&ended), 2);
        for call in ["first()", "second()"] {
            assert_eq!(raised(&mut session, call).await.type_name, "RuntimeError");
        }
        let submitted = session.run("SUBMIT(answer=3)").await.unwrap();
        assert!(matches!(submitted.outcome(), Outcome::Submitted(_)), "{submitted:?}");
        // What the host saw: no call beyond the limit.
        assert_eq!(calls.load(Ordering::SeqCst), 4);
    }
}

#[tokio::test]
async fn overlays_are_rolled_back_and_files_of_the_host_and_their_quotas_are_not() {
    let (overlay, shared) = (Scratch::new("checkpoint-overlay"), Scratch::new("checkpoint-rw"));
    fs::write(overlay.path().join("there"), "from the host").unwrap();
    let mounts = Permissions::none()
        .mount("/overlay", Mount::overlay(overlay.path()).unwrap())
        .unwrap()
        .mount("/shared", Mount::read_write(shared.path()).unwrap().quota_bytes(100))
        .unwrap();
    let mut session = checkpointed().permissions(mounts).build().unwrap().session().await.unwrap();
    exec(&mut session, "open('/overlay/made', 'w').write('kept')").await;
    session.checkpoint().await.unwrap();
    let code = "
import os
open('/overlay/made', 'w').write('lost')
os.remove('/overlay/there')
with open('/shared/file', 'w') as f: f.write('x' * 80)
os._exit(0)
";
    assert_eq!(lost(&session.run(code).await.unwrap()), 1);
    let read = "[open('/overlay/made').read(), open('/overlay/there').read()]";
    assert_eq!(eval(&mut session, read).await.to_string(), "['kept', 'from the host']");
    assert_eq!(fs::read_to_string(shared.path().join("file")).unwrap(), "x".repeat(80));
    let over = "with open('/shared/more', 'w') as f: f.write('x' * 80)";
    assert_eq!(raised(&mut session, over).await.type_name, "OSError");
    assert_eq!(fs::read(shared.path().join("more")).unwrap_or_default().len(), 0);
}

#[tokio::test]
async fn a_session_that_cannot_be_saved_keeps_its_earlier_state() {
    let mut session = session().await;
    exec(&mut session, "x = 1").await;
    session.checkpoint().await.unwrap();
    exec(&mut session, "import js; x = 2; held = js.Object.new()").await;
    let error = session.checkpoint().await.unwrap_err();
    assert!(error.kind() == ErrorKind::Value && error.session_survives(), "{error:?}");
    assert_eq!(lost(&session.run("import os; os._exit(0)").await.unwrap()), 2);
    assert_eq!(eval(&mut session, "x").await, Value::Int(1));
}

#[tokio::test]
async fn a_destructor_that_never_returns_while_the_state_is_kept_ends_no_session() {
    let mut session = session().await;
    exec(&mut session, "x = 1").await;
    session.checkpoint().await.unwrap();
    let code = "
class Endless:
    def __del__(self):
        while True:
            try:
                while True: pass
            except BaseException: pass
import gc
gc.disable()
import js
held = Endless()
held.itself = held
held.object = js.Object.new()  # which has garbage collected before saving
del held
";
    exec(&mut session, code).await;
    for _ in 0..LOOKS {
        tokio::time::sleep(BETWEEN).await;
        if session.state() != SessionState::Ready {
            break;
        }
    }
    assert_eq!(session.state(), SessionState::Terminated);
    let next = session.run("x").await.unwrap();
    assert_eq!((lost(&next), next.value()), (1, Some(&Value::Int(1))));
}

/// The guest has not asked for it.
#[tokio::test]
async fn what_a_buffer_has_for_a_file_of_a_mount_is_not_written_by_a_checkpoint() {
    let dir = Scratch::new("checkpoint-buffers");
    let permissions =
        Permissions::none().mount("/data", Mount::read_write(dir.path()).unwrap()).unwrap();
    let sandbox = checkpointed().permissions(permissions).build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    exec(&mut session, "file = open('/data/log', 'w'); file.write('buffered')").await;
    session.checkpoint().await.unwrap();
    assert_eq!(fs::read(dir.path().join("log")).unwrap(), b"");
    assert_eq!(lost(&session.run("import os; os._exit(1)").await.unwrap()), 1);
    exec(&mut session, "file.close()").await;
    assert_eq!(fs::read(dir.path().join("log")).unwrap(), b"buffered");
}

#[tokio::test]
async fn handles_go_on_with_the_session() {
    let mut session = session().await;
    let (handle, interrupt) = (session.handle(), session.interrupt_handle());
    let id = handle.id();
    exec(&mut session, "x = 1").await;
    session.checkpoint().await.unwrap();
    lost(&session.run("import os; os._exit(0)").await.unwrap());
    assert_eq!((handle.id(), session.handle().id()), (id, id));
    assert_eq!(handle.get("x").await.unwrap(), Some(Value::Int(1)));
    // What a handle runs has no owner that could be told, so the next run of the owner says it.
    let ended = handle.run("import os; os._exit(0)").await.unwrap();
    assert!(!ended.session_alive(), "{ended:?}");
    let next = session.run("x").await.unwrap();
    assert_eq!((lost(&next), next.value()), (1, Some(&Value::Int(1))));
    interrupt.kill();
    assert_eq!(session.run("x").await.unwrap_err().kind(), ErrorKind::Closed);
}

#[tokio::test]
async fn a_restored_session_goes_on_from_its_file() {
    let scratch = Scratch::new("checkpoint-file");
    let path = scratch.path().join("saved");
    let sandbox = checkpointed().build().unwrap();
    let mut first = sandbox.session().await.unwrap();
    exec(&mut first, "x = 7").await;
    first.save(&path).await.unwrap();
    let mut session = sandbox.restore(&path).await.unwrap();
    fs::remove_file(&path).unwrap();
    assert_eq!(lost(&session.run("import os; os._exit(0)").await.unwrap()), 1);
    assert_eq!(eval(&mut session, "x").await, Value::Int(7));
}

#[tokio::test]
async fn without_checkpoints_such_a_run_ends_the_session() {
    let mut session = builder().build().unwrap().session().await.unwrap();
    assert_eq!(session.checkpoint().await.unwrap_err().kind(), ErrorKind::Config);
    let ended = session.run("import os; os._exit(0)").await.unwrap();
    assert_eq!((ended.session_alive(), ended.restored()), (false, None));
    assert_eq!(session.run("1").await.unwrap_err().kind(), ErrorKind::Closed);
}
