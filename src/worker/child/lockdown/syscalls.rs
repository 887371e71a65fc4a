//! The system calls that the seccomp filter permits, each with the reason.
//!
//! They were found by tracing the interpreter, V8's compilers and its garbage collector. Some that
//! did not occur in traces are permitted too: they occur in signal handlers, in crashes, on other
//! kernels or on other machines. No permitted call names a file, creates a descriptor, thread or
//! process, or changes another process; a forkable worker can create what its parent permits.

use std::ffi::{c_int, c_long};

use crate::data::isolation::{CallRule, SystemCall};

/// A system call that does not kill the worker.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    /// Its number in the kernel.
    pub(super) number: c_long,
    /// Its name, for people.
    pub(super) name: &'static str,
    /// The condition under which it does not kill.
    pub(super) when: When,
    /// The effect of the call.
    pub(super) then: Then,
    /// Why it is needed.
    pub(super) reason: &'static str,
}

/// The effect of a permitted call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// The call runs.
    Run,
    /// The call does nothing and fails with this error.
    Fail(c_int),
    /// It runs under the condition; otherwise it fails with this error, and does not kill.
    RunOr(c_int),
}

/// The condition under which a call does not kill. Arguments are counted from 0.
#[derive(Clone, Copy, Debug)]
pub(super) enum When {
    /// Always.
    Always,
    /// The argument, a C `int`, is one of these.
    IntIs(u8, &'static [c_int]),
    /// The argument, a C `int`, is none of these.
    IntIsNone(u8, &'static [c_int]),
    /// The argument, a C `int`, is one of these under the mask.
    IntMasked(u8, c_int, &'static [c_int]),
    /// The argument, a C `long`, is this under the mask.
    LongMasked(u8, c_long, c_int),
    /// The argument is the number of the calling process.
    OwnProcess(u8),
    /// A mapping of private memory, or of the descriptor that the parent gives a copy for its
    /// output.
    MapsRing,
}

/// The clocks of the system, of the calling process and of the calling thread. The others belong to
/// any process or device.
const CLOCKS: &[c_int] = &[
    libc::CLOCK_REALTIME,
    libc::CLOCK_MONOTONIC,
    libc::CLOCK_PROCESS_CPUTIME_ID,
    libc::CLOCK_THREAD_CPUTIME_ID,
    libc::CLOCK_MONOTONIC_RAW,
    libc::CLOCK_REALTIME_COARSE,
    libc::CLOCK_MONOTONIC_COARSE,
    libc::CLOCK_BOOTTIME,
];

use When::{Always, IntIs, IntMasked, LongMasked, MapsRing, OwnProcess};

/// The operations of `futex`, except those on priority-inheriting locks.
const FUTEX_OPERATIONS: &[c_int] =
    &[libc::FUTEX_WAIT, libc::FUTEX_WAKE, libc::FUTEX_WAIT_BITSET, libc::FUTEX_WAKE_BITSET];

/// Masks out the modifiers of a `futex` operation: private, and the clock.
const FUTEX_COMMAND: c_int = !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME);

/// All flags of a mapping except harmless ones, such as those about its position. Shared memory,
/// and memory that grows down like a stack, would escape the limit on writable memory.
const MAPPING: c_long =
    !((libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE | libc::MAP_NORESERVE | libc::MAP_STACK)
        as c_long);

/// A mapping of private memory.
pub(super) const PRIVATE: When = LongMasked(3, MAPPING, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);

const ADVICE: &[c_int] = &[
    libc::MADV_DONTNEED,
    libc::MADV_FREE,
    libc::MADV_DONTFORK,
    libc::MADV_DONTDUMP,
    libc::MADV_DODUMP,
    libc::MADV_POPULATE_WRITE,
];

/// [`ADVICE`], and to copy memory that V8 has excluded from copies.
const FORKABLE_ADVICE: &[c_int] = &[
    libc::MADV_DONTNEED,
    libc::MADV_FREE,
    libc::MADV_DONTFORK,
    libc::MADV_DOFORK,
    libc::MADV_DONTDUMP,
    libc::MADV_DODUMP,
    libc::MADV_POPULATE_WRITE,
];

/// The signals that a crash resets or raises.
const CRASH_SIGNALS: &[c_int] = &[libc::SIGSEGV, libc::SIGBUS, libc::SIGABRT];

/// The flags with which libraries open files about the system.
const TO_READ: c_int = libc::O_RDONLY | libc::O_CLOEXEC;

/// The flags with which libraries open a directory.
const TO_LIST: c_int = TO_READ | libc::O_NONBLOCK | libc::O_DIRECTORY;

/// Returns the system calls that do not kill a worker, each with the reason why it needs them.
///
/// They are the seccomp filter of [`Isolation::Process`](crate::Isolation::Process) on this
/// processor. Any other call kills the worker. Empty on systems without process isolation.
#[must_use]
pub fn system_calls() -> Vec<SystemCall> {
    let described = |call: &Call| {
        let rule = match (call.then, call.when) {
            (Then::Fail(_), _) => CallRule::Fails,
            (Then::Run, When::Always) => CallRule::Runs,
            (Then::Run | Then::RunOr(_), _) => CallRule::Depends,
        };
        SystemCall { name: call.name, rule, reason: call.reason }
    };
    CALLS.iter().map(described).collect()
}

/// Returns the system calls that do not kill a worker, which may be forkable.
pub(super) fn calls(forkable: bool) -> Vec<Call> {
    let own: &[Call] = if forkable { FORKABLE } else { &[] };
    let is_replaced = |call: &&Call| own.iter().any(|one| one.number == call.number);
    CALLS.iter().filter(|call| !is_replaced(call)).chain(own).copied().collect()
}

/// The calls that a forkable worker needs, and those that it may use otherwise than others.
const FORKABLE: &[Call] = &[
    call(
        libc::SYS_clone,
        "clone",
        Always,
        "copies the worker and starts the threads of the copy, each once the parent permits it",
    ),
    refused(
        libc::SYS_clone3,
        "clone3",
        Always,
        libc::ENOSYS,
        "its flags are in memory, where the parent cannot check them; the C library then uses \
         clone",
    ),
    call(
        libc::SYS_mmap,
        "mmap",
        MapsRing,
        "as for others; and a copy maps the memory for its output, which its parent has opened",
    ),
    call(
        libc::SYS_madvise,
        "madvise",
        IntIs(2, FORKABLE_ADVICE),
        "as for others; and V8's memory is copied with the rest",
    ),
    refused(
        libc::SYS_tgkill,
        "tgkill",
        Always,
        libc::EPERM,
        "a copy could signal the worker that it was copied from; abort then ends by an \
         instruction",
    ),
];

/// All system calls that do not kill a worker that is not forkable.
pub(super) const CALLS: &[Call] = &[
    // The socket to the host, and the event loop.
    call(
        libc::SYS_read,
        "read",
        Always,
        "frames come in over the socket, and event descriptors wake loops",
    ),
    call(
        libc::SYS_write,
        "write",
        Always,
        "frames go out over the socket, and event descriptors wake loops",
    ),
    call(libc::SYS_writev, "writev", Always, "a frame goes out with its header"),
    // Never out of band: attackers have used that part of the kernel to escape from other
    // sandboxes.
    call(libc::SYS_recvfrom, "recvfrom", IntIs(3, &[0]), "frames come in over the socket"),
    call(
        libc::SYS_sendto,
        "sendto",
        IntIs(3, &[0, libc::MSG_NOSIGNAL]),
        "what a Unix stream of std writes by",
    ),
    #[cfg(target_arch = "x86_64")]
    call(libc::SYS_poll, "poll", Always, "a wait for a frame"),
    call(libc::SYS_ppoll, "ppoll", Always, "the same where there is no poll"),
    #[cfg(target_arch = "x86_64")]
    call(libc::SYS_epoll_wait, "epoll_wait", Always, "tokio waits by it"),
    call(
        libc::SYS_epoll_pwait,
        "epoll_pwait",
        Always,
        "tokio waits by it where there is no epoll_wait",
    ),
    call(libc::SYS_close, "close", Always, "an event loop that ends closes its descriptors"),
    // Memory.
    call(
        libc::SYS_mmap,
        "mmap",
        PRIVATE,
        "memory for V8 and malloc; no files, and nothing that limits do not count",
    ),
    call(libc::SYS_munmap, "munmap", Always, "gives memory back"),
    call(
        libc::SYS_mremap,
        "mremap",
        IntIs(3, &[libc::MREMAP_MAYMOVE, libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED]),
        "realloc of large blocks; and a saved session starts from pages that were put aside",
    ),
    call(
        libc::SYS_mprotect,
        "mprotect",
        Always,
        "V8 reserves memory, then commits it, and makes code executable",
    ),
    call(
        libc::SYS_pkey_mprotect,
        "pkey_mprotect",
        Always,
        "the same where processors have protection keys",
    ),
    call(
        libc::SYS_madvise,
        "madvise",
        IntIs(2, ADVICE),
        "V8 and malloc give pages back and mark them",
    ),
    call(libc::SYS_brk, "brk", Always, "malloc on the main thread"),
    // Files: there are none, so these calls fail.
    refused(
        libc::SYS_openat,
        "openat",
        IntIs(2, &[TO_READ, TO_LIST]),
        libc::EACCES,
        "malloc reads the kernel's overcommit policy when it first shrinks a thread's heap, V8 \
         looks for the time zone when the guest first asks for a local time",
    ),
    refused(
        libc::SYS_readlinkat,
        "readlinkat",
        Always,
        libc::EACCES,
        "V8 looks for the name of the time zone",
    ),
    #[cfg(target_arch = "x86_64")]
    refused(
        libc::SYS_readlink,
        "readlink",
        Always,
        libc::EACCES,
        "V8 looks for the name of the time zone",
    ),
    refused(
        libc::SYS_newfstatat,
        "newfstatat",
        Always,
        libc::EACCES,
        "V8 looks for the name of the time zone",
    ),
    // Existing threads.
    call(
        libc::SYS_futex,
        "futex",
        IntMasked(1, FUTEX_COMMAND, FUTEX_OPERATIONS),
        "locks and waits of threads",
    ),
    call(libc::SYS_sched_yield, "sched_yield", Always, "spin locks yield"),
    // Of the calling thread: by a number they would say of any process whether it is there.
    own(
        libc::SYS_sched_getparam,
        "sched_getparam",
        &[0],
        libc::ESRCH,
        "V8's locks ask for the thread's priority",
    ),
    own(
        libc::SYS_sched_getscheduler,
        "sched_getscheduler",
        &[0],
        libc::ESRCH,
        "V8's locks ask for the thread's priority",
    ),
    own(
        libc::SYS_sched_getaffinity,
        "sched_getaffinity",
        &[0],
        // The C library then does without.
        libc::ENOSYS,
        "malloc counts processors when threads contend, V8 asks where its thread's stack is",
    ),
    call(
        libc::SYS_getpid,
        "getpid",
        Always,
        "V8 names the process in its messages; abort asks for it",
    ),
    call(libc::SYS_gettid, "gettid", Always, "abort asks for the thread"),
    // A thread that was started before the lockdown may begin to run after it.
    call(
        libc::SYS_set_robust_list,
        "set_robust_list",
        Always,
        "the C library announces a new thread's locks",
    ),
    call(
        libc::SYS_rseq,
        "rseq",
        IntIs(2, &[0]),
        "the C library announces a new thread's restartable sequences",
    ),
    call(
        libc::SYS_prctl,
        "prctl",
        IntIs(0, &[libc::PR_SET_NAME, libc::PR_SET_VMA]),
        "threads get their names, and V8's tables theirs where the kernel keeps names of memory",
    ),
    call(libc::SYS_exit, "exit", Always, "a thread that is done"),
    call(libc::SYS_exit_group, "exit_group", Always, "the process ends"),
    // Time.
    // A clock may be the processor time of any process.
    own(
        libc::SYS_clock_gettime,
        "clock_gettime",
        CLOCKS,
        libc::EINVAL,
        "processor time, and clocks that the kernel does not share with processes",
    ),
    own(
        libc::SYS_clock_nanosleep,
        "clock_nanosleep",
        CLOCKS,
        libc::EINVAL,
        "the guest sleeps, locks back off",
    ),
    call(libc::SYS_nanosleep, "nanosleep", Always, "the same, by an older C library"),
    call(
        libc::SYS_gettimeofday,
        "gettimeofday",
        Always,
        "V8's clock, where the kernel does not share it with processes",
    ),
    call(
        libc::SYS_restart_syscall,
        "restart_syscall",
        Always,
        "the kernel goes on with a sleep that a stop interrupted",
    ),
    call(libc::SYS_getrandom, "getrandom", Always, "seeds of hash tables, the guest's entropy"),
    // Signals, that is, crashes: the parent should see the actual signal, not SIGSYS.
    call(libc::SYS_rt_sigreturn, "rt_sigreturn", Always, "a signal handler returns"),
    call(
        libc::SYS_rt_sigprocmask,
        "rt_sigprocmask",
        Always,
        "threads that end block signals, abort unblocks one",
    ),
    call(
        libc::SYS_rt_sigaction,
        "rt_sigaction",
        IntIs(0, CRASH_SIGNALS),
        "std's handler resets the signal of a crash, so does abort",
    ),
    call(
        libc::SYS_sigaltstack,
        "sigaltstack",
        Always,
        "a thread that ends gives up its signal stack",
    ),
    call(libc::SYS_tgkill, "tgkill", OwnProcess(0), "abort signals the thread it is on"),
];

const fn call(number: c_long, name: &'static str, when: When, reason: &'static str) -> Call {
    Call { number, name, when, then: Then::Run, reason }
}

/// A call whose first argument may be one of these, and that fails with any other.
const fn own(
    number: c_long,
    name: &'static str,
    arguments: &'static [c_int],
    error: c_int,
    reason: &'static str,
) -> Call {
    Call { number, name, when: IntIs(0, arguments), then: Then::RunOr(error), reason }
}

const fn refused(
    number: c_long,
    name: &'static str,
    when: When,
    error: c_int,
    reason: &'static str,
) -> Call {
    Call { number, name, when, then: Then::Fail(error), reason }
}
