//! Tests of opening and verifying: only the locked bytes are ever returned.

use std::fs;

use super::{TestDir, content, fake_lock, fill};
use crate::verify::verify_locked;
use crate::{Assets, Error, assets};

const MJS: &str = "pyodide-lock.json";

#[test]
fn complete_directory_opens_with_the_bytes_of_each_file() {
    let dir = TestDir::new();
    fill(&dir);
    let assets = Assets::open_locked(&fake_lock(), &dir).unwrap();
    let opened = [assets.asm_wasm(), assets.asm_mjs(), assets.stdlib_zip(), assets.lock_json()];
    for (name, bytes) in assets::NAMES.iter().zip(opened) {
        assert!(bytes[..] == content(name), "{name}");
    }
    assert_eq!(assets.digest(), fake_lock().digest());
    assert!(verify_locked(&fake_lock(), &dir).is_ok());
}

#[test]
fn flipped_bit_in_any_file_is_found() {
    for name in assets::NAMES {
        let dir = TestDir::new();
        fill(&dir);
        let mut bytes = content(name);
        bytes[4321] ^= 1;
        fs::write(dir.join(name), bytes).unwrap();
        let error = Assets::open_locked(&fake_lock(), &dir).unwrap_err();
        let Error::Digest { ref path, expected, got } = error else { panic!("{error}") };
        assert_eq!(*path, dir.join(name));
        let path = path.display();
        assert_eq!(
            error.to_string(),
            format!(
                "asset `{path}` has the wrong sha256 (expected {expected}, got {got}); \
                 `isolet --assets {dir} assets fetch` replaces it",
                dir = dir.display()
            )
        );
        let report = verify_locked(&fake_lock(), &dir);
        let wrong: Vec<_> = report.files().iter().filter(|file| !file.is_ok()).collect();
        assert_eq!(wrong.len(), 1);
        assert_eq!((wrong[0].name(), wrong[0].to_string()), (name, error.to_string()));
    }
}

#[test]
fn other_size_and_absence_are_told_apart() {
    let dir = TestDir::new();
    fill(&dir);
    fs::write(dir.join(MJS), "short").unwrap();
    let path = dir.join(MJS);
    let path = path.display();
    assert_eq!(
        Assets::open_locked(&fake_lock(), &dir).unwrap_err().to_string(),
        format!(
            "asset `{path}` has the wrong size (expected 5000 bytes, got 5); \
             `isolet --assets {dir} assets fetch` replaces it",
            dir = dir.display()
        )
    );
    fs::remove_file(dir.join(MJS)).unwrap();
    assert_eq!(
        Assets::open_locked(&fake_lock(), &dir).unwrap_err().to_string(),
        format!(
            "asset `{path}` is missing; `isolet --assets {dir} assets fetch` fetches it",
            dir = dir.display()
        )
    );
    let spaced = dir.join("it's here");
    let error = Assets::open_locked(&fake_lock(), &spaced).unwrap_err().to_string();
    let quoted = spaced.display().to_string().replace('\'', r"'\''");
    assert!(error.contains(&format!("`isolet --assets '{quoted}' assets fetch`")), "{error}");
    fs::create_dir(dir.join(MJS)).unwrap();
    assert_eq!(
        Assets::open_locked(&fake_lock(), &dir).unwrap_err().to_string(),
        format!("asset `{path}` cannot be read: is a directory")
    );
}

#[test]
fn directory_that_is_not_there_is_all_missing() {
    let dir = TestDir::new();
    let report = verify_locked(&fake_lock(), &dir.join("nowhere"));
    assert_eq!(report.files().len(), assets::NAMES.len());
    for file in report.files() {
        assert!(matches!(file.problem(), Some(Error::Missing { .. })), "{file}");
    }
}
