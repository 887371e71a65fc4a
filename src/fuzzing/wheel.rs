//! Archives and wheels: any bytes, or an archive that a recipe describes.

mod recipe;

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use super::memory::measured;
use crate::packages::archive::{Archive, ArchiveFile, MAX_ENTRIES, MAX_UNPACKED_BYTES};
use crate::packages::wheel::{Wheel, WheelFile};

/// The name that every input has. Only wheels of this distribution get past its metadata.
const FILE_NAME: &str = "a-1-py3-none-any.whl";

/// How many times its length an archive's directory may take when it is read.
const DIRECTORY_FACTOR: usize = 64;
/// What may be taken whatever the length: the inflater's state, error messages.
const FIXED: usize = 256 << 10;
/// Inflated bytes that one input is worth.
const WORTH_READING: u64 = 8 << 20;

/// Opens an archive and a wheel, and reads what is in them. Files are at plain relative paths, each
/// once and none of them also a directory; what is inflated is what was announced, takes memory in
/// proportion, and is bounded by the length of the archive.
pub fn wheel(data: &[u8]) {
    let bytes: Arc<[u8]> = match recipe::archive(data) {
        Some(bytes) => bytes.into(),
        None => data.into(),
    };
    let (archive, used) = measured(|| Archive::open(Arc::clone(&bytes)));
    assert!(
        used.peak <= DIRECTORY_FACTOR * bytes.len() + FIXED,
        "{} bytes took {used:?}",
        bytes.len()
    );
    if let Ok(archive) = &archive {
        check_archive(archive, bytes.len());
    }
    if let Ok(wheel) = Wheel::open(FILE_NAME, bytes) {
        assert!(archive.is_ok());
        check_wheel(&wheel);
    }
}

fn check_archive(archive: &Archive, length: usize) {
    let files = archive.files();
    check_paths(files.iter().map(|file| file.path.as_str()));
    let total: u64 = files.iter().map(|file| file.size).sum();
    assert!(files.len() <= MAX_ENTRIES && total <= MAX_UNPACKED_BYTES);
    // Each file's bytes are its own, so that many cannot share those of one bomb.
    let large: u64 = files.iter().map(|file| file.size).filter(|size| *size > 1 << 20).sum();
    assert!(large <= 201 * length as u64, "{length} bytes announce {large}");
    let mut left = WORTH_READING;
    for file in files {
        left = left.saturating_sub(file.size);
        if left > 0 {
            check_read(archive, file);
        }
    }
}

fn check_read(archive: &Archive, file: &ArchiveFile) {
    let (read, used) = measured(|| archive.read(file));
    let size = usize::try_from(file.size).unwrap_or(usize::MAX);
    assert!(used.peak <= 4 * size + FIXED, "{file:?} took {used:?}");
    if let Ok(bytes) = read {
        assert_eq!(bytes.len(), size, "{file:?}");
        assert_eq!(archive.read(file).ok(), Some(bytes), "{file:?}");
    }
}

fn check_wheel(wheel: &Wheel) {
    assert_eq!((wheel.name(), wheel.file_name()), ("a", FILE_NAME));
    assert_eq!(wheel.version().to_string(), "1");
    let files = wheel.files();
    check_paths(files.iter().map(|file| file.path.as_str()));
    for name in wheel.imports() {
        assert!(!name.is_empty() && !name.contains(['/', '.', '-', ' ']), "{name:?}");
    }
    if files.iter().map(WheelFile::size).sum::<u64>() > WORTH_READING {
        return;
    }
    for (index, file) in files.iter().enumerate() {
        if let Ok(bytes) = wheel.read(index) {
            assert_eq!(bytes.len() as u64, file.size(), "{}", file.path);
        }
    }
    assert!(wheel.read(files.len()).is_err());
    if let Ok(modules) = wheel.modules() {
        assert!(modules.len() <= files.len());
    }
}

/// Each path is plain and relative, in use once whatever the case, and no other's directory.
fn check_paths<'a>(paths: impl Iterator<Item = &'a str>) {
    let paths: Vec<&str> = paths.collect();
    let mut seen = HashSet::new();
    for path in &paths {
        assert!(path.split('/').all(|name| !matches!(name, "" | "." | "..")), "{path:?}");
        assert!(!path.contains(|c: char| c == '\\' || c.is_control()), "{path:?}");
        assert!(path.as_bytes().get(1) != Some(&b':'), "{path:?}");
        assert!(path.len() <= 1024 && path.split('/').count() <= 32, "{path:?}");
        assert!(seen.insert(path.to_lowercase()), "{path:?} is there twice");
    }
    let sorted: BTreeSet<String> = paths.iter().map(|path| format!("{path}/")).collect();
    for (one, next) in sorted.iter().zip(sorted.iter().skip(1)) {
        assert!(!next.starts_with(one.as_str()), "{one:?} is a directory of {next:?}");
    }
}
