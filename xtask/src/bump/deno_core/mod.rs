//! The plan of a move to another `deno_core`, and the V8 that it brings.

mod engine;
#[cfg(test)]
mod tests;
mod tree;

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Result};

use super::chores::Chore;
use super::edits::Edit;
use super::plan::{Finding, Plan};
use super::registry;
use super::version::Version;
use super::words;
use crate::{process, tidy, vendored_v8};
use engine::Engine;
use tree::Tree;

/// The recipe of V8's archive.
const RECIPE: &str = "third_party/v8/build-v8.sh";

/// What isolet has to do with `deno_core`.
struct Ours {
    /// The Rust that names it.
    rust: String,
    /// The JavaScript beside its own.
    scripts: String,
    /// The ops that are kept, each with its reason, and those that throw.
    golden: String,
    /// The versions of the fuzz targets.
    fuzz_lock: String,
    /// The version of the crate `v8` whose archive the repository has.
    archive: String,
}

/// Returns the version that `Cargo.toml` pins.
pub(super) fn pinned() -> Result<Version> {
    let manifest = fs::read_to_string(process::root().join("Cargo.toml"));
    let manifest = manifest.context("cannot read `Cargo.toml`")?;
    let line = manifest.lines().find_map(|line| line.strip_prefix(&pin_of("deno_core")));
    let version = line.and_then(|rest| rest.split_once('"')).map(|(version, _)| version);
    Version::parse(version.context("`Cargo.toml` pins no `deno_core`")?)
}

/// Returns how `Cargo.toml` pins a crate, up to the version.
fn pin_of(name: &str) -> String {
    format!("{name} = {{ version = \"=")
}

fn pin(name: &str, version: &str) -> String {
    format!("{}{version}\"", pin_of(name))
}

/// Compares the pinned version with `to`, whose crates cargo downloads if they are not there.
pub(super) fn plan(to: &Version) -> Result<Plan> {
    let old = Engine::read(Tree::pinned()?)?;
    let dir = registry::scratch("workspace")?;
    let mut edits = vec![pinned_to("deno_core", &old.deno_core, &to.to_string())];
    let mut new = Engine::read(Tree::with(&edits, &dir)?)?;
    if new.deno_error != old.deno_error {
        edits.push(pinned_to("deno_error", &old.deno_error, &new.deno_error));
        new = Engine::read(Tree::with(&edits, &dir)?)?;
    }
    Ok(compared(&old, &new, &ours()?))
}

fn pinned_to(name: &str, from: &str, to: &str) -> Edit {
    let path = "Cargo.toml".to_owned();
    Edit::Replace { path, find: pin(name, from), with: pin(name, to) }
}

fn ours() -> Result<Ours> {
    let root = process::root();
    let read = |path: &str| {
        fs::read_to_string(root.join(path)).with_context(|| format!("cannot read `{path}`"))
    };
    Ok(Ours {
        rust: words::texts(&root.join("src/isolate"), "rs")?,
        scripts: words::texts(&root.join("js"), "js")?,
        golden: read("tests/golden/ops.txt")?,
        fuzz_lock: read("fuzz/Cargo.lock")?,
        archive: vendored_v8::VERSION.to_owned(),
    })
}

