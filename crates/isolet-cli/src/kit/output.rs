//! Writes a run's output to standard output and standard error, from a separate thread. A reader
//! that takes nothing delays the guest, but neither its deadline nor the messages about the run.

use isolet_support::size::shown_bytes;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use isolet::blocking::{RunOutput, RunStream, Session};
use isolet::{Cell, Execution, InterruptHandle, Limits, Outcome, OutputChunk, RunEvent, Stream};

use crate::kit::interrupts::Interrupts;
use crate::show::exit;
use crate::show::terminal::Printer;
use crate::show::viewer::Viewer;

/// The time to wait for a reader that takes nothing after the run was ended, and for a guest that
/// continues without a reader.
const PATIENCE: Duration = Duration::from_secs(1);

/// The most bytes of a write. A pipe takes this many atomically.
const PIECE_BYTES: usize = 4096;

/// A run, and what happened to its output.
pub(crate) struct Streamed {
    pub(crate) execution: Execution,
    stdout: Passed,
    stderr: Passed,
    max_bytes: Option<u64>,
    /// Set once standard output or standard error has no reader.
    pub(crate) is_reader_gone: bool,
}

/// The part of a stream that was passed on, in bytes as the guest wrote them.
#[derive(Clone, Copy, Default)]
struct Passed {
    written: u64,
    /// Bytes left out because they were beyond the limit.
    beyond_limit: u64,
}

#[derive(Default)]
struct Progress {
    stdout: Passed,
    stderr: Passed,
    /// The number of writes so far.
    steps: u64,
    /// Set when the run has ended.
    is_over: bool,
    /// The result of the thread, once it has ended.
    end: Option<io::Result<()>>,
}

impl Progress {
    fn of(&mut self, stream: Stream) -> &mut Passed {
        match stream {
            Stream::Stderr => &mut self.stderr,
            _ => &mut self.stdout,
        }
    }
}

#[derive(Clone, Default)]
struct Shared(Arc<(Mutex<Progress>, Condvar)>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, change: impl FnOnce(&mut Progress)) {
        change(&mut self.lock());
        self.0.1.notify_all();
    }

    /// Waits for a change, at most for `limit` if there is one. Returns `true` if there was one.
    fn wait<'a>(
        &'a self,
        progress: MutexGuard<'a, Progress>,
        limit: Option<Duration>,
    ) -> (MutexGuard<'a, Progress>, bool) {
        match limit {
            None => (self.0.1.wait(progress).unwrap_or_else(PoisonError::into_inner), true),
            Some(limit) => {
                let waited = self.0.1.wait_timeout(progress, limit);
                let (progress, limit) = waited.unwrap_or_else(PoisonError::into_inner);
                (progress, !limit.timed_out())
            }
        }
    }
}

/// The form in which the output of runs is shown.
#[derive(Clone)]
pub(crate) struct Shown {
    /// Set to pass output to a terminal unfiltered.
    pub(crate) raw: bool,
    /// For each run.
    pub(crate) max_bytes: Option<u64>,
    pub(crate) viewer: Viewer,
}

/// Runs a cell and passes its output on as it arrives.
pub(crate) fn stream(
    session: &mut Session,
    cell: Cell,
    shown: &Shown,
    interrupts: &Interrupts,
) -> Result<Streamed> {
    let cell = shown.viewer.prepare(cell);
    stream_run(session, |session| session.run_streaming(cell), shown, interrupts)
}

