//! `isolet cache`: lists and removes isolet's files in the user's cache directory.

mod remove;
mod scan;

use crate::show::print::print;
use isolet_support::size::shown_bytes;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use etcetera::BaseStrategy;
use isolet::EngineBuilder;
use serde_json::json;

use crate::args::value_parsers;
use isolet_support::json as lines;
use isolet_support::text::on_one_line;
use scan::{Entry, Kind};

#[derive(clap::Subcommand)]
pub(crate) enum CacheCommand {
    /// List the cached files, with their sizes and ages
    ///
    /// The cache has, for each version of isolet, the assets and one memory image. It has images
    /// with packages, at most 2 GiB of them, and the wheel of every package that was ever loaded,
    /// without a limit. FOR names the packages and modules of an image.
    List {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Remove cached files; isolet fetches or makes them again when it needs them
    ///
    /// It never changes a directory that `--assets` or `ISOLET_ASSETS` names.
    Clean(CleanArgs),
}

#[derive(clap::Args)]
pub(crate) struct CleanArgs {
    /// Remove only these kinds of files [default: all]
    #[arg(value_name = "KIND", value_enum)]
    kinds: Vec<KindArg>,
    /// Remove only files at least this old, such as 30d or 12h
    #[arg(long, value_name = "TIME", value_parser = value_parsers::duration)]
    older_than: Option<Duration>,
    /// Remove only the assets and images of other versions of isolet
    #[arg(long)]
    unused: bool,
    /// Print the files that would be removed, and remove none
    #[arg(long)]
    dry_run: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum KindArg {
    /// Pyodide's files
    Assets,
    /// Memory images
    Images,
    /// Wheels, and the results of resolving requirements
    Packages,
    /// Lists of the tools of MCP servers
    Mcp,
}

impl CleanArgs {
    fn selects(&self, entry: &Entry, now: SystemTime) -> bool {
        let kind = match entry.kind {
            Kind::Assets => KindArg::Assets,
            Kind::Image => KindArg::Images,
            Kind::Wheel | Kind::Resolutions => KindArg::Packages,
            Kind::Mcp => KindArg::Mcp,
        };
        let is_old = self.older_than.is_none_or(|age| entry.age(now) >= age);
        let is_unused = !self.unused || entry.is_of_another_version;
        (self.kinds.is_empty() || self.kinds.contains(&kind)) && is_old && is_unused
    }
}

pub(crate) fn cache(command: &CacheCommand) -> Result<ExitCode> {
    let root = root()?;
    let entries = scan::entries(&root)
        .with_context(|| format!("the cache directory `{}` cannot be read", root.display()))?;
    let now = SystemTime::now();
    match command {
        CacheCommand::List { json: false } => print(&table(&root, &entries, now)),
        CacheCommand::List { json: true } => {
            lines::print(&object(&root, &entries))?;
            Ok(ExitCode::SUCCESS)
        }
        CacheCommand::Clean(args) => {
            let selected: Vec<Entry> =
                entries.into_iter().filter(|entry| args.selects(entry, now)).collect();
            if args.dry_run {
                return print(&table(&root, &selected, now));
            }
            let removed = remove::remove(&root, &selected)?;
            let mut stderr = io::stderr();
            for path in removed.busy {
                let path = path.display();
                writeln!(stderr, "kept `{path}`, which another isolet is fetching into")?;
            }
            let (files, bytes) = (removed.files, shown_bytes(removed.bytes));
            writeln!(stderr, "removed {files} files with {bytes} from `{}`", root.display())?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Returns the directory in which the library keeps its caches.
fn root() -> Result<PathBuf> {
    let strategy =
        etcetera::choose_base_strategy().context("the user's cache directory is unknown")?;
    Ok(strategy.cache_dir().join("isolet"))
}

fn table(root: &Path, entries: &[Entry], now: SystemTime) -> String {
    let mut text = String::new();
    let width = entries.iter().map(|entry| entry.name.len()).max().unwrap_or_default().max(4);
    let mut line = |kind: &str, name: &str, files: &str, size: &str, age: &str, purpose: &str| {
        let line =
            format!("{kind:<11}  {name:<width$}  {files:>5}  {size:>10}  {age:>4}  {purpose}");
        text.extend([line.trim_end(), "\n"]);
    };
    line("KIND", "NAME", "FILES", "SIZE", "AGE", "FOR");
    for entry in entries {
        let (files, size) = (entry.files.to_string(), shown_bytes(entry.bytes));
        line(
            entry.kind.name(),
            &on_one_line(&entry.name),
            &files,
            &size,
            &shown_age(entry.age(now)),
            &on_one_line(entry.purpose.as_deref().unwrap_or_default()),
        );
    }
    let total = shown_bytes(entries.iter().map(|entry| entry.bytes).sum());
    let _ = writeln!(text, "{total} in `{}`", on_one_line(&root.display().to_string()));
    text
}

fn object(root: &Path, entries: &[Entry]) -> serde_json::Value {
    let shown = entries.iter().map(|entry| {
        let since = entry.modified.duration_since(SystemTime::UNIX_EPOCH);
        json!({
            "kind": entry.kind.name(),
            "name": entry.name,
            "for": entry.purpose,
            "path": entry.path.to_string_lossy(),
            "files": entry.files,
            "bytes": entry.bytes,
            "modified": since.map_or(0, |since| since.as_secs()),
            "unused": entry.is_of_another_version,
        })
    });
    json!({
        "directory": root.to_string_lossy(),
        "bytes": entries.iter().map(|entry| entry.bytes).sum::<u64>(),
        "max_images_bytes": EngineBuilder::IMAGES_BYTES,
        "entries": shown.collect::<Vec<_>>(),
    })
}

/// Formats an age in its largest unit: `12s`, `5m`, `3h`, `40d`.
fn shown_age(age: Duration) -> String {
    let seconds = age.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_shown_in_their_largest_unit() {
        let shown = [0, 59, 60, 3599, 3600, 86_399, 86_400, 40 * 86_400]
            .map(|seconds| shown_age(Duration::from_secs(seconds)));
        assert_eq!(shown, ["0s", "59s", "1m", "59m", "1h", "23h", "1d", "40d"]);
    }
}
