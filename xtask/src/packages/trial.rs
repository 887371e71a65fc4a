//! Runs a package's script by `isolet run`, and finds out what it ran with and how it ended.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::list::Package;
use super::server;
use crate::process::{self, Profile};
use crate::{python, test};

/// The time limit of a script.
const RUN_LIMIT: &str = "2m";

/// The time limit of all that a trial takes. pip itself may take two minutes to resolve, and two to
/// download.
const LIMIT: Duration = Duration::from_mins(8);

/// How often a trial is checked.
const TICK: Duration = Duration::from_millis(50);

/// What came of a package.
#[derive(Debug)]
pub(super) struct Tried {
    /// The version and the wheel, if the package could be loaded.
    pub(super) loaded: Option<(String, Origin)>,
    pub(super) outcome: Outcome,
}

/// Where a wheel came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// The package index, without native code.
    Pure,
    /// The package index, compiled to WebAssembly.
    Native,
    /// Pyodide's distribution.
    Pyodide,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Works,
    Fails(String),
    /// The file of Pyodide's distribution that could not be fetched.
    NotTried(String),
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Works => write!(formatter, "works"),
            Self::Fails(reason) => write!(formatter, "does not work: {reason}"),
            Self::NotTried(file) => write!(formatter, "not tried: `{file}` cannot be fetched"),
        }
    }
}

#[derive(Debug)]
pub(super) struct Runner {
    isolet: PathBuf,
    wheels: PathBuf,
    dir: PathBuf,
    server: SocketAddr,
    /// The sha256 of each of Pyodide's wheels, at hand or not.
    pyodide: BTreeSet<String>,
}

impl Runner {
    /// Gets the wheels, and forgets which versions earlier runs resolved.
    pub(super) fn new() -> Result<Self> {
        let dir = process::target_dir()?.join("packages");
        fs::create_dir_all(&dir).with_context(|| format!("cannot make `{}`", dir.display()))?;
        let wheels = test::science_wheels()?;
        let pyodide = pyodide_digests(&process::assets_dir().join("pyodide-lock.json"))?;
        let pyodide = pyodide.into_iter().chain(test::science_digests()).collect();
        let isolet = Profile::FastBuild.built("isolet")?;
        let runner = Self { isolet, wheels, dir, server: server::start()?, pyodide };
        process::check(runner.isolet()?.args(["cache", "clean", "packages"]))?;
        Ok(runner)
    }

