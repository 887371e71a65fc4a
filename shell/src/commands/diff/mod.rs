//! `diff`: bashkit's knows `-u` and `-q` only, and compares long files without an algorithm.

mod lines;

use std::collections::BTreeMap;
use std::path::Path;

use bashkit::time::UNIX_EPOCH;
use bashkit::{Builtin, BuiltinContext, ExecResult, Result, async_trait};

use self::lines::{Change, changes};
use super::ls::full_time;
use super::{Arguments, absolute, reason};

pub(super) struct Diff;

#[derive(Default)]
struct Options {
    /// Lines around a change; `None` is the normal format.
    unified: Option<usize>,
    brief: bool,
    report_same: bool,
    recursive: bool,
    new_file: bool,
    ignore_case: bool,
    ignore_all_space: bool,
    ignore_space_change: bool,
    ignore_blank_lines: bool,
    labels: Vec<String>,
    /// The options as they were given, for the line above the files of a directory.
    shown: String,
}

const LONG: &[(&str, &str)] = &[
    ("brief", "q"),
    ("color", "color"),
    ("ignore-all-space", "w"),
    ("ignore-blank-lines", "B"),
    ("ignore-case", "i"),
    ("ignore-space-change", "b"),
    ("label", "label"),
    ("new-file", "N"),
    ("normal", "normal"),
    ("recursive", "r"),
    ("report-identical-files", "s"),
    ("text", "a"),
    ("unified", "U"),
];

fn options(arguments: &[(String, Option<String>)]) -> std::result::Result<Options, ExecResult> {
    let mut options = Options::default();
    for (option, value) in arguments {
        match option.as_str() {
            "u" => options.unified = options.unified.or(Some(3)),
            "U" => {
                let value = value.as_deref().unwrap_or("3");
                let Ok(lines) = value.parse() else {
                    let text = format!("diff: invalid context length '{value}'\n");
                    return Err(ExecResult::err(text, 2));
                };
                options.unified = Some(lines);
            }
            "q" => options.brief = true,
            "s" => options.report_same = true,
            "r" => options.recursive = true,
            "N" => options.new_file = true,
            "i" => options.ignore_case = true,
            "w" => options.ignore_all_space = true,
            "b" => options.ignore_space_change = true,
            "B" => options.ignore_blank_lines = true,
            "L" | "label" => options.labels.extend(value.clone()),
            _ => {}
        }
    }
    Ok(options)
}

/// What is compared of a line.
fn key(line: &[u8], options: &Options) -> Vec<u8> {
    let mut key = Vec::with_capacity(line.len());
    for &byte in line {
        if byte.is_ascii_whitespace() && options.ignore_all_space {
            continue;
        }
        if byte.is_ascii_whitespace() && options.ignore_space_change {
            if key.last() != Some(&b' ') {
                key.push(b' ');
            }
            continue;
        }
        key.push(if options.ignore_case { byte.to_ascii_lowercase() } else { byte });
    }
    if options.ignore_space_change && key.last() == Some(&b' ') {
        key.pop();
    }
    key
}

fn split(content: &[u8]) -> Vec<&[u8]> {
    content.split_inclusive(|&byte| byte == b'\n').collect()
}

fn line(out: &mut Vec<u8>, mark: &str, line: &[u8]) {
    out.extend_from_slice(mark.as_bytes());
    out.extend_from_slice(line);
    if !line.ends_with(b"\n") {
        out.extend_from_slice(b"\n\\ No newline at end of file\n");
    }
}

/// Lines of the normal format, such as `3,4c3`.
fn normal(out: &mut Vec<u8>, old: &[&[u8]], new: &[&[u8]], changes: &[Change]) {
    let range = |start: usize, length: usize| match length {
        0 => start.to_string(),
        1 => (start + 1).to_string(),
        _ => format!("{},{}", start + 1, start + length),
    };
    for change in changes {
        let letter = match (change.removed, change.added) {
            (0, _) => 'a',
            (_, 0) => 'd',
            _ => 'c',
        };
        let (from, to) = (range(change.old, change.removed), range(change.new, change.added));
        out.extend_from_slice(format!("{from}{letter}{to}\n").as_bytes());
        for text in &old[change.old..change.old + change.removed] {
            line(out, "< ", text);
        }
        if letter == 'c' {
            out.extend_from_slice(b"---\n");
        }
        for text in &new[change.new..change.new + change.added] {
            line(out, "> ", text);
        }
    }
}

