//! `isolet replay`: looks back at a recorded session.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use isolet::blocking::Session;
use isolet::{Execution, Outcome, Replay, SessionState, StoppedAt, Termination};
use isolet_support::json;

use crate::args::policy::PolicyArgs;
use crate::args::value_parsers;
use crate::kit::interrupts::Interrupts;
use crate::kit::output::{self, Shown};
use crate::kit::refusals::Refusals;
use crate::repl::{self, Language};
use crate::show::outcome::show_outcome;
use crate::show::terminal;
use crate::show::viewer::Viewer;
use crate::show::{exit, report};

#[derive(clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct ReplayArgs {
    /// The journal that `isolet run --record` has written
    journal: PathBuf,
    /// Stop at the call of a tool of this number, counted from 1, such as 212; before this line of
    /// code, such as `agent.py:31` or `:31`; or at this time since the session began, such as 2.5s
    #[arg(long, value_name = "CALL|[FILE]:LINE|TIME")]
    until: Option<Until>,
    /// Start a prompt in the session as it was at the end, or where `--until` stops. It reaches
    /// nothing of the host
    #[arg(long)]
    repl: bool,
    /// Print the calls, requests, files and times to standard error
    #[arg(long)]
    trace: bool,
    /// Print one line of JSON for each run instead of the output
    #[arg(long, conflicts_with = "repl")]
    pub(crate) json: bool,
    /// Pass output to a terminal unfiltered, escape sequences included
    #[arg(long)]
    raw: bool,
    /// Write what the runs display to files in this directory: pictures, tables, charts
    #[arg(long, value_name = "DIR")]
    show_dir: Option<PathBuf>,
    #[command(flatten)]
    policy: PolicyArgs,
}

/// Where a replay stops.
#[derive(Clone, Debug)]
enum Until {
    Call(u64),
    Line(Option<String>, u64),
    Time(Duration),
}

impl FromStr for Until {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((file, line)) = text.rsplit_once(':') {
            let file = Some(file.to_owned()).filter(|file| !file.is_empty());
            return match line.parse() {
                Ok(0) | Err(_) => Err(format!("`{line}` is no line, and lines count from 1")),
                Ok(line) => Ok(Self::Line(file, line)),
            };
        }
        match text.parse() {
            Ok(0) => Err("calls are counted from 1".to_owned()),
            Ok(call) => Ok(Self::Call(call)),
            Err(_) => value_parsers::duration(text).map(Self::Time),
        }
    }
}

pub(crate) fn replay(mut args: ReplayArgs, assets: Option<&Path>) -> Result<ExitCode> {
    args.policy.has_no_terminal = true;
    let permissions = &args.policy.permissions;
    let packages = permissions.packages("")?;
    let (sandbox, _) = args.policy.sandbox(assets, args.json, &packages)?;
    let mut replay = Replay::of(&args.journal);
    match &args.until {
        Some(Until::Call(call)) => replay = replay.until_call(*call),
        Some(Until::Line(file, line)) => replay = replay.until_line(file.as_deref(), *line),
        Some(Until::Time(time)) => replay = replay.until_time(*time),
        None => {}
    }
    if args.trace {
        replay = replay.on_trace(|traced| {
            // A trace that cannot be printed is missed by nobody.
            let _ = writeln!(io::stderr(), "{}", terminal::for_stderr(&traced.to_string()));
        });
    }
    let mut session = sandbox.blocking().replay(replay)?;
    let viewer = Viewer::new(args.show_dir.as_deref(), false)?;
    let shown = Shown { raw: args.raw, max_bytes: args.policy.max_output, viewer };
    let status = play(&mut session, &args, &shown)?;
    if !args.repl {
        return Ok(status);
    }
    if session.state() != SessionState::Ready {
        bail!("the session is {}, so there is nothing to look at", session.state());
    }
    let mut files = permissions.host_files(&mut session)?;
    let lost = |_: &mut _| bail!("the session was lost; replay the journal again");
    let (status, _) =
        repl::converse(session, Language::Python, &shown, &mut files, &Refusals::default(), lost)?;
    Ok(status)
}

/// Replays all runs. Returns the status of the last one.
fn play(session: &mut Session, args: &ReplayArgs, shown: &Shown) -> Result<ExitCode> {
    let interrupts = if args.repl { Interrupts::default() } else { Interrupts::of(session)? };
    let mut status = ExitCode::SUCCESS;
    while session.has_run_to_go_on() {
        if args.json {
            let Some(execution) = interrupts.during(|| session.go_on())? else { break };
            shown.viewer.write(execution.displays())?;
            json::write_line(io::stdout().lock(), &report::RunReport::new(&execution))
                .context("cannot write to standard output")?;
            status = exit::status(&execution);
            continue;
        }
        let run = Session::go_on_streaming;
        let streamed = output::stream_run(session, run, shown, &interrupts)?;
        if streamed.is_reader_gone {
            return Ok(streamed.status());
        }
        streamed.show_missing()?;
        if is_interrupted(&streamed.execution)
            && let Some(stopped) = session.bind_locals()?
        {
            show_stop(&stopped)?;
            break;
        }
        show_outcome(&streamed.execution, args.raw)?;
        status = streamed.status();
    }
    Ok(status)
}

/// Says where the run was stopped because the replay ends.
fn show_stop(stopped: &StoppedAt) -> io::Result<()> {
    let names = match &*stopped.names {
        [] => String::new(),
        names => format!(" with the variables {}", names.join(", ")),
    };
    let text = format!("stopped in {}, line {}{names}", stopped.function, stopped.line);
    writeln!(io::stderr(), "{}", terminal::for_stderr(&text))
}

/// Whether the run was interrupted: where the replay ends, or by its user when it was recorded.
fn is_interrupted(execution: &Execution) -> bool {
    matches!(execution.outcome(), Outcome::Terminated(Termination::Interrupted))
}
