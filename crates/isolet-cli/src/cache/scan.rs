//! Finds isolet's files in the cache directory by the names that the library gives them. Other
//! files are neither listed nor removed, and no link is followed.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The prefix of a directory of assets. The rest is a version of isolet.
const ASSETS: &str = "assets-";
const PACKAGES: &str = "packages";
/// The directory of images with packages.
const PRELOADED: &str = "images";
/// The prefixes of the names of images: without packages, and with some.
const IMAGES: [&str; 2] = ["image-", "preloaded-"];
/// The directory of the lists of tools of MCP servers.
const MCP: &str = "mcp";
/// The extension of the file that says which packages an image is for.
const PURPOSE: &str = "for";
/// The most bytes of it that are read.
const MAX_PURPOSE_BYTES: u64 = 4096;
/// Lock files stay, because a waiting process has them open.
const LOCKS: [&str; 2] = [".lock", ".image.lock"];

/// The purpose of a cache entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Assets,
    Image,
    Wheel,
    Resolutions,
    Mcp,
}

impl Kind {
    /// Returns the name in output, which is part of the contract.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Assets => "assets",
            Self::Image => "image",
            Self::Wheel => "wheel",
            Self::Resolutions => "resolutions",
            Self::Mcp => "mcp",
        }
    }
}

/// A cache entry, which is removed as a whole.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) kind: Kind,
    pub(super) name: String,
    /// The packages and modules that an image is for, in words; `None` if that is unknown.
    pub(super) purpose: Option<String>,
    /// The file, or the directory of the files.
    pub(super) path: PathBuf,
    pub(super) files: usize,
    pub(super) bytes: u64,
    /// When the newest of its files was written.
    pub(super) modified: SystemTime,
    /// Set if only another version of isolet uses it.
    pub(super) is_of_another_version: bool,
    /// The files.
    pub(super) members: Vec<PathBuf>,
}

impl Entry {
    fn new(kind: Kind, name: &str, path: &Path) -> Self {
        Self {
            kind,
            name: name.to_owned(),
            purpose: None,
            path: path.to_owned(),
            files: 0,
            bytes: 0,
            modified: SystemTime::UNIX_EPOCH,
            is_of_another_version: false,
            members: Vec::new(),
        }
    }

    fn add(&mut self, path: PathBuf, metadata: &Metadata) {
        self.files += 1;
        self.bytes = self.bytes.saturating_add(metadata.len());
        let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        self.modified = self.modified.max(modified);
        self.members.push(path);
    }

    /// Returns how long ago the entry was written.
    pub(super) fn age(&self, now: SystemTime) -> Duration {
        now.duration_since(self.modified).unwrap_or_default()
    }
}

/// The images of a directory by name, each with the files about it: the record that it was
/// verified, what it is for, why it cannot be made.
#[derive(Default)]
struct Images(BTreeMap<String, Entry>);

impl Images {
    fn add(&mut self, name: &str, path: &Path, metadata: &Metadata, prefix: &str) {
        let of_record = || name.strip_prefix('.')?.strip_suffix(".checked");
        let stem = of_record().unwrap_or(name);
        let stem = stem.rsplit_once('.').map_or(stem, |(stem, _)| stem);
        let image = format!("{stem}.bin");
        let make =
            || Entry::new(Kind::Image, &format!("{prefix}{image}"), &path.with_file_name(&image));
        let entry = self.0.entry(image.clone()).or_insert_with(make);
        entry.add(path.to_owned(), metadata);
        if path.extension().is_some_and(|extension| extension == PURPOSE) {
            entry.purpose = purpose(path);
        }
    }
}

/// Reads what an image is for.
fn purpose(path: &Path) -> Option<String> {
    let mut text = String::new();
    fs::File::open(path).ok()?.take(MAX_PURPOSE_BYTES).read_to_string(&mut text).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Lists the entries in the directory, sorted by kind and name. Empty if the directory does not
/// exist.
pub(super) fn entries(root: &Path) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for (name, path, metadata) in children(root)? {
        if let Some(version) = name.strip_prefix(ASSETS)
            && metadata.is_dir()
        {
            entries.extend(assets(version, &path)?);
        }
    }
    let mut images = Images::default();
    for (name, path, metadata) in children(&root.join(PRELOADED))? {
        if name.trim_start_matches('.').starts_with(IMAGES[1]) && !metadata.is_dir() {
            images.add(&name, &path, &metadata, "");
        }
    }
    entries.extend(images.0.into_values());
    let packages = root.join(PACKAGES);
    for (_, directory, _) in children(&packages.join("wheels"))? {
        for (name, path, metadata) in children(&directory)? {
            let mut wheel = Entry::new(Kind::Wheel, &name, &path);
            wheel.add(path, &metadata);
            entries.push(wheel);
        }
    }
    let directory = packages.join("resolutions");
    let mut resolutions = Entry::new(Kind::Resolutions, "resolutions", &directory);
    for (_, path, metadata) in children(&directory)? {
        resolutions.add(path, &metadata);
    }
    entries.push(resolutions);
    let directory = root.join(MCP);
    let mut lists = Entry::new(Kind::Mcp, "lists of tools", &directory);
    for (_, path, metadata) in children(&directory)? {
        if !metadata.is_dir() {
            lists.add(path, &metadata);
        }
    }
    entries.push(lists);
    entries.retain(|entry| entry.files > 0);
    entries.sort_by(|a, b| (a.kind, &a.name, &a.path).cmp(&(b.kind, &b.name, &b.path)));
    Ok(entries)
}

/// Returns the assets and images of one version.
fn assets(version: &str, directory: &Path) -> io::Result<Vec<Entry>> {
    let is_of_another_version = version != env!("CARGO_PKG_VERSION");
    let mut assets = Entry::new(Kind::Assets, version, directory);
    let mut images = Images::default();
    for (name, path, metadata) in children(directory)? {
        if metadata.is_dir() || LOCKS.contains(&name.as_str()) {
            continue;
        }
        if IMAGES.iter().any(|prefix| name.trim_start_matches('.').starts_with(prefix)) {
            images.add(&name, &path, &metadata, &format!("{version}/"));
        } else {
            assets.add(path, &metadata);
        }
    }
    let mut entries: Vec<Entry> = images.0.into_values().collect();
    entries.push(assets);
    for entry in &mut entries {
        entry.is_of_another_version = is_of_another_version;
    }
    Ok(entries)
}

/// Lists the files and directories in a directory, without following links. Empty if it does not
/// exist.
fn children(directory: &Path) -> io::Result<Vec<(String, PathBuf, Metadata)>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            return Ok(Vec::new());
        }
        Err(error) => return Err(error),
    };
    let mut children = Vec::new();
    for entry in entries {
        let entry = entry?;
        // A file that another process has just removed is skipped.
        if let Ok(metadata) = entry.metadata() {
            children.push((
                entry.file_name().to_string_lossy().into_owned(),
                entry.path(),
                metadata,
            ));
        }
    }
    Ok(children)
}
