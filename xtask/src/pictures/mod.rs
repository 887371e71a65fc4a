//! `cargo xtask pictures`: draws README's pictures, a terminal and the benchmark's chart, from what
//! the command prints and from the table of docs/performance.md.

#![expect(clippy::print_stdout, reason = "the names of the files are this command's result")]

mod chart;
mod terminal;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use crate::process::{self, Profile};
use crate::setup;

/// What the command's picture is drawn from, and where it is.
const TERMINAL: &str = "docs/pictures/terminal.svg";

const CHART: &str = "docs/pictures/benchmark.svg";

/// The page whose first table of results the chart shows.
const TABLE: &str = "docs/performance.md";

/// Draws both pictures, or with `--check` compares them. `ISOLET` names another command than the
/// built one.
pub(crate) fn run(args: &[OsString]) -> Result<ExitCode> {
    let is_check = match args {
        [] => false,
        [word] if word == "--check" => true,
        _ => bail!("`cargo xtask pictures` takes nothing but `--check`"),
    };
    let isolet = if let Some(isolet) = env::var_os("ISOLET") {
        isolet.into()
    } else {
        setup::run()?;
        Profile::FastBuild.built("isolet")?
    };
    if is_check { compare(&isolet) } else { write(&isolet) }
}

/// Requires that the pictures are what the built command and the table give.
pub(crate) fn check() -> Result<ExitCode> {
    compare(&Profile::FastBuild.built("isolet")?)
}

fn drawn(isolet: &Path) -> Result<[(&'static str, String); 2]> {
    let table = process::root().join(TABLE);
    let page = fs::read_to_string(table).with_context(|| format!("cannot read `{TABLE}`"))?;
    Ok([(TERMINAL, terminal::picture(isolet)?), (CHART, chart::picture(&page)?)])
}

fn write(isolet: &Path) -> Result<ExitCode> {
    for (name, svg) in drawn(isolet)? {
        let path = process::root().join(name);
        let parent = path.parent().context("a picture is in a directory")?;
        fs::create_dir_all(parent)
            .and_then(|()| fs::write(&path, svg))
            .with_context(|| format!("cannot write `{name}`"))?;
        println!("{name}");
    }
    Ok(ExitCode::SUCCESS)
}

fn compare(isolet: &Path) -> Result<ExitCode> {
    for (name, svg) in drawn(isolet)? {
        let there = fs::read_to_string(process::root().join(name))
            .with_context(|| format!("cannot read `{name}`"))?;
        if there != svg {
            eprintln!("`{name}` is not what `cargo xtask pictures` draws");
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes a text for SVG.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
