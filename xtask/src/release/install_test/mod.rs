//! `cargo xtask install-test`: installs the files of a release as people do, from a server on
//! loopback, into empty systems and environments, and looks at what is left after it is removed.

#![expect(clippy::print_stdout, reason = "the log is this command's result")]

mod cases;
mod roots;
mod served;

use std::fs;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use self::cases::CASES;
use self::served::Served;

/// How long a command may take.
const LIMIT: Duration = Duration::from_mins(5);

/// How long it may take from the start of the installer to the first result. It is told and not
/// required: the machine may be busy.
const FIRST_RESULT: Duration = Duration::from_secs(15);

/// Runs the cases whose name contains one of the words, or all.
pub(crate) fn run(words: &[&str]) -> Result<ExitCode> {
    let is_chosen = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word));
    let chosen: Vec<_> = CASES.iter().filter(|(name, _)| is_chosen(name)).collect();
    ensure!(!chosen.is_empty(), "there is no such case");
    let served = Served::start()?;
    let mut failed = 0;
    for (name, case) in &chosen {
        println!("== {name}");
        let start = Instant::now();
        let end = match case(&served) {
            Ok(()) => "PASS",
            Err(error) => {
                failed += 1;
                println!("   {error:#}");
                "FAIL"
            }
        };
        println!("{end}  {:5.1} s  {name}", start.elapsed().as_secs_f64());
    }
    println!("{} cases, {failed} failed", chosen.len());
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Tells how long the first result took, and what else the machine did.
fn tell(what: &str, took: Duration) {
    let (seconds, most) = (took.as_secs_f64(), FIRST_RESULT.as_secs());
    let word = if took <= FIRST_RESULT { "at most" } else { "MORE THAN" };
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default();
    println!("   {what}: {seconds:.1} s, {word} {most} s; the load is {load}");
}
