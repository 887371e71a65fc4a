//! Makes `isolet-fonts`, a wheel with fonts for Chinese, Japanese, Korean and emoji, of which
//! matplotlib's own font has none.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use isolet_pyodide_assets::Digest;

use crate::bump::registry;
use crate::{process, python};

/// The package's name.
pub(super) const NAME: &str = "isolet-fonts";

const WHEEL: &str = "isolet_fonts-1.0-py3-none-any.whl";

/// The font with Chinese, Japanese and Korean characters: what pip gets it in, and its place there.
const CJK: (&str, &str) =
    ("paperang-p2-fonts-cjk==0.1.0", "paperang_p2_fonts_cjk/fonts/wqy-microhei.ttc");

const CJK_SHA256: &str = "2420e8078af796b19a3f6ef13de527a1a91c1e7171eea115926c614ced1009b3";

/// The font with emoji: the package of npm, its version, and the font's place there.
const EMOJI: (&str, &str, &str) =
    ("@expo-google-fonts/noto-emoji", "0.4.7", "400Regular/NotoEmoji_400Regular.ttf");

const EMOJI_SHA256: &str = "24aaa2a20c9c06ffe9bf04284bfd1f14376a329d10122f902abe2770817eb504";

const PACK: &str = include_str!("pack.py");

/// Returns the directory with the wheel, which is made if it is not there.
pub(crate) fn directory() -> Result<PathBuf> {
    let directory = process::target_dir()?.join("science/fonts");
    let wheel = directory.join(WHEEL);
    if wheel.exists() {
        return Ok(directory);
    }
    eprintln!("fetching fonts with pip and npm");
    let sources = directory.with_file_name("font-sources");
    fs::create_dir_all(&directory).with_context(|| cannot_write(&directory))?;
    let (emoji, cjk) = (emoji(&sources.join("emoji"))?, cjk(&sources.join("cjk"))?);
    let (ours, root) = (process::root().join("xtask/src/science/fonts"), process::root());
    let unfinished = sources.join(WHEEL);
    let mut pack = Command::new(python::program()?);
    pack.args(["-c", PACK]).arg(&unfinished).arg(ours.join("package.py")).args([cjk, emoji]);
    process::check(pack.args([root.join("LICENSE-APACHE"), ours.join("OFL.txt")]))?;
    fs::rename(&unfinished, &wheel).with_context(|| cannot_write(&wheel))?;
    fs::remove_dir_all(&sources).with_context(|| cannot_write(&sources))?;
    Ok(directory)
}

fn emoji(to: &Path) -> Result<PathBuf> {
    let (name, version, place) = EMOJI;
    checked(registry::package(name, version, to)?.files.join(place), EMOJI_SHA256)
}

fn cjk(to: &Path) -> Result<PathBuf> {
    let (requirement, place) = CJK;
    let mut pip = Command::new(python::program()?);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]);
    pip.args(["--only-binary=:all:", "--no-compile", "--upgrade", "--target"]).arg(to);
    process::check(pip.arg(requirement))?;
    checked(to.join(place), CJK_SHA256)
}

fn checked(path: PathBuf, expected: &str) -> Result<PathBuf> {
    let bytes = fs::read(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let found = Digest::of(&bytes).to_string();
    ensure!(found == expected, "`{}` has the sha256 {found}, expected {expected}", path.display());
    Ok(path)
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write to `{}`", path.display())
}
