//! The `isolet` command: its arguments and the dispatch to its subcommands.

mod assets;
mod audit;
mod cache;
mod deno_shim;
mod directory;
mod doctor;
mod dspy;
mod exit;
mod filter;
mod frames;
mod generate;
mod heap;
mod host_files;
mod http_server;
mod interrupts;
mod isolation;
mod journal;
mod json;
mod json_text;
mod made_files;
mod mcp;
mod monty;
mod notebook;
mod output;
mod packages;
mod permissions;
mod pictures;
mod program;
mod progress;
mod repl;
mod report;
mod run;
mod secret;
mod serve;
mod signal_mask;
mod signals;
mod sixel;
mod socket;
mod stack;
mod tables;
mod terminal;
mod tokens;
mod units;
mod version;
mod viewer;
mod words;

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use isolet::{Engine, EngineBuilder, Limits, Sandbox, SandboxBuilder};
use progress::Progress;

pub(crate) use self::stack::with_enough as with_enough_stack;

/// Run untrusted Python: CPython on WebAssembly in a V8 isolate, with every permission denied by
/// default.
#[derive(Parser)]
#[command(name = "isolet", version, long_version = version::long(), max_term_width = 100)]
struct Cli {
    /// Directory of the Pyodide assets [default: `$ISOLET_ASSETS`, or the checkout that isolet was
    /// built in, or the user's cache directory]
    #[arg(long, global = true, value_name = "DIR")]
    assets: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a script, notebook, module or directory
    Run(run::RunArgs),
    /// Start an interactive prompt
    Repl(repl::ReplArgs),
    /// Fetch or verify the Pyodide assets
    #[command(subcommand)]
    Assets(assets::AssetsCommand),
    /// Fetch packages into a directory, for machines without a network
    #[command(subcommand)]
    Packages(packages::PackagesCommand),
    /// List or remove isolet's files in the user's cache directory
    #[command(subcommand)]
    Cache(cache::CacheCommand),
    /// Print the installed versions and the isolation layers in force
    Doctor(doctor::DoctorArgs),
    /// Serve sandboxes and sessions to a program, or over HTTP to many clients
    Serve(serve::ServeArgs),
    /// Serve Python to an MCP client, such as an assistant or an editor
    Mcp(Box<mcp::McpArgs>),
    /// Serve DSPy as its interpreter: `PythonInterpreter(deno_command=["isolet", "dspy"])`
    Dspy(dspy::DspyArgs),
    /// Serve Monty's clients as their worker: `MONTY_BIN=$(which isolet)`
    #[command(visible_alias = "subprocess")]
    Monty(monty::MontyArgs),
    /// Print a shell's completion script
    Completions(generate::CompletionsArgs),
    /// Print a manual page, or write all of them
    Man(generate::ManArgs),
    /// Print the licences of V8, Pyodide, CPython and isolet's other components
    Licenses,
    /// Replace `deno` for DSPy, as isolet does when it is called by the name `deno`
    #[command(disable_help_flag = true)]
    DenoShim {
        /// The arguments of `deno`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
}

/// How many bytes of each output stream `--json` keeps.
const KEPT_OUTPUT_BYTES: u64 = 16 << 20;

/// What a sandbox is made of.
#[derive(Args)]
struct PolicyArgs {
    /// Maximum wall-clock time of a run: 500ms, 10s, 2m, seconds without a unit, or none. Importing
    /// packages for an image may take as long, too
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = units::duration)]
    timeout: std::time::Duration,
    /// Maximum time of the host's functions in a run, which --timeout does not include
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = units::duration)]
    host_timeout: std::time::Duration,
    /// Maximum size of each output stream, such as 64KiB. isolet drops the rest and exits with
    /// status 3; with --json it drops the middle [default: no limit; with --json 16MiB]
    #[arg(long, value_name = "BYTES", value_parser = units::bytes)]
    max_output: Option<u64>,
    /// Maximum memory of a session, such as 256MiB; beyond it Python raises `MemoryError`
    #[arg(long, value_name = "BYTES", default_value = "1GiB", value_parser = units::bytes)]
    memory: u64,
    /// Do not show the progress of slow steps, such as making an image or fetching packages
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    isolation: isolation::IsolationArgs,
    #[command(flatten)]
    permissions: permissions::PermissionArgs,
}

impl PolicyArgs {
    /// Makes the sandbox of a run with these `packages`. Returns those that are to be loaded.
    /// `keeps_output` is set if the output is kept, not only passed on.
    fn sandbox(
        &self,
        assets: Option<&std::path::Path>,
        keeps_output: bool,
        packages: &[String],
    ) -> Result<(Sandbox, Vec<String>)> {
        self.sandbox_with(assets, keeps_output, packages, SandboxBuilder::limits)
    }

