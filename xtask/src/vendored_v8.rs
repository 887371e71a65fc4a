//! Copies the vendored V8 to the directory in which the `v8` crate looks before it downloads.

use std::env;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use isolet_pyodide_assets::Digest;

use crate::process;

/// The version of the `v8` crate that the vendored archive was built from.
pub(crate) const VERSION: &str = "150.4.0";
const DIR: &str = "third_party/v8";
const ARCHIVE: &str = "librusty_v8_simdutf_release_x86_64-unknown-linux-gnu.a.gz";
/// The URL prefix that the `v8` crate downloads from otherwise. It derives a file name from the URL
/// by escaping.
const RELEASES: &str = "https://github.com/denoland/rusty_v8/releases/download";

/// Copies the vendored archive to the cargo home, unless it is there already or this machine cannot
/// use it.
pub(crate) fn ensure() -> Result<()> {
    // If one of these is set, the crate does not look there.
    let elsewhere = ["RUSTY_V8_ARCHIVE", "RUSTY_V8_MIRROR", "V8_FROM_SOURCE"];
    let usable = cfg!(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"));
    if !usable || elsewhere.iter().any(|name| env::var_os(name).is_some()) {
        return Ok(());
    }
    let lock = fs::read_to_string(process::root().join("Cargo.lock"));
    let lock = lock.context("cannot read `Cargo.lock`")?;
    let Some(wanted) = locked_version(&lock, "v8") else { bail!("`Cargo.lock` has no `v8`") };
    if wanted != VERSION {
        eprintln!(
            "warning: `{DIR}` holds V8 {VERSION} and `Cargo.lock` wants {wanted}, so the build \
             will try to download its own"
        );
        return Ok(());
    }
    let target = cache_dir()?.join(cached_name(VERSION));
    if target.exists() {
        return Ok(());
    }
    install(&process::root().join(DIR), &target)?;
    eprintln!("copied V8 {VERSION} from `{DIR}` to the cargo home");
    Ok(())
}

/// Copies the archive in `source` to `target` after checking it.
fn install(source: &Path, target: &Path) -> Result<()> {
    let archive =
        fs::read(source.join(ARCHIVE)).with_context(|| format!("cannot read `{DIR}/{ARCHIVE}`"))?;
    let sums = fs::read_to_string(source.join("SHA256SUMS"))
        .with_context(|| format!("cannot read `{DIR}/SHA256SUMS`"))?;
    let mut sums = sums.lines().filter_map(|line| line.split_once("  "));
    let expected = sums.find(|(_, name)| *name == ARCHIVE).map(|(sum, _)| sum);
    let expected = expected.with_context(|| format!("`{DIR}/SHA256SUMS` lacks `{ARCHIVE}`"))?;
    let got = Digest::of(&archive).to_string();
    if got != expected {
        bail!(
            "`{DIR}/{ARCHIVE}` has the wrong sha256 (expected {expected}, got {got}); \
             `git checkout {DIR}` restores it"
        );
    }
    let dir = target.parent().context("the cargo home has no place for V8")?;
    let temporary = dir.join(format!("{}.tmp", std::process::id()));
    fs::create_dir_all(dir)
        .and_then(|()| write(&temporary, &archive))
        .and_then(|()| fs::rename(&temporary, target))
        .inspect_err(|_| drop(fs::remove_file(&temporary)))
        .with_context(|| format!("cannot write `{}`", target.display()))
}

fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Returns the directory in which the `v8` crate looks for earlier downloads.
fn cache_dir() -> Result<PathBuf> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| env::home_dir().map(|home| home.join(".cargo")));
    let home = home.context("cannot tell where the cargo home is; set `CARGO_HOME`")?;
    // Cargo resolves a relative path from the directory in which it was started.
    Ok(std::path::absolute(home)?.join(".rusty_v8"))
}

/// Returns the file name that the crate looks for.
fn cached_name(version: &str) -> String {
    let url = format!("{RELEASES}/v{version}/{ARCHIVE}");
    url.replace(|letter: char| !letter.is_ascii_alphanumeric(), "_")
}

/// Returns the version of `package` in the text of a `Cargo.lock`.
pub(crate) fn locked_version<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    let name = format!("name = \"{package}\"");
    let mut lines = lock.lines().skip_while(|line| *line != name).skip(1);
    lines.next()?.strip_prefix("version = \"")?.strip_suffix('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vendored_files_agree_on_the_version() {
        let dir = process::root().join(DIR);
        let recipe = fs::read_to_string(dir.join("build-v8.sh")).unwrap();
        assert!(recipe.contains(&format!("V8_CRATE={VERSION} ")));
        let readme = fs::read_to_string(dir.join("README.md")).unwrap();
        assert!(readme.contains(&format!("`{}`", cached_name(VERSION))));
        let lock = fs::read_to_string(process::root().join("Cargo.lock")).unwrap();
        assert_eq!(locked_version(&lock, "v8"), Some(VERSION));
    }

    #[test]
    fn archive_is_installed_only_if_it_is_the_right_one() {
        let dir = env::temp_dir().join(format!("isolet-xtask-v8-{}", std::process::id()));
        let source = dir.join("source");
        let target = dir.join("home/.rusty_v8/name");
        fs::create_dir_all(&source).unwrap();
        fs::write(source.join(ARCHIVE), "V8").unwrap();
        let digest = Digest::of(b"V8");
        fs::write(source.join("SHA256SUMS"), format!("{digest}  {ARCHIVE}\n")).unwrap();
        install(&source, &target).unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"V8");
        assert_eq!(fs::read_dir(target.parent().unwrap()).unwrap().count(), 1);

        fs::remove_file(&target).unwrap();
        fs::write(source.join(ARCHIVE), "V9").unwrap();
        assert_eq!(
            install(&source, &target).unwrap_err().to_string(),
            format!(
                "`{DIR}/{ARCHIVE}` has the wrong sha256 (expected {digest}, got {}); \
                 `git checkout {DIR}` restores it",
                Digest::of(b"V9")
            )
        );
        assert!(!target.exists());
        fs::remove_dir_all(dir).unwrap();
    }
}
