//! Tests of interpreters kept ready: their sessions are as fresh as any, and they are replaced.

use std::collections::HashSet;

use isolet::{
    Engine, ErrorKind, Isolation, Limits, Mount, Outcome, Param, Permissions, Tool, ToolSpec, Value,
};

use crate::util::{Scratch, engine, engine_builder, eval, exec, isolation};

/// Makes an engine whose pool no other test uses.
fn own_engine() -> Engine {
    engine_builder().build().unwrap()
}

#[tokio::test]
async fn a_session_made_of_a_ready_interpreter_has_its_sandboxes_policy() {
    let host = Scratch::new("pool");
    std::fs::write(host.path().join("there"), "in a mount").unwrap();
    let permissions = Permissions::none()
        .mount("/data", Mount::read_only(host.path()).unwrap())
        .unwrap()
        .env("NAME", "value");
    let tool = Tool::from_handler(ToolSpec::new("answer"), |_, _| async { Ok(Value::Int(42)) });
    let engine = own_engine();
    engine.prewarm(1).unwrap();
    engine.prewarmed().await.unwrap();
    let sandbox = isolet::Sandbox::builder(&engine);
    let sandbox = sandbox.permissions(permissions).tool(tool).build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    let code = "import os; [open('/data/there').read(), os.environ['NAME'], answer()]";
    let expected = Value::List(vec!["in a mount".into(), "value".into(), 42.into()]);
    assert_eq!(eval(&mut session, code).await, expected);
    assert_eq!(session.isolation().isolation(), isolation());
}

#[tokio::test]
async fn ready_interpreters_are_replaced_and_share_nothing() {
    let engine = own_engine();
    engine.prewarm(2).unwrap();
    let sandbox = isolet::Sandbox::builder(&engine).build().unwrap();
    let mut seen = HashSet::new();
    for round in 0..3 {
        engine.prewarmed().await.unwrap();
        for _ in 0..2 {
            let mut session = sandbox.session().await.unwrap();
            exec(&mut session, "import random; assert 'mark' not in globals(); mark = 1").await;
            let drawn = eval(&mut session, "random.getrandbits(64)").await;
            assert!(seen.insert(format!("{drawn:?}")), "{drawn:?} again, in round {round}");
        }
    }
}

#[tokio::test]
async fn an_interpreter_that_has_started_up_is_of_the_sandbox_whose_session_takes_it() {
    let engine = own_engine();
    engine.prewarm(3).unwrap();
    // Two sandboxes whose sessions start up the same way, but not with the same things.
    let equal = ["first", "second"].map(|name| {
        let host = Scratch::new(&format!("pool-{name}"));
        std::fs::write(host.path().join("there"), name).unwrap();
        let mount = Mount::read_only(host.path()).unwrap();
        let permissions = Permissions::none().mount("/data", mount).unwrap();
        let spec = ToolSpec::new("called");
        let tool = Tool::from_handler(spec, move |_, _| async move { Ok(Value::from(name)) });
        let sandbox = isolet::Sandbox::builder(&engine).permissions(permissions).tool(tool);
        let sandbox = sandbox.submit([Param::new("answer")]).build().unwrap();
        (name, sandbox, host)
    });
    let bare = isolet::Sandbox::builder(&engine).build().unwrap();
    let named = Permissions::none().env("NAME", "value");
    let named = isolet::Sandbox::builder(&engine).permissions(named).build().unwrap();
    // Each twice and more, so that interpreters start up for the next one.
    for round in 0..3 {
        for (name, sandbox, _) in equal.iter().cycle().take(4).chain([&equal[0]; 3]) {
            engine.prewarmed().await.unwrap();
            let mut session = sandbox.session().await.unwrap();
            let code = "import os; [open('/data/there').read(), called(), len(os.environ)]";
            let expected = Value::List(vec![(*name).into(), (*name).into(), 1.into()]);
            assert_eq!(eval(&mut session, code).await, expected, "round {round}");
            let ran = session.run("SUBMIT(answer=42)").await.unwrap();
            let submitted = Outcome::Submitted(Value::dict([("answer", 42)]));
            assert_eq!(ran.outcome(), &submitted, "round {round}");
        }
        for _ in 0..3 {
            engine.prewarmed().await.unwrap();
            let mut session = bare.session().await.unwrap();
            let code = "import os; ['called' in globals(), os.path.exists('/data')]";
            let expected = Value::List(vec![false.into(), false.into()]);
            assert_eq!(eval(&mut session, code).await, expected, "round {round}");
        }
        for _ in 0..3 {
            let mut session = named.session().await.unwrap();
            let code = "import os; os.environ['NAME']";
            assert_eq!(eval(&mut session, code).await, "value".into(), "round {round}");
        }
    }
}

