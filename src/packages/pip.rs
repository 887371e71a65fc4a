//! Runs pip as the client of the package index. It resolves and downloads wheels, and never runs
//! their code.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use isolet_pyodide_assets::{Authorities, Digest};
use pep440_rs::Version;

use super::directory::Candidate;
use super::error::PackageError;
use super::files;
use super::interpreter::{ABI, MARKERS, PLATFORM, PYTHON};
use super::process;
use super::report::{self, Failure, Pin};
use super::requirement::Requirement;
use super::wheel::MAX_WHEEL_BYTES;
use crate::support::patience::GivenUp;

/// The time limit of one run of pip.
const MAX_TIME: Duration = Duration::from_mins(2);
/// The maximum size of a report, in bytes.
const MAX_REPORT_BYTES: u64 = 64 << 20;
/// The maximum size of a file of certificates, in bytes.
const MAX_BUNDLE_BYTES: u64 = 16 << 20;
/// The file with the URLs of the wheels that stand before all others of their names, one a line.
const PREFERRED: &str = "preferred.txt";
/// The Python program that prepares pip for the guest's markers.
const DRIVER: &str = include_str!("pip.py");

/// The environment variables that pip gets: its own, and those that locate files, network and
/// certificates.
const PASSED: [&str; 19] = [
    "ALL_PROXY",
    "APPDATA",
    "CURL_CA_BUNDLE",
    "HOME",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "LOCALAPPDATA",
    "NETRC",
    "NO_PROXY",
    "PATH",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "SYSTEMROOT",
    "TMPDIR",
    "USERPROFILE",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_DIRS",
    "XDG_CONFIG_HOME",
];

/// File names and contents, by digest.
pub(crate) type Downloads = BTreeMap<Digest, (String, Arc<[u8]>)>;

/// The pip of one Python installation.
#[derive(Debug)]
pub(crate) struct Pip {
    python: PathBuf,
    authorities: Authorities,
    given_up: GivenUp,
}

/// Wheels that pip may choose from in addition to the package index.
pub(crate) struct Extra<'a> {
    /// For each of these names, the only wheel that may be used.
    pub(crate) only: &'a [&'a Candidate],
    /// Wheels that stand before all others of their names, if they fit.
    pub(crate) preferred: &'a [Arc<Candidate>],
    /// A directory of additional wheels.
    pub(crate) links: &'a Path,
}

impl Pip {
    /// Uses the pip of the given Python program. Default: `python3`.
    ///
    /// If there are authorities, pip trusts them in addition to those that it is configured for, or
    /// to the system's.
    pub(crate) fn new(
        python: Option<PathBuf>,
        authorities: Authorities,
        given_up: GivenUp,
    ) -> Self {
        let python = python.unwrap_or_else(|| PathBuf::from("python3"));
        Self { python, authorities, given_up }
    }

    /// Resolves requirements and their dependencies for the guest's interpreter. `work` is a
    /// directory for temporary files.
    ///
    /// # Errors
    ///
    /// Fails if no packages meet the requirements, or pip cannot be used or takes too long.
    pub(crate) fn resolve(
        &self,
        work: &Path,
        requirements: &[Requirement],
        extra: &Extra<'_>,
    ) -> Result<Vec<Pin>, PackageError> {
        let report = work.join("report.json");
        let mut arguments: Vec<OsString> =
            ["install", "--dry-run", "--ignore-installed", "--report"].map(OsString::from).into();
        arguments.push(report.clone().into());
        arguments.extend(["--target".into(), work.join("target").into()]);
        if !extra.only.is_empty() {
            let constraints = work.join("constraints.txt");
            write_over(&constraints, &constraint_lines(extra.only)?)?;
            arguments.extend(["--constraint".into(), constraints.into()]);
        }
        arguments.extend(["--find-links".into(), extra.links.into()]);
        let directories: BTreeSet<&Path> =
            extra.preferred.iter().filter_map(|one| one.path.parent()).collect();
        for directory in directories {
            arguments.extend(["--find-links".into(), directory.into()]);
        }
        write_over(&work.join(PREFERRED), &preferred_lines(extra.preferred)?)?;
        arguments.push("--".into());
        arguments.extend(requirements.iter().map(|requirement| requirement.to_string().into()));
        self.run(work, &target_arguments(), &arguments, requirements)?;
        let bytes = files::read(&report, MAX_REPORT_BYTES).map_err(PackageError::io(&report))?;
        report::parse(&bytes)
    }

