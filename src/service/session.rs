//! A session of a client: its commands, in their order, and what works while code runs.

use std::collections::{HashMap, VecDeque};
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use isolet::blocking::block_on;
use isolet::{Cell, InterruptHandle, RunEvent, Session, SessionHandle, Stdin, Syntax, Value};
use serde::Deserialize;

use super::answers::{packages, report, variables};
use super::output::Collector;
use super::sandboxes::SandboxEntry;
use super::{Failure, Service, execution, lock, tools};

/// What a session is asked to do.
pub(crate) enum Command {
    Open {
        inputs: Vec<(String, Value)>,
        /// The file that it was saved to, if it goes on.
        from: Option<String>,
    },
    Close,
    /// A run that was interrupted before its turn.
    Interrupted,
    Reset,
    /// Copy the session. Its copy gets this number.
    Fork {
        copy: i64,
    },
    /// Save the session to this file.
    Save {
        path: String,
    },
    Run {
        code: String,
        inputs: Vec<(String, Value)>,
        options: Value,
    },
    Set {
        variables: Vec<(String, Value)>,
    },
    Get {
        name: String,
    },
    Delete {
        name: String,
    },
    Variables,
    Complete {
        text: String,
    },
    Register {
        tools: Value,
    },
    Submit {
        submit: Value,
    },
    LoadPackages {
        requirements: Vec<String>,
    },
    PutFile {
        path: String,
        contents: Vec<u8>,
    },
    GetFile {
        path: String,
    },
    ListFiles {
        path: String,
    },
    RemoveFile {
        path: String,
    },
}

/// Why a session does not take a command.
pub(super) enum Refused {
    /// Code runs.
    Busy,
    /// Code runs, and the command can be carried out by [`SessionEntry::look`].
    Look(Command),
}

/// The options of a run.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
struct RunOptions {
    timeout: Option<f64>,
    stream: bool,
    stdin: Option<Input>,
    argv: Option<Vec<String>>,
    name: Option<String>,
    program: bool,
    keep_variables: bool,
    allow_return: bool,
    table_data: bool,
    syntax: Syntax,
}

/// Standard input, as text or bytes.
#[derive(Deserialize)]
#[serde(untagged)]
enum Input {
    Text(String),
    Bytes(serde_bytes::ByteBuf),
}

pub(super) struct SessionEntry {
    number: i64,
    sandbox: Arc<SandboxEntry>,
    queue: Mutex<Queue>,
    /// Notified when a run has ended.
    ended: Condvar,
    /// Locked while a command is carried out.
    session: tokio::sync::Mutex<Option<Session>>,
    handles: Mutex<Option<Handles>>,
    /// The number of the request whose code runs.
    run: AtomicI64,
    output: Arc<Collector>,
    /// The copies that it was asked for and that do not exist yet.
    copies: Mutex<HashMap<i64, Arc<Self>>>,
}

#[derive(Default)]
struct Queue {
    commands: VecDeque<(i64, Command)>,
    /// Set while a thread carries out commands.
    is_draining: bool,
    /// Set while one of them is carried out.
    is_busy: bool,
    /// The code that this thread runs.
    running: Option<Running>,
    /// Set when the session was ended from outside.
    is_killed: bool,
    /// How many wait for the end of a run.
    waiting: usize,
    /// Why the session could not start.
    failure: Option<Failure>,
}

/// A run under way.
#[derive(Clone)]
struct Running {
    /// The number of its request.
    request: i64,
    /// Set before the library is told to interrupt it, in case that it has not begun the run yet.
    interrupted: Arc<AtomicBool>,
}

/// What works from any thread.
#[derive(Clone)]
struct Handles {
    session: SessionHandle,
    interrupt: InterruptHandle,
    grace: Duration,
}

impl SessionEntry {
    pub(super) fn new(number: i64, sandbox: Arc<SandboxEntry>) -> Self {
        Self {
            number,
            sandbox,
            queue: Mutex::default(),
            ended: Condvar::new(),
            session: tokio::sync::Mutex::default(),
            handles: Mutex::default(),
            run: AtomicI64::new(0),
            output: Collector::new(),
            copies: Mutex::default(),
        }
    }

