//! Asks the registries for versions and packages, through cargo and npm only, for a limited time.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use isolet_pyodide_assets::Digest;

use super::version::Version;
use crate::{bounded, process};

/// How long a question may take. Clients without a network try for minutes otherwise.
const LIMIT: Duration = Duration::from_mins(1);

const DENO_CORE: &str = "deno_core";
const PYODIDE: &str = "pyodide";

/// Returns the newest `deno_core`.
pub(super) fn newest_deno_core() -> Result<Version> {
    let said = info(DENO_CORE)?;
    Version::parse(newest_of(&said).context("`cargo info deno_core` names no version")?)
}

/// Requires that there is such a `deno_core`.
pub(super) fn require_deno_core(version: &Version) -> Result<()> {
    info(&format!("{DENO_CORE}@{version}")).map(drop)
}

/// Returns what `cargo info` says of a package, asked outside of this workspace, where it would say
/// what is locked.
fn info(package: &str) -> Result<String> {
    let mut cargo = process::cargo();
    cargo.args(["info", "--color", "never", package]).current_dir(env::temp_dir());
    match asked(&mut cargo, LIMIT)? {
        Answer::Said(text) => Ok(text),
        Answer::Refused(error) if error.contains("could not find") => {
            bail!("the registry of crates has no `{package}`")
        }
        Answer::Refused(error) => {
            bail!("cannot ask the registry of crates for `{package}`: {}", cause(&error))
        }
    }
}

/// Returns the newest version that `cargo info` names.
fn newest_of(said: &str) -> Option<&str> {
    let version = said.lines().find_map(|line| line.strip_prefix("version: "))?;
    match version.split_once(" (latest ") {
        Some((_, latest)) => latest.strip_suffix(')'),
        None => version.split(' ').next(),
    }
}

/// Returns all versions of Pyodide that npm has.
pub(super) fn pyodides() -> Result<Vec<Version>> {
    let mut npm = npm();
    // Each further attempt waits longer.
    npm.args(["view", PYODIDE, "versions", "--json", "--fetch-retries", "1"]);
    match asked(&mut npm, LIMIT)? {
        Answer::Said(text) => {
            let versions: Vec<String> =
                serde_json::from_str(&text).context("npm lists the versions in an unknown form")?;
            versions.iter().map(|version| Version::parse(version)).collect()
        }
        Answer::Refused(error) => {
            bail!("cannot ask npm's registry for `{PYODIDE}`: {}", cause(&error))
        }
    }
}

/// An archive of npm, and where its files are.
pub(crate) struct Package {
    pub(super) sha256: Digest,
    pub(super) size: usize,
    pub(crate) files: PathBuf,
}

/// Brings the package of a Pyodide into `dir`, and unpacks it.
pub(super) fn pyodide(version: &Version, dir: &Path) -> Result<Package> {
    let version = version.to_string();
    package(PYODIDE, &version, &dir.join(&version))
}

/// Brings a package of npm into `dir`, which is made anew, and unpacks it.
pub(crate) fn package(name: &str, version: &str, dir: &Path) -> Result<Package> {
    let unwritable = || format!("cannot write `{}`", dir.display());
    if dir.exists() {
        fs::remove_dir_all(dir).with_context(unwritable)?;
    }
    fs::create_dir_all(dir).with_context(unwritable)?;
    let mut npm = npm();
    npm.args(["pack", "--silent", "--ignore-scripts"]).arg(format!("{name}@{version}"));
    if let Answer::Refused(error) = asked(npm.current_dir(dir), 3 * LIMIT)? {
        bail!("cannot get `{name}@{version}` from npm's registry: {}", cause(&error));
    }
    let archive = format!("{}-{version}.tgz", name.trim_start_matches('@').replace('/', "-"));
    let bytes = fs::read(dir.join(&archive)).context("`npm pack` wrote no archive")?;
    let mut tar = Command::new("tar");
    tar.args(["-xzf", &archive]).current_dir(dir);
    process::check(&mut tar)?;
    Ok(Package { sha256: Digest::of(&bytes), size: bytes.len(), files: dir.join("package") })
}

fn npm() -> Command {
    Command::new(OsStr::new(if cfg!(windows) { "npm.cmd" } else { "npm" }))
}

/// What a client answered.
pub(super) enum Answer {
    /// Its output.
    Said(String),
    /// What it said on standard error.
    Refused(String),
}

/// Runs a client that may need the network.
pub(super) fn asked(command: &mut Command, limit: Duration) -> Result<Answer> {
    let scratch = scratch("answers")?;
    let ran = bounded::run(command, limit, &scratch)?;
    let Some(status) = ran.status else {
        let seconds = limit.as_secs();
        return Ok(Answer::Refused(format!("no answer came in {seconds} seconds")));
    };
    Ok(if status.success() { Answer::Said(ran.stdout) } else { Answer::Refused(ran.stderr) })
}

/// Makes a directory of this command in the target directory.
pub(super) fn scratch(name: &str) -> Result<PathBuf> {
    let dir = process::target_dir()?.join("bump").join(name);
    fs::create_dir_all(&dir).with_context(|| format!("cannot make `{}`", dir.display()))?;
    Ok(dir)
}

/// Returns the line of an error that names its cause: npm's code, or the last one of cargo.
fn cause(error: &str) -> &str {
    let mut lines = error.lines().map(str::trim).filter(|line| !line.is_empty());
    let code = lines.clone().find(|line| line.starts_with("npm error code "));
    code.or_else(|| lines.next_back()).unwrap_or("no reason given")
}

/// Requires that a move goes forward, or nowhere.
pub(super) fn require_newer(what: &str, pinned: &Version, wanted: &Version) -> Result<()> {
    ensure!(wanted >= pinned, "{what} {wanted} is older than {pinned}, which is pinned");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_is_read_whatever_is_locked() {
        let said = "deno_core\nversion: 0.413.0\nlicense: MIT\n";
        assert_eq!(newest_of(said), Some("0.413.0"));
        let said = "deno_core\nversion: 0.412.0 (latest 0.413.0)\n";
        assert_eq!(newest_of(said), Some("0.413.0"));
        assert_eq!(newest_of("deno_core\nlicense: MIT\n"), None);
    }

    #[test]
    fn an_error_is_told_by_the_line_of_its_cause() {
        let cargo = "error: no\n\nCaused by:\n  [7] Could not connect to server\n";
        assert_eq!(cause(cargo), "[7] Could not connect to server");
        let npm = "npm error code ECONNREFUSED\nnpm error syscall connect\nnpm error A log ...\n";
        assert_eq!(cause(npm), "npm error code ECONNREFUSED");
        assert_eq!(cause(""), "no reason given");
    }

    #[test]
    fn a_move_back_is_refused() {
        let version = |text| Version::parse(text).unwrap();
        let (pinned, older) = (version("0.413.0"), version("0.412.0"));
        assert!(require_newer("deno_core", &pinned, &pinned).is_ok());
        let error = require_newer("deno_core", &pinned, &older).unwrap_err().to_string();
        assert_eq!(error, "deno_core 0.412.0 is older than 0.413.0, which is pinned");
    }
}