/// Hunks of the unified format.
fn unified(out: &mut Vec<u8>, old: &[&[u8]], new: &[&[u8]], changes: &[Change], around: usize) {
    let range = |start: usize, length: usize| match length {
        0 => format!("{start},0"),
        1 => (start + 1).to_string(),
        _ => format!("{},{length}", start + 1),
    };
    let near = |a: &Change, b: &Change| b.old - (a.old + a.removed) <= 2 * around;
    for hunk in changes.chunk_by(near) {
        let (first, last) = (&hunk[0], &hunk[hunk.len() - 1]);
        let before = around.min(first.old);
        let after = around.min(old.len() - (last.old + last.removed));
        let (start, new_start) = (first.old - before, first.new - before);
        let (end, new_end) = (last.old + last.removed + after, last.new + last.added + after);
        let (from, to) = (range(start, end - start), range(new_start, new_end - new_start));
        out.extend_from_slice(format!("@@ -{from} +{to} @@\n").as_bytes());
        let mut at = start;
        for change in hunk {
            old[at..change.old].iter().for_each(|text| line(out, " ", text));
            at = change.old + change.removed;
            old[change.old..at].iter().for_each(|text| line(out, "-", text));
            let added = &new[change.new..change.new + change.added];
            added.iter().for_each(|text| line(out, "+", text));
        }
        old[at..end].iter().for_each(|text| line(out, " ", text));
    }
}

/// What comparing gave.
#[derive(Default)]
struct Report {
    out: Vec<u8>,
    errors: String,
    status: i32,
}

