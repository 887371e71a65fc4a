//! `cargo xtask hosts`: a few things that everybody does with isolet, on machines of many shapes.
//! Each works there, or fails with a sentence that names the cause.

#![expect(clippy::print_stdout, reason = "the table is this command's result")]

mod shapes;

use std::ffi::OsString;
use std::fs;

use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use self::shapes::{Expected, PRELUDE, SHAPES, Shape};
use crate::bounded::{self, Ran};
use crate::installed::Installed;
use crate::process::Profile;
use crate::{setup, side_by_side};

const SMOKE: &str = include_str!("smoke.sh");
const DENY: &str = include_str!("deny.py");

/// How long a shape may take.
const LIMIT: Duration = Duration::from_mins(2);

/// How long all shapes may take together.
const TOTAL: Duration = Duration::from_mins(15);

/// The status of a script that cannot make its shape here.
const SKIPPED: i32 = 77;

/// How many shapes are tried at a time.
const JOBS: usize = 2;

enum Verdict {
    Passed,
    Skipped(String),
    Failed(String),
}

/// Tries all shapes, or those whose name contains one of the words.
pub(crate) fn run(words: &[OsString]) -> Result<ExitCode> {
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    let is_chosen =
        |shape: &&Shape| words.is_empty() || words.iter().any(|word| shape.name.contains(&**word));
    let chosen: Vec<&Shape> = SHAPES.iter().filter(is_chosen).collect();
    if chosen.is_empty() {
        bail!("there is no such shape");
    }
    let command = if let Some(command) = std::env::var_os("ISOLET") {
        command.into()
    } else {
        setup::run()?;
        Profile::FastBuild.built("isolet")?
    };
    let installed = Installed::new(&command, "hosts")?;
    for (name, text) in [("smoke.sh", SMOKE), ("deny.py", DENY)] {
        fs::write(installed.dir().join(name), text).context("cannot write a script")?;
    }
    let failed = Mutex::new(0);
    let all = Instant::now();
    side_by_side::each(JOBS, &chosen, |number, shape| {
        let start = Instant::now();
        let left = TOTAL.saturating_sub(all.elapsed()).min(LIMIT);
        let verdict = if left.is_zero() {
            Verdict::Failed(format!("not tried, {} s were over", TOTAL.as_secs()))
        } else {
            attempt(shape, number, &installed, left)?
        };
        let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
        let (name, seconds) = (shape.name, start.elapsed().as_secs_f64());
        match verdict {
            Verdict::Passed => println!("PASS  {seconds:5.1} s  {name}"),
            Verdict::Skipped(reason) => println!("SKIP  {seconds:5.1} s  {name}: {reason}"),
            Verdict::Failed(reason) => {
                *failed += 1;
                println!("FAIL  {seconds:5.1} s  {name}: {reason}");
            }
        }
        Ok(())
    })?;
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!(
        "{} shapes, {failed} failed; {:.0} s of at most {}, and {} for each",
        chosen.len(),
        all.elapsed().as_secs_f64(),
        TOTAL.as_secs(),
        LIMIT.as_secs()
    );
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Makes a shape and does there what belongs to it.
fn attempt(
    shape: &Shape,
    number: usize,
    installed: &Installed,
    limit: Duration,
) -> Result<Verdict> {
    let dir = installed.dir().join(format!("shape-{number}"));
    let logs = installed.dir().join(format!("shape-{number}-logs"));
    for made in [&dir, &logs] {
        fs::create_dir_all(made).context("cannot make the directory of a shape")?;
    }
    let script = format!("{PRELUDE}\n{}", shape.make);
    let mut command = Command::new("sh");
    command.args(["-c", &script, "sh", "sh"]).arg(installed.dir().join("smoke.sh"));
    installed.with_environment(command.arg(shape.part).current_dir(&dir));
    command.env("ISOLET", installed.command()).env("D", &dir).env("OPTIONS", "");
    command.env("DENY", installed.dir().join("deny.py")).env("VERSION", version(installed)?);
    let ran = bounded::run(&mut command, limit, &logs)?;
    Ok(verdict(shape.expected, &ran, limit))
}

/// Returns the version of the command, which is in the name of its cache.
fn version(installed: &Installed) -> Result<String> {
    let said = Command::new(installed.command()).arg("--version").output();
    let said = said.context("cannot run the command")?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let version = said.split_whitespace().nth(1).context("the command says no version")?;
    Ok(version.to_owned())
}

fn verdict(expected: Expected, ran: &Ran, limit: Duration) -> Verdict {
    let Ran { status, stdout, stderr } = ran;
    let Some(status) = status else {
        let reason = format!("not ended after {} s: {stdout} {stderr}", limit.as_secs());
        return Verdict::Failed(reason);
    };
    if status.code() == Some(SKIPPED) {
        return Verdict::Skipped(stderr.trim().to_owned());
    }
    let (succeeds, words) = match expected {
        Expected::Works => (true, &[][..]),
        Expected::WorksAndSays(words) => (true, words),
        Expected::FailsAndSays(words) => (false, words),
    };
    let unsaid = words.iter().find(|word| !stderr.contains(*word));
    // A crash of V8 has a trace of its own, and says nothing that helps.
    let reason = if status.success() != succeeds {
        format!("ended with {status}")
    } else if let Some(unsaid) = unsaid {
        format!("did not say `{unsaid}`")
    } else if stderr.contains("C stack trace") {
        "ended with a trace of V8".to_owned()
    } else {
        return Verdict::Passed;
    };
    Verdict::Failed(format!("{reason}; {} {}", stdout.trim(), stderr.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shape_has_to_say_is_looked_for() {
        let ended = |script: &str| {
            let dir =
                std::env::temp_dir().join(format!("isolet-xtask-hosts-{}", std::process::id()));
            fs::create_dir_all(&dir).unwrap();
            let mut command = Command::new("sh");
            let ran = bounded::run(command.args(["-c", script]), LIMIT, &dir).unwrap();
            fs::remove_dir_all(&dir).unwrap();
            ran
        };
        let says = Expected::FailsAndSays(&["why"]);
        assert!(matches!(verdict(says, &ended("echo why >&2; exit 2"), LIMIT), Verdict::Passed));
        for other in ["echo why >&2", "exit 2", "echo 'why C stack trace' >&2; exit 2"] {
            assert!(matches!(verdict(says, &ended(other), LIMIT), Verdict::Failed(_)), "{other}");
        }
        let skipped = verdict(says, &ended("echo no root >&2; exit 77"), LIMIT);
        assert!(matches!(skipped, Verdict::Skipped(reason) if reason == "no root"));
    }
}
