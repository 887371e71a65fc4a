//! `isolet doctor`: reports the installed parts, whether they are intact, and the isolation in
//! force.

mod capacity;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use isolet::{Engine, Sandbox, SystemCall, find_assets, system_calls, v8_version};
use isolet_pyodide_assets::{lock, verify};

use crate::args::isolation::IsolationArgs;
use crate::show::exit;
use crate::show::progress;

#[derive(clap::Args)]
pub(crate) struct DoctorArgs {
    /// Also print the system calls that do not kill a worker process, each with its reason
    #[arg(short, long)]
    verbose: bool,
    /// Also check that a node can have COUNT sessions: descriptors, tasks, memory
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    serve: Option<u64>,
    #[command(flatten)]
    isolation: IsolationArgs,
}

pub(crate) fn doctor(args: &DoctorArgs, assets: Option<&Path>) -> Result<ExitCode> {
    let mut out = io::stdout().lock();
    writeln!(out, "isolet     {}", env!("CARGO_PKG_VERSION"))?;
    writeln!(out, "V8         {}", v8_version())?;
    writeln!(out, "Pyodide    {}", lock()?.version())?;
    let dir = find_assets(assets)?;
    writeln!(out, "assets     {}", dir.display())?;
    let verification = verify(&dir)?;
    for file in verification.files() {
        writeln!(out, "           {file}")?;
    }
    if !verification.is_ok() {
        return Ok(exit::FAILED.into());
    }
    // Before anything starts, which may end this process.
    for obstacle in Engine::obstacles() {
        writeln!(out, "obstacle   {obstacle}")?;
    }
    let builder = Engine::builder().assets(&dir).on_notice(progress::notice);
    let engine = args.isolation.confine(builder).build()?;
    match engine.image_path() {
        Some(path) => writeln!(out, "image      {}", path.display())?,
        None => writeln!(out, "image      in memory only")?,
    }
    let sandbox = Sandbox::builder(&engine).build()?;
    let mut session = sandbox.blocking().session()?;
    let execution = session.run("import sys; sys.version.split()[0]")?;
    let version = execution.value().and_then(|value| value.as_str()).unwrap_or("did not answer");
    writeln!(out, "Python     {version}")?;
    writeln!(out, "\n{}", session.isolation())?;
    if args.verbose {
        print_system_calls(&mut out, &system_calls())?;
    }
    if let Some(sessions) = args.serve
        && !capacity::report(&mut out, sessions)?
    {
        return Ok(exit::FAILED.into());
    }
    Ok(ExitCode::SUCCESS)
}

fn print_system_calls(out: &mut impl Write, calls: &[SystemCall]) -> io::Result<()> {
    writeln!(
        out,
        "\nSystem calls that do not kill a worker, with the reason for each \
         (`depends`: on arguments)"
    )?;
    let width = calls.iter().map(|call| call.name.len()).max().unwrap_or_default();
    for SystemCall { name, rule, reason, .. } in calls {
        writeln!(out, "{name:width$}  {rule:7}  {reason}", rule = rule.name())?;
    }
    Ok(())
}
