//! The rules for what has to be complete or up to date: lists of files, declarations, tables.

use super::{SourceFile, ops};

/// The page that lists the guest's files.
const GUESTS_PAGE: &str = "js/README.md";

/// The list of all ops, as a test of the engine finds them.
const GOLDEN: &str = "tests/golden/ops.txt";

/// Requires that the page about the guest's files names each of them.
pub(super) fn the_guests_files_are_listed(files: &[SourceFile]) -> Vec<String> {
    let Some(page) = files.iter().find(|file| file.path == GUESTS_PAGE) else { return Vec::new() };
    let names = files.iter().filter_map(|file| file.path.strip_prefix("js/"));
    let missing = names
        .filter(|name| *name != "README.md" && !page.text.contains(&format!("`{name}`")))
        .map(|name| format!("{GUESTS_PAGE}: does not list `{name}`"));
    missing.collect()
}

/// Requires that the declarations of the ops are what their Rust gives, and have each of them.
pub(super) fn ops_are_declared(files: &[SourceFile]) -> Vec<String> {
    let text = |path: &str| files.iter().find(|file| file.path == path).map(|file| &*file.text);
    let Some(golden) = text(GOLDEN) else { return Vec::new() };
    let sources = files.iter().filter(|file| file.path.starts_with(ops::SOURCES));
    let place = ops::DECLARATIONS;
    let declared = match ops::declarations(sources.map(|file| &*file.text)) {
        Ok(declared) => declared,
        Err(error) => return vec![format!("{place}: {error:#}")],
    };
    let mut complaints = Vec::new();
    if text(place) != Some(&*declared) {
        complaints.push(format!("{place}: is out of date; `cargo xtask generate` writes it"));
    }
    let ours = golden.lines().filter_map(|line| line.strip_prefix("ours"));
    for name in ours.map(str::trim).filter(|name| !declared.contains(&format!(" {name}("))) {
        complaints.push(format!("{place}: lacks `{name}`, which is in {GOLDEN}"));
    }
    complaints
}

/// Requires that each table has a head. An empty line would cut it in two, the second without one.
pub(super) fn tables_have_heads(files: &[SourceFile]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files.iter().filter(|file| file.extension() == "md") {
        let (mut in_example, mut before) = (false, "");
        let lines: Vec<&str> = file.text.lines().collect();
        for (index, line) in lines.iter().enumerate() {
            in_example ^= line.trim_start().starts_with("```");
            let begins = line.starts_with('|') && !before.starts_with('|');
            let has_head = lines.get(index + 1).is_some_and(|next| is_rule(next));
            if begins && !in_example && !has_head {
                let place = format!("{}:{}", file.path, index + 1);
                complaints.push(format!("{place}: begins a table without a head"));
            }
            before = line;
        }
    }
    complaints
}

/// Whether a line separates a table's head from its rows.
fn is_rule(line: &str) -> bool {
    line.starts_with('|') && line.chars().all(|found| "|-: ".contains(found))
}