    /// The same, if `extend` gives the sandbox its limits, and more.
    fn sandbox_with(
        &self,
        assets: Option<&std::path::Path>,
        keeps_output: bool,
        packages: &[String],
        extend: impl FnOnce(SandboxBuilder, Limits) -> SandboxBuilder,
    ) -> Result<(Sandbox, Vec<String>)> {
        let kept = if keeps_output { self.max_output.unwrap_or(KEPT_OUTPUT_BYTES) } else { 0 };
        let progress = self.progress(keeps_output);
        let (engine, packages) =
            assets::open_engine(assets, &self.permissions.ca_file, |assets| {
                let builder = self.isolation.confine(Engine::builder().assets(assets));
                let builder =
                    if self.quiet { builder } else { builder.on_notice(progress::notice) };
                // What packages do when they are imported is code of guests, too.
                let builder = builder.max_import_time(self.timeout.min(EngineBuilder::IMPORT_TIME));
                progress.during(&progress::of_engine(packages), || {
                    self.permissions.engine(builder, self.memory, packages.to_vec())
                })
            })?;
        let limits = Limits::default()
            .max_run_time(self.timeout)
            .max_host_time(self.host_timeout)
            .max_stdout_bytes(kept)
            .max_stderr_bytes(kept)
            .max_memory_bytes(self.memory);
        let mut builder = extend(Sandbox::builder(&engine), limits);
        let terminal = terminal::terminal().filter(|_| !keeps_output);
        if let Some(terminal) = terminal {
            builder = builder.terminal(terminal);
        }
        let variables = terminal.map(terminal::variables).unwrap_or_default();
        Ok((self.permissions.grant(builder, variables)?.build()?, packages))
    }

    fn progress(&self, is_json: bool) -> Progress {
        Progress::new(self.quiet || is_json)
    }
}

/// Generated by `cargo xtask licenses`.
const NOTICES: &str = include_str!("../../third_party/licenses/THIRD-PARTY.txt");

/// Runs the command line and returns the exit status.
pub(crate) fn main() -> ExitCode {
    signal_mask::unblock_all();
    let mut arguments = std::env::args_os();
    if deno_shim::is_called_for(arguments.next().as_ref()) {
        signals::end_as_first_process();
        let result = deno_shim::deno_shim(arguments, None);
        return result.unwrap_or_else(|error| exit::report(&error));
    }
    let words: Vec<OsString> = std::env::args_os().collect();
    let cli = match parse(words.clone()) {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() && words::ask_for_json(&words) => {
            // If standard output is closed, nobody can be told.
            let _ = json::print(&report::usage(&error));
            return ExitCode::from(exit::FAILED);
        }
        Err(error) => error.exit(),
    };
    let assets = cli.assets.as_deref();
    let is_json = match &cli.command {
        Command::Run(args) => args.json,
        Command::Packages(packages::PackagesCommand::Fetch(args)) => args.json,
        _ => false,
    };
    match &cli.command {
        Command::Mcp(args) if !args.is_chore() => {}
        Command::Serve(args) if !args.is_pipe() => {}
        _ => signals::end_as_first_process(),
    }
    let result = match cli.command {
        Command::Run(args) => run::run(args, assets),
        Command::Repl(args) => repl::repl(&args, assets),
        Command::Assets(command) => assets::assets(&command, assets),
        Command::Packages(command) => packages::packages(&command, assets),
        Command::Cache(command) => cache::cache(&command),
        Command::Doctor(args) => doctor::doctor(&args, assets),
        Command::Completions(args) => generate::completions(&args),
        Command::Licenses => print(NOTICES),
        Command::Man(args) => generate::man(&args),
        Command::Serve(args) => serve::serve(&args, assets),
        Command::Mcp(args) => mcp::mcp(*args, assets),
        Command::Dspy(args) => dspy::dspy(args, assets),
        Command::Monty(args) => monty::monty(&args, assets),
        Command::DenoShim { arguments } => deno_shim::deno_shim(arguments, assets),
    };
    result.unwrap_or_else(|error| exit::report_as(&error, is_json))
}

/// Parses the command line. An invalid one is an error, and so is `--help`.
fn parse(words: Vec<OsString>) -> Result<Cli, clap::Error> {
    let mut command = Cli::command();
    let words = words::end_options(words, &mut command);
    let mut matches = command.try_get_matches_from(words)?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut Cli::command()))
}

fn engine(
    assets: Option<&std::path::Path>,
    isolation: &isolation::IsolationArgs,
) -> Result<Engine> {
    assets::open_engine(assets, &[], |assets| {
        let builder = Engine::builder().assets(assets).on_notice(progress::notice);
        Ok(isolation.confine(builder).build()?)
    })
}

/// Prints to standard output. A reader that has gone away is not a failure.
fn print(text: &str) -> Result<ExitCode> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(ExitCode::SUCCESS),
    }
}
