//! `cargo xtask dist`: builds the distribution for people who do not build: the stripped command
//! with Pyodide, its notices, manual and completions, in one directory that is a prefix.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, ensure};

use crate::process::{self, Profile};
use crate::{assets, glibc, licenses, manifest, platform, vendored_v8, wheel};

/// Files of the repository that are included.
const FILES: [&str; 5] = [
    "README.md",
    "CHANGELOG.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "third_party/licenses/THIRD-PARTY.txt",
];
/// Where those of each shell are looked for below a prefix.
const COMPLETIONS: [(&str, &str); 4] = [
    ("bash", "share/bash-completion/completions/isolet"),
    ("zsh", "share/zsh/site-functions/_isolet"),
    ("fish", "share/fish/vendor_completions.d/isolet.fish"),
    ("powershell", "share/isolet/completions/_isolet.ps1"),
];
/// Where documents are, also the recipe of the image, whose context is the directory.
pub(crate) const DOCUMENTS: &str = "share/doc/isolet";
const CONTAINERFILE: &str = "deploy/container/Containerfile";

/// The time of what a wheel has, unless `SOURCE_DATE_EPOCH` says another one: the second day that
/// zip archives can name. That of the commit would have cargo compile all that has C in it anew
/// after each commit.
const TIME_IN_WHEELS: &str = "315619200";

/// How the command in a package is built.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Build {
    /// To be published: optimised, and without paths of this machine.
    Optimized,
    /// To try packages: the one that tests use, without symbols.
    Tested,
}

/// Makes `target/dist/isolet-VERSION-TARGET`.
pub(crate) fn run(build: Build) -> Result<PathBuf> {
    licenses::check()?;
    let command = program(build)?;
    assets::prepare(&command)?;
    let dir = process::target_dir()?.join("dist").join(name(&version()?));
    lay_out(&command, &dir)?;
    let bytes = fs::metadata(&command).context("cannot read what was built")?.len();
    eprintln!("made `{}`, in which the command has {bytes} bytes", dir.display());
    Ok(dir)
}

/// Returns the name of the directory, and of archives of it.
pub(crate) fn name(version: &str) -> String {
    format!("isolet-{version}-{}", platform::triple())
}

/// Returns the version of all packages.
pub(crate) fn version() -> Result<String> {
    let path = process::root().join("Cargo.toml");
    let text = fs::read_to_string(&path).context("cannot read `Cargo.toml`")?;
    manifest::version(&text).map(str::to_owned).context("`Cargo.toml` has no version")
}

/// Makes a prefix with a built command.
fn lay_out(built: &Path, dir: &Path) -> Result<()> {
    if dir.exists() {
        fs::remove_dir_all(dir).with_context(|| format!("cannot empty `{}`", dir.display()))?;
    }
    let made = |name: &str| {
        let path = dir.join(name);
        let parent = path.parent().unwrap_or(dir);
        fs::create_dir_all(parent)
            .with_context(|| format!("cannot make `{}`", parent.display()))?;
        Ok::<_, anyhow::Error>(path)
    };
    let program = made("bin/isolet")?;
    copy(built, &program)?;
    wheel::stage(&made("share/isolet/assets")?)?;
    copy(&process::root().join(CONTAINERFILE), &made(&format!("{DOCUMENTS}/Containerfile"))?)?;
    copy_files(&dir.join(DOCUMENTS))?;
    output(Command::new(&program).args(["man", "--dir"]).arg(dir.join("share/man/man1")))?;
    for (shell, name) in COMPLETIONS {
        let script = output(Command::new(&program).args(["completions", shell]))?;
        let path = made(name)?;
        fs::write(&path, script).with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    Ok(())
}

/// Builds the command without symbols.
pub(crate) fn program(build: Build) -> Result<PathBuf> {
    vendored_v8::ensure()?;
    let mut cargo = process::cargo();
    cargo.args(["rustc", "--locked", "--package", process::COMMAND, "--bin", "isolet"]);
    // Strips symbols only when linking this program: tests keep theirs.
    as_published(&mut cargo, build)?.args(["--", "-C", "strip=symbols"]);
    process::check(cargo.args(glibc::link_args()?))?;
    let program = Profile::FastBuild.built("isolet")?;
    glibc::check(&program)?;
    Ok(program)
}

/// Has cargo, or a program that calls it, build the command for packages.
pub(crate) fn as_published(command: &mut Command, build: Build) -> Result<&mut Command> {
    match build {
        Build::Tested => command.args(["--profile", Profile::FastBuild.name()]),
        Build::Optimized => {
            process::optimized(command).env("CARGO_ENCODED_RUSTFLAGS", without_paths()?)
        }
    };
    if env::var_os("SOURCE_DATE_EPOCH").is_none() {
        command.env("SOURCE_DATE_EPOCH", TIME_IN_WHEELS);
    }
    Ok(with_commit(command))
}

/// Returns what rustc is told so that a build is the same in each directory: messages of panics
/// name files as if the repository were at `/isolet` and cargo's packages at `/cargo`.
fn without_paths() -> Result<String> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| env::home_dir().map(|home| home.join(".cargo")));
    let home = home.context("cannot tell where the cargo home is; set `CARGO_HOME`")?;
    let remapped = [(home, "/cargo"), (process::root(), "/isolet")];
    let flags = remapped.map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display()));
    Ok(flags.join("\u{1f}"))
}

/// Returns the time of what is in archives, in seconds since 1970: `SOURCE_DATE_EPOCH`, or that of
/// the commit.
pub(crate) fn epoch() -> Option<String> {
    let given = env::var("SOURCE_DATE_EPOCH").ok();
    given.or_else(|| git(&["log", "-1", "--format=%ct"]).ok())
}

/// Copies the licences and what else comes with the command.
pub(crate) fn copy_files(dir: &Path) -> Result<()> {
    for name in FILES {
        let file = process::root().join(name);
        let short = file.file_name().with_context(|| format!("`{name}` has no name"))?;
        copy(&file, &dir.join(short))?;
    }
    Ok(())
}

/// Passes the commit to the build, if this is a checkout and the caller has not said it.
pub(crate) fn with_commit(cargo: &mut Command) -> &mut Command {
    match env::var("ISOLET_COMMIT").ok().or_else(commit) {
        Some(commit) => cargo.env("ISOLET_COMMIT", commit),
        None => cargo,
    }
}

/// Returns the commit that is checked out, with `-modified` if files differ from it.
fn commit() -> Option<String> {
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).ok()?;
    let changes = git(&["status", "--porcelain"]).ok()?;
    Some(if changes.is_empty() { commit } else { format!("{commit}-modified") })
}

fn git(args: &[&str]) -> Result<String> {
    let said = output(Command::new("git").args(args).current_dir(process::root()))?;
    Ok(said.trim().to_owned())
}

fn output(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot run `{program}`"))?;
    ensure!(output.status.success(), "`{program}` ended with {}", output.status);
    String::from_utf8(output.stdout).with_context(|| format!("`{program}` printed no UTF-8"))
}

pub(crate) fn copy(from: &Path, to: &Path) -> Result<()> {
    let copied = fs::copy(from, to);
    copied.map(drop).with_context(|| format!("cannot copy `{}`", from.display()))
}
