//! `isolet skill`: runs scripts of Agent Skills, and says what they need. See
//! `docs/guides/skills.md`.

mod needs;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Command, Subcommand};
use isolet_support::skills::{Language, Skill};

use crate::args::policy::PolicyArgs;
use crate::run::{self, RunArgs};
use crate::show::exit;
use crate::show::terminal::Printer;
use needs::Needs;

#[derive(Subcommand)]
pub(crate) enum SkillCommand {
    /// Run a script of a skill
    Run(Box<SkillRunArgs>),
    /// Say what a skill's scripts need, and what of it is missing
    Check(Box<SkillCheckArgs>),
}

#[derive(clap::Args)]
pub(crate) struct SkillRunArgs {
    /// Directory of the skill, which the guest sees at /skills/NAME
    directory: PathBuf,
    /// Script of the skill, such as scripts/fill.py or fill.py, and its arguments. Not needed if
    /// the skill has one script, and no arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "SCRIPT [ARGS]")]
    script: Vec<String>,
    /// Print one line of JSON instead of the output: the result of the run, or why there is none
    #[arg(long)]
    json: bool,
    /// Pass output to a terminal unfiltered, escape sequences included
    #[arg(long)]
    raw: bool,
    /// Write what the run displays to files in this directory: pictures, tables, charts
    #[arg(long, value_name = "DIR")]
    show_dir: Option<PathBuf>,
    /// Write the files that the run makes to this directory: those of the guest's home under their
    /// names, others under their whole paths
    #[arg(long, value_name = "DIR")]
    files_dir: Option<PathBuf>,
    #[command(flatten)]
    policy: PolicyArgs,
}

#[derive(clap::Args)]
pub(crate) struct SkillCheckArgs {
    /// Directory of the skill
    directory: PathBuf,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    policy: PolicyArgs,
}

/// `definition` makes the definition of isolet's command line.
pub(crate) fn skill(
    wanted: SkillCommand,
    assets: Option<&Path>,
    definition: fn() -> Command,
) -> Result<ExitCode> {
    match wanted {
        SkillCommand::Run(args) => run(*args, assets, definition),
        SkillCommand::Check(args) => check(*args, assets),
    }
}

fn run(
    mut args: SkillRunArgs,
    assets: Option<&Path>,
    definition: fn() -> Command,
) -> Result<ExitCode> {
    let skill = Skill::read(&args.directory)?;
    let mut words = std::mem::take(&mut args.script).into_iter();
    let (path, _) = match words.next() {
        Some(wanted) => skill.script(&wanted)?,
        None => only_script(&skill)?,
    };
    let file = skill.directory.join(path).into_os_string().into_string();
    let Ok(file) = file else { bail!("`{path}` is not UTF-8") };
    prepare(&mut args.policy, &skill, args.json)?;
    let SkillRunArgs { json, raw, show_dir, files_dir, policy, .. } = args;
    let args = RunArgs::of_file(file, words.collect(), policy);
    run::run(RunArgs { json, raw, show_dir, files_dir, ..args }, assets, definition)
}

fn only_script(skill: &Skill) -> Result<(&str, Language)> {
    let scripts: Vec<_> = skill.scripts().collect();
    match scripts[..] {
        [only] => Ok(only),
        [] => bail!("the skill `{}` has no scripts", skill.name),
        _ => {
            let names: Vec<_> = scripts.iter().map(|(path, _)| *path).collect();
            bail!("name a script of the skill `{}`: {}", skill.name, names.join(", "))
        }
    }
}

/// Shows the skill to the guest, and takes away what it does not ask for.
fn prepare(policy: &mut PolicyArgs, skill: &Skill, is_quiet: bool) -> Result<()> {
    let permissions = &mut policy.permissions;
    permissions.show_at(&skill.directory, skill.guest_directory())?;
    if !skill.asks_for_network() && permissions.deny_network() && !is_quiet && !policy.quiet {
        writeln!(
            io::stderr(),
            "note: the skill `{}` does not ask for the network in `compatibility` or \
             `allowed-tools`, so it has none",
            skill.name
        )?;
    }
    Ok(())
}

fn check(mut args: SkillCheckArgs, assets: Option<&Path>) -> Result<ExitCode> {
    let skill = Skill::read(&args.directory)?;
    let has_network = args.policy.permissions.reach().network;
    prepare(&mut args.policy, &skill, true)?;
    let packages = args.policy.permissions.packages("")?;
    let (sandbox, packages) = args.policy.sandbox(assets, true, &packages)?;
    let mut session = sandbox.blocking().session()?;
    args.policy.permissions.prepare(&mut session, &packages)?;
    let needs = Needs::of(&skill, &mut session, has_network)?;
    if args.json {
        isolet_support::json::write_line(io::stdout().lock(), &needs)?;
    } else {
        write!(io::stdout(), "{}", Printer::new(false).for_stdout(&needs.to_string()))?;
    }
    Ok(if needs.is_met() { ExitCode::SUCCESS } else { ExitCode::from(exit::RAISED) })
}
