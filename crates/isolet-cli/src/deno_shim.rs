//! `isolet deno-shim`, and isolet under the name `deno`: implements the part of Deno's command line
//! with which DSPy finds its interpreter and starts its runner. The runner is then `isolet dspy`.

use crate::show::print::print;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Parser;

use crate::dspy::{self, DspyArgs};
use isolet_support::json;

/// A version that DSPy accepts: at least 2.0.0 and below 3.0.0.
const DENO_VERSION: &str = "2.9.0";

/// Returns `true` if the program was called as `deno`.
pub(crate) fn is_called_for(program: Option<&OsString>) -> bool {
    program.and_then(|program| Path::new(program).file_stem()).is_some_and(|name| name == "deno")
}

/// Does what DSPy expects of `deno` with these arguments.
pub(crate) fn deno_shim(
    arguments: impl IntoIterator<Item = OsString>,
    assets: Option<&Path>,
) -> Result<ExitCode> {
    let mut arguments = arguments.into_iter();
    let first = arguments.next().unwrap_or_default();
    match first.to_str().unwrap_or_default() {
        "--version" | "-V" => {
            print(&format!("deno {DENO_VERSION} (isolet {})\n", env!("CARGO_PKG_VERSION")))
        }
        // DSPy permits its runner to read this directory; isolet's runner does not use it.
        "info" => {
            json::print(&serde_json::json!({ "denoDir": deno_dir() }))?;
            Ok(ExitCode::SUCCESS)
        }
        // The runner needs no further files.
        "cache" => Ok(ExitCode::SUCCESS),
        "run" => dspy::dspy(runner_args(arguments)?, assets),
        other => bail!(
            "`deno {other}` is not what DSPy calls; isolet stands in for `deno --version`, `deno \
             info`, `deno cache` and `deno run`"
        ),
    }
}

/// Converts the arguments of `deno run` to those of `isolet dspy`. Keeps permissions, except those
/// for the runner's own files.
fn runner_args(arguments: impl Iterator<Item = OsString>) -> Result<DspyArgs> {
    #[derive(Parser)]
    struct Wrapper {
        #[command(flatten)]
        args: DspyArgs,
    }
    let mut kept = vec![OsString::from("isolet dspy")];
    let mut runner: Option<PathBuf> = None;
    let mut own_dir: Option<PathBuf> = None;
    for argument in arguments {
        let text = argument.to_string_lossy();
        if let Some(dir) = text.strip_prefix("--dspy-deno-dir=") {
            own_dir = Some(PathBuf::from(dir));
        } else if runner.is_none() && text.starts_with("--allow-") {
            kept.push(argument);
        } else if runner.is_none() && !text.starts_with('-') {
            runner = Some(PathBuf::from(argument));
        }
        // Other arguments are settings of Deno itself, or repeat the names of --allow-env.
    }
    let mut args = Wrapper::try_parse_from(kept)?.args;
    args.allow_read.retain(|path| Some(path) != runner.as_ref() && Some(path) != own_dir.as_ref());
    Ok(args)
}

/// Returns a directory that DSPy can name as Deno's cache. It need not exist.
fn deno_dir() -> PathBuf {
    std::env::temp_dir().join("isolet-has-no-deno-dir")
}
