//! Tests of the system calls that kill a worker, by name and by number.

use std::ffi::{c_int, c_long};

use super::attempt;
use super::probes::raw;

/// Makes a system call. The argument is the number of the parent, which a worker can no longer
/// query.
type Call = fn(c_long) -> c_long;

/// System calls that untrusted code would make, and permitted ones with forbidden arguments.
pub(super) const DENIED: &[(&str, Call)] = &[
    ("openat", |_| raw(libc::SYS_openat, [libc::AT_FDCWD.into(), 0, 0, 0, 0, 0])),
    ("openat to write", |_| raw(libc::SYS_openat, [libc::AT_FDCWD.into(), 0, WRITE, 0, 0, 0])),
    #[cfg(target_arch = "x86_64")]
    ("open", |_| raw(libc::SYS_open, [0; 6])),
    ("openat2", |_| raw(libc::SYS_openat2, [0; 6])),
    ("socket", |_| {
        raw(libc::SYS_socket, [libc::AF_INET.into(), libc::SOCK_STREAM.into(), 0, 0, 0, 0])
    }),
    ("socketpair", |_| raw(libc::SYS_socketpair, [libc::AF_UNIX.into(), 1, 0, 0, 0, 0])),
    ("connect", |_| raw(libc::SYS_connect, [0; 6])),
    ("bind", |_| raw(libc::SYS_bind, [0; 6])),
    ("recvmsg, which receives descriptors", |_| raw(libc::SYS_recvmsg, [0; 6])),
    ("sendmsg, which sends descriptors", |_| raw(libc::SYS_sendmsg, [0; 6])),
    ("execve", |_| raw(libc::SYS_execve, [0; 6])),
    ("execveat", |_| raw(libc::SYS_execveat, [0; 6])),
    #[cfg(target_arch = "x86_64")]
    ("fork", |_| raw(libc::SYS_fork, [0; 6])),
    ("clone", |_| raw(libc::SYS_clone, [libc::SIGCHLD.into(), 0, 0, 0, 0, 0])),
    ("clone of a thread", |_| raw(libc::SYS_clone, [THREAD, 0, 0, 0, 0, 0])),
    ("clone3", |_| raw(libc::SYS_clone3, [0; 6])),
    ("ptrace", |_| raw(libc::SYS_ptrace, [0; 6])),
    ("bpf", |_| raw(libc::SYS_bpf, [0; 6])),
    ("perf_event_open", |_| raw(libc::SYS_perf_event_open, [0; 6])),
    ("io_uring_setup", |_| raw(libc::SYS_io_uring_setup, [1, 0, 0, 0, 0, 0])),
    ("userfaultfd", |_| raw(libc::SYS_userfaultfd, [0; 6])),
    ("keyctl", |_| raw(libc::SYS_keyctl, [0; 6])),
    ("add_key", |_| raw(libc::SYS_add_key, [0; 6])),
    ("mount", |_| raw(libc::SYS_mount, [0; 6])),
    ("unshare", |_| raw(libc::SYS_unshare, [libc::CLONE_NEWUSER.into(), 0, 0, 0, 0, 0])),
    ("setns", |_| raw(libc::SYS_setns, [0; 6])),
    ("process_vm_readv", |parent| raw(libc::SYS_process_vm_readv, [parent, 0, 0, 0, 0, 0])),
    ("process_vm_writev", |parent| raw(libc::SYS_process_vm_writev, [parent, 0, 0, 0, 0, 0])),
    ("pidfd_open", |parent| raw(libc::SYS_pidfd_open, [parent, 0, 0, 0, 0, 0])),
    ("kill of the parent", |parent| raw(libc::SYS_kill, [parent, 0, 0, 0, 0, 0])),
    ("kill of itself", |_| raw(libc::SYS_kill, [own(), 0, 0, 0, 0, 0])),
    ("tgkill of the parent", |parent| raw(libc::SYS_tgkill, [parent, parent, 0, 0, 0, 0])),
    ("tgkill of all", |_| raw(libc::SYS_tgkill, [-1, 0, 0, 0, 0, 0])),
    ("memfd_create", |_| raw(libc::SYS_memfd_create, [0; 6])),
    ("mmap of a file", |_| map(libc::MAP_PRIVATE)),
    ("shmget", |_| raw(libc::SYS_shmget, [0; 6])),
    ("ioctl", |_| raw(libc::SYS_ioctl, [0; 6])),
    ("prctl with another option", |_| raw(libc::SYS_prctl, [0; 6])),
    ("seccomp", |_| raw(libc::SYS_seccomp, [0; 6])),
    ("setuid", |_| raw(libc::SYS_setuid, [0; 6])),
    ("dup", |_| raw(libc::SYS_dup, [0; 6])),
    ("futex with inherited priority", |_| {
        raw(libc::SYS_futex, [0, libc::FUTEX_LOCK_PI.into(), 0, 0, 0, 0])
    }),
    ("futex that requeues", |_| {
        raw(libc::SYS_futex, [0, libc::FUTEX_CMP_REQUEUE_PI.into(), 0, 0, 0, 0])
    }),
    ("madvise with other advice", |_| {
        raw(libc::SYS_madvise, [0, 0, libc::MADV_HWPOISON.into(), 0, 0, 0])
    }),
    ("rt_sigaction of the filter's signal", |_| {
        raw(libc::SYS_rt_sigaction, [libc::SIGSYS.into(), 0, 0, 8, 0, 0])
    }),
    ("sendto out of band", |_| raw(libc::SYS_sendto, [1, 0, 0, libc::MSG_OOB.into(), 0, 0])),
    ("recvfrom out of band", |_| raw(libc::SYS_recvfrom, [1, 0, 0, libc::MSG_OOB.into(), 0, 0])),
    ("mmap of shared memory", |_| map(libc::MAP_SHARED | libc::MAP_ANONYMOUS)),
    ("mmap of a stack that grows", |_| map(OWN_MEMORY | libc::MAP_GROWSDOWN)),
    ("mmap of huge pages", |_| map(OWN_MEMORY | libc::MAP_HUGETLB)),
    ("mremap that leaves a hole", |_| {
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_DONTUNMAP;
        raw(libc::SYS_mremap, [0, 0, 0, flags.into(), 0, 0])
    }),
    #[cfg(target_arch = "x86_64")]
    ("getpid by the numbers of x32", |_| raw(0x4000_0000 | libc::SYS_getpid, [0; 6])),
    ("a number that no kernel has", |_| raw(100_000, [0; 6])),
    ("a negative number", |_| raw(-1, [0; 6])),
];

