//! `isolet run`: one script, its output passed through as it comes.

use std::io::{self, IsTerminal, Read, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use isolet::blocking::Session;
use isolet::{Cell, Execution, Outcome, OutputChunk, Stdin, Stream};

use super::{PolicyArgs, engine, exit, report};

#[derive(clap::Args)]
pub(super) struct RunArgs {
    /// Script to run; `-` reads it from standard input
    file: Option<String>,
    /// Arguments for the script, as sys.argv[1:]; after `--` they may begin with a dash
    args: Vec<String>,
    /// Code to run instead of a file
    #[arg(short = 'c', value_name = "CODE", allow_hyphen_values = true)]
    code: Option<String>,
    /// Print one JSON object with everything about the run instead of its output
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    policy: PolicyArgs,
}

pub(super) fn run(args: RunArgs, assets: Option<&Path>) -> Result<ExitCode> {
    let cell = cell(args.file, args.code, args.args)?.program();
    let sandbox = args.policy.sandbox(&engine(assets)?)?;
    let mut session = Session::new(&sandbox)?;
    interrupt_on_ctrl_c(&session)?;
    if args.json {
        let execution = session.run(cell)?;
        let mut stdout = io::stdout().lock();
        serde_json::to_writer(&mut stdout, &report::RunReport::new(&execution))
            .map_err(io::Error::from)?;
        writeln!(stdout)?;
        return Ok(exit::status(&execution));
    }
    let execution = stream(&mut session, cell)?;
    show_outcome(&execution)?;
    Ok(exit::status(&execution))
}

/// Runs a cell and passes its output through as it comes.
pub(super) fn stream(session: &mut Session, cell: Cell) -> Result<Execution> {
    let mut failure = None;
    let interrupt = session.interrupt_handle();
    let execution = session.run_streaming(cell, |chunk| {
        if failure.is_none() {
            failure = pass_through(&chunk).err();
            if failure.is_some() {
                interrupt.interrupt();
            }
        }
    })?;
    match failure {
        None => Ok(execution),
        Some(error) => Err(error).context("cannot write the guest's output"),
    }
}

/// Tells on standard error how the run ended, if it ended badly.
pub(super) fn show_outcome(execution: &Execution) -> io::Result<()> {
    let mut stderr = io::stderr().lock();
    match execution.outcome() {
        Outcome::Raised(exception) => write!(stderr, "{}", exception.traceback),
        Outcome::Terminated(termination) => writeln!(stderr, "error: {termination}"),
        _ => Ok(()),
    }
}

/// The first Ctrl-C is a `KeyboardInterrupt` for the guest, the second ends us.
fn interrupt_on_ctrl_c(session: &Session) -> Result<()> {
    let handle = session.interrupt_handle();
    let mut pressed = false;
    let on_ctrl_c = move || {
        if pressed {
            #[expect(clippy::exit, reason = "the guest did not heed the first one")]
            std::process::exit(exit::INTERRUPTED.into());
        }
        pressed = true;
        handle.interrupt();
    };
    ctrlc::set_handler(on_ctrl_c).context("cannot handle Ctrl-C")
}

fn pass_through(chunk: &OutputChunk) -> io::Result<()> {
    fn write(mut stream: impl Write, bytes: &[u8]) -> io::Result<()> {
        stream.write_all(bytes)?;
        stream.flush()
    }
    match chunk.stream {
        Stream::Stderr => write(io::stderr().lock(), &chunk.bytes),
        _ => write(io::stdout().lock(), &chunk.bytes),
    }
}

fn cell(file: Option<String>, code: Option<String>, rest: Vec<String>) -> Result<Cell> {
    if let Some(code) = code {
        // With -c there is no file: whatever stands in its place is the first argument.
        let argv = ["-c".to_owned()].into_iter().chain(file).chain(rest);
        return Ok(Cell::new(code).name("<string>").argv(argv).stdin(inherited_stdin()));
    }
    match file.as_deref() {
        None if io::stdin().is_terminal() => {
            bail!("nothing to run: give a FILE, `-` for standard input, or `-c CODE`")
        }
        None | Some("-") => {
            let mut bytes = Vec::new();
            io::stdin().read_to_end(&mut bytes).context("cannot read standard input")?;
            let argv = ["-".to_owned()].into_iter().chain(rest);
            Ok(Cell::new(text(bytes, "standard input")?).name("<stdin>").argv(argv))
        }
        Some(path) => {
            let bytes = std::fs::read(path).with_context(|| format!("cannot read `{path}`"))?;
            let argv = [path.to_owned()].into_iter().chain(rest);
            let code = text(bytes, &format!("`{path}`"))?;
            Ok(Cell::new(code).script(path).argv(argv).stdin(inherited_stdin()))
        }
    }
}

fn inherited_stdin() -> Stdin {
    Stdin::from_reader(io::stdin())
}

fn text(bytes: Vec<u8>, name: &str) -> Result<String> {
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text.strip_prefix('\u{feff}').map_or_else(|| text.clone(), str::to_owned)),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            bail!("{name} is not UTF-8: byte {at} is {:#04x}", error.as_bytes()[at])
        }
    }
}
