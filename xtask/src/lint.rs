//! `cargo xtask lint`: what linters find in the JavaScript and the Python here, which no compiler
//! reads before a guest runs it.
//!
//! oxlint is a program without dependencies from npm, ruff one from PyPI. Each is installed once,
//! at the version that is named here, into the target directory; then no network is needed.
//! Both find what cannot be parsed, too.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};

use crate::process;

const OXLINT: &str = "1.94.0";
const RUFF: &str = "0.17.6";

const JAVASCRIPT: &[&str] = &["js", "benches"];

/// Without the corpus, which does what a linter warns of to see what comes of it, and without
/// programs of tests whose names the tests put there.
const PYTHON: &[&str] = &[
    "js",
    "examples",
    "tests/dspy",
    "tests/mcp",
    "tests/packages",
    "benches",
    "xtask",
    "src",
    "fuzz",
];

pub(crate) fn run() -> Result<ExitCode> {
    let (oxlint, ruff) = (oxlint()?, ruff()?);
    let mut lints = Command::new(oxlint);
    lints.args(["--quiet", "--config", "xtask/lint/oxlint.json"]).args(JAVASCRIPT);
    let code = finish(&mut lints)?;
    if code != ExitCode::SUCCESS {
        return Ok(code);
    }
    let mut lints = Command::new(ruff);
    lints.args(["check", "--quiet", "--no-cache", "--config", "xtask/lint/ruff.toml"]).args(PYTHON);
    finish(&mut lints)
}

fn finish(command: &mut Command) -> Result<ExitCode> {
    process::status(command.current_dir(process::root())).map(process::exit_code)
}

fn oxlint() -> Result<PathBuf> {
    let dir = directory("oxlint")?;
    let program = dir.join("node_modules/.bin/oxlint");
    if !process::is_version(&program, OXLINT) {
        eprintln!("installing oxlint {OXLINT} with npm");
        fs::create_dir_all(&dir).with_context(|| format!("cannot make `{}`", dir.display()))?;
        let mut npm = Command::new("npm");
        npm.args(["install", "--silent", "--no-save", "--no-package-lock", "--ignore-scripts"]);
        npm.arg("--prefix").arg(&dir).arg(format!("oxlint@{OXLINT}"));
        process::check(&mut npm)?;
        ensure!(process::is_version(&program, OXLINT), "npm did not bring oxlint {OXLINT}");
    }
    Ok(program)
}

fn ruff() -> Result<PathBuf> {
    let dir = directory("ruff")?;
    let program = dir.join(if cfg!(windows) { "Scripts/ruff.exe" } else { "bin/ruff" });
    if !process::is_version(&program, RUFF) {
        eprintln!("installing ruff {RUFF} with pip");
        process::check(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&dir))?;
        let python = program.with_file_name(if cfg!(windows) { "python.exe" } else { "python" });
        let mut pip = Command::new(python);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        process::check(pip.arg(format!("ruff=={RUFF}")))?;
        ensure!(process::is_version(&program, RUFF), "pip did not bring ruff {RUFF}");
    }
    Ok(program)
}

fn directory(tool: &str) -> Result<PathBuf> {
    Ok(process::target_dir()?.join("lint").join(tool))
}
