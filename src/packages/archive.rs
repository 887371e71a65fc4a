//! Reads untrusted ZIP archives. Their contents are validated once, within limits.

use std::collections::HashSet;
use std::io::{self, Cursor, Read};
use std::sync::Arc;

use zip::read::{ArchiveOffset, Config};
use zip::{CompressionMethod, ZipArchive};

/// The maximum number of files and directories.
pub(crate) const MAX_ENTRIES: usize = 20_000;
/// The maximum size of all files together, inflated, in bytes.
pub(crate) const MAX_UNPACKED_BYTES: u64 = 1 << 30;
/// The maximum ratio of a file's inflated to its compressed size, for files above
/// [`RATIO_FREE_BYTES`].
const MAX_RATIO: u64 = 200;
const RATIO_FREE_BYTES: u64 = 1 << 20;
/// The maximum length of a path, in bytes, and the maximum number of names in a path.
const MAX_PATH_BYTES: usize = 1024;
const MAX_PATH_NAMES: usize = 32;

/// An archive in memory. All its files are regular and have plain relative paths.
#[derive(Clone)]
pub(crate) struct Archive {
    zip: ZipArchive<Cursor<Arc<[u8]>>>,
    files: Vec<ArchiveFile>,
}

/// A file of an archive.
#[derive(Clone, Debug)]
pub(crate) struct ArchiveFile {
    /// Its path: names separated by `/`.
    pub(crate) path: String,
    /// Its inflated size, in bytes.
    pub(crate) size: u64,
    index: usize,
}

impl Archive {
    /// Reads the directory of an archive. Inflates nothing.
    ///
    /// # Errors
    ///
    /// Names the rule that the archive violates.
    pub(crate) fn open(bytes: Arc<[u8]>) -> Result<Self, String> {
        let directory_start = check_end(&bytes)?;
        let config = Config { archive_offset: ArchiveOffset::Known(0) };
        let mut zip = ZipArchive::with_config(config, Cursor::new(bytes)).map_err(unreadable)?;
        if zip.central_directory_start() != directory_start {
            return Err("it is not one ZIP archive: it has two directories".to_owned());
        }
        zip.validate_header_consistency().map_err(unreadable)?;
        let files = files(&zip)?;
        Ok(Self { zip, files })
    }

    /// Returns the files, in the order of the archive.
    pub(crate) fn files(&self) -> &[ArchiveFile] {
        &self.files
    }

