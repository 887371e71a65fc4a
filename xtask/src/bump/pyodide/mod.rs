//! The plan of a move to another Pyodide.

mod formats;
mod release;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use isolet_pyodide_assets::{Patch, lock, patches, verify};

use super::chores::Chore;
use super::edits::Edit;
use super::plan::{Finding, Plan};
use super::registry;
use super::version::Version;
use super::words;
use crate::process;
use release::{Release, Wheel};

/// How far around a patch's place a change of the module is told of, in bytes.
const AROUND: usize = 400;

/// The shortest text of `src/isolate/adapt` that is looked for in Pyodide's module. Shorter ones
/// are there by chance.
const MIN_TEXT: usize = 12;

/// The page whose sentence about the versions is written anew, and a part of the sentence.
const LIMITATIONS: &str = "docs/concepts/limitations.md";
const BUILT: &str = ", built for WebAssembly by Pyodide ";

/// The most packages that are named one by one.
const MAX_NAMED: usize = 20;

/// What isolet has to do with Pyodide.
struct Ours {
    patches: Vec<Patch>,
    /// The Rust that changes CPython and Pyodide's module.
    adapt: String,
    /// The JavaScript and Python beside Pyodide's own.
    scripts: String,
    python: String,
    /// The patches of wheels.
    wheels: String,
    /// The lines of documentation that name the pinned version.
    mentions: Vec<String>,
}

/// Returns the version that the lock pins.
pub(super) fn pinned() -> Result<Version> {
    Version::parse(lock()?.version())
}

/// Compares the pinned version with `to`, which npm brings.
pub(super) fn plan(to: &Version) -> Result<Plan> {
    let pinned = pinned()?;
    if *to == pinned {
        let [old, new] = [repositorys()?, repositorys()?];
        return Ok(compared(&old, &new, &ours()?));
    }
    let dir = registry::scratch("pyodide")?;
    let from_npm = |version: &Version| {
        Release::of_package(&version.to_string(), registry::pyodide(version, &dir)?)
    };
    Ok(compared(&from_npm(&pinned)?, &from_npm(to)?, &ours()?))
}

/// Returns the pinned release from the repository.
fn repositorys() -> Result<Release> {
    let dir = process::assets_dir();
    let is_there = verify(&dir)?.is_ok();
    ensure!(is_there, "`pyodide-assets/dist` has not all files; `cargo xtask setup` gets them");
    Release::read(lock()?.version(), dir, None)
}

fn ours() -> Result<Ours> {
    let root = process::root();
    let version = lock()?.version();
    let mut git = Command::new("git");
    git.args(["grep", "--line-number", "--fixed-strings", version, "--", "*.md"]);
    let output = git.current_dir(&root).output().context("cannot run `git grep`")?;
    let found = String::from_utf8_lossy(&output.stdout).into_owned();
    // The sentence that is written anew needs no person.
    let others = found.lines().filter(|line| !line.contains(BUILT));
    let place = |line: &str| line.splitn(3, ':').take(2).collect::<Vec<_>>().join(":");
    let mentions = others.map(place).collect();
    let numpy = fs::read_to_string(root.join("src/packages/patches/numpy.toml"));
    Ok(Ours {
        patches: patches()?.to_vec(),
        adapt: words::texts(&root.join("src/isolate/adapt"), "rs")?,
        scripts: words::texts(&root.join("js"), "js")?,
        python: words::texts(&root.join("js/py"), "py")?,
        wheels: numpy.context("cannot read the patches of numpy")?,
        mentions,
    })
}

fn compared(old: &Release, new: &Release, ours: &Ours) -> Plan {
    let (from, to) = (old.version.clone(), new.version.clone());
    let (findings, edits, tasks) = Default::default();
    let mut plan = Plan { what: "pyodide", from, to, findings, edits, tasks };
    let keys: BTreeSet<&String> = old.info.keys().chain(new.info.keys()).collect();
    for key in keys {
        let said = |release: &Release| release.info.get(key).cloned().unwrap_or_default();
        plan.compared(&format!("`{key}`"), &said(old), &said(new));
    }
    files(old, new, &mut plan);
    let patches = patched(old, new, ours, &mut plan);
    names(old, new, ours, &mut plan);
    library(old, new, ours, &mut plan);
    let wheels = wheels(old, new, ours, &mut plan);
    if let (Some(before), Some(after)) = (old.loader, new.loader) {
        let line = "the loader, `pyodide.mjs`".to_owned();
        let is_same = before == after;
        plan.findings.push(if is_same { Finding::Kept(line) } else { Finding::Changed(line) });
    }
    if old.version == new.version {
        return plan;
    }
    plan.edits = edits_of(old, new);
    let sources = lock().map(|lock| lock.sources().to_vec()).unwrap_or_default();
    let addresses = sources.iter().map(|source| source.replace(&old.version, &new.version));
    plan.task(Chore::SecondSource, addresses.collect());
    plan.task(Chore::Patches, patches);
    if old.loader != new.loader {
        let [before, after] = [old, new].map(Release::loader_path);
        let paths = format!("diff {} {}", before.display(), after.display());
        plan.task(Chore::Loader, vec![paths]);
    }
    plan.task(Chore::CompilePyodide, Vec::new());
    if !wheels.is_empty() {
        plan.task(Chore::Wheels, wheels);
    }
    plan.task(Chore::Golden, Vec::new());
    plan.task(Chore::Mentions, ours.mentions.clone());
    if old.info.get("python") != new.info.get("python") {
        plan.task(Chore::CpythonTests, Vec::new());
    }
    plan.task(Chore::Packages, Vec::new());
    plan.task(Chore::Ci, Vec::new());
    plan
}

