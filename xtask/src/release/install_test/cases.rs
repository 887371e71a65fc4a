//! The ways to install isolet, each with a first result, an upgrade and a removal.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use super::roots::{HOME, Root, paths, place};
use super::served::{GONE, OLD, Served};
use super::{LIMIT, tell};
use crate::{bounded, dist, uv};

type Case = fn(&Served) -> Result<()>;

pub(super) const CASES: [(&str, Case); 8] = [
    ("an empty Debian, by apt's downloader", debian),
    ("an upgrade, and what fails on the way", upgrade),
    ("BusyBox and the C library alone", bare),
    ("a system without the C library", without_library),
    ("the packages that code imports", science),
    ("the Python package in a fresh environment", wheel),
    ("uvx", uvx),
    ("npx", npx),
];

const INSTALL: &str = "sh /install.sh";
/// As people do who have not saved the script.
const PIPED: &str = "cat /install.sh | sh -s --";
const ANSWER: &str = "~/.local/bin/isolet run -c 'print(6*7)'";
/// How much processor time the shell and its programs took.
const TIMES: &str = "times >&2";
const REMOVE: &str = "sh /install.sh --uninstall --purge";

fn debian(served: &Served) -> Result<()> {
    round(served, &Root::debian("a")?)
}

fn bare(served: &Served) -> Result<()> {
    round(served, &Root::bare("b", true)?)
}

/// Installs, runs, installs again, and removes without leaving anything.
fn round(served: &Served, root: &Root) -> Result<()> {
    let new = served.address("new");
    let before = root.paths()?;
    let start = Instant::now();
    println!("   the last of these lines: processor time of programs, the system's behind it");
    let said = root.succeeds(&new, &format!("{INSTALL} && {ANSWER} && {TIMES}"))?;
    tell("from the start of install.sh to the first result", start.elapsed());
    ensure!(said == "42\n", "the first result was `{said}`");
    let start = Instant::now();
    root.succeeds(&new, ANSWER)?;
    println!("   the second run: {:.2} s", start.elapsed().as_secs_f64());
    let installed = root.paths()?;
    println!("   outside of lib/isolet there are: {}", outside(&installed, &before));
    let hint = format!("{PIPED} 2>&1 | grep -F '/install.sh | sh -s -- --uninstall'");
    let said = root.succeeds(&new, &hint)?;
    ensure!(said.contains(&new), "it does not say where the script is: {said}");
    ensure!(root.paths()? == installed, "a second installation changed what there is");
    root.succeeds(&new, &format!("{PIPED} --uninstall"))?;
    println!("   --uninstall leaves: {}", outside(&root.paths()?, &before));
    root.succeeds(&new, INSTALL)?;
    root.succeeds(&new, REMOVE)?;
    same(&before, &root.paths()?)
}

/// Returns what there is besides, without the directory of the installation.
fn outside(now: &BTreeSet<PathBuf>, before: &BTreeSet<PathBuf>) -> String {
    let own = Path::new(HOME.trim_start_matches('/')).join(".local/lib/isolet");
    let added = now.difference(before).filter(|path| !path.starts_with(&own) || **path == own);
    let names: Vec<_> = added.map(|path| path.display().to_string()).collect();
    if names.is_empty() { "nothing".to_owned() } else { names.join(" ") }
}

fn upgrade(served: &Served) -> Result<()> {
    let root = Root::debian("c")?;
    let before = root.paths()?;
    let (old, new) = (served.address("old"), served.address("new"));
    // A program of pip's, which pip has to remove.
    root.succeeds(&new, "mkdir -p ~/.local/bin && echo x > ~/.local/bin/isolet")?;
    root.fails(&new, INSTALL, "is there already, and is not of this installer")?;
    root.succeeds(&new, "rm -r ~/.local")?;
    same(&before, &root.paths()?)?;
    root.succeeds(&old, &format!("{INSTALL} --version {OLD} && {ANSWER}"))?;
    let page = format!("{HOME}/.local/{GONE}");
    ensure!(root.has(&page), "the old one has no page of its own");
    // What does not work leaves the old one as it is.
    let intact = root.paths()?;
    for (release, words) in [
        ("damaged", "is not what SHA256SUMS says"),
        ("broken", "the program does not run here; nothing was installed"),
        ("nowhere", "cannot get"),
    ] {
        root.fails(&served.address(release), INSTALL, words)?;
        ensure!(root.paths()? == intact, "`{release}` changed what there was");
    }
    // A killed installation left these.
    root.succeeds(&old, "cd ~/.local/lib && mv isolet .isolet-old && mkdir .isolet-new.4194304")?;
    root.succeeds(&new, &format!("{INSTALL} && {ANSWER}"))?;
    ensure!(!root.has(&page), "the page of the old one is still there");
    let left = root.succeeds(&new, "ls -A ~/.local/lib")?;
    ensure!(left == "isolet\n", "there is more than the new one: {left}");
    root.succeeds(&new, REMOVE)?;
    same(&before, &root.paths()?)?;
    // A first installation that fails leaves nothing either.
    root.fails(&served.address("broken"), INSTALL, "nothing was installed")?;
    same(&before, &root.paths()?)
}

fn without_library(served: &Served) -> Result<()> {
    let root = Root::bare("d", false)?;
    let before = root.paths()?;
    root.fails(&served.address("new"), INSTALL, "this release has no")?;
    same(&before, &root.paths()?)
}