#[tokio::test]
async fn sandboxes_with_other_limits_have_a_pool_of_their_own() {
    let engine = own_engine();
    let limits = Limits::default().max_memory_bytes(128 << 20);
    let sandbox = isolet::Sandbox::builder(&engine).limits(limits).build().unwrap();
    engine.prewarm(1).unwrap();
    sandbox.prewarm(1).unwrap();
    sandbox.prewarmed().await.unwrap();
    let mut session = sandbox.session().await.unwrap();
    let code = "
try: x = bytearray(200_000_000)
except MemoryError: x = 'refused'
x";
    assert_eq!(eval(&mut session, code).await, "refused".into());
}

#[tokio::test]
async fn ready_interpreters_take_no_sessions_place() {
    let engine = engine_builder().max_sessions(1).build().unwrap();
    engine.prewarm(1).unwrap();
    engine.prewarmed().await.unwrap();
    let sandbox = isolet::Sandbox::builder(&engine).build().unwrap();
    let session = sandbox.session().await.unwrap();
    assert_eq!(sandbox.session().await.unwrap_err().kind(), ErrorKind::Limit);
    drop(session);
    sandbox.session().await.unwrap();
}

#[test]
fn no_more_are_kept_ready_than_may_be_open() {
    let engine = engine_builder().max_sessions(3).build().unwrap();
    let error = engine.prewarm(usize::MAX).unwrap_err();
    let said = format!("too many sessions to keep ready: limit 3, needed {}", usize::MAX);
    assert_eq!((error.kind(), error.to_string()), (ErrorKind::Limit, said));
}

#[tokio::test]
async fn what_cannot_start_is_said_to_who_waits_for_it() {
    let engine =
        engine_builder().isolation(Isolation::Process).worker("/nowhere/isolet").build().unwrap();
    engine.prewarm(1).unwrap();
    let error = engine.prewarmed().await.unwrap_err();
    assert!(error.to_string().contains("/nowhere/isolet"), "{error}");
    // A repeated call reports the error again.
    assert_eq!(engine.prewarmed().await.unwrap_err().to_string(), error.to_string());
    engine.prewarm(0).unwrap();
    engine.prewarmed().await.unwrap();
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_ready_worker_that_has_died_is_not_given_out() {
    let dir = Scratch::new("pool-dead");
    let pid = dir.path().join("pid");
    let exe = isolet_test_support::program();
    let script = format!("#!/bin/sh\necho $$ >{}\nexec {exe} \"$@\"\n", pid.display());
    let script = dir.program("worker", &script);
    let engine = engine_builder().isolation(Isolation::Process).worker(&script).build().unwrap();
    engine.prewarm(1).unwrap();
    engine.prewarmed().await.unwrap();
    let pid = std::fs::read_to_string(&pid).unwrap();
    let killed = std::process::Command::new("kill").args(["-9", pid.trim()]).status().unwrap();
    assert!(killed.success());
    // Until its end is visible, it is taken for a live one.
    while std::fs::exists(format!("/proc/{}", pid.trim())).unwrap() {
        tokio::task::yield_now().await;
    }
    let sandbox = isolet::Sandbox::builder(&engine).build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    assert_eq!(eval(&mut session, "40 + 2").await, Value::Int(42));
}

#[tokio::test]
async fn more_sessions_at_once_than_are_ready_all_start() {
    let sandbox = crate::util::builder().build().unwrap();
    engine().prewarm(1).unwrap();
    let sessions = (0..6_i64).map(|n| {
        let sandbox = sandbox.clone();
        tokio::spawn(async move {
            let mut session = sandbox.session().await.unwrap();
            eval(&mut session, format!("{n} * 2")).await
        })
    });
    let sessions: Vec<_> = sessions.collect();
    for (n, session) in (0..).zip(sessions) {
        assert_eq!(session.await.unwrap(), Value::Int(n * 2));
    }
    engine().prewarm(0).unwrap();
}