/// The flags with which the C library starts threads, without the signal.
const THREAD: c_long = (libc::CLONE_VM | libc::CLONE_SIGHAND | libc::CLONE_THREAD) as c_long;

/// The flags that open a file for writing.
const WRITE: c_long = (libc::O_WRONLY | libc::O_CLOEXEC) as c_long;

const OWN_MEMORY: c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;

/// Maps a readable page; of descriptor 0 if the mapping is of a file.
fn map(flags: c_int) -> c_long {
    raw(libc::SYS_mmap, [0, 4096, libc::PROT_READ.into(), flags.into(), 0, 0])
}

/// The filter's signal, SIGSYS, has the same number on both architectures.
const KILLED: &str = "signal 31";

/// Permitted system calls that do not occur on every machine.
const KEPT: &[(&str, [c_long; 6], c_long)] = &[
    ("prctl", [libc::PR_SET_VMA as c_long, 0, 0, 0, 0, 0], libc::SYS_prctl),
    ("pkey_mprotect", [0, 0, 0, -1, 0, 0], libc::SYS_pkey_mprotect),
    ("epoll_pwait", [-1, 0, 0, 0, 0, 0], libc::SYS_epoll_pwait),
    ("gettimeofday", [0; 6], libc::SYS_gettimeofday),
    ("clock_gettime", [0; 6], libc::SYS_clock_gettime),
    ("nanosleep", [0; 6], libc::SYS_nanosleep),
    ("restart_syscall", [0; 6], libc::SYS_restart_syscall),
    ("set_robust_list", [0; 6], libc::SYS_set_robust_list),
    ("rseq", [0; 6], libc::SYS_rseq),
    ("mremap", [0, 0, 0, libc::MREMAP_MAYMOVE as c_long, 0, 0], libc::SYS_mremap),
    ("brk", [0; 6], libc::SYS_brk),
    ("writev", [1, 0, 0, 0, 0, 0], libc::SYS_writev),
    ("recvfrom", [1, 0, 0, 0, 0, 0], libc::SYS_recvfrom),
    ("sendto", [1, 0, 0, 0, 0, 0], libc::SYS_sendto),
];

