//! A directory to mount, with a secret beside it, and its contents for a comparison.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Scratch;

/// What no guest may read or change.
pub const CANARY: &str = "canary-44c1d7";

/// Makes a directory to mount and, next to it, a secret.
#[must_use]
pub fn world(test: &str) -> (Scratch, PathBuf) {
    let scratch = Scratch::new(test);
    scratch.file("secret.txt", CANARY);
    let root = scratch.path().join("data");
    fs::create_dir_all(root.join("sub")).unwrap();
    fs::write(root.join("a.txt"), "hello").unwrap();
    fs::write(root.join("sub/b.txt"), "there").unwrap();
    (scratch, root)
}

/// Returns every path of a tree, with its contents.
#[must_use]
pub fn snapshot(root: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut pending = vec![root.to_path_buf()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let kind = fs::symlink_metadata(&path).unwrap();
            let contents = if kind.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
            found.push((format!("{} {:?}", path.display(), kind.file_type()), contents));
            if kind.is_dir() {
                pending.push(path);
            }
        }
    }
    found.sort();
    found
}
