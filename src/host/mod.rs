//! The host of one session: takes its output, provides its input, entropy and time, and decides
//! what it may reach.

pub(crate) mod audit;
pub(crate) mod catch_panic;
mod displays;
mod exchanges;
pub(crate) mod journal;
mod packages;
pub(crate) mod pipe;
pub(crate) mod saved;
pub(crate) mod stop;
pub(crate) mod tools;
mod written_files;

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use self::displays::Displays;
use self::exchanges::{Answers, Exchanges};
pub(crate) use self::packages::SessionPackages;
use self::saved::{SavedState, Saving};
use self::stop::{Gate, Passage, RunCounters, RunStopper, Stoppable};
use self::written_files::WrittenFiles;
use crate::data::display::Display;
use crate::data::error::Error;
use crate::data::limits::Limits;
use crate::data::output::{Capture, Captured, Stream};
use crate::data::shown::shown;
use crate::data::stdin::{Input, InputPump, Stdin};
use crate::data::tool::ToolError;
use crate::data::value::Value;
use crate::data::written_file::WrittenFile;
use crate::fs::{
    FileError, FileEvent, FileLimits, FileReply, FileSystem, Identity, MountTable, SavedLimits,
};
use crate::host::audit::{Access, AuditLog, Auditor};
use crate::host::pipe::PipeWriter;
use crate::host::tools::{ModuleSet, ToolHost};
use crate::net::rules::NetPolicy;
use crate::packages::{LazyStore, Preload, SITE_PACKAGES};
use crate::protocol::{Host, HostReply, HostRequest, NAME_BYTES, Outbox};
use crate::support::clock;
use crate::support::lock::lock;

/// The parts of a session's host.
pub(crate) struct HostConfig<'a> {
    /// The session's number.
    pub(crate) session: u64,
    pub(crate) limits: &'a Limits,
    pub(crate) mounts: &'a MountTable,
    pub(crate) net: &'a NetPolicy,
    pub(crate) packages: &'a Arc<LazyStore>,
    /// The packages that every session of the engine starts with.
    pub(crate) preload: &'a Preload,
    pub(crate) audit: Auditor,
    pub(crate) modules: &'a ModuleSet,
}

/// Holds the policy of one session and the streams of its current run.
pub(crate) struct SessionHost {
    started: Instant,
    gate: Gate,
    run: Mutex<RunStreams>,
    input: Mutex<Arc<InputPump>>,
    tools: Arc<ToolHost>,
    mount_points: Vec<String>,
    writable: Vec<Identity>,
    files: FileSystem,
    exchanges: Exchanges,
    packages: SessionPackages,
    audit: AuditLog,
    answers: Answers,
    counters: Arc<RunCounters>,
    saving: Saving,
    saved_limits: SavedLimits,
}

/// What the host recorded of a finished run.
pub(crate) struct FinishedRun {
    pub(crate) stdout: Captured,
    pub(crate) stderr: Captured,
    pub(crate) displays: Vec<Display>,
    pub(crate) dropped_displays: u64,
    pub(crate) files: Vec<WrittenFile>,
    pub(crate) dropped_files: u64,
    pub(crate) tool_calls: u64,
    pub(crate) submission: Option<Value>,
}

struct RunStreams {
    stdout: Capture,
    stderr: Capture,
    displays: Displays,
    files: WrittenFiles,
    /// Receives the full output of both streams, and the displays, as they are written. Writers
    /// wait for it without holding the lock.
    pipe: Option<Arc<PipeWriter>>,
}

