//! `cargo xtask generate`: writes the files that others give. `tidy` and `lint` check them.

use std::fs;
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::tidy::ops;
use crate::{lint, process};

pub(crate) fn run() -> Result<ExitCode> {
    let root = process::root();
    let directory = root.join(ops::SOURCES);
    let mut sources = Vec::new();
    for entry in fs::read_dir(&directory).context("cannot list the ops")? {
        let path = entry.context("cannot list the ops")?.path();
        let source = fs::read_to_string(&path);
        sources.push(source.with_context(|| format!("cannot read `{}`", path.display()))?);
    }
    let declarations = ops::declarations(sources.iter().map(String::as_str))?;
    let path = root.join(ops::DECLARATIONS);
    fs::write(&path, declarations).with_context(|| format!("cannot write `{}`", path.display()))?;
    lint::write_twins()
}
