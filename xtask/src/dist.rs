//! `cargo xtask dist`: builds the distribution for people who do not build: the stripped command
//! with its notices, manual and completions, in one directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::process::{self, Profile};
use crate::{licenses, vendored_v8};

/// Files of the repository that are included.
const FILES: [&str; 5] = [
    "README.md",
    "CHANGELOG.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "third_party/licenses/THIRD-PARTY.txt",
];
const COMPLETIONS: [(&str, &str); 4] = [
    ("bash", "isolet.bash"),
    ("zsh", "_isolet"),
    ("fish", "isolet.fish"),
    ("powershell", "_isolet.ps1"),
];

/// Makes `target/dist/isolet-VERSION`.
pub(crate) fn run() -> Result<()> {
    licenses::check()?;
    let built = program()?;
    let version = output(Command::new(&built).arg("-V"))?;
    let version = version.trim().replace(' ', "-");
    let dist = built.ancestors().nth(2).context("there is no target directory")?.join("dist");
    let dir = dist.join(&version);
    if dir.exists() {
        fs::remove_dir_all(&dir).with_context(|| format!("cannot empty `{}`", dir.display()))?;
    }
    let completions = dir.join("completions");
    fs::create_dir_all(&completions)
        .with_context(|| format!("cannot make `{}`", completions.display()))?;
    let program = dir.join("isolet");
    copy(&built, &program)?;
    copy_files(&dir)?;
    let man = dir.join("man/man1");
    output(Command::new(&program).args(["man", "--dir"]).arg(man))?;
    for (shell, name) in COMPLETIONS {
        let script = output(Command::new(&program).args(["completions", shell]))?;
        let path = completions.join(name);
        fs::write(&path, script).with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    let bytes = fs::metadata(&program).context("cannot read what was built")?.len();
    eprintln!("made `{}`, in which the command has {bytes} bytes", dir.display());
    Ok(())
}

/// Builds the command without symbols.
pub(crate) fn program() -> Result<PathBuf> {
    vendored_v8::ensure()?;
    // Strips symbols only when linking this program: tests keep theirs.
    let mut cargo = process::cargo();
    cargo.args(["rustc", "--locked", "--package", process::COMMAND, "--bin", "isolet"]);
    process::optimized(&mut cargo).args(["--", "-C", "strip=symbols"]);
    process::check(with_commit(&mut cargo))?;
    Profile::FastBuild.built("isolet")
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

/// Passes the commit to the build, if this is a checkout.
pub(crate) fn with_commit(cargo: &mut Command) -> &mut Command {
    match commit() {
        Some(commit) => cargo.env("ISOLET_COMMIT", commit),
        None => cargo,
    }
}

/// Returns the commit that is checked out, with `-modified` if files differ from it.
fn commit() -> Option<String> {
    let git = |args: &[&str]| output(Command::new("git").args(args).current_dir(process::root()));
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).ok()?.trim().to_owned();
    let changes = git(&["status", "--porcelain"]).ok()?;
    Some(if changes.is_empty() { commit } else { format!("{commit}-modified") })
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