    /// Makes the entry of a copy. Its commands wait until this session has made it.
    pub(super) fn expect_copy(&self, number: i64) -> Arc<Self> {
        let copy = Arc::new(Self::new(number, Arc::clone(&self.sandbox)));
        lock(&copy.queue).is_draining = true;
        lock(&self.copies).insert(number, Arc::clone(&copy));
        copy
    }

    /// Gives up a copy that was expected.
    pub(super) fn expect_no_copy(&self, number: i64) {
        lock(&self.copies).remove(&number);
    }

    pub(super) fn number(&self) -> i64 {
        self.number
    }

    /// Returns the number of the request whose code runs.
    pub(super) fn current_run(&self) -> i64 {
        self.run.load(Ordering::Relaxed)
    }

    pub(super) fn output(&self) -> &Collector {
        &self.output
    }

    /// Adds a command. Returns `true` if the caller is to [`drain`](Self::drain) the commands.
    pub(super) fn push(&self, request: i64, command: Command) -> Result<bool, Refused> {
        let mut queue = lock(&self.queue);
        if queue.running.is_some() {
            match command {
                Command::Close => {}
                Command::Get { .. } | Command::Variables => return Err(Refused::Look(command)),
                _ => return Err(Refused::Busy),
            }
        }
        queue.commands.push_back((request, command));
        Ok(!mem::replace(&mut queue.is_draining, true))
    }

    /// Carries out all commands.
    pub(super) async fn drain(self: Arc<Self>, service: Arc<Service>) {
        let mut session = self.session.lock().await;
        while let Some((running, command)) = self.begin_next() {
            let request = running.request;
            let result = self.carry_out(&service, &mut session, running, command).await;
            // Before the client knows, because it may send the next command at once.
            self.end_of_run();
            service.client.reply(request, result);
        }
    }

    fn end_of_run(&self) {
        let mut queue = lock(&self.queue);
        queue.is_busy = false;
        // Notifying is a system call, also if nobody waits.
        if queue.running.take().is_some() && queue.waiting > 0 {
            self.ended.notify_all();
        }
    }

    /// Takes the next command. Without one, nobody carries commands out any more.
    fn begin_next(&self) -> Option<(Running, Command)> {
        let mut queue = lock(&self.queue);
        let Some((request, command)) = queue.commands.pop_front() else {
            queue.is_draining = false;
            return None;
        };
        queue.is_busy = true;
        let running = Running { request, interrupted: Arc::default() };
        if let Command::Run { .. } = command {
            queue.running = Some(running.clone());
        }
        Some((running, command))
    }

    /// Interrupts the run, and those that wait for their turn. Returns the request of the run under
    /// way.
    pub(super) fn interrupt(&self) -> Option<i64> {
        // Locked until the end, so that the run cannot end and another one be hit.
        let mut queue = lock(&self.queue);
        for (_, command) in &mut queue.commands {
            if matches!(command, Command::Run { .. }) {
                *command = Command::Interrupted;
            }
        }
        let running = queue.running.as_ref()?;
        running.interrupted.store(true, Ordering::SeqCst);
        if let Some(handles) = lock(&self.handles).as_ref() {
            handles.interrupt.interrupt();
        }
        Some(running.request)
    }

