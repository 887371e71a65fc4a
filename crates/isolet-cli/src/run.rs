//! `isolet run`: runs one script and passes its output on as it arrives.

use crate::args::words::is_notebook;
use crate::show::outcome::show_outcome;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Command;
use isolet::Execution;
use isolet::blocking::Session;

use crate::args::permissions::PermissionArgs;
use crate::args::policy::PolicyArgs;
use crate::kit::interrupts::Interrupts;
use crate::kit::output::{self, Shown};
use crate::notebook::{Runner, Target};
use crate::program::output_files::{self, OutputFiles};
use crate::program::{Program, ProgramArgs};
use crate::show::exit;
use crate::show::progress;
use crate::show::report;
use crate::show::terminal::{self};
use crate::show::viewer::Viewer;
use isolet_support::json;

#[derive(clap::Args)]
pub(crate) struct RunArgs {
    /// Script, notebook or directory; `-` reads a script from standard input
    ///
    /// A notebook ends in .ipynb, a script of the shell in .sh. A directory or zip file needs a
    /// `__main__.py`.
    pub(crate) file: Option<String>,
    /// Arguments of the script, dashes included: isolet's own options come first
    pub(crate) args: Vec<String>,
    /// Run this code instead of a file
    #[arg(short = 'c', value_name = "CODE", allow_hyphen_values = true)]
    pub(crate) code: Option<String>,
    /// Run this module instead of a file, as `python -m` does
    ///
    /// It is from the standard library, a package, or the current directory if the guest can see
    /// it.
    #[arg(short = 'm', value_name = "MODULE", allow_hyphen_values = true, conflicts_with = "code")]
    pub(crate) module: Option<String>,
    /// Run this script of the shell instead of a file, as `bash -c` does
    ///
    /// The arguments are `$1` and so on.
    #[arg(
        short = 's',
        value_name = "SCRIPT",
        allow_hyphen_values = true,
        conflicts_with_all = ["code", "module"]
    )]
    pub(crate) shell: Option<String>,
    /// Print the result as one line of JSON
    ///
    /// It is there instead of the output: the result of the run, or why there is none.
    #[arg(long)]
    pub(crate) json: bool,
    /// Pass output to a terminal unfiltered, escape sequences included
    #[arg(long, hide_short_help = true)]
    pub(crate) raw: bool,
    /// Write the pictures, tables and charts that the run displays to files
    #[arg(long, value_name = "DIR")]
    pub(crate) show_dir: Option<PathBuf>,
    /// Write the notebook with the outputs of its cells to this file
    ///
    /// They are not shown then. This option may also come directly after the notebook.
    #[arg(long, value_name = "NOTEBOOK")]
    pub(crate) output: Option<PathBuf>,
    /// Write the files that the run makes to this directory
    ///
    /// Those of the guest's home have their names there, others their whole paths.
    #[arg(long, value_name = "DIR")]
    pub(crate) files_dir: Option<PathBuf>,
    /// Save the session to this file after the run, for `--from`
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// Go on in the session that `--save` has saved to this file
    ///
    /// It has the permissions, limits and packages of this command's options.
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,
    /// Record the session to this file, for `isolet resume` and `isolet replay`
    ///
    /// The file must not exist. If the process ends, `isolet resume` goes on with the run, and
    /// `isolet replay` looks back at it.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) record: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
}

impl RunArgs {
    /// Runs a file with these arguments.
    pub(crate) fn of_file(file: String, args: Vec<String>, policy: PolicyArgs) -> Self {
        Self {
            file: Some(file),
            args,
            code: None,
            module: None,
            shell: None,
            json: false,
            raw: false,
            show_dir: None,
            output: None,
            files_dir: None,
            save: None,
            from: None,
            record: None,
            policy,
        }
    }
}

