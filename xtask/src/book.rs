//! `cargo xtask book`: the pages of `docs/` as a book, by mdBook, in `target/book`.
//!
//! mdBook is compiled once, as cargo-deny is. Its chapters are the links of `docs/README.md`, in
//! their order, so that there is one list. Links that leave `docs/` lead to the repository.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{fs, io};

use anyhow::{Context, Result, ensure};

use crate::{manifest, process};

const MDBOOK: &str = "0.5.4";

const DOCS: &str = "docs";
const INDEX: &str = "README.md";

const SETTINGS: &str = r#"[book]
title = "isolet"
language = "en"
src = "src"

[build]
build-dir = "html"
create-missing = false

[output.html]
no-section-label = true
git-repository-url = "REPOSITORY"
additional-css = ["tables.css"]

[output.html.search]
boost-title = 3
heading-split-level = 3
"#;

/// Gives wide tables, of which the reference has many, the room that there is.
const TABLES: &str = "\
:root { --content-max-width: 1100px; }
.content main table { margin-inline: 0; font-size: 0.85em; }
.content main table thead th { text-align: start; }
.content main table :is(td, th) { padding: 3px 10px; }
";

pub(crate) fn run() -> Result<ExitCode> {
    let program = mdbook()?;
    let dir = process::target_dir()?.join("book");
    let cargo = fs::read_to_string(process::root().join("Cargo.toml"))
        .context("cannot read `Cargo.toml`")?;
    let repository = manifest::text(&cargo, "workspace.package", "repository")
        .context("`Cargo.toml` names no repository")?;
    write_sources(&dir, repository)?;
    let code = process::status(Command::new(&program).arg("build").current_dir(&dir))
        .map(process::exit_code)?;
    if code == ExitCode::SUCCESS {
        eprintln!("{}", dir.join("html/index.html").display());
    }
    Ok(code)
}

/// Writes what mdBook reads.
fn write_sources(dir: &Path, repository: &str) -> Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(error).context("cannot remove the last book");
        }
        _ => {}
    }
    let docs = process::root().join(DOCS);
    let mut pages = Vec::new();
    collect(&docs, &docs, &["md"], &mut pages)?;
    let index = fs::read_to_string(docs.join(INDEX)).context("cannot read the index")?;
    for page in &pages {
        let text = fs::read_to_string(docs.join(page)).context("cannot read a page")?;
        write(&dir.join("src").join(page), outward(page, &text, repository))?;
    }
    let mut pictures = Vec::new();
    collect(&docs, &docs, &["png", "svg"], &mut pictures)?;
    for picture in &pictures {
        let bytes = fs::read(docs.join(picture)).context("cannot read a picture")?;
        write(&dir.join("src").join(picture), &bytes)?;
    }
    write(&dir.join("src/SUMMARY.md"), summary(&index))?;
    write(&dir.join("tables.css"), TABLES)?;
    write(&dir.join("book.toml"), SETTINGS.replace("REPOSITORY", repository))
}

fn write(path: &Path, text: impl AsRef<[u8]>) -> Result<()> {
    let parent = path.parent().unwrap_or(path);
    fs::create_dir_all(parent).and_then(|()| fs::write(path, text)).context("cannot write the book")
}

/// Adds the files below `dir` with one of these extensions, by their paths from `docs`.
fn collect(docs: &Path, dir: &Path, extensions: &[&str], pages: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(dir).context("cannot list `docs`")? {
        let path = entry.context("cannot list `docs`")?.path();
        if path.is_dir() {
            collect(docs, &path, extensions, pages)?;
        } else if path.extension().is_some_and(|found| extensions.iter().any(|one| found == *one)) {
            let page = path.strip_prefix(docs).unwrap_or(&path);
            pages.push(page.to_string_lossy().replace('\\', "/"));
        }
    }
    pages.sort();
    Ok(())
}

/// Returns mdBook's list of chapters: the headings of the index, and the items below each.
pub(crate) fn summary(index: &str) -> String {
    let mut summary = String::from("# Summary\n\n[Documentation](README.md)\n");
    for line in index.lines() {
        if let Some(part) = line.strip_prefix("## ") {
            summary.extend(["\n# ", part, "\n\n"]);
        } else if line.starts_with("* [") || line.starts_with("  * [") {
            let end = line.find(".md)").map_or(line.len(), |at| at + ".md)".len());
            summary.push_str(&line[..end].replacen("* ", "- ", 1));
            summary.push('\n');
        }
    }
    summary
}

/// Returns a page whose links to files outside `docs` lead to the repository, and those to an index
/// to what mdBook makes of it.
fn outward(page: &str, text: &str, repository: &str) -> String {
    // From the page up to the directory above `docs`.
    let up = "../".repeat(page.matches('/').count() + 1);
    let mut pieces = text.split("](");
    let mut outward = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (target, rest) = piece.split_at(piece.find(')').unwrap_or(piece.len()));
        let target = match target.strip_prefix(&up) {
            Some(outside) => format!("{repository}/blob/main/{outside}"),
            None if target.contains("://") => target.to_owned(),
            None => target.replace("README.md", "index.md"),
        };
        outward.extend(["](", &target, rest]);
    }
    outward
}

fn mdbook() -> Result<PathBuf> {
    let dir = process::target_dir()?.join("mdbook");
    let program = dir.join("bin/mdbook").with_extension(std::env::consts::EXE_EXTENSION);
    if !process::is_version(&program, MDBOOK) {
        eprintln!("installing mdbook {MDBOOK} with cargo");
        let mut cargo = process::cargo();
        cargo.args(["install", "mdbook", "--version", MDBOOK, "--locked", "--debug", "--quiet"]);
        cargo.args(["--no-default-features", "--features", "search", "--force", "--root"]);
        process::check(cargo.arg(&dir))?;
        let is_here = process::is_version(&program, MDBOOK);
        ensure!(is_here, "cargo did not bring mdbook {MDBOOK}");
    }
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chapters_are_the_items_of_the_index_below_their_headings() {
        let index =
            "# All\n\n| a | [b](b.md) |\n\n## One\n\nText.\n\n* [A](x/a.md): a\n  * [B](b.md)\n";
        assert_eq!(
            summary(index),
            "# Summary\n\n[Documentation](README.md)\n\n# One\n\n- [A](x/a.md)\n  - [B](b.md)\n"
        );
    }

    #[test]
    fn every_page_is_a_chapter_once() {
        let docs = process::root().join(DOCS);
        let mut pages = Vec::new();
        collect(&docs, &docs, &["md"], &mut pages).unwrap();
        let summary = summary(&fs::read_to_string(docs.join(INDEX)).unwrap());
        for page in pages {
            let times = summary.matches(&format!("]({page})")).count();
            assert_eq!(times, 1, "docs/README.md lists {page} {times} times");
        }
    }

    #[test]
    fn links_out_of_the_book_lead_to_the_repository() {
        let text = "[a](b.md) [c](../x/README.md#y) [d](../../README.md)";
        let expected = "[a](b.md) [c](../x/index.md#y) [d](https://x.example/blob/main/README.md)";
        assert_eq!(outward("guides/a.md", text, "https://x.example"), expected);
        let text = "[a](../SECURITY.md) [b](guides/a.md)";
        let expected = "[a](https://x.example/blob/main/SECURITY.md) [b](guides/a.md)";
        assert_eq!(outward("a.md", text, "https://x.example"), expected);
    }
}
