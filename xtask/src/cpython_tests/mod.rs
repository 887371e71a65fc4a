//! `cargo xtask cpython-tests`: runs CPython's own tests, each module in a separate session, and
//! compares the failures with the list of known ones.

#![expect(clippy::print_stdout, reason = "the counts are this command's result")]

mod directory;
mod expected;
mod results;
mod session;

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Result, bail, ensure};

use self::directory::Directory;
use self::expected::Expected;
use self::results::{Counts, Module, Results};
use self::session::Runner;
use crate::{setup, side_by_side};

/// The options of the command line.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    directory: PathBuf,
    /// The modules to run; all if empty.
    modules: Vec<String>,
    jobs: usize,
    again: bool,
}

/// Runs the modules that have no results yet, and reports failures that are not on the list.
pub(crate) fn run(args: &[OsString]) -> Result<ExitCode> {
    let asked = Asked::parse(args)?;
    let directory = Directory::open(&asked.directory)?;
    let expected = Expected::read()?;
    let modules = directory.chosen(&asked.modules)?;
    setup::run()?;
    let runner = Runner::new(&directory)?;
    directory.check_version(&runner.python_version()?)?;
    let mut results = Results::open(runner.results_file(), &runner.key()?)?;
    let due: VecDeque<&str> = modules
        .iter()
        .map(String::as_str)
        .filter(|module| asked.again || results.module(module).is_none())
        .collect();
    let known = modules.len() - due.len();
    if known > 0 {
        eprintln!("{known} modules ran before; `--again` runs them again");
    }
    run_all(&runner, due, asked.jobs, &mut results)?;
    Ok(conclude(&modules, &results, &expected))
}

/// Runs modules, `jobs` at a time, and stores the results of each as it ends.
fn run_all(runner: &Runner, due: VecDeque<&str>, jobs: usize, results: &mut Results) -> Result<()> {
    let total = due.len();
    let results = Mutex::new((0, results));
    side_by_side::each(jobs, due, |_, name| {
        let module = runner.run(name)?;
        let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
        results.0 += 1;
        eprintln!("{} of {total}: {name}: {}", results.0, module.summary());
        results.1.keep(name, module)
    })
}

/// Prints the counts, and the differences from the expected failures.
fn conclude(modules: &[String], results: &Results, expected: &Expected) -> ExitCode {
    let ran: BTreeMap<&str, &Module> =
        modules.iter().filter_map(|name| Some((name.as_str(), results.module(name)?))).collect();
    let difference = expected.compare(&ran);
    for line in difference.lines() {
        println!("{line}");
    }
    println!("{}", Counts::of(ran.values().copied()));
    if difference.is_none() {
        println!("What is wrong is what `{}` says.", expected::FILE);
        return ExitCode::SUCCESS;
    }
    println!("That is not what `{}` says. Reports and output: `{}`.", expected::FILE, session::DIR);
    ExitCode::FAILURE
}

impl Asked {
    fn parse(args: &[OsString]) -> Result<Self> {
        let jobs = thread::available_parallelism().map_or(1, Into::into);
        let (mut directory, mut modules, mut again, mut asked_jobs) =
            (None, Vec::new(), false, jobs);
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.to_str() {
                Some("--again") => again = true,
                Some("--jobs") => {
                    let number = args.next().and_then(|number| number.to_str()?.parse().ok());
                    asked_jobs = number
                        .filter(|number| *number > 0)
                        .context("`--jobs` needs a number above 0, such as `--jobs 2`")?;
                }
                Some(option) if option.starts_with('-') => {
                    bail!("`{option}` is no option of `cpython-tests`")
                }
                _ if directory.is_none() => directory = Some(PathBuf::from(arg)),
                Some(module) => modules.push(module.to_owned()),
                None => bail!("`{}` is not the name of a module", arg.to_string_lossy()),
            }
        }
        let directory = directory.context(
            "`cpython-tests` needs the directory of the tests: `Lib/test` of a checkout of CPython",
        )?;
        ensure!(!directory.as_os_str().is_empty(), "the directory of the tests has no name");
        Ok(Self { directory, modules, jobs: asked_jobs, again })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Result<Asked> {
        let words: Vec<OsString> = words.split_whitespace().map(Into::into).collect();
        Asked::parse(&words)
    }

    #[test]
    fn command_line_is_understood() {
        let asked = parse("Lib/test --jobs 3 test_json --again test_re").unwrap();
        assert_eq!(asked.directory, PathBuf::from("Lib/test"));
        assert_eq!(asked.modules, ["test_json", "test_re"]);
        assert_eq!((asked.jobs, asked.again), (3, true));
        assert!(parse("Lib/test").unwrap().jobs > 0);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (words, reason) in [
            ("", "needs the directory"),
            ("Lib/test --jobs", "needs a number"),
            ("Lib/test --jobs 0", "needs a number"),
            ("Lib/test --fast", "`--fast` is no option"),
        ] {
            let error = parse(words).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
