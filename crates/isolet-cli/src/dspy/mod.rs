//! `isolet dspy`: DSPy's runner protocol on standard input and output, so that its unmodified
//! `PythonInterpreter` runs on isolet.

mod bridge;
mod channel;
mod files;
mod messages;
mod runner;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use isolet::Limits;
use isolet::profile::python_interpreter::{InterpreterOptions, PythonInterpreter};

use crate::args::isolation::IsolationArgs;
use crate::args::value_parsers;
use crate::kit::person;
use channel::Channel;
use files::AllowedFiles;
use runner::Runner;

/// The maximum size of a variable, tool argument, result or output, in bytes. DSPy itself has no
/// limit. JSON text of it crosses several times, and the guest's memory ends at 4 GiB.
const MAX_VALUE_BYTES: u64 = 1 << 30;

/// What DSPy's options say the code may do.
#[derive(clap::Args)]
pub(crate) struct DspyArgs {
    /// Maximum wall-clock time of one execution, without its tool calls; beyond it the execution
    /// ends
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = value_parsers::duration)]
    pub(crate) timeout: Duration,
    /// Maximum time of the tool calls of one execution; beyond it the execution ends
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = value_parsers::duration)]
    pub(crate) host_timeout: Duration,
    /// Maximum memory of the session, such as 256MiB; beyond it Python raises `MemoryError`
    #[arg(long, value_name = "BYTES", default_value = "4GiB", value_parser = value_parsers::bytes)]
    pub(crate) memory: u64,
    /// Let the client copy a file to the guest; repeatable, or comma-separated
    #[arg(long, value_name = "PATH", value_delimiter = ',')]
    pub(crate) allow_read: Vec<PathBuf>,
    /// Let the client copy a file to the guest and back; repeatable, or comma-separated
    #[arg(long, value_name = "PATH", value_delimiter = ',')]
    pub(crate) allow_write: Vec<PathBuf>,
    /// Show a variable of the environment to the guest; repeatable, or comma-separated
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) allow_env: Vec<String>,
    /// Allow requests to a server; repeatable, or comma-separated
    #[arg(long, value_name = "HOST", value_delimiter = ',')]
    pub(crate) allow_net: Vec<String>,
    #[command(flatten)]
    pub(crate) isolation: IsolationArgs,
}

/// Serves one client until it sends `shutdown` or closes the pipe.
pub(crate) fn dspy(args: DspyArgs, assets: Option<&Path>) -> Result<ExitCode> {
    person::tell(
        "DSPy's protocol",
        "DSPy starts it: `PythonInterpreter(deno_command=[\"isolet\", \"dspy\"])`.",
    )?;
    let limits = Limits::default()
        .max_run_time(args.timeout)
        .max_host_time(args.host_timeout)
        .max_value_bytes(MAX_VALUE_BYTES)
        .max_call_bytes(MAX_VALUE_BYTES)
        .max_source_bytes(MAX_VALUE_BYTES)
        .max_stdout_bytes(MAX_VALUE_BYTES)
        .max_memory_bytes(args.memory);
    let mut options = InterpreterOptions::default();
    options.enable_env_vars = args.allow_env;
    options.enable_network_access = args.allow_net;
    options.limits = limits;
    let files = AllowedFiles::new(args.allow_read, args.allow_write);
    let interpreter = PythonInterpreter::new(&args.isolation.engine(assets)?, options);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("the event loop cannot start")?;
    let (channel, requests) = Channel::open().context("the reader thread cannot start")?;
    runtime.block_on(Runner::new(interpreter, files, channel).serve(requests))?;
    Ok(ExitCode::SUCCESS)
}
