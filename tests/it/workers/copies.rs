//! Tests of workers that are copies of a booted one: they share nothing that a session could
//! notice.

#![cfg(target_os = "linux")]

use std::collections::HashSet;
use std::process::Command;
use std::time::Duration;

use isolet::{
    Engine, Isolation, Limits, Outcome, Sandbox, Session, Termination, Value, WorkerStart,
};

use crate::util::{Scratch, engine_builder, eval, exec, processes};

fn own_engine() -> Engine {
    engine_builder().isolation(Isolation::Process).build().unwrap()
}

/// Opens a session whose worker is a copy. The first workers are not, because the template has to
/// boot.
async fn copy(sandbox: &Sandbox) -> Session {
    for _ in 0..100 {
        let mut session = sandbox.session().await.unwrap();
        if processes(&session).1.is_some() {
            // It starts up in the background until its first command.
            exec(&mut session, "pass").await;
            return session;
        }
    }
    panic!("no worker is a copy");
}

/// Returns the processes that were copied from this one.
fn copies_of(origin: u32) -> HashSet<u32> {
    let is_copy = |process: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        let parent = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1));
        parent.and_then(|parent| parent.parse().ok()) == Some(origin)
    };
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        entry.unwrap().file_name().to_str().and_then(|name| name.parse::<u32>().ok())
    });
    processes.filter(is_copy).collect()
}

