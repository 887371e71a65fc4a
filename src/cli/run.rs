//! `isolet run`: one script, its output passed through as it comes.

use std::io::{self, IsTerminal, Read, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use isolet::blocking::Session;
use isolet::{Cell, Execution, Outcome, Stdin};

use super::terminal::Printer;
use super::{PolicyArgs, exit, report};

#[derive(clap::Args)]
pub(super) struct RunArgs {
    /// Script to run; `-` reads it from standard input
    file: Option<String>,
    /// Words for the script, as sys.argv[1:]: all that follow it, or the code, also if they begin with
    /// a dash; options of isolet come before
    args: Vec<String>,
    /// Code to run instead of a file
    #[arg(short = 'c', value_name = "CODE", allow_hyphen_values = true)]
    code: Option<String>,
    /// Print one JSON object with everything about the run instead of its output
    #[arg(long)]
    json: bool,
    /// Pass output to a terminal as it is, with what may command it
    #[arg(long)]
    raw: bool,
    #[command(flatten)]
    policy: PolicyArgs,
}

pub(super) fn run(args: RunArgs, assets: Option<&Path>) -> Result<ExitCode> {
    let (code, cell) = cell(args.file, args.code, args.args)?;
    let cell = cell.program();
    let permissions = &args.policy.permissions;
    let packages = permissions.packages(&code)?;
    let sandbox = args.policy.sandbox(assets)?;
    let mut session = Session::new(&sandbox)?;
    interrupt_on_ctrl_c(&session)?;
    let mut files = permissions.prepare(&mut session, &packages)?;
    if args.json {
        let execution = session.run(cell)?;
        files.write_back(&mut session)?;
        files.export(&mut session)?;
        let mut stdout = io::stdout().lock();
        serde_json::to_writer(&mut stdout, &report::RunReport::new(&execution))
            .map_err(io::Error::from)?;
        writeln!(stdout)?;
        return Ok(exit::status(&execution));
    }
    let mut printer = Printer::new(args.raw);
    let execution = stream(&mut session, cell, &mut printer)?;
    files.write_back(&mut session)?;
    files.export(&mut session)?;
    show_outcome(&execution, &printer)?;
    Ok(exit::status(&execution))
}

/// Runs a cell and passes its output through as it comes.
pub(super) fn stream(
    session: &mut Session,
    cell: Cell,
    printer: &mut Printer,
) -> Result<Execution> {
    let mut failure = None;
    let interrupt = session.interrupt_handle();
    let execution = session.run_streaming(cell, |chunk| {
        if failure.is_none() {
            failure = printer.print(&chunk).err();
            if failure.is_some() {
                interrupt.interrupt();
            }
        }
    })?;
    match failure.or_else(|| printer.finish().err()) {
        None => Ok(execution),
        Some(error) => Err(error).context("cannot write the guest's output"),
    }
}

/// Tells on standard error how the run ended, if it ended badly.
pub(super) fn show_outcome(execution: &Execution, printer: &Printer) -> io::Result<()> {
    let mut stderr = io::stderr().lock();
    match execution.outcome() {
        Outcome::Raised(exception) => {
            stderr.write_all(printer.for_stderr(&exception.traceback).as_bytes())
        }
        Outcome::Terminated(termination) => {
            writeln!(stderr, "error: {}", printer.for_stderr(&termination.to_string()))
        }
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

/// The code and the cell that runs it.
fn cell(file: Option<String>, code: Option<String>, rest: Vec<String>) -> Result<(String, Cell)> {
    if let Some(code) = code {
        // With -c there is no file: whatever stands in its place is the first argument.
        let argv = ["-c".to_owned()].into_iter().chain(file).chain(rest);
        let cell = Cell::new(code.as_str()).name("<string>").argv(argv);
        return Ok((code, cell.stdin(inherited_stdin())));
    }
    match file.as_deref() {
        None if io::stdin().is_terminal() => {
            bail!("nothing to run: give a FILE, `-` for standard input, or `-c CODE`")
        }
        None | Some("-") => {
            let mut bytes = Vec::new();
            io::stdin().read_to_end(&mut bytes).context("cannot read standard input")?;
            let argv = ["-".to_owned()].into_iter().chain(rest);
            let code = text(bytes, "standard input")?;
            let cell = Cell::new(code.as_str()).name("<stdin>").argv(argv);
            Ok((code, cell))
        }
        Some(path) => {
            let bytes = std::fs::read(path).with_context(|| format!("cannot read `{path}`"))?;
            let argv = [path.to_owned()].into_iter().chain(rest);
            let code = text(bytes, &format!("`{path}`"))?;
            let cell = Cell::new(code.as_str()).script(path).argv(argv);
            Ok((code, cell.stdin(inherited_stdin())))
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
