//! `cargo xtask platforms`: what of isolet is compiled for which target, and what is not. It fails
//! where something depends on the target that `table.rs` does not declare, so that each place has
//! a reason, and where the table or the page of the platforms says what is not so any more.

mod cfg;
mod check;
mod scan;
mod table;

use std::collections::BTreeSet;
use std::fs;
use std::process::ExitCode;

use anyhow::{Context, Result};

use self::cfg::Target;
use self::scan::Source;
use self::table::{Known, PLATFORMS, Platform};
use crate::process;

/// The crates that run at users', by their first files.
const CRATES: [(&str, &str); 8] = [
    ("src/lib.rs", "isolet"),
    ("pyodide-assets/src/lib.rs", "isolet_pyodide_assets"),
    ("crates/isolet-support/src/lib.rs", "isolet_support"),
    ("crates/isolet-service/src/lib.rs", "isolet_service"),
    ("crates/isolet-serve/src/lib.rs", "isolet_serve"),
    ("crates/isolet-mcp/src/lib.rs", "isolet_mcp"),
    ("crates/isolet-jupyter/src/lib.rs", "isolet_jupyter"),
    ("crates/isolet-cli/src/main.rs", "isolet_cli"),
];
const PAGE: &str = "docs/reference/platforms.md";

/// Prints the report, or with `--check` compiles for the targets whose library can be had: those
/// that are named, or all.
pub(crate) fn run(args: &[&str]) -> Result<ExitCode> {
    match args {
        [] => report(),
        ["--check", names @ ..] => check::run(names),
        _ => anyhow::bail!("`platforms` takes nothing, or `--check` and targets"),
    }
}

fn report() -> Result<ExitCode> {
    let root = process::root();
    let mut sources = Vec::new();
    for (first, name) in CRATES {
        sources.extend(scan::read(&root, first, name)?);
    }
    let layers = scan::variants(&root, "src/data/isolation/mod.rs", "Layer")?;
    let mut problems = undeclared(&sources);
    for platform in PLATFORMS {
        let target = Target::new(platform.target)?;
        println(&shown(platform, &target, &sources, &layers));
        problems.extend(lacking(platform, &target, &sources));
    }
    let page =
        fs::read_to_string(root.join(PAGE)).with_context(|| format!("cannot read `{PAGE}`"))?;
    problems.extend(unlike_page(&page));
    for problem in &problems {
        eprintln!("{problem}");
    }
    match problems.len() {
        0 => Ok(ExitCode::SUCCESS),
        count => anyhow::bail!("platforms: {count} problems found"),
    }
}

#[expect(clippy::print_stdout, reason = "the report is what the command is for")]
fn println(text: &str) {
    println!("{text}");
}

fn is_compiled(source: &Source, target: &Target) -> bool {
    source.when.iter().all(|cfg| cfg.holds(target))
}

/// The modules that a target compiles, by their names.
fn modules<'a>(target: &Target, sources: &'a [Source]) -> BTreeSet<&'a str> {
    let compiled = sources.iter().filter(|source| is_compiled(source, target));
    compiled.map(|source| source.module.as_str()).collect()
}

/// The first modules of those that another target has and this one has not, with the number of
/// their files: a module's own modules are not named again.
fn missing<'a>(target: &Target, sources: &'a [Source]) -> Vec<(&'a Source, usize)> {
    let own = |source: &&Source| {
        source.when.iter().any(|cfg| cfg.is_of_target() && !cfg.holds(target))
            && source.when.iter().all(|cfg| cfg.is_of_target() || cfg.holds(target))
    };
    let mut first: Vec<(&Source, usize)> = Vec::new();
    for source in sources.iter().filter(own) {
        match first.last_mut() {
            Some((last, count)) if source.module.starts_with(&format!("{}::", last.module)) => {
                *count += 1;
            }
            _ => first.push((source, 1)),
        }
    }
    first
}

/// Describes what a target compiles.
fn shown(platform: &Platform, target: &Target, sources: &[Source], layers: &[String]) -> String {
    let compiled = sources.iter().filter(|source| is_compiled(source, target));
    let mut lines = vec![format!("{}: {}", platform.target, platform.how)];
    lines.push(format!("  compiles {} files", compiled.count()));
    let has = modules(target, sources);
    for (source, count) in missing(target, sources) {
        // What takes its place has its name.
        let instead = sources
            .iter()
            .find(|other| other.module == source.module && is_compiled(other, target));
        let files =
            if count == 1 { String::new() } else { format!(" and {} files below it", count - 1) };
        let place = match instead {
            Some(other) => format!("{} instead", other.path),
            None if has.contains(source.module.as_str()) => "elsewhere".to_owned(),
            None => "nothing instead".to_owned(),
        };
        // A file that only replaces another one is no loss.
        if !source.path.contains("unsupported") {
            lines.push(format!("  without  {}{files}: {place}", source.path));
        }
    }
    let isolation = if target.has("target_os=\"linux\"") {
        format!("processes and threads; layers: {}", layers.join(", "))
    } else {
        "threads; no layers".to_owned()
    };
    lines.push(format!("  isolation {isolation}"));
    platform.lacks.iter().for_each(|lack| lines.push(format!("  lacks    {lack}")));
    lines.join("\n")
}

/// Finds what a list declares in a file.
type Find = fn(&Source) -> Option<String>;

