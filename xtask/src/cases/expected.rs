//! What a case of Python says that is expected, in its first line.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::bounded::Ran;

/// One thing that has to be so after a run.
#[derive(Debug, PartialEq, Eq)]
enum Check {
    /// What is printed, without space at its end.
    Stdout(String),
    LastLine(String),
    /// Somewhere in what is printed.
    Printed(String),
    /// A list of so many exceptions of this class.
    Exceptions(usize, String),
    StderrIsEmpty,
    /// Somewhere in the standard error.
    Stderr(String),
    Status(i32),
    /// A file that the guest sees by this path, and its length.
    Length(String, u64),
    Contents(String, String),
    /// A zip file.
    Archive(String, u64),
}

/// All that has to be so.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Expectation(Vec<Check>);

impl Expectation {
    /// Reads the text after `# expected: `. What is no known phrase is what the program prints.
    pub(super) fn parse(text: &str) -> Self {
        let checks = phrase(text).or_else(|| clauses(text));
        Self(checks.unwrap_or_else(|| vec![Check::Stdout(text.to_owned()), Check::Status(0)]))
    }

    /// Returns what is not so. `file` returns where on the host a file of the guest is.
    pub(super) fn miss(
        &self,
        ran: &Ran,
        file: impl Fn(&str) -> Option<std::path::PathBuf>,
    ) -> Option<String> {
        let status = ran.status.and_then(|status| status.code());
        let stdout = ran.stdout.trim_end();
        let path = |guest: &String| file(guest).unwrap_or_default();
        let holds = |check: &Check| match check {
            Check::Stdout(text) => stdout == text.trim_end(),
            Check::LastLine(line) => stdout.lines().last() == Some(line),
            Check::Printed(text) => stdout.contains(text.as_str()),
            Check::Exceptions(count, class) => {
                stdout.starts_with('[') && stdout.matches(&format!("{class}(")).count() == *count
            }
            Check::StderrIsEmpty => ran.stderr.is_empty(),
            Check::Stderr(text) => ran.stderr.contains(text.as_str()),
            Check::Status(code) => status == Some(*code),
            Check::Length(guest, bytes) => has_length(&path(guest), *bytes),
            Check::Contents(guest, text) => {
                fs::read(path(guest)).is_ok_and(|found| found == text.as_bytes())
            }
            Check::Archive(guest, bytes) => {
                has_length(&path(guest), *bytes) && is_archive(&path(guest))
            }
        };
        let missed = self.0.iter().find(|check| !holds(check))?;
        Some(format!("{missed:?}"))
    }
}

/// Reads phrases about the whole of a run.
fn phrase(text: &str) -> Option<Vec<Check>> {
    if let Some((_, line)) = text.split_once(" or an exception, and then ") {
        return Some(vec![Check::LastLine(quoted(line)?.0), Check::Status(0)]);
    }
    if let Some(rest) = text.strip_prefix("no newline at the end of ") {
        let (first, rest) = quoted(rest)?;
        let (second, _) = quoted(rest.strip_prefix(", then the line ")?)?;
        return Some(vec![Check::Stdout(format!("{first}\n{second}")), Check::Status(0)]);
    }
    if let Some(rest) = text.strip_prefix("the report says ") {
        return Some(vec![Check::Printed(quoted(rest)?.0)]);
    }
    if let Some(rest) = text.strip_prefix("part ") {
        let (_, printed) = rest.split_once(" prints ")?;
        return Some(vec![Check::Stdout(printed.to_owned()), Check::Status(0)]);
    }
    let rest = text.strip_prefix("stdout ")?;
    let (rest, mut checks) = match rest.strip_suffix(", stderr empty") {
        Some(rest) => (rest, vec![Check::Status(0), Check::StderrIsEmpty]),
        None => (rest, vec![Check::Status(0)]),
    };
    checks.push(if let Some((text, _)) = quoted(rest) {
        Check::Stdout(text)
    } else {
        let (count, class) = rest.strip_suffix("s in a list")?.split_once(' ')?;
        let count = ["no", "one", "two", "three"].iter().position(|word| *word == count)?;
        Check::Exceptions(count, class.to_owned())
    });
    Some(checks)
}

