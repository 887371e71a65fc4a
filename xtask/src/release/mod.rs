//! `cargo xtask release`: makes every file of a release for this platform, and checks them. Whoever
//! has the keys publishes them: docs/contributing/release.md.

mod check;
mod formula;
pub(crate) mod install_test;
mod sbom;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};
use isolet_pyodide_assets::Digest;

pub(crate) use self::sbom::write as write_bill;
use crate::dist::{self, Build};
use crate::wheel::Purpose;
use crate::{mcpb, npm, process, science, wheel};

/// Packs a directory.
const PACK: &str = include_str!("pack.py");

/// The list of all files with their digests.
const SUMS: &str = "SHA256SUMS";

/// The scripts that install a release.
const INSTALLERS: [&str; 2] = ["install.sh", "install.ps1"];

/// The suffix of bills of materials.
const BILL: &str = "cdx.json";

/// What a release is made from.
#[derive(Clone, Copy)]
struct From {
    build: Build,
    /// Whether guests' packages are the builds that the tests use, and not Pyodide's distribution.
    tested_packages: bool,
}

/// Makes or checks a release, as the arguments say.
pub(crate) fn run(words: &[&str]) -> Result<ExitCode> {
    let has = |word| words.contains(&word);
    let build = if has("--tested") { Build::Tested } else { Build::Optimized };
    let from = From { build, tested_packages: has("--tested") || has("--tested-packages") };
    let is_source = |word: &&str| ["--tested", "--tested-packages"].contains(word);
    let rest: Vec<&str> = words.iter().copied().filter(|word| !is_source(word)).collect();
    match rest[..] {
        [] => {
            let to = directory()?;
            empty(&to)?;
            make(from, &to)?;
        }
        ["--platform"] => {
            let to = directory()?;
            empty(&to)?;
            of_platform(build, &to)?;
        }
        ["--index", directory] => index(Path::new(directory))?,
        ["--check"] => return check::run(from),
        _ => bail!(
            "`release` takes `--platform`, `--index DIR`, `--check` or nothing, and `--tested` or \
             `--tested-packages` to try it with what the tests use"
        ),
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes all files.
fn make(from: From, to: &Path) -> Result<()> {
    of_platform(from.build, to)?;
    common(from, to)?;
    index(to)
}

/// Returns the directory of a release's files.
fn directory() -> Result<PathBuf> {
    Ok(process::target_dir()?.join("release-files"))
}

/// Makes what each platform has of its own: the archive and its bill of materials, the Python
/// package, those of npm, the bundle for MCP clients.
fn of_platform(build: Build, to: &Path) -> Result<()> {
    let dir = dist::run(build)?;
    let version = dist::version()?;
    let name = dist::name(&version);
    let bill = to.join(format!("{name}.{BILL}"));
    sbom::write(&bill, &version)?;
    dist::copy(&bill, &dir.join(dist::DOCUMENTS).join(format!("isolet.{BILL}")))?;
    pack(&dir, &to.join(format!("{name}.tar.gz")))?;
    take(&wheel::run(Purpose::Publishing(build))?, to)?;
    for package in archives(&npm::run(build)?)? {
        take(&package, to)?;
    }
    take(&mcpb::run(build)?, to)
}

/// Makes what is the same on each platform: the packages that code imports.
fn common(from: From, to: &Path) -> Result<()> {
    let source = if from.tested_packages {
        science::Source::tested()?
    } else {
        science::Source::Distribution
    };
    let made = science::wheel(&source)?;
    for entry in fs::read_dir(&made).with_context(|| format!("cannot read `{}`", made.display()))? {
        take(&entry.context("cannot read what was made")?.path(), to)?;
    }
    Ok(())
}

/// Adds to the files of all platforms the installers, the list of digests and Homebrew's formula.
fn index(to: &Path) -> Result<()> {
    for name in INSTALLERS {
        dist::copy(&process::root().join(name), &to.join(name))?;
    }
    let (version, formula) = (dist::version()?, to.join(formula::NAME));
    fs::write(&formula, formula::text(&version, &digests(to)?)?)
        .with_context(|| format!("cannot write `{}`", formula.display()))?;
    let sums = list(&digests(to)?);
    fs::write(to.join(SUMS), &sums).context("cannot write the digests")?;
    eprintln!("made `{}`:\n{}", to.display(), sums.trim_end());
    Ok(())
}

/// Returns the list of digests, as `sha256sum` writes it.
fn list(files: &[(String, Digest)]) -> String {
    files.iter().fold(String::new(), |mut list, (name, digest)| {
        // Writing to a text cannot fail.
        let _ = writeln!(list, "{digest}  {name}");
        list
    })
}

/// Returns the files of a release with their digests, sorted by name, without the list of them.
fn digests(of: &Path) -> Result<Vec<(String, Digest)>> {
    let unreadable = || format!("cannot read `{}`; `cargo xtask release` makes it", of.display());
    let mut found = Vec::new();
    for entry in fs::read_dir(of).with_context(unreadable)? {
        let entry = entry.with_context(unreadable)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name != SUMS {
            found.push((name, Digest::of(&fs::read(entry.path()).with_context(unreadable)?)));
        }
    }
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(found)
}

/// Packs a directory as a tarball, the same each time.
fn pack(dir: &Path, to: &Path) -> Result<()> {
    let time = dist::epoch().unwrap_or_else(|| "0".to_owned());
    process::check(Command::new("python3").args(["-c", PACK]).args([dir, to]).arg(time))
}

/// Copies a file that was made into the release.
fn take(file: &Path, to: &Path) -> Result<()> {
    let name = file.file_name().with_context(|| format!("`{}` has no name", file.display()))?;
    dist::copy(file, &to.join(name))
}

/// Returns the packages of npm in a directory.
fn archives(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(dir).with_context(|| format!("cannot read `{}`", dir.display()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let found: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|end| end == "tgz")).collect();
    ensure!(!found.is_empty(), "there is no package in `{}`", dir.display());
    Ok(found)
}

/// Makes a directory that has nothing in it.
fn empty(dir: &Path) -> Result<()> {
    if dir.exists() {
        fs::remove_dir_all(dir).with_context(|| format!("cannot empty `{}`", dir.display()))?;
    }
    fs::create_dir_all(dir).with_context(|| format!("cannot make `{}`", dir.display()))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn an_archive_is_the_same_wherever_and_whenever_it_is_made() {
        let dir = process::target_dir().unwrap().join(format!("pack-test-{}", std::process::id()));
        let made = |place: &str, mode: u32| {
            let content = dir.join(place).join("isolet-1");
            fs::create_dir_all(content.join("bin")).unwrap();
            for name in ["z", "a", "bin/isolet"] {
                fs::write(content.join(name), name).unwrap();
            }
            let program = fs::Permissions::from_mode(mode);
            fs::set_permissions(content.join("bin/isolet"), program).unwrap();
            let archive = dir.join(place).join("isolet-1.tar.gz");
            pack(&content, &archive).unwrap();
            archive
        };
        let (one, other) = (made("one", 0o755), made("other", 0o700));
        assert_eq!(fs::read(&one).unwrap(), fs::read(&other).unwrap());
        let mut tar = Command::new("tar");
        let listed = tar.args(["-tv", "--numeric-owner", "-f"]).arg(&one).output().unwrap();
        fs::remove_dir_all(&dir).unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        let names: Vec<_> = listed.lines().filter_map(|line| line.split(' ').next_back()).collect();
        let sorted =
            ["isolet-1/", "isolet-1/a", "isolet-1/bin/", "isolet-1/bin/isolet", "isolet-1/z"];
        assert_eq!(names, sorted, "{listed}");
        assert!(listed.contains("-rwxr-xr-x 0/0") && listed.contains("-rw-r--r-- 0/0"), "{listed}");
    }

    #[test]
    fn cargo_binstall_finds_the_archive_and_the_program_in_it() {
        let manifest = process::root().join("crates/isolet-cli/Cargo.toml");
        let manifest = fs::read_to_string(manifest).unwrap();
        let text = |key: &str| {
            let text = crate::manifest::text(&manifest, "package.metadata.binstall", key).unwrap();
            let words = [
                ("{ repo }", "https://github.com/isolet/isolet"),
                ("{ version }", "1.2.3"),
                ("{ target }", &crate::platform::triple()),
                ("{ archive-suffix }", ".tar.gz"),
                ("{ bin }", "isolet"),
                ("{ binary-ext }", ""),
            ];
            words.iter().fold(text.to_owned(), |text, (word, with)| text.replace(word, with))
        };
        let name = dist::name("1.2.3");
        let place = "https://github.com/isolet/isolet/releases/download/v1.2.3";
        assert_eq!(text("pkg-url"), format!("{place}/{name}.tar.gz"));
        assert_eq!(text("bin-dir"), format!("{name}/bin/isolet"));
        let installer = fs::read_to_string(process::root().join("install.sh")).unwrap();
        assert!(
            installer.contains("RELEASES=https://github.com/isolet/isolet/releases/download\n")
        );
    }

    #[test]
    fn the_list_of_digests_has_each_file_but_itself() {
        let dir = process::target_dir().unwrap().join(format!("sums-test-{}", std::process::id()));
        empty(&dir).unwrap();
        fs::write(dir.join("isolet-1-x86_64-unknown-linux-gnu.tar.gz"), "x").unwrap();
        index(&dir).unwrap();
        let sums = fs::read_to_string(dir.join(SUMS)).unwrap();
        index(&dir).unwrap();
        assert_eq!(fs::read_to_string(dir.join(SUMS)).unwrap(), sums, "made again");
        fs::remove_dir_all(&dir).unwrap();
        let names: Vec<_> = sums.lines().filter_map(|line| line.split("  ").nth(1)).collect();
        let archive = "isolet-1-x86_64-unknown-linux-gnu.tar.gz";
        assert_eq!(names, ["install.ps1", "install.sh", archive, "isolet.rb"]);
        assert!(sums.contains(&format!("{}  {archive}\n", Digest::of(b"x"))));
    }
}
