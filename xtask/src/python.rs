//! The Python for the tests with DSPy: a virtual environment with DSPy installed.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::process;

/// The environment variable that names another Python with DSPy installed.
const VARIABLE: &str = "ISOLET_TEST_PYTHON";

/// The oldest version that DSPy supports.
const OLDEST: (u32, u32) = (3, 10);

/// Prints the version, and fails if this Python cannot make virtual environments.
const PROBE: &str = "\
import sys
print(*sys.version_info[:2], flush=True)
import ensurepip, venv
";

/// Prints the version of the installed DSPy. Importing DSPy itself would take a second.
const INSTALLED: &str = "import importlib.metadata; print(importlib.metadata.version('dspy'))";

/// Makes the environment if there is none. A second call changes nothing and needs no network.
pub(crate) fn ensure() -> Result<()> {
    if env::var_os(VARIABLE).is_some() {
        return Ok(());
    }
    let environment = Environment::new(process::target_dir()?.join("python"));
    if environment.is_complete() {
        return Ok(());
    }
    // Two concurrent calls, in two terminals, would overwrite each other's installation.
    let lock = environment.dir.with_extension("lock");
    let lock = File::create(&lock).with_context(|| format!("cannot write `{}`", lock.display()))?;
    lock.lock().context("cannot wait for another `cargo xtask`")?;
    if environment.is_complete() {
        return Ok(());
    }
    check_python("python3")?;
    environment.make()
}

/// Returns the environment's Python, or the one that the caller has named.
pub(crate) fn program() -> Result<PathBuf> {
    match env::var_os(VARIABLE) {
        Some(named) => Ok(named.into()),
        None => Ok(Environment::new(process::target_dir()?.join("python")).python()),
    }
}

/// Makes the tests use it, also as the `python3` whose pip fetches packages, because Debian's has
/// no pip.
pub(crate) fn with_python(command: &mut Command) -> Result<&mut Command> {
    let program = program()?;
    let own = program.parent().map(Path::to_owned);
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths(own.into_iter().chain(env::split_paths(&path)))
        .context("the directory of the tests' Python cannot be on PATH")?;
    Ok(command.env(VARIABLE, program).env("PATH", path))
}

struct Environment {
    dir: PathBuf,
}

impl Environment {
    fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    fn python(&self) -> PathBuf {
        self.dir.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" })
    }

    /// Returns the path of a file that contains the version of DSPy once everything is installed.
    fn stamp(&self) -> PathBuf {
        self.dir.join("dspy-version")
    }

    /// Returns `true` if everything was installed and still exists: the environment's Python is a
    /// link, whose target may be gone.
    fn is_complete(&self) -> bool {
        let stamp = fs::read_to_string(self.stamp()).unwrap_or_default();
        !stamp.is_empty() && output(&self.python(), INSTALLED).is_ok_and(|said| said == stamp)
    }

    fn make(&self) -> Result<()> {
        eprintln!("installing DSPy for the tests with pip");
        if self.dir.exists() {
            fs::remove_dir_all(&self.dir)
                .with_context(|| format!("cannot remove `{}`", self.dir.display()))?;
        }
        process::check(Command::new("python3").args(["-m", "venv"]).arg(&self.dir))?;
        // Not with its extra `deno`: DSPy would prefer that package to the `deno` that the tests
        // put first on PATH.
        let mut pip = Command::new(self.python());
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "dspy"]);
        process::check(&mut pip)?;
        let version = output(&self.python(), INSTALLED)?;
        // Written last, so that an interrupted installation starts again.
        fs::write(self.stamp(), &version)
            .with_context(|| format!("cannot write `{}`", self.stamp().display()))?;
        eprintln!("installed DSPy {} into `{}`", version.trim_end(), self.dir.display());
        Ok(())
    }
}

/// Rejects a Python that is missing, too old, or cannot make virtual environments.
fn check_python(program: &str) -> Result<()> {
    let probe = Command::new(program).args(["-c", PROBE]).output();
    let probe = probe.with_context(|| {
        format!("the tests with DSPy need `{program}`, which does not start; install Python")
    })?;
    let said = String::from_utf8_lossy(&probe.stdout);
    let mut numbers = said.split_whitespace().map(str::parse);
    let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else {
        bail!("the tests with DSPy need `{program}`, which does not tell its version");
    };
    ensure!(
        (major, minor) >= OLDEST,
        "the tests with DSPy need Python {}.{} or newer, and `{program}` is Python {major}.{minor}",
        OLDEST.0,
        OLDEST.1
    );
    ensure!(
        probe.status.success(),
        "the tests with DSPy need a virtual environment, and `{program}` lacks `venv` or \
         `ensurepip`; on Debian, `apt-get install python3-venv` brings them"
    );
    Ok(())
}

/// Returns what a line of Python prints.
fn output(python: &Path, code: &str) -> Result<String> {
    let ran = Command::new(python).args(["-c", code]).output();
    let ran = ran.with_context(|| format!("cannot run `{}`", python.display()))?;
    ensure!(ran.status.success(), "`{}` ended with {}", python.display(), ran.status);
    Ok(String::from_utf8_lossy(&ran.stdout).into_owned())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(test: &str) -> Self {
            let name = format!("isolet-xtask-python-{test}-{}", std::process::id());
            let dir = env::temp_dir().join(name);
            fs::create_dir_all(&dir).unwrap();
            Self(dir)
        }

        /// Makes a program that behaves like a given Python.
        fn program(&self, path: &str, script: &str) -> PathBuf {
            let path = self.0.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            // Written by another process. If a thread of this one held the file open for writing
            // while another thread forks, the file could not be run.
            let write = "printf '#!/bin/sh\n%s\n' \"$1\" > \"$2\" && chmod 755 \"$2\"";
            let mut shell = Command::new("sh");
            let shell = shell.args(["-c", write, "sh", script]).arg(&path);
            assert!(shell.status().unwrap().success());
            path
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn python_that_cannot_do_is_refused_with_the_reason() {
        let scratch = Scratch::new("refused");
        let cases = [
            ("echo 3 9", "need Python 3.10 or newer, and"),
            ("echo 2 7; exit 1", "is Python 2.7"),
            ("echo 3 12; exit 1", "apt-get install python3-venv"),
            ("exit 1", "does not tell its version"),
        ];
        for (number, (script, reason)) in cases.into_iter().enumerate() {
            let program = scratch.program(&format!("python{number}"), script);
            let error = check_python(program.to_str().unwrap()).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
        let error = check_python("/nonexistent/python3").unwrap_err().to_string();
        assert!(error.contains("does not start"), "{error}");
        let fine = scratch.program("fine", "echo 3 10");
        check_python(fine.to_str().unwrap()).unwrap();
    }

    #[test]
    fn environment_is_complete_only_with_what_its_stamp_says() {
        let scratch = Scratch::new("complete");
        let environment = Environment::new(scratch.0.clone());
        assert!(!environment.is_complete());
        scratch.program("bin/python", "echo 1.2.3");
        assert!(!environment.is_complete(), "pip did not end");
        fs::write(environment.stamp(), "1.2.3\n").unwrap();
        assert!(environment.is_complete());
        fs::write(environment.stamp(), "1.2.4\n").unwrap();
        assert!(!environment.is_complete());
        fs::write(environment.stamp(), "1.2.3\n").unwrap();
        fs::remove_file(environment.python()).unwrap();
        assert!(!environment.is_complete());
    }
}
