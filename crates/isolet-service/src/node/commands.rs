//! Commands of the shell that clients start in a session, and hear of while they run: their output,
//! their input and their end.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read};
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use isolet::internals::lock;
use isolet::{Stdin, Stream, Syntax, ToolError, Value};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::events::Event;
use super::streamed::StreamItem;
use super::{Node, Refusal, SessionLease};
use crate::core::{Execution, Run, RunOptions};

/// The maximum number of commands of a session that run or wait for their turn.
const MAX_COMMANDS: usize = 16;

/// The maximum length of input that a command has not read yet, in bytes.
const MAX_INPUT: usize = 1 << 20;

/// The number of events that wait for a listener. Then the command waits.
const WAITING_EVENTS: usize = 64;

/// The maximum number of listeners of a command.
const MAX_LISTENERS: usize = 16;

/// The time for which the end of a command waits for listeners that take nothing.
const LAST_WORDS: Duration = Duration::from_mins(1);

/// A command to run: a script with a shell of its own.
#[derive(Clone, Debug, Default)]
pub struct CommandLine {
    pub script: String,
    /// `$0`, `$1` and so on.
    pub argv: Vec<String>,
    pub environ: Vec<(String, String)>,
    pub directory: Option<String>,
    /// Set if input is sent to it. Otherwise it has none.
    pub has_input: bool,
    /// The client's name for it.
    pub tag: Option<String>,
    /// The time after which it is ended, from its start on, also while it waits for its turn.
    pub timeout: Option<Duration>,
}

/// What a listener is told.
#[derive(Clone, Debug)]
pub enum CommandEvent {
    Output(Stream, String),
    /// The last one.
    End(CommandEnd),
}

/// How a command ended.
#[derive(Clone, Debug)]
pub enum CommandEnd {
    /// The script ended with this status.
    Exited(i32),
    /// A client has ended it.
    Killed,
    /// The session has ended, and the command with it.
    SessionEnded,
    /// The host has ended it, for this reason.
    Terminated(String),
    /// It did not begin.
    Refused(String),
}

/// A command that runs, or waits for its turn.
#[derive(Debug)]
pub struct RunningCommand {
    pub number: u32,
    pub line: CommandLine,
    input: Input,
    listeners: Mutex<Vec<mpsc::Sender<CommandEvent>>>,
    killed: CancellationToken,
}

impl RunningCommand {
    /// Returns what is told from here on; refused if too many listen.
    pub fn listen(&self) -> Result<mpsc::Receiver<CommandEvent>, Refusal> {
        let (sender, receiver) = mpsc::channel(WAITING_EVENTS);
        let mut listeners = lock(&self.listeners);
        listeners.retain(|listener| !listener.is_closed());
        if listeners.len() >= MAX_LISTENERS {
            return Err(Refusal::Quota(format!("listeners of a command: limit {MAX_LISTENERS}")));
        }
        listeners.push(sender);
        Ok(receiver)
    }

    /// Gives the command more input. Returns `false` if it has no room for it, or takes none.
    pub fn write(&self, data: &[u8]) -> bool {
        self.line.has_input && self.input.write(data)
    }

    /// Ends the input.
    pub fn close_input(&self) {
        self.input.close();
    }

    /// Ends the command.
    pub fn kill(&self) {
        self.killed.cancel();
    }

    /// Tells all listeners, and waits for one that has not taken what it was told before.
    async fn tell(&self, event: CommandEvent) {
        let listeners = lock(&self.listeners).clone();
        for listener in &listeners {
            // A listener that is gone is removed below.
            let _ = listener.send(event.clone()).await;
        }
        lock(&self.listeners).retain(|listener| !listener.is_closed());
    }
}

/// The commands of a session.
#[derive(Debug, Default)]
pub struct Commands {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    last: u32,
    running: BTreeMap<u32, Arc<RunningCommand>>,
}

impl Commands {
    /// Returns the commands that run or wait, the oldest first.
    pub fn all(&self) -> Vec<Arc<RunningCommand>> {
        lock(&self.state).running.values().cloned().collect()
    }

    /// Returns a command by its number.
    pub fn get(&self, number: u32) -> Option<Arc<RunningCommand>> {
        lock(&self.state).running.get(&number).cloned()
    }

    /// Returns a command by the client's name for it.
    pub fn tagged(&self, tag: &str) -> Option<Arc<RunningCommand>> {
        let state = lock(&self.state);
        state.running.values().find(|command| command.line.tag.as_deref() == Some(tag)).cloned()
    }

    fn add(&self, line: CommandLine) -> Result<Arc<RunningCommand>, Refusal> {
        let mut state = lock(&self.state);
        if state.running.len() >= MAX_COMMANDS {
            return Err(Refusal::Quota(format!("commands of a session: limit {MAX_COMMANDS}")));
        }
        state.last = state.last.wrapping_add(1).max(1);
        let command = Arc::new(RunningCommand {
            number: state.last,
            line,
            input: Input::default(),
            listeners: Mutex::default(),
            killed: CancellationToken::new(),
        });
        state.running.insert(command.number, Arc::clone(&command));
        Ok(command)
    }

    fn remove(&self, number: u32) {
        lock(&self.state).running.remove(&number);
    }
}

