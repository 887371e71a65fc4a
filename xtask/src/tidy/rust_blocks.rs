//! The rules for Rust in Markdown: a reader of the page sees all of a program, and rustdoc compiles
//! it.

use std::collections::BTreeSet;

use super::SourceFile;

/// Where rustdoc finds the pages that it compiles.
const SOURCES: &str = "src/";

/// Requires that no block of Rust has lines that only rustdoc hides, `# use std::fs;`: whoever
/// copies from the page gets them, too.
pub(super) fn rust_blocks_hide_no_lines(files: &[SourceFile]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in pages(files) {
        for (index, line) in rust_lines(file) {
            if line == "#" || line.starts_with("# ") {
                let place = format!("{}:{}", file.path, index + 1);
                complaints.push(format!("{place}: rustdoc hides this line, and Markdown does not"));
            }
        }
    }
    complaints
}

/// Requires that rustdoc compiles each page with Rust: a file of the library includes it.
pub(super) fn rust_blocks_are_compiled(files: &[SourceFile]) -> Vec<String> {
    let sources = files.iter().filter(|file| file.path.starts_with(SOURCES));
    let included: BTreeSet<&str> = sources
        .flat_map(|file| file.text.split("include_str!(\"").skip(1))
        .filter_map(end)
        .collect();
    let is_compiled =
        |file: &SourceFile| included.iter().any(|path| path.trim_start_matches("../") == file.path);
    let uncompiled =
        pages(files).filter(|file| rust_lines(file).next().is_some() && !is_compiled(file));
    uncompiled
        .map(|file| format!("{}: has Rust, and no `include_str!` in `{SOURCES}`", file.path))
        .collect()
}

fn end(text: &str) -> Option<&str> {
    text.split('"').next()
}

fn pages(files: &[SourceFile]) -> impl Iterator<Item = &SourceFile> {
    let is_page = |file: &&SourceFile| {
        file.path == "README.md" || file.path.starts_with("docs/") && file.extension() == "md"
    };
    files.iter().filter(is_page)
}

/// Returns the lines of the blocks of Rust, each with its number from 0 on.
fn rust_lines(file: &SourceFile) -> impl Iterator<Item = (usize, &str)> {
    let mut language = None;
    file.text.lines().enumerate().filter(move |(_, line)| {
        match (line.trim_start().strip_prefix("```"), language) {
            (Some(_), Some(_)) => language = None,
            (Some(name), None) => language = Some(name.split(',').next() == Some("rust")),
            (None, of) => return of == Some(true),
        }
        false
    })
}
