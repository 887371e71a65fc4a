//! `cargo xtask packages`: runs a script for each package of a list, and writes
//! `docs/concepts/packages.md`.

#![expect(clippy::print_stdout, reason = "the rows are this command's result")]

mod list;
mod page;
mod server;
mod trial;

use std::ffi::OsString;
use std::fs;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};

use self::list::Package;
use self::page::Row;
use self::trial::Runner;
use crate::{process, python, setup, side_by_side};

/// How many packages are tried at a time.
const JOBS: usize = 2;

/// The page that the command writes.
const PAGE: &str = "docs/concepts/packages.md";

/// Tries the named packages and prints their rows, or tries all and writes the page.
pub(crate) fn run(names: &[OsString]) -> Result<ExitCode> {
    let all = list::read()?;
    let chosen = list::chosen(&all, names)?;
    python::ensure()?;
    setup::run()?;
    let runner = Runner::new()?;
    let rows = try_all(&runner, &chosen)?;
    if !names.is_empty() {
        print!("{}", page::table(&rows));
        return Ok(ExitCode::SUCCESS);
    }
    let path = process::root().join(PAGE);
    fs::write(&path, page::render(&rows, &runner.versions()?)?)
        .with_context(|| format!("cannot write `{PAGE}`"))?;
    println!("{}, in `{PAGE}`", page::counts(&rows));
    Ok(ExitCode::SUCCESS)
}

/// Tries packages, `JOBS` at a time. Returns their rows in the order of the packages.
fn try_all<'a>(runner: &Runner, packages: &[&'a Package]) -> Result<Vec<Row<'a>>> {
    let total = packages.len();
    let rows = Mutex::new(Vec::new());
    side_by_side::each(JOBS, packages.iter().copied(), |index, package| {
        let tried = runner.run(package)?;
        let mut rows = rows.lock().unwrap_or_else(PoisonError::into_inner);
        eprintln!("{} of {total}: {}: {}", rows.len() + 1, package.name, tried.outcome);
        rows.push((index, Row { package, tried }));
        Ok(())
    })?;
    let mut rows = rows.into_inner().unwrap_or_else(PoisonError::into_inner);
    rows.sort_by_key(|(index, _)| *index);
    Ok(rows.into_iter().map(|(_, row)| row).collect())
}
