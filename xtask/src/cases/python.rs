//! Cases of Python: a program whose first lines say what is expected of it, and how to run it.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use super::expected::Expectation;
use super::{LIMIT, Verdict};
use crate::bounded;
use crate::installed::Installed;
use crate::{python, test};

/// How long the server takes to answer requests of `/slow`.
const SLOW: Duration = Duration::from_secs(3);

/// A program and how to run it.
struct Case<'a> {
    path: &'a Path,
    source: String,
    /// The text after `# run: `.
    how: String,
}

/// Runs a case in an empty directory.
pub(super) fn run(path: &Path, installed: &Installed, scratch: &Path) -> Result<Verdict> {
    let source = fs::read_to_string(path).context("cannot read the case")?;
    let line = |prefix: &str| {
        let mut found = source.lines().take(2).filter_map(|line| line.strip_prefix(prefix));
        found.next().unwrap_or_default().trim().to_owned()
    };
    let expectation = Expectation::parse(&line("# expected: "));
    let how = line("# run: ");
    let case = Case { path, source, how };
    fs::create_dir_all(scratch.join("out")).context("cannot make a directory")?;
    if let Some(address) = case.server() {
        serve(address)?;
    }
    let mut last = None;
    for words in case.calls()? {
        let mut command = Command::new(installed.command());
        installed.with_environment(command.arg("run").args(&words).current_dir(scratch));
        if words.iter().any(|word| word == "--with") {
            python::with_python(&mut command)?;
        }
        last = Some((words.clone(), bounded::run(&mut command, LIMIT, scratch)?));
    }
    let (words, ran) = last.context("the case is empty")?;
    let file = |guest: &str| Some(scratch.join(mounted(&words, guest)?));
    Ok(match expectation.miss(&ran, file) {
        None => Verdict::Passed,
        Some(missed) => Verdict::failed(&format!("expected {missed}"), &ran),
    })
}

/// Returns the path on the host of a file in a mount that the words of a call make.
fn mounted(words: &[String], guest: &str) -> Option<PathBuf> {
    let mounts = words.iter().filter_map(|word| word.strip_suffix(":rw")?.split_once(':'));
    let mut found = mounts.filter_map(|(host, place)| {
        Some(Path::new(host).join(guest.strip_prefix(place)?.trim_start_matches('/')))
    });
    found.next()
}

impl Case<'_> {
    /// Returns the arguments of each call of `isolet run`.
    fn calls(&self) -> Result<Vec<Vec<String>>> {
        let file = self.path.to_string_lossy().into_owned();
        if self.how.starts_with("the two parts are cells") {
            let packages = self.how.rsplit_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
            let mut options = Vec::new();
            if let Some(packages) = packages {
                options.extend(["--wheels".to_owned(), wheels()?, "--with".to_owned()]);
                options.push(packages.to_owned());
            }
            let [first, second] = self.parts();
            let saved = ["--save".to_owned(), "saved".to_owned(), "-c".to_owned(), first];
            let from = ["--from".to_owned(), "saved".to_owned(), "-c".to_owned(), second];
            return Ok(vec![
                [options.clone(), saved.to_vec()].concat(),
                [options, from.to_vec()].concat(),
            ]);
        }
        let Some((_, said)) = self.how.split_once("isolet run ") else {
            return Ok(vec![vec![file]]);
        };
        let said = said.split(['`', ';']).next().unwrap_or_default();
        let mut words = Vec::new();
        for word in said.split_whitespace() {
            match word {
                "FILE" => words.push(file.clone()),
                "DIR-WITH-PYODIDE-WHEELS" => words.push(wheels()?),
                "-c" => words.extend([word.to_owned(), self.source.clone()]),
                _ => words.push(word.to_owned()),
            }
        }
        Ok(vec![words])
    }

    /// Returns the two parts of a program.
    fn parts(&self) -> [String; 2] {
        let (first, second) = self.source.split_once("# part 2\n").unwrap_or((&self.source, ""));
        [first.to_owned(), second.to_owned()]
    }

    /// Returns the address of the server that the case needs.
    fn server(&self) -> Option<&str> {
        let (_, rest) = self.how.split_once("an HTTP server at ")?;
        rest.split_whitespace().next()
    }
}

fn wheels() -> Result<String> {
    python::ensure()?;
    Ok(test::science_wheels()?.to_string_lossy().into_owned())
}

/// Answers requests at an address until this program ends: all with the last part of their path,
/// those of `/slow` late. A second call for an address changes nothing.
fn serve(address: &str) -> Result<()> {
    let listener = match TcpListener::bind(address) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => return Ok(()),
        bound => bound.with_context(|| format!("cannot listen on {address}"))?,
    };
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || -> io::Result<()> {
                stream.set_read_timeout(Some(LIMIT))?;
                let mut lines = BufReader::new(stream.try_clone()?).lines();
                let first = lines.next().transpose()?.unwrap_or_default();
                for line in lines {
                    if line?.is_empty() {
                        break;
                    }
                }
                let path = first.split_whitespace().nth(1).unwrap_or_default();
                let name = path.rsplit('/').next().unwrap_or_default();
                if name == "slow" {
                    thread::sleep(SLOW);
                }
                let length = name.len();
                write!(
                    stream,
                    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\
                     Connection: close\r\n\r\n{name}"
                )
            });
        }
    });
    Ok(())
}
