//! The operations that workers attempt.

use std::ffi::{c_int, c_long};
use std::fs::File;
use std::io::Read;
use std::os::fd::BorrowedFd;
use std::sync::mpsc;

use super::super::{LockdownError, Settings, after_load, before_threads, syscalls::CALLS};
use super::denied::{self, DENIED};
use super::{first_part, forkable, lock, say, settings, tell, worker};
use crate::worker::child::copying;
use crate::worker::wire::SOCKET;

/// The probes by name.
const PROBES: &[(&str, fn())] = &[
    ("report", || {
        let report = lock();
        say(serde_json::to_string(&report).unwrap());
    }),
    ("descriptors", descriptors),
    ("interfaces", interfaces),
    ("loopback", loopback),
    ("abstract-socket", abstract_socket),
    ("paths", paths),
    ("late-thread-paths", late_thread_paths),
    ("wait", wait),
    ("wrong-parent", wrong_parent),
    ("thread", || threads(1, || say(raw(libc::SYS_getppid, [0; 6])))),
    ("late-threads", late_threads),
    ("shrinking-heap", || threads(8, shrink_heap)),
    ("no-thread", no_thread),
    ("abort", || {
        lock();
        std::process::abort();
    }),
    ("overflow", || {
        lock();
        say(overflow(0));
    }),
    ("segfault", segfault),
    ("open-to-read", || {
        lock();
        say(kind(File::open("/dev/null")));
    }),
    ("kept", denied::make_kept),
    ("processes", denied::ask_about_processes),
    ("memory", memory),
    ("no-descriptor", no_descriptor),
    ("foreign-architecture", foreign_architecture),
];

/// Runs a probe, in the process that starts workers.
pub(super) fn run(name: &str) {
    // Inherited by workers, which must close it.
    let _open = File::open("/proc/self/status").unwrap();
    if name == "sweep" {
        return sweep();
    }
    if let Some(name) = name.strip_prefix("forkable:") {
        return forkable::run(name);
    }
    if let Some(name) = name.strip_prefix("denied:") {
        let (_, call) = *DENIED.iter().find(|(denied, _)| *denied == name).unwrap();
        return tell(worker(move || {
            let parent = c_long::from(std::os::unix::process::parent_id());
            lock();
            say(format!("{} {}", call(parent), std::io::Error::last_os_error()));
        }));
    }
    let (_, probe) = *PROBES.iter().find(|(known, _)| *known == name).unwrap();
    tell(worker(probe));
}

/// Makes the kernel end a worker that waits forever.
pub(super) fn end_some_day() {
    #[expect(unsafe_code, reason = "an alarm is a call of the C library's")]
    // SAFETY: the call takes a number, and this process does not use the signal otherwise.
    unsafe {
        libc::alarm(120);
    }
}

/// Copies this process. Returns `true` in the copy.
pub(super) fn fork() -> bool {
    #[expect(unsafe_code, reason = "only the calling thread is copied")]
    // SAFETY: other threads, if there are any, are parked and hold no lock.
    let forked = unsafe { copying::fork() };
    forked.unwrap().is_none()
}

/// Returns the socket that a copy was given.
pub(super) fn copys_socket() -> BorrowedFd<'static> {
    #[expect(unsafe_code, reason = "the parent has opened a descriptor by its number")]
    // SAFETY: nothing in these processes closes it.
    unsafe {
        BorrowedFd::borrow_raw(SOCKET)
    }
}

/// Makes a system call by its number.
pub(super) fn raw(number: c_long, arguments: [c_long; 6]) -> c_long {
    let [first, second, third, fourth, fifth, sixth] = arguments;
    #[expect(unsafe_code, reason = "what is tested is the system call itself")]
    // SAFETY: the calls in these tests pass numbers and null pointers, so the kernel writes to no
    // memory of this process. Calls that would take away memory or threads end the process at once.
    unsafe {
        libc::syscall(number, first, second, third, fourth, fifth, sixth)
    }
}

