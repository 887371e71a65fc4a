//! `ls`: bashkit's has another long format, and neither `.` nor the orders of sorting.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

use bashkit::time::{SystemTime, UNIX_EPOCH};
use bashkit::{Builtin, BuiltinContext, ExecResult, FileType, Metadata, Result, async_trait};

use super::{Arguments, absolute, reason};
use crate::files;

pub(super) struct Ls;

#[derive(Clone, Copy, Default, PartialEq)]
enum Sort {
    #[default]
    Name,
    Time,
    Size,
    Extension,
    No,
}

#[derive(Default)]
struct Options {
    all: bool,
    almost_all: bool,
    columns: bool,
    commas: bool,
    directory: bool,
    directories_first: bool,
    full_time: bool,
    human: bool,
    inode: bool,
    iso: bool,
    /// `-p` marks directories, `-F` everything.
    mark_directories: bool,
    classify: bool,
    long: bool,
    no_group: bool,
    no_owner: bool,
    numeric: bool,
    recursive: bool,
    reverse: bool,
    sort: Sort,
}

struct Entry {
    name: String,
    path: PathBuf,
    data: Metadata,
}

const LONG: &[(&str, &str)] = &[
    ("all", "a"),
    ("almost-all", "A"),
    ("classify", "F"),
    ("color", "color"),
    ("directory", "d"),
    ("format", "format"),
    ("full-time", "full-time"),
    ("group-directories-first", "group-directories-first"),
    ("human-readable", "h"),
    ("no-group", "G"),
    ("numeric-uid-gid", "n"),
    ("recursive", "R"),
    ("reverse", "r"),
    ("sort", "sort"),
    ("time-style", "time-style"),
];

fn options(arguments: &[(String, Option<String>)]) -> Options {
    let mut options = Options::default();
    for (option, value) in arguments {
        match (option.as_str(), value.as_deref().unwrap_or_default()) {
            ("a", _) => options.all = true,
            ("A", _) => options.almost_all = true,
            ("C", _) | ("format", "across" | "vertical" | "horizontal") => options.columns = true,
            ("1", _) | ("format", "single-column") => options.columns = false,
            ("m", _) | ("format", "commas") => options.commas = true,
            ("d", _) => options.directory = true,
            ("F", _) => options.classify = true,
            ("p", _) => options.mark_directories = true,
            ("h", _) => options.human = true,
            ("i", _) => options.inode = true,
            ("l", _) | ("format", "long" | "verbose") => options.long = true,
            ("g", _) => (options.long, options.no_owner) = (true, true),
            ("o", _) => (options.long, options.no_group) = (true, true),
            ("G", _) => options.no_group = true,
            ("n", _) => (options.long, options.numeric) = (true, true),
            ("R", _) => options.recursive = true,
            ("r", _) => options.reverse = true,
            ("t", _) | ("sort", "time") => options.sort = Sort::Time,
            ("S", _) | ("sort", "size") => options.sort = Sort::Size,
            ("X", _) | ("sort", "extension") => options.sort = Sort::Extension,
            ("U", _) | ("sort", "none") => options.sort = Sort::No,
            ("group-directories-first", _) => options.directories_first = true,
            ("full-time", _) | ("time-style", "full-iso") => {
                options.full_time = true;
                options.long |= option == "full-time";
            }
            ("time-style", "long-iso" | "iso") => options.iso = true,
            _ => {}
        }
    }
    options
}

fn extension(name: &str) -> &str {
    name.rsplit_once('.').map_or("", |(_, extension)| extension)
}

fn sort(entries: &mut [Entry], options: &Options) {
    if options.sort != Sort::No {
        entries.sort_by(|a, b| {
            let first = match options.sort {
                Sort::Time => b.data.modified.cmp(&a.data.modified),
                Sort::Size => b.data.size.cmp(&a.data.size),
                Sort::Extension => extension(&a.name).cmp(extension(&b.name)),
                Sort::Name | Sort::No => Ordering::Equal,
            };
            let order = first.then_with(|| a.name.cmp(&b.name));
            if options.reverse { order.reverse() } else { order }
        });
    }
    if options.directories_first {
        entries.sort_by_key(|entry| !entry.data.file_type.is_dir());
    }
}

fn mark(data: &Metadata, options: &Options) -> &'static str {
    match data.file_type {
        FileType::Directory if options.classify || options.mark_directories => "/",
        FileType::Symlink if options.classify => "@",
        FileType::Fifo if options.classify => "|",
        FileType::File if options.classify && data.mode & 0o111 != 0 => "*",
        _ => "",
    }
}

