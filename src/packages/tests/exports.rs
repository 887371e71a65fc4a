//! Tests of directories into which packages were written.

use std::fs;

use isolet_pyodide_assets::Digest;

use super::super::store::{PackageStore, StoreOptions};
use super::{directory, lock, names, put_wheel, requirements, store_without_pip, wheel_bytes};

#[test]
fn what_is_written_is_all_that_is_needed_offline() {
    let (work, wheels, to) = (directory(), directory(), directory());
    put_wheel(wheels.path(), "app", "1", "Requires-Dist: lib>=2\n");
    put_wheel(wheels.path(), "lib", "2", "Requires-Dist: base\n");
    put_wheel(wheels.path(), "base", "3", "");
    put_wheel(wheels.path(), "other", "4", "");
    let options = StoreOptions { wheels: vec![wheels.path().into()], ..StoreOptions::default() };
    let into = to.path().join("new/wheels");
    // A damaged file of the same name is replaced.
    fs::create_dir_all(&into).unwrap();
    fs::write(into.join("lib-2-py3-none-any.whl"), "damaged").unwrap();
    let written = store_without_pip(work.path(), options).export(&requirements(&["app"]), &into);
    let written: Vec<String> = written.unwrap().into_iter().map(|one| one.name).collect();
    assert_eq!(written, ["app", "base", "lib"]);
    let mut files: Vec<String> = fs::read_dir(&into)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    assert_eq!(files, ["app-1", "base-3", "lib-2"].map(|stem| format!("{stem}-py3-none-any.whl")));

    let empty = directory();
    let options = StoreOptions { wheels: vec![into], offline: true, ..StoreOptions::default() };
    let again = store_without_pip(empty.path(), options).resolve(&requirements(&["app"])).unwrap();
    assert_eq!(names(&again), ["app 1", "base 3", "lib 2"]);
}

/// With the real pip and the package index that it is configured for.
#[test]
fn what_a_native_wheel_needs_is_written_even_if_pyodides_lock_does_not_name_it() {
    let (work, files, to) = (directory(), directory(), directory());
    let bytes = wheel_bytes("isolet-native", "3", "Requires-Dist: idna<3\n", &[("n/a.py", b"")]);
    let file = "isolet_native-3-cp314-cp314-pyemscripten_2026_0_wasm32.whl";
    fs::write(files.path().join(file), &bytes).unwrap();
    let json = lock(&[("isolet-native", "n", file, Digest::of(&bytes), &[])]);
    let pyodide_packages = Some(files.path().into());
    let options = StoreOptions { pyodide_packages, ..StoreOptions::default() };
    let store = PackageStore::new(work.path().join("cache"), &json, options).unwrap();
    let resolved = store.resolve(&requirements(&["isolet-native"])).unwrap();
    assert_eq!(names(&resolved), ["isolet-native 3"]);
    let written = store.export(&requirements(&["isolet-native"]), to.path()).unwrap();
    let [idna, native] = &written[..] else { panic!("{written:?}") };
    assert_eq!((idna.name.as_str(), native.name.as_str()), ("idna", "isolet-native"));
    assert!(idna.version.starts_with("2."), "{}", idna.version);
}