/// Tries every number outside the table, each in a separate worker.
fn sweep() {
    /// Above the largest number in use, with room for new ones.
    const NUMBERS: c_long = 520;
    /// Calls that newer kernels let pass every filter, because they make these calls themselves in
    /// a traced process: `uretprobe` and `uprobe`. Made from elsewhere, they do nothing or end the
    /// process.
    #[cfg(target_arch = "x86_64")]
    const PASSED: &[c_long] = &[335, 336];
    #[cfg(not(target_arch = "x86_64"))]
    const PASSED: &[c_long] = &[];
    let allowed = |number| CALLS.iter().any(|call| call.number == number);
    let tried = (0..NUMBERS).filter(|number| !allowed(*number) && !PASSED.contains(number));
    for number in tried {
        let status = worker(move || {
            lock();
            raw(number, [0; 6]);
        });
        if std::os::unix::process::ExitStatusExt::signal(&status) != Some(libc::SIGSYS) {
            say(format!("{number}: {status}"));
        }
    }
    tell(worker(|| ()));
}

fn is_open(descriptor: c_int) -> bool {
    #[expect(unsafe_code, reason = "nothing safe asks about a descriptor by its number")]
    // SAFETY: the operation takes a number and changes nothing.
    let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFD) };
    flags >= 0
}

fn descriptors() {
    assert!((3..100).any(is_open));
    let mut early = first_part();
    drop(early.take_map());
    let open: Vec<c_int> = (0..0x1_0000).filter(|descriptor| is_open(*descriptor)).collect();
    say(format!("{open:?}"));
}

fn interfaces() {
    let _early = first_part();
    let name_of = |index| {
        let mut name = [0_u8; libc::IF_NAMESIZE];
        #[expect(unsafe_code, reason = "nothing safe names interfaces")]
        // SAFETY: the buffer has the size that the call's documentation requires.
        let found = unsafe { libc::if_indextoname(index, name.as_mut_ptr().cast()) };
        (!found.is_null()).then(|| String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned())
    };
    let names: Vec<String> = (1..10_000).filter_map(name_of).collect();
    say(names.join(" "));
}

/// Sends UDP, which landlock does not restrict. Only the network namespace denies it.
fn loopback() {
    let _early = first_part();
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    say(kind(socket.connect("127.0.0.1:9")));
}

/// The name comes from the input, so that the test can listen on it.
fn abstract_socket() {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixStream};
    let mut name = String::new();
    std::io::stdin().read_to_string(&mut name).unwrap();
    let address = SocketAddr::from_abstract_name(name).unwrap();
    UnixStream::connect_addr(&address).unwrap();
    let _early = first_part();
    say(UnixStream::connect_addr(&address).is_ok());
}

fn paths() {
    let _early = first_part();
    say(try_paths());
}

fn late_thread_paths() {
    let _early = first_part();
    say(std::thread::spawn(try_paths).join().unwrap());
}

/// Opens paths that exist on every system. Prints those that worked.
fn try_paths() -> String {
    let files =
        ["/etc/passwd", "/proc/self/environ", "/proc/self/maps", "/dev/null", "/dev/urandom"];
    let opened = files.into_iter().filter(|path| File::open(path).is_ok());
    let listed = ["/", ".", "/proc", "/proc/self/fd"].into_iter();
    let listed = listed.filter(|path| std::fs::read_dir(path).is_ok());
    let made = ["/new", "new", "/tmp/new"].into_iter();
    let made = made.filter(|path| std::fs::create_dir(path).is_ok());
    opened.chain(listed).chain(made).collect::<Vec<_>>().join(" ")
}

/// Locks down and waits for the end of the input, so that others can inspect the process.
fn wait() {
    let report = lock();
    say(std::process::id());
    say(serde_json::to_string(&report).unwrap());
    let mut byte = [0];
    while std::io::stdin().read(&mut byte).unwrap() > 0 {}
}

