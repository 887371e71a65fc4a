//! `isolet repl`: a prompt with history, on one session.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use etcetera::BaseStrategy;
use isolet::blocking::Session;
use isolet::{Cell, Outcome, Sandbox, SessionState, Stdin, Termination};
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use super::interrupts::Interrupts;
use super::terminal::Printer;
use super::{PolicyArgs, exit, output, run};

#[derive(clap::Args)]
pub(super) struct ReplArgs {
    /// Pass output to a terminal as it is, with what may command it
    #[arg(long)]
    raw: bool,
    #[command(flatten)]
    policy: PolicyArgs,
}

pub(super) fn repl(args: &ReplArgs, assets: Option<&Path>) -> Result<ExitCode> {
    let printer = Printer::new(args.raw);
    let sandbox = args.policy.sandbox(assets, false)?;
    let permissions = &args.policy.permissions;
    let mut session = Session::new(&sandbox)?;
    let packages = permissions.packages("")?;
    let mut files = permissions.prepare(&mut session, &packages)?;
    let interrupt = std::sync::Arc::new(std::sync::Mutex::new(session.interrupt_handle()));
    let current = std::sync::Arc::clone(&interrupt);
    ctrlc::set_handler(move || {
        if let Ok(handle) = current.lock() {
            handle.interrupt();
        }
    })
    .context("cannot handle Ctrl-C")?;
    let mut editor = DefaultEditor::new().context("cannot read from the terminal")?;
    let history = history_file();
    if let Some(history) = &history {
        // There is none before the first use.
        let _ = editor.load_history(history);
    }
    let version = session.run("import sys; sys.version.split()[0]")?;
    let version = version.value().and_then(|value| value.as_str()).unwrap_or_default().to_owned();
    writeln!(io::stderr(), "Python {version} in isolet; Ctrl-D or exit() ends it")?;
    let status = loop {
        let Some(code) = read_cell(&mut editor, &mut session)? else {
            break ExitCode::SUCCESS;
        };
        let stdin = Stdin::from_reader(io::stdin());
        let cell = Cell::new(code).name("<stdin>").interactive().stdin(stdin);
        let max_bytes = args.policy.max_output;
        let streamed = output::stream(
            &mut session,
            cell,
            Printer::new(args.raw),
            max_bytes,
            &Interrupts::default(),
        )?;
        let execution = &streamed.execution;
        if streamed.is_reader_gone {
            break streamed.status();
        }
        files.write_back(&mut session)?;
        match execution.outcome() {
            Outcome::Completed(_) => match execution.repr() {
                Some(repr) if repr != "None" => {
                    writeln!(io::stdout(), "{}", printer.for_stdout(repr))?;
                }
                _ => {}
            },
            Outcome::Terminated(Termination::Interrupted) => {
                writeln!(io::stderr(), "KeyboardInterrupt")?;
            }
            Outcome::Exited(_) => break exit::status(execution),
            _ => run::show_outcome(execution, args.raw)?,
        }
        streamed.show_missing()?;
        if session.state() != SessionState::Ready {
            session = replace(&sandbox)?;
            permissions.prepare_with(&mut session, &mut files, &packages)?;
            if let Ok(mut handle) = interrupt.lock() {
                *handle = session.interrupt_handle();
            }
        }
    };
    files.export(&mut session)?;
    if let Some(history) = &history {
        // A history that cannot be kept is no reason to fail.
        let _ = editor.save_history(history);
    }
    Ok(status)
}

fn replace(sandbox: &Sandbox) -> Result<Session> {
    writeln!(io::stderr(), "the session was lost with its variables; this is a new one")?;
    Ok(Session::new(sandbox)?)
}

/// Reads lines until they make a whole; `None` at the end of the input.
fn read_cell(editor: &mut DefaultEditor, session: &mut Session) -> Result<Option<String>> {
    let mut lines: Vec<String> = Vec::new();
    loop {
        match editor.readline(if lines.is_empty() { ">>> " } else { "... " }) {
            Ok(line) if lines.is_empty() && line.trim().is_empty() => continue,
            Ok(line) => lines.push(line),
            Err(ReadlineError::Interrupted) => {
                lines.clear();
                continue;
            }
            Err(ReadlineError::Eof) if lines.is_empty() => return Ok(None),
            Err(ReadlineError::Eof) => return Ok(Some(lines.join("\n"))),
            Err(error) => return Err(error).context("cannot read from the terminal"),
        }
        let code = lines.join("\n");
        if !session.is_incomplete(code.clone())? {
            let _ = editor.add_history_entry(code.trim_end());
            return Ok(Some(code));
        }
    }
}

/// Where the history is kept: none when nobody types, or where the user has no place for it.
fn history_file() -> Option<PathBuf> {
    if !io::stdin().is_terminal() {
        return None;
    }
    let strategy = etcetera::choose_base_strategy().ok()?;
    let dir = strategy.state_dir().unwrap_or_else(|| strategy.cache_dir()).join("isolet");
    std::fs::create_dir_all(&dir).ok()?;
    Some(dir.join("repl-history"))
}