    /// Inflates a file of this archive.
    ///
    /// # Errors
    ///
    /// Fails if the bytes do not match the directory: they are damaged or have another size.
    pub(crate) fn read(&self, file: &ArchiveFile) -> io::Result<Arc<[u8]>> {
        // The clone shares the directory and the bytes, but has its own position.
        let mut zip = self.zip.clone();
        let mut bytes = Vec::new();
        let entry = zip.by_index(file.index).map_err(io::Error::other)?;
        entry.take(file.size.saturating_add(1)).read_to_end(&mut bytes)?;
        let found = bytes.len() as u64;
        if found != file.size {
            let reason = format!("`{}` inflates to {found} bytes or more", file.path);
            let message = format!("{reason}, its directory says {}", file.size);
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(bytes.into())
    }
}

/// Checks the record at the archive's end and returns where the directory starts. This bounds the
/// cost of reading the directory, and makes it unambiguous which directory is read.
fn check_end(bytes: &[u8]) -> Result<u64, String> {
    const END_BYTES: usize = 22;
    let Some((before, end)) = bytes.split_last_chunk::<END_BYTES>() else {
        return Err("it is not a ZIP archive: it is too short".to_owned());
    };
    // The fields: the numbers of this disk and of the first, the entries on this disk and in total,
    // the size and position of the directory, and the size of the comment.
    let [b'P', b'K', 5, 6, 0, 0, 0, 0, e0, e1, e2, e3, s0, s1, s2, s3, p0, p1, p2, p3, 0, 0] = *end
    else {
        return Err("it does not end as a plain ZIP archive without a comment does".to_owned());
    };
    let entries = u16::from_le_bytes([e2, e3]);
    let size = u64::from(u32::from_le_bytes([s0, s1, s2, s3]));
    let start = u64::from(u32::from_le_bytes([p0, p1, p2, p3]));
    if usize::from(entries) > MAX_ENTRIES {
        return Err(format!("limit {MAX_ENTRIES} entries, has {entries}"));
    }
    let here = u16::from_le_bytes([e0, e1]);
    if here != entries || start + size != before.len() as u64 {
        return Err("it is not a plain ZIP archive: its directory is not at its end".to_owned());
    }
    Ok(start)
}

fn files(zip: &ZipArchive<Cursor<Arc<[u8]>>>) -> Result<Vec<ArchiveFile>, String> {
    let mut files = Vec::new();
    let mut unpacked = 0_u64;
    let mut seen = HashSet::new();
    for index in 0..zip.len() {
        let entry = zip.by_index_data(index).map_err(unreadable)?;
        let name = std::str::from_utf8(entry.name_raw())
            .map_err(|_| "the name of an entry is not UTF-8".to_owned())?;
        let path = name.strip_suffix('/').unwrap_or(name);
        check_path(path)?;
        if !seen.insert(path.to_lowercase()) {
            return Err(format!("two of its entries have the name `{path}` but for case"));
        }
        check_kind(path, entry.is_dir(), entry.unix_mode())?;
        if entry.is_dir() {
            continue;
        }
        let (size, compressed) = (entry.size(), entry.compressed_size());
        let stored = entry.compression() == CompressionMethod::Stored;
        if entry.encrypted() || !(stored || entry.compression() == CompressionMethod::Deflated) {
            return Err(format!("`{path}` is encrypted or not deflated"));
        }
        if size > RATIO_FREE_BYTES && size / MAX_RATIO > compressed {
            let ratio = format!("limit {MAX_RATIO} times its {compressed} compressed bytes");
            return Err(format!("`{path}` inflates too much: {ratio}, needed {size} bytes"));
        }
        unpacked = unpacked.saturating_add(size);
        if unpacked > MAX_UNPACKED_BYTES {
            return Err(format!("limit {MAX_UNPACKED_BYTES} bytes unpacked, needed {unpacked}"));
        }
        files.push(ArchiveFile { path: path.to_owned(), size, index });
    }
    check_parents(files.iter().map(|file| file.path.as_str()))?;
    Ok(files)
}

/// Checks that a path is plain, relative and not too long.
///
/// # Errors
///
/// Names the rule that the path violates.
pub(crate) fn check_path(path: &str) -> Result<(), String> {
    let names: Vec<&str> = path.split('/').collect();
    let is_odd = |name: &&str| matches!(*name, "" | "." | "..");
    let drive = path.as_bytes().get(1) == Some(&b':');
    if names.iter().any(is_odd) || drive || path.contains(|c: char| c == '\\' || c.is_control()) {
        return Err(format!("an entry has the path {path:?}, which is not plain and relative"));
    }
    if path.len() > MAX_PATH_BYTES || names.len() > MAX_PATH_NAMES {
        let has = format!("has {} bytes and {} names", path.len(), names.len());
        return Err(format!(
            "limit {MAX_PATH_BYTES} bytes and {MAX_PATH_NAMES} names, a path {has}"
        ));
    }
    Ok(())
}

fn check_kind(path: &str, is_dir: bool, unix_mode: Option<u32>) -> Result<(), String> {
    const FORMAT: u32 = 0o170_000;
    const DIRECTORY: u32 = 0o040_000;
    const REGULAR: u32 = 0o100_000;
    let expected = if is_dir { DIRECTORY } else { REGULAR };
    match unix_mode.map_or(0, |mode| mode & FORMAT) {
        0 => Ok(()),
        format if format == expected => Ok(()),
        format => Err(format!("`{path}` is a link or a device: its mode is {format:o}")),
    }
}

/// Checks that no file is also a directory, and that there are not too many directories.
///
/// # Errors
///
/// Names the rule that the paths violate.
pub(crate) fn check_parents<'a>(
    files: impl Iterator<Item = &'a str> + Clone,
) -> Result<(), String> {
    let paths: HashSet<&str> = files.clone().collect();
    let mut directories = HashSet::new();
    for path in files {
        let parents = path.match_indices('/').filter_map(|(at, _)| path.get(..at));
        for parent in parents {
            if paths.contains(parent) {
                return Err(format!("`{parent}` is both a file and a directory"));
            }
            directories.insert(parent);
        }
        if directories.len() > MAX_ENTRIES {
            return Err(format!("limit {MAX_ENTRIES} directories, has more"));
        }
    }
    Ok(())
}

#[expect(clippy::needless_pass_by_value, reason = "the form that `map_err` wants")]
fn unreadable(error: zip::result::ZipError) -> String {
    format!("it is not a sound ZIP archive: {error}")
}
