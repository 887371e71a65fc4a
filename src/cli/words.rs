//! Finds where the options of `isolet run` end: at the script, as for python. All later words
//! belong to the script, so that a wrapper's `"$@"` cannot grant the guest anything. Only where a
//! notebook's outputs go can be said directly after the notebook: `nbconvert` puts it there, too.

use std::ffi::{OsStr, OsString};

use clap::{Arg, Command, CommandFactory};

use super::{Cli, notebook};

/// Options that say what to run. Their value ends isolet's options.
const LAST_OPTIONS: [char; 2] = ['c', 'm'];

/// The option that may come directly after a notebook.
const OUTPUT: &str = "--output";

/// Inserts a `--` before the script's words, if the command line is one of `isolet run`.
pub(super) fn end_options(mut words: Vec<OsString>, command: &mut Command) -> Vec<OsString> {
    command.build();
    if let Some(end) = end_of_run_options(&words, command) {
        let place = if end.is_file { after_output(&words, end.at) } else { end.at };
        words.insert(place, "--".into());
    }
    words
}

/// Returns the index of the first word after a notebook at `at` and its `--output`, or `at` if that
/// is not there.
fn after_output(words: &[OsString], at: usize) -> usize {
    let is_notebook =
        words.get(at).and_then(|word| word.to_str()).is_some_and(notebook::is_notebook);
    let length = match words.get(at + 1).and_then(|word| word.to_str()) {
        Some(OUTPUT) if words.len() > at + 2 => 3,
        Some(word) if word.strip_prefix(OUTPUT).is_some_and(|rest| rest.starts_with('=')) => 2,
        _ => 0,
    };
    if is_notebook { at + length } else { at }
}

/// Returns the first word that is an option of `isolet run`, among the arguments of a program.
pub(super) fn option_among(arguments: &[String]) -> Option<String> {
    let mut command = Cli::command();
    command.build();
    let run = command.find_subcommand("run")?;
    let is_option = |word: &&String| {
        word.len() > 2 && word.starts_with("--") && last_option(OsStr::new(word), run).is_some()
    };
    let before_end = arguments.iter().take_while(|word| *word != "--");
    let option = before_end.clone().find(is_option)?;
    Some(option.split_once('=').map_or(option.as_str(), |(name, _)| name).to_owned())
}

/// Returns `true` if the options of `isolet run` ask for JSON, on a command line that `clap` cannot
/// parse. The words after an unknown option are treated as options up to the first one that is not.
pub(super) fn ask_for_json(words: &[OsString]) -> bool {
    let mut command = Cli::command();
    command.build();
    let subcommand = end(words, 1, &command).map(|end| end.at);
    let Some(run) = subcommand.filter(|at| words[*at] == "run") else { return false };
    let Some(command) = command.find_subcommand("run") else { return false };
    let mut at = run + 1;
    while let Some(word) = words.get(at) {
        if word == "--json" {
            return true;
        }
        let bytes = word.as_encoded_bytes();
        if bytes == b"--" || bytes == b"-" || !bytes.starts_with(b"-") {
            return false;
        }
        let option = last_option(word, command);
        if option.as_ref().is_some_and(|option| option.ends_options) {
            return false;
        }
        at += 1 + usize::from(option.is_some_and(|option| option.has_value_apart));
    }
    false
}

fn end_of_run_options(words: &[OsString], command: &Command) -> Option<End> {
    let subcommand = end(words, 1, command)?.at;
    if words.get(subcommand)? != "run" {
        return None;
    }
    end(words, subcommand + 1, command.find_subcommand("run")?)
}

/// Where options end.
struct End {
    /// The index of the word there.
    at: usize,
    /// Set if that word is a file to run: no option before it said what to run.
    is_file: bool,
}

/// Finds the first word from `at` on that is neither an option nor an option's value. Returns
/// `None` if there is none, after a `--`, or if an option is unknown, which `clap` reports.
fn end(words: &[OsString], mut at: usize, command: &Command) -> Option<End> {
    loop {
        let word = words.get(at)?;
        let bytes = word.as_encoded_bytes();
        if bytes == b"--" {
            return None;
        }
        if bytes == b"-" || !bytes.starts_with(b"-") {
            return Some(End { at, is_file: true });
        }
        let option = last_option(word, command)?;
        at += 1 + usize::from(option.has_value_apart);
        if option.ends_options {
            return (at <= words.len()).then_some(End { at, is_file: false });
        }
    }
}

/// How the last option of a word affects the words after it.
struct LastOption {
    /// The next word is its value.
    has_value_apart: bool,
    /// No option follows.
    ends_options: bool,
}

impl LastOption {
    fn new(option: &Arg, has_value_here: bool) -> Self {
        Self {
            has_value_apart: takes_value(option) && !has_value_here,
            ends_options: option.get_short().is_some_and(|name| LAST_OPTIONS.contains(&name)),
        }
    }
}

/// Returns the last option of a word such as `--name`, `--name=value`, `-n`, `-nvalue` or `-xyn`.
fn last_option(word: &OsStr, command: &Command) -> Option<LastOption> {
    // Option names are ASCII, so a lossy conversion of the value does not matter.
    let word = word.to_string_lossy();
    if let Some(long) = word.strip_prefix("--") {
        let (name, value) = long.split_once('=').map_or((long, None), |(n, v)| (n, Some(v)));
        let is_named = |option: &&Arg| {
            option.get_long() == Some(name)
                || option.get_all_aliases().is_some_and(|aliases| aliases.contains(&name))
        };
        let option = command.get_arguments().find(is_named)?;
        return Some(LastOption::new(option, value.is_some()));
    }
    let mut names = word.chars().skip(1).peekable();
    let mut last = None;
    while let Some(name) = names.next() {
        let is_named = |option: &&Arg| {
            option.get_short() == Some(name)
                || option.get_all_short_aliases().is_some_and(|aliases| aliases.contains(&name))
        };
        let option = command.get_arguments().find(is_named)?;
        last = Some(LastOption::new(option, names.peek().is_some()));
        if takes_value(option) {
            break;
        }
    }
    last
}

fn takes_value(option: &Arg) -> bool {
    option.get_action().takes_values()
}

#[cfg(test)]
mod tests {
    use clap::ArgMatches;
    use clap::parser::ValueSource;

    use super::*;

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
            option_among(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(among(&["x", "--with", "pandas"]).as_deref(), Some("--with"));
        assert_eq!(among(&["--mount=a:/b"]).as_deref(), Some("--mount"));
        assert_eq!(among(&["--nosuch", "-c", "x", "--", "--with"]), None);
    }

    #[test]
    fn json_is_asked_for_by_an_option_of_ours_and_by_no_word_of_the_script() {
        let asks =
            |words: &[&str]| ask_for_json(&words.iter().map(OsString::from).collect::<Vec<_>>());
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
            let expected = usize::from(takes_value(&option));
            assert_eq!((count.min_values(), count.max_values()), (expected, expected), "{option}");
        }
    }
}
