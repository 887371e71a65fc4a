//! Tests of landlock alone, on a thread: it applies to the calling thread and those that it starts.

use std::fs::{self, File};
use std::io::{ErrorKind, Result};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

use super::super::landlock;
use super::super::states::States;
use crate::data::isolation::{IsolationReport, Layer, LayerState};

/// Runs `job` under the ruleset, with the interface's version. Does not run it if there is no
/// landlock.
fn behind(job: impl FnOnce(u32) + Send + 'static) {
    let thread = std::thread::spawn(move || {
        let mut states = States::default();
        landlock::deny_all(&mut states);
        let report = IsolationReport::process(states);
        let (_, state) = report.layers().find(|(layer, _)| *layer == Layer::Landlock).unwrap();
        match state {
            LayerState::Enforced(detail) => {
                let number = detail.strip_prefix("ABI ").and_then(|rest| rest.split(',').next());
                job(number.unwrap().parse().unwrap());
            }
            LayerState::Missing(reason) => assert!(!reason.is_empty()),
        }
    });
    thread.join().unwrap();
}

#[track_caller]
fn assert_denied<T>(result: Result<T>) {
    assert_eq!(result.map(drop).map_err(|error| error.kind()), Err(ErrorKind::PermissionDenied));
}

#[test]
fn landlock_denies_every_path() {
    let directory = std::env::temp_dir();
    behind(move |_| {
        for path in ["/etc/passwd", "/proc/self/environ", "/dev/null", "/dev/urandom"] {
            assert!(Path::new(path).exists());
            assert_denied(File::open(path));
        }
        assert_denied(fs::read_dir("/"));
        assert_denied(fs::read_dir("/proc/self/fd"));
        assert_denied(fs::create_dir(directory.join("isolet-landlocked")));
        assert_denied(std::process::Command::new("/bin/sh").spawn());
        let nested = std::thread::spawn(|| assert_denied(File::open("/etc/passwd")));
        nested.join().unwrap();
    });
}

#[test]
fn landlock_denies_tcp() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    behind(move |abi| {
        if abi >= 4 {
            assert_denied(TcpStream::connect(address));
            assert_denied(TcpListener::bind("127.0.0.1:0"));
        }
    });
}

#[test]
fn landlock_denies_signals_to_others() {
    let parent = rustix::process::getppid().unwrap();
    behind(move |abi| {
        if abi >= 6 {
            let result = rustix::process::test_kill_process(parent);
            assert_eq!(result, Err(rustix::io::Errno::PERM));
        }
    });
}
