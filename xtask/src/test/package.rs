//! `cargo xtask test --python`: installs the wheel of the Python package into an environment of its
//! own, and runs the package's tests and pyright with it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use super::science;
use crate::{process, python, wheel};

/// What the tests need besides the wheel.
const TOOLS: [&str; 11] = [
    "pytest==9.2.0",
    "pytest-timeout==2.4.0",
    "pyright==1.1.414",
    "numpy",
    "pydantic",
    "dspy",
    "smolagents",
    "fastmcp",
    "langchain",
    "pydantic-ai-slim",
    "ag2",
];

/// The most seconds that a test may take. Some machines are slow.
const TEST_SECONDS: u32 = 180;

/// Runs pytest with `args`, and without `args` also pyright.
pub(crate) fn run(args: &[OsString]) -> Result<ExitCode> {
    let wheel = wheel::run()?;
    // Its pip gets the wheels of pandas and others, and the packages that they need.
    python::ensure()?;
    let wheels = science::wheels()?;
    let python = environment()?;
    let mut pip = pip(&python);
    // The version is the same for each build.
    pip.args(["--no-index", "--no-deps", "--force-reinstall"]).arg(&wheel);
    process::check(&mut pip)?;
    let directory = process::root().join("python");
    // Each half has a `conftest.py` of its own.
    for half in [&["tests", "--ignore", "tests/adapters"][..], &["tests/adapters"]] {
        let mut pytest = Command::new(&python);
        pytest.args(["-m", "pytest", "-q", "--timeout", &TEST_SECONDS.to_string()]);
        // What the wheel brings is tested, not what the machine has.
        for name in ["ISOLET_ASSETS", "ISOLET_BIN", "ISOLET_ISOLATION", "PYTHONPATH"] {
            pytest.env_remove(name);
        }
        let cache = process::target_dir()?.join("client-cache");
        pytest.env("XDG_CACHE_HOME", &cache).env("PYTHONDONTWRITEBYTECODE", "1");
        python::with_python(&mut pytest)?.env("ISOLET_TEST_WHEELS", &wheels);
        pytest.current_dir(&directory);
        let status =
            process::status(if args.is_empty() { pytest.args(half) } else { pytest.args(args) })?;
        if !status.success() || !args.is_empty() {
            return Ok(process::exit_code(status));
        }
    }
    let mut pyright = Command::new(&python);
    pyright.args(["-m", "pyright", "--pythonpath"]).arg(&python).current_dir(&directory);
    Ok(process::exit_code(process::status(&mut pyright)?))
}

/// Returns the Python of the environment, and makes it if its tools are others.
fn environment() -> Result<PathBuf> {
    let directory = process::target_dir()?.join("client");
    let (python, stamp) = (directory.join("bin/python"), directory.join("tools"));
    let tools = TOOLS.join("\n");
    if is_ready(&python, &stamp, &tools) {
        return Ok(python);
    }
    eprintln!("installing pytest and pyright with pip");
    process::check(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&directory))?;
    process::check(pip(&python).args(TOOLS))?;
    fs::write(&stamp, tools).with_context(|| format!("cannot write `{}`", stamp.display()))?;
    Ok(python)
}

/// Whether the environment has these tools, and its Python is still there.
fn is_ready(python: &Path, stamp: &Path, tools: &str) -> bool {
    let starts = || Command::new(python).arg("-V").output().is_ok_and(|ran| ran.status.success());
    fs::read_to_string(stamp).is_ok_and(|stamp| stamp == tools) && starts()
}

fn pip(python: &Path) -> Command {
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    pip
}