fn mode(data: &Metadata) -> String {
    let mut text = String::from(match data.file_type {
        FileType::Directory => "d",
        FileType::Symlink => "l",
        FileType::Fifo => "p",
        FileType::File => "-",
    });
    let special = [(0o4000, 's', 'S'), (0o2000, 's', 'S'), (0o1000, 't', 'T')];
    for (class, (bit, with, without)) in special.into_iter().enumerate() {
        let bits = data.mode >> (6 - 3 * class);
        text.push(if bits & 4 != 0 { 'r' } else { '-' });
        text.push(if bits & 2 != 0 { 'w' } else { '-' });
        text.push(match (data.mode & bit != 0, bits & 1 != 0) {
            (true, true) => with,
            (true, false) => without,
            (false, true) => 'x',
            (false, false) => '-',
        });
    }
    text
}

fn human(size: u64) -> String {
    let (mut divisor, mut units) = (1_u64, " KMGTPE".chars().peekable());
    while size / divisor >= 1024 && units.next().is_some() {
        divisor <<= 10;
    }
    let unit = units.next().unwrap_or('E');
    // GNU rounds up, and shows a digit after the point below ten.
    let tenths = (u128::from(size) * 10).div_ceil(u128::from(divisor));
    match unit {
        ' ' => size.to_string(),
        unit if tenths < 100 => format!("{}.{}{unit}", tenths / 10, tenths % 10),
        unit => format!("{}{unit}", tenths.div_ceil(10)),
    }
}

/// Year, month from 1, day, and seconds of the day, in UTC.
fn civil(seconds: u64) -> (u64, usize, u64, u64) {
    // Days since 0000-03-01, in eras of 400 years.
    let days = seconds / 86_400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    #[expect(clippy::cast_possible_truncation, reason = "at most 12")]
    (era * 400 + year + next, month as usize, date, seconds % 86_400)
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A time to the nanosecond, as `ls --full-time` and `diff -u` print it.
pub(super) fn full_time(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (year, month, day, rest) = civil(since.as_secs());
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    let nanos = since.subsec_nanos();
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{nanos:09} +0000")
}

fn time(modified: SystemTime, options: &Options) -> String {
    if options.full_time {
        return full_time(modified);
    }
    let since = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (year, month, day, rest) = civil(since.as_secs());
    let (hour, minute) = (rest / 3600, rest / 60 % 60);
    if options.iso {
        return format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}");
    }
    let month = MONTHS[month - 1];
    // Half a year of an average length.
    let recent = since <= now && (now - since).as_secs() < 31_556_952 / 2;
    if recent {
        format!("{month} {day:>2} {hour:02}:{minute:02}")
    } else {
        format!("{month} {day:>2} {year:>5}")
    }
}

fn blocks(data: &Metadata) -> u64 {
    if data.file_type.is_symlink() { 0 } else { data.size.div_ceil(4096) * 4 }
}

impl Entry {
    fn shown(&self, options: &Options) -> String {
        let inode = if options.inode {
            format!("{} ", files::inode(&self.path).unwrap_or_default())
        } else {
            String::new()
        };
        format!("{inode}{}{}", self.name, mark(&self.data, options))
    }
}

/// Lines of the long format, in columns.
async fn long(ctx: &BuiltinContext<'_>, entries: &[Entry], options: &Options, out: &mut String) {
    let user = match ctx.env.get("USER") {
        _ if options.numeric => "1000",
        Some(user) if !user.is_empty() => user,
        _ => "user",
    };
    let mut rows = Vec::new();
    for entry in entries {
        let size = entry.data.size;
        rows.push((
            files::links(&entry.path).unwrap_or(1).to_string(),
            if options.human { human(size) } else { size.to_string() },
            entry,
        ));
    }
    let links = rows.iter().map(|row| row.0.len()).max().unwrap_or_default();
    let sizes = rows.iter().map(|row| row.1.len()).max().unwrap_or_default();
    for (link, size, entry) in &rows {
        out.push_str(&mode(&entry.data));
        out.push_str(&format!(" {link:>links$}"));
        if !options.no_owner {
            out.push_str(&format!(" {user}"));
        }
        if !options.no_group {
            out.push_str(&format!(" {user}"));
        }
        let time = time(entry.data.modified, options);
        out.push_str(&format!(" {size:>sizes$} {time} "));
        if entry.data.file_type.is_symlink() {
            let target = ctx.fs.read_link(&entry.path).await.unwrap_or_default();
            out.push_str(&format!("{} -> {}", entry.name, target.display()));
        } else {
            out.push_str(&entry.shown(options));
        }
        out.push('\n');
    }
}

/// Names in as many columns as fit, filled from top to bottom.
fn columns(names: &[String], width: usize) -> String {
    let widths: Vec<_> = names.iter().map(|name| name.chars().count()).collect();
    for count in (1..=names.len()).rev() {
        let rows = names.len().div_ceil(count);
        let column: Vec<_> = widths
            .chunks(rows)
            .map(|part| part.iter().max().copied().unwrap_or_default())
            .collect();
        if count > 1 && column.iter().map(|width| width + 2).sum::<usize>() > width + 2 {
            continue;
        }
        let mut out = String::new();
        for row in 0..rows {
            let line: Vec<_> = (row..names.len()).step_by(rows).collect();
            for (place, &at) in line.iter().enumerate() {
                out.push_str(&names[at]);
                if place + 1 < line.len() {
                    out.push_str(&" ".repeat(column[place] + 2 - widths[at]));
                }
            }
            out.push('\n');
        }
        return out;
    }
    String::new()
}