impl SessionHost {
    /// Makes the host of a session that has no tools yet.
    pub(crate) fn new(config: HostConfig<'_>) -> Self {
        let HostConfig { session, limits, mounts, net, packages, preload, audit, modules } = config;
        let counters = Arc::new(RunCounters::new(limits));
        let audit = AuditLog::new(audit, session, Arc::clone(&counters));
        let answers: Answers = Arc::new(OnceLock::new());
        let tree = Arc::new(preload.tree());
        let mut mounts = mounts.clone();
        mounts.add_tree(SITE_PACKAGES, Arc::clone(&tree) as _);
        let packages = SessionPackages::new(
            Arc::clone(packages),
            tree,
            preload.pinned().to_vec(),
            audit.clone(),
            Arc::clone(&answers),
        );
        Self {
            started: Instant::now(),
            gate: Gate::new(),
            run: Mutex::new(RunStreams::new(&Limits::default(), None)),
            input: Mutex::new(InputPump::new(Stdin::empty()).into()),
            tools: Arc::new(ToolHost::new(limits, modules, audit.clone(), Arc::clone(&counters))),
            mount_points: mounts.guest_paths().map(str::to_owned).collect(),
            writable: mounts.writable(),
            files: FileSystem::new(&mounts, FileLimits::default(), file_events(&audit))
                .gated(file_gate(&audit)),
            exchanges: Exchanges::new(net, &audit, Arc::clone(&answers)),
            packages,
            audit,
            answers,
            counters,
            saving: Saving::default(),
            saved_limits: mounts.saved_limits(),
        }
    }

    /// Takes over what the host had of a saved session, as far as this one's policy permits it.
    pub(crate) fn restore(&self, state: SavedState) -> Result<(), Error> {
        let SavedState { preloaded, packages, overlays } = state;
        self.packages.restore(&preloaded, &packages)?;
        for (guest, overlay) in overlays {
            self.files.restore(&guest, overlay)?;
        }
        Ok(())
    }

    /// Describes what the host has of the session.
    fn saved(&self) -> SavedState {
        let (preloaded, packages) = self.packages.saved();
        SavedState { preloaded, packages, overlays: self.files.save() }
    }

    /// Returns the directories of the host that the guest may write to.
    pub(crate) fn writable(&self) -> Vec<Identity> {
        self.writable.clone()
    }

    /// Returns where the session is saved to and restored from.
    pub(crate) fn saving(&self) -> &Saving {
        &self.saving
    }

    /// Makes the host of a copy of the session: it has the same tools, packages and files, and its
    /// counters start anew. Fails if an open file cannot be copied.
    pub(crate) fn copy(&self, config: HostConfig<'_>) -> Result<Self, FileError> {
        let HostConfig { session, limits, mounts, net, audit, .. } = config;
        let counters = Arc::new(RunCounters::new(limits));
        let audit = AuditLog::new(audit, session, Arc::clone(&counters));
        let answers: Answers = Arc::new(OnceLock::new());
        let (packages, tree) = self.packages.copy(audit.clone(), Arc::clone(&answers));
        let mut mounts = mounts.clone();
        mounts.add_tree(SITE_PACKAGES, tree as _);
        Ok(Self {
            started: self.started,
            gate: Gate::new(),
            run: Mutex::new(RunStreams::new(&Limits::default(), None)),
            input: Mutex::new(InputPump::new(Stdin::empty()).into()),
            tools: Arc::new(self.tools.copy(limits, audit.clone(), Arc::clone(&counters))),
            mount_points: self.mount_points.clone(),
            writable: self.writable.clone(),
            files: self.files.copy(&mounts, file_events(&audit))?.gated(file_gate(&audit)),
            exchanges: Exchanges::new(net, &audit, Arc::clone(&answers)),
            packages,
            audit,
            answers,
            counters,
            saving: Saving::default(),
            saved_limits: self.saved_limits.clone(),
        })
    }

