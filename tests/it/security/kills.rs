//! F1, F5: a guest that outlives its kill has no effect on the host, and does not delay an outcome.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use isolet::{
    Engine, ErrorKind, Isolation, Limits, Mount, Outcome, Permissions, Sandbox, Termination, Value,
};

use super::util::with_log;
use crate::util::{Ran, Scratch, command, engine, engine_builder};
use isolet_test_support::{AT_MOST, in_child, output_in_time};

/// A guest that makes the host's ops call its accessors, and runs `effect` whenever an exception
/// leaves one of them.
const ACCESSORS: &str = "
from pyodide.code import run_js
def effect():
    open('/data/effect', 'a').write('x')
    rob(1)
run_js('''(effect) => {
    const slow = { get 0() { for (;;); }, get 1() { for (;;); }, length: 2 };
    slow[Symbol.iterator] = () => ({ next() { for (;;); } });
    const text = { toString() { for (;;); }, toJSON() { for (;;); } };
    Headers.prototype.entries = () => [slow];
    const attempts = [
        () => fetch('http://127.0.0.1:1/', {}),
        () => fetch('http://127.0.0.1:1/', { method: 'GET', redirect: text }),
        () => fetch(text),
        () => console.log(text),
    ];
    for (;;) {
        for (const attempt of attempts) {
            try { attempt(); } catch {}
            try { effect(); } catch {}
        }
    }
}''')(effect)
";

/// F1: no guest code runs within an op, where a termination would become an exception that the
/// guest can catch.
#[tokio::test]
async fn a_kill_is_not_swallowed_by_accessors_of_the_guests() {
    let scratch = Scratch::new("swallowed");
    let mount = Mount::read_write(scratch.path()).unwrap();
    let (builder, log) = with_log();
    let limits = Limits::default()
        .max_run_time(Duration::from_millis(500))
        .max_grace(Duration::from_millis(100));
    let permissions = Permissions::none().mount("/data", mount).unwrap();
    let sandbox = builder.permissions(permissions).limits(limits).build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    let run = tokio::time::timeout(AT_MOST, session.run(ACCESSORS));
    let execution = run.await.expect("the run outlived its kill").unwrap();
    let outcome = execution.outcome();
    let is_deadline = matches!(outcome, Outcome::Terminated(Termination::Deadline { .. }));
    assert!(is_deadline && !execution.session_alive(), "{execution:?}");
    drop(session);
    // Another session, from start to end, gives any remaining code enough time.
    sandbox.run("pay(1)").await.unwrap();
    let robberies = log.take().iter().filter(|(name, _)| name == "rob").count();
    assert_eq!(robberies, 0, "the guest called the host after it was killed");
    assert!(!scratch.path().join("effect").exists(), "the guest wrote after it was killed");
}

/// Steps of V8 that cannot be interrupted.
const STEPS: [&str; 10] = [
    "Array.prototype.shift.call({length: 2**53-1})",
    "Array.prototype.unshift.call({length: 2**53-2}, 1)",
    "Array.prototype.reverse.call({length: 2**53-1})",
    "Array.prototype.indexOf.call({length: 2**53-1}, 1)",
    "Array.prototype.lastIndexOf.call({length: 2**53-1}, 1)",
    "Array.prototype.includes.call({length: 2**53-1}, 1)",
    "Array.prototype.fill.call({length: 2**53-1}, 1)",
    "Array.prototype.copyWithin.call({length: 2**53-1}, 1, 0)",
    "Array.prototype.splice.call({length: 2**53-1}, 0, 1)",
    "Array.prototype.findLastIndex.call({length: 2**53-1}, isFinite)",
];

fn run_js(step: &str) -> String {
    format!("print('kept', flush=True)\nfrom pyodide.code import run_js\nrun_js('{step}; 0')")
}

/// F5: the outcome and the output are available shortly after the deadline and the grace. Each step
/// runs in a separate process, because a thread in such a step never ends.
#[test]
fn a_step_that_v8_never_interrupts_does_not_hold_up_the_verdict() {
    for step in STEPS {
        let child = command(["run", "--timeout", "1s", "-c", &run_js(step)])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let Ran { code, stdout, stderr } = output_in_time(child).into();
        assert_eq!(code, Some(3), "{step}: {stderr}");
        assert_eq!(stdout, "kept\n", "{step}");
        assert!(stderr.contains("the limit is 1 s"), "{stderr}");
    }
}

/// F5: threads that never end are counted and no longer serve their guests. Beyond a few, no
/// further session gets a thread, but sessions in processes still start.
#[test]
fn threads_that_never_end_are_counted_and_past_a_few_refused() {
    let name = "security::kills::threads_that_never_end_are_counted_and_past_a_few_refused";
    if let Some(output) = in_child(name, |_| {}) {
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("all as it should be"), "{output:?}");
        return;
    }
    lose_threads();
    // The threads still exist, and use all available processors.
    std::process::abort();
}

#[expect(clippy::print_stdout, reason = "how the child tells the test")]
fn lose_threads() {
    let engine = engine_builder().isolation(Isolation::Thread).build().unwrap();
    let limits =
        Limits::default().max_run_time(Duration::from_secs(1)).max_grace(Duration::from_millis(50));
    let sandbox = Sandbox::builder(&engine).limits(limits).build().unwrap();
    let mut lost = 0;
    let refusal = loop {
        let mut session = match sandbox.blocking().session() {
            Ok(session) => session,
            Err(error) => break error,
        };
        assert!(lost < 10, "threads are lost without end");
        let execution = session.run(run_js(STEPS[0])).unwrap();
        let outcome = execution.outcome();
        assert!(matches!(outcome, Outcome::Terminated(_)), "{execution:?}");
        assert_eq!(execution.stdout(), "kept\n");
        assert_eq!(session.run("1").unwrap_err().kind(), ErrorKind::Closed);
        lost += 1;
        assert_eq!(Engine::lost_threads(), lost);
    };
    assert_eq!(refusal.kind(), ErrorKind::Limit);
    assert!(refusal.to_string().contains(&lost.to_string()), "{refusal}");
    assert!(lost > 1);
    let sandbox = Sandbox::builder(&engine).isolation(Isolation::Process).build().unwrap();
    let mut session = sandbox.blocking().session().unwrap();
    assert_eq!(session.run("40 + 2").unwrap().value(), Some(&Value::Int(42)));
    println!("all as it should be");
}

/// F3: a session that is dropped during a run makes no more calls, whatever its guest catches.
#[tokio::test]
async fn a_dropped_session_has_no_further_effect() {
    let scratch = Scratch::new("dropped");
    let mount = Mount::read_write(scratch.path()).unwrap();
    let permissions = Permissions::none().mount("/data", mount).unwrap();
    let sandbox = Sandbox::builder(engine()).permissions(permissions).build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    let mut run = session.run_streaming(
        "print('started')\nwhile True:\n    try: open('/data/effect', 'a').write('x')\n    \
         except BaseException: pass",
    );
    run.next().await.unwrap();
    drop(run);
    drop(session);
    let size = || fs::metadata(scratch.path().join("effect")).map_or(0, |file| file.len());
    // One request may have been under way.
    sandbox.run("1").await.unwrap();
    let before = size();
    sandbox.run("1").await.unwrap();
    assert_eq!(size(), before, "the guest wrote after its session was dropped");
}
