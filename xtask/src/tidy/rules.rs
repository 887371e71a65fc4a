//! The rules of `cargo xtask tidy`. A complaint is `path:line: what is wrong`, or `path: what is
//! wrong`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{ENGINE, MAX_COLUMNS, MAX_LINES, MOVES, NARROW, SourceFile, TOP_LEVEL, UNSAFE_FILES};

/// Requires that each source file begins with a comment.
pub(super) fn files_say_what_they_are_for(files: &[SourceFile]) -> Vec<String> {
    let complaint = |file: &SourceFile| {
        let openings: &[&str] = match file.extension() {
            "rs" => &["//!"],
            "js" | "mjs" if file.path.starts_with("js/") => &["//", "/*"],
            "py" if file.path.starts_with("js/py/") => &["\"\"\"", "#"],
            _ => return None,
        };
        let opens = openings.iter().any(|opening| file.text.starts_with(opening));
        let wanted = openings.join("` or `");
        (!opens).then(|| format!("{}:1: does not start with `{wanted}` and its one job", file.path))
    };
    ours(files).filter_map(complaint).collect()
}

/// Requires that no source file is longer than `MAX_LINES`.
pub(super) fn files_are_short(files: &[SourceFile]) -> Vec<String> {
    let complaint = |file: &SourceFile| {
        let lines = file.text.lines().count();
        let long = file.is_source() && lines > MAX_LINES;
        long.then(|| format!("{}: has {lines} lines (at most {MAX_LINES})", file.path))
    };
    ours(files).filter_map(complaint).collect()
}

/// Requires that lines fit into `MAX_COLUMNS`, so that two files fit next to each other on a
/// screen: every line of the files in `NARROW`, elsewhere only comments and Markdown without its
/// examples. Tables and links are exempt.
pub(super) fn lines_are_narrow(files: &[SourceFile]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in ours(files) {
        let narrow = NARROW.iter().any(|start| file.path.starts_with(start));
        let mut in_example = false;
        for (index, line) in file.text.lines().enumerate() {
            let text = line.trim_start();
            let is_checked = match file.extension() {
                "rs" | "js" | "mjs" => narrow || text.starts_with("//") || text.starts_with("* "),
                "py" => narrow || text.starts_with("# "),
                "md" => {
                    in_example ^= text.starts_with("```");
                    let is_text = !in_example && !line.starts_with("    ");
                    !text.starts_with('|') && (narrow || is_text)
                }
                // Pictures, arrays of a manifest, and texts of others stay as they are.
                "svg" | "toml" | "txt" => false,
                _ => narrow,
            };
            let columns = line.chars().count();
            if is_checked && columns > MAX_COLUMNS && !is_link(text) {
                let place = format!("{}:{}", file.path, index + 1);
                complaints.push(format!("{place}: has {columns} columns (at most {MAX_COLUMNS})"));
            }
        }
    }
    complaints
}

/// Returns `true` if a line is one link, which cannot be broken, after at most the mark of a
/// comment or of a list, or a name that the link defines.
fn is_link(text: &str) -> bool {
    let marks = ["//", "///", "//!", "#", "*", "-"];
    let is_label = |word: &str| word.starts_with('[') && word.ends_with("]:");
    let mut words = text.split_whitespace().skip_while(|word| marks.contains(word)).peekable();
    words.next_if(|word| is_label(word));
    let link = words.next();
    link.is_some_and(|word| word.contains("://")) && words.next().is_none()
}

/// Requires that only the engine's directory names V8 or `deno_core`.
pub(super) fn only_the_engine_names_the_engine(files: &[SourceFile]) -> Vec<String> {
    let may = |path: &str| path.starts_with(ENGINE) || MOVES.iter().any(|of| path.starts_with(of));
    let files = checked(files).filter(|file| !may(&file.path));
    let mut complaints = Vec::new();
    for (place, line) in files.flat_map(SourceFile::code) {
        for name in ["deno_core", "v8::"] {
            if names(line, name) {
                complaints.push(format!("{place}: names `{name}` outside `{ENGINE}`"));
            }
        }
    }
    complaints
}

/// Requires that only the listed files contain unsafe code.
pub(super) fn only_listed_files_are_unsafe(files: &[SourceFile]) -> Vec<String> {
    let files = checked(files).filter(|file| !UNSAFE_FILES.contains(&file.path.as_str()));
    let lines = files.flat_map(SourceFile::code).filter(|(_, line)| names(line, "unsafe"));
    lines.map(|(place, _)| format!("{place}: is unsafe in a file not listed for it")).collect()
}

