//! A shell for isolet's guests: bashkit as a WebAssembly module, without glue for JavaScript.
//!
//! # Interface
//!
//! Everything is a number, or bytes in the module's memory as an address and a length. Addresses
//! are below 2^32: JavaScript applies `>>> 0` to them. Texts are UTF-8.
//!
//! A buffer that the host passes to an export comes from `alloc`, with exactly the length that it
//! passes; the export takes it over. What an import is passed is valid during the call only.
//!
//! ## Exports
//!
//! | function | |
//! |-|-|
//! | `alloc(len) -> address` | a buffer for one of the functions below |
//! | `session_new(config, len) -> session` | a new shell; 0 if the configuration is wrong |
//! | `session_free(session)` | forgets it, with its run |
//! | `session_flag(session) -> address` | the byte that cancels the run when it becomes 1 |
//! | `session_state(session) -> step` | between two runs: `{"cwd", "status", "env"}` |
//! | `run(session, request, len, stdin, len) -> step` | begins a run; no input if `stdin` is 0 |
//! | `output(session, call, descriptor, bytes, len) -> 0, 1, 2` | output of a call, 1 or 2 |
//! | `pull(session, call) -> step` | goes on until there is more of the pipe that a call reads |
//! | `next_wake(session) -> time` | when the run wants to go on; -1 if never |
//! | `answer(session, call, status)` | the answer to a call |
//! | `input(session, bytes, len)` | more of a live input; its end if `len` is 0 |
//! | `resume(session) -> step` | goes on after an answer, input, or after time has passed |
//! | `reply_text() -> address`, `reply_text_len()` | JSON, or the error after step 0 |
//! | `reply_bytes() -> address`, `reply_bytes_len()` | the input of a call, or what is left of it |
//!
//! The configuration is JSON, and each field has a default: `cwd` (`/`), `env` (empty), `user`,
//! `hostname`, `commands` (names that are calls, before the shell's own of that name), `others`
//! (whether names that the shell does not know are calls too), `depth` (how deep functions and
//! substitutions nest, 1000), `stack` (how many bytes of the module's stack a run takes at most,
//! 786,432: about 95 levels of plain functions). V8's own stack grows with it, by less than twice
//! as much; what is deeper is an error of the script, not a trap, if V8 has that much stack left.
//! `env` of a state are the exported variables.
//!
//! A request is JSON: `script`, and if wanted `name` (`$0`), `args` (`$1` and so on) and `live`
//! (whether `stdin` is only the beginning, and the rest comes by `input`). A run has the state that
//! the one before left: directory, variables, functions, options. What is to have none of it, such
//! as `sh -c` from Python, gets a session of its own. A program and its arguments run as they are
//! with the script `"$@"`.
//!
//! A step says what the host is to do, and the reply what it needs for that:
//!
//! | step | reply |
//! |-|-|
//! | 0, failed: a wrong request, or a run that goes on, or none | the error |
//! | 1, finished | `{"status", "cancelled"}`, and the live input that nothing has read |
//! | 2, call: carry out a command, `answer`, `resume` | a call, and its input |
//! | 3, wait: until a time, or an answer, then `resume` | microseconds since 1970, or `null` |
//! | 5, input: until there is some, or as step 3; `input`, `resume` | as of step 3 |
//! | 6, piece: what `pull` waited for | bytes; none at their end, or if the call is no more |
//!
//! A call is `{"id", "name", "args", "env", "cwd", "piped", "more", "seen", "live"}`. `null` waits
//! for an answer only. Number 4 is the host's.
//!
//! A call that takes long lets the run go on by `output` of nothing, at the times of `next_wake`.
//! What a call writes is delivered at once, unless it goes to a file; with `seen` somebody sees it,
//! as on a terminal. `output` says whether it may
//! go on: 1, nobody reads its standard output, as after `| head -1`; 2, it was stopped, as by
//! `timeout`. What comes with a call that has `more` is the beginning of what it reads, and `pull`
//! gives the rest. `pull` may ask for anything that `resume` may, other calls included, and is
//! repeated after that.
//!
//! Live input is asked for only when a command reads it that the shell carries out; `input.rs` says
//! which do. What a command leaves is there for the next. A call that is `live` reads the host's
//! input directly, after the bytes that come with it: those that were given and not read. The host
//! may give back by `input` what the command leaves of them. A call that is neither `live` nor
//! `piped` has no input in such a run.
//!
//! The host may `resume` before it has the answer, and so carry out commands at the same time: it
//! gets other calls, or waits. No call of the module is active while a session is suspended, so the
//! host may use other sessions meanwhile, and the command it carries out may.
//!
//! The flag stops a run at its next command, iteration or wait. It is the host's to end a builtin
//! that computes for long, by terminating V8's execution. After that, or after any other trap, the
//! instance must not be used again.
//!
//! ## Imports, all of the module `isolet`
//!
//! Paths are absolute and without `.` and `..`. Links are followed before, except those in the
//! path of `link`. A function of files returns 0 or a length, or a negated number of Linux's errno.
//! A length says how many bytes the host keeps for `take`, which follows at once.
//!
//! | function | |
//! |-|-|
//! | `read_file(path, len) -> length` | the content |
//! | `write_file(path, len, bytes, len)`, `append_file(...)` | mode 644 for a new file |
//! | `mkdir(path, len, parents)` | with `parents`, those that are missing, and it may be there |
//! | `remove(path, len, tree)` | a file, an empty directory, or with `tree` anything |
//! | `stat(path, len, record)` | writes the record below; of the link itself |
//! | `read_dir(path, len) -> length` | entries: the length of a name (u32), the name, its record |
//! | `rename(from, len, to, len)`, `copy(from, len, to, len)` | |
//! | `symlink(target, len, path, len)`, `link(path, len, path, len)` | the second is made |
//! | `read_link(path, len) -> length` | |
//! | `chmod(path, len, mode)`, `set_modified_time(path, len, micros: f64)` | |
//! | `take(address)` | writes the kept bytes |
//! | `write(session, descriptor, bytes, len)` | output, 1 or 2, as it comes |
//! | `now_micros() -> f64` | since 1970 |
//! | `random(address, len)` | fills it |
//! | `grow(pages) -> pages` | adds pages of 64 KiB; returns how many there were, or -1 |
//!
//! A record has 40 bytes, little-endian: kind (u32: 0 file, 1 directory, 2 link, 3 other), mode
//! (u32), size (u64), times of modification and creation (u64, microseconds), how many names the
//! file has (u32), and a number that they share (u32).

