//! A shell with its state, and the run that goes on in it.

use std::collections::{HashMap, HashSet};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use bashkit::{
    Bash, Error, ExecOptions, ExecResult, ExecutionLimits, LiveInput, MemoryLimits, OutputStream,
    Result, SessionLimits,
};
use serde::{Deserialize, Serialize};

use crate::calls::{Call, Desk, HostCommand, Others};
use crate::commands;
use crate::executor::{Executor, lock};
use crate::files::HostFiles;
use crate::{host, input};

/// What a session begins with.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    cwd: String,
    env: HashMap<String, String>,
    user: String,
    hostname: String,
    commands: Vec<String>,
    others: bool,
    depth: usize,
    stack: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            cwd: "/".into(),
            env: HashMap::new(),
            user: "user".into(),
            hostname: "localhost".into(),
            commands: Vec::new(),
            others: false,
            depth: 1000,
            stack: 768 << 10,
        }
    }
}

/// What is run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Request {
    script: String,
    name: Option<String>,
    args: Option<Vec<String>>,
    /// Whether the input comes while the run goes on.
    #[serde(default)]
    live: bool,
}

/// How a run ended, for the host.
#[derive(Serialize)]
pub(crate) struct Finished {
    status: i32,
    cancelled: bool,
    /// The live input that nothing has read.
    #[serde(skip)]
    pub(crate) unread: Vec<u8>,
}

/// What the host sees of the state.
#[derive(Serialize)]
pub(crate) struct State {
    cwd: String,
    status: i32,
    env: HashMap<String, String>,
}

/// What the host is to do next.
pub(crate) enum Step {
    Finished(Finished),
    Call(Call),
    Wait(Option<u64>),
    Input(Option<u64>),
    /// What a command reads; nothing at the end.
    Piece(Vec<u8>),
}

/// Whether a command may go on writing.
#[derive(Clone, Copy, PartialEq)]
#[repr(u32)]
pub(crate) enum Written {
    Yes = 0,
    /// Nobody reads its standard output.
    Broken = 1,
    /// The command was stopped.
    Stopped = 2,
}

type Run = Pin<Box<dyn Future<Output = (Box<Bash>, Result<ExecResult>)>>>;

/// A shell.
pub(crate) struct Session {
    id: u32,
    desk: Desk,
    cancelled: Arc<AtomicBool>,
    /// Names that are calls.
    commands: HashSet<String>,
    /// The live input of the run.
    input: Option<LiveInput>,
    /// The shell, while nothing runs in it.
    idle: Option<Box<Bash>>,
    run: Option<Run>,
    /// How the run ended while the host carried out a command, which was stopped.
    ended: Option<(Box<Bash>, Result<ExecResult>)>,
    executor: Executor,
}

/// bashkit's own limits are lifted: the embedder bounds memory and time.
fn limits(depth: usize) -> ExecutionLimits {
    let long = Duration::from_secs(1 << 30);
    let mut limits = ExecutionLimits::new()
        .max_work_units(u64::MAX)
        .max_aggregate_input_bytes(u64::MAX)
        .max_live_intermediate_bytes(u64::MAX)
        .max_commands(usize::MAX)
        .max_loop_iterations(usize::MAX)
        .max_total_loop_iterations(usize::MAX)
        .max_function_depth(depth)
        .timeout(long)
        .parser_timeout(long)
        .max_input_bytes(usize::MAX)
        .max_parser_operations(usize::MAX)
        .max_stdout_bytes(1 << 30)
        .max_stderr_bytes(1 << 30)
        .max_subst_depth(depth)
        .max_subshell_depth(depth)
        .max_word_split_fields(usize::MAX)
        .max_word_split_bytes(usize::MAX)
        .max_background_jobs(1 << 20);
    limits.max_file_descriptors = 1 << 20;
    limits
}

impl Session {
    pub(crate) fn new(id: u32, config: Config) -> Self {
        let desk = Desk::default();
        let mut builder = Bash::builder()
            .fs(Arc::new(HostFiles))
            .cwd(config.cwd)
            .username(config.user)
            .hostname(config.hostname)
            .limits(limits(config.depth))
            .session_limits(SessionLimits::unlimited())
            .memory_limits(MemoryLimits::unlimited());
        for (name, value) in config.env {
            builder = builder.env(name, value);
        }
        builder = commands::add(builder);
        for name in &config.commands {
            let command = HostCommand { name: name.clone(), desk: desk.clone() };
            builder = builder.builtin(name.clone(), Box::new(command));
        }
        if config.others {
            builder = builder.command_resolver(Arc::new(Others(desk.clone())));
        }
        let bash = Box::new(builder.build());
        let cancelled = bash.cancellation_token();
        *lock(&desk.cancelled) = Some(Arc::clone(&cancelled));
        Self {
            id,
            desk,
            cancelled,
            commands: config.commands.into_iter().collect(),
            input: None,
            idle: Some(bash),
            run: None,
            ended: None,
            executor: Executor::new(id, config.stack),
        }
    }