/// Returns what this command does.
fn edits_of(old: &Release, new: &Release) -> Vec<Edit> {
    const LOCK: &str = "pyodide-assets/lock.toml";
    let mut edits = Vec::new();
    let mut replace = |path: &str, find: String, with: String| {
        if find != with {
            edits.push(Edit::Replace { path: path.to_owned(), find, with });
        }
    };
    for (name, before) in &old.files {
        let Some(after) = new.files.get(name) else { continue };
        let entry = |file: &release::File| {
            format!("name = \"{name}\"\nsha256 = \"{}\"\nsize = {}\n", file.sha256, file.size)
        };
        replace(LOCK, entry(before), entry(after));
    }
    if let (Some(before), Some(after)) = (&old.archive, &new.archive) {
        let entry = |release: &Release, archive: &release::Archive| {
            let (version, sha256, size) = (&release.version, archive.sha256, archive.size);
            format!("name = \"pyodide-{version}.tgz\"\nsha256 = \"{sha256}\"\nsize = {size}\n")
        };
        replace(LOCK, entry(old, before), entry(new, after));
    }
    for path in [LOCK, "pyodide-assets/src/lock.rs", "pyodide-assets/src/patches.rs"] {
        replace(path, old.version.clone(), new.version.clone());
    }
    let sentence = |release: &Release| {
        let python = release.info.get("python").map_or("", |version| version);
        format!("CPython {python}{BUILT}{}.", release.version)
    };
    replace(LIMITATIONS, sentence(old), sentence(new));
    // `Edit::Notices` would write what this program was compiled with: the old version.
    let named = |release: &Release| format!("Pyodide {}:", release.version);
    replace("third_party/licenses/THIRD-PARTY.txt", named(old), named(new));
    let patches = |release: &Release| format!("pyodide-assets/patches/{}", release.version);
    edits.push(Edit::Move { from: patches(old), to: patches(new) });
    edits
}

fn files(old: &Release, new: &Release, plan: &mut Plan) {
    for (name, before) in &old.files {
        plan.findings.push(match new.files.get(name) {
            Some(after) if before == after => Finding::Kept(format!("`{name}`")),
            Some(after) => {
                Finding::Changed(format!("`{name}`: {} bytes become {}", before.size, after.size))
            }
            None => Finding::Broken(format!("the package has no `{name}`")),
        });
    }
}

/// Looks for the place of each patch. Returns those that a person looks at.
fn patched(old: &Release, new: &Release, ours: &Ours, plan: &mut Plan) -> Vec<String> {
    let (mut fitting, mut details) = (0, Vec::new());
    for patch in &ours.patches {
        let (name, find) = (patch.name(), patch.find());
        match new.module.matches(find).count() {
            1 if around(&old.module, find) == around(&new.module, find) => fitting += 1,
            1 => {
                plan.findings.push(Finding::Changed(format!("the text around patch `{name}`")));
                details.push(format!("the text around `{name}` is another one"));
            }
            times => {
                let plural = if times == 1 { "" } else { "s" };
                plan.findings.push(Finding::Broken(format!(
                    "patch `{name}` matches {times} time{plural} instead of once: {}",
                    patch.why()
                )));
                details.push(format!("`{name}` needs another place, or is not needed any more"));
            }
        }
    }
    plan.findings.push(Finding::Kept(format!("{fitting} patches, with the text around them")));
    details
}

/// Returns the text around the only place of another one.
fn around<'a>(text: &'a str, find: &str) -> Option<&'a [u8]> {
    let at = text.find(find)?;
    let end = (at + find.len() + AROUND).min(text.len());
    text.as_bytes().get(at.saturating_sub(AROUND)..end)
}

