//! Packs the packages in `guest-packages` as wheels.

mod fonts;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::{process, python};

/// The packages.
pub(super) const NAMES: [&str; 2] = ["isolet-charts", "isolet-fonts"];

const CHARTS: Package = Package {
    wheel: "isolet_charts-1.0-py3-none-any.whl",
    directory: "isolet_charts",
    summary: "Charts of plotly and altair: what they say, and pictures of them",
    licence: "MIT OR Apache-2.0",
};

const FONTS: Package = Package {
    wheel: "isolet_fonts-1.0-py3-none-any.whl",
    directory: "isolet_fonts",
    summary: "Fonts for Chinese, Japanese, Korean and emoji",
    licence: "Apache-2.0 AND OFL-1.1",
};

const PACK: &str = include_str!("pack.py");

struct Package {
    wheel: &'static str,
    directory: &'static str,
    summary: &'static str,
    licence: &'static str,
}

/// Returns the directory with the wheels. That with the fonts is made once, the other each time.
pub(crate) fn directory() -> Result<PathBuf> {
    let directory = process::target_dir()?.join("science/own");
    fs::create_dir_all(&directory).with_context(|| cannot_write(&directory))?;
    CHARTS.pack(&directory, &[])?;
    if !directory.join(FONTS.wheel).exists() {
        let sources = directory.with_file_name("font-sources");
        fs::create_dir_all(&sources).with_context(|| cannot_write(&sources))?;
        FONTS.pack(&directory, &fonts::fetch(&sources)?)?;
        fs::remove_dir_all(&sources).with_context(|| cannot_write(&sources))?;
    }
    Ok(directory)
}

impl Package {
    fn pack(&self, to: &Path, fonts: &[PathBuf]) -> Result<()> {
        let unfinished = to.with_file_name(self.wheel);
        let from = process::root().join("guest-packages").join(self.directory);
        let mut pack = Command::new(python::program()?);
        pack.args(["-c", PACK]).arg(&unfinished).arg(from).args([self.summary, self.licence]);
        process::check(pack.args(fonts))?;
        fs::rename(&unfinished, to.join(self.wheel)).with_context(|| cannot_write(to))
    }
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write to `{}`", path.display())
}
