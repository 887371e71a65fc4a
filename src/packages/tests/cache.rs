//! Tests of the cache: verified at every use, never partially written, shared by processes.

use std::fs;
use std::path::{Path, PathBuf};

use isolet_pyodide_assets::Digest;

use super::super::PackageError;
use super::super::cache::Cache;
use super::super::store::StoreOptions;
use super::{directory, names, put_wheel, requirements, store_without_pip};

fn all_files(root: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(root).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(all_files(&path)) } else { files.push(path) }
    }
    files
}

#[test]
fn bytes_with_another_digest_are_not_kept() {
    let work = directory();
    let cache = Cache::new(work.path().join("cache"));
    let wanted = Digest::of(b"wanted");
    let told = cache.put_wheel("a-1-py3-none-any.whl", wanted, b"other").unwrap_err().to_string();
    assert!(told.contains(&wanted.to_string()));
    assert!(told.contains(&Digest::of(b"other").to_string()));
    assert_eq!(all_files(work.path()), Vec::<PathBuf>::new());
}

#[test]
fn a_wheel_with_one_flipped_bit_is_refused_and_removed() {
    let work = directory();
    let wheels = work.path().join("wheels");
    fs::create_dir(&wheels).unwrap();
    put_wheel(&wheels, "a", "1", "");
    let options = StoreOptions { wheels: vec![wheels.clone()], ..StoreOptions::default() };
    let wanted = requirements(&["a"]);
    store_without_pip(work.path(), options.clone()).resolve(&wanted).unwrap();

    let cached = all_files(&work.path().join("cache/wheels")).remove(0);
    let mut bytes = fs::read(&cached).unwrap();
    bytes[60] ^= 1;
    fs::write(&cached, &bytes).unwrap();
    let error = store_without_pip(work.path(), options.clone()).resolve(&wanted).unwrap_err();
    assert!(matches!(error, PackageError::Digest { .. }), "{error}");
    assert!(error.to_string().contains(&Digest::of(&bytes).to_string()));
    assert!(!cached.exists());

    let again = store_without_pip(work.path(), options).resolve(&wanted).unwrap();
    assert_eq!(names(&again), ["a 1"]);
}

#[test]
fn a_name_that_leads_elsewhere_is_refused() {
    let work = directory();
    let cache = Cache::new(work.path().join("cache"));
    for name in ["../../x-1-py3-none-any.whl", "/x-1-py3-none-any.whl", ".."] {
        assert!(cache.put_wheel(name, Digest::of(b""), b"").is_err());
        assert!(cache.wheel(name, Digest::of(b"")).is_err());
    }
    assert_eq!(all_files(work.path()), Vec::<PathBuf>::new());
}

#[test]
fn a_record_that_is_nonsense_counts_as_none() {
    let work = directory();
    let cache = Cache::new(work.path().to_owned());
    let key = Digest::of(b"key");
    fs::create_dir(work.path().join("resolutions")).unwrap();
    let path = work.path().join("resolutions").join(format!("{key}.json"));
    for text in [
        "",
        "{}",
        "[]",
        r#"{"form": 2, "wheels": []}"#,
        r#"{"form": 1, "wheels": [{"file_name": "a"}]}"#,
        &"[".repeat(100_000),
    ] {
        fs::write(&path, text).unwrap();
        assert!(cache.record(key).is_none());
        assert!(cache.imports().is_empty());
    }
    let evil = r#"{"form":1,"wheels":[
        {"file_name":"../../../etc/passwd","sha256":"x","imports":["os"]}
    ]}"#;
    fs::write(&path, evil).unwrap();
    assert!(cache.record(key).unwrap().wheels[0].checked().is_none());
    assert!(cache.imports().is_empty());
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_the_cache() {
    use std::os::unix::fs::PermissionsExt;
    let work = directory();
    let root = work.path().join("cache");
    Cache::new(root.clone()).put_wheel("a-1-py3-none-any.whl", Digest::of(b"x"), b"x").unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&root), mode(&all_files(&root)[0])), (0o700, 0o600));
}

#[test]
fn stores_that_work_at_once_agree() {
    let work = directory();
    let wheels = work.path().join("wheels");
    fs::create_dir(&wheels).unwrap();
    put_wheel(&wheels, "a", "1", "Requires-Dist: b\n");
    put_wheel(&wheels, "b", "1", "");
    let wanted = requirements(&["a"]);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let options =
                    StoreOptions { wheels: vec![wheels.clone()], ..StoreOptions::default() };
                let store = store_without_pip(work.path(), options);
                for _ in 0..5 {
                    assert_eq!(names(&store.resolve(&wanted).unwrap()), ["a 1", "b 1"]);
                }
            });
        }
    });
    assert_eq!(all_files(&work.path().join("cache/wheels")).len(), 2);
    assert_eq!(all_files(&work.path().join("cache/work")).len(), 0);
}

#[test]
fn what_was_resolved_is_used_again_without_its_source() {
    let work = directory();
    let wheels = work.path().join("wheels");
    fs::create_dir(&wheels).unwrap();
    let path = put_wheel(&wheels, "my-pkg", "1", "");
    let options = StoreOptions { wheels: vec![wheels], ..StoreOptions::default() };
    let store = store_without_pip(work.path(), options);
    let wanted = requirements(&["my-pkg"]);
    let first = store.resolve(&wanted).unwrap();
    drop(fs::remove_file(path));
    let second = store.resolve(&wanted).unwrap();
    assert_eq!(first.wheels()[0].digest(), second.wheels()[0].digest());
}
