//! Runs a task by `isolet run`, and collects what it prints and shows.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::tasks::{DIRECTORY, Task};
use crate::{bounded, process, python, test};

/// What the tasks import. All of them get all of it, so that one image serves all.
pub(super) const PACKAGES: [&str; 8] =
    ["matplotlib", "openpyxl", "pandas", "pillow", "pypdf", "scikit-learn", "scipy", "seaborn"];

/// The time limit of a run, and of making the image.
const RUN_LIMIT: &str = "5m";

/// The time limit of all that a run takes, with downloads before the first one.
const LIMIT: Duration = Duration::from_mins(12);

/// What came of a task.
#[derive(Debug)]
pub(super) struct Made {
    /// The standard output, without spaces at the ends of lines.
    pub(super) printed: String,
    /// The picture that it has shown.
    pub(super) picture: Vec<u8>,
    /// How long the whole command took.
    pub(super) seconds: f64,
}

#[derive(Debug)]
pub(super) struct Runner {
    isolet: PathBuf,
    wheels: PathBuf,
    dir: PathBuf,
    /// The version of each package.
    packages: String,
}

impl Runner {
    /// Gets the wheels, and makes the image.
    pub(super) fn new(isolet: &Path) -> Result<Self> {
        let dir = process::target_dir()?.join("gallery");
        fs::create_dir_all(&dir).with_context(|| format!("cannot make `{}`", dir.display()))?;
        let (isolet, wheels) = (isolet.to_owned(), test::science_wheels()?);
        let mut runner = Self { isolet, wheels, dir, packages: String::new() };
        let code = format!(
            "from importlib.metadata import version\n\
             print(*(f'{{name}} {{version(name)}}' for name in {PACKAGES:?}), sep=', ')"
        );
        let packages = runner.output(runner.command()?.args(["-c", &code]))?;
        packages.trim().clone_into(&mut runner.packages);
        Ok(runner)
    }

    /// Returns what the command says of its version, line by line, and the packages' versions.
    pub(super) fn versions(&self) -> Result<(String, &str)> {
        let output = Command::new(&self.isolet).arg("--version").output();
        let output = output.with_context(|| format!("cannot run `{}`", self.isolet.display()))?;
        Ok((String::from_utf8_lossy(&output.stdout).into_owned(), &self.packages))
    }

    /// Runs a task, which has to print no warning and to show one picture.
    pub(super) fn run(&self, task: &Task) -> Result<Made> {
        let shown = self.dir.join("shown");
        if shown.exists() {
            fs::remove_dir_all(&shown).context("cannot remove what was shown before")?;
        }
        let mut command = self.command()?;
        command.arg("--here").arg("--show-dir").arg(&shown);
        command.arg(format!("{DIRECTORY}/{}.py", task.name));
        let start = Instant::now();
        let printed = self.output(&mut command)?;
        let seconds = start.elapsed().as_secs_f64();
        let printed: Vec<&str> = printed.lines().map(str::trim_end).collect();
        ensure!(!shown.join("002.png").exists(), "it shows more than one picture");
        let picture = fs::read(shown.join("001.png")).context("it shows no picture")?;
        Ok(Made { printed: printed.join("\n"), picture, seconds })
    }

    /// Returns a call of `isolet run` with the packages, and with a cache of its own.
    fn command(&self) -> Result<Command> {
        let mut command = Command::new(&self.isolet);
        command.current_dir(process::root()).env("XDG_CACHE_HOME", self.dir.join("cache"));
        python::with_python(process::with_assets(&mut command))?;
        command.args(["run", "--quiet", "--timeout", RUN_LIMIT]);
        command.arg("--wheels").arg(&self.wheels).args(["--with", &PACKAGES.join(",")]);
        Ok(command)
    }

    /// Runs a command, which has to succeed without a word on standard error.
    fn output(&self, command: &mut Command) -> Result<String> {
        let ran = bounded::run(command, LIMIT, &self.dir)?;
        let ended = ran.status.map_or("no end".to_owned(), |status| status.to_string());
        let is_fine = ran.status.is_some_and(|status| status.success()) && ran.stderr.is_empty();
        ensure!(is_fine, "{ended}, and on standard error:\n{}", ran.stderr);
        Ok(ran.stdout)
    }
}
