//! The system calls that are left after the lockdown, each with the reason why.
//!
//! The calls were found by running the interpreter, V8's compilers and its collector under a tracer;
//! what is kept although it did not occur is what a signal, a crash, another kernel or another
//! machine's clock leads to. There is no call in it that names a file, makes a descriptor, a thread
//! or a process, or reaches another process.

use std::ffi::{c_int, c_long};

/// A call that is allowed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowed {
    /// The number that the kernel knows it by.
    pub(super) number: c_long,
    /// The name, for people.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "it is for people, and for tests of the table")
    )]
    pub(super) name: &'static str,
    /// When it is allowed.
    pub(super) when: When,
    /// Why it is needed.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "it is for people, and for tests of the table")
    )]
    pub(super) reason: &'static str,
}

/// The condition under which a call is allowed. Arguments are counted from 0.
#[derive(Clone, Copy, Debug)]
pub(super) enum When {
    /// In any case.
    Always,
    /// If the argument, a C `int`, is one of these.
    IntIs(u8, &'static [c_int]),
    /// If the argument, a C `int`, is one of these when only the bits of the mask are looked at.
    IntMasked(u8, c_int, &'static [c_int]),
    /// If the argument, a C `long`, has this bit.
    LongHas(u8, c_int),
    /// If the argument, a pointer, is null.
    Null(u8),
    /// If the argument is the number of the process that calls.
    OwnProcess(u8),
}

use When::{Always, IntIs, IntMasked, LongHas, Null, OwnProcess};

/// The operations of `futex` without those on priority-inheriting locks.
const FUTEX_OPERATIONS: &[c_int] =
    &[libc::FUTEX_WAIT, libc::FUTEX_WAKE, libc::FUTEX_WAIT_BITSET, libc::FUTEX_WAKE_BITSET];

/// What a `futex` operation is combined with: private, and by which clock.
const FUTEX_COMMAND: c_int = !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME);

const ADVICE: &[c_int] = &[
    libc::MADV_DONTNEED,
    libc::MADV_FREE,
    libc::MADV_DONTFORK,
    libc::MADV_DONTDUMP,
    libc::MADV_DODUMP,
];

/// The signals that a crash resets or raises.
const CRASH_SIGNALS: &[c_int] = &[libc::SIGSEGV, libc::SIGBUS, libc::SIGABRT];

/// Every call that is allowed; any other kills the process.
pub(super) const ALLOWED: &[Allowed] = &[
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
    call(libc::SYS_recvfrom, "recvfrom", Always, "what a Unix stream of std reads by"),
    call(
        libc::SYS_sendto,
        "sendto",
        Null(4),
        "what a Unix stream of std writes by; it names no other address",
    ),
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
        LongHas(3, libc::MAP_ANONYMOUS),
        "memory for V8 and malloc; no files",
    ),
    call(libc::SYS_munmap, "munmap", Always, "gives memory back"),
    call(libc::SYS_mremap, "mremap", Always, "realloc of large blocks"),
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
    // Threads that are there.
    call(
        libc::SYS_futex,
        "futex",
        IntMasked(1, FUTEX_COMMAND, FUTEX_OPERATIONS),
        "locks and waits",
    ),
    call(libc::SYS_sched_yield, "sched_yield", Always, "spin locks yield"),
    call(
        libc::SYS_sched_getparam,
        "sched_getparam",
        Always,
        "V8's locks ask for the thread's priority",
    ),
    call(
        libc::SYS_sched_getscheduler,
        "sched_getscheduler",
        Always,
        "V8's locks ask for the thread's priority",
    ),
    call(
        libc::SYS_sched_getaffinity,
        "sched_getaffinity",
        Always,
        "malloc counts processors when threads contend, V8 asks where its thread's stack is",
    ),
    call(
        libc::SYS_getpid,
        "getpid",
        Always,
        "V8 names the process in its messages; abort asks for it",
    ),
    call(libc::SYS_gettid, "gettid", Always, "abort asks for the thread"),
    call(libc::SYS_exit, "exit", Always, "a thread ends"),
    call(libc::SYS_exit_group, "exit_group", Always, "the process ends"),
    // Time.
    call(
        libc::SYS_clock_gettime,
        "clock_gettime",
        Always,
        "processor time, and clocks that the kernel does not share with processes",
    ),
    call(libc::SYS_clock_nanosleep, "clock_nanosleep", Always, "sleeps"),
    call(libc::SYS_nanosleep, "nanosleep", Always, "sleeps, by an older C library"),
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
    // Signals, which is to say crashes: the parent should see what happened, not SIGSYS.
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

/// Calls that fail with `EACCES` and do not kill: libraries make them of themselves, and live without.
pub(super) const REFUSED: &[Allowed] = &[
    call(
        libc::SYS_openat,
        "openat",
        Always,
        "V8 and libc look for the time zone when the guest first asks for a local time, and libc for \
         the number of processors",
    ),
    call(libc::SYS_readlinkat, "readlinkat", Always, "V8 looks for the name of the time zone"),
    #[cfg(target_arch = "x86_64")]
    call(libc::SYS_readlink, "readlink", Always, "V8 looks for the name of the time zone"),
    call(libc::SYS_newfstatat, "newfstatat", Always, "V8 looks for the name of the time zone"),
];

const fn call(number: c_long, name: &'static str, when: When, reason: &'static str) -> Allowed {
    Allowed { number, name, when, reason }
}