/// Passes the output of a run on as it arrives.
pub(crate) fn stream_run(
    session: &mut Session,
    run: impl FnOnce(&mut Session) -> RunStream<'_>,
    shown: &Shown,
    interrupts: &Interrupts,
) -> Result<Streamed> {
    let Shown { raw, max_bytes, viewer } = shown.clone();
    let shared = Shared::default();
    let mut started = Ok(());
    let interrupt = session.interrupt_handle();
    let pass =
        Pass { shared: shared.clone(), printer: Printer::new(raw), viewer, max_bytes, interrupt };
    let execution = interrupts.during(|| {
        let mut run = run(session);
        if let Some(output) = run.take_output() {
            let thread = std::thread::Builder::new().name("isolet-output".to_owned());
            started = thread.spawn(move || pass.run(output)).map(drop);
        }
        run.finish()
    })?;
    started.context("the thread that writes the guest's output cannot start")?;
    shared.update(|progress| progress.is_over = true);
    // Output of the guest waits for its reader without a time limit. After the run was terminated,
    // a reader that takes nothing is not waited for.
    let limit = matches!(execution.outcome(), Outcome::Terminated(_)).then_some(PATIENCE);
    let mut progress = shared.lock();
    while progress.end.is_none() {
        let steps = progress.steps;
        let (later, has_changed) = shared.wait(progress, limit);
        progress = later;
        if !has_changed && progress.steps == steps {
            break;
        }
    }
    let is_reader_gone = match progress.end.take() {
        Some(Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => true,
        Some(Err(error)) => return Err(error).context("cannot write the guest's output"),
        _ => false,
    };
    let (stdout, stderr) = (progress.stdout, progress.stderr);
    drop(progress);
    Ok(Streamed { execution, stdout, stderr, max_bytes, is_reader_gone })
}

/// The thread that writes.
struct Pass {
    shared: Shared,
    printer: Printer,
    viewer: Viewer,
    max_bytes: Option<u64>,
    interrupt: InterruptHandle,
}

impl Pass {
    fn run(mut self, mut output: RunOutput) {
        let written = self.write_all(&mut output);
        // From here on the guest does not wait for a reader.
        drop(output);
        let is_reader_gone =
            matches!(&written, Err(error) if error.kind() == io::ErrorKind::BrokenPipe);
        if written.is_err() {
            self.interrupt.interrupt();
        }
        self.shared.update(|progress| progress.end = Some(written));
        if is_reader_gone {
            self.end_run();
        }
    }

    fn write_all(&mut self, output: &mut RunOutput) -> io::Result<()> {
        for event in output {
            match event {
                RunEvent::Output(chunk) => self.write(&chunk)?,
                RunEvent::Display(display) => {
                    self.viewer.show(&display, &mut self.printer)?;
                    self.shared.update(|progress| progress.steps += 1);
                }
                _ => {}
            }
        }
        self.printer.finish()
    }

    fn write(&mut self, chunk: &OutputChunk) -> io::Result<()> {
        for piece in chunk.bytes.chunks(PIECE_BYTES) {
            let written = self.shared.lock().of(chunk.stream).written;
            let room = self.max_bytes.map_or(u64::MAX, |limit| limit.saturating_sub(written));
            let room = usize::try_from(room).unwrap_or(usize::MAX).min(piece.len());
            let (passed, beyond) = piece.split_at(room);
            if !passed.is_empty() {
                self.printer.print(chunk.stream, passed)?;
            }
            self.shared.update(|progress| {
                progress.steps += 1;
                let stream = progress.of(chunk.stream);
                stream.written += passed.len() as u64;
                stream.beyond_limit += beyond.len() as u64;
            });
        }
        Ok(())
    }

    /// Ends the command if the guest continues although its output has no reader.
    fn end_run(&self) {
        let mut progress = self.shared.lock();
        while !progress.is_over {
            let (later, has_changed) = self.shared.wait(progress, Some(PATIENCE));
            progress = later;
            if !has_changed && !progress.is_over {
                std::process::exit(exit::NO_READER.into());
            }
        }
    }
}

impl Streamed {
    /// Returns a line for each stream of which output was not passed on, with the reason.
    pub(crate) fn missing(&self) -> Vec<String> {
        if self.is_reader_gone {
            return Vec::new();
        }
        let usage = self.execution.usage();
        let streams = [
            ("output", self.stdout, usage.stdout_bytes),
            ("error", self.stderr, usage.stderr_bytes),
        ];
        let mut lines = Vec::new();
        if let displays @ 1.. = self.execution.truncated().displays {
            lines.push(format!(
                "displays left out: {displays}; a run may have {} displays with together {}",
                Limits::DEFAULT_DISPLAYS,
                shown_bytes(Limits::DEFAULT_DISPLAY_BYTES)
            ));
        }
        for (name, passed, bytes) in streams {
            if let (Some(limit), 1..) = (self.max_bytes, passed.beyond_limit) {
                lines.push(format!(
                    "of {bytes} bytes of standard {name} only the first {limit} were passed on, as \
                     `--max-output` says"
                ));
            }
            let unread = bytes.saturating_sub(passed.written + passed.beyond_limit);
            if unread > 0 {
                lines.push(format!(
                    "{unread} bytes of standard {name} are lost: when the run was ended, the guest \
                     was waiting for them to be read"
                ));
            }
        }
        lines
    }

    /// Returns the exit status.
    pub(crate) fn status(&self) -> ExitCode {
        if self.is_reader_gone {
            return exit::NO_READER.into();
        }
        match self.execution.outcome() {
            Outcome::Completed(_) | Outcome::Exited(0) if !self.missing().is_empty() => {
                exit::LIMIT.into()
            }
            _ => exit::status(&self.execution),
        }
    }

    /// Prints to standard error which output is missing.
    pub(crate) fn show_missing(&self) -> io::Result<()> {
        let mut stderr = io::stderr().lock();
        self.missing().iter().try_for_each(|line| writeln!(stderr, "error: {line}"))
    }
}
