//! Where things are, and child processes whose end becomes ours.

use std::env;
use std::path::PathBuf;
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use anyhow::{Context, Result};

/// The directory of the repository.
pub(crate) fn root() -> PathBuf {
    let xtask = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().map_or_else(|| xtask.clone(), PathBuf::from)
}

/// The directory of Pyodide's files in the repository.
pub(crate) fn assets_dir() -> PathBuf {
    root().join("pyodide-assets/dist")
}

/// Cargo's target directory.
///
/// Cargo put this program into `TARGET_DIR/debug`, whatever chose the target directory.
pub(crate) fn target_dir() -> Result<PathBuf> {
    let here = env::current_exe().context("cannot tell where `xtask` itself is")?;
    let target = here.ancestors().nth(2).context("`xtask` is not in a target directory")?;
    Ok(target.to_owned())
}

/// The path of something that a release build made.
pub(crate) fn built(name: &str) -> Result<PathBuf> {
    Ok(target_dir()?.join("release").join(name).with_extension(env::consts::EXE_EXTENSION))
}

/// A call of the cargo that runs this program, in the repository, as a person would call it.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    // What `cargo run` tells this program about itself would look to build scripts like a change
    // of their input, and make them run at every other build.
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&*name);
        }
    }
    command
}

/// Lets programs find Pyodide's files in the repository, unless the caller has others.
pub(crate) fn with_assets(command: &mut Command) -> &mut Command {
    if env::var_os("ISOLET_ASSETS").is_none() {
        command.env("ISOLET_ASSETS", assets_dir());
    }
    command
}

/// Runs a command and requires that it succeeds. Standard input is kept for what comes after it.
pub(crate) fn check(command: &mut Command) -> Result<()> {
    let status = status(command.stdin(Stdio::null()))?;
    anyhow::ensure!(status.success(), "{} ended with {status}", shown(command));
    Ok(())
}

/// Runs a command and returns how it ended.
pub(crate) fn status(command: &mut Command) -> Result<ExitStatus> {
    command.status().with_context(|| format!("cannot run {}", shown(command)))
}

/// The exit code with which to pass a child's end on: its own, or 128 + n after signal n.
pub(crate) fn exit_code(status: ExitStatus) -> ExitCode {
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let signal = None;
    let code = status.code().or(signal.map(|signal: i32| 128 + signal));
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// Becomes another program: its streams, signals and exit code are the caller's from here on.
#[cfg(unix)]
pub(crate) fn replace_by(command: &mut Command) -> Result<ExitCode> {
    let error = std::os::unix::process::CommandExt::exec(command);
    Err(error).with_context(|| format!("cannot run {}", shown(command)))
}

/// Runs another program with the caller's streams and passes its exit code on.
#[cfg(not(unix))]
pub(crate) fn replace_by(command: &mut Command) -> Result<ExitCode> {
    status(command).map(exit_code)
}

/// The command as a person would have typed it.
fn shown(command: &Command) -> String {
    let program = PathBuf::from(command.get_program());
    let program = program.file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    format!("`{}`", words.join(" "))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn end_of_a_child_is_passed_on() {
        for (script, code) in [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137)] {
            assert_eq!(exit_code(status(&mut shell(script)).unwrap()), ExitCode::from(code));
        }
    }

    #[test]
    fn failure_names_the_command() {
        let error = check(&mut shell("exit 3")).unwrap_err();
        assert_eq!(error.to_string(), "`sh -c exit 3` ended with exit status: 3");
        let error = check(&mut Command::new("/nonexistent/program")).unwrap_err();
        assert_eq!(error.to_string(), "cannot run `program`");
    }
}
