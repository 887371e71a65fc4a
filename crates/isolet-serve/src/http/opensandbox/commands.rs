//! Commands of a sandbox's shell. Those in the background leave what they print, and their status.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use futures_util::{StreamExt, stream};
use isolet::Stream;
use isolet::internals::lock;
use serde::Deserialize;
use serde_json::{Value as AnyJson, json};
use tokio::sync::mpsc::Receiver;

use super::code::complete;
use super::{Failed, OpenSandboxBody, Sandbox, done, event, of_sandbox, streamed};
use crate::http::body::DialectJson;
use crate::http::problem::Problem;
use isolet_service::node::{CommandEnd, CommandEvent, CommandLine, Node, RunningCommand};

/// The maximum number of background commands of a sandbox whose output is kept, and of its bytes.
const MAX_KEPT: usize = 16;
const MAX_OUTPUT: usize = 1 << 20;

/// The status of a command that was ended.
const ENDED: i32 = 137;

/// What the code interpreter's client runs to learn whether Jupyter serves in the sandbox. It need
/// not: the sandbox itself runs code.
const PROBE: &str = "bash -c 'exec 3<>/dev/tcp/127.0.0.1/${JUPYTER_PORT:-44771}' \
                     && exit 0 || exit 1";

type Served = State<Arc<Node>>;

pub(super) fn routes() -> Router<Arc<Node>> {
    Router::new()
        .route(&of_sandbox("/command"), post(run).delete(interrupt))
        .route(&of_sandbox("/command/status/{command}"), get(status))
        .route(&of_sandbox("/command/{command}/logs"), get(logs))
        .layer(Extension(Arc::<Background>::default()))
}

#[derive(Deserialize)]
pub(in crate::http) struct CommandRequest {
    #[serde(default)]
    command: Option<String>,
    #[serde(default)]
    argv: Option<Vec<String>>,
    #[serde(default)]
    cwd: Option<String>,
    #[serde(default)]
    background: bool,
    /// In milliseconds.
    #[serde(default)]
    timeout: Option<u64>,
    #[serde(default)]
    envs: BTreeMap<String, String>,
}

impl CommandRequest {
    fn line(self) -> Result<CommandLine, Failed> {
        let (script, argv) = match (self.command, self.argv) {
            (Some(command), _) => (command, Vec::new()),
            (None, Some(argv)) if !argv.is_empty() => {
                let argv = ["bash".to_owned()].into_iter().chain(argv);
                ("\"$@\"".to_owned(), argv.collect())
            }
            _ => return Err(Failed::invalid("the body has neither `command` nor `argv`")),
        };
        Ok(CommandLine {
            script,
            argv,
            environ: self.envs.into_iter().collect(),
            directory: self.cwd.filter(|directory| !directory.is_empty()),
            timeout: self.timeout.filter(|time| *time > 0).map(Duration::from_millis),
            ..CommandLine::default()
        })
    }
}

/// A command in the background, as far as it has got.
struct Kept {
    number: u32,
    script: String,
    started: SystemTime,
    output: String,
    /// How much of the output is no longer kept.
    dropped: usize,
    ended: Option<(SystemTime, CommandEnd)>,
}

/// The background commands by sandbox.
#[derive(Default)]
struct Background(Mutex<HashMap<String, VecDeque<Kept>>>);

impl Background {
    /// Keeps what a command prints until its sandbox has ended.
    fn keep(
        self: &Arc<Self>,
        sandbox: String,
        command: &RunningCommand,
        mut heard: Receiver<CommandEvent>,
        ended: tokio_util::sync::CancellationToken,
    ) {
        let number = command.number;
        let mut all = lock(&self.0);
        let of_sandbox = all.entry(sandbox.clone()).or_default();
        let is_first = of_sandbox.is_empty();
        if of_sandbox.len() == MAX_KEPT {
            of_sandbox.pop_front();
        }
        of_sandbox.push_back(Kept {
            number,
            script: command.line.script.clone(),
            started: SystemTime::now(),
            output: String::new(),
            dropped: 0,
            ended: None,
        });
        drop(all);
        let (this, id) = (Arc::clone(self), sandbox.clone());
        tokio::spawn(async move {
            while let Some(told) = heard.recv().await {
                this.told(&id, number, told);
            }
        });
        if is_first {
            let this = Arc::clone(self);
            tokio::spawn(async move {
                ended.cancelled().await;
                lock(&this.0).remove(&sandbox);
            });
        }
    }

    fn told(&self, sandbox: &str, number: u32, told: CommandEvent) {
        let mut all = lock(&self.0);
        let of_sandbox = all.get_mut(sandbox).into_iter().flatten();
        let Some(kept) = of_sandbox.into_iter().find(|kept| kept.number == number) else { return };
        match told {
            CommandEvent::Output(_, text) => {
                kept.output.push_str(&text);
                let excess = kept.output.len().saturating_sub(MAX_OUTPUT);
                let excess = kept.output.ceil_char_boundary(excess);
                kept.output.drain(..excess);
                kept.dropped += excess;
            }
            CommandEvent::End(end) => kept.ended = Some((SystemTime::now(), end)),
        }
    }

