//! Tests of where the options of `isolet run` end, on the whole command line.

use std::ffi::OsString;

use clap::Arg;
use clap::ArgMatches;
use clap::parser::ValueSource;

use super::definition;
use crate::args::words::*;

fn ended(words: &[&str]) -> Vec<String> {
    let words = words.iter().map(OsString::from).collect();
    let ended = end_options(words, &mut definition());
    ended.into_iter().map(|word| word.into_string().unwrap()).collect()
}

/// Returns the words with the subcommand that they imply.
fn named(words: &[&str], is_at_terminal: bool) -> Vec<String> {
    let words = words.iter().map(OsString::from).collect();
    let named = name_subcommand(words, &mut definition(), is_at_terminal);
    named.into_iter().map(|word| word.into_string().unwrap()).collect()
}

/// Parses a command line of `isolet run` with `clap`.
fn parsed(words: &[&str]) -> ArgMatches {
    let matches = definition().get_matches_from(ended(words));
    matches.subcommand_matches("run").unwrap().clone()
}

fn run_options() -> Vec<Arg> {
    let mut command = definition();
    command.build();
    command.find_subcommand("run").unwrap().get_opts().cloned().collect()
}

#[test]
fn options_end_at_the_script_or_at_the_code() {
    let cases: [(&[&str], usize); 15] = [
        (&["isolet", "run", "-s", "script", "--json"], 4),
        (&["isolet", "run", "x.py", "--json"], 2),
        (&["isolet", "run", "--json", "x.py", "--raw", "--", "-c"], 3),
        (&["isolet", "run", "--env", "A=x.py", "--env=B=1", "x.py", "--env", "C=1"], 5),
        (&["isolet", "--assets", "run", "run", "--assets", "x", "x.py", "--assets", "y"], 6),
        (&["isolet", "run", "-", "-"], 2),
        (&["isolet", "run", "-c", "code", "--json"], 4),
        (&["isolet", "run", "-c", "--json", "--json"], 4),
        (&["isolet", "run", "-c", "--", "--", "--json"], 4),
        (&["isolet", "run", "-ccode", "--json"], 3),
        (&["isolet", "run", "--json", "-m", "module", "--json"], 5),
        (&["isolet", "run", "-mmodule", "-m", "x"], 3),
        (&["isolet", "run", "-c=code", "--json"], 3),
        (&["isolet", "run", "--json", "-c", ""], 5),
        (&["isolet", "run", "--timeout", "1", "-c", "code", "-c", "code"], 6),
    ];
    for (words, place) in cases {
        let mut expected = words.to_vec();
        expected.insert(place, "--");
        assert_eq!(ended(words), expected);
    }
}

#[test]
fn a_program_without_a_subcommand_is_run_and_nothing_is_a_prompt() {
    let programs: [&[&str]; 12] = [
        &["isolet", "x.py", "--json"],
        &["isolet", "./run"],
        &["isolet", "-"],
        &["isolet", "--", "run"],
        &["isolet", "-c", "code"],
        &["isolet", "-qccode"],
        &["isolet", "-s", "script", "run"],
        &["isolet", "--timeout", "3s", "x.ipynb"],
        &["isolet", "--assets", "run", "--with=numpy", "-m", "x"],
        &["isolet", "--env", "A=1", "--json", "x.py", "--help"],
        // A file that is there.
        &["isolet", "Cargo.toml"],
        &["isolet", "src"],
    ];
    for words in programs {
        let mut expected = words.to_vec();
        expected.insert(1, "run");
        for is_at_terminal in [true, false] {
            assert_eq!(named(words, is_at_terminal), expected);
        }
    }
    assert_eq!(named(&["isolet", "--assets", "x"], true), ["isolet", "repl", "--assets", "x"]);
    assert_eq!(named(&["isolet", "--with", "x"], true), ["isolet", "repl", "--with", "x"]);
    assert_eq!(named(&["isolet", "--with", "x"], false), ["isolet", "run", "--with", "x"]);
    let others: [&[&str]; 10] = [
        &["isolet", "run", "x.py"],
        &["isolet", "--assets", "x", "run"],
        &["isolet", "subprocess"],
        &["isolet", "help", "run"],
        &["isolet", "rnu"],
        &["isolet", "--nosuch", "x.py"],
        &["isolet", "-h"],
        &["isolet", "--version", "x.py"],
        &["isolet", "--json", "--help"],
        &["isolet", "doctor", "--json"],
    ];
    for words in others {
        for is_at_terminal in [true, false] {
            assert_eq!(named(words, is_at_terminal), words);
        }
    }
    assert_eq!(named(&["isolet"], false), ["isolet"]);
    assert_eq!(named(&["isolet"], true), ["isolet", "repl"]);
}

#[test]
fn a_word_like_a_subcommand_is_known() {
    let similar = |word| similar_subcommand(word, &definition());
    for (word, name) in [("rnu", "run"), ("docter", "doctor"), ("serv", "serve"), ("rpel", "repl")]
    {
        assert_eq!(similar(word).as_deref(), Some(name));
    }
    assert_eq!(similar("xyz"), None);
}

