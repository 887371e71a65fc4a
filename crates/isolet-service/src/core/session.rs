//! A client's session: its command queue, and the operations that work while code runs.

use std::collections::VecDeque;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use isolet::blocking::block_on;
use isolet::{
    InterruptHandle, RunEvent, RunStream, Session, SessionHandle, has_program_to_go_on, run_counter,
};
use tokio::sync::watch;

use super::answers::{Confinement, Entry, Package, StoppedAt, Variable};
use super::beginning::{Beginning, GoOnOptions};
use super::command::Command;
use super::lending::LentSession;
use super::output::Collector;
use super::reply::Answering;
use super::sandboxes::{Made, SandboxEntry};
use super::tools::ToolEntry;
use super::{Execution, Failure, Listener, Owner, Run, Service};
use isolet::internals::lock;

/// Why a session refuses a command.
pub(crate) enum Refused {
    /// Code is running.
    Busy(Box<Command>),
    /// Code is running, but [`SessionEntry::look`] can carry out this command.
    Look(Box<Command>),
}

pub struct SessionEntry {
    sandbox: Arc<SandboxEntry>,
    owner: Arc<dyn Owner>,
    queue: Mutex<Queue>,
    /// Notified when a run ends.
    ended: Condvar,
    /// Locked while a command is carried out.
    session: tokio::sync::Mutex<Option<Session>>,
    handles: Mutex<Option<Handles>>,
    /// The listener of the current or last run.
    listener: Mutex<Option<Arc<dyn Listener>>>,
    output: Arc<Collector>,
    /// Counts the runs in the session's journal.
    recorded_runs: Mutex<Option<watch::Receiver<u64>>>,
}

#[derive(Default)]
struct Queue {
    commands: VecDeque<Command>,
    /// Set while a thread carries out queued commands.
    is_draining: bool,
    /// Set while a command is being carried out.
    is_busy: bool,
    /// The current run.
    running: Option<Running>,
    /// Set once the session was killed.
    is_killed: bool,
    /// The number of threads that wait for the end of a run.
    waiting: usize,
    /// Why the session could not start.
    failure: Option<Failure>,
}

/// A run under way. The flag is set before the library is asked to interrupt the run, because the
/// run may not have started.
#[derive(Clone, Default)]
pub(crate) struct Running(Arc<AtomicBool>);

/// Operations that work from any thread.
#[derive(Clone)]
struct Handles {
    session: SessionHandle,
    interrupt: InterruptHandle,
    grace: Duration,
}

impl SessionEntry {
    pub(crate) fn new(sandbox: Arc<SandboxEntry>, owner: Arc<dyn Owner>) -> Self {
        Self {
            sandbox,
            owner,
            queue: Mutex::default(),
            ended: Condvar::new(),
            session: tokio::sync::Mutex::default(),
            handles: Mutex::default(),
            listener: Mutex::default(),
            output: Collector::new(),
            recorded_runs: Mutex::default(),
        }
    }

    /// Creates the entry of a copy. Its commands wait until this session has made the copy.
    pub(crate) fn copied(&self, owner: Arc<dyn Owner>) -> Arc<Self> {
        let copy = Self::new(Arc::clone(&self.sandbox), owner);
        lock(&copy.queue).is_draining = true;
        Arc::new(copy)
    }

    pub(crate) fn name(&self) -> String {
        self.owner.name()
    }

    pub(crate) fn owner(&self) -> &Arc<dyn Owner> {
        &self.owner
    }

    /// Returns the listener of the run, or the owner's listener outside of runs.
    pub(crate) fn listener(&self) -> Option<Arc<dyn Listener>> {
        lock(&self.listener).clone().or_else(|| self.owner.listener())
    }

    /// Returns the number of runs in the session's journal.
    pub(crate) fn recorded_runs(&self) -> u64 {
        lock(&self.recorded_runs).as_ref().map_or(0, |runs| *runs.borrow())
    }

