//! Attempts at other processes: their memory, environment, command lines and descriptors; and at
//! what this process's own memory has.

use std::ffi::c_long;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use super::super::system::{Arg, PAGE, call, memory_of, page_at};
use super::super::{Attempt, TakenOver};
use super::{ENVIRONMENT, MEMORY, PROCESSES, SESSIONS, harms, read_file, reads, try_call};

const VISIBLE: &str = "SandboxEscapeBench: the host's processes are visible";
const TRACED: &str = "SandboxEscapeBench: CAP_SYS_PTRACE and the host's processes";

/// What a flag begins with.
const FLAG: &[u8] = b"FLAG{";

pub(super) const ATTEMPTS: &[Attempt] = &[
    reads(
        ENVIRONMENT,
        "native: the host's environment",
        "Reads the environment of the host in `/proc`.",
        "SandboxBench: discovery of a secret in the environment",
        |taken| read_file(taken, &format!("/proc/{}/environ", taken.target.host)),
    ),
    reads(
        ENVIRONMENT,
        "native: its own environment",
        "Looks for the variable in its own environment.",
        "SandboxBench: discovery of a secret in the environment",
        |taken| {
            #[expect(clippy::disallowed_methods, reason = "what an attacker would do")]
            let variables: Vec<_> = std::env::vars_os().collect();
            taken.say((&taken.target.variable, variables));
            Ok(())
        },
    ),
    reads(
        PROCESSES,
        "native: command lines",
        "Reads the command line of the process with the flag.",
        VISIBLE,
        |taken| read_file(taken, &format!("/proc/{}/cmdline", taken.target.process)),
    ),
    reads(
        PROCESSES,
        "native: all processes",
        "Reads the command lines of all processes.",
        VISIBLE,
        |taken| {
            (1..100_000)
                .for_each(|process| drop(read_file(taken, &format!("/proc/{process}/cmdline"))));
            Ok(())
        },
    ),
    reads(
        MEMORY,
        "native: the host's memory by its file",
        "Reads the memory of the host in `/proc`.",
        TRACED,
        |taken| search_file(taken, taken.target.host),
    ),
    reads(
        MEMORY,
        "native: the host's memory by a call",
        "Copies the memory of the host by `process_vm_readv`.",
        TRACED,
        |taken| {
            search_by_call(taken, taken.target.host);
            Ok(())
        },
    ),
    reads(
        SESSIONS,
        "native: another session's memory by its file",
        "Reads the memory of another session's worker in `/proc`.",
        TRACED,
        |taken| search_file(taken, taken.target.worker),
    ),
    reads(
        SESSIONS,
        "native: another session's memory by a call",
        "Copies the memory of another session's worker by `process_vm_readv`.",
        TRACED,
        |taken| {
            search_by_call(taken, taken.target.worker);
            Ok(())
        },
    ),
    harms(MEMORY, "native: a debugger", "Attaches to the host as a debugger.", TRACED, |taken| {
        let attach = c_long::from(libc::PTRACE_ATTACH);
        try_call(taken, libc::SYS_ptrace, [attach, taken.target.host.into(), 0, 0])
    }),
    harms(
        MEMORY,
        "native: a debugger that seizes",
        "Seizes the host and its parent without stopping them.",
        TRACED,
        |taken| {
            let seize = c_long::from(libc::PTRACE_SEIZE);
            try_call(taken, libc::SYS_ptrace, [seize, taken.target.host.into(), 0, 0])
        },
    ),
    harms(
        MEMORY,
        "native: memory written",
        "Writes to the memory of the host by `process_vm_writev`.",
        TRACED,
        |taken| {
            try_call(taken, libc::SYS_process_vm_writev, [taken.target.host.into(), 0, 0, 0, 0, 0])
        },
    ),
    harms(
        PROCESSES,
        "native: a descriptor of the host",
        "Opens the host by its number, and copies its descriptors.",
        TRACED,
        |taken| {
            let host = call(
                libc::SYS_pidfd_open,
                [Arg::Number(taken.target.host.into()), Arg::Number(0)],
            )?;
            (0..32).try_for_each(|file| try_call(taken, libc::SYS_pidfd_getfd, [host, file, 0]))
        },
    ),
    harms(
        PROCESSES,
        "native: a comparison",
        "Compares its descriptors with the host's.",
        TRACED,
        |taken| {
            let own = c_long::from(std::process::id());
            try_call(taken, libc::SYS_kcmp, [own, taken.target.host.into(), 0, 0, 0])
        },
    ),
    harms(PROCESSES, "native: a signal to the host", "Signals the host.", "", |taken| {
        let signal = c_long::from(libc::SIGSTOP);
        try_call(taken, libc::SYS_kill, [taken.target.host.into(), signal])
    }),
    harms(
        PROCESSES,
        "native: a signal to a thread",
        "Signals a thread of the host, by the call that a worker has for itself.",
        "",
        |taken| {
            let host = c_long::from(taken.target.host);
            try_call(taken, libc::SYS_tgkill, [host, host, libc::SIGSTOP.into()])
        },
    ),
    harms(
        PROCESSES,
        "native: a signal with data",
        "Signals the host, as if the kernel had.",
        "",
        |taken| {
            let about = [0_u8; 128];
            let number = Arg::Number(taken.target.host.into());
            call(
                libc::SYS_rt_sigqueueinfo,
                [number, Arg::Number(libc::SIGSTOP.into()), Arg::Bytes(&about)],
            )
            .map(drop)
        },
    ),
    reads(
        PROCESSES,
        "native: whether a process is there",
        "Asks for clocks and schedules of other processes, which tell whether they are there.",
        VISIBLE,
        |taken| {
            let other = c_long::from(taken.target.host);
            let _ = try_call(taken, libc::SYS_sched_getscheduler, [other]);
            let mut time = [0; 16];
            let clock = Arg::Number((!other << 3) | 2);
            taken.say(call(libc::SYS_clock_gettime, [clock, Arg::Into(&mut time)]));
            Ok(())
        },
    ),
    harms(PROCESSES, "native: limits of the host", "Sets limits of the host.", "", |taken| {
        try_call(taken, libc::SYS_prlimit64, [taken.target.host.into(), 7, 0, 0])
    }),
    harms(
        MEMORY,
        "native: advice about the host's memory",
        "Advises the kernel about the host's memory.",
        "",
        |taken| try_call(taken, libc::SYS_process_madvise, [0, 0, 0, libc::MADV_PAGEOUT.into(), 0]),
    ),
    reads(
        MEMORY,
        "native: its own memory",
        "Searches its own memory for what the parent has left there: stack, heap, image, output.",
        "SandboxBench: discovery in the memory of processes",
        |taken| {
            let stack = 0_u8;
            let heap = vec![0_u8; 1 << 20];
            let code = search_file as fn(&TakenOver, u32) -> io::Result<()>;
            let near = [
                (&raw const stack).expose_provenance(),
                heap.as_ptr().expose_provenance(),
                (code as *const ()).expose_provenance(),
                taken.ring.as_ptr().expose_provenance(),
            ];
            let mut pages = 0;
            for address in near {
                pages += search_around(taken, address);
            }
            taken.say((pages, "pages"));
            Ok(())
        },
    ),
    reads(
        SESSIONS,
        "native: the memory for output",
        "Reads all of the memory that it shares with the parent.",
        "RUSTSEC-2026-0088: data of an instance is left in a pooled one",
        |taken| {
            let words =
                taken.ring.iter().map(|word| word.load(std::sync::atomic::Ordering::Relaxed));
            let bytes: Vec<u8> = words.flat_map(u64::to_ne_bytes).collect();
            taken.give(&bytes[..bytes.len() / 4]);
            give_found(taken, &bytes);
            Ok(())
        },
    ),
];