#[test]
fn the_output_of_a_notebook_may_be_said_after_it() {
    let cases: [(&[&str], usize); 9] = [
        (&["isolet", "run", "x.ipynb", "--output", "y.ipynb"], 5),
        (&["isolet", "run", "x.ipynb", "--output=y.ipynb", "--output", "z"], 4),
        (&["isolet", "run", "--json", "x.ipynb", "--output", "y.ipynb", "--json"], 6),
        (&["isolet", "run", "x.ipynb", "--json", "--output", "y.ipynb"], 2),
        (&["isolet", "run", "x.ipynb", "--outputs", "y.ipynb"], 2),
        (&["isolet", "run", "x.ipynb", "--output"], 2),
        (&["isolet", "run", "x.py", "--output", "y.ipynb"], 2),
        (&["isolet", "run", "-c", "code", "x.ipynb", "--output", "y.ipynb"], 4),
        (&["isolet", "run", "-m", "module", "x.ipynb", "--output=y.ipynb"], 4),
    ];
    for (words, place) in cases {
        let mut expected = words.to_vec();
        expected.insert(place, "--");
        assert_eq!(ended(words), expected);
    }
    let matches = parsed(&["isolet", "run", "x.ipynb", "--output", "y.ipynb", "--json", "z"]);
    assert_eq!(matches.get_raw("output").unwrap().collect::<Vec<_>>(), ["y.ipynb"]);
    assert_eq!(matches.get_raw("file").unwrap().collect::<Vec<_>>(), ["x.ipynb"]);
    assert_eq!(matches.get_raw("args").unwrap().collect::<Vec<_>>(), ["--json", "z"]);
}

#[test]
fn other_command_lines_stay_as_they_are() {
    let cases: [&[&str]; 9] = [
        &["isolet"],
        &["isolet", "run"],
        &["isolet", "run", "--json"],
        &["isolet", "run", "--", "x.py", "--json"],
        &["isolet", "run", "--nosuch", "x.py"],
        &["isolet", "run", "-c"],
        &["isolet", "--", "run", "x.py", "--json"],
        &["isolet", "repl", "--raw"],
        &["isolet", "deno-shim", "run", "x.js", "--allow-net=a"],
    ];
    for words in cases {
        assert_eq!(ended(words), words);
    }
}

#[test]
fn no_option_after_the_script_or_the_code_is_ours() {
    let options = run_options();
    for option in &options {
        let long = option.get_long().map(|long| format!("--{long}"));
        let short = option.get_short().map(|short| format!("-{short}"));
        for name in long.iter().chain(&short) {
            for start in [&["x.py"][..], &["-"], &["-c", "code"], &["-s", "code"], &["-m", "x"]] {
                let words = [&["isolet", "run"], start, &[name, "x"]].concat();
                let matches = parsed(&words);
                for id in options.iter().map(|option| option.get_id().as_str()) {
                    let is_set = matches.value_source(id) == Some(ValueSource::CommandLine);
                    let starts = ["code", "module", "shell"].contains(&id);
                    assert!(starts || !is_set, "{words:?} sets {id}");
                }
            }
        }
    }
}

#[test]
fn an_option_of_ours_among_the_arguments_of_a_program_is_found() {
    let among = |words: &[&str]| {
        option_among(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>(), definition)
    };
    assert_eq!(among(&["x", "--with", "pandas"]).as_deref(), Some("--with"));
    assert_eq!(among(&["--mount=a:/b"]).as_deref(), Some("--mount"));
    assert_eq!(among(&["--nosuch", "-c", "x", "--", "--with"]), None);
}

#[test]
fn json_is_asked_for_by_an_option_of_ours_and_by_no_word_of_the_script() {
    let asks = |words: &[&str]| {
        ask_for_json(&words.iter().map(OsString::from).collect::<Vec<_>>(), definition())
    };
    assert!(asks(&["isolet", "run", "--json", "--nosuch", "x.py"]));
    assert!(asks(&["isolet", "run", "--nosuch", "--json", "x.py"]));
    assert!(asks(&["isolet", "--assets", "a", "run", "--timeout", "x", "--json"]));
    assert!(!asks(&["isolet", "run", "--nosuch", "x.py", "--json"]));
    assert!(!asks(&["isolet", "run", "--timeout", "--json", "x.py"]));
    assert!(!asks(&["isolet", "run", "-c", "--json", "--json"]));
    assert!(!asks(&["isolet", "run", "--", "--json"]));
    assert!(!asks(&["isolet", "repl", "--json"]));
    assert!(!asks(&["isolet"]));
}

#[test]
fn every_option_has_either_one_value_or_none() {
    for option in run_options() {
        let count = option.get_num_args().unwrap();
        let expected = usize::from(option.get_action().takes_values());
        assert_eq!((count.min_values(), count.max_values()), (expected, expected), "{option}");
    }
}
