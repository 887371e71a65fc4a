//! Tests of the file system as the guest uses it: through requests, on real directories.

mod changed;
mod differential;
mod events;
mod mounts;
mod overlay;
mod paths;
mod quotas;
#[cfg(target_os = "linux")]
mod races;
mod read_only;
mod read_write;
#[cfg(target_os = "linux")]
mod special;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use tempfile::TempDir;

use super::*;
use crate::data::error::Error;

const SECRET: &str = "canary-7f3a";

const READ: OpenFlags = OpenFlags {
    read: true,
    write: false,
    create: false,
    exclusive: false,
    truncate: false,
    append: false,
};
const WRITE: OpenFlags = OpenFlags { write: true, read: false, ..READ };
const UPDATE: OpenFlags = OpenFlags { write: true, ..READ };
const CREATE: OpenFlags = OpenFlags { create: true, truncate: true, ..UPDATE };
const APPEND: OpenFlags = OpenFlags { append: true, ..WRITE };

/// A mounted directory, next to a secret that no guest may see.
struct Guest {
    files: FileSystem,
    events: Arc<Mutex<Vec<FileEvent>>>,
    top: TempDir,
}

impl Guest {
    fn new(mount: impl FnOnce(&Path) -> Mount) -> Self {
        Self::with(mount, FileLimits::default(), |_| ())
    }

