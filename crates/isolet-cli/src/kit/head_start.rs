//! Starts the worker of `isolet run` while the command line is read.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The variable for `--isolation`.
const ISOLATION: &str = "ISOLET_ISOLATION";

/// Starts the worker if `words` are surely those of a run that needs one. If they are not, the run
/// starts a few milliseconds later.
pub(crate) fn give(words: &[OsString]) {
    #[expect(clippy::disallowed_methods, reason = "the command's own setting")]
    let isolation = std::env::var_os(ISOLATION);
    if is_sure(words, isolation.as_deref()) {
        isolet::internals::start_worker_ahead();
    }
}

fn is_sure(words: &[OsString], isolation: Option<&OsStr>) -> bool {
    let [_, first, rest @ ..] = words else { return false };
    let is_run = first == "run" || first == "-c" || first == "-m" || is_script(first);
    let is_help = |word: &OsString| word == "--help" || word == "-h";
    let mut where_asked = rest.iter().enumerate().filter_map(|(at, word)| {
        let value = word.as_encoded_bytes().strip_prefix(b"--isolation")?;
        Some(match value {
            [] => rest.get(at + 1).is_some_and(|word| word == "process"),
            value => value == b"=process",
        })
    });
    is_run
        && isolation.is_none_or(|isolation| isolation == "process")
        && !(first == "run" && rest.is_empty())
        && !rest.iter().any(is_help)
        && where_asked.all(|is_process| is_process)
}

fn is_script(word: &OsStr) -> bool {
    Path::new(word).extension().is_some_and(|extension| extension == "py")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_gets_a_head_start_only_for_a_run_that_will_need_one() {
        let is_sure = |words: &str, isolation: Option<&str>| {
            let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
            is_sure(&words, isolation.map(OsStr::new))
        };
        for words in [
            "isolet run -c 1",
            "isolet -c 1",
            "isolet -m json",
            "isolet a/b.py x",
            "isolet run --isolation process -c 1",
            "isolet run --isolation=process -c 1",
        ] {
            assert!(is_sure(words, None) && is_sure(words, Some("process")), "{words}");
            assert!(!is_sure(words, Some("thread")), "{words}");
        }
        for words in [
            "isolet",
            "isolet run",
            "isolet run --help",
            "isolet run --isolation thread -c 1",
            "isolet run --isolation=thread -c 1",
            "isolet doctor",
            "isolet serve --stdio",
        ] {
            assert!(!is_sure(words, None), "{words}");
        }
    }
}