/// Names what depends on the target and is not in the table, and what is there for nothing.
fn undeclared(sources: &[Source]) -> Vec<String> {
    let lists: [(&str, &[Known], Find); 3] = [
        ("a condition on the target", table::CONDITIONS, |source| {
            let first = source.inside.first()?;
            Some(first.to_string())
        }),
        ("a constant of pages", table::PAGES, |source| Some(source.pages.first()?.clone())),
        ("a file of Linux's", table::LINUX_FILES, linux_file),
    ];
    let mut problems = Vec::new();
    for (what, known, find) in lists {
        for source in sources {
            let is_known = known.iter().any(|(path, _)| *path == source.path);
            match find(source) {
                Some(found) if !is_known => problems.push(format!(
                    "{}: has {what}, `{found}`: give it a module per system, or a line with its \
                     reason in `xtask/src/platforms/table.rs`",
                    source.path
                )),
                None if is_known => problems.push(format!(
                    "{}: has no {what} any more: remove it from `xtask/src/platforms/table.rs`",
                    source.path
                )),
                _ => {}
            }
        }
        for (path, _) in known {
            if !sources.iter().any(|source| source.path == *path) {
                problems.push(format!("{path}: is in the table and is no module"));
            }
        }
    }
    problems
}

/// Returns the file of Linux's that a module names which other systems compile too.
fn linux_file(source: &Source) -> Option<String> {
    let is_of_linux = |cfg: &cfg::Cfg| cfg.to_string().contains("target_os=\"linux\"");
    if source.when.iter().any(is_of_linux) {
        return None;
    }
    let code = source.text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let named = code.filter_map(|line| {
        let at = ["\"/proc/", "\"/sys/"].into_iter().find_map(|start| line.find(start))?;
        line.get(at + 1..)?.split('"').next()
    });
    named.map(str::to_owned).next()
}

/// Names the modules that a target has nothing for although nobody has said so.
fn lacking(platform: &Platform, target: &Target, sources: &[Source]) -> Vec<String> {
    if !platform.is_ported {
        return Vec::new();
    }
    let has = modules(target, sources);
    let lost = missing(target, sources).into_iter().map(|(source, _)| source);
    let lost = lost.filter(|source| !has.contains(source.module.as_str()));
    let is_known = |source: &&Source| table::ABSENT.iter().any(|(path, _)| *path == source.path);
    lost.filter(|source| !is_known(source))
        .map(|source| {
            format!(
                "{}: {} has no such module: give it one, or a line with its reason in \
                 `xtask/src/platforms/table.rs`",
                source.path, platform.target
            )
        })
        .collect()
}

/// Names the targets of which the page says something else than the table.
fn unlike_page(page: &str) -> Vec<String> {
    let rows = PLATFORMS.iter().filter(|platform| {
        let (name, how) = (format!("`{}`", platform.target), platform.how.to_string());
        !page.lines().any(|line| line.contains(&name) && line.contains(&how))
    });
    rows.map(|platform| {
        format!("{PAGE}: has no row with `{}` and \"{}\"", platform.target, platform.how)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        let (module, path) = ("c::m".to_owned(), path.to_owned());
        let (when, inside, pages) = (Vec::new(), Vec::new(), Vec::new());
        Source { path, module, when, inside, pages, text: text.to_owned() }
    }

    fn cfg(text: &str) -> cfg::Cfg {
        cfg::Cfg::of(&syn::parse_str(text).unwrap()).unwrap()
    }

    #[test]
    fn what_depends_on_the_target_has_to_be_declared() {
        let new =
            Source { inside: vec![cfg("target_arch = \"x86_64\"")], ..source("src/new.rs", "") };
        let of_new = |new: &Source| {
            let problems = undeclared(std::slice::from_ref(new)).into_iter();
            problems.filter(|problem| problem.starts_with("src/new.rs")).collect::<Vec<_>>()
        };
        let problems = of_new(&new);
        assert!(problems[0].contains("has a condition on the target"), "{problems:?}");
        let new = Source { pages: vec!["PAGE".to_owned()], ..source("src/new.rs", "") };
        assert!(of_new(&new)[0].contains("constant of pages, `PAGE`"));
        let new = source("src/new.rs", "// \"/proc/x\"\nlet a = read(\"/proc/self/maps\");");
        assert!(of_new(&new)[0].contains("`/proc/self/maps`"));
        let linux = Source { when: vec![cfg("target_os = \"linux\"")], ..new };
        assert!(of_new(&linux).is_empty());
    }

    #[test]
    fn a_module_without_a_counterpart_has_to_be_declared() {
        let linux = vec![cfg("target_os = \"linux\"")];
        let only = Source { when: linux.clone(), ..source("src/only.rs", "") };
        let platform = PLATFORMS.iter().find(|one| one.target == "aarch64-apple-darwin").unwrap();
        let mac = Target::made_up(&["unix", "target_os=\"macos\""]);
        assert_eq!(lacking(platform, &mac, std::slice::from_ref(&only)).len(), 1);
        let there = Target::made_up(&["unix", "target_os=\"linux\""]);
        assert!(lacking(platform, &there, std::slice::from_ref(&only)).is_empty());
        let other =
            Source { when: vec![cfg("not(target_os = \"linux\")")], ..source("src/o.rs", "") };
        assert!(lacking(platform, &mac, &[only, other]).is_empty());
    }

    #[test]
    fn the_page_has_a_row_for_each_target() {
        assert_eq!(unlike_page("").len(), PLATFORMS.len());
        let rows = PLATFORMS.iter().map(|one| format!("| `{}` | {} |\n", one.target, one.how));
        assert!(unlike_page(&rows.collect::<String>()).is_empty());
    }
}