impl Node {
    /// Starts a command, which goes on until its end even if nobody listens. It begins when no
    /// other run of the session is under way. Both leases are of the session.
    pub fn start_command(
        self: &Arc<Self>,
        [session, same]: [SessionLease; 2],
        line: CommandLine,
    ) -> Result<(Arc<RunningCommand>, mpsc::Receiver<CommandEvent>), Refusal> {
        let command = session.session().commands.add(line)?;
        let (events, node) = (command.listen()?, Arc::clone(self));
        let running = Arc::clone(&command);
        tokio::spawn(async move {
            let ended = session.session().ended().clone();
            let end = tokio::select! {
                biased;
                () = ended.cancelled() => CommandEnd::SessionEnded,
                () = running.killed.cancelled() => CommandEnd::Killed,
                seconds = over(running.line.timeout) => CommandEnd::Terminated(format!(
                    "the command has taken longer than {seconds} s"
                )),
                end = node.follow(&session, same, &running) => end,
            };
            running.input.close();
            session.session().commands.remove(running.number);
            drop(session);
            let told = running.tell(CommandEvent::End(end));
            // A listener that takes nothing for so long is not told.
            let _ = tokio::time::timeout(LAST_WORDS, told).await;
        });
        Ok((command, events))
    }

    /// Runs a command, and tells its listeners what it prints.
    async fn follow(
        self: &Arc<Self>,
        session: &SessionLease,
        same: SessionLease,
        command: &RunningCommand,
    ) -> CommandEnd {
        let turn = match self.hold(session).await {
            Ok(turn) => turn,
            Err(refusal) => return CommandEnd::Refused(refused(refusal)),
        };
        let streamed = match self.stream_held(same, turn, run_of(command)).await {
            Ok(streamed) => streamed,
            Err(refusal) => return CommandEnd::Refused(refused(refusal)),
        };
        let mut items = pin!(streamed.items());
        while let Some(item) = items.next().await {
            match item {
                StreamItem::Event(Event::Output(stream, text)) => {
                    command.tell(CommandEvent::Output(stream, text)).await;
                }
                StreamItem::Event(Event::Call { call, tool, .. }) => {
                    let text = format!("nobody answers `{tool}` for a command");
                    self.answer(session, call, Err(ToolError::new("RuntimeError", text)));
                }
                StreamItem::Event(Event::Display(_) | Event::Uncall(_)) => {}
                StreamItem::End(Ok(execution)) => return end_of(&execution),
                StreamItem::End(Err(refusal)) => return CommandEnd::Refused(refused(refusal)),
            }
        }
        CommandEnd::SessionEnded
    }
}

/// Waits until a command's time is over, and returns it in seconds.
async fn over(timeout: Option<Duration>) -> f64 {
    let Some(timeout) = timeout else { return std::future::pending().await };
    tokio::time::sleep(timeout).await;
    timeout.as_secs_f64()
}

fn run_of(command: &RunningCommand) -> Run {
    let line = command.line.clone();
    let mut argv = line.argv.into_iter();
    let options = RunOptions {
        stream: true,
        syntax: Syntax::Shell,
        program: true,
        name: argv.next(),
        argv: Some(argv.collect()),
        working_directory: line.directory,
        ..RunOptions::default()
    };
    let inputs = line.environ.into_iter().map(|(name, value)| (name, Value::from(value)));
    let input = line.has_input.then(|| Stdin::from_reader(command.input.clone()));
    Run { code: line.script, inputs: inputs.collect(), options, input }
}

/// Says why a command did not begin.
fn refused(refusal: Refusal) -> String {
    match refusal {
        Refusal::Waited(_, patience) => {
            let seconds = patience.as_secs_f64();
            format!("another command or cell of the sandbox has run for {seconds} s")
        }
        Refusal::Gone(reason) | Refusal::Unreadable(reason) | Refusal::Quota(reason) => reason,
        Refusal::Failure(failure) => failure.message,
        _ => "the sandbox cannot run it now".to_owned(),
    }
}

fn end_of(execution: &Execution) -> CommandEnd {
    match (&execution.termination, execution.exit_code) {
        (Some(termination), _) => CommandEnd::Terminated(termination.message.clone()),
        (None, Some(status)) => CommandEnd::Exited(status),
        (None, None) => {
            let exception = execution.exception.as_ref().map(|exception| exception.message.clone());
            CommandEnd::Terminated(exception.unwrap_or_default())
        }
    }
}

/// The input of a command: what was sent and is not read yet.
#[derive(Clone, Debug, Default)]
struct Input(Arc<(Mutex<Sent>, Condvar)>);

#[derive(Debug, Default)]
struct Sent {
    bytes: VecDeque<u8>,
    is_closed: bool,
}

impl Input {
    fn write(&self, data: &[u8]) -> bool {
        let (sent, changed) = &*self.0;
        let mut sent = lock(sent);
        if sent.is_closed || sent.bytes.len() + data.len() > MAX_INPUT {
            return false;
        }
        sent.bytes.extend(data);
        changed.notify_all();
        true
    }

    fn close(&self) {
        let (sent, changed) = &*self.0;
        lock(sent).is_closed = true;
        changed.notify_all();
    }
}

impl Read for Input {
    /// Waits for input, or for its end, which comes with that of the command at the latest.
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let (sent, changed) = &*self.0;
        let is_waiting = |sent: &mut Sent| sent.bytes.is_empty() && !sent.is_closed;
        let waited = changed.wait_while(lock(sent), is_waiting);
        waited.unwrap_or_else(PoisonError::into_inner).bytes.read(into)
    }
}