fn science(served: &Served) -> Result<()> {
    let root = Root::bare("e", true)?;
    let before = root.paths()?;
    let new = served.address("new");
    let start = Instant::now();
    let code = "import pandas; print(pandas.DataFrame({\"a\": [6, 7]}).a.prod())";
    let script = format!("{INSTALL} --science && ~/.local/bin/isolet run -c '{code}'");
    let said = root.succeeds(&new, &script)?;
    tell("from the start of install.sh --science to the first result of pandas", start.elapsed());
    ensure!(said == "42\n", "the first result was `{said}`");
    let installed = root.paths()?;
    root.succeeds(&new, INSTALL)?;
    ensure!(root.paths()? == installed, "an upgrade without the option does not keep the packages");
    root.succeeds(&new, REMOVE)?;
    same(&before, &root.paths()?)
}

fn wheel(served: &Served) -> Result<()> {
    let dir = place("venv")?;
    let home = place("home")?;
    let python = dir.join("bin/python");
    done(&home, Command::new("python3").args(["-m", "venv"]).arg(&dir))?;
    let before = paths(&dir)?;
    let file = served.file("isolet-", ".whl")?;
    let start = Instant::now();
    let pip = ["-m", "pip", "install", "--quiet", "--no-index", "--disable-pip-version-check"];
    done(&home, Command::new(&python).args(pip).arg(&file))?;
    let said = done(&home, Command::new(dir.join("bin/isolet")).args(["run", "-c", "print(6*7)"]))?;
    tell("from pip install to the first result", start.elapsed());
    ensure!(said == "42\n", "the first result was `{said}`");
    let code = "import isolet; print(isolet.run('6*7').value)";
    let said = done(&home, Command::new(&python).args(["-c", code]))?;
    ensure!(said == "42\n", "the package said `{said}`");
    done(&home, Command::new(&python).args(["-m", "pip", "uninstall", "--quiet", "-y", "isolet"]))?;
    let left: Vec<_> = paths(&dir)?.difference(&before).cloned().collect();
    // pip does not remove directories of data, only what is in them.
    let files: Vec<_> = left.iter().filter(|path| !dir.join(path).is_dir()).collect();
    println!("   pip uninstall leaves: {left:?}");
    ensure!(files.is_empty(), "pip uninstall left files: {files:?}");
    println!("   in the home there are: {:?}", top(&home)?);
    Ok(())
}

fn uvx(served: &Served) -> Result<()> {
    let home = place("home")?;
    let file = served.file("isolet-", ".whl")?;
    let start = Instant::now();
    let mut uvx = Command::new(uv::program()?);
    uvx.args(["tool", "run", "--offline", "--from"]).arg(&file);
    uvx.args(["isolet", "run", "-c", "print(6*7)"]).env("UV_CACHE_DIR", home.join("uv"));
    let said = done(&home, &mut uvx)?;
    tell("from the start of uvx to the first result", start.elapsed());
    ensure!(said == "42\n", "the first result was `{said}`");
    Ok(())
}

fn npx(served: &Served) -> Result<()> {
    let (dir, home) = (place("npm")?, place("home")?);
    let version = dist::version()?;
    let packages = [
        served.file("isolet-", &format!("-{version}.tgz"))?,
        served.file(&format!("isolet-{version}"), ".tgz")?,
    ];
    let start = Instant::now();
    let mut npm = Command::new("npm");
    npm.args(["install", "--silent", "--offline", "--no-audit", "--no-fund", "--prefix"]);
    done(&home, npm.arg(&dir).args(&packages))?;
    let mut npx = Command::new("npx");
    npx.args(["--offline", "isolet", "run", "-c", "print(6*7)"]).current_dir(&dir);
    let said = done(&home, &mut npx)?;
    tell("from npm install to the first result", start.elapsed());
    ensure!(said == "42\n", "the first result was `{said}`");
    let mut fails = Command::new("npx");
    fails.args(["isolet", "run", "-c", "raise SystemExit(7)"]).current_dir(&dir);
    let ran = with_home(&home, &mut fails)?;
    ensure!(ran.status.is_some_and(|status| status.code() == Some(7)), "{:?}", ran.status);
    Ok(())
}

/// Runs a command with a home of its own, and returns its standard output.
fn done(home: &Path, command: &mut Command) -> Result<String> {
    let ran = with_home(home, command)?;
    let Some(status) = ran.status else { bail!("not ended after {} s", LIMIT.as_secs()) };
    let program = command.get_program().to_string_lossy();
    ensure!(status.success(), "`{program}` ended with {status}: {}{}", ran.stdout, ran.stderr);
    Ok(ran.stdout)
}

fn with_home(home: &Path, command: &mut Command) -> Result<bounded::Ran> {
    let names = ["ISOLET_ASSETS", "ISOLET_BIN", "XDG_CACHE_HOME", "XDG_DATA_HOME", "PYTHONPATH"];
    for name in names {
        command.env_remove(name);
    }
    command.env("HOME", home).env("PYTHONDONTWRITEBYTECODE", "1");
    bounded::run(command, LIMIT, home)
}

/// Requires that what there was before is there, and nothing else.
fn same(before: &BTreeSet<PathBuf>, after: &BTreeSet<PathBuf>) -> Result<()> {
    let left: Vec<_> = after.difference(before).collect();
    let lost: Vec<_> = before.difference(after).collect();
    ensure!(left.is_empty() && lost.is_empty(), "it left {left:?}, and removed {lost:?}");
    println!("   nothing is left");
    Ok(())
}

/// Returns what is two levels below a home.
fn top(home: &Path) -> Result<Vec<PathBuf>> {
    let all = paths(home).context("cannot read the home")?;
    Ok(all.into_iter().filter(|path| path.components().count() == 2).collect())
}