    /// Makes the host of the session after its interpreter has ended. It has the same tools, whose
    /// calls count on, and what was used of the quotas of read-write mounts stays used. With the
    /// state of a checkpoint it also has that one's packages and overlays.
    pub(crate) fn revived(
        &self,
        config: HostConfig<'_>,
        state: Option<SavedState>,
    ) -> Result<Self, Error> {
        let HostConfig { session, limits, mounts, net, packages, preload, audit, .. } = config;
        let counters = Arc::new(RunCounters::new(limits));
        let audit = AuditLog::new(audit, session, Arc::clone(&counters));
        let answers: Answers = Arc::new(OnceLock::new());
        let (packages, tree) = if state.is_some() {
            self.packages.copy(audit.clone(), Arc::clone(&answers))
        } else {
            let tree = Arc::new(preload.tree());
            let packages = SessionPackages::new(
                Arc::clone(packages),
                Arc::clone(&tree),
                preload.pinned().to_vec(),
                audit.clone(),
                Arc::clone(&answers),
            );
            (packages, tree)
        };
        let mut mounts = mounts.clone();
        mounts.add_tree(SITE_PACKAGES, tree as _);
        let files = self.files.revived(&mounts, file_events(&audit)).gated(file_gate(&audit));
        for (guest, overlay) in state.into_iter().flat_map(|state| state.overlays) {
            files.restore(&guest, overlay)?;
        }
        Ok(Self {
            started: self.started,
            gate: Gate::new(),
            run: Mutex::new(RunStreams::new(&Limits::default(), None)),
            input: Mutex::new(InputPump::new(Stdin::empty()).into()),
            tools: Arc::new(self.tools.revived(limits, audit.clone(), Arc::clone(&counters))),
            mount_points: self.mount_points.clone(),
            writable: self.writable.clone(),
            files,
            exchanges: Exchanges::new(net, &audit, Arc::clone(&answers)),
            packages,
            audit,
            answers,
            counters,
            saving: Saving::default(),
            saved_limits: self.saved_limits.clone(),
        })
    }

    /// Returns the limits of what is saved.
    pub(crate) fn saved_limits(&self) -> &SavedLimits {
        &self.saved_limits
    }

    /// Reports that the session was forked, and the number of the copy.
    pub(crate) fn tell_of_copy(&self, copy: u64) {
        self.audit.tell(true, "its owner forked it".to_owned(), || Access::Fork { copy });
    }

    /// Connects the host to the isolate that it serves.
    pub(crate) fn connect(&self, messages: &Outbox) {
        // A host serves only one isolate, so a second one cannot be connected.
        let _ = self.answers.set(Arc::downgrade(messages));
    }

    /// Sets the stopper with which the host can stop the current command.
    pub(crate) fn stop_with(&self, stopper: &Arc<RunStopper>) {
        self.counters.connect(stopper);
    }

    /// Returns the session's packages.
    pub(crate) fn packages(&self) -> &SessionPackages {
        &self.packages
    }

    /// Returns the guest paths of the mounts, in the order of their numbers.
    pub(crate) fn mount_points(&self) -> &[String] {
        &self.mount_points
    }

    /// Returns the number of the overlay at a guest path.
    pub(crate) fn overlay(&self, path: &str) -> Option<usize> {
        let index = self.mount_points.iter().position(|point| point == path)?;
        self.files.is_overlay(index).then_some(index)
    }

    /// Returns the session's files beneath its mount points.
    pub(crate) fn files(&self) -> &FileSystem {
        &self.files
    }

    /// Returns the tools that the guest may call.
    pub(crate) fn tools(&self) -> &Arc<ToolHost> {
        &self.tools
    }

    /// Refuses all further requests of the isolate, whatever still runs in it.
    pub(crate) fn close(&self) {
        self.gate.shut(Passage::Closed);
        self.exchanges.end_run();
    }

    /// Opens the streams of a run. Anything left of the last run's streams is discarded.
    pub(crate) fn begin(&self, limits: &Limits, stdin: Stdin, pipe: Option<PipeWriter>) {
        *lock(&self.run) = RunStreams::new(limits, pipe);
        *lock(&self.input) = InputPump::new(stdin).into();
        self.counters.begin();
        self.tools.begin();
        self.exchanges.begin_run();
        self.gate.open();
    }

    /// Closes the streams of a run and returns what the host recorded of it.
    pub(crate) fn finish(&self) -> FinishedRun {
        let closed = RunStreams::new(&Limits::default(), None);
        let streams = std::mem::replace(&mut *lock(&self.run), closed);
        if let Some(pipe) = &streams.pipe {
            pipe.end();
        }
        *lock(&self.input) = InputPump::new(Stdin::empty()).into();
        let (tool_calls, submission) = self.tools.finish();
        self.exchanges.end_run();
        self.audit.end_run();
        let (stdout, stderr) = (streams.stdout.finish(), streams.stderr.finish());
        let (displays, dropped_displays) = streams.displays.finish();
        let (files, dropped_files) = streams.files.finish();
        FinishedRun {
            stdout,
            stderr,
            displays,
            dropped_displays,
            files,
            dropped_files,
            tool_calls,
            submission,
        }
    }