    /// Downloads these wheels and returns their names and bytes, by digest. The digests of the
    /// result are verified.
    ///
    /// # Errors
    ///
    /// Fails if a wheel is unavailable, or pip cannot be used or takes too long.
    pub(crate) fn download(&self, work: &Path, pins: &[&Pin]) -> Result<Downloads, PackageError> {
        let (list, into) = (work.join("pinned.txt"), work.join("download"));
        let mut lines = String::new();
        let mut requirements = Vec::new();
        for pin in pins {
            let exact = Requirement::exactly(&pin.name, &pin.version);
            // Writing to a string does not fail.
            let _ = writeln!(lines, "{exact} --hash=sha256:{}", pin.digest);
            requirements.push(exact);
        }
        write_over(&list, &lines)?;
        files::make_directory(&into).map_err(PackageError::io(&into))?;
        let mut arguments: Vec<OsString> =
            ["download", "--no-deps", "--require-hashes", "--dest"].map(OsString::from).into();
        arguments.extend([into.clone().into(), "--requirement".into(), list.into()]);
        self.run(work, &target_arguments(), &arguments, &requirements)?;
        downloaded(&into)
    }

    /// Downloads a wheel of a package for the same Python on a desktop. Returns its name and bytes.
    ///
    /// # Errors
    ///
    /// As [`download`](Self::download).
    pub(crate) fn download_for_desktops(
        &self,
        work: &Path,
        name: &str,
        version: &Version,
    ) -> Result<(String, Arc<[u8]>), PackageError> {
        let into = work.join(format!("desktop-{name}"));
        files::make_directory(&into).map_err(PackageError::io(&into))?;
        let exact = Requirement::exactly(name, version);
        let mut arguments: Vec<OsString> =
            ["download", "--no-deps", "--dest"].map(OsString::from).into();
        arguments.extend([into.clone().into(), "--".into(), exact.to_string().into()]);
        self.run(work, &desktop_arguments(), &arguments, std::slice::from_ref(&exact))?;
        let wheels = downloaded(&into)?;
        wheels.into_values().next().ok_or_else(|| {
            PackageError::Pip(format!("it did not download {name} {version} for a desktop"))
        })
    }

    fn run(
        &self,
        work: &Path,
        target: &[&str],
        arguments: &[OsString],
        wanted: &[Requirement],
    ) -> Result<(), PackageError> {
        let (action, rest) = arguments.split_first().unwrap_or((const { &OsString::new() }, &[]));
        let markers: BTreeMap<&str, &str> = MARKERS.into();
        let markers = serde_json::to_string(&markers).unwrap_or_default();
        let mut command = Command::new(&self.python);
        command
            .args(["-X", "utf8", "-c", DRIVER, &markers, PREFERRED])
            .arg(action)
            .args(target)
            .args(rest);
        command.current_dir(work).env_clear().envs(passed_environment());
        if !self.authorities.is_empty() {
            let bundle = work.join("authorities.pem");
            write_over(&bundle, &self.bundle()?)?;
            command.env("PIP_CERT", bundle);
        }
        // Settings about where to install would conflict with `--target`.
        command.env("PIP_USER", "0").env("PIP_REQUIRE_VIRTUALENV", "0");
        let unusable = |reason: String| PackageError::Pip(reason);
        let ended = process::run(&mut command, MAX_TIME, &self.given_up).map_err(|error| {
            unusable(format!("`{}` does not start: {error}", self.python.display()))
        })?;
        let names: Vec<String> = wanted.iter().map(ToString::to_string).collect();
        match ended.status {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(match report::failure(&ended.stderr) {
                Failure::Unresolved(reason) => {
                    PackageError::Unresolved { wanted: names.join(" "), reason }
                }
                Failure::Unreachable(reason) => PackageError::Index(reason),
                Failure::Broken(reason) => unusable(reason),
                Failure::Silent => unusable(format!("it ended with {status} and said nothing")),
            }),
            None if self.given_up.is_set() => Err(PackageError::GivenUp),
            None => Err(PackageError::Slow { wanted: names.join(" "), limit: MAX_TIME.as_secs() }),
        }
    }
}

