//! `isolet resume`: goes on with a run that `isolet run --record` has recorded.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use isolet_support::json;

use crate::args::policy::PolicyArgs;
use crate::kit::interrupts::Interrupts;
use crate::kit::output::{self, Shown};
use crate::show::outcome::show_outcome;
use crate::show::viewer::Viewer;
use crate::show::{exit, report};

#[derive(clap::Args)]
pub(crate) struct ResumeArgs {
    /// The journal that `isolet run --record` has written
    journal: PathBuf,
    /// Print one line of JSON instead of the output: the result of the run, or why there is none
    #[arg(long)]
    pub(crate) json: bool,
    /// Pass output to a terminal unfiltered, escape sequences included
    #[arg(long)]
    raw: bool,
    /// Write what the run displays to files in this directory: pictures, tables, charts
    #[arg(long, value_name = "DIR")]
    show_dir: Option<PathBuf>,
    #[command(flatten)]
    policy: PolicyArgs,
}

pub(crate) fn resume(mut args: ResumeArgs, assets: Option<&Path>) -> Result<ExitCode> {
    args.policy.has_no_terminal = true;
    let permissions = &args.policy.permissions;
    let packages = permissions.packages("")?;
    let (sandbox, _) = args.policy.sandbox(assets, args.json, &packages)?;
    let mut session = sandbox.blocking().resume(&*args.journal)?;
    if !session.has_run_to_go_on() {
        bail!(
            "the journal `{}` has no run, because the program was killed before it began; delete \
             the journal and run the program again",
            args.journal.display()
        );
    }
    let interrupts = Interrupts::of(&session)?;
    let viewer = Viewer::new(args.show_dir.as_deref(), false)?;
    let shown = Shown { raw: args.raw, max_bytes: args.policy.max_output, viewer };
    let mut files = permissions.host_files(&mut session)?;
    if args.json {
        let execution = interrupts.during(|| session.go_on())?;
        let execution = execution.context("the session has no run that is to go on")?;
        shown.viewer.write(execution.displays())?;
        files.write_back(&mut session)?;
        json::write_line(io::stdout().lock(), &report::RunReport::new(&execution))
            .context("cannot write to standard output")?;
        return Ok(exit::status(&execution));
    }
    let streamed = output::stream_run(
        &mut session,
        isolet::blocking::Session::go_on_streaming,
        &shown,
        &interrupts,
    )?;
    let written = files.write_back(&mut session).and_then(|()| files.export(&mut session));
    if !streamed.is_reader_gone {
        show_outcome(&streamed.execution, args.raw)?;
        streamed.show_missing()?;
    }
    written?;
    Ok(streamed.status())
}
