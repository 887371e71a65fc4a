//! The options that define a sandbox.

use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::Result;
use isolet::{Engine, EngineBuilder, Limits, Sandbox, SandboxBuilder};

use super::isolation::IsolationArgs;
use super::permissions::PermissionArgs;
use super::value_parsers;
use crate::kit::engine::open_engine;
use crate::show::progress::{self, Progress};
use crate::show::terminal;

/// The most bytes of each output stream that `--json` keeps.
const KEPT_OUTPUT_BYTES: u64 = 16 << 20;

/// How many times the time of a run the packages of an image may take to be imported: what follows
/// is V8's, which optimises all that has run.
const IMPORT_TIMES: u32 = 4;

/// What a sandbox is made of.
#[derive(clap::Args)]
#[command(next_help_heading = "Limits and isolation")]
pub(crate) struct PolicyArgs {
    /// Maximum time of a run, such as 500ms, 10s, 2m or none
    ///
    /// It is wall-clock time, and without a unit in seconds. Importing packages for an image, once,
    /// may take four times as long.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = value_parsers::duration)]
    pub(crate) timeout: Duration,
    /// Maximum size of each output stream, such as 64KiB [default: no limit; with --json 16MiB]
    ///
    /// isolet drops the rest and exits with status 3; with --json it drops the middle.
    #[arg(long, value_name = "BYTES", value_parser = value_parsers::bytes, hide_short_help = true)]
    pub(crate) max_output: Option<u64>,
    /// Maximum memory of a session, such as 256MiB
    ///
    /// Beyond it Python raises `MemoryError`.
    #[arg(long, value_name = "BYTES", default_value = "1GiB", value_parser = value_parsers::bytes)]
    pub(crate) memory: u64,
    /// Do not tell of slow steps, such as making an image or fetching packages
    #[arg(short, long, hide_short_help = true, help_heading = "Options")]
    pub(crate) quiet: bool,
    /// Make the session deterministic: random numbers, clocks and the order of threads and tasks
    /// are derived from this number
    #[arg(long, value_name = "NUMBER", hide_short_help = true)]
    pub(crate) seed: Option<u64>,
    /// When a session with a seed starts, such as 2026-07-01T12:00:00Z
    /// [default: 2026-01-01T00:00:00Z]
    #[arg(long, value_name = "TIME", requires = "seed", value_parser = value_parsers::time)]
    #[arg(hide_short_help = true)]
    pub(crate) start_time: Option<SystemTime>,
    /// Set for a session that is recorded, which goes on where the terminal is another one, and for
    /// one whose output goes elsewhere.
    #[arg(skip)]
    pub(crate) has_no_terminal: bool,
    #[command(flatten)]
    pub(crate) isolation: IsolationArgs,
    #[command(flatten)]
    pub(crate) permissions: PermissionArgs,
}

impl PolicyArgs {
    /// Makes the sandbox of a run with these `packages`. Returns those that are to be loaded.
    /// `keeps_output` is set if the output is kept, not only passed on.
    pub(crate) fn sandbox(
        &self,
        assets: Option<&Path>,
        keeps_output: bool,
        packages: &[String],
    ) -> Result<(Sandbox, Vec<String>)> {
        self.sandbox_with(assets, keeps_output, packages, SandboxBuilder::limits)
    }

    /// The same, if `extend` gives the sandbox its limits, and more.
    pub(crate) fn sandbox_with(
        &self,
        assets: Option<&Path>,
        keeps_output: bool,
        packages: &[String],
        extend: impl FnOnce(SandboxBuilder, Limits) -> SandboxBuilder,
    ) -> Result<(Sandbox, Vec<String>)> {
        let kept = if keeps_output { self.max_output.unwrap_or(KEPT_OUTPUT_BYTES) } else { 0 };
        let progress = self.progress(keeps_output);
        let (engine, packages) = open_engine(assets, &self.permissions.ca_file, |assets| {
            let builder = self.isolation.confine(Engine::builder().assets(assets));
            let builder = if self.quiet { builder } else { builder.on_notice(progress::notice) };
            // Importing a package runs code of guests, too. It is done once.
            let import_time = self.timeout.saturating_mul(IMPORT_TIMES);
            let builder = builder.max_import_time(import_time.min(EngineBuilder::IMPORT_TIME));
            progress.during(&progress::of_engine(packages), || {
                self.permissions.engine(builder, self.memory, packages.to_vec())
            })
        })?;
        let limits = Limits::default()
            .max_run_time(self.timeout)
            .max_stdout_bytes(kept)
            .max_stderr_bytes(kept)
            .max_memory_bytes(self.memory);
        let mut builder = extend(Sandbox::builder(&engine), limits);
        if let Some(seed) = self.seed {
            builder = builder.deterministic(seed, self.start_time);
        }
        let terminal = terminal::terminal().filter(|_| !keeps_output && !self.has_no_terminal);
        if let Some(terminal) = terminal {
            builder = builder.terminal(terminal);
        }
        let variables = terminal.map(terminal::variables).unwrap_or_default();
        Ok((self.permissions.grant(builder, variables)?.build()?, packages))
    }

    pub(crate) fn progress(&self, is_json: bool) -> Progress {
        Progress::new(self.quiet || is_json)
    }
}
