//! Tests of the state after the whole lockdown, and of what must still work then.

use std::fs;
use std::io::Read;

use rustix::process::{Pid, WaitOptions, set_child_subreaper, waitpid};

use super::{Running, attempt};
use crate::data::isolation::{Isolation, Layer};

/// Returns a line of a process's file in `/proc`, by its first word.
fn line(process: &str, file: &str, name: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{process}/{file}")).unwrap();
    let found = text.lines().find_map(|line| line.strip_prefix(name));
    found.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_kernel_shows_the_lockdown_of_a_worker() {
    let mut running = Running::start("wait");
    let process = running.next();
    let report = running.report();
    assert_eq!(report.isolation(), Isolation::Process);
    let always = [
        Layer::Process,
        Layer::EmptyEnvironment,
        Layer::Descriptors,
        Layer::NoNewPrivileges,
        Layer::NotDumpable,
        Layer::Capabilities,
        Layer::ResourceLimits,
        Layer::Seccomp,
    ];
    assert_eq!(report.missing(&always), [], "{report}");
    assert_eq!(line(&process, "status", "NoNewPrivs:"), "1");
    assert_eq!(line(&process, "status", "Seccomp:"), "2");
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
        assert_eq!(line(&process, "status", set), "0000000000000000", "{set}");
    }
    if report.is_enforced(Layer::UserNamespace) {
        assert_eq!(line(&process, "status", "CapBnd:"), "0000000000000000");
    }
    for limit in ["core file size", "file size", "open files", "processes", "locked memory"] {
        let zeros = line(&process, "limits", &format!("Max {limit}"));
        assert!(zeros.starts_with("0 0"), "{limit}: {zeros}");
    }
    let data = line(&process, "limits", "Max data size");
    assert!(data.starts_with("1073741824 1073741824"), "{data}");
    // The first number after the closing parenthesis of the name and the state is the parent,
    // followed by the group and the session.
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    assert_eq!(fields[3], process, "it leads a session of its own");
    assert_eq!(running.ending(), "code 0");
}

#[test]
fn a_worker_dies_with_the_process_that_started_it() {
    // An orphaned process becomes a child of this one, which can then query how it ended.
    set_child_subreaper(Pid::from_raw(1)).unwrap();
    let mut running = Running::start("wait");
    let process = Pid::from_raw(running.next().parse().unwrap()).unwrap();
    running.report();
    running.starter.kill().unwrap();
    running.starter.wait().unwrap();
    let (_, status) = waitpid(Some(process), WaitOptions::empty()).unwrap().unwrap();
    assert_eq!(status.terminating_signal(), Some(libc::SIGKILL));
}

#[test]
fn a_crash_is_seen_as_what_it_is() {
    assert_eq!(attempt("abort"), (None, "signal 6".to_owned()));
    // The standard library's handler turns a stack overflow into an abort.
    assert_eq!(attempt("overflow"), (None, "signal 6".to_owned()));
    assert_eq!(attempt("segfault"), (None, "signal 11".to_owned()));
}

#[test]
fn memory_that_can_be_written_to_ends_at_its_limit() {
    assert_eq!(attempt("memory"), (Some("true false".to_owned()), "code 0".to_owned()));
}

/// When a heap of a thread other than the main one shrinks, glibc opens one of the kernel's files
/// once.
#[test]
fn a_thread_s_heap_can_shrink() {
    assert_eq!(attempt("shrinking-heap"), (Some("it shrank".to_owned()), "code 0".to_owned()));
}

#[test]
fn a_worker_can_make_no_descriptor_even_without_the_filter() {
    assert_eq!(attempt("no-descriptor"), (Some("true".to_owned()), "code 0".to_owned()));
}

#[test]
fn a_worker_s_memory_and_environment_cannot_be_looked_into_by_its_user() {
    if !rustix::process::geteuid().is_root() {
        let mut running = Running::start("wait");
        let process = running.next();
        running.report();
        for file in ["environ", "maps", "mem", "fd/0"] {
            let mut byte = [0];
            let opened = fs::File::open(format!("/proc/{process}/{file}"));
            assert!(opened.and_then(|mut opened| opened.read(&mut byte)).is_err(), "{file}");
        }
        assert_eq!(running.ending(), "code 0");
    }
}
