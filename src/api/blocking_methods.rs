//! Checks that the blocking types have all that waits in the async ones.

use std::collections::BTreeSet;

/// The async types and the file of each.
const ASYNC: [(&str, &str); 7] = [
    ("Engine", include_str!("engine/mod.rs")),
    ("Sandbox", concat!(include_str!("sandbox.rs"), include_str!("bundling.rs"))),
    ("Session", concat!(include_str!("session/mod.rs"), include_str!("session/recorded.rs"))),
    ("Files", include_str!("session/files.rs")),
    ("RunStream", include_str!("stream.rs")),
    ("RunOutput", include_str!("stream.rs")),
    ("SessionHandle", include_str!("../host/tools/session_handle.rs")),
];
/// A caller still has an engine or sandbox after `blocking()`, so its calls that never wait are
/// not needed again.
const STILL_THERE: [&str; 2] = ["Engine", "Sandbox"];
/// Two calls that are async methods of `CopiedFiles`.
const ONLY_HERE: [&str; 2] = ["copy_in", "copy_out"];

/// Returns the methods of a type in a file: `async` if they are, name, and arguments.
fn methods(text: &str, of: &str) -> Vec<(bool, String)> {
    let mut found = Vec::new();
    let mut is_inside = false;
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    for (at, line) in text.split_inclusive('\n').scan(0, |end, line| {
        *end += line.len();
        Some((*end - line.len(), line))
    }) {
        if let Some(head) = line.strip_prefix("impl") {
            let head = head.trim_start_matches("<'a>").trim_start();
            let head = head.strip_prefix("Iterator for ").unwrap_or(head);
            is_inside = head.split(['<', ' ']).next() == Some(of);
        }
        let Some(item) = line.strip_prefix("    ").filter(|_| is_inside) else { continue };
        let is_async = item.starts_with("pub async fn ");
        if !is_async && !item.starts_with("pub fn ") && !item.starts_with("fn next(") {
            continue;
        }
        let signature = text[at..].split_once("fn ").map_or("", |(_, rest)| rest);
        let end = signature.find([';', '{']).unwrap_or(0);
        let arguments = signature[..end].split("->").next().unwrap_or_default();
        let packed: String = arguments.chars().filter(|c| !c.is_whitespace()).collect();
        let packed = packed.replace(",)", ")").replace("(mutself", "(self");
        if packed.contains("self") {
            found.push((is_async, packed));
        }
    }
    found
}

#[test]
fn every_async_method_is_here_with_its_name_and_arguments() {
    for (of, file) in ASYNC {
        let expected: BTreeSet<String> = methods(file, of)
            .into_iter()
            .filter(|(is_async, _)| *is_async || !STILL_THERE.contains(&of))
            .map(|(_, method)| method)
            .collect();
        assert!(!expected.is_empty(), "{of} has no methods");
        let files = [include_str!("blocking.rs"), include_str!("blocking/runs.rs")];
        let here: BTreeSet<String> = files
            .into_iter()
            .flat_map(|file| methods(file, of))
            .map(|(_, method)| method)
            .filter(|method| !ONLY_HERE.iter().any(|name| method.starts_with(name)))
            .collect();
        let missing: Vec<_> = expected.difference(&here).collect();
        assert!(missing.is_empty(), "blocking::{of} lacks {missing:?}");
        let all: BTreeSet<String> =
            methods(file, of).into_iter().map(|(_, method)| method).collect();
        let more: Vec<_> = here.difference(&all).collect();
        assert!(more.is_empty(), "blocking::{of} has {more:?}, {of} does not");
    }
}