/// Asks about another process and about this one, by calls that could tell of any. What is not
/// asked for is null, so that a call that runs fails with `EFAULT`, or does nothing.
pub(super) fn ask_about_processes() {
    let other = c_long::from(std::os::unix::process::parent_id());
    super::lock();
    let last = |number, first| {
        raw(number, [first, 0, 0, 0, 0, 0]);
        std::io::Error::last_os_error().raw_os_error().unwrap_or_default()
    };
    // The kernel's number for the processor time of a process.
    let time_of = |process: c_long| (!process << 3) | 2;
    let refused = [
        last(libc::SYS_sched_getscheduler, other),
        last(libc::SYS_sched_getparam, other),
        last(libc::SYS_sched_getaffinity, other),
        last(libc::SYS_clock_gettime, time_of(other)),
        last(libc::SYS_clock_nanosleep, time_of(other)),
    ];
    let scheduler = raw(libc::SYS_sched_getscheduler, [0; 6]);
    let own = [last(libc::SYS_clock_gettime, 2), last(libc::SYS_clock_nanosleep, 1)];
    super::say(format!("{refused:?} {scheduler} {own:?}"));
}

/// Makes the calls in `KEPT`, and says the name of the last one.
pub(super) fn make_kept() {
    super::lock();
    for (name, arguments, number) in KEPT {
        raw(*number, *arguments);
        super::say(name);
    }
}

fn own() -> c_long {
    std::process::id().into()
}

#[test]
fn a_locked_down_worker_cannot_make_these_calls() {
    assert_eq!(libc::SIGSYS, 31);
    for (name, _) in DENIED {
        let outcome = attempt(&format!("denied:{name}"));
        assert_eq!(outcome, (None, KILLED.to_owned()), "{name}");
    }
}

/// The C library does so occasionally, and works without the file.
#[test]
fn to_open_a_file_to_read_it_fails_and_does_not_kill() {
    assert_eq!(attempt("open-to-read"), (Some("PermissionDenied".to_owned()), "code 0".to_owned()));
}

#[test]
fn calls_that_other_kernels_and_machines_lead_to_do_not_kill() {
    assert_eq!(attempt("kept"), (Some("sendto".to_owned()), "code 0".to_owned()));
}

#[test]
fn a_worker_learns_nothing_of_other_processes() {
    let [gone, none, invalid, fault] = [libc::ESRCH, libc::ENOSYS, libc::EINVAL, libc::EFAULT];
    let refused = [gone, gone, none, invalid, invalid];
    let expected = format!("{refused:?} 0 {:?}", [fault, fault]);
    assert_eq!(attempt("processes"), (Some(expected), "code 0".to_owned()));
}

#[test]
fn every_call_that_is_not_in_the_table_kills_the_worker() {
    assert_eq!(attempt("sweep"), (None, "code 0".to_owned()));
}

#[test]
fn a_call_by_another_architecture_s_numbers_does_not_return() {
    let (said, ending) = attempt("foreign-architecture");
    assert_eq!(said, None);
    // A kernel without support for the other architecture treats its call as a crash.
    assert!([KILLED, "signal 11"].contains(&ending.as_str()), "{ending}");
}

#[test]
fn the_filter_holds_on_a_thread_that_was_there_before() {
    assert_eq!(attempt("thread"), (None, KILLED.to_owned()));
}

#[test]
fn a_thread_that_begins_to_run_only_after_the_filter_is_not_killed() {
    assert_eq!(attempt("late-threads"), (Some("all ended".to_owned()), "code 0".to_owned()));
}

#[test]
fn a_locked_down_worker_cannot_start_a_thread() {
    assert_eq!(attempt("no-thread"), (None, KILLED.to_owned()));
}