impl Report {
    fn say(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    fn fail(&mut self, name: &str, error: &bashkit::Error) {
        self.errors.push_str(&format!("diff: {name}: {}\n", reason(error)));
        self.status = 2;
    }
}

/// The heading of a file in the unified format.
async fn heading(ctx: &BuiltinContext<'_>, name: &str, path: Option<&Path>) -> String {
    let time = match path {
        Some(path) => ctx.fs.stat(path).await.map_or(UNIX_EPOCH, |data| data.modified),
        None => bashkit::time::SystemTime::now(),
    };
    format!("{name}\t{}", full_time(time))
}

/// Compares two files; a name of `None` stands for an empty one.
async fn files(
    ctx: &BuiltinContext<'_>,
    options: &Options,
    names: [&str; 2],
    absent: [bool; 2],
    header: bool,
    report: &mut Report,
) {
    let mut contents = Vec::new();
    for (name, absent) in names.iter().zip(absent) {
        if absent {
            contents.push(Vec::new());
        } else if *name == "-" {
            contents.push(ctx.stdin.map(|data| data.as_bytes().to_vec()).unwrap_or_default());
        } else {
            match ctx.fs.read_file(&absolute(ctx.cwd, name)).await {
                Ok(content) => contents.push(content),
                Err(error) => return report.fail(name, &error),
            }
        }
    }
    let (old, new) = (split(&contents[0]), split(&contents[1]));
    let keys =
        |lines: &[&[u8]]| -> Vec<_> { lines.iter().map(|line| key(line, options)).collect() };
    let mut found = changes(&keys(&old), &keys(&new));
    if options.ignore_blank_lines {
        let blank = |lines: &[&[u8]]| lines.iter().all(|line| line.trim_ascii().is_empty());
        found.retain(|change| {
            !blank(&old[change.old..change.old + change.removed])
                || !blank(&new[change.new..change.new + change.added])
        });
    }
    let [from, to] = names;
    if found.is_empty() {
        if options.report_same {
            report.say(&format!("Files {from} and {to} are identical\n"));
        }
        return;
    }
    report.status = report.status.max(1);
    if options.brief {
        return report.say(&format!("Files {from} and {to} differ\n"));
    }
    if contents.iter().any(|content| content.contains(&0)) {
        return report.say(&format!("Binary files {from} and {to} differ\n"));
    }
    if header {
        report.say(&format!("diff{} {from} {to}\n", options.shown));
    }
    let Some(around) = options.unified else {
        return normal(&mut report.out, &old, &new, &found);
    };
    for (at, mark) in ["---", "+++"].into_iter().enumerate() {
        let path = (names[at] != "-").then(|| absolute(ctx.cwd, names[at]));
        let heading = match options.labels.get(at) {
            Some(label) => label.clone(),
            None => heading(ctx, names[at], path.as_deref()).await,
        };
        report.say(&format!("{mark} {heading}\n"));
    }
    unified(&mut report.out, &old, &new, &found, around);
}

/// Compares the entries of two directories, and those of the directories in them.
async fn directories(
    ctx: &BuiltinContext<'_>,
    options: &Options,
    names: [&str; 2],
    report: &mut Report,
) {
    let mut left = vec![names.map(|name| name.trim_end_matches('/').to_owned())];
    while let Some(pair) = left.pop() {
        let mut entries: BTreeMap<String, [Option<bool>; 2]> = BTreeMap::new();
        for (side, name) in pair.iter().enumerate() {
            let path = absolute(ctx.cwd, name);
            match ctx.fs.read_dir(&path).await {
                Ok(list) => {
                    for entry in list {
                        let is_dir = match ctx.fs.stat(&path.join(&entry.name)).await {
                            Ok(data) => data.file_type.is_dir(),
                            Err(_) => entry.metadata.file_type.is_dir(),
                        };
                        entries.entry(entry.name).or_default()[side] = Some(is_dir);
                    }
                }
                // One side of a directory that only the other has.
                Err(_) if options.new_file => {}
                Err(error) => report.fail(name, &error),
            }
        }
        let mut inner = Vec::new();
        for (name, sides) in entries {
            let [a, b] = pair.each_ref().map(|directory| format!("{directory}/{name}"));
            match sides {
                [Some(true), Some(true)] if options.recursive => inner.push([a, b]),
                [Some(true), Some(true)] => {
                    report.say(&format!("Common subdirectories: {a} and {b}\n"));
                }
                [Some(true), None] | [None, Some(true)]
                    if options.new_file && options.recursive =>
                {
                    inner.push([a, b]);
                }
                [Some(from), Some(to)] if from != to => {
                    let kind = |is_dir| if is_dir { "directory" } else { "regular file" };
                    let (from, to) = (kind(from), kind(to));
                    report.say(&format!("File {a} is a {from} while file {b} is a {to}\n"));
                    report.status = report.status.max(1);
                }
                [Some(_), None] | [None, Some(_)] if !options.new_file => {
                    let side = usize::from(sides[0].is_none());
                    report.say(&format!("Only in {}: {name}\n", pair[side]));
                    report.status = report.status.max(1);
                }
                _ => {
                    let absent = sides.map(|side| side.is_none());
                    files(ctx, options, [&a, &b], absent, true, report).await;
                }
            }
        }
        left.extend(inner.into_iter().rev());
    }
}

#[async_trait]
impl Builtin for Diff {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> Result<ExecResult> {
        let parsed = Arguments::parse("diff", ctx.args, "abBdiL:NqrsuU:w", LONG);
        let (arguments, mut options) = match parsed
            .and_then(|arguments| options(&arguments.options).map(|options| (arguments, options)))
        {
            Ok(both) => both,
            Err(error) => return Ok(error),
        };
        for word in ctx.args.iter().filter(|word| word.len() > 1 && word.starts_with('-')) {
            options.shown.push_str(&format!(" {word}"));
        }
        let [from, to] = arguments.operands.as_slice() else {
            let text = match arguments.operands.last() {
                None => "diff: missing operand after 'diff'\n".to_owned(),
                Some(last) if arguments.operands.len() < 2 => {
                    format!("diff: missing operand after '{last}'\n")
                }
                Some(_) => format!("diff: extra operand '{}'\n", arguments.operands[2]),
            };
            return Ok(ExecResult::err(text, 2));
        };
        let mut is_dir = Vec::new();
        for name in [from, to] {
            let data = ctx.fs.stat(&absolute(ctx.cwd, name)).await;
            is_dir.push(name != "-" && data.is_ok_and(|data| data.file_type.is_dir()));
        }
        let mut report = Report::default();
        let inside = |directory: &str, file: &str| {
            let name = file.rsplit('/').next().unwrap_or_default();
            format!("{}/{name}", directory.trim_end_matches('/'))
        };
        match is_dir.as_slice() {
            [true, true] => directories(&ctx, &options, [from, to], &mut report).await,
            [true, false] => {
                let from = inside(from, to);
                files(&ctx, &options, [&from, to], [false; 2], false, &mut report).await;
            }
            [false, true] => {
                let to = inside(to, from);
                files(&ctx, &options, [from, &to], [false; 2], false, &mut report).await;
            }
            _ => {
                let mut absent = [false; 2];
                for (side, name) in [from, to].into_iter().enumerate() {
                    if options.new_file && name != "-" {
                        absent[side] = ctx.fs.stat(&absolute(ctx.cwd, name)).await.is_err();
                    }
                }
                files(&ctx, &options, [from, to], absent, false, &mut report).await;
            }
        }
        let mut result = ExecResult::ok_bytes(report.out);
        result.stderr = report.errors.into();
        result.exit_code = report.status;
        Ok(result)
    }
}
