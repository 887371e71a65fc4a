//! `isolet repl` and `isolet sh`: a prompt on one session.

mod highlight;
mod indent;
mod input;
mod prompt;

use crate::show::outcome::show_outcome;
use std::cell::RefCell;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result};
use isolet::blocking::Session;
use isolet::{Cell, Execution, Outcome, SessionState, Stdin, Termination};
use isolet_service::core::hint_in_options;

use self::input::Lines;
use self::prompt::Prompt;
use crate::args::policy::PolicyArgs;
use crate::kit::host_files::HostFiles;
use crate::kit::interrupts::Interrupts;
use crate::kit::output::{self, Shown};
use crate::kit::refusals::Refusals;
use crate::show::exit;
use crate::show::progress;
use crate::show::terminal::{self, Printer};
use crate::show::viewer::Viewer;

#[derive(clap::Args)]
pub(crate) struct ReplArgs {
    /// Pass output to a terminal unfiltered, escape sequences included
    #[arg(long)]
    raw: bool,
    /// Write what is displayed to files in this directory: pictures, tables, charts
    #[arg(long, value_name = "DIR")]
    show_dir: Option<PathBuf>,
    #[command(flatten)]
    policy: PolicyArgs,
}

/// What is typed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    Python,
    Shell,
}

impl Language {
    /// Returns the cell for what was typed.
    fn cell(self, typed: impl Into<String>) -> Cell {
        match self {
            Self::Python => Cell::new(Self::completed(typed.into())).name("<stdin>").interactive(),
            Self::Shell => Cell::shell(typed),
        }
    }

    /// Returns what was typed, or for `exit` alone what ends the prompt, as at python's, unless the
    /// user has given it another value.
    fn completed(typed: String) -> String {
        match typed.trim() {
            name @ ("exit" | "quit") => {
                format!("{name}() if type({name}).__name__ == 'Quitter' else {name}")
            }
            _ => typed,
        }
    }

    /// Whether the user has ended the prompt with this cell.
    fn is_end(self, typed: &str, outcome: &Outcome) -> bool {
        let is_exit = || typed.split_whitespace().next().is_some_and(|word| word == "exit");
        matches!(outcome, Outcome::Exited(_)) && (self == Self::Python || is_exit())
    }
}

/// Runs a prompt until the user ends it.
pub(crate) fn repl(args: &ReplArgs, assets: Option<&Path>, language: Language) -> Result<ExitCode> {
    let permissions = &args.policy.permissions;
    let packages = permissions.packages("")?;
    let (sandbox, packages) = args.policy.sandbox(assets, false, &packages)?;
    let mut session = sandbox.blocking().session()?;
    let progress = args.policy.progress(false);
    let mut files = progress.during(&progress::of_packages(&packages), || {
        permissions.prepare(&mut session, &packages)
    })?;
    let version = session.run("import sys; sys.version.split()[0]")?;
    let version = version.value().and_then(|value| value.as_str()).unwrap_or_default().to_owned();
    match language {
        Language::Python => {
            writeln!(io::stderr(), "Python {version} in isolet; Ctrl-D or exit ends it")?;
        }
        Language::Shell if args.policy.quiet || !io::stdin().is_terminal() => {}
        Language::Shell => {
            let told = format!("A shell beside Python {version} in isolet; Ctrl-D or exit ends it");
            writeln!(io::stderr(), "{told}")?;
        }
    }
    let viewer = Viewer::new(args.show_dir.as_deref(), true)?;
    let shown = Shown { raw: args.raw, max_bytes: args.policy.max_output, viewer };
    let replace = |files: &mut HostFiles| {
        writeln!(io::stderr(), "the session was lost with its variables; this is a new one")?;
        let mut session = sandbox.blocking().session()?;
        permissions.prepare_with(&mut session, files, &packages)?;
        Ok(session)
    };
    let refusals = &permissions.refusals;
    let (status, session) = converse(session, language, &shown, &mut files, refusals, replace)?;
    let mut session = session.borrow_mut();
    end(&mut session, &shown)?;
    files.write_back(&mut session)?;
    files.export(&mut session)?;
    Ok(status)
}

/// Runs a prompt on a session until the user ends it. `replace` makes the session that takes the
/// place of one that was lost. Returns the session with which the prompt has ended.
pub(crate) fn converse(
    session: Session,
    language: Language,
    shown: &Shown,
    files: &mut HostFiles,
    refusals: &Refusals,
    replace: impl Fn(&mut HostFiles) -> Result<Session>,
) -> Result<(ExitCode, Rc<RefCell<Session>>)> {
    let interrupt = Arc::new(Mutex::new(session.interrupt_handle()));
    let current = Arc::clone(&interrupt);
    ctrlc::set_handler(move || {
        if let Ok(handle) = current.lock() {
            handle.interrupt();
        }
    })
    .context("cannot handle Ctrl-C")?;
    let session = Rc::new(RefCell::new(session));
    let lines = Lines::default();
    let mut prompt = Prompt::new(&session, lines.clone(), language)?;
    let status = loop {
        let Some(code) = prompt.read_cell(&session)? else {
            break ExitCode::SUCCESS;
        };
        let mut session = session.borrow_mut();
        let (input, stop) = lines.for_run().context("cannot read standard input")?;
        let cell = language.cell(code.as_str()).stdin(Stdin::from_reader(input));
        let interrupts = Interrupts::default();
        let streamed = output::stream(&mut session, cell, shown, &interrupts)?;
        drop(stop);
        if streamed.is_reader_gone {
            break streamed.status();
        }
        files.write_back(&mut session)?;
        let outcome = streamed.execution.outcome();
        if language.is_end(&code, outcome) {
            break exit::status(&streamed.execution);
        }
        // A shell's prompt says nothing of a status.
        let is_quiet = matches!(outcome, Outcome::Exited(_));
        if !is_quiet && !shown.viewer.take_drawn_result() {
            show(&streamed.execution, shown.raw)?;
            let hint = hint_in_options(&streamed.execution);
            if let Some(hint) = hint.or_else(|| refusals.hint(&streamed.execution)) {
                writeln!(io::stderr(), "hint: {}", terminal::for_stderr(&hint))?;
            }
        }
        streamed.show_missing()?;
        if session.state() != SessionState::Ready {
            *session = replace(files)?;
            if let Ok(mut handle) = interrupt.lock() {
                *handle = session.interrupt_handle();
            }
        }
    };
    prompt.end();
    Ok((status, session))
}

/// Ends the session as python ends, so that open files keep the text that was written to them.
fn end(session: &mut Session, shown: &Shown) -> Result<()> {
    if session.state() == SessionState::Ready {
        output::stream(session, Cell::new("").program(), shown, &Interrupts::default())?;
    }
    Ok(())
}

/// Shows the result of a cell.
fn show(execution: &Execution, raw: bool) -> io::Result<()> {
    let printer = Printer::new(raw);
    match execution.outcome() {
        Outcome::Completed(_) => match execution.repr() {
            Some(repr) if repr != "None" => {
                writeln!(io::stdout(), "{}", printer.for_stdout(repr))
            }
            _ => Ok(()),
        },
        Outcome::Terminated(Termination::Interrupted) => {
            writeln!(io::stderr(), "KeyboardInterrupt")
        }
        Outcome::Raised(exception) if terminal::has_color(io::stderr().is_terminal()) => {
            let text = printer.for_stderr(&exception.traceback);
            write!(io::stderr(), "{}", highlight::traceback(&text))
        }
        _ => show_outcome(execution, raw),
    }
}
