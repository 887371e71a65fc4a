//! Files of the hub: read with a limit, written whole and for the user only.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The maximum size of a file, in bytes.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Reads a file of JSON. Returns `None` if there is none, or it is no such file.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    if fs::metadata(path).ok()?.len() > MAX_BYTES {
        return None;
    }
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// Replaces a file of JSON atomically: a concurrent reader gets the old file or the new one.
pub(crate) fn write<T: Serialize>(path: &Path, content: &T) -> io::Result<()> {
    let directory = path.parent().ok_or_else(|| io::Error::other("the path has no directory"))?;
    private_directory(directory)?;
    let bytes = serde_json::to_vec(content)?;
    let temporary = directory.join(format!(".{:016x}", getrandom::u64()?));
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = (|| {
        let mut file = options.open(&temporary)?;
        file.write_all(&bytes)?;
        file.sync_data()?;
        fs::rename(&temporary, path)
    })();
    if written.is_err() {
        // A file that remains only takes space.
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn private_directory(directory: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_file_is_replaced_and_belongs_to_the_user() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a/b.json");
        assert_eq!(read::<Vec<u8>>(&path), None);
        write(&path, &[1, 2]).unwrap();
        write(&path, &[3]).unwrap();
        assert_eq!(read::<Vec<u8>>(&path), Some(vec![3]));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        fs::write(&path, "{").unwrap();
        assert_eq!(read::<Vec<u8>>(&path), None);
    }
}
