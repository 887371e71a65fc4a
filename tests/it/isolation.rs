//! Tests of isolation in a process: the layers in force, and that the end of a worker ends only its
//! session.

use std::process::Command;

use isolet::{
    Engine, ErrorKind, Isolation, IsolationReport, Layer, Outcome, Sandbox, Session, SessionState,
    Termination, Value,
};

use crate::util::{Scratch, assets_dir, builder, engine_builder, eval, exec, processes};
use isolet_test_support::in_child;
use isolet_test_support::processes::{runs, stat};

fn in_process() -> Sandbox {
    builder().isolation(Isolation::Process).build().unwrap()
}

/// Returns the number of a session's worker.
fn worker(session: &Session) -> String {
    processes(session).0.to_string()
}

fn signal(name: &str, process: &str) {
    // The process may already be gone, so the result is ignored.
    Command::new("kill").args(["-s", name, process]).output().unwrap();
}

/// Runs a loop in the guest and signals the worker until it is dead.
async fn run_until_killed(session: &mut Session, name: &str) -> isolet::Execution {
    let worker = worker(session);
    let code = "import sys\nsys.stdout.write('running\\n')\nwhile True: pass";
    let mut run = session.run_streaming(code);
    run.next().await.unwrap();
    let name = name.to_owned();
    // Rust's own handler returns from the first signal and expects the fault to repeat.
    let kill = tokio::task::spawn_blocking(move || {
        while runs(&worker) {
            signal(&name, &worker);
        }
    });
    let execution = run.finish().await.unwrap();
    kill.await.unwrap();
    execution
}

#[tokio::test]
async fn a_worker_that_dies_ends_its_session_and_no_other() {
    let sandbox = in_process();
    let mut beside = sandbox.session().await.unwrap();
    for name in ["SEGV", "KILL", "ABRT", "BUS", "ILL", "SYS"] {
        let mut session = sandbox.session().await.unwrap();
        let execution = run_until_killed(&mut session, name).await;
        assert_eq!(execution.stdout(), "running\n");
        let Outcome::Terminated(Termination::Died { reason }) = execution.outcome() else {
            panic!("{execution:?}");
        };
        assert!(reason.contains(&format!("SIG{name}")), "{reason}");
        assert!(!execution.session_alive() && session.state() == SessionState::Died);
        assert_eq!(execution.into_result().unwrap_err().kind(), ErrorKind::WorkerDied);
        assert_eq!(session.run("1").await.unwrap_err().kind(), ErrorKind::Closed);
        session.reset().await.unwrap();
        assert_eq!(eval(&mut session, "40 + 2").await, Value::Int(42));
    }
    assert_eq!(eval(&mut beside, "40 + 2").await, Value::Int(42));
}

#[tokio::test]
async fn a_worker_that_dies_between_runs_is_told_of_by_the_next_one() {
    let mut session = in_process().session().await.unwrap();
    exec(&mut session, "pass").await;
    signal("KILL", &worker(&session));
    let execution = session.run("1").await.unwrap();
    assert!(matches!(execution.outcome(), Outcome::Terminated(Termination::Died { .. })));
    assert_eq!(session.state(), SessionState::Died);
}

#[tokio::test]
async fn a_guest_that_aborts_ends_its_session_only() {
    let sandbox = in_process();
    let execution = sandbox.run("import os; os.abort()").await.unwrap();
    assert!(matches!(execution.outcome(), Outcome::Terminated(Termination::Died { .. })));
    assert_eq!(sandbox.run("40 + 2").await.unwrap().value(), Some(&Value::Int(42)));
}

