//! `cargo xtask gallery`: runs the tasks of `examples/data`, and writes `docs/guides/data.md` with
//! what they print and show.

#![expect(clippy::print_stdout, reason = "the times are this command's result")]

mod page;
mod picture;
mod runner;
mod tasks;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};

use self::picture::Picture;
use self::runner::{Made, Runner};
use self::tasks::Task;
use crate::process::{self, Profile};
use crate::{python, setup};

/// The page that the command writes.
const PAGE: &str = "docs/guides/data.md";

/// The directory of the pictures that the page shows.
const PICTURES: &str = "docs/guides/data";

/// Runs all tasks and writes the page, or with `--check` compares them with it. `ISOLET` names
/// another command than the built one.
pub(crate) fn run(args: &[OsString]) -> Result<ExitCode> {
    let is_check = match args {
        [] => false,
        [word] if word == "--check" => true,
        _ => bail!("`cargo xtask gallery` takes nothing but `--check`"),
    };
    python::ensure()?;
    let isolet = if let Some(isolet) = env::var_os("ISOLET") {
        isolet.into()
    } else {
        setup::run()?;
        Profile::FastBuild.built("isolet")?
    };
    if is_check { compare(&isolet) } else { write(&isolet) }
}

/// Requires that the built command still does what the page says.
pub(crate) fn check() -> Result<ExitCode> {
    compare(&Profile::FastBuild.built("isolet")?)
}

fn write(isolet: &Path) -> Result<ExitCode> {
    let runner = Runner::new(isolet)?;
    let mut results = Vec::new();
    for task in tasks::read()? {
        let made = made(&runner, &task)?;
        let path = picture_of(&task);
        fs::create_dir_all(process::root().join(PICTURES))
            .and_then(|()| fs::write(&path, &made.picture))
            .with_context(|| format!("cannot write `{}`", path.display()))?;
        results.push((task, made));
    }
    let text = page::render(&results, &runner.versions()?)?;
    fs::write(process::root().join(PAGE), text)
        .with_context(|| format!("cannot write `{PAGE}`"))?;
    println!("{} tasks, in `{PAGE}`", results.len());
    Ok(ExitCode::SUCCESS)
}

fn compare(isolet: &Path) -> Result<ExitCode> {
    let page = fs::read_to_string(process::root().join(PAGE))
        .with_context(|| format!("cannot read `{PAGE}`"))?;
    let runner = Runner::new(isolet)?;
    let mut failed = 0;
    for task in tasks::read()? {
        let compared = made(&runner, &task).and_then(|made| differs(&page, &task, &made));
        if let Err(error) = compared {
            eprintln!("{}: {error:#}", task.name);
            failed += 1;
        }
    }
    if failed > 0 {
        eprintln!("{failed} tasks are not as in `{PAGE}`, which `cargo xtask gallery` writes");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs a task, and requires that it shows a picture that the page can have.
fn made(runner: &Runner, task: &Task) -> Result<Made> {
    let made = runner.run(task)?;
    Picture::read(&made.picture)?;
    println!("{}: {:.1} s", task.name, made.seconds);
    Ok(made)
}

/// Fails if a task does not do what the page says.
fn differs(page: &str, task: &Task, made: &Made) -> Result<()> {
    ensure!(
        page.contains(&page::section(task, made)?),
        "it is not this section:\n{}",
        made.printed
    );
    let path = picture_of(task);
    let shown = fs::read(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
    Picture::read(&made.picture)?.resembles(Picture::read(&shown)?)
}

fn picture_of(task: &Task) -> PathBuf {
    process::root().join(PICTURES).join(&task.name).with_extension("png")
}