    fn with(
        mount: impl FnOnce(&Path) -> Mount,
        limits: FileLimits,
        prepare: impl FnOnce(&Path),
    ) -> Self {
        let top = tempfile::tempdir().unwrap();
        let mounted = top.path().join("mounted");
        fs::create_dir_all(mounted.join("dir/inner")).unwrap();
        fs::write(mounted.join("hello.txt"), "hello").unwrap();
        fs::write(mounted.join("dir/deep.txt"), "deep").unwrap();
        fs::write(mounted.join("dir/inner/deeper.txt"), "deeper").unwrap();
        fs::create_dir(top.path().join("outside")).unwrap();
        fs::write(top.path().join("outside/secret"), SECRET).unwrap();
        prepare(&mounted);
        let mut table = MountTable::default();
        table.add("/data", mount(&mounted)).unwrap();
        let events = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&events);
        let sink = Arc::new(move |event| sink.lock().unwrap().push(event));
        Self { files: FileSystem::new(&table, limits, sink), events, top }
    }

    fn host(&self) -> PathBuf {
        self.top.path().join("mounted")
    }

    fn outside(&self) -> PathBuf {
        self.top.path().join("outside")
    }

    fn open(&self, path: &str, flags: OpenFlags) -> Result<u32, FileError> {
        match self.files.call(FileRequest::Open { mount: 0, path, flags })? {
            FileReply::File(file) => Ok(file),
            other => panic!("{other:?}"),
        }
    }

    fn close(&self, file: u32) {
        self.files.call(FileRequest::Close { file }).unwrap();
    }

    fn read_from(&self, file: u32) -> Result<Vec<u8>, FileError> {
        let mut bytes = Vec::new();
        loop {
            let mut buffer = [0; 1000];
            let offset = bytes.len() as u64;
            match self.files.read(file, offset, &mut buffer)? {
                0 => return Ok(bytes),
                count => bytes.extend_from_slice(&buffer[..count as usize]),
            }
        }
    }

    fn read(&self, path: &str) -> Result<String, FileError> {
        let file = self.open(path, READ)?;
        let bytes = self.read_from(file);
        self.close(file);
        Ok(String::from_utf8(bytes?).unwrap())
    }

    fn write_to(&self, file: u32, offset: u64, bytes: &[u8]) -> Result<usize, FileError> {
        match self.files.call(FileRequest::Write { file, offset, bytes })? {
            FileReply::Count(count) => Ok(count as usize),
            other => panic!("{other:?}"),
        }
    }

    fn write(&self, path: &str, text: &str) -> Result<(), FileError> {
        let file = self.open(path, CREATE)?;
        let written = self.write_to(file, 0, text.as_bytes());
        self.close(file);
        assert_eq!(written?, text.len());
        Ok(())
    }

    fn append(&self, path: &str, text: &str) -> Result<(), FileError> {
        let file = self.open(path, APPEND)?;
        let written = self.write_to(file, 0, text.as_bytes());
        self.close(file);
        written.map(drop)
    }

    fn stat(&self, path: &str) -> Result<FileStat, FileError> {
        match self.files.call(FileRequest::Stat { mount: 0, path })? {
            FileReply::Stat(stat) => Ok(stat),
            other => panic!("{other:?}"),
        }
    }

    fn stat_file(&self, file: u32) -> FileStat {
        match self.files.call(FileRequest::StatFile { file }).unwrap() {
            FileReply::Stat(stat) => stat,
            other => panic!("{other:?}"),
        }
    }

    fn list(&self, path: &str) -> Result<Vec<String>, FileError> {
        match self.files.call(FileRequest::List { mount: 0, path })? {
            FileReply::Names(names) => Ok(names),
            other => panic!("{other:?}"),
        }
    }

    fn read_link(&self, path: &str) -> Result<String, FileError> {
        match self.files.call(FileRequest::ReadLink { mount: 0, path })? {
            FileReply::Target(target) => Ok(target),
            other => panic!("{other:?}"),
        }
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), FileError> {
        self.files.call(FileRequest::Rename { mount: 0, from, to }).map(drop)
    }

    fn make_directory(&self, path: &str) -> Result<(), FileError> {
        let mode = 0o777;
        self.files.call(FileRequest::MakeDirectory { mount: 0, path, mode }).map(drop)
    }

    fn remove_directory(&self, path: &str) -> Result<(), FileError> {
        self.files.call(FileRequest::RemoveDirectory { mount: 0, path }).map(drop)
    }

    fn remove(&self, path: &str) -> Result<(), FileError> {
        self.files.call(FileRequest::Remove { mount: 0, path }).map(drop)
    }

    fn make_link(&self, path: &str, target: &str) -> Result<(), FileError> {
        self.files.call(FileRequest::MakeLink { mount: 0, path, target }).map(drop)
    }

    fn set_size(&self, path: &str, size: u64) -> Result<(), FileError> {
        self.files.call(FileRequest::SetSize { mount: 0, path, size }).map(drop)
    }

    fn set_mode(&self, path: &str, mode: u32) -> Result<(), FileError> {
        self.files.call(FileRequest::SetMode { mount: 0, path, mode }).map(drop)
    }

    fn set_times(&self, path: &str, time: f64) -> Result<(), FileError> {
        let (accessed_ms, modified_ms) = (time, time);
        let request = FileRequest::SetTimes { mount: 0, path, accessed_ms, modified_ms };
        self.files.call(request).map(drop)
    }

    fn export(&self, target: &Path) -> Result<u64, Error> {
        self.files.export(0, &self.files.open_export(0, target)?)
    }

    /// Returns the changes, as text.
    fn changes(&self) -> Vec<String> {
        let shown = |change: FileChange| format!("{:?} {}", change.kind, change.path);
        self.files.changes(0).into_iter().map(shown).collect()
    }

    /// Tries every operation on a path. Returns the error numbers.
    fn try_everything(&self, path: &str) -> Vec<i32> {
        let results = [
            self.stat(path).map(drop),
            self.read(path).map(drop),
            self.open(path, UPDATE).map(|file| self.close(file)),
            self.list(path).map(drop),
            self.read_link(path).map(drop),
            self.set_size(path, 3),
            self.set_times(path, 5e11),
            self.set_mode(path, 0o777),
            self.rename(path, "stolen"),
            self.remove(path),
            self.remove_directory(path),
        ];
        results.iter().filter_map(|result| result.err()).map(|error| error.errno()).collect()
    }
}

/// Records a tree of the host: types, permissions, times, contents and link targets. Every change
/// is visible in it.
fn snapshot(directory: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut left = vec![directory.to_path_buf()];
    while let Some(path) = left.pop() {
        let metadata = fs::symlink_metadata(&path).unwrap();
        let contents = if metadata.is_dir() {
            left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            String::new()
        } else if metadata.is_file() {
            String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned()
        } else if metadata.is_symlink() {
            fs::read_link(&path).unwrap().display().to_string()
        } else {
            "special".to_owned()
        };
        let (mode, modified) = (metadata.permissions().mode(), metadata.modified().unwrap());
        found.insert(path, format!("{mode:o} {modified:?} {contents}"));
    }
    found
}

fn read_only(host: &Path) -> Mount {
    Mount::read_only(host).unwrap()
}

fn overlay(host: &Path) -> Mount {
    Mount::overlay(host).unwrap()
}

fn read_write(host: &Path) -> Mount {
    Mount::read_write(host).unwrap()
}