/// `definition` makes the definition of isolet's command line.
pub(crate) fn run(
    mut args: RunArgs,
    assets: Option<&Path>,
    definition: fn() -> Command,
) -> Result<ExitCode> {
    let RunArgs { file, code, module, shell, args: rest, .. } = &mut args;
    let program_args = ProgramArgs {
        file: file.take(),
        code: code.take(),
        module: module.take(),
        shell: shell.take(),
        rest: std::mem::take(rest),
    };
    let target = args.output.as_deref().map(|path| open_output(path, &program_args)).transpose()?;
    let mut program = Program::read(program_args, &mut args.policy.permissions, definition)?;
    let notebook = program.notebook.take();
    let permissions = &args.policy.permissions;
    let packages = permissions.packages(&program.source)?;
    let output_files = args.files_dir.as_deref().map(OutputFiles::open).transpose()?;
    args.policy.has_no_terminal = args.record.is_some();
    let (sandbox, packages) = args.policy.sandbox(assets, args.json, &packages)?;
    let permissions = &args.policy.permissions;
    let mut session = match (&args.from, &args.record) {
        (Some(file), None) => sandbox.blocking().restore(file)?,
        (Some(file), Some(journal)) => {
            let mut session = sandbox.blocking().restore(file)?;
            session.record(&**journal)?;
            session
        }
        (None, Some(journal)) => sandbox.blocking().record(&**journal)?,
        (None, None) => sandbox.blocking().session()?,
    };
    let save = args.save.as_deref();
    let interrupts = Interrupts::of(&session)?;
    let viewer = Viewer::new(args.show_dir.as_deref(), notebook.is_some())?;
    let shown = Shown { raw: args.raw, max_bytes: args.policy.max_output, viewer };
    let progress = args.policy.progress(args.json);
    let mut files = progress.during(&progress::of_packages(&packages), || {
        permissions.prepare(&mut session, &packages)
    })?;
    let (cell, mut hints) = program.prepare(&mut session)?;
    hints.refusals = permissions.refusals.clone();
    if let Some(mut notebook) = notebook {
        let session = &mut session;
        let mut runner = Runner {
            session,
            interrupts: &interrupts,
            json: args.json,
            saves: save.is_some(),
            records: target.is_some(),
            shown: &shown,
        };
        let played = notebook.play(cell, &mut runner);
        let kept = target.map_or(Ok(()), |target| notebook.write(&target));
        let played = played?;
        let runs = played.runs();
        let written = files
            .write_back(session)
            .and_then(|()| files.export(session))
            .and_then(|()| keep(output_files.as_ref(), session, &runs, permissions))
            .and_then(|()| save_to(save, session))
            .and(kept);
        show_unseen(&shown, args.json)?;
        if output_files.is_none() && save.is_none() && !args.json {
            output_files::report_lost(&runs, permissions)?;
        }
        return played.end(written, &hints, args.json, args.raw);
    }
    let cell = if save.is_some() { cell.program().keep_variables() } else { cell.program() };
    if args.json {
        let cell = shown.viewer.prepare(cell);
        let execution = interrupts.during(|| session.run(cell))?;
        shown.viewer.write(execution.displays())?;
        let written = files
            .write_back(&mut session)
            .and_then(|()| files.export(&mut session))
            .and_then(|()| keep(output_files.as_ref(), &mut session, &[&execution], permissions))
            .and_then(|()| save_to(save, &mut session));
        let (report, status) = match &written {
            Ok(()) => {
                let report = report::RunReport::new(&execution);
                (report.hinted(hints.hint(&execution)), exit::status(&execution))
            }
            Err(error) => (report::failure(error, Some(&execution)), exit::failure(error)),
        };
        json::write_line(io::stdout().lock(), &report)
            .context("cannot write to standard output")?;
        return Ok(status);
    }
    let streamed = output::stream(&mut session, cell, &shown, &interrupts)?;
    let runs = [&streamed.execution];
    let written = files
        .write_back(&mut session)
        .and_then(|()| files.export(&mut session))
        .and_then(|()| keep(output_files.as_ref(), &mut session, &runs, permissions))
        .and_then(|()| save_to(save, &mut session));
    if !streamed.is_reader_gone {
        show_outcome(&streamed.execution, args.raw)?;
        if let Some(hint) = hints.hint(&streamed.execution) {
            writeln!(io::stderr(), "hint: {}", terminal::for_stderr(&hint))?;
        }
        streamed.show_missing()?;
        show_unseen(&shown, args.json)?;
        if output_files.is_none() && save.is_none() {
            output_files::report_lost(&runs, permissions)?;
        }
    }
    written?;
    Ok(streamed.status())
}

/// Opens the file for a notebook's outputs, if a notebook is to be run.
fn open_output(path: &Path, program_args: &ProgramArgs) -> Result<Target> {
    match program_args.file.as_deref() {
        _ if program_args.code.is_some() || program_args.module.is_some() => {
            bail!("`--output` needs a notebook (.ipynb); it cannot be used with `-c` or `-m`")
        }
        Some(file) if is_notebook(file) => Target::open(path),
        Some(file) => bail!("`--output` needs a notebook (.ipynb), and `{file}` is none"),
        None => bail!("`--output` needs a notebook (.ipynb); name one to run"),
    }
}

/// Writes the files that these runs have made to the directory, if there is one.
fn keep(
    output_files: Option<&OutputFiles>,
    session: &mut Session,
    runs: &[&Execution],
    permissions: &PermissionArgs,
) -> Result<()> {
    output_files.map_or(Ok(()), |output_files| output_files.write(session, runs, permissions))
}

/// Saves the session to the file, if one is named.
fn save_to(file: Option<&Path>, session: &mut Session) -> Result<()> {
    let Some(file) = file else { return Ok(()) };
    // The journal is whole.
    session.end_recording();
    Ok(session.save(file)?)
}

/// Prints to standard error that the terminal did not show some pictures.
fn show_unseen(shown: &Shown, json: bool) -> io::Result<()> {
    match shown.viewer.unseen() {
        Some(note) if !json => writeln!(io::stderr(), "note: {note}"),
        _ => Ok(()),
    }
}
