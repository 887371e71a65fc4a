//! Tests of the table of permitted system calls, as data.

use std::collections::BTreeSet;

use seccompiler::SeccompAction;

use super::super::seccomp;
use super::super::syscalls::{CALLS, When};

#[test]
fn the_table_has_each_call_once_and_a_reason_for_it() {
    let numbers: BTreeSet<_> = CALLS.iter().map(|call| call.number).collect();
    let names: BTreeSet<_> = CALLS.iter().map(|call| call.name).collect();
    assert_eq!((numbers.len(), names.len()), (CALLS.len(), CALLS.len()));
    for call in CALLS {
        assert!(call.reason.contains(' '), "{}", call.name);
    }
}

#[test]
fn calls_that_reach_further_than_this_process_depend_on_their_arguments() {
    for name in [
        "mmap",
        "tgkill",
        "futex",
        "madvise",
        "sendto",
        "rt_sigaction",
        "prctl",
        "openat",
        "recvfrom",
        "mremap",
        "clock_gettime",
        "clock_nanosleep",
        "sched_getparam",
        "sched_getscheduler",
        "sched_getaffinity",
    ] {
        let call = CALLS.iter().find(|call| call.name == name).unwrap();
        assert!(!matches!(call.when, When::Always), "{name}");
    }
}

#[test]
fn the_filters_are_built_for_this_architecture_and_the_one_that_kills_is_the_last() {
    let programs = seccomp::programs(CALLS).unwrap();
    let (killing, refusing) = programs.split_last().unwrap();
    assert!(killing.len() > CALLS.len());
    assert_eq!(killing.last().unwrap().k, u32::from(SeccompAction::KillProcess));
    // One for each error.
    assert_eq!(refusing.len(), 4);
    for refusing in refusing {
        assert!(refusing.len() < killing.len());
        assert_eq!(refusing.last().unwrap().k, u32::from(SeccompAction::Allow));
    }
}
