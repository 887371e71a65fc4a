//! Tests of where the options of `isolet run` end, on the whole command line.

use std::ffi::OsString;

use clap::ArgMatches;
use clap::parser::ValueSource;
use clap::{Arg, CommandFactory};

use super::Cli;
use crate::args::words::*;

fn ended(words: &[&str]) -> Vec<String> {
    let words = words.iter().map(OsString::from).collect();
    let ended = end_options(words, &mut Cli::command());
    ended.into_iter().map(|word| word.into_string().unwrap()).collect()
}

/// Parses a command line of `isolet run` with `clap`.
fn parsed(words: &[&str]) -> ArgMatches {
    let matches = Cli::command().get_matches_from(ended(words));
    matches.subcommand_matches("run").unwrap().clone()
}

fn run_options() -> Vec<Arg> {
    let mut command = Cli::command();
    command.build();
    command.find_subcommand("run").unwrap().get_opts().cloned().collect()
}

#[test]
fn options_end_at_the_script_or_at_the_code() {
    let cases: [(&[&str], usize); 14] = [
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
            for start in [&["x.py"][..], &["-"], &["-c", "code"], &["-ccode"], &["-m", "x"]] {
                let words = [&["isolet", "run"], start, &[name, "x"]].concat();
                let matches = parsed(&words);
                for id in options.iter().map(|option| option.get_id().as_str()) {
                    let is_set = matches.value_source(id) == Some(ValueSource::CommandLine);
                    let starts = ["code", "module"].contains(&id);
                    assert!(starts || !is_set, "{words:?} sets {id}");
                }
            }
        }
    }
}

#[test]
fn an_option_of_ours_among_the_arguments_of_a_program_is_found() {
    let among = |words: &[&str]| {
        option_among(
            &words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>(),
            Cli::command(),
        )
    };
    assert_eq!(among(&["x", "--with", "pandas"]).as_deref(), Some("--with"));
    assert_eq!(among(&["--mount=a:/b"]).as_deref(), Some("--mount"));
    assert_eq!(among(&["--nosuch", "-c", "x", "--", "--with"]), None);
}

#[test]
fn json_is_asked_for_by_an_option_of_ours_and_by_no_word_of_the_script() {
    let asks = |words: &[&str]| {
        ask_for_json(&words.iter().map(OsString::from).collect::<Vec<_>>(), Cli::command())
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
