//! Fetches the fonts of `isolet-fonts`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use isolet_pyodide_assets::Digest;

use crate::bump::registry;
use crate::{process, python};

/// The font with Chinese, Japanese and Korean characters: what pip gets it in, and its place there.
const CJK: (&str, &str) =
    ("paperang-p2-fonts-cjk==0.1.0", "paperang_p2_fonts_cjk/fonts/wqy-microhei.ttc");

const CJK_SHA256: &str = "2420e8078af796b19a3f6ef13de527a1a91c1e7171eea115926c614ced1009b3";

/// The font with emoji: the package of npm, its version, and the font's place there.
const EMOJI: (&str, &str, &str) =
    ("@expo-google-fonts/noto-emoji", "0.4.7", "400Regular/NotoEmoji_400Regular.ttf");

const EMOJI_SHA256: &str = "24aaa2a20c9c06ffe9bf04284bfd1f14376a329d10122f902abe2770817eb504";

/// Fetches them to a directory, and returns their paths.
pub(super) fn fetch(to: &Path) -> Result<[PathBuf; 2]> {
    eprintln!("fetching fonts with pip and npm");
    let (requirement, place) = CJK;
    let cjk = to.join("cjk");
    let mut pip = Command::new(python::program()?);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]);
    pip.args(["--only-binary=:all:", "--no-compile", "--upgrade", "--target"]).arg(&cjk);
    process::check(pip.arg(requirement))?;
    let cjk = checked(cjk.join(place), CJK_SHA256)?;
    let (name, version, place) = EMOJI;
    let emoji = registry::package(name, version, &to.join("emoji"))?;
    Ok([cjk, checked(emoji.files.join(place), EMOJI_SHA256)?])
}

fn checked(path: PathBuf, expected: &str) -> Result<PathBuf> {
    let bytes = fs::read(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let found = Digest::of(&bytes).to_string();
    ensure!(found == expected, "`{}` has the sha256 {found}, expected {expected}", path.display());
    Ok(path)
}