#[tokio::test]
async fn a_worker_is_locked_down_and_says_so() {
    let sandbox =
        builder().isolation(Isolation::Process).require([Layer::Seccomp, Layer::Landlock]);
    let session = sandbox.build().unwrap().session().await.unwrap();
    let report = session.isolation();
    assert_eq!(report.isolation(), Isolation::Process);
    for layer in [
        Layer::Process,
        Layer::EmptyEnvironment,
        Layer::Descriptors,
        Layer::NoNewPrivileges,
        Layer::NotDumpable,
        Layer::ResourceLimits,
    ] {
        assert!(report.is_enforced(layer), "{report}");
    }
    // The kernel's view, not the worker's.
    let status = std::fs::read_to_string(format!("/proc/{}/status", worker(&session))).unwrap();
    let line = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim();
    assert_eq!((line("NoNewPrivs:"), line("Seccomp:")), ("1", "2"));
    assert_eq!(line("CapEff:"), "0000000000000000");
}

#[tokio::test]
async fn workers_are_as_much_nicer_as_the_engine_says() {
    let niceness = |process: &str| stat(process).unwrap()[16].parse::<i32>().unwrap();
    let own = niceness(&std::process::id().to_string());
    let engine = engine_builder().isolation(Isolation::Process).worker_niceness(7).build().unwrap();
    let sandbox = Sandbox::builder(&engine).build().unwrap();
    let mut sessions = Vec::new();
    // Until one is a copy of a template.
    loop {
        let session = sandbox.session().await.unwrap();
        assert_eq!(niceness(&worker(&session)), (own + 7).min(19));
        let is_copy = processes(&session).1.is_some();
        sessions.push(session);
        if is_copy {
            break;
        }
        assert!(sessions.len() < 100, "no worker was copied");
    }
}

#[tokio::test]
async fn a_thread_has_no_layers_and_nothing_can_be_required_of_it() {
    let session = builder().isolation(Isolation::Thread).build().unwrap().session().await.unwrap();
    assert_eq!(session.isolation(), &IsolationReport::thread());
    let required = builder().isolation(Isolation::Thread).require([Layer::Seccomp]);
    let error = required.build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    let sentence = "the layer seccomp is required, and isolation `thread` has none; `process` has";
    assert_eq!(error.to_string(), sentence);
}

#[tokio::test]
async fn a_program_that_is_no_worker_is_an_error_that_says_so() {
    let scratch = Scratch::new("no-worker");
    let script = |name: &str, text: &str| scratch.program(name, &format!("#!/bin/sh\n{text}\n"));
    for (program, words) in [
        (scratch.path().join("none"), "cannot be started"),
        (script("ends", "exit 7"), "ended with status 7"),
        (script("chatters", "printf 'this is no frame at all' >&0"), "the limit is"),
        (
            script("lies", "printf '\\004\\000\\000\\000\\000\\000\\000\\000nope' >&0"),
            "since it sent",
        ),
    ] {
        let sandbox = builder().isolation(Isolation::Process).worker(&program).build().unwrap();
        let error = sandbox.session().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Start);
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[tokio::test]
async fn many_workers_serve_at_once() {
    let sandbox = in_process();
    let mut sessions = Vec::new();
    for number in 0..6 {
        let mut session = sandbox.session().await.unwrap();
        session.set("number", number).await.unwrap();
        sessions.push(session);
    }
    for (session, number) in sessions.iter_mut().zip(0..) {
        assert_eq!(eval(session, "number").await, Value::Int(number));
    }
}

/// The test binary does not begin with `isolet::init()`, and no command is installed in its
/// directory.
#[test]
#[expect(clippy::print_stdout, reason = "how the child tells the test")]
fn without_init_and_without_the_command_the_error_says_both_ways() {
    let name = "isolation::without_init_and_without_the_command_the_error_says_both_ways";
    if let Some(output) = in_child(name, |child| {
        child.env("PATH", "");
    }) {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains("`isolet::init()` in the first line of `main`"), "{output:?}");
        assert!(text.contains("install the command `isolet` 0."), "{text}");
        assert!(text.contains("`Isolation::Thread`"), "{text}");
        return;
    }
    let engine = Engine::builder().assets(assets_dir()).build().unwrap();
    let sandbox = Sandbox::builder(&engine).build().unwrap();
    let error = sandbox.blocking().session().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    println!("{error} {}", error.hint().unwrap_or_default());
}
