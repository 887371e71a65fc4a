//! Finds the subcommand of a command line that names none, and where the options of `isolet run`
//! end: at the script, as for python. All later words belong to the script, so that a wrapper's
//! `"$@"` cannot grant the guest anything. Only where a notebook's outputs go can be said directly
//! after the notebook: `nbconvert` puts it there, too.

use std::ffi::{OsStr, OsString};

use std::path::Path;

use clap::{Arg, Command};

/// Options that say what to run. Their value ends isolet's options.
const LAST_OPTIONS: [char; 3] = ['c', 'm', 's'];

/// The option that may come directly after a notebook.
const OUTPUT: &str = "--output";

/// Inserts `run` before a program that comes without a subcommand, as in `isolet x.py`, and `repl`
/// if there is none and `is_at_terminal` is set: who only names options of `isolet run`, or nothing
/// at all, wants a prompt. A subcommand comes before a file of the same name.
pub(crate) fn name_subcommand(
    mut words: Vec<OsString>,
    command: &mut Command,
    is_at_terminal: bool,
) -> Vec<OsString> {
    command.build();
    if let Some(name) = implied_subcommand(&words, command, is_at_terminal) {
        words.insert(1, name.into());
    }
    words
}

fn implied_subcommand(
    words: &[OsString],
    command: &Command,
    is_at_terminal: bool,
) -> Option<&'static str> {
    let run = command.find_subcommand("run")?;
    let mut has_run_options = false;
    let mut at = 1;
    while let Some(word) = words.get(at) {
        let bytes = word.as_encoded_bytes();
        if bytes == b"--" {
            return Some("run");
        }
        if bytes == b"-" || !bytes.starts_with(b"-") {
            return is_program(word, command).then_some("run");
        }
        let option = if let Some(option) = last_option(word, command) {
            if option.ends {
                return None;
            }
            option
        } else {
            has_run_options = true;
            last_option(word, run)?
        };
        if option.ends_options {
            return Some("run");
        }
        at += 1 + usize::from(option.has_value_apart);
    }
    match (is_at_terminal, has_run_options) {
        (true, _) => Some("repl"),
        (false, true) => Some("run"),
        (false, false) => None,
    }
}

/// Returns `true` if a word is no subcommand, and names a file or looks like the path of one.
fn is_program(word: &OsStr, command: &Command) -> bool {
    let is_path = word.as_encoded_bytes().iter().any(|byte| matches!(byte, b'/' | b'.'));
    command.find_subcommand(word).is_none()
        && (word == "-" || is_path || Path::new(word).try_exists().unwrap_or(true))
}

/// Returns the subcommand whose name is most like a word that is none, if one is.
pub(crate) fn similar_subcommand(word: &str, command: &Command) -> Option<String> {
    let names = command.get_subcommands().filter(|one| !one.is_hide_set()).map(Command::get_name);
    let distances = names.map(|name| (strsim::osa_distance(word, name), name));
    // A third of the letters may be wrong.
    let near = distances.filter(|(distance, name)| 3 * distance <= name.len().max(word.len()));
    near.min().map(|(_, name)| name.to_owned())
}

/// Inserts a `--` before the script's words, if the command line is one of `isolet run`.
pub(crate) fn end_options(mut words: Vec<OsString>, command: &mut Command) -> Vec<OsString> {
    command.build();
    if let Some(end) = end_of_run_options(&words, command) {
        let place = if end.is_file { after_output(&words, end.at) } else { end.at };
        words.insert(place, "--".into());
    }
    words
}

/// Returns `true` if a file is treated as a notebook.
pub(crate) fn is_notebook(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("ipynb"))
}

/// Returns `true` if a file is a script of the shell, by its name or by its first line.
pub(crate) fn is_shell_script(path: &str, text: &str) -> bool {
    let extension = Path::new(path).extension().and_then(|extension| extension.to_str());
    if extension.is_some_and(|extension| matches!(extension, "sh" | "bash")) {
        return true;
    }
    let Some(line) = text.lines().next().and_then(|line| line.strip_prefix("#!")) else {
        return false;
    };
    let mut words = line.split_whitespace().map(|word| word.rsplit('/').next().unwrap_or(word));
    let program = words.find(|word| *word != "env" && !word.starts_with('-'));
    matches!(program, Some("sh" | "bash" | "dash"))
}

/// Returns the index of the first word after a notebook at `at` and its `--output`, or `at` if that
/// is not there.
fn after_output(words: &[OsString], at: usize) -> usize {
    let is_notebook = words.get(at).and_then(|word| word.to_str()).is_some_and(is_notebook);
    let length = match words.get(at + 1).and_then(|word| word.to_str()) {
        Some(OUTPUT) if words.len() > at + 2 => 3,
        Some(word) if word.strip_prefix(OUTPUT).is_some_and(|rest| rest.starts_with('=')) => 2,
        _ => 0,
    };
    if is_notebook { at + length } else { at }
}

/// Returns the first word that is an option of `isolet run`, among the arguments of a program.
/// `definition` makes the definition of the command line.
pub(crate) fn option_among(arguments: &[String], definition: fn() -> Command) -> Option<String> {
    if !arguments.iter().any(|word| word.starts_with("--")) {
        return None;
    }
    let mut command = definition();
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
/// `command` is the definition of the command line.
pub(crate) fn ask_for_json(words: &[OsString], mut command: Command) -> bool {
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

/// The end of the options.
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

/// The effect of a word's last option on the words after it.
struct LastOption {
    /// The next word is its value.
    has_value_apart: bool,
    /// No option follows.
    ends_options: bool,
    /// Only a text is printed: the help, or the version.
    ends: bool,
}

impl LastOption {
    fn new(option: &Arg, has_value_here: bool) -> Self {
        Self {
            has_value_apart: takes_value(option) && !has_value_here,
            ends_options: option.get_short().is_some_and(|name| LAST_OPTIONS.contains(&name)),
            ends: matches!(option.get_id().as_str(), "help" | "version"),
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