    /// Waits until the session's journal has the run of this number, or the session has ended.
    pub(crate) async fn recorded_run(&self, number: u64) {
        let runs = lock(&self.recorded_runs).clone();
        if let Some(mut runs) = runs {
            // Fails if the session has ended.
            let _ = runs.wait_for(|runs| *runs >= number).await;
        }
    }

    pub(crate) fn output(&self) -> &Collector {
        &self.output
    }

    /// Queues a command. If it returns `true`, the caller must [`drain`](Self::drain) the queue.
    pub(crate) fn push(&self, command: Command) -> Result<bool, Refused> {
        let mut queue = lock(&self.queue);
        if queue.running.is_some() {
            match command {
                Command::Close { .. } => {}
                Command::Get { .. } | Command::Variables { .. } => {
                    return Err(Refused::Look(Box::new(command)));
                }
                _ => return Err(Refused::Busy(Box::new(command))),
            }
        }
        queue.commands.push_back(command);
        Ok(!mem::replace(&mut queue.is_draining, true))
    }

    /// Carries out all queued commands.
    pub(crate) async fn drain(self: Arc<Self>, service: Arc<Service>) {
        let mut session = self.session.lock().await;
        while let Some((running, command)) = self.begin_next() {
            let answering = self.carry_out(&service, &mut session, running, command).await;
            if let Some(session) = session.as_ref() {
                *lock(&self.recorded_runs) = run_counter(session);
            }
            // First, because the client may send its next command as soon as it has the answer.
            self.end_of_run();
            answering();
        }
    }

    fn end_of_run(&self) {
        let mut queue = lock(&self.queue);
        queue.is_busy = false;
        // Notifying is a system call even without waiters.
        if queue.running.take().is_some() && queue.waiting > 0 {
            self.ended.notify_all();
        }
    }

    /// Takes the next command. If there is none, marks the queue as not being drained.
    fn begin_next(&self) -> Option<(Running, Command)> {
        let mut queue = lock(&self.queue);
        let Some(command) = queue.commands.pop_front() else {
            queue.is_draining = false;
            return None;
        };
        queue.is_busy = true;
        let running = Running::default();
        if let Command::Run { .. } | Command::GoOn { .. } = command {
            queue.running = Some(running.clone());
        }
        Some((running, command))
    }

    /// Interrupts the current run and queued ones. Returns the current run.
    pub(crate) fn interrupt(&self) -> Option<Running> {
        // Locked until the end, so that the interrupt cannot hit a later run.
        let mut queue = lock(&self.queue);
        for command in mem::take(&mut queue.commands) {
            queue.commands.push_back(match command {
                Command::Run { reply, .. } => Command::Interrupted { reply },
                Command::GoOn { reply, .. } => Command::Interrupted { reply: reply.of(Some) },
                other => other,
            });
        }
        let running = queue.running.clone()?;
        running.0.store(true, Ordering::SeqCst);
        if let Some(handles) = lock(&self.handles).as_ref() {
            handles.interrupt.interrupt();
        }
        Some(running)
    }

    /// Returns `true` while code runs.
    pub(crate) fn is_running(&self) -> bool {
        lock(&self.queue).running.is_some()
    }

    /// Interrupts the current run, if there is one.
    pub fn interrupt_run(&self) {
        self.interrupt();
    }

