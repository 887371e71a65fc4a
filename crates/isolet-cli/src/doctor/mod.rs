//! `isolet doctor`: reports the installed parts, whether they are intact, and the isolation in
//! force.

mod capacity;
mod report;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use isolet::{Engine, Sandbox, SystemCall, find_assets, system_calls, v8_version};
use isolet_pyodide_assets::{lock, verify};

use isolet_service::core::in_options;
use isolet_support::json;

use self::capacity::Capacity;
use self::report::{Assets, Call, Confinement, Report};
use crate::args::isolation::IsolationArgs;
use crate::show::exit;
use crate::show::progress;

#[derive(clap::Args)]
pub(crate) struct DoctorArgs {
    /// Also print the system calls that do not kill a worker process, each with its reason
    #[arg(short, long)]
    verbose: bool,
    /// Print one JSON object instead
    #[arg(long)]
    json: bool,
    /// Also check that a node can have COUNT sessions: descriptors, tasks, memory
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    serve: Option<u64>,
    #[command(flatten)]
    isolation: IsolationArgs,
}

pub(crate) fn doctor(args: &DoctorArgs, assets: Option<&Path>) -> Result<ExitCode> {
    let mut report = Report {
        isolet: env!("CARGO_PKG_VERSION"),
        v8: v8_version(),
        pyodide: lock()?.version(),
        ..Report::default()
    };
    if !args.json {
        let found = examine(args, assets, &mut report, &mut io::stdout().lock())?;
        return Ok(if found { ExitCode::SUCCESS } else { exit::FAILED.into() });
    }
    match examine(args, assets, &mut report, &mut io::sink()) {
        Ok(found) => report.ok = found,
        Err(error) => report.error = Some(in_options(&exit::message(&error))),
    }
    json::print(&report)?;
    Ok(if report.ok { ExitCode::SUCCESS } else { exit::FAILED.into() })
}

/// Completes the report, and writes each line once it is known: what follows may end this process.
/// Returns `true` if everything is as it has to be.
fn examine(
    args: &DoctorArgs,
    assets: Option<&Path>,
    report: &mut Report,
    out: &mut impl Write,
) -> Result<bool> {
    writeln!(out, "isolet     {}", report.isolet)?;
    writeln!(out, "V8         {}", report.v8)?;
    writeln!(out, "Pyodide    {}", report.pyodide)?;
    let dir = find_assets(assets)?;
    writeln!(out, "assets     {}", dir.display())?;
    let verification = verify(&dir)?;
    report.assets = Assets::new(dir.display().to_string(), &verification);
    for file in verification.files() {
        writeln!(out, "           {file}")?;
    }
    if !verification.is_ok() {
        report.error = Some("files of the assets are missing or damaged".to_owned());
        return Ok(false);
    }
    report.obstacles = Engine::obstacles();
    for obstacle in &report.obstacles {
        writeln!(out, "obstacle   {obstacle}")?;
    }
    let builder = Engine::builder().assets(&dir).on_notice(progress::notice);
    let engine = args.isolation.confine(builder).build()?;
    report.image = engine.image_path().map(|path| path.display().to_string());
    writeln!(out, "image      {}", report.image.as_deref().unwrap_or("in memory only"))?;
    let sandbox = Sandbox::builder(&engine).build()?;
    let mut session = sandbox.blocking().session()?;
    let execution = session.run("import sys; sys.version.split()[0]")?;
    report.python = execution.value().and_then(|value| value.as_str()).map(str::to_owned);
    writeln!(out, "Python     {}", report.python.as_deref().unwrap_or("did not answer"))?;
    report.isolation = Some(Confinement::new(session.isolation()));
    writeln!(out, "\n{}", session.isolation())?;
    if args.verbose {
        let calls = system_calls();
        report.system_calls = Some(calls.iter().map(Call::from).collect());
        print_system_calls(out, &calls)?;
    }
    let Some(sessions) = args.serve else { return Ok(true) };
    let capacity = Capacity::of(sessions);
    capacity.print(out)?;
    let is_enough = capacity.is_enough();
    report.capacity = Some(capacity);
    Ok(is_enough)
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
