//! `cargo xtask cases`: runs a directory of cases, each a small file whose first line says what is
//! expected, and prints which of them pass.
//!
//! `hosts/*.py` and `hosts/*.sh` are programs that check themselves. They find the command by the
//! variable `ISOLET` and a warm cache by `XDG_CACHE_HOME`, and end with status 0 if all is as it
//! should be. `python/*.py` are programs for the guest: the first line is `# expected: ` and what
//! is printed, or a phrase that `expected.rs` knows; the second may be `# run: ` and how. A file
//! whose name begins with `_` is a helper of others.

#![expect(clippy::print_stdout, reason = "the table is this command's result")]

mod expected;
mod python;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::bounded::{self, Ran};
use crate::installed::Installed;
use crate::process::{self, Profile};
use crate::setup;

/// How long a case may take.
const LIMIT: Duration = Duration::from_mins(3);

/// The most characters of a reason in the table.
const MAX_REASON: usize = 300;

/// How a case ended.
enum Verdict {
    Passed,
    Failed(String),
}

impl Verdict {
    /// Returns the verdict on a run in which something was not as expected.
    fn failed(missed: &str, ran: &Ran) -> Self {
        let status = match ran.status {
            Some(status) => status.to_string(),
            None => format!("not ended after {} s", LIMIT.as_secs()),
        };
        let Ran { stdout, stderr, .. } = ran;
        let reason = format!("{missed} ({status}) stdout: {stdout} stderr: {stderr}");
        let words: Vec<&str> = reason.split_whitespace().collect();
        Self::Failed(words.join(" ").chars().take(MAX_REASON).collect())
    }
}

/// Runs the cases below a directory, or those whose name contains one of the given words.
pub(crate) fn run(args: &[OsString]) -> Result<ExitCode> {
    let Some((dir, words)) = args.split_first() else {
        bail!("`cargo xtask cases` needs the directory of the cases");
    };
    let dir = PathBuf::from(dir).canonicalize();
    let dir = dir.with_context(|| format!("cannot read `{}`", args[0].display()))?;
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    let mut cases = [below(&dir, "hosts")?, below(&dir, "python")?].concat();
    cases.retain(|case| {
        let name = case.to_string_lossy();
        words.is_empty() || words.iter().any(|word| name.contains(&**word))
    });
    ensure!(!cases.is_empty(), "there is no such case in `{}`", dir.display());
    let command = if let Some(command) = env::var_os("ISOLET") {
        command.into()
    } else {
        setup::run()?;
        Profile::FastBuild.built("isolet")?
    };
    let installed = Installed::new(&command, "cases")?;
    let mut failed = 0;
    for case in &cases {
        let start = Instant::now();
        let verdict = run_case(&dir.join(case), &installed)?;
        let (name, seconds) = (case.display(), start.elapsed().as_secs_f64());
        match verdict {
            Verdict::Passed => println!("PASS  {seconds:5.1} s  {name}"),
            Verdict::Failed(reason) => {
                failed += 1;
                println!("FAIL  {seconds:5.1} s  {name}: {reason}");
            }
        }
    }
    println!("{} passed / {failed} failed", cases.len() - failed);
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the paths of the cases in a part of the directory, from the directory on.
fn below(dir: &Path, part: &str) -> Result<Vec<PathBuf>> {
    let mut cases = Vec::new();
    let entries = match fs::read_dir(dir.join(part)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(cases),
        entries => entries.with_context(|| format!("cannot read `{part}`"))?,
    };
    for entry in entries {
        let path = Path::new(part).join(entry.context("cannot read the cases")?.file_name());
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let kinds: &[&str] = if part == "hosts" { &["py", "sh"] } else { &["py"] };
        let is_kind = path.extension().is_some_and(|end| kinds.iter().any(|kind| end == *kind));
        if is_kind && !name.starts_with('_') {
            cases.push(path);
        }
    }
    cases.sort();
    Ok(cases)
}

fn run_case(path: &Path, installed: &Installed) -> Result<Verdict> {
    let scratch = installed.dir().join("case");
    if scratch.exists() {
        fs::remove_dir_all(&scratch).context("cannot empty the directory of a case")?;
    }
    fs::create_dir_all(&scratch).context("cannot make the directory of a case")?;
    if path.parent().is_some_and(|parent| parent.ends_with("python")) {
        return python::run(path, installed, &scratch);
    }
    let interpreter =
        if path.extension().is_some_and(|end| end == "py") { "python3" } else { "sh" };
    let mut command = Command::new(interpreter);
    installed.with_environment(command.arg(path).current_dir(&scratch));
    command.env("ISOLET", installed.command()).env("PYTHONDONTWRITEBYTECODE", "1");
    // The Python package, for those that use it.
    command.env("PYTHONPATH", process::root().join("python/src"));
    command.env("ISOLET_BIN", installed.command());
    let ran = bounded::run(&mut command, LIMIT, &scratch)?;
    Ok(match ran.status {
        Some(status) if status.success() => Verdict::Passed,
        _ => Verdict::failed("failed", &ran),
    })
}
