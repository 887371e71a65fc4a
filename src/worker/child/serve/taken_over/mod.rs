//! A worker without V8 between the guest and the process: native code runs in it, behind the same
//! lockdown and with the same parent. `cargo xtask escape` starts real sessions with it.
//!
//! The program is this test program, which a script starts with the test [`start`]. It forks, for a
//! process with one thread, which locks itself down as every worker does. The command that would
//! run a cell names an attempt instead, and what the attempt gives is printed as the cell's output.

mod attempts;
mod frames;
mod system;

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::{Lockdown, Received, pass_interrupts_on, receive_setup};
use crate::data::isolation::IsolationReport;
use crate::data::output::Stream;
use crate::protocol::{Host, HostRequest, Inbox, Message, Reply};
use crate::support::shared_words::SharedWords;
use crate::worker::child::lockdown::{self, Settings, tests};
use crate::worker::child::mailbox::{Connection, Interrupts, Mailbox, Messages};
use crate::worker::child::remote::RemoteHost;
use crate::worker::wire::output_ring::{Producer, WORDS};
use crate::worker::wire::{self, FromWorker};

/// An argument that has [`start`] be a worker.
const AS_A_WORKER: &str = "as-a-worker";

/// An argument that leaves the lockdown out, to see what an attempt does without it.
const UNCONFINED: &str = "unconfined";

/// An empty report of a guest.
const REPORT: &[u8] = b"{0";

/// An attempt of native code.
#[derive(Clone, Copy, Debug)]
struct Attempt {
    name: &'static str,
    /// The title of the kind of programs that it belongs to.
    kind: &'static str,
    /// What it tries.
    what: &'static str,
    /// The public scenario that it stands for; empty if there is none.
    source: &'static str,
    harm: Harm,
    run: fn(&TakenOver) -> io::Result<()>,
}

/// What an attempt does to the machine where nothing holds it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Harm {
    /// It reads.
    None,
    /// It may change or end what is not ours.
    Some,
}

/// What native code has when it has taken over a worker.
struct TakenOver {
    target: Target,
    host: Arc<RemoteHost>,
    connection: Connection,
    inbox: Messages,
    /// The memory for output, with the parent.
    ring: SharedWords,
}

/// Where the flags are: what programs are told, too.
#[derive(Debug, Deserialize)]
struct Target {
    directory: String,
    file: String,
    host: u32,
    port: u16,
    process: u32,
    socket: String,
    variable: String,
    worker: u32,
}

impl TakenOver {
    /// Gives something to whoever runs the session.
    fn give(&self, what: &[u8]) {
        self.host.call(HostRequest::Write(Stream::Stdout, what));
    }

    fn say(&self, what: impl std::fmt::Debug) {
        self.give(format!("{what:?}\n").as_bytes());
    }
}

/// Returns the attempts of all kinds.
fn all() -> impl Iterator<Item = &'static Attempt> {
    attempts::ATTEMPTS.iter().chain(frames::ATTEMPTS)
}

/// Not a test: tells `cargo xtask escape` of the attempts.
#[test]
fn list() {
    for Attempt { name, kind, what, source, harm, .. } in all() {
        let is_harmless = *harm == Harm::None;
        let line = json!({
            "name": name, "kind": kind, "what": what, "source": source, "is_harmless": is_harmless,
        });
        writeln!(io::stdout(), "\n{line}").unwrap();
    }
}

/// Not a test: the worker that `cargo xtask escape` starts.
#[test]
fn start() {
    let arguments: Vec<String> = std::env::args().collect();
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    if has(AS_A_WORKER) {
        let is_confined = !has(UNCONFINED);
        let status = tests::worker(move || be_taken_over(is_confined).unwrap());
        // The parent sees this process, and has to see how the worker ended.
        if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
            let signal = rustix::process::Signal::from_named_raw(signal).unwrap();
            rustix::process::kill_process(rustix::process::getpid(), signal).unwrap();
        }
    }
}

/// Starts as a worker does, and carries out attempts in place of commands.
fn be_taken_over(is_confined: bool) -> io::Result<()> {
    let parent = std::os::unix::process::parent_id();
    let settings = Settings { parent, data_bytes: u64::MAX, forkable: false };
    let early = is_confined.then(|| lockdown::before_threads(&settings).map_err(io::Error::other));
    let early = early.transpose()?;
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let Received { setup, image: _image, interrupts, output } = receive_setup(&socket)?;
    let connection = Connection::default();
    let host = Arc::new(RemoteHost::new(Arc::clone(&connection), setup.max_frame_bytes()));
    let ring = SharedWords::map(output.as_fd(), WORDS)?;
    let (interrupts, interrupted) = (Arc::new(interrupts), Arc::<Interrupts>::default());
    let to_refuse = socket.try_clone()?;
    let mailbox = Mailbox::new(socket, Arc::clone(&interrupted), Producer::map(output)?)?;
    // The connection was not set before.
    let _ = connection.set(mailbox);
    if let Some(early) = early {
        let settings = setup.settings(settings);
        let interrupts_to_lock = Arc::clone(&interrupts);
        let host = Arc::clone(&host);
        let lockdown =
            Lockdown { early, settings, interrupts: interrupts_to_lock, to_refuse, host };
        lockdown.enter(|| pass_interrupts_on(interrupts, interrupted))?;
    } else {
        let report = IsolationReport::thread();
        host.tell(&FromWorker::Ready { version: &wire::version(), report })?;
    }
    let inbox = Messages::new(Arc::clone(&connection), None);
    loop {
        let Some(message) = inbox.try_take() else {
            inbox.wait(Duration::ZERO, Duration::from_secs(1));
            continue;
        };
        let Message::Command(frame) = message else { continue };
        if let Some((attempt, target)) = asked(&frame) {
            let (host, connection) = (Arc::clone(&host), Arc::clone(&connection));
            let taken = TakenOver { target, host, connection, inbox, ring };
            let ended = (attempt.run)(&taken);
            taken.say(ended);
            // The session ends with the worker.
            return taken.host.reply(Reply::Failed(format!("`{}` is over", attempt.name)));
        }
        host.reply(Reply::Done { memory_bytes: 0, report: REPORT.to_vec() })?;
    }
}

/// Finds the attempt that a command asks for, and where the flags are, between the rest of it.
fn asked(frame: &[u8]) -> Option<(&'static Attempt, Target)> {
    let text = String::from_utf8_lossy(frame);
    let (_, rest) = text.split_once("'attempt:")?;
    let (name, _) = rest.split_once(";'")?;
    let target = text.match_indices("{\"").find_map(|(at, _)| {
        serde_json::Deserializer::from_str(&text[at..]).into_iter().next()?.ok()
    });
    Some((all().find(|attempt| attempt.name == name)?, target?))
}

#[test]
fn every_attempt_has_a_name_of_its_own() {
    let names: std::collections::BTreeSet<_> = all().map(|attempt| attempt.name).collect();
    assert_eq!(names.len(), all().count());
    assert!(names.len() >= 60, "{}", names.len());
}