fn wrong_parent() {
    let expected = std::process::id();
    match before_threads(&Settings { parent: expected, ..settings() }) {
        Err(LockdownError::Parent { found, .. }) => {
            assert_eq!(found, std::os::unix::process::parent_id());
            say("refused");
        }
        other => say(format!("{other:?}")),
    }
}

/// Starts threads just before the filter, so that some of them begin to run after it.
fn late_threads() {
    let early = first_part();
    let start = |_| std::thread::Builder::new().name("late".to_owned()).spawn(|| ()).unwrap();
    let threads: Vec<_> = (0..16).map(start).collect();
    after_load(early, &settings(), |_| Ok(())).unwrap();
    for thread in threads {
        thread.join().unwrap();
    }
    say("all ended");
}

/// Starts threads between the two parts of the lockdown, which run `job` after the second.
fn threads(number: usize, job: fn()) {
    let early = first_part();
    let start = |_| {
        let (locked, wait) = mpsc::channel::<()>();
        let wait_and_work = move || {
            wait.recv().unwrap();
            job();
        };
        (locked, std::thread::spawn(wait_and_work))
    };
    let threads: Vec<_> = (0..number).map(start).collect();
    after_load(early, &settings(), |_| Ok(())).unwrap();
    for (locked, thread) in threads {
        locked.send(()).unwrap();
        thread.join().unwrap();
    }
}

/// Makes a thread's heap, if it has a separate one, grow and shrink. The blocks are too small to
/// get their own mappings.
fn shrink_heap() {
    let blocks: Vec<Vec<u8>> = (0..100).map(|_| std::hint::black_box(vec![1; 100 << 10])).collect();
    drop(blocks);
    say("it shrank");
}

fn no_thread() {
    lock();
    say(std::thread::Builder::new().spawn(|| ()).is_ok());
}

/// Overflows the stack.
fn overflow(depth: u64) -> u64 {
    let frame = std::hint::black_box([depth; 512]);
    if depth == u64::MAX { 0 } else { overflow(depth + 1) + frame[0] }
}

fn segfault() {
    lock();
    #[expect(unsafe_code, reason = "a crash is what is tested")]
    // SAFETY: no crash is safe. No page is ever mapped at this address, so nothing is written.
    unsafe {
        std::ptr::without_provenance_mut::<u8>(16).write_volatile(1);
    }
}

fn memory() {
    /// More memory than a worker uses that runs nothing, and less than the test attempts to use.
    const DATA: u64 = 256 << 20;
    after_load(first_part(), &Settings { data_bytes: DATA, ..settings() }, |_| Ok(())).unwrap();
    let reserve = |bytes: usize| Vec::<u8>::new().try_reserve_exact(bytes).is_ok();
    say(format!("{} {}", reserve(64 << 20), reserve(512 << 20)));
}

/// Sets only the limit, without the filter that follows it.
fn no_descriptor() {
    let _early = first_part();
    super::super::limits::set_late(&settings(), &mut super::super::States::default()).unwrap();
    let error = std::net::UdpSocket::bind("0.0.0.0:0").unwrap_err();
    say(error.raw_os_error() == Some(libc::EMFILE));
}

#[cfg(target_arch = "x86_64")]
fn foreign_architecture() {
    lock();
    let result: c_int;
    #[expect(unsafe_code, reason = "another architecture's call is an instruction")]
    // SAFETY: this is `getpid` under i386's numbers. It takes no arguments and writes to one
    // register.
    unsafe {
        core::arch::asm!("int 0x80", inlateout("eax") 20 => result, clobber_abi("C"));
    }
    say(result);
}

#[cfg(not(target_arch = "x86_64"))]
fn foreign_architecture() {
    lock();
    raw(libc::SYS_getppid, [0; 6]);
}

fn kind<T>(result: std::io::Result<T>) -> String {
    result.map_or_else(|error| format!("{:?}", error.kind()), |_| "ok".to_owned())
}