fn compared(old: &Engine, new: &Engine, ours: &Ours) -> Plan {
    let (from, to) = (old.deno_core.clone(), new.deno_core.clone());
    let (findings, edits, tasks) = Default::default();
    let mut plan = Plan { what: "deno_core", from, to, findings, edits, tasks };
    plan.compared(
        "`deno_error`, which `Cargo.toml` pins as well",
        &old.deno_error,
        &new.deno_error,
    );
    plan.compared("the crate `v8`", &old.v8_crate, &new.v8_crate);
    plan.compared("V8", &old.v8, &new.v8);
    let listed = |engine: &Engine| format!("[{}]", engine.default_features.join(", "));
    plan.compared("default features of deno_core", &listed(old), &listed(new));
    let locks = locked(old, new, ours, &mut plan);
    let ops = ops(old, new, ours, &mut plan);
    names(old, new, ours, &mut plan);
    let headers = headers(old, new, &mut plan);
    let fits = new.v8_crate == ours.archive;
    plan.findings.push(if fits {
        Finding::Kept(format!("V8's archive in the repository is of {}, and fits", ours.archive))
    } else {
        Finding::Changed(format!(
            "V8's archive in the repository is of {}, so it has to be built for {}",
            ours.archive, new.v8_crate
        ))
    });
    if old.deno_core == new.deno_core {
        return plan;
    }
    plan.edits = replacements(old, new);
    plan.edits.extend(locks);
    plan.edits.push(Edit::Notices);
    if !fits {
        plan.task(Chore::BuildV8, Vec::new());
        let take = format!("set `VERSION` to {}, and replace `SHA256SUMS`", new.v8_crate);
        plan.task(Chore::TakeV8, vec![take]);
    }
    plan.task(Chore::CompileEngine, Vec::new());
    if old.v8 != new.v8 {
        let mut details = headers;
        details.push(format!("set `CHECKED_V8` to `{}`", new.v8));
        plan.task(Chore::NativeCode, details);
    }
    plan.task(Chore::Golden, ops);
    plan.task(Chore::Ci, Vec::new());
    plan
}

/// Returns the edits of files, but for lock files.
fn replacements(old: &Engine, new: &Engine) -> Vec<Edit> {
    let core = |engine: &Engine| format!("deno_core {}", engine.deno_core);
    let v8 = |engine: &Engine| format!("V8_CRATE={} ", engine.v8_crate);
    let icu = |engine: &Engine| format!("ICU_CRATE={} ", engine.icu);
    let version = |engine: &Engine| format!("\"{}\"", engine.v8);
    let mut texts = vec![
        ("Cargo.toml", pin("deno_core", &old.deno_core), pin("deno_core", &new.deno_core)),
        ("Cargo.toml", pin("deno_error", &old.deno_error), pin("deno_error", &new.deno_error)),
        ("src/data/version.rs", version(old), version(new)),
        (RECIPE, core(old), core(new)),
        (RECIPE, v8(old), v8(new)),
        (RECIPE, icu(old), icu(new)),
    ];
    if old.v8_crate == new.v8_crate {
        // Otherwise it is about the archive that is there until the new one is built.
        texts.push(("third_party/v8/README.md", core(old), core(new)));
    }
    let changed = texts.into_iter().filter(|(_, find, with)| find != with);
    changed.map(|(path, find, with)| Edit::Replace { path: path.to_owned(), find, with }).collect()
}

/// Adds which crates get other versions. Returns the edits of both lock files.
fn locked(old: &Engine, new: &Engine, ours: &Ours, plan: &mut Plan) -> Vec<Edit> {
    let (before, after) = (tidy::locked(&old.lock), tidy::locked(&new.lock));
    let fuzzed = tidy::locked(&ours.fuzz_lock);
    let shown = |versions: &BTreeSet<&str>| versions.iter().copied().collect::<Vec<_>>().join(", ");
    let names: BTreeSet<&str> = before.keys().chain(after.keys()).copied().collect();
    let none = BTreeSet::new();
    let mut edits = vec![Edit::Lock];
    for name in names {
        let (was, is) = (before.get(name).unwrap_or(&none), after.get(name).unwrap_or(&none));
        if was == is {
            continue;
        }
        plan.findings.push(Finding::Changed(match (was.len(), is.len()) {
            (0, _) => format!("`{name}` {} is new in `Cargo.lock`", shown(is)),
            (_, 0) => format!("`{name}` {} is no longer in `Cargo.lock`", shown(was)),
            _ => format!("`{name}` {} becomes {} in `Cargo.lock`", shown(was), shown(is)),
        }));
        let gone = was.iter().find(|version| {
            !is.contains(*version) && fuzzed.get(name).is_some_and(|has| has.contains(*version))
        });
        let come = is.difference(was).last().or_else(|| is.last());
        if let (Some(from), Some(to)) = (gone, come) {
            let [from, to] = [from, to].map(|version| (*version).to_owned());
            edits.push(Edit::FuzzLock { name: name.to_owned(), from, to });
        }
    }
    for (name, [mine, theirs]) in &new.apart {
        let line = format!(
            "isolet has `{name}` {mine} and deno_core {theirs}, which are compiled both; change \
             the version in `Cargo.toml`"
        );
        let was_apart = old.apart.contains_key(name);
        plan.findings.push(if was_apart { Finding::Kept(line) } else { Finding::Broken(line) });
    }
    edits
}

