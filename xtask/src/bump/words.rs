//! The names in texts of programs, by which it is told whether what isolet names is still there.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Returns whatever is a name, or could be part of one.
pub(super) fn words(text: &str) -> BTreeSet<&str> {
    let parts = text.split(|found: char| !is_of_a_word(found));
    parts.filter(|word| word.starts_with(|first: char| !first.is_ascii_digit())).collect()
}

fn is_of_a_word(found: char) -> bool {
    found.is_ascii_alphanumeric() || found == '_' || found == '$'
}

/// Returns the names that Rust code takes from `root`: `a`, `b` and `c` of `root::a::{b, c}`.
pub(super) fn taken_from<'a>(root: &str, code: &'a str) -> BTreeSet<&'a str> {
    let mut names = BTreeSet::new();
    for (at, found) in code.match_indices(&format!("{root}::")) {
        if code[..at].ends_with(is_of_a_word) {
            continue;
        }
        let path = &code[at + found.len()..];
        let mut depth = 0;
        let end = path.find(|letter: char| {
            match letter {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => (),
            }
            let goes_on = is_of_a_word(letter) || letter == ':' || letter == '{';
            !goes_on && depth == 0
        });
        names.extend(words(&path[..end.unwrap_or(path.len())]));
    }
    for keyword in ["self", "as", "super"] {
        names.remove(keyword);
    }
    names
}

/// Returns the names that JavaScript takes from an object: of `root.a` and `const { b } = root;`.
pub(super) fn members_of<'a>(root: &str, code: &'a str) -> BTreeSet<&'a str> {
    let mut names = BTreeSet::new();
    for (at, found) in code.match_indices(&format!("{root}.")) {
        if code[..at].ends_with(|last| is_of_a_word(last) || last == '.') {
            continue;
        }
        let rest = &code[at + found.len()..];
        let end = rest.find(|letter| !is_of_a_word(letter));
        names.extend(words(&rest[..end.unwrap_or(rest.len())]));
    }
    for (at, _) in code.match_indices(&format!("}} = {root};")) {
        let start = code[..at].rfind('{').unwrap_or(at);
        names.extend(words(&code[start..at]));
    }
    names
}

/// Returns the texts in quotation marks of Rust code, but for those with escapes.
pub(super) fn literals(code: &str) -> BTreeSet<&str> {
    without_comments(code).flat_map(|line| line.split('"').skip(1).step_by(2)).collect()
}

/// Returns the names in JavaScript, without the words of comments and of sentences in quotation
/// marks. A single word in them is a key.
pub(super) fn names(code: &str) -> BTreeSet<&str> {
    let parts = without_comments(code).flat_map(|line| line.split(['"', '`']).enumerate());
    let is_sentence = |text: &str| text.trim().contains(' ');
    let parts = parts.filter(|(nth, part)| nth % 2 == 0 || !is_sentence(part));
    parts.flat_map(|(_, part)| words(part)).collect()
}

/// Returns the lines of Rust or JavaScript without what is after `//`, and without blocks of
/// comments whose lines begin with a star.
pub(super) fn without_comments(code: &str) -> impl Iterator<Item = &str> {
    let lines = code.lines().filter(|line| !line.trim_start().starts_with(['*', '/']));
    lines.map(|line| line.split_once(" //").map_or(line, |(code, _)| code))
}

/// Returns the texts of all files with an extension in a directory and below it, one after another
/// in the order of their names.
pub(super) fn texts(dir: &Path, extension: &str) -> Result<String> {
    let unreadable = || format!("cannot read `{}`", dir.display());
    let mut paths = Vec::new();
    for entry in fs::read_dir(dir).with_context(unreadable)? {
        paths.push(entry.with_context(unreadable)?.path());
    }
    paths.sort();
    let mut all = String::new();
    for path in paths {
        if path.is_dir() {
            all.push_str(&texts(&path, extension)?);
        } else if path.extension().is_some_and(|found| found == extension) {
            let bytes = fs::read(&path);
            let bytes = bytes.with_context(|| format!("cannot read `{}`", path.display()))?;
            all.push_str(&String::from_utf8_lossy(&bytes));
            all.push('\n');
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set<'a>(names: &[&'a str]) -> BTreeSet<&'a str> {
        names.iter().copied().collect()
    }

    #[test]
    fn names_of_a_crate_are_found_in_paths_and_imports() {
        let code = "use deno_core::error::{CoreError, JsError as Js};\nuse deno_core::{\n  op2,\n};\n\
                    deno_core::scope!(scope, runtime); my_deno_core::other(x); \
                    fn f(a: deno_core::Local<'s, T>) {}";
        let names = ["error", "CoreError", "JsError", "Js", "op2", "scope", "Local"];
        assert_eq!(taken_from("deno_core", code), set(&names));
    }

    #[test]
    fn members_of_an_object_are_found() {
        let code = "core.setCallback(1); score.no(); const { a, b } = core;\nconst { c } = other;";
        assert_eq!(members_of("core", code), set(&["setCallback", "a", "b"]));
    }

    #[test]
    fn names_are_found_in_code_and_not_in_sentences() {
        let code = "/** Says no.\n * Nor here.\n */\n// no\nM[\"key\"](x, `takes ${no}`); // no\n";
        assert_eq!(names(code), set(&["M", "key", "x"]));
    }

    #[test]
    fn texts_in_quotation_marks_are_found() {
        let code = "/// Says \"no\".\nconst A: &str = \"Py_A\"; // \"no\"\nf(\"b\", \"c\");\n";
        assert_eq!(literals(code), set(&["Py_A", "b", "c"]));
    }
}