/// Reads clauses about files, the exit status and an exception, which all have to be known.
fn clauses(text: &str) -> Option<Vec<Check>> {
    let clauses: Vec<&str> = text.split("; ").flat_map(|part| part.split(", and ")).collect();
    let mut checks = Vec::new();
    for clause in &clauses {
        let clause = clause.strip_prefix("after the run ").unwrap_or(clause);
        if let Some(code) = clause.strip_prefix("exit status ") {
            checks.push(Check::Status(code.parse().ok()?));
        } else if clause.starts_with('/') {
            checks.push(of_file(clause)?);
        } else if clauses.len() > 1 && is_exception(clause) {
            checks.extend([Check::Stderr(clause.to_owned()), Check::Status(1)]);
        } else {
            return None;
        }
    }
    if !checks.iter().any(|check| matches!(check, Check::Status(_))) {
        checks.push(Check::Status(0));
    }
    Some(checks)
}

fn is_exception(word: &str) -> bool {
    word.ends_with("Error") && word.chars().all(char::is_alphanumeric)
}

/// Reads what is said about a file.
fn of_file(clause: &str) -> Option<Check> {
    let (path, said) = clause.split_once(' ')?;
    let bytes = |text: &str| text.split_once(" byte")?.0.parse().ok();
    if let Some(rest) = said.strip_prefix("has ") {
        Some(Check::Length(path.to_owned(), bytes(rest)?))
    } else if let Some(rest) = said.strip_prefix("is a valid archive of ") {
        Some(Check::Archive(path.to_owned(), bytes(rest)?))
    } else {
        let (text, _) = quoted(said.strip_prefix("is ")?)?;
        let text = text.replace("\\r", "\r").replace("\\n", "\n");
        Some(Check::Contents(path.to_owned(), text))
    }
}

/// Returns a text in single quotes, and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let (text, rest) = text.strip_prefix('\'')?.split_once('\'')?;
    Some((text.to_owned(), rest))
}

fn has_length(path: &Path, bytes: u64) -> bool {
    fs::metadata(path).is_ok_and(|found| found.len() == bytes)
}

fn is_archive(path: &Path) -> bool {
    let mut check = Command::new("python3");
    check.args(["-m", "zipfile", "-t"]).arg(path);
    check.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    check.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_phrase_is_read_as_it_is_meant() {
        use Check::{
            Archive, Contents, Exceptions, LastLine, Length, Printed, Status, Stderr, Stdout,
        };

        let text = str::to_owned;
        let printed = |line: &str| vec![Stdout(text(line)), Status(0)];
        let cases = [
            ("1 36", printed("1 36")),
            ("' 5:08 PM' '17:08'", printed("' 5:08 PM' '17:08'")),
            ("ConnectError", printed("ConnectError")),
            ("part 2 prints [1.23]", printed("[1.23]")),
            ("no newline at the end of 'a', then the line 'b'", printed("a\nb")),
            (
                "[1, 2] or an exception, and then 'alive'; the session must not die",
                vec![LastLine(text("alive")), Status(0)],
            ),
            (
                "stdout two ValueErrors in a list, stderr empty",
                vec![Status(0), Check::StderrIsEmpty, Exceptions(2, text("ValueError"))],
            ),
            (
                "stdout 'late', stderr empty",
                vec![Status(0), Check::StderrIsEmpty, Stdout(text("late"))],
            ),
            ("the report says 'too (4 digits)'", vec![Printed(text("too (4 digits)"))]),
            (
                "KeyError, and /data/a.txt has 1 byte",
                vec![Stderr(text("KeyError")), Status(1), Length(text("/data/a.txt"), 1)],
            ),
            (
                "/data/a is 'b and c'; exit status 3",
                vec![Contents(text("/data/a"), text("b and c")), Status(3)],
            ),
            (
                "after the run /data/a is '1,2\\r\\n'",
                vec![Contents(text("/data/a"), text("1,2\r\n")), Status(0)],
            ),
            (
                "after the run /data/a.zip is a valid archive of 101 bytes",
                vec![Archive(text("/data/a.zip"), 101), Status(0)],
            ),
        ];
        for (line, checks) in cases {
            assert_eq!(Expectation::parse(line), Expectation(checks), "{line}");
        }
    }
}