/// The file of the tests that only `cargo xtask test --science` runs, which CI does too.
const RUN_APART: &str = "tests/it/science.rs:";

/// Requires that no test is ignored or accepts any panic, and that no debugging code is left.
pub(super) fn no_leftovers(files: &[SourceFile]) -> Vec<String> {
    let mut complaints = Vec::new();
    for (place, line) in checked(files).flat_map(SourceFile::code) {
        for leftover in ["#[ignore", "should_panic", "dbg!", "todo!"] {
            let is_run_apart = leftover == "#[ignore" && place.starts_with(RUN_APART);
            if names(line, leftover) && !is_run_apart {
                complaints.push(format!("{place}: contains `{leftover}`"));
            }
        }
    }
    complaints
}

/// Requires that the fuzz targets, which have a separate lock file, use the same versions as
/// isolet.
pub(super) fn what_is_fuzzed_is_what_is_built(files: &[SourceFile]) -> Vec<String> {
    const LOCK: &str = "fuzz/Cargo.lock";
    let locked_in = |path: &str| {
        let text = files.iter().find(|file| file.path == path).map(|file| file.text.as_str());
        locked(text.unwrap_or_default())
    };
    let (ours, fuzzed) = (locked_in("Cargo.lock"), locked_in(LOCK));
    let complaint = |(name, versions): (&&str, &BTreeSet<&str>)| {
        let known = ours.get(name)?;
        let other = versions.iter().find(|version| !known.contains(*version))?;
        Some(format!("{LOCK}: has {name} {other}, which `Cargo.lock` has in another version"))
    };
    fuzzed.iter().filter_map(complaint).collect()
}

/// Returns the versions of each package in a lock file.
pub(crate) fn locked(lock: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let value = |line| str::strip_suffix(line, '"');
    let mut packages = BTreeMap::<&str, BTreeSet<&str>>::new();
    let mut name = "";
    for line in lock.lines() {
        if let Some(said) = line.strip_prefix("name = \"").and_then(value) {
            name = said;
        } else if let Some(version) = line.strip_prefix("version = \"").and_then(value) {
            packages.entry(name).or_default().insert(version);
        }
    }
    packages
}

/// Requires that all entries at the top level are listed.
pub(super) fn top_level_is_known(files: &[SourceFile]) -> Vec<String> {
    let entries = files.iter().filter_map(|file| file.path.split('/').next());
    let entries: BTreeSet<_> = entries.collect();
    let unknown = entries.into_iter().filter(|entry| !TOP_LEVEL.contains(entry));
    unknown.map(|entry| format!("{entry}: is not known at the top level")).collect()
}

/// Returns the files that we wrote, without fixtures.
fn ours(files: &[SourceFile]) -> impl Iterator<Item = &SourceFile> {
    let others = ["third_party/", "tests/corpus/"];
    files.iter().filter(move |file| !others.iter().any(|dir| file.path.starts_with(dir)))
}

/// Returns the Rust files whose lines are checked: all of ours except these rules, which quote what
/// they forbid.
pub(super) fn checked(files: &[SourceFile]) -> impl Iterator<Item = &SourceFile> {
    ours(files).filter(|file| file.extension() == "rs" && !file.path.starts_with("xtask/src/tidy/"))
}

/// Returns `true` if `line` contains `name` and not only as a part of a longer identifier.
pub(super) fn names(line: &str, name: &str) -> bool {
    let part = |letter: char| letter.is_alphanumeric() || letter == '_';
    line.match_indices(name).any(|(start, _)| {
        let (before, after) = (&line[..start], &line[start + name.len()..]);
        let longer_after = name.ends_with(part) && after.starts_with(part);
        !before.ends_with(part) && !longer_after
    })
}

impl SourceFile {
    pub(super) fn extension(&self) -> &str {
        Path::new(&self.path).extension().and_then(|end| end.to_str()).unwrap_or_default()
    }

    pub(super) fn is_source(&self) -> bool {
        ["rs", "js", "mjs", "py"].contains(&self.extension())
    }

    /// Returns the lines that are not comments, each with its position.
    pub(super) fn code(&self) -> impl Iterator<Item = (String, &str)> {
        let numbered = self.text.lines().enumerate();
        let code = numbered.filter(|(_, line)| !line.trim_start().starts_with("//"));
        code.map(|(index, line)| (format!("{}:{}", self.path, index + 1), line))
    }
}