    /// Waits until the run of a request that was interrupted has ended, and ends the session if it
    /// goes on.
    pub(super) fn end_run(&self, request: i64) {
        let Some(handles) = lock(&self.handles).clone() else { return };
        let goes_on = |queue: &mut Queue| {
            queue.running.as_ref().is_some_and(|running| running.request == request)
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

    /// Ends the session at once if it does something, or has not begun. Returns whether it did.
    pub(super) fn kill_unless_idle(&self) -> bool {
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

    /// Ends the session, in good order if it is idle.
    pub(super) async fn end(&self) {
        if self.kill_unless_idle() {
            return;
        }
        if let Some(mut session) = self.session.lock().await.take() {
            session.close().await;
        }
    }

    /// Ends the session and its run at once.
    pub(super) fn kill(&self) {
        lock(&self.queue).is_killed = true;
        if let Some(handles) = lock(&self.handles).as_ref() {
            handles.interrupt.kill();
        }
    }

    /// Reads variables while code runs.
    pub(super) async fn look(&self, command: Command) -> Result<Value, Failure> {
        let handles = lock(&self.handles).clone().ok_or_else(|| self.closed())?;
        match command {
            Command::Get { name } => Ok(optional(handles.session.get(&name).await?)),
            _ => Ok(variables(&handles.session.variables().await?)),
        }
    }

    async fn carry_out(
        self: &Arc<Self>,
        service: &Arc<Service>,
        session: &mut Option<Session>,
        running: Running,
        command: Command,
    ) -> Result<Value, Failure> {
        if let Command::Open { inputs, from } = command {
            let opened = self.open(service, inputs, from).await;
            return match opened {
                Ok((opened, report)) => {
                    *session = Some(opened);
                    Ok(report)
                }
                Err(failure) => {
                    lock(&self.queue).failure = Some(failure.clone());
                    Err(failure)
                }
            };
        }
        if let Command::Close = command {
            if let Some(mut session) = session.take() {
                session.close().await;
            }
            self.forget(service);
            return Ok(Value::None);
        }
        if let Command::Interrupted = command {
            return Ok(execution::interrupted());
        }
        if let Command::Fork { copy } = command {
            let copied = match session {
                Some(session) => session.fork().await.map_err(Failure::from),
                None => Err(self.closed()),
            };
            let Some(copy) = lock(&self.copies).remove(&copy) else { return Err(self.closed()) };
            return copy.begin_as_copy(service, copied).await;
        }
        let session = session.as_mut().ok_or_else(|| self.closed())?;
        let done = match command {
            Command::Reset => return self.reset(service, session).await,
            Command::Run { code, inputs, options } => {
                return self.run(service, session, running, code, inputs, options).await;
            }
            Command::Save { path } => session.save(path).await.map(|()| Value::None)?,
            Command::Set { variables } => {
                session.set_many(variables).await.map(|()| Value::None)?
            }
            Command::Get { name } => optional(session.get(&name).await?),
            Command::Delete { name } => session.delete(&name).await?.into(),
            Command::Variables => variables(&session.variables().await?),
            Command::Complete { text } => session.complete(text).await?.into(),
            Command::Register { tools } => {
                for tool in tools::read(tools, &|name| service.tool_handler(name))? {
                    session.register(tool).await?;
                }
                Value::None
            }
            Command::Submit { submit } => {
                let (name, fields) = tools::read_submit(submit)?;
                session.set_submit_as(name, fields).await?;
                Value::None
            }
            Command::LoadPackages { requirements } => {
                packages(&session.load_packages(&requirements).await?)
            }
            Command::PutFile { path, contents } => {
                session.files().put(&path, contents).await?;
                Value::None
            }
            Command::GetFile { path } => {
                session.files().get(&path).await?.map_or(Value::None, Value::Bytes)
            }
            Command::ListFiles { path } => {
                let entry = |entry: isolet::FileEntry| {
                    Value::dict([
                        ("name", entry.name.into()),
                        ("is_dir", entry.is_directory.into()),
                        ("size", execution::int(entry.size)),
                    ])
                };
                Value::List(session.files().list(&path).await?.into_iter().map(entry).collect())
            }
            Command::RemoveFile { path } => session.files().remove(&path).await?.into(),
            Command::Open { .. } | Command::Close | Command::Interrupted | Command::Fork { .. } => {
                Value::None
            }
        };
        Ok(done)
    }

    async fn open(
        self: &Arc<Self>,
        service: &Service,
        inputs: Vec<(String, Value)>,
        from: Option<String>,
    ) -> Result<(Session, Value), Failure> {
        let made = self.sandbox.wait()?;
        let mut session = match from {
            Some(path) => made.sandbox.restore(path).await?,
            None => made.sandbox.session().await?,
        };
        self.introduce(service, &session, made.grace)?;
        if !made.packages.is_empty() {
            session.load_packages(&made.packages).await?;
        }
        if !inputs.is_empty() {
            session.set_many(inputs).await?;
        }
        let report = report(session.isolation());
        Ok((session, report))
    }

    /// Begins as the copy of another session, if there is one, and has its commands carried out.
    async fn begin_as_copy(
        self: &Arc<Self>,
        service: &Arc<Service>,
        copied: Result<Session, Failure>,
    ) -> Result<Value, Failure> {
        let begun = copied.and_then(|copied| {
            let made = self.sandbox.wait()?;
            self.introduce(service, &copied, made.grace)?;
            let report = report(copied.isolation());
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
    ) -> Result<Value, Failure> {
        let made = self.sandbox.wait()?;
        self.forget(service);
        lock(&self.queue).is_killed = false;
        session.reset().await?;
        self.introduce(service, session, made.grace)?;
        if !made.packages.is_empty() {
            session.load_packages(&made.packages).await?;
        }
        Ok(report(session.isolation()))
    }

    /// Makes the interpreter of the session known to tools and to other threads.
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
        running: Running,
        code: String,
        inputs: Vec<(String, Value)>,
        options: Value,
    ) -> Result<Value, Failure> {
        let options =
            if options.is_none() { RunOptions::default() } else { read_options(options)? };
        let Running { request, interrupted } = running;
        let mut cell = Cell::new(code).syntax(options.syntax);
        cell = cell.inputs(inputs).interrupt_flag(interrupted);
        if let Some(argv) = options.argv.or_else(|| options.program.then(Vec::new)) {
            let program = options.name.clone().unwrap_or_default();
            cell = cell.argv(std::iter::once(program).chain(argv));
        }
        if let Some(name) = options.name {
            cell = cell.name(name);
        }
        if options.program {
            cell = cell.program();
        }
        if options.keep_variables {
            cell = cell.keep_variables();
        }
        if options.allow_return {
            cell = cell.allow_return();
        }
        if options.table_data {
            cell = cell.table_data();
        }
        if let Some(seconds) = options.timeout {
            cell = cell.timeout(execution::duration("timeout", seconds)?);
        }
        match options.stdin {
            Some(Input::Text(text)) => cell = cell.stdin(Stdin::from_bytes(text)),
            Some(Input::Bytes(bytes)) => cell = cell.stdin(Stdin::from_bytes(bytes.into_vec())),
            None => {}
        }
        self.run.store(request, Ordering::Relaxed);
        if !options.stream {
            return Ok(execution::to_value(session.run(cell).await?, !options.program));
        }
        self.output.begin(request);
        let mut run = session.run_streaming(cell);
        while let Some(event) = run.next().await {
            match event {
                RunEvent::Output(chunk) => {
                    self.output.push(chunk.stream, chunk.bytes, &service.flusher);
                }
                RunEvent::Display(display) => {
                    self.output.flush(&*service.client, false);
                    service.client.display(request, &display);
                }
                _ => {}
            }
        }
        let execution = run.finish().await;
        self.output.flush(&*service.client, true);
        Ok(execution::to_value(execution?, !options.program))
    }

    fn closed(&self) -> Failure {
        let number = self.number;
        match &lock(&self.queue).failure {
            Some(failure) => Failure::closed(format!(
                "session {number} could not start: {}; make a new one",
                failure.message
            )),
            None => Failure::closed(format!("session {number} is closed, make a new one")),
        }
    }
}

fn read_options(options: Value) -> Result<RunOptions, Failure> {
    isolet::from_value(options)
        .map_err(|error| Failure::config(format!("the options of a run are invalid: {error}")))
}

fn optional(value: Option<Value>) -> Value {
    Value::List(value.into_iter().collect())
}
