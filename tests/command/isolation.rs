//! Tests of the isolation that the command chooses.

use isolet_test_support::processes::{children, runs};
use isolet_test_support::{command, isolet};

#[test]
fn the_command_isolates_in_a_process_unless_told_otherwise() {
    let doctor = |arguments: &[&str]| {
        let mut doctor = command(["doctor"].iter().chain(arguments));
        isolet_test_support::Ran::from(doctor.env_remove("ISOLET_ISOLATION").output().unwrap())
    };
    let ran = doctor(&["--require", "seccomp,landlock"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("\nisolation          process\n"), "{}", ran.stdout);
    assert!(ran.stdout.contains("\nseccomp            yes"), "{}", ran.stdout);
    let ran = doctor(&["--isolation", "thread"]);
    assert!(ran.stdout.contains("\nisolation          thread\n"), "{}", ran.stdout);
    let ran = doctor(&["--isolation", "thread", "--require", "seccomp"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let ran = isolet(["run", "--require", "walls", "-c", "1"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("there is no isolation layer `walls`"), "{}", ran.stderr);
}

#[test]
fn a_worker_dies_with_the_process_it_works_for() {
    let code = "print('running', flush=True)\nwhile True: pass";
    let mut parent = command(["run", "--isolation", "process", "-c", code]);
    let mut parent = parent.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut byte = [0];
    std::io::Read::read_exact(parent.stdout.as_mut().unwrap(), &mut byte).unwrap();
    let workers = children(parent.id());
    assert_eq!(workers.len(), 1);
    parent.kill().unwrap();
    parent.wait().unwrap();
    // An orphan may not have been waited for yet. It only must not be running.
    while workers.iter().any(|worker| runs(worker)) {
        std::thread::yield_now();
    }
}

/// Where it is told late that it needs none, its worker has begun before.
#[test]
fn a_command_that_fails_or_needs_no_worker_leaves_none() {
    for words in [&["run", "--no-such-option", "-c", "1"][..], &["run", "/no/such/file.py"]] {
        let ran = isolet(words);
        assert_eq!(ran.code, Some(2), "{ran:?}");
    }
    let code = "print('running', flush=True)\nwhile True: pass";
    let mut parent = command(["run", "-c", code]);
    let parent = parent.env("ISOLET_ISOLATION", "thread").stdout(std::process::Stdio::piped());
    let mut parent = parent.spawn().unwrap();
    let mut byte = [0];
    std::io::Read::read_exact(parent.stdout.as_mut().unwrap(), &mut byte).unwrap();
    let workers = children(parent.id());
    parent.kill().unwrap();
    parent.wait().unwrap();
    assert_eq!(workers.len(), 0);
}

/// A person who types a worker's arguments gets neither a worker nor an endless wait.
#[test]
fn a_workers_arguments_at_a_terminal_are_a_usage_error() {
    let ran = isolet(["isolet-worker", "1"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
}