mod calls;
mod commands;
mod executor;
mod files;
mod host;
mod input;
mod memory;
mod session;

use std::collections::HashMap;
use std::sync::Mutex;

use bashkit::OutputStream;
use serde::Serialize;

use crate::executor::lock;
use crate::session::{Session, Step, Written};

/// What a function of the module says the host is to do.
#[repr(u32)]
enum Next {
    Failed = 0,
    Finished = 1,
    Call = 2,
    Wait = 3,
    Input = 5,
    Piece = 6,
}

struct SendSession(Session);
// SAFETY: the module has one thread.
unsafe impl Send for SendSession {}

static SESSIONS: Mutex<Option<HashMap<u32, SendSession>>> = Mutex::new(None);
static REPLY: Mutex<(Vec<u8>, Vec<u8>)> = Mutex::new((Vec::new(), Vec::new()));

fn reply(value: &impl Serialize, bytes: Vec<u8>) {
    *lock(&REPLY) = (serde_json::to_vec(value).unwrap_or_default(), bytes);
}

fn fail(error: &str) -> u32 {
    *lock(&REPLY) = (error.as_bytes().to_vec(), Vec::new());
    Next::Failed as u32
}

/// # Safety
///
/// The buffer is `alloc`'s.
unsafe fn owned(at: *mut u8, len: usize) -> Vec<u8> {
    // SAFETY: `alloc` made it with this length.
    unsafe { Vec::from_raw_parts(at, len, len) }
}

fn done(step: Option<Step>) -> u32 {
    match step {
        None => fail("the session is in another state"),
        Some(Step::Finished(mut finished)) => {
            let unread = std::mem::take(&mut finished.unread);
            reply(&finished, unread);
            Next::Finished as u32
        }
        Some(Step::Call(mut call)) => {
            let stdin = std::mem::take(&mut call.stdin);
            reply(&call, stdin);
            Next::Call as u32
        }
        Some(Step::Wait(until)) => {
            reply(&until, Vec::new());
            Next::Wait as u32
        }
        Some(Step::Input(until)) => {
            reply(&until, Vec::new());
            Next::Input as u32
        }
        Some(Step::Piece(bytes)) => {
            reply(&(), bytes);
            Next::Piece as u32
        }
    }
}

