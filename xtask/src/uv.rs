//! uv, which makes the Python environments of the tests. It installs packages side by side, from
//! one cache.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::process;

const UV: &str = "0.13.9";

/// Makes an environment that has exactly what a list pins.
pub(crate) fn environment(home: &Path, list: &Path) -> Result<()> {
    let uv = program()?;
    let mut venv = Command::new(&uv);
    venv.args(["venv", "--quiet", "--clear", "--no-project", "--python", "python3"]).arg(home);
    process::check(&mut venv)?;
    let mut sync = Command::new(&uv);
    sync.args(["pip", "sync", "--quiet", "--python"]).arg(home).arg(list);
    process::check(&mut sync)
}

/// Makes an environment with these packages, unless there is one. Returns its Python.
pub(crate) fn with_packages(home: &Path, packages: &[&str]) -> Result<PathBuf> {
    let python = home.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    let (list, wanted) = (home.join("packages"), packages.join("\n"));
    if std::fs::read_to_string(&list).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    let uv = program()?;
    let mut venv = Command::new(&uv);
    venv.args(["venv", "--quiet", "--clear", "--no-project", "--python", "python3"]).arg(home);
    process::check(&mut venv)?;
    let mut install = Command::new(&uv);
    process::check(
        install.args(["pip", "install", "--quiet", "--python"]).arg(home).args(packages),
    )?;
    std::fs::write(&list, wanted).with_context(|| format!("cannot write `{}`", list.display()))?;
    Ok(python)
}

/// Installs a wheel alone into an environment, over another build of the same version.
pub(crate) fn install(home: &Path, wheel: &Path) -> Result<()> {
    let mut install = Command::new(program()?);
    install.args(["pip", "install", "--quiet", "--no-deps", "--no-index", "--reinstall"]);
    install.args(["--no-cache", "--python"]).arg(home).arg(wheel);
    process::check(&mut install)
}

/// Installs uv with pip into `target/uv`, once.
pub(crate) fn program() -> Result<PathBuf> {
    let dir = process::target_dir()?.join("uv");
    let program = dir.join(if cfg!(windows) { "Scripts/uv.exe" } else { "bin/uv" });
    if !is_version(&program) {
        eprintln!("installing uv {UV} with pip");
        process::check(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&dir))?;
        let python = program.with_file_name(if cfg!(windows) { "python.exe" } else { "python" });
        let mut pip = Command::new(python);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        process::check(pip.arg(format!("uv=={UV}")))?;
        ensure!(is_version(&program), "pip did not bring uv {UV}");
    }
    Ok(program)
}

/// uv says more behind its version.
fn is_version(program: &Path) -> bool {
    let said = Command::new(program).arg("--version").output();
    said.is_ok_and(|said| {
        String::from_utf8_lossy(&said.stdout).split_whitespace().nth(1) == Some(UV)
    })
}
