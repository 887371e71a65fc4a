//! The picture of a terminal: commands, and what they print.

use std::env;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::escaped;
use crate::process;

/// The commands, for `sh`. Each starts with what it shows.
const SCENES: [(&str, &str); 6] = [
    (
        "Python, all of it",
        "isolet -c 'import sys, sqlite3; print(sys.version[:6], sqlite3.sqlite_version)'",
    ),
    ("no files of yours", "isolet -c 'open(\"/etc/passwd\")' 2>&1 | tail -1"),
    (
        "unless you allow it",
        "isolet --mount data:/data -c 'print(open(\"/data/sales.csv\").read())'",
    ),
    (
        "no network",
        "isolet -c 'import urllib.request as u; u.urlopen(\"http://example.com\")' 2>&1 | tail -2",
    ),
    ("no end without a limit", "isolet --timeout 1s -c 'while True: pass'"),
    (
        "a shell without a process",
        "isolet -s 'seq 5 | paste -sd+ | tee sum; python3 -c \"print($(cat sum))\"'",
    ),
];

/// Sizes in pixels: a character, a line, and the space around the text.
const CHARACTER: usize = 8;
const LINE: usize = 19;
const MARGIN: usize = 18;
/// The height of the bar with the window's buttons.
const BAR: usize = 30;
/// The width of the terminal in characters.
const COLUMNS: usize = 100;

/// What a line is, which says its colour.
#[derive(Clone, Copy)]
enum Kind {
    Comment,
    Prompt,
    Output,
    Error,
}

impl Kind {
    const fn colour(self) -> &'static str {
        match self {
            Self::Comment => "#8b949e",
            Self::Prompt => "#79c0ff",
            Self::Output => "#e6edf3",
            Self::Error => "#ffa198",
        }
    }
}

/// Runs the commands and draws them.
pub(super) fn picture(isolet: &Path) -> Result<String> {
    let place = Place::new()?;
    let mut lines = Vec::new();
    for (title, script) in SCENES {
        lines.push((Kind::Comment, format!("# {title}")));
        lines.push((Kind::Prompt, format!("$ {script}")));
        for line in place.printed(isolet, script)?.lines() {
            let is_error = line.starts_with("error:") || line.contains("Error: ");
            let kind = if is_error { Kind::Error } else { Kind::Output };
            lines.extend(wrapped(line).into_iter().map(|part| (kind, part)));
        }
        lines.push((Kind::Output, String::new()));
    }
    lines.pop();
    Ok(draw(&lines))
}

/// A directory for the commands, with a file to mount. It is removed at the end.
struct Place(PathBuf);

impl Place {
    fn new() -> Result<Self> {
        let place = Self(env::temp_dir().join(format!("isolet-picture-{}", std::process::id())));
        fs::create_dir_all(place.0.join("data"))
            .and_then(|()| fs::write(place.0.join("data/sales.csv"), "month,sold\n1,42\n"))
            .with_context(|| format!("cannot make `{}`", place.0.display()))?;
        Ok(place)
    }

    /// What a script prints with `isolet` first on the search path, without measured times.
    fn printed(&self, isolet: &Path, script: &str) -> Result<String> {
        let directory = isolet.parent().context("the command is in a directory")?;
        let mut path = OsString::from(directory);
        path.push(":");
        path.push(env::var_os("PATH").unwrap_or_default());
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("exec 2>&1; {script}")]).current_dir(&self.0).env("PATH", path);
        let ran = process::with_assets(&mut shell).output().context("cannot start `sh`")?;
        Ok(with_whole_seconds(&String::from_utf8_lossy(&ran.stdout)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // It is a temporary directory.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The text with `1.000 s` for each `1.012 s`, since no two runs take as long.
fn with_whole_seconds(text: &str) -> String {
    let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
    for at in 1..words.len() {
        let is_unit = words[at].trim_end_matches(|c: char| c.is_ascii_punctuation()) == "s";
        if is_unit
            && let Some((whole, rest)) = words[at - 1].split_once('.')
            && rest.bytes().all(|byte| byte.is_ascii_digit())
        {
            words[at - 1] = format!("{whole}.000");
        }
    }
    words.join(" ")
}

/// The line in parts of at most `COLUMNS` characters.
fn wrapped(line: &str) -> Vec<String> {
    let characters: Vec<char> = line.chars().collect();
    characters.chunks(COLUMNS).map(|part| part.iter().collect()).collect()
}

fn draw(lines: &[(Kind, String)]) -> String {
    let width = 2 * MARGIN + COLUMNS * CHARACTER;
    let height = BAR + 2 * MARGIN + lines.len() * LINE - 8;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" \
         font-size=\"13.3\">\n\
         <title>Commands of isolet in a terminal, and what they print</title>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"9\" fill=\"#0d1117\"/>\n"
    );
    for (nth, colour) in ["#ff5f57", "#febc2e", "#28c840"].into_iter().enumerate() {
        let x = MARGIN + 6 + nth * 20;
        // Writing to a text cannot fail.
        let _ = writeln!(svg, "<circle cx=\"{x}\" cy=\"18\" r=\"6\" fill=\"{colour}\"/>");
    }
    for (nth, (kind, text)) in lines.iter().enumerate().filter(|(_, (_, text))| !text.is_empty()) {
        let y = BAR + MARGIN + nth * LINE + 8;
        let length = text.chars().count() * CHARACTER;
        let _ = writeln!(
            svg,
            "<text x=\"{MARGIN}\" y=\"{y}\" fill=\"{}\" textLength=\"{length}\" \
             lengthAdjust=\"spacingAndGlyphs\" xml:space=\"preserve\">{}</text>",
            kind.colour(),
            escaped(text)
        );
    }
    svg.push_str("</svg>\n");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_whole_seconds_and_nothing_else_changes() {
        let printed = "ended after 1.012 s, the limit is 1 s (`--timeout`)\n3.14.2 sold";
        let expected = "ended after 1.000 s, the limit is 1 s (`--timeout`)\n3.14.2 sold";
        assert_eq!(with_whole_seconds(printed), expected);
    }

    #[test]
    fn a_line_is_one_text_that_cannot_be_markup() {
        let svg = draw(&[(Kind::Output, "<b>&".to_owned())]);
        assert!(svg.contains(">&lt;b&gt;&amp;</text>"), "{svg}");
        assert!(svg.contains("textLength=\"32\""), "{svg}");
    }
}