    /// Reads a command of a sandbox.
    fn of<T>(&self, sandbox: &str, id: &str, read: impl FnOnce(&Kept) -> T) -> Result<T, Failed> {
        let all = lock(&self.0);
        let found =
            all.get(sandbox).into_iter().flatten().find(|kept| kept.number.to_string() == id);
        found.map(read).ok_or_else(|| no_command(id))
    }
}

fn no_command(id: &str) -> Failed {
    Failed(Problem::nothing(format!("there is no command `{}`, or no longer", id.escape_debug())))
}

async fn run(
    State(node): Served,
    Extension(background): Extension<Arc<Background>>,
    sandbox: Sandbox,
    OpenSandboxBody(wanted): OpenSandboxBody<CommandRequest>,
) -> Result<Response, Failed> {
    let leases = [sandbox.find(&node)?, sandbox.find(&node)?];
    if wanted.command.as_deref() == Some(PROBE) {
        let first = event("init", json!({"text": "0"}));
        return Ok(streamed(stream::iter([first, complete(Instant::now())])));
    }
    let in_background = wanted.background;
    let ended = leases[0].session().ended().clone();
    let (command, heard) = node.start_command(leases, wanted.line()?)?;
    let begun = Instant::now();
    let first = event("init", json!({"text": command.number.to_string()}));
    if in_background {
        background.keep(sandbox.id, &command, heard, ended);
        return Ok(streamed(stream::iter([first, complete(begun)])));
    }
    let told = stream::unfold(heard, async |mut heard| {
        let told = heard.recv().await?;
        Some((told, heard))
    });
    let events = told.map(move |told| match told {
        CommandEvent::Output(Stream::Stderr, text) => event("stderr", json!({"text": text})),
        CommandEvent::Output(_, text) => event("stdout", json!({"text": text})),
        CommandEvent::End(end) => last(&end, begun),
    });
    Ok(streamed(stream::iter([first]).chain(events)))
}

/// Returns the last event of a command. Clients read its status from the error.
fn last(end: &CommandEnd, begun: Instant) -> AnyJson {
    let (status, reason) = outcome(end);
    if status == 0 {
        return complete(begun);
    }
    let error =
        json!({"ename": "CommandExecError", "evalue": status.to_string(), "traceback": [reason]});
    event("error", json!({"error": error}))
}

/// Returns the status of a command that has ended, and why it has this one.
fn outcome(end: &CommandEnd) -> (i32, String) {
    match end {
        CommandEnd::Exited(status) => (*status, format!("exit status {status}")),
        CommandEnd::Killed => (ENDED, "the command was ended".to_owned()),
        CommandEnd::SessionEnded => (ENDED, "the sandbox has ended".to_owned()),
        CommandEnd::Terminated(reason) | CommandEnd::Refused(reason) => (ENDED, reason.clone()),
    }
}

async fn interrupt(
    State(node): Served,
    sandbox: Sandbox,
    RawQuery(query): RawQuery,
) -> Result<DialectJson, Failed> {
    let session = sandbox.find(&node)?;
    let query = query.unwrap_or_default();
    let mut query = url::form_urlencoded::parse(query.as_bytes());
    let id = query.find(|(name, _)| name == "id").map(|(_, id)| id).unwrap_or_default();
    let command = id.parse().ok().and_then(|number| session.session().commands().get(number));
    command.ok_or_else(|| no_command(&id))?.kill();
    Ok(done())
}

fn time(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string()
}

async fn status(
    State(node): Served,
    Extension(background): Extension<Arc<Background>>,
    sandbox: Sandbox,
    Path((_, command)): Path<(String, String)>,
) -> Result<DialectJson, Failed> {
    sandbox.find(&node)?;
    background.of(&sandbox.id, &command, |kept| {
        let mut shown = json!({
            "id": kept.number.to_string(),
            "content": kept.script,
            "running": kept.ended.is_none(),
            "started_at": time(kept.started),
        });
        if let Some((at, end)) = &kept.ended {
            let (status, reason) = outcome(end);
            shown["exit_code"] = status.into();
            shown["finished_at"] = time(*at).into();
            if status != 0 {
                shown["error"] = reason.into();
            }
        }
        DialectJson(shown)
    })
}

/// Answers with what a command has printed, from the client's cursor on.
async fn logs(
    State(node): Served,
    Extension(background): Extension<Arc<Background>>,
    sandbox: Sandbox,
    Path((_, command)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> Result<Response, Failed> {
    sandbox.find(&node)?;
    let query = query.unwrap_or_default();
    let mut query = url::form_urlencoded::parse(query.as_bytes());
    let cursor = query.find(|(name, _)| name == "cursor").map(|(_, cursor)| cursor);
    let cursor = match cursor {
        None => 0,
        Some(cursor) => cursor.parse::<usize>().map_err(|_| {
            Failed::invalid(format!("`cursor` is {cursor:?}, and has to be a number"))
        })?,
    };
    background.of(&sandbox.id, &command, |kept| {
        let end = kept.dropped + kept.output.len();
        let from = cursor.clamp(kept.dropped, end) - kept.dropped;
        let text = kept.output.get(kept.output.ceil_char_boundary(from)..).unwrap_or_default();
        ([("EXECD-COMMANDS-TAIL-CURSOR", end.to_string())], text.to_owned()).into_response()
    })
}
