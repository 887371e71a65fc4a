//! The rule of `cargo xtask tidy` that what a text refers to exists: files, directories, headings.

use std::collections::{BTreeMap, BTreeSet};

use super::{GENERATED, SourceFile};

/// The directories that a back-quoted path of this repository begins with. Not `target`, which
/// cargo makes.
const ROOTS: &[&str] = &[
    "benches",
    "crates",
    "docs",
    "examples",
    "fuzz",
    "guest-packages",
    "js",
    "pyodide-assets",
    "src",
    "tests",
    "third_party",
    "typescript",
    "xtask",
];

/// Requires that back-quoted paths of the repository exist, in Markdown and in source files, and
/// that links in Markdown lead to existing files and headings.
pub(super) fn references_exist(files: &[SourceFile]) -> Vec<String> {
    let entries = entries(files);
    let markdown = files.iter().filter(|file| file.extension() == "md");
    let headings: BTreeMap<_, _> =
        markdown.map(|file| (file.path.as_str(), anchors(&file.text))).collect();
    let mut complaints = Vec::new();
    // The rules themselves and their tests name files that do not exist.
    let checked = files.iter().filter(|file| {
        (file.is_source() || file.extension() == "md") && !file.path.starts_with("xtask/src/tidy/")
    });
    for file in checked {
        for (index, line) in file.text.lines().enumerate() {
            for path in quoted_paths(line) {
                let is_known = |path: &str| entries.contains(path.trim_end_matches('/'));
                let is_generated = GENERATED.iter().any(|start| path.starts_with(start));
                if !is_generated && !is_known(path) && !is_known(&beside(&file.path, path)) {
                    let place = format!("{}:{}", file.path, index + 1);
                    complaints.push(format!("{place}: names `{path}`, which does not exist"));
                }
            }
        }
    }
    for file in files.iter().filter(|file| file.extension() == "md") {
        for (line, link) in links(&file.text) {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match path {
                "" => file.path.clone(),
                path => beside(&file.path, path),
            };
            let place = format!("{}:{line}", file.path);
            if !entries.contains(target.trim_end_matches('/')) {
                complaints.push(format!("{place}: links to `{link}`, which does not exist"));
            } else if !anchor.is_empty()
                && !headings.get(&*target).is_some_and(|anchors| anchors.contains(anchor))
            {
                complaints.push(format!("{place}: links to `{link}`, which is no heading there"));
            }
        }
    }
    complaints
}

/// Returns the paths of the files and of the directories that contain them.
fn entries(files: &[SourceFile]) -> BTreeSet<&str> {
    let mut entries = BTreeSet::new();
    for file in files {
        let mut path = file.path.as_str();
        while entries.insert(path)
            && let Some((parent, _)) = path.rsplit_once('/')
        {
            path = parent;
        }
    }
    entries
}

/// Returns the path that `relative` has in the repository if the file `path` names it.
fn beside(path: &str, relative: &str) -> String {
    let mut names: Vec<_> = path.split('/').collect();
    names.pop();
    for name in relative.split('/') {
        match name {
            "." => {}
            ".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    names.join("/")
}

/// Returns the back-quoted texts of a line that are a path from one of `ROOTS`.
fn quoted_paths(line: &str) -> impl Iterator<Item = &str> {
    // Also what is between two of them, which begins with no such directory.
    line.split('`').skip(1).filter(|text| {
        let root = text.split_once('/').map(|(root, _)| root);
        let is_path = |letter: char| letter.is_ascii_alphanumeric() || "/._-".contains(letter);
        root.is_some_and(|root| ROOTS.contains(&root)) && text.chars().all(is_path)
    })
}

/// Returns the targets of the links to files of the repository, each with its line.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut links = Vec::new();
    for (number, line) in text_lines(text) {
        let inline = line.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        let inline = inline.map(|(target, _)| target);
        let is_label = |line: &str| line.starts_with('[');
        let defined = line.split_once("]: ").filter(|(label, _)| is_label(label));
        for target in inline.chain(defined.map(|(_, target)| target)) {
            let target = target.split_whitespace().next().unwrap_or_default();
            if !target.contains("://") && !target.starts_with("mailto:") {
                links.push((number, target));
            }
        }
    }
    links
}

/// Returns the anchors of the headings in a Markdown file, as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let headings = text_lines(text).filter_map(|(_, line)| {
        let heading = line.trim_start_matches('#');
        heading.strip_prefix(' ').filter(|_| heading.len() < line.len())
    });
    for heading in headings {
        let is_kept = |letter: &char| letter.is_alphanumeric() || " -_".contains(*letter);
        let heading = heading.trim().to_lowercase();
        let anchor: String = heading.chars().filter(is_kept).collect();
        let anchor = anchor.replace(' ', "-");
        let numbered = (1..).map(|number| format!("{anchor}-{number}"));
        let mut free =
            std::iter::once(anchor.clone()).chain(numbered).filter(|one| !anchors.contains(one));
        let free = free.next().unwrap_or_default();
        anchors.insert(free);
    }
    anchors
}

/// Returns the numbered lines of a Markdown file that are not in an example.
fn text_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_example = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_example ^= is_fence;
        (!in_example && !is_fence).then_some((index + 1, line))
    })
}