impl Pip {
    /// Returns the certificates that pip trusts, in PEM form. pip knows only one file of them.
    fn bundle(&self) -> Result<String, PackageError> {
        let set = |name: &str| {
            passed_environment().find(|(other, _)| other == name).map(|(_, path)| path)
        };
        let configured = ["PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"].into_iter();
        let mut bundle = match configured.filter_map(set).find(|path| Path::new(path).is_file()) {
            Some(path) => {
                let path = PathBuf::from(path);
                let bytes = files::read(&path, MAX_BUNDLE_BYTES).map_err(PackageError::io(path))?;
                String::from_utf8_lossy(&bytes).into_owned()
            }
            None => Authorities::of_system().pem().to_owned(),
        };
        bundle.push('\n');
        bundle.push_str(self.authorities.pem());
        Ok(bundle)
    }
}

/// Reads the wheels in a directory that pip has filled.
fn downloaded(into: &Path) -> Result<Downloads, PackageError> {
    let mut wheels = BTreeMap::new();
    for entry in into.read_dir().map_err(PackageError::io(into))? {
        let path = entry.map_err(PackageError::io(into))?.path();
        let bytes = files::read(&path, MAX_WHEEL_BYTES).map_err(PackageError::io(&path))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        wheels.insert(Digest::of(&bytes), (name, bytes));
    }
    Ok(wheels)
}

/// Returns the options that select wheels, and only wheels, for the guest's interpreter.
fn target_arguments() -> Vec<&'static str> {
    wheels_for(&[ABI, "abi3", "none"], &[PLATFORM, "any"])
}

/// Returns the options that select wheels for the same Python on the desktops that most projects
/// build wheels for.
fn desktop_arguments() -> Vec<&'static str> {
    let linux = ["manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"];
    wheels_for(&[ABI], &linux)
}

fn wheels_for(abis: &[&'static str], platforms: &[&'static str]) -> Vec<&'static str> {
    let mut arguments = vec!["--quiet", "--no-input", "--disable-pip-version-check"];
    arguments.extend(["--only-binary=:all:", "--implementation", "cp", "--python-version", PYTHON]);
    for abi in abis {
        arguments.extend(["--abi", abi]);
    }
    for platform in platforms {
        arguments.extend(["--platform", platform]);
    }
    arguments
}

#[expect(clippy::disallowed_methods, reason = "the index and the proxies are the user's settings")]
fn passed_environment() -> impl Iterator<Item = (OsString, OsString)> {
    let is_passed = |name: &OsStr| {
        let name = name.to_string_lossy().to_ascii_uppercase();
        name.starts_with("PIP_") || PASSED.contains(&name.as_str())
    };
    std::env::vars_os().filter(move |(name, _)| is_passed(name))
}

fn constraint_lines(only: &[&Candidate]) -> Result<String, PackageError> {
    let mut lines = String::new();
    for candidate in only {
        // Writing to a string does not fail.
        let _ = writeln!(lines, "{} @ {}", candidate.name, candidate_url(candidate)?);
    }
    Ok(lines)
}

fn preferred_lines(preferred: &[Arc<Candidate>]) -> Result<String, PackageError> {
    let mut lines = String::new();
    for candidate in preferred {
        lines.push_str(&candidate_url(candidate)?);
        lines.push('\n');
    }
    Ok(lines)
}

fn candidate_url(candidate: &Candidate) -> Result<String, PackageError> {
    match candidate.path.to_str() {
        Some(path) => Ok(file_url(path)),
        None => Err(PackageError::wheel(&candidate.file_name, "its path is not UTF-8")),
    }
}

/// Returns the URL of an absolute path.
fn file_url(path: &str) -> String {
    let mut url = String::from("file://");
    if !path.starts_with('/') {
        url.push('/');
    }
    for byte in path.bytes() {
        match byte {
            b'\\' if cfg!(windows) => url.push('/'),
            b'/' | b'-' | b'_' | b'.' | b'~' => url.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => url.push(char::from(byte)),
            b':' if cfg!(windows) => url.push(':'),
            _ => {
                // Writing to a string does not fail.
                let _ = write!(url, "%{byte:02X}");
            }
        }
    }
    url
}

fn write_over(path: &Path, text: &str) -> Result<(), PackageError> {
    std::fs::write(path, text).map_err(PackageError::io(path))
}