    /// Returns how much the run has printed to standard output and standard error, in bytes.
    pub(crate) fn written(&self) -> (u64, u64) {
        let run = lock(&self.run);
        (run.stdout.written(), run.stderr.written())
    }

    /// Does of a request of a session that is replayed what only this host has. `reply` is what
    /// came of it.
    pub(crate) fn follow(&self, request: &HostRequest<'_>, reply: &HostReply) {
        match (request, reply) {
            (HostRequest::File(request), HostReply::File(reply)) => {
                let file = match reply {
                    Ok(FileReply::File(file)) => Some(*file),
                    _ => None,
                };
                self.files.follow(*request, file);
            }
            (HostRequest::ReadStdin(_), HostReply::Bytes(bytes)) => {
                lock(&self.input).skip(bytes.len());
            }
            _ => {}
        }
    }

    /// Counts a call of a session that is replayed. Fails if it would not be allowed now.
    pub(crate) fn permit_again(&self, call: u32, request: &HostRequest<'_>) -> Result<(), String> {
        match request {
            HostRequest::CallTool { tool, .. } => {
                self.tools.count_again(call, tool);
                Ok(())
            }
            HostRequest::NetStart { request, .. } => self
                .exchanges
                .permit_again(request)
                .map_err(|error| format!("the sandbox does not allow it: {}", error.message())),
            _ => Ok(()),
        }
    }

    /// Adds a line from the host to standard error.
    pub(crate) fn log(&self, line: &str) {
        let mut run = lock(&self.run);
        run.stderr.write(line.as_bytes());
        if let Some(pipe) = &run.pipe {
            pipe.write_now(Stream::Stderr, line.as_bytes());
        }
    }
}

impl RunStreams {
    fn new(limits: &Limits, pipe: Option<PipeWriter>) -> Self {
        Self {
            stdout: Capture::new(limits.stdout_bytes(), limits.output_lines()),
            stderr: Capture::new(limits.stderr_bytes(), limits.output_lines()),
            displays: Displays::new(limits),
            files: WrittenFiles::new(limits),
            pipe: pipe.map(Arc::new),
        }
    }

    fn capture(&mut self, stream: Stream) -> &mut Capture {
        match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }
}

impl Stoppable for SessionHost {
    fn shut(&self, passage: Passage) {
        self.gate.shut(passage);
    }

    /// Ends all waits for input and for the reader of the output.
    fn interrupt_waits(&self) {
        lock(&self.input).interrupt();
        if let Some(pipe) = &lock(&self.run).pipe {
            pipe.release();
        }
    }
}

