//! Runs a test module in a session of `isolet run`. If the session ends early, runs the remaining
//! tests in another one.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::directory::Directory;
use super::results::{Module, Reached};
use crate::process::{self, Profile};

const DRIVER: &str = include_str!("driver.py");

/// The directory of all results and logs, for people to read.
pub(super) const DIR: &str = "target/cpython-tests";

/// The time limits of a hanging test and of a module.
const TEST_LIMIT: Duration = Duration::from_secs(30);
const MODULE_LIMIT: Duration = Duration::from_mins(10);

/// The memory limit of each session.
const MEMORY: &str = "2GiB";

/// Guest paths: the directory that contains the tests as a package, and the directory of the
/// reports.
const GUEST_LIBRARY: &str = "/cpython";
const GUEST_REPORTS: &str = "/reports";

/// How often a session is checked.
const TICK: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(super) struct Runner {
    isolet: PathBuf,
    tests: PathBuf,
    dir: PathBuf,
}

impl Runner {
    pub(super) fn new(tests: &Directory) -> Result<Self> {
        let dir = process::target_dir()?.join("cpython-tests");
        for dir in [dir.join("reports"), dir.join("output")] {
            fs::create_dir_all(&dir).with_context(|| format!("cannot make `{}`", dir.display()))?;
        }
        write(&dir.join("driver.py"), DRIVER)?;
        Ok(Self {
            isolet: Profile::FastBuild.built("isolet")?,
            tests: tests.path().to_owned(),
            dir,
        })
    }

    pub(super) fn results_file(&self) -> PathBuf {
        self.dir.join("results.json")
    }

    /// Returns a key that differs if the command, the tests' directory or the driver changes.
    pub(super) fn key(&self) -> Result<String> {
        // By content, so that a rebuild without changes does not repeat any tests.
        let isolet = fs::read(&self.isolet)
            .with_context(|| format!("cannot read `{}`", self.isolet.display()))?;
        let mut hasher = DefaultHasher::new();
        (isolet, &self.tests, DRIVER).hash(&mut hasher);
        Ok(format!("{:016x}", hasher.finish()))
    }

    /// Returns the version of the interpreter in the command.
    pub(super) fn python_version(&self) -> Result<String> {
        let output = Command::new(&self.isolet).arg("--version").output();
        let output = output.with_context(|| format!("cannot run `{}`", self.isolet.display()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let version = text.lines().find_map(|line| line.strip_prefix("Python "));
        Ok(version.context("`isolet --version` does not name the Python")?.trim().to_owned())
    }

    /// Runs a module. Failures of its tests are results; an error means that no session could run.
    pub(super) fn run(&self, name: &str) -> Result<Module> {
        let mut module = Module::default();
        let start = Instant::now();
        let mut first = 0;
        loop {
            let left = MODULE_LIMIT.saturating_sub(start.elapsed());
            let (report, end) = self.session(name, first, left)?;
            let reached = module.read(name, &report);
            let (id, within) = match reached {
                Reached::Done => break,
                Reached::Within(number, id) => (id, Some(number)),
                Reached::Between => (name.to_owned(), None),
            };
            module.add_wrong(id, format!("the session ended: {end}"), within.is_some());
            // Continue after the test in which the session died.
            match within.flatten() {
                Some(number) if start.elapsed() < MODULE_LIMIT => first = number + 1,
                _ => break,
            }
        }
        module.seconds = start.elapsed().as_secs();
        Ok(module)
    }

    /// Runs the tests of a module from number `first` on. Returns the driver's output and how the
    /// session ended.
    fn session(&self, name: &str, first: usize, limit: Duration) -> Result<(String, String)> {
        let report = self.dir.join("reports").join(format!("{name}.jsonl"));
        // A session appends to its report, and the report of the module's earlier session has been
        // read.
        write(&report, "")?;
        let log = self.dir.join("output").join(format!("{name}.txt"));
        let mut options = File::options();
        options.create(true).write(true).append(first > 0).truncate(first == 0);
        let output = options.open(&log);
        let output = output.with_context(|| format!("cannot write `{}`", log.display()))?;
        let errors = output.try_clone().context("cannot share the log")?;
        let mut command = Command::new(&self.isolet);
        command.args(["run", "--quiet", "--memory", MEMORY, "--max-output", "16MiB", "--timeout"]);
        // The guest is killed from here. This limit is for a guest that outlives this process.
        command.arg(format!("{}s", (limit + TEST_LIMIT).as_secs()));
        command.arg("--mount").arg(mount(&self.tests, &format!("{GUEST_LIBRARY}/test:ro")));
        command
            .arg("--mount")
            .arg(mount(&self.dir.join("reports"), &format!("{GUEST_REPORTS}:rw")));
        command.arg(self.dir.join("driver.py")).args([GUEST_LIBRARY, name]);
        command.arg(format!("{GUEST_REPORTS}/{name}.jsonl")).arg(first.to_string());
        command.stdin(Stdio::null()).stdout(output).stderr(errors);
        let mut child =
            process::with_assets(&mut command).spawn().context("cannot start isolet")?;
        let end = watch(&mut child, &report, limit)?;
        let end = match end {
            Some(end) => end,
            None => said(&log).unwrap_or_else(|| "isolet said nothing".to_owned()),
        };
        let text =
            fs::read(&report).with_context(|| format!("cannot read `{}`", report.display()))?;
        Ok((String::from_utf8_lossy(&text).into_owned(), end))
    }
}

/// Waits for the end of the session or of its time. In the second case, returns which limit was
/// reached.
fn watch(child: &mut Child, report: &Path, limit: Duration) -> Result<Option<String>> {
    let start = Instant::now();
    let (mut length, mut since) = (0, start);
    loop {
        if child.try_wait().context("cannot wait for isolet")?.is_some() {
            return Ok(None);
        }
        // Each line is the start or the end of a test.
        let now = fs::metadata(report).map_or(0, |about| about.len());
        if now != length {
            (length, since) = (now, Instant::now());
        }
        let end = if since.elapsed() > TEST_LIMIT {
            format!("a test took longer than {} s", TEST_LIMIT.as_secs())
        } else if start.elapsed() > limit {
            format!("the module took longer than {} s", MODULE_LIMIT.as_secs())
        } else {
            thread::sleep(TICK);
            continue;
        };
        child.kill().context("cannot stop isolet")?;
        child.wait().context("cannot wait for isolet")?;
        return Ok(Some(end));
    }
}

/// Returns what isolet printed about the session's end, after all output of the tests.
fn said(log: &Path) -> Option<String> {
    let text = String::from_utf8_lossy(&fs::read(log).ok()?).into_owned();
    let errors = text.lines().rev().find_map(|line| line.strip_prefix("error: "));
    errors.or_else(|| text.lines().last()).map(str::to_owned)
}

fn mount(host: &Path, guest: &str) -> std::ffi::OsString {
    let mut rule = host.as_os_str().to_owned();
    rule.push(":");
    rule.push(guest);
    rule
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write `{}`", path.display()))
}
