//! Attempts by system calls: each makes some that would reach a flag, or lead to one, from a
//! process that nothing holds back.

mod files;
mod network;
mod privileges;
mod processes;

use std::ffi::{CString, c_long};
use std::io;

use super::system::{Arg, call};
use super::{Attempt, Harm, TakenOver};

/// The attempts of all files here.
pub(super) static ATTEMPTS: std::sync::LazyLock<Vec<Attempt>> = std::sync::LazyLock::new(|| {
    let groups = [files::ATTEMPTS, processes::ATTEMPTS, privileges::ATTEMPTS, network::ATTEMPTS];
    groups.concat()
});

/// The titles of the kinds, as those of the programs in `escape/`.
const FILES: &str = "Files of the host";
const PROCESSES: &str = "Processes, privileges and devices";
const ENVIRONMENT: &str = "Environment and credentials";
const MEMORY: &str = "Memory";
const NETWORK: &str = "Network";
const SESSIONS: &str = "Other sessions";

/// The flags with which a worker may try to open a file, and fails.
const TO_READ: c_long = (libc::O_RDONLY | libc::O_CLOEXEC) as c_long;

/// The directory that a relative path begins at.
const HERE: c_long = libc::AT_FDCWD as c_long;

/// The most that is read of a file, in bytes.
const MOST: usize = 1 << 20;

type Attempted = fn(&TakenOver) -> io::Result<()>;

/// An attempt that reads.
const fn reads(
    kind: &'static str,
    name: &'static str,
    what: &'static str,
    source: &'static str,
    run: Attempted,
) -> Attempt {
    Attempt { name, kind, what, source, harm: Harm::None, run }
}

/// An attempt that may change what is not ours where nothing holds it back.
const fn harms(
    kind: &'static str,
    name: &'static str,
    what: &'static str,
    source: &'static str,
    run: Attempted,
) -> Attempt {
    Attempt { name, kind, what, source, harm: Harm::Some, run }
}

/// Makes a call with numbers only, and says what it gives.
fn try_call<const N: usize>(
    taken: &TakenOver,
    number: c_long,
    arguments: [c_long; N],
) -> io::Result<()> {
    let result = call(number, arguments.map(Arg::Number));
    taken.say(&result);
    result.map(drop)
}

fn text(text: impl Into<Vec<u8>>) -> io::Result<CString> {
    CString::new(text).map_err(io::Error::other)
}

/// Opens a file by the call that a worker may make, and gives what it contains.
fn read_file(taken: &TakenOver, path: &str) -> io::Result<()> {
    let path = text(path)?;
    let arguments = [Arg::Number(HERE), Arg::Text(&path), Arg::Number(TO_READ), Arg::Number(0)];
    let opened = call(libc::SYS_openat, arguments)?;
    give_all(taken, opened)
}

/// Gives what can be read of an open file.
fn give_all(taken: &TakenOver, file: c_long) -> io::Result<()> {
    let mut buffer = vec![0; MOST];
    let length = c_long::try_from(buffer.len()).unwrap_or_default();
    let arguments = [Arg::Number(file), Arg::Into(&mut buffer), Arg::Number(length)];
    let read = call(libc::SYS_read, arguments)?;
    taken.give(&buffer[..usize::try_from(read).unwrap_or_default()]);
    Ok(())
}