/// Compares `deno_core`'s ops. Returns those that a person decides about.
fn ops(old: &Engine, new: &Engine, ours: &Ours, plan: &mut Plan) -> Vec<String> {
    let listed = |kind: &str| -> BTreeSet<&str> {
        let lines = ours.golden.lines().filter_map(|line| line.strip_prefix(kind));
        lines.filter_map(|rest| rest.trim_start().split(':').next()).collect()
    };
    let (kept, stubbed) = (listed("kept"), listed("stubbed"));
    let mut details = Vec::new();
    for gone in old.ops.difference(&new.ops) {
        plan.findings.push(if kept.contains(&**gone) {
            Finding::Broken(format!("deno_core has no `{gone}`, which isolet keeps"))
        } else {
            Finding::Changed(format!("deno_core has no `{gone}` any more"))
        });
    }
    for added in new.ops.difference(&old.ops) {
        plan.findings.push(Finding::Changed(format!("deno_core has a new op `{added}`")));
        details.push(format!("`{added}` throws, unless `src/isolate/builtin_ops` keeps it"));
    }
    let is_listed = |op: &&String| kept.contains(&***op) || stubbed.contains(&***op);
    let both = old.ops.intersection(&new.ops);
    let unlisted = both.clone().filter(|op| !is_listed(op));
    plan.findings.extend(unlisted.map(|op| {
        Finding::Broken(format!("`tests/golden/ops.txt` lacks `{op}`, which deno_core has now"))
    }));
    plan.findings.push(Finding::Kept(format!("{} ops of deno_core", both.count())));
    details
}

/// Looks for the names that isolet takes from `deno_core` and V8.
fn names(old: &Engine, new: &Engine, ours: &Ours, plan: &mut Plan) {
    let mut look = |kind: &str, used: &BTreeSet<&str>, old: &BTreeSet<_>, new: &BTreeSet<_>| {
        let known = used.iter().filter(|name| old.contains(**name));
        let (there, gone): (Vec<&str>, Vec<&str>) = known.partition(|name| new.contains(**name));
        plan.findings.push(Finding::Kept(format!("{} names of {kind}", there.len())));
        let gone = gone.iter();
        plan.findings
            .extend(gone.map(|name| Finding::Broken(format!("{kind} has no `{name}` any more"))));
    };
    let mut rust = words::taken_from("deno_core", &ours.rust);
    rust.extend(words::taken_from("v8", &ours.rust));
    look("deno_core's and V8's Rust", &rust, &old.rust, &new.rust);
    let mut scripts = words::members_of("core", &ours.scripts);
    scripts.extend(words::members_of("primordials", &ours.scripts));
    look("deno_core's JavaScript", &scripts, &old.scripts, &new.scripts);
}

/// Compares the headers that isolet's declarations are made from. Returns how to look at those that
/// differ.
fn headers(old: &Engine, new: &Engine, plan: &mut Plan) -> Vec<String> {
    let mut details = Vec::new();
    for (before, after) in old.headers.iter().zip(&new.headers) {
        let name = before.name;
        plan.findings.push(match (before.digest, after.digest) {
            (Some(before), Some(after)) if before == after => Finding::Kept(format!("`{name}`")),
            (_, None) => Finding::Broken(format!("the crate `v8` has no `{name}`")),
            _ => Finding::Changed(format!("`{name}`")),
        });
        if before.digest != after.digest {
            let [before, after] = [&before.path, &after.path].map(|path| path.display());
            details.push(format!("diff {before} {after}"));
        }
    }
    details
}
