//! Tests of workers that hold more memory than they may.

use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::Arc;

use super::super::parent::link::{self, Bounds, Ends};
use super::super::parent::process::Process;
use super::super::wire::output_ring::ring;
use super::{BOUNDS, TestHost};
use crate::data::execution::MemoryKind;
use crate::protocol::{Message, Reply};

/// Memory that was made read-only after it was filled is not covered by any of the kernel's limits.
#[test]
fn a_worker_that_holds_more_memory_than_it_may_is_killed() {
    let limit = overgrows(
        100 << 20,
        "
import ctypes, mmap, time
libc = ctypes.CDLL(None, use_errno=True)
kept = []
for _ in range(40):
    memory = mmap.mmap(-1, 4 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.write(b'x' * (4 << 20))
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    assert libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(4 << 20), 1) == 0
    kept.append(memory)
time.sleep(100)",
    );
    assert_eq!(limit, (MemoryKind::Worker, 100 << 20));
}

/// Nor are page tables, of which one byte that is read in each 2 MiB takes 4 KiB.
#[test]
fn a_worker_that_has_the_kernel_make_page_tables_is_killed() {
    let limit = overgrows(
        1 << 30,
        "
import mmap, time
memory = mmap.mmap(-1, 96 << 30, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ)
for at in range(0, 96 << 30, 2 << 20):
    memory[at]
time.sleep(100)",
    );
    assert_eq!(limit, (MemoryKind::PageTables, (64 << 20) + (1 << 22)));
}

/// Runs this program as a worker that may hold so many bytes. Returns the limit that it exceeds.
fn overgrows(resident: u64, code: &str) -> (MemoryKind, u64) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let (interrupts, _numbers) = UnixStream::pair().unwrap();
    // Only this process has that end of the socket, which is closed when it ends, like a worker's.
    let socket = Stdio::from(std::os::fd::OwnedFd::from(theirs));
    let child = Command::new("python3").args(["-c", code]).stdin(socket).spawn().unwrap();
    let bounds = Bounds { resident, ..BOUNDS };
    let process = Process::Child(child);
    let ends = Ends { socket: ours, interrupts, ring: ring().1 };
    let host = Arc::new(TestHost);
    let mut parent = link::start(ends, process, host, bounds, 0, None, |_| Ok(())).unwrap();
    // Workers that are busy are looked at more often.
    (parent.link.messages)(Message::Command(Vec::new()));
    match parent.link.replies.blocking_recv() {
        Some(Reply::OutOfMemory { kind, limit, observed }) => {
            assert!(observed > limit, "{limit} {observed}");
            (kind, limit)
        }
        other => panic!("{other:?}"),
    }
}