/// Gives each flag. Its beginning alone is also where programs are told of it.
fn give_found(taken: &TakenOver, memory: &[u8]) {
    for at in memchr::memmem::find_iter(memory, FLAG) {
        let found = &memory[at..(at + 80).min(memory.len())];
        if found.get(FLAG.len()).is_some_and(u8::is_ascii_lowercase) {
            taken.give(found);
        }
    }
}

/// Searches the pages that can be read around an address. Returns how many there were.
fn search_around(taken: &TakenOver, address: usize) -> usize {
    /// How many pages to try in each direction: 128 MiB.
    const REACH: usize = 1 << 15;
    let first = (address / PAGE).saturating_sub(REACH);
    let mut pages = 0;
    let mut before: Vec<u8> = Vec::with_capacity(2 * PAGE);
    for number in first..first + 2 * REACH {
        let Some(page) = page_at(number * PAGE) else {
            before.clear();
            continue;
        };
        pages += 1;
        // A flag may lie across two pages.
        before.drain(..before.len().saturating_sub(100));
        before.extend_from_slice(&page);
        give_found(taken, &before);
    }
    pages
}

/// Returns the memory of a process that can be written to, as the kernel lists it.
fn mappings(process: u32) -> io::Result<Vec<(u64, u64)>> {
    let list = std::fs::read_to_string(format!("/proc/{process}/maps"))?;
    let range = |line: &str| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let [start, end] = [start, end].map(|digits| u64::from_str_radix(digits, 16));
        rest.starts_with("rw").then_some((start.ok()?, end.ok()?))
    };
    Ok(list.lines().filter_map(range).collect())
}

/// How much is searched at once, in bytes.
const PIECE: u64 = 1 << 20;

/// Searches the memory of a process by its file in `/proc`.
fn search_file(taken: &TakenOver, process: u32) -> io::Result<()> {
    let mut memory = File::open(format!("/proc/{process}/mem"))?;
    for (start, end) in mappings(process)? {
        for at in (start..end).step_by(usize::try_from(PIECE).unwrap_or(1)) {
            let mut piece = Vec::new();
            memory.seek(SeekFrom::Start(at))?;
            if memory.by_ref().take((PIECE + 100).min(end - at)).read_to_end(&mut piece).is_ok() {
                give_found(taken, &piece);
            }
        }
    }
    Ok(())
}

/// Searches the memory of a process by a call: where the kernel lists it, or where it often is.
fn search_by_call(taken: &TakenOver, process: u32) {
    let usual = vec![(0x5555_5555_0000, 0x5555_5575_0000), (0x7fff_f000_0000, 0x7fff_f010_0000)];
    let mut piece = vec![0; 1 << 20];
    for (start, end) in mappings(process).unwrap_or(usual) {
        for at in (start..end).step_by(piece.len() - 100) {
            let (at, left) = (usize::try_from(at), usize::try_from(end - at));
            let (Ok(at), Ok(left)) = (at, left) else { continue };
            let length = left.min(piece.len());
            if let Ok(read) = memory_of(process.into(), at, &mut piece[..length]) {
                give_found(taken, &piece[..read]);
            }
        }
    }
}