#[tokio::test]
async fn the_next_session_takes_a_copy_that_was_made_ahead_and_nobody_has_used() {
    let engine = own_engine();
    let sandbox = Sandbox::builder(&engine).build().unwrap();
    let session = copy(&sandbox).await;
    let (mut used, origin) = (HashSet::from([processes(&session).0]), processes(&session).1);
    let origin = origin.unwrap();
    for _ in 0..1000 {
        let ahead: HashSet<u32> = copies_of(origin).difference(&used).copied().collect();
        let mut next = sandbox.session().await.unwrap();
        let (worker, _) = processes(&next);
        assert!(used.insert(worker), "a second session in the same process");
        exec(&mut next, "assert 'mark' not in globals(); mark = 1").await;
        if ahead.contains(&worker) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("no copy was made ahead");
}

#[tokio::test]
async fn an_engine_that_only_restores_sessions_makes_copies_ahead_too() {
    let scratch = Scratch::new("copies-restored");
    let file = scratch.path().join("saved");
    let mut session = Sandbox::builder(&own_engine()).build().unwrap().session().await.unwrap();
    exec(&mut session, "mark = 1").await;
    session.save(&file).await.unwrap();
    let engine = own_engine();
    let sandbox = Sandbox::builder(&engine).build().unwrap();
    let (mut used, mut origin) = (HashSet::new(), None);
    for _ in 0..1000 {
        let ahead = origin.map(copies_of).unwrap_or_default();
        let mut next = sandbox.restore(&file).await.unwrap();
        let (worker, template) = processes(&next);
        assert!(used.insert(worker), "a second session in the same process");
        exec(&mut next, "assert mark == 1; mark = 2").await;
        if ahead.contains(&worker) {
            return;
        }
        origin = template.or(origin);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("no copy was made ahead");
}

#[tokio::test]
async fn an_engine_without_spare_sessions_copies_a_worker_when_a_session_needs_it() {
    let engine = engine_builder().isolation(Isolation::Process).spare_sessions(0).build().unwrap();
    let sandbox = Sandbox::builder(&engine).build().unwrap();
    let first = copy(&sandbox).await;
    let origin = processes(&first).1.unwrap();
    for _ in 0..5 {
        let before = copies_of(origin);
        let next = sandbox.session().await.unwrap();
        assert!(!before.contains(&processes(&next).0));
    }
}

#[tokio::test]
async fn copies_draw_other_numbers() {
    let engine = own_engine();
    let sandbox = Sandbox::builder(&engine).build().unwrap();
    let code = "
import js, os, random, secrets, tempfile, uuid
[js.Math.random(), random.random(), os.urandom(8).hex(), secrets.token_hex(), str(uuid.uuid4()),
 tempfile.mktemp(), random.SystemRandom().random(), js.crypto.getRandomValues(js.Uint8Array.new(8)).to_bytes().hex()]
";
    let mut drawn = HashSet::new();
    let mut origins = HashSet::new();
    for _ in 0..4 {
        let mut session = copy(&sandbox).await;
        origins.insert(processes(&session).1);
        let Value::List(values) = eval(&mut session, code).await else { panic!() };
        for (which, value) in values.into_iter().enumerate() {
            assert!(drawn.insert(format!("{which} {value:?}")), "{value:?} again");
        }
    }
    assert_eq!(origins.len(), 1, "they are of one origin");
}

#[tokio::test]
async fn javascripts_random_numbers_are_spread_evenly() {
    let engine = own_engine();
    let mut session = copy(&Sandbox::builder(&engine).build().unwrap()).await;
    let code = "
import js
drawn = [js.Math.random() for _ in range(4000)]
[all(0 <= x < 1 for x in drawn), len(set(drawn)), all(300 < sum(int(x * 10) == i for x in drawn) < 500 for i in range(10))]
";
    let expected = Value::List(vec![true.into(), 4000.into(), true.into()]);
    assert_eq!(eval(&mut session, code).await, expected);
}

#[tokio::test]
async fn what_one_copy_does_another_does_not_see() {
    let engine = own_engine();
    let sandbox = Sandbox::builder(&engine).build().unwrap();
    let mut first = copy(&sandbox).await;
    let spoil = "
import builtins, js, math, sys
builtins.len = lambda _: 'spoiled'
math.pi = 3
js.eval('globalThis.mark = 1; Object.prototype.mark = 1')
open('/tmp/mark', 'w').write('mark')
x = bytearray(b'x') * (64 << 20)
";
    exec(&mut first, spoil).await;
    let look = "
import js, math, os
[len('ab'), math.pi > 3.1, js.eval('globalThis.mark === undefined'), os.path.exists('/tmp/mark'), 'x' in globals()]
";
    let unspoiled: Vec<Value> =
        vec![2.into(), true.into(), true.into(), false.into(), false.into()];
    // One session opened before, and one opened after.
    let mut others = vec![copy(&sandbox).await];
    others.push(copy(&sandbox).await);
    for other in &mut others {
        assert_eq!(eval(other, look).await, Value::List(unspoiled.clone()));
    }
}

#[tokio::test]
async fn a_copy_that_is_killed_takes_nobody_along() {
    let engine = own_engine();
    let limits =
        Limits::default().max_run_time(Duration::from_millis(200)).max_grace(Duration::ZERO);
    let sandbox = Sandbox::builder(&engine).limits(limits).build().unwrap();
    let mut other = copy(&sandbox).await;
    let origin = processes(&other).1;
    let mut session = copy(&sandbox).await;
    let execution = session.run("while True: pass").await.unwrap();
    let outcome = execution.outcome();
    assert!(matches!(outcome, Outcome::Terminated(Termination::Deadline { .. })), "{outcome:?}");
    assert!(!execution.session_alive());
    assert_eq!(eval(&mut other, "1 + 1").await, Value::Int(2));
    assert_eq!(processes(&copy(&sandbox).await).1, origin);
}

#[tokio::test]
async fn how_a_copy_ended_is_told() {
    let engine = own_engine();
    let sandbox = Sandbox::builder(&engine).build().unwrap();
    let mut session = copy(&sandbox).await;
    let (worker, _) = processes(&session);
    assert!(Command::new("kill").args(["-ABRT", &worker.to_string()]).status().unwrap().success());
    // A run may end before the signal arrives.
    let told = loop {
        let execution = session.run("1").await.unwrap();
        if !execution.session_alive() {
            break format!("{:?}", execution.outcome());
        }
    };
    assert!(told.contains("signal 6 (SIGABRT)"), "{told}");
}

#[tokio::test]
async fn a_copy_has_no_descriptor_of_what_it_is_copied_from() {
    let engine = own_engine();
    let sandbox = Sandbox::builder(&engine).build().unwrap();
    let (first, second) = (copy(&sandbox).await, copy(&sandbox).await);
    let descriptors = |process: u32| -> HashSet<String> {
        std::fs::read_dir(format!("/proc/{process}/fd"))
            .unwrap()
            .map(|fd| std::fs::read_link(fd.unwrap().path()).unwrap().display().to_string())
            // These have no name: each may be a different file.
            .filter(|name| name != "/dev/null" && !name.starts_with("anon_inode:"))
            .collect()
    };
    let ((first, origin), (second, _)) = (processes(&first), processes(&second));
    let (first, second) = (descriptors(first), descriptors(second));
    assert!(first.iter().all(|name| name.starts_with("socket:")), "{first:?}");
    assert!(first.is_disjoint(&second), "{first:?} {second:?}");
    assert!(first.is_disjoint(&descriptors(origin.unwrap())));
}

#[tokio::test]
async fn a_saved_session_is_restored_in_a_copy() {
    const DIGEST: &str = "hashlib.sha256(b''.join(data)).hexdigest(), sorted(words)[:5]";
    let engine = own_engine();
    let (sandbox, dir) = (Sandbox::builder(&engine).build().unwrap(), Scratch::new("copy-saved"));
    let file = dir.path().join("session");
    let mut session = sandbox.session().await.unwrap();
    let code = "
import gc, hashlib, os
data = [os.urandom(5000) for _ in range(400)]
words = {f'word {n}': object() for n in range(20_000)}
";
    exec(&mut session, code).await;
    let expected = eval(&mut session, DIGEST).await;
    session.save(&file).await.unwrap();
    // From here on workers are copies.
    let used = copy(&sandbox).await;
    for _ in 0..3 {
        let mut restored = sandbox.restore(&file).await.unwrap();
        assert_eq!(processes(&restored).1, processes(&used).1);
        exec(&mut restored, "gc.collect(); more = [bytes(n) for n in range(2000)]").await;
        assert_eq!(eval(&mut restored, DIGEST).await, expected);
    }
}

#[tokio::test]
async fn without_what_they_are_copied_from_workers_start_anew() {
    let engine = own_engine();
    let sandbox = Sandbox::builder(&engine).build().unwrap();
    let mut session = copy(&sandbox).await;
    let (_, origin) = processes(&session);
    let origin = origin.unwrap().to_string();
    assert!(Command::new("kill").args(["-KILL", &origin]).status().unwrap().success());
    let told = session.run("while True: pass").await.unwrap();
    assert!(!told.session_alive(), "{told:?}");
    assert_eq!(eval(&mut sandbox.session().await.unwrap(), "1 + 1").await, Value::Int(2));
    // The next worker is copied from another template.
    let (_, next) = processes(&copy(&sandbox).await);
    assert_ne!(next.unwrap().to_string(), origin);
}

#[tokio::test]
async fn an_engine_can_have_each_worker_started_anew() {
    let engine = engine_builder()
        .isolation(Isolation::Process)
        .worker_start(WorkerStart::Fresh)
        .build()
        .unwrap();
    let sandbox = Sandbox::builder(&engine).build().unwrap();
    for _ in 0..5 {
        assert_eq!(processes(&sandbox.session().await.unwrap()).1, None);
    }
}

#[tokio::test]
async fn copies_share_huge_pages_where_the_kernel_has_them() {
    let engine = own_engine();
    let session = copy(&Sandbox::builder(&engine).build().unwrap()).await;
    let (worker, _) = processes(&session);
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut version = release.split(['.', '-']).map(|part| part.parse().unwrap_or(0));
    let version: (u32, u32) = (version.next().unwrap(), version.next().unwrap());
    // Only root may look into a worker.
    let Ok(rollup) = std::fs::read_to_string(format!("/proc/{worker}/smaps_rollup")) else {
        return;
    };
    if version < (6, 1) || !cfg!(target_arch = "x86_64") {
        return;
    }
    let kib = |name: &str| {
        let line = rollup.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim_end_matches("kB").trim().parse::<u64>().unwrap()
    };
    assert!(kib("AnonHugePages:") > 16 << 10, "{rollup}");
    // None of them is a copy of its own.
    assert!(kib("Private_Dirty:") < 8 << 10, "{rollup}");
}