/// Runs `then` with the session taken out of the table, so that the host may use others meanwhile.
fn with<T>(session: u32, then: impl FnOnce(&mut Session) -> T) -> Option<T> {
    let mut taken = lock(&SESSIONS).as_mut()?.remove(&session)?;
    let result = then(&mut taken.0);
    lock(&SESSIONS).as_mut()?.insert(session, taken);
    Some(result)
}

#[unsafe(no_mangle)]
extern "C" fn alloc(len: usize) -> *mut u8 {
    let mut bytes = std::mem::ManuallyDrop::new(Vec::<u8>::with_capacity(len));
    bytes.as_mut_ptr()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn session_new(config: *mut u8, len: usize) -> u32 {
    // SAFETY: the host's buffer is `alloc`'s.
    let config = unsafe { owned(config, len) };
    let config = match serde_json::from_slice(&config) {
        Ok(config) => config,
        Err(error) => return fail(&error.to_string()),
    };
    let mut sessions = lock(&SESSIONS);
    let sessions = sessions.get_or_insert_default();
    let Some(id) = (1..).find(|id| !sessions.contains_key(id)) else {
        return fail("too many sessions");
    };
    sessions.insert(id, SendSession(Session::new(id, config)));
    id
}

#[unsafe(no_mangle)]
extern "C" fn session_free(session: u32) {
    let session = lock(&SESSIONS).as_mut().and_then(|sessions| sessions.remove(&session));
    drop(session);
}

#[unsafe(no_mangle)]
extern "C" fn session_flag(session: u32) -> *const u8 {
    with(session, |session| session.flag()).unwrap_or(std::ptr::null())
}

#[unsafe(no_mangle)]
extern "C" fn session_state(session: u32) -> u32 {
    match with(session, |session| session.state()).flatten() {
        Some(state) => {
            reply(&state, Vec::new());
            Next::Finished as u32
        }
        None => fail("a run goes on"),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn run(
    session: u32,
    request: *mut u8,
    request_len: usize,
    stdin: *mut u8,
    stdin_len: usize,
) -> u32 {
    // SAFETY: the host's buffers are `alloc`'s.
    let (request, stdin) = unsafe {
        let stdin = if stdin.is_null() { None } else { Some(owned(stdin, stdin_len)) };
        (owned(request, request_len), stdin)
    };
    let request = match serde_json::from_slice(&request) {
        Ok(request) => request,
        Err(error) => return fail(&error.to_string()),
    };
    done(with(session, |session| session.start(request, stdin)).flatten())
}

#[unsafe(no_mangle)]
extern "C" fn answer(session: u32, call: u32, status: i32) {
    let _unknown = with(session, |session| session.answer(call, status));
}

#[unsafe(no_mangle)]
unsafe extern "C" fn output(
    session: u32,
    call: u32,
    descriptor: u32,
    bytes: *mut u8,
    len: usize,
) -> u32 {
    // SAFETY: the host's buffer is `alloc`'s.
    let bytes = unsafe { owned(bytes, len) };
    let stream = if descriptor == 2 { OutputStream::Stderr } else { OutputStream::Stdout };
    let written = with(session, |session| session.write(call, stream, &bytes));
    written.unwrap_or(Written::Stopped) as u32
}

#[unsafe(no_mangle)]
extern "C" fn next_wake(session: u32) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a time is below 2^53 microseconds")]
    with(session, |session| session.next_wake()).flatten().map_or(-1.0, |micros| micros as f64)
}

#[unsafe(no_mangle)]
extern "C" fn pull(session: u32, call: u32) -> u32 {
    done(with(session, |session| session.pull(call)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn input(session: u32, bytes: *mut u8, len: usize) {
    // SAFETY: the host's buffer is `alloc`'s.
    let bytes = if bytes.is_null() { Vec::new() } else { unsafe { owned(bytes, len) } };
    let _unknown = with(session, |session| session.input(&bytes));
}

#[unsafe(no_mangle)]
extern "C" fn resume(session: u32) -> u32 {
    done(with(session, |session| session.step()).flatten())
}

#[unsafe(no_mangle)]
extern "C" fn reply_text() -> *const u8 {
    lock(&REPLY).0.as_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn reply_text_len() -> usize {
    lock(&REPLY).0.len()
}

#[unsafe(no_mangle)]
extern "C" fn reply_bytes() -> *const u8 {
    lock(&REPLY).1.as_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn reply_bytes_len() -> usize {
    lock(&REPLY).1.len()
}
