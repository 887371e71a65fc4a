//! Paths of the repository and the build, and child processes whose exit status is passed on.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};

use anyhow::{Context, Result};

/// Returns the directory of the repository.
pub(crate) fn root() -> PathBuf {
    let xtask = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().map_or_else(|| xtask.clone(), PathBuf::from)
}

/// Returns the directory of Pyodide's files in the repository.
pub(crate) fn assets_dir() -> PathBuf {
    root().join("pyodide-assets/dist")
}

/// The package of the command `isolet`.
pub(crate) const COMMAND: &str = "isolet-cli";

/// Returns cargo's target directory.
///
/// Cargo puts this program into `TARGET_DIR/debug`, however the target directory was chosen.
pub(crate) fn target_dir() -> Result<PathBuf> {
    let here = env::current_exe().context("cannot tell where `xtask` itself is")?;
    let target = here.ancestors().nth(2).context("`xtask` is not in a target directory")?;
    Ok(target.to_owned())
}

/// A profile of `Cargo.toml`, which says what the profile is for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Profile {
    FastBuild,
    Release,
}

impl Profile {
    /// Returns the name that cargo, maturin and the target directory have for it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::FastBuild => "fast-build",
            Self::Release => "release",
        }
    }

    /// Returns the path of a program that a build with this profile made.
    pub(crate) fn built(self, name: &str) -> Result<PathBuf> {
        Ok(target_dir()?.join(self.name()).join(name).with_extension(env::consts::EXE_EXTENSION))
    }
}

/// The crates of the command, which tests build without optimisation.
const OF_THE_COMMAND: [&str; 8] = [
    "isolet",
    "isolet-cli",
    "isolet-jupyter",
    "isolet-mcp",
    "isolet-pyodide-assets",
    "isolet-serve",
    "isolet-service",
    "isolet-support",
];

/// Has cargo, or a program that calls it, build the command as `release` does, from the
/// dependencies that tests and `cargo xtask run` have built: only our own crates are compiled.
pub(crate) fn optimized(command: &mut Command) -> &mut Command {
    let profile = Profile::FastBuild.name();
    command.args(["--profile", profile, "--config"]);
    command.arg(format!("profile.{profile}.incremental=false"));
    for name in OF_THE_COMMAND {
        let level = format!("profile.{profile}.package.{name}.opt-level=3");
        command.args(["--config", &level]);
    }
    command
}

/// Returns a call of the same cargo that runs this program, in the repository, as a person would
/// call it.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    as_by_hand(command.current_dir(root()));
    command
}

/// Returns such a call that leaves the processors to all others.
pub(crate) fn niced() -> Command {
    if cfg!(not(unix)) {
        return cargo();
    }
    let mut command = Command::new("nice");
    command.args(["-n", "19"]).arg(cargo().get_program());
    as_by_hand(command.current_dir(root()));
    command
}

/// Hides from a command that builds what `cargo run` has set for this program. To build scripts it
/// would look like changed inputs, and what depends on them would be built anew each other time.
pub(crate) fn as_by_hand(command: &mut Command) {
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&*name);
        }
    }
}

/// Makes programs use Pyodide's files in the repository, unless the caller has set others.
pub(crate) fn with_assets(command: &mut Command) -> &mut Command {
    if env::var_os("ISOLET_ASSETS").is_none() {
        command.env("ISOLET_ASSETS", assets_dir());
    }
    command
}

/// Runs a command and requires that it succeeds. The command does not get the standard input, which
/// is kept for later commands.
pub(crate) fn check(command: &mut Command) -> Result<()> {
    let status = status(command.stdin(Stdio::null()))?;
    anyhow::ensure!(status.success(), "{} ended with {status}", shown(command));
    Ok(())
}

/// Runs a command and returns its exit status.
pub(crate) fn status(command: &mut Command) -> Result<ExitStatus> {
    command.status().with_context(|| format!("cannot run {}", shown(command)))
}

/// Starts a command.
pub(crate) fn spawn(command: &mut Command) -> Result<Child> {
    command.spawn().with_context(|| format!("cannot run {}", shown(command)))
}

/// Whether there is such a program, and it says that it is of this version.
pub(crate) fn is_version(program: &Path, version: &str) -> bool {
    let said = Command::new(program).arg("--version").stderr(Stdio::null()).output();
    said.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).trim_end().ends_with(version))
}

/// Returns the exit code that passes on a child's status: its own, or 128 + n after signal n.
pub(crate) fn exit_code(status: ExitStatus) -> ExitCode {
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let signal = None;
    let code = status.code().or(signal.map(|signal: i32| 128 + signal));
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// Replaces this program by another one, which takes over the streams, signals and exit code.
#[cfg(unix)]
pub(crate) fn replace_by(command: &mut Command) -> Result<ExitCode> {
    let error = std::os::unix::process::CommandExt::exec(command);
    Err(error).with_context(|| format!("cannot run {}", shown(command)))
}

/// Runs another program with the caller's streams and passes on its exit code.
#[cfg(not(unix))]
pub(crate) fn replace_by(command: &mut Command) -> Result<ExitCode> {
    status(command).map(exit_code)
}

/// Returns the command as a person would type it.
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
    fn each_crate_that_tests_build_without_optimisation_is_released_with_it() {
        let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
        let sections = manifest.split("\n[profile.fast-build.package.").skip(1);
        let names = sections.filter_map(|section| section.split_once(']')).map(|(name, _)| name);
        let of_tests = ["isolet-test-support", "xtask"];
        let mut names: Vec<&str> = names.filter(|name| !of_tests.contains(name)).collect();
        names.sort_unstable();
        assert_eq!(names, OF_THE_COMMAND);
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