    /// The byte that cancels the run when the host sets it.
    pub(crate) fn flag(&self) -> *const u8 {
        Arc::as_ptr(&self.cancelled).cast()
    }

    /// Begins a run; `None` if one goes on.
    pub(crate) fn start(&mut self, request: Request, stdin: Option<Vec<u8>>) -> Option<Step> {
        let mut bash = self.idle.take()?;
        self.cancelled.store(false, Ordering::Relaxed);
        let id = self.id;
        let mut options = ExecOptions::new().streaming(Box::new(move |stdout, stderr| {
            host::output(id, 1, stdout.as_bytes());
            host::output(id, 2, stderr.as_bytes());
        }));
        if let Some(name) = request.name {
            options = options.arg0(name);
        }
        if let Some(args) = request.args {
            options = options.positional(args);
        }
        self.input = request.live.then(|| LiveInput::new(input::readers(self.commands.clone())));
        if let Some(input) = &self.input {
            input.push(&stdin.unwrap_or_default());
            options = options.live_stdin(input.clone());
        } else if let Some(stdin) = stdin {
            options = options.stdin(stdin);
        }
        self.run = Some(Box::pin(async move {
            let result = bash.exec_with_options(&request.script, options).await;
            (bash, result)
        }));
        self.step()
    }

    /// More of the live input; nothing is its end.
    pub(crate) fn input(&mut self, bytes: &[u8]) {
        match &self.input {
            Some(input) if bytes.is_empty() => input.close(),
            Some(input) => input.push(bytes),
            None => {}
        }
    }

    /// The host's answer to a call.
    pub(crate) fn answer(&mut self, call: u32, status: i32) {
        lock(&self.desk.calls).answer(call, status);
    }

    /// Writes to a stream of a command that the host carries out, and lets the shell deliver it.
    pub(crate) fn write(&mut self, call: u32, stream: OutputStream, bytes: &[u8]) -> Written {
        if !lock(&self.desk.calls).write(call, stream, bytes) {
            return Written::Stopped;
        }
        self.poll();
        match lock(&self.desk.calls).output(call) {
            None => Written::Stopped,
            Some(output) if output.is_broken() => Written::Broken,
            Some(_) => Written::Yes,
        }
    }

    /// Goes on until a command that the host carries out has more of the pipe that it reads, or
    /// until there is something else for the host.
    pub(crate) fn pull(&mut self, call: u32) -> Step {
        lock(&self.desk.calls).ask(call);
        self.poll();
        if let Some(bytes) = lock(&self.desk.calls).read(call) {
            return Step::Piece(bytes);
        }
        match self.next() {
            // Who writes to the pipe waits for a command that waits for this one.
            Step::Wait(None) => Step::Piece(Vec::new()),
            step => step,
        }
    }

    /// When a future of the run wants to go on, in microseconds since 1970.
    pub(crate) fn next_wake(&self) -> Option<u64> {
        self.executor.next_wake()
    }

    /// Goes on until there is something for the host; `None` if nothing runs.
    pub(crate) fn step(&mut self) -> Option<Step> {
        self.poll();
        if let Some((bash, result)) = self.ended.take() {
            self.idle = Some(bash);
            *lock(&self.desk.calls) = Default::default();
            return Some(Step::Finished(self.finished(result)));
        }
        self.run.is_some().then(|| self.next())
    }

    fn poll(&mut self) {
        let Some(run) = &mut self.run else { return };
        let cancelled = self.desk.is_cancelled();
        if cancelled {
            lock(&self.desk.calls).wake();
        }
        if let Poll::Ready(ended) = self.executor.run(run.as_mut(), cancelled) {
            self.run = None;
            self.ended = Some(ended);
        }
    }

    /// What the host is to do for a run that goes on.
    fn next(&self) -> Step {
        let wake = self.executor.next_wake();
        let is_awaited = self.input.as_ref().is_some_and(LiveInput::is_awaited);
        match lock(&self.desk.calls).next() {
            Some(call) => Step::Call(call),
            None if is_awaited && !self.executor.is_preempted => Step::Input(wake),
            None => Step::Wait(wake),
        }
    }

    /// What was printed has been written already.
    fn finished(&mut self, result: Result<ExecResult>) -> Finished {
        let cancelled = self.desk.is_cancelled();
        let status = match result {
            Ok(result) => result.exit_code,
            Err(_) if cancelled => 130,
            Err(Error::Parse { message, line, .. }) => {
                host::output(self.id, 2, format!("bash: line {line}: {message}\n").as_bytes());
                2
            }
            Err(error) => {
                host::output(self.id, 2, format!("bash: {error}\n").as_bytes());
                1
            }
        };
        let unread = self.input.take().map(|input| input.take()).unwrap_or_default();
        Finished { status, cancelled, unread }
    }

    /// The state between two runs.
    pub(crate) fn state(&self) -> Option<State> {
        let view = self.idle.as_ref()?.shell_state_view();
        Some(State {
            cwd: view.cwd.to_string_lossy().into_owned(),
            status: view.last_exit_code,
            env: view.env,
        })
    }
}
