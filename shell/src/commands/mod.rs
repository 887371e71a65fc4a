//! Commands that differ from bashkit's.

mod diff;
mod ln;
mod ls;

use std::path::{Path, PathBuf};

use bashkit::{BashBuilder, Error, ExecResult};

/// Adds the commands.
pub(crate) fn add(builder: BashBuilder) -> BashBuilder {
    builder
        .builtin("diff", Box::new(diff::Diff))
        .builtin("ln", Box::new(ln::Ln))
        .builtin("ls", Box::new(ls::Ls))
}

/// The path that an operand names.
fn absolute(cwd: &Path, operand: &str) -> PathBuf {
    bashkit::normalize_path(&bashkit::vfs_join(cwd, operand))
}

/// What a tool prints for an error of a file.
fn reason(error: &Error) -> String {
    let Error::Io(error) = error else { return error.to_string() };
    match error.kind() {
        std::io::ErrorKind::NotFound => "No such file or directory".into(),
        std::io::ErrorKind::IsADirectory => "Is a directory".into(),
        _ => error.to_string(),
    }
}

/// The options and operands of a command line, as GNU's getopt has them.
#[derive(Default)]
struct Arguments {
    options: Vec<(String, Option<String>)>,
    operands: Vec<String>,
}

impl Arguments {
    /// `short` has a letter for each option, with `:` if it takes a value; `long` has names, each
    /// with its letter, or with the name itself if it has none.
    fn parse(
        command: &str,
        args: &[String],
        short: &str,
        long: &[(&str, &str)],
    ) -> Result<Self, ExecResult> {
        let usage = |text: String| ExecResult::err(format!("{command}: {text}\n"), 2);
        let mut parsed = Self::default();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            if arg == "--" {
                parsed.operands.extend(args.by_ref().cloned());
            } else if let Some(word) = arg.strip_prefix("--") {
                let (name, value) = match word.split_once('=') {
                    Some((name, value)) => (name, Some(value.to_owned())),
                    None => (word, None),
                };
                let mut known = long.iter().filter(|(full, _)| full.starts_with(name));
                let exact = long.iter().find(|(full, _)| *full == name);
                let Some((_, option)) = exact.or_else(|| known.next()) else {
                    return Err(usage(format!("unrecognized option '{arg}'")));
                };
                parsed.options.push(((*option).to_owned(), value));
            } else if arg.len() > 1 && arg.starts_with('-') {
                let mut letters = arg[1..].char_indices();
                while let Some((at, letter)) = letters.next() {
                    let Some(place) = short.find(letter).filter(|_| letter != ':') else {
                        return Err(usage(format!("invalid option -- '{letter}'")));
                    };
                    let mut value = None;
                    if short[place + 1..].starts_with(':') {
                        let rest = &arg[1 + at + letter.len_utf8()..];
                        value = match rest {
                            "" => args.next().cloned(),
                            rest => Some(rest.to_owned()),
                        };
                        if value.is_none() {
                            let text = format!("option requires an argument -- '{letter}'");
                            return Err(usage(text));
                        }
                        letters = "".char_indices();
                    }
                    parsed.options.push((letter.to_string(), value));
                }
            } else {
                parsed.operands.push(arg.clone());
            }
        }
        Ok(parsed)
    }
}