/// Looks for the names of CPython and Pyodide's module that isolet uses.
fn names(old: &Release, new: &Release, ours: &Ours, plan: &mut Plan) {
    let gone = old.exports.difference(&new.exports).count();
    let added = new.exports.difference(&old.exports).count();
    let all = old.exports.len();
    plan.findings.push(if gone + added == 0 {
        Finding::Kept(format!("{all} exports of CPython"))
    } else {
        Finding::Changed(format!("exports of CPython: {gone} of {all} are gone, {added} are new"))
    });
    let mut used = words::literals(&ours.adapt);
    used.extend(words::names(&ours.scripts));
    let texts = used.iter().filter(|text| text.len() >= MIN_TEXT && old.module.contains(**text));
    let of_module = [&old.module, &new.module].map(|text| words::words(text));
    let mut kept = 0;
    let mut check = |kind: &str, name: &str, is_there: bool| {
        kept += usize::from(is_there);
        if !is_there {
            plan.findings.push(Finding::Broken(format!("{kind} has no `{name}` any more")));
        }
    };
    for text in texts.filter(|text| words::words(text).len() > 1) {
        check("`pyodide.asm.mjs`", text, new.module.contains(*text));
    }
    for name in &used {
        // JavaScript's name of an export begins with an underscore.
        let export = [*name, name.trim_start_matches('_')];
        if let Some(export) = export.into_iter().find(|export| old.exports.contains(*export)) {
            check("CPython", export, new.exports.contains(export));
        } else if of_module[0].contains(name) {
            check("`pyodide.asm.mjs`", name, of_module[1].contains(name));
        }
    }
    plan.findings.push(Finding::Kept(format!("{kept} names and texts of both that isolet uses")));
}

/// Compares Python's standard library, and looks for the modules that isolet's Python imports.
fn library(old: &Release, new: &Release, ours: &Ours, plan: &mut Plan) {
    let is_same = |name: &String| old.library.get(name) == new.library.get(name);
    let names: BTreeSet<&String> = old.library.keys().chain(new.library.keys()).collect();
    let (same, others): (Vec<&String>, Vec<&String>) =
        names.into_iter().partition(|name| is_same(name));
    plan.findings.push(Finding::Kept(format!("{} files of the standard library", same.len())));
    let is_pyodides =
        |name: &&&String| ["_pyodide/", "pyodide/"].iter().any(|d| name.starts_with(d));
    let pyodides: Vec<&str> = others.iter().filter(is_pyodides).map(|name| name.as_str()).collect();
    if !others.is_empty() {
        let (count, of_pyodide) = (others.len(), pyodides.len());
        let line = format!("{count} files of the standard library, {of_pyodide} of them Pyodide's");
        plan.findings.push(Finding::Changed(line));
        plan.findings.extend(pyodides.iter().map(|name| Finding::Changed(format!("`{name}`"))));
    }
    for module in imported(&ours.python) {
        let files = [format!("{module}.py"), format!("{module}/__init__.py")];
        let has = |release: &Release| files.iter().any(|file| release.library.contains_key(file));
        if has(old) && !has(new) {
            let line = format!("the standard library has no module `{module}` any more");
            plan.findings.push(Finding::Broken(line));
        }
    }
}

/// Returns the modules that Python code imports, with `/` in the place of dots.
fn imported(code: &str) -> BTreeSet<String> {
    let words = code.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let modules = words.filter_map(|words| match words[..] {
        ["import" | "from", module, ..] => Some(module.trim_end_matches(',').replace('.', "/")),
        _ => None,
    });
    modules.collect()
}

/// Compares the packages that were built for the release. Returns what a person does about those
/// that isolet patches.
fn wheels(old: &Release, new: &Release, ours: &Ours, plan: &mut Plan) -> Vec<String> {
    let names: BTreeSet<&String> = old.wheels.keys().chain(new.wheels.keys()).collect();
    let version = |release: &Release, name: &String| {
        release.wheels.get(name).map_or("none", |wheel| &wheel.version).to_owned()
    };
    let (same, others): (Vec<&String>, Vec<&String>) =
        names.into_iter().partition(|name| old.wheels.get(*name) == new.wheels.get(*name));
    plan.findings.push(Finding::Kept(format!("{} packages of the release", same.len())));
    let without_tests = others.iter().filter(|name| !name.ends_with("-tests"));
    let changed: Vec<String> = without_tests
        .map(|name| format!("{name} {} -> {}", version(old, name), version(new, name)))
        .collect();
    if !changed.is_empty() {
        let first = changed[..changed.len().min(MAX_NAMED)].join(", ");
        let rest = match changed.len().saturating_sub(MAX_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        plan.findings.push(Finding::Changed(format!("packages of the release: {first}{rest}")));
    }
    let package = "numpy".to_owned();
    match new.wheels.get(&package) {
        Some(wheel) if others.contains(&&package) && !ours.wheels.contains(&wheel.sha256) => {
            let Wheel { version, sha256 } = wheel;
            vec![format!("{package} {version} with sha256 {sha256} is not listed in `[[build]]`")]
        }
        _ => Vec::new(),
    }
}