    /// Returns what the command says of its version, line by line.
    pub(super) fn versions(&self) -> Result<String> {
        let output = Command::new(&self.isolet).arg("--version").output();
        let output = output.with_context(|| format!("cannot run `{}`", self.isolet.display()))?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Tries a package. An error means that isolet itself could not run.
    pub(super) fn run(&self, package: &Package) -> Result<Tried> {
        let file = |kind: &str| self.dir.join(format!("{}.{kind}", package.name));
        let (script, output, audit) = (file("py"), file("json"), file("audit"));
        write(&script, &with_report(package))?;
        write(&audit, "")?;
        let mut command = self.isolet()?;
        command.args(["run", "--quiet", "--json", "--no-image", "--timeout", RUN_LIMIT]);
        command.arg("--with").arg(&package.name);
        for name in &package.with {
            command.arg("--with").arg(name);
        }
        command.arg("--wheels").arg(&self.wheels).arg("--audit").arg(&audit);
        if package.uses_server() {
            command.arg("--allow-net").arg(self.server.to_string());
            command.arg("--env").arg(format!("SERVER=http://{}", self.server));
        }
        let opened = File::open(&script).context("cannot open the script")?;
        let created = File::create(&output)
            .with_context(|| format!("cannot write `{}`", output.display()))?;
        command.arg("-").stdin(opened).stdout(created).stderr(Stdio::null());
        let mut child = process::spawn(&mut command)?;
        if !ends(&mut child)? {
            let reason = format!("it took longer than {} s", LIMIT.as_secs());
            return Ok(Tried { loaded: None, outcome: Outcome::Fails(reason) });
        }
        let (output, audit) = (read(&output)?, read(&audit)?);
        let report: Value = serde_json::from_str(&output)
            .with_context(|| format!("isolet printed no JSON for {}", package.name))?;
        Ok(Tried { loaded: self.loaded(package, &report, &audit), outcome: outcome(&report) })
    }

    /// Returns a call of isolet with a cache of its own, in which earlier runs' files can be found.
    fn isolet(&self) -> Result<Command> {
        let mut command = Command::new(&self.isolet);
        command.env("XDG_CACHE_HOME", self.dir.join("cache"));
        python::with_python(process::with_assets(&mut command))?;
        Ok(command)
    }

    /// Returns the version that the guest reported, and whose wheel the host loaded for it.
    fn loaded(&self, package: &Package, report: &Value, audit: &str) -> Option<(String, Origin)> {
        let about = report.get("stdout")?.as_str()?.lines().next()?;
        let about: Value = serde_json::from_str(about).ok()?;
        let version = about.get(0)?.as_str()?.to_owned();
        let digest = digest(audit, &package.name)?;
        let origin = if self.pyodide.contains(digest.as_str()) {
            Origin::Pyodide
        } else if about.get(1)?.as_str()?.contains("-any\n") {
            Origin::Pure
        } else {
            Origin::Native
        };
        Some((version, origin))
    }
}

/// Returns the script, which first prints the package's version and the tags of its wheel. All in
/// the first line, so that the lines of tracebacks are those of the script.
fn with_report(package: &Package) -> String {
    let (name, script) = (&package.name, &package.script);
    format!(
        "import importlib.metadata, json; about = importlib.metadata.distribution({name:?}); \
         print(json.dumps([about.version, about.read_text(\"WHEEL\")])); {script}"
    )
}

/// Returns the digest of a package's wheel, from the events of the audit.
fn digest(audit: &str, package: &str) -> Option<String> {
    let events = audit.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut digests = events.filter_map(|event| {
        let (name, _) = event.get("name")?.as_str()?.split_once(' ')?;
        let reason = event.get("reason")?.as_str()?;
        let is_it = event.get("access")? == "package" && name == package.replace('.', "-");
        is_it.then(|| reason.strip_prefix("sha256 ").map(str::to_owned))?
    });
    digests.next()
}

/// Reads how a run ended from isolet's report of it.
fn outcome(report: &Value) -> Outcome {
    if report.get("success") == Some(&Value::Bool(true)) {
        return Outcome::Works;
    }
    let said = |key: &str| report.pointer(key).and_then(Value::as_str).unwrap_or_default();
    let message = said("/diagnostics/message");
    // The error for a file of Pyodide's distribution quotes its name.
    let lacking = message.split('`').nth(1).filter(|_| message.contains("` cannot be fetched: "));
    match lacking {
        Some(file) if said("/diagnostics/error_type") == "PACKAGES" => {
            Outcome::NotTried(file.to_owned())
        }
        _ => Outcome::Fails(message.lines().next().unwrap_or_default().to_owned()),
    }
}

/// Waits for the end of a trial, or ends it at its limit and returns `false`.
fn ends(child: &mut Child) -> Result<bool> {
    let start = Instant::now();
    while child.try_wait().context("cannot wait for isolet")?.is_none() {
        if start.elapsed() > LIMIT {
            child.kill().context("cannot stop isolet")?;
            child.wait().context("cannot wait for isolet")?;
            return Ok(false);
        }
        thread::sleep(TICK);
    }
    Ok(true)
}

fn pyodide_digests(lock: &Path) -> Result<Vec<String>> {
    let lock: Value = serde_json::from_str(&read(lock)?)
        .with_context(|| format!("`{}` is not JSON", lock.display()))?;
    let packages = lock.get("packages").and_then(Value::as_object);
    let packages = packages.into_iter().flat_map(|packages| packages.values());
    let digests: Vec<_> =
        packages.filter_map(|package| Some(package.get("sha256")?.as_str()?.to_owned())).collect();
    ensure!(!digests.is_empty(), "Pyodide's lock lists no packages");
    Ok(digests)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write `{}`", path.display()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn outcome_is_what_isolet_reports() {
        let failed = |kind: &str, message: &str| {
            let diagnostics = json!({ "error_type": kind, "message": message });
            outcome(&json!({ "success": false, "diagnostics": diagnostics }))
        };
        assert_eq!(outcome(&json!({ "success": true })), Outcome::Works);
        assert_eq!(
            failed("ValueError", "ValueError: one\ntwo"),
            Outcome::Fails("ValueError: one".to_owned())
        );
        let message = "b is not available: `b-1-x.whl` cannot be fetched: no such host";
        assert_eq!(failed("PACKAGES", message), Outcome::NotTried("b-1-x.whl".to_owned()));
        assert_eq!(failed("OSError", message), Outcome::Fails(message.to_owned()));
    }

    #[test]
    fn digest_is_that_of_the_package_itself() {
        let audit = "\
{\"access\":\"file\",\"name\":\"a 1\",\"reason\":\"\"}
{\"access\":\"package\",\"name\":\"b 2\",\"reason\":\"sha256 bb\"}
{\"access\":\"package\",\"name\":\"a 1\",\"reason\":\"sha256 aa\"}
";
        assert_eq!(digest(audit, "a").as_deref(), Some("aa"));
        assert_eq!(digest(audit, "c"), None);
    }
}