impl Host for SessionHost {
    fn call(&self, request: HostRequest<'_>) -> HostReply {
        if let Some(reason) = self.gate.refusal(&request) {
            return HostReply::Failed(reason.to_owned());
        }
        match request {
            HostRequest::Write(stream, bytes) => {
                let pipe = {
                    let mut run = lock(&self.run);
                    run.capture(stream).write(bytes);
                    run.pipe.clone()
                };
                if let Some(pipe) = pipe {
                    pipe.write(stream, bytes);
                }
                HostReply::Done
            }
            HostRequest::Display(encoded) => {
                let (display, pipe) = {
                    let mut run = lock(&self.run);
                    let before = (run.stdout.written(), run.stderr.written());
                    (run.displays.add(encoded, before.0, before.1), run.pipe.clone())
                };
                if let (Some(display), Some(pipe)) = (display, pipe) {
                    pipe.write_display(display);
                }
                HostReply::Done
            }
            // Without a journal nobody asks for them.
            HostRequest::Happened(_) | HostRequest::Diverged(_) | HostRequest::EndLookBack => {
                HostReply::Done
            }
            HostRequest::Order | HostRequest::IsLookedBack | HostRequest::StopLine => {
                HostReply::Failed("the session is not recorded".to_owned())
            }
            HostRequest::Image(_) => HostReply::Failed("a session makes no image".to_owned()),
            HostRequest::Saved(piece) => {
                match self.saving.write(piece, &self.saved_limits, || self.saved()) {
                    Ok(()) => HostReply::Done,
                    Err(reason) => HostReply::Failed(reason),
                }
            }
            HostRequest::SaveRefused(reason) => {
                self.saving.refuse(reason);
                HostReply::Done
            }
            HostRequest::SavedPart { offset, max } => match self.saving.read(offset, max) {
                Ok(piece) => HostReply::Bytes(piece),
                Err(reason) => HostReply::Failed(reason),
            },
            HostRequest::FileWritten { path, size } => {
                lock(&self.run).files.add(path, size);
                HostReply::Done
            }
            HostRequest::ReadStdin(max) => {
                let input = Arc::clone(&lock(&self.input));
                match input.read(usize::try_from(max).unwrap_or(usize::MAX)) {
                    Input::Bytes(bytes) => HostReply::Bytes(bytes),
                    Input::Interrupted(nth) => HostReply::Interrupted(nth),
                }
            }
            HostRequest::Now => HostReply::Time(clock::since(self.started)),
            HostRequest::WallClock => HostReply::Time(clock::wall()),
            HostRequest::CallTool { call, tool, arguments } => {
                done_or_refused(self.tools.call(call, tool, arguments))
            }
            HostRequest::CancelCall(call) => {
                self.tools.cancel(call);
                HostReply::Done
            }
            HostRequest::MountPoints => HostReply::MountPoints(self.mount_points.clone()),
            HostRequest::File(request) => HostReply::File(self.files.call(request)),
            HostRequest::NetCheck { host, port } => {
                done_or_refused(self.exchanges.check(host, port))
            }
            HostRequest::NetStart { call, request } => {
                done_or_refused(self.exchanges.start(call, &request))
            }
            HostRequest::NetSend { call, exchange, chunk } => {
                self.exchanges.send(call, exchange, chunk);
                HostReply::Done
            }
            HostRequest::NetRead { call, exchange, max } => {
                self.exchanges.read(call, exchange, max);
                HostReply::Done
            }
            HostRequest::NetClose(exchange) => {
                self.exchanges.close(exchange);
                HostReply::Done
            }
            HostRequest::Import { call, module } => {
                self.packages.import(call, module);
                HostReply::Done
            }
            HostRequest::VerifyModule(code) => done_or_refused(self.packages.verify(code)),
            // No library has such a path.
            HostRequest::Library(path) if path.len() > NAME_BYTES => HostReply::Done,
            HostRequest::Library(path) => match self.packages.library(path) {
                Ok(Some(code)) => HostReply::Bytes(code.to_vec()),
                Ok(None) => HostReply::Done,
                Err(error) => {
                    HostReply::Failed(format!("`{}` cannot be read: {error}", shown(path)))
                }
            },
            HostRequest::Submit { form, fields } => {
                done_or_refused(self.tools.submit(form, fields))
            }
        }
    }

    fn may_wait(&self, request: &HostRequest<'_>) -> bool {
        match request {
            HostRequest::ReadStdin(_) => true,
            HostRequest::Write(_, bytes) | HostRequest::Display(bytes) => {
                lock(&self.run).pipe.as_ref().is_some_and(|pipe| pipe.must_wait(bytes.len()))
            }
            _ => false,
        }
    }

    fn read_file(&self, file: u32, offset: u64, into: &mut [u8]) -> Result<u32, FileError> {
        if !self.gate.is_open() {
            return Err(FileError::Io);
        }
        self.files.read(file, offset, into)
    }
}

/// Returns a function that reports file events to the audit log.
fn file_events(audit: &AuditLog) -> Arc<dyn Fn(FileEvent) + Send + Sync> {
    let audit = audit.clone();
    Arc::new(move |event: FileEvent| {
        audit.tell(event.allowed, event.reason, || Access::File {
            operation: event.operation.to_owned(),
            path: event.path,
        });
    })
}

/// Returns a function that says whether a file event could be logged.
fn file_gate(audit: &AuditLog) -> Arc<dyn Fn() -> bool + Send + Sync> {
    let audit = audit.clone();
    Arc::new(move || audit.check().is_ok())
}

fn done_or_refused(result: Result<(), ToolError>) -> HostReply {
    match result {
        Ok(()) => HostReply::Done,
        Err(error) => HostReply::Refused(error.type_name().to_owned(), error.message().to_owned()),
    }
}