async fn list(ctx: &BuiltinContext<'_>, entries: &[Entry], options: &Options, out: &mut String) {
    if options.long {
        return long(ctx, entries, options, out).await;
    }
    let names: Vec<_> = entries.iter().map(|entry| entry.shown(options)).collect();
    if options.columns {
        out.push_str(&columns(&names, 80));
    } else if options.commas && !names.is_empty() {
        out.push_str(&names.join(", "));
        out.push('\n');
    } else {
        for name in names {
            out.push_str(&name);
            out.push('\n');
        }
    }
}

async fn directory(
    ctx: &BuiltinContext<'_>,
    path: &Path,
    options: &Options,
    out: &mut String,
) -> Result<Vec<Entry>> {
    let mut entries: Vec<_> = ctx
        .fs
        .read_dir(path)
        .await?
        .into_iter()
        .filter(|entry| options.all || options.almost_all || !entry.name.starts_with('.'))
        .map(|entry| {
            let path = bashkit::vfs_join(path, &entry.name);
            Entry { name: entry.name, path, data: entry.metadata }
        })
        .collect();
    if options.all {
        for name in [".", ".."] {
            let path = bashkit::normalize_path(&bashkit::vfs_join(path, name));
            let data = ctx.fs.stat(&path).await?;
            entries.push(Entry { name: name.into(), path, data });
        }
    }
    sort(&mut entries, options);
    if options.long {
        let total: u64 = entries.iter().map(|entry| blocks(&entry.data)).sum();
        let total = if options.human { human(total * 1024) } else { total.to_string() };
        out.push_str(&format!("total {total}\n"));
    }
    list(ctx, &entries, options, out).await;
    Ok(entries)
}

#[async_trait]
impl Builtin for Ls {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> Result<ExecResult> {
        let arguments =
            match Arguments::parse("ls", ctx.args, "aA1CcFdGghHiLlmnopqRrSstUuvXx", LONG) {
                Ok(arguments) => arguments,
                Err(error) => return Ok(error),
            };
        let options = options(&arguments.options);
        let mut operands = arguments.operands;
        if operands.is_empty() {
            operands.push(".".into());
        }
        let headed = operands.len() > 1 || options.recursive;
        let (mut out, mut errors, mut status) = (String::new(), String::new(), 0);
        let (mut singles, mut directories) = (Vec::new(), Vec::new());
        for name in operands {
            let path = absolute(ctx.cwd, &name);
            let of_link = options.long || options.directory || options.classify;
            let linked = ctx.fs.lstat(&path).await;
            let data = match linked {
                Ok(data) if data.file_type.is_symlink() && !(of_link && !name.ends_with('/')) => {
                    Ok(ctx.fs.stat(&path).await.unwrap_or(data))
                }
                other => other,
            };
            match data {
                Ok(data) => {
                    let inside = data.file_type.is_dir() && !options.directory;
                    let entry = Entry { name, path, data };
                    if inside { directories.push(entry) } else { singles.push(entry) }
                }
                Err(error) => {
                    let reason = reason(&error);
                    errors.push_str(&format!("ls: cannot access '{name}': {reason}\n"));
                    status = 2;
                }
            }
        }
        sort(&mut singles, &options);
        sort(&mut directories, &options);
        list(&ctx, &singles, &options, &mut out).await;
        let mut first = singles.is_empty();
        // The last is the next.
        let mut left: Vec<_> =
            directories.into_iter().rev().map(|entry| (entry.name, entry.path)).collect();
        while let Some((name, path)) = left.pop() {
            if !first {
                out.push('\n');
            }
            first = false;
            if headed {
                out.push_str(&format!("{name}:\n"));
            }
            match directory(&ctx, &path, &options, &mut out).await {
                Ok(entries) if options.recursive => {
                    let inner = entries.into_iter().rev().filter(|entry| {
                        entry.data.file_type.is_dir() && entry.name != "." && entry.name != ".."
                    });
                    let of = name.trim_end_matches('/');
                    left.extend(inner.map(|entry| (format!("{of}/{}", entry.name), entry.path)));
                }
                Ok(_) => {}
                Err(error) => {
                    let reason = reason(&error);
                    errors.push_str(&format!("ls: cannot open directory '{name}': {reason}\n"));
                    status = status.max(1);
                }
            }
        }
        let mut result = ExecResult::with_code(out, status);
        result.stderr = errors.into();
        Ok(result)
    }
}