    /// Waits until an interrupted run has ended. Kills the session if it does not end.
    pub(crate) fn end_run(&self, run: &Running) {
        let Some(handles) = lock(&self.handles).clone() else { return };
        let goes_on = |queue: &mut Queue| {
            queue.running.as_ref().is_some_and(|running| Arc::ptr_eq(&running.0, &run.0))
        };
        let mut queue = lock(&self.queue);
        queue.waiting += 1;
        let waited = self.ended.wait_timeout_while(queue, handles.grace, goes_on);
        let (mut queue, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        queue.waiting -= 1;
        drop(queue);
        if waited.timed_out() {
            self.kill();
        }
    }

    /// Kills the session if it is busy or has not started. Returns `true` if it did.
    pub(crate) fn kill_unless_idle(&self) -> bool {
        let is_idle = {
            let queue = lock(&self.queue);
            !queue.is_busy && queue.commands.is_empty()
        };
        let is_killed = !is_idle || lock(&self.handles).is_none();
        if is_killed {
            self.kill();
        }
        is_killed
    }

    /// Ends the session: closes it if it is idle, and kills it otherwise.
    pub async fn end(&self) {
        if self.kill_unless_idle() {
            return;
        }
        if let Some(mut session) = self.session.lock().await.take() {
            session.close().await;
        }
    }

    /// Kills the session.
    pub fn kill(&self) {
        lock(&self.queue).is_killed = true;
        if let Some(handles) = lock(&self.handles).as_ref() {
            handles.interrupt.kill();
        }
    }

    /// Reads variables while code runs.
    pub(crate) async fn look(&self, command: Command) {
        let Some(handles) = lock(&self.handles).clone() else {
            return command.refuse(&self.closed());
        };
        match command {
            Command::Get { name, reply } => {
                reply.send(handles.session.get(&name).await.map_err(Failure::from));
            }
            Command::Variables { reply } => {
                reply.send(listed(handles.session.variables().await));
            }
            other => other.refuse(&Failure::busy(&self.name())),
        }
    }

    async fn carry_out(
        self: &Arc<Self>,
        service: &Arc<Service>,
        session: &mut Option<Session>,
        running: Running,
        command: Command,
    ) -> Answering {
        let command = match command {
            Command::Open { beginning, reply } => {
                let opened = self.open(service, beginning).await;
                return reply.with(match opened {
                    Ok((opened, report)) => {
                        *session = Some(opened);
                        Ok(report)
                    }
                    Err(failure) => {
                        lock(&self.queue).failure = Some(failure.clone());
                        Err(failure)
                    }
                });
            }
            Command::Close { reply } => {
                if let Some(mut session) = session.take() {
                    session.close().await;
                }
                self.forget(service);
                return reply.with(Ok(()));
            }
            Command::Interrupted { reply } => return reply.with(Ok(Execution::interrupted())),
            Command::Lend { reply } => {
                let Some(session) = session.take() else { return reply.with(Err(self.closed())) };
                let (lent, ended) = LentSession::new(session);
                reply.send(Ok(lent));
                // Commands wait for the end of the loan, which drops the sender.
                let _ = ended.await;
                return Box::new(|| ());
            }
            Command::Fork { copy, reply } => {
                let copied = match session {
                    Some(session) => session.fork().await.map_err(Failure::from),
                    None => Err(self.closed()),
                };
                return reply.with(copy.begin_as_copy(service, copied).await);
            }
            command => command,
        };
        let Some(session) = session.as_mut() else { return command.refused(&self.closed()) };
        match command {
            Command::Reset { reply } => reply.with(self.reset(service, session).await),
            Command::Run { run, listener, reply } => {
                reply.with(self.run(service, session, running, run, listener).await)
            }
            Command::Record { journal, reply } => {
                reply.with(done(session.record(journal.journal()).await))
            }
            Command::EndRecording { reply } => {
                session.end_recording();
                reply.with(Ok(()))
            }
            Command::GoOn { options, listener, reply } => {
                reply.with(self.go_on(service, session, running, options, listener).await)
            }
            Command::BindLocals { reply } => {
                let stopped = done(session.bind_locals().await);
                reply.with(stopped.map(|at| at.map(StoppedAt::from)))
            }
            Command::Save { path, reply } => reply.with(done(session.save(path).await)),
            Command::Checkpoint { reply } => reply.with(done(session.checkpoint().await)),
            Command::Set { variables, reply } => {
                reply.with(done(session.set_many(variables).await))
            }
            Command::Get { name, reply } => reply.with(done(session.get(&name).await)),
            Command::Delete { name, reply } => reply.with(done(session.delete(&name).await)),
            Command::Variables { reply } => reply.with(listed(session.variables().await)),
            Command::Complete { text, reply } => reply.with(done(session.complete(text).await)),
            Command::Register { tools, reply } => {
                reply.with(register(service, session, tools).await)
            }
            Command::Submit { submit, reply } => {
                let (name, fields) = submit.function();
                reply.with(done(session.set_submit_as(name, fields).await))
            }
            Command::LoadPackages { requirements, reply } => {
                let loaded = done(session.load_packages(&requirements).await);
                reply.with(loaded.map(|all| all.into_iter().map(Package::from).collect()))
            }
            Command::PutFile { path, contents, reply } => {
                reply.with(done(session.files().put(&path, contents).await))
            }
            Command::GetFile { path, reply } => reply.with(done(session.files().get(&path).await)),
            Command::ListFiles { path, reply } => {
                let found = done(session.files().list(&path).await);
                reply.with(found.map(|all| all.into_iter().map(Entry::from).collect()))
            }
            Command::RemoveFile { path, reply } => {
                reply.with(done(session.files().remove(&path).await))
            }
            Command::Open { .. }
            | Command::Close { .. }
            | Command::Interrupted { .. }
            | Command::Lend { .. }
            | Command::Fork { .. } => command.refused(&self.closed()),
        }
    }

    async fn open(
        self: &Arc<Self>,
        service: &Service,
        beginning: Beginning,
    ) -> Result<(Session, Confinement), Failure> {
        let made = self.sandbox.wait()?;
        let sandbox = &made.sandbox;
        let (mut session, inputs, has_checkpoints) = match beginning {
            Beginning::Fresh { inputs, journal: None } => {
                (sandbox.session().await?, inputs, made.has_checkpoints)
            }
            Beginning::Fresh { inputs, journal: Some(journal) } => {
                (sandbox.record(journal.journal()).await?, inputs, false)
            }
            Beginning::Saved(path) => (sandbox.restore(path).await?, Vec::new(), false),
            // Their journals have the packages and variables.
            Beginning::Resumed(journal) => {
                return self.introduced(service, sandbox.resume(journal.journal()).await?, &made);
            }
            Beginning::LookedBack(replay) => {
                return self.introduced(service, sandbox.replay(replay.replay()?).await?, &made);
            }
        };
        self.introduce(service, &session, made.grace)?;
        if !made.packages.is_empty() {
            session.load_packages(&made.packages).await?;
        }
        if !inputs.is_empty() {
            session.set_many(inputs).await?;
            // The session begins with them, also after a first run that has ended its interpreter.
            if has_checkpoints {
                session.checkpoint().await?;
            }
        }
        let report = session.isolation().into();
        Ok((session, report))
    }

    fn introduced(
        self: &Arc<Self>,
        service: &Service,
        session: Session,
        made: &Made,
    ) -> Result<(Session, Confinement), Failure> {
        self.introduce(service, &session, made.grace)?;
        let report = session.isolation().into();
        Ok((session, report))
    }

    /// Waits for the copy that the source session makes, and carries out its commands.
    async fn begin_as_copy(
        self: &Arc<Self>,
        service: &Arc<Service>,
        copied: Result<Session, Failure>,
    ) -> Result<Confinement, Failure> {
        let begun = copied.and_then(|copied| {
            let made = self.sandbox.wait()?;
            self.introduce(service, &copied, made.grace)?;
            let report = Confinement::from(copied.isolation());
            Ok((copied, report))
        });
        let begun = match begun {
            Ok((copied, report)) => {
                *self.session.lock().await = Some(copied);
                Ok(report)
            }
            Err(failure) => Err(failure),
        };
        let mut queue = lock(&self.queue);
        queue.failure = begun.as_ref().err().cloned();
        queue.is_draining = !queue.commands.is_empty();
        if queue.is_draining {
            let (entry, service) = (Arc::clone(self), Arc::clone(service));
            std::thread::spawn(move || block_on(entry.drain(service)));
        }
        begun
    }

    async fn reset(
        self: &Arc<Self>,
        service: &Service,
        session: &mut Session,
    ) -> Result<Confinement, Failure> {
        let made = self.sandbox.wait()?;
        self.forget(service);
        lock(&self.queue).is_killed = false;
        session.reset().await?;
        self.introduce(service, session, made.grace)?;
        if !made.packages.is_empty() {
            session.load_packages(&made.packages).await?;
        }
        Ok(session.isolation().into())
    }

    /// Registers the session's interpreter for tools and other threads.
    fn introduce(
        self: &Arc<Self>,
        service: &Service,
        session: &Session,
        grace: Duration,
    ) -> Result<(), Failure> {
        let handles =
            Handles { session: session.handle(), interrupt: session.interrupt_handle(), grace };
        lock(&service.guests.0).insert(handles.session.id(), Arc::clone(self));
        *lock(&self.handles) = Some(handles);
        if lock(&self.queue).is_killed { Err(self.closed()) } else { Ok(()) }
    }

    fn forget(&self, service: &Service) {
        if let Some(handles) = lock(&self.handles).take() {
            lock(&service.guests.0).remove(&handles.session.id());
        }
    }

    async fn run(
        self: &Arc<Self>,
        service: &Service,
        session: &mut Session,
        Running(interrupted): Running,
        run: Run,
        listener: Arc<dyn Listener>,
    ) -> Result<Execution, Failure> {
        let (streams, has_value) = (run.options.stream, !run.options.program);
        let cell = run.cell()?.interrupt_flag(interrupted);
        *lock(&self.listener) = Some(Arc::clone(&listener));
        if !streams {
            return Ok(Execution::of(session.run(cell).await?, has_value));
        }
        let run = session.run_streaming(cell);
        Ok(Execution::of(self.streamed(service, &listener, run).await?, has_value))
    }

    async fn go_on(
        &self,
        service: &Service,
        session: &mut Session,
        Running(interrupted): Running,
        options: GoOnOptions,
        listener: Arc<dyn Listener>,
    ) -> Result<Option<Execution>, Failure> {
        if !session.has_run_to_go_on() {
            return Ok(None);
        }
        // The run can still be gone on with.
        if interrupted.load(Ordering::SeqCst) {
            return Ok(Some(Execution::interrupted()));
        }
        *lock(&self.listener) = Some(Arc::clone(&listener));
        let has_value = !has_program_to_go_on(session);
        let execution = if options.stream {
            let run = session.go_on_streaming();
            Some(self.streamed(service, &listener, run).await?)
        } else {
            session.go_on().await?
        };
        Ok(execution.map(|execution| Execution::of(execution, has_value)))
    }

    /// Passes on what a run writes and displays, and waits for its end.
    async fn streamed(
        &self,
        service: &Service,
        listener: &Arc<dyn Listener>,
        mut run: RunStream<'_>,
    ) -> Result<isolet::Execution, Failure> {
        self.output.begin(Arc::clone(listener));
        while let Some(event) = run.next().await {
            match event {
                RunEvent::Output(chunk) => {
                    self.output.push(chunk.stream, chunk.bytes, &service.flusher);
                }
                RunEvent::Display(display) => {
                    self.output.flush(false);
                    listener.display(display.into());
                }
                _ => {}
            }
        }
        let execution = run.finish().await;
        self.output.flush(true);
        Ok(execution?)
    }

    fn closed(&self) -> Failure {
        let name = self.name();
        match &lock(&self.queue).failure {
            Some(failure) => Failure::closed(format!(
                "session {name} could not start: {}; make a new one",
                failure.message
            )),
            None => Failure::closed(format!("session {name} is closed, make a new one")),
        }
    }
}

async fn register(
    service: &Arc<Service>,
    session: &mut Session,
    tools: Vec<ToolEntry>,
) -> Result<(), Failure> {
    let handler = |name: &str| service.tool_handler(name);
    // All tools are read before the first is registered.
    let tools = tools.into_iter().map(|tool| tool.tool(&handler));
    for tool in tools.collect::<Result<Vec<_>, _>>()? {
        session.register(tool).await?;
    }
    Ok(())
}

fn listed(found: Result<Vec<isolet::Variable>, isolet::Error>) -> Result<Vec<Variable>, Failure> {
    Ok(found?.into_iter().map(Variable::from).collect())
}

fn done<T>(result: Result<T, isolet::Error>) -> Result<T, Failure> {
    Ok(result?)
}
