//! Tests with the real pip and the package index that it is configured for.

use std::path::{Path, PathBuf};

use isolet_pyodide_assets::Digest;

use super::super::PackageTree;
use super::super::store::{PackageStore, StoreOptions};
use super::{directory, lock, names, put_wheel, requirements, wheel_bytes};
use crate::fs::Tree;

fn store(cache: &Path, options: StoreOptions) -> PackageStore {
    PackageStore::new(cache.join("cache"), &lock(&[]), options).unwrap()
}

#[test]
fn packages_are_resolved_once_and_then_used_offline() {
    let work = directory();
    let wanted = requirements(&[
        "pydantic",
        "jiter",
        "msgspec",
        "rich",
        "beautifulsoup4",
        "requests",
        "httpx",
    ]);
    let online = store(work.path(), StoreOptions::default()).resolve(&wanted).unwrap();
    let has = |name: &str| online.wheels().iter().find(|wheel| wheel.name() == name).unwrap();
    for name in ["pydantic", "msgspec", "rich", "beautifulsoup4", "requests", "httpx", "certifi"] {
        has(name);
    }
    for name in ["pydantic-core", "jiter"] {
        let wheel = has(name);
        assert!(wheel.file_name().ends_with("-cp314-cp314-pyemscripten_2026_0_wasm32.whl"));
        assert!(!wheel.modules().unwrap().is_empty());
    }

    let python = Some(PathBuf::from("no-such-python"));
    let offline = store(work.path(), StoreOptions { python, ..StoreOptions::default() });
    let again = offline.resolve(&wanted).unwrap();
    assert_eq!(names(&again), names(&online));
    assert_eq!(offline.names_for_import("bs4"), ["beautifulsoup4", "bs4"]);

    let tree = PackageTree::default();
    for wheel in again.wheels() {
        tree.add(wheel).unwrap();
    }
    assert!(tree.bytes("pydantic/__init__.py").unwrap().len() > 1000);
    assert_eq!(tree.loaded().len(), again.wheels().len());
    let core = tree.names("pydantic_core").unwrap();
    let module = core.iter().find(|name| name.contains(".so")).unwrap();
    let bytes = tree.bytes(&format!("pydantic_core/{module}")).unwrap();
    assert!(bytes.starts_with(b"\0asm"));
    assert!(tree.contains_module(Digest::of(&bytes).as_bytes()));
}

#[test]
fn a_package_without_a_wheel_is_refused_and_not_built() {
    let work = directory();
    let store = store(work.path(), StoreOptions::default());
    let told = store.resolve(&requirements(&["uwsgi"])).unwrap_err().to_string();
    assert!(told.contains("uwsgi"), "{told}");
}

#[test]
fn dependencies_are_those_of_the_guest_and_not_of_the_host() {
    let (work, wheels) = (directory(), directory());
    let metadata = "Requires-Dist: idna; sys_platform == 'emscripten' \
        and python_version >= '3.14'\n\
        Requires-Dist: uwsgi; sys_platform != 'emscripten'\n";
    put_wheel(wheels.path(), "private-app", "1", metadata);
    let options = StoreOptions { wheels: vec![wheels.path().into()], ..StoreOptions::default() };
    let resolved = store(work.path(), options).resolve(&requirements(&["private-app"])).unwrap();
    let found: Vec<&str> = resolved.wheels().iter().map(|wheel| wheel.name()).collect();
    assert_eq!(found, ["idna", "private-app"]);
}

#[test]
fn a_wheel_of_a_directory_stands_before_the_index() {
    let (work, wheels) = (directory(), directory());
    put_wheel(wheels.path(), "certifi", "2023.7.22", "");
    let options = StoreOptions { wheels: vec![wheels.path().into()], ..StoreOptions::default() };
    let resolved = store(work.path(), options).resolve(&requirements(&["requests"])).unwrap();
    let found = resolved.wheels().iter().find(|wheel| wheel.name() == "certifi").unwrap();
    assert_eq!(found.version().to_string(), "2023.7.22");
}

#[test]
fn a_dependency_comes_from_the_index_only_if_no_wheel_of_a_directory_fits() {
    let (work, wheels) = (directory(), directory());
    let metadata = "Requires-Dist: idna<3\nRequires-Dist: certifi\nRequires-Dist: six>=1.10\n";
    put_wheel(wheels.path(), "private-app", "1", metadata);
    put_wheel(wheels.path(), "idna", "3.99", "");
    put_wheel(wheels.path(), "certifi", "2023.7.22", "");
    put_wheel(wheels.path(), "six", "1.9", "");
    put_wheel(wheels.path(), "six", "1.11+own", "");
    let options = StoreOptions { wheels: vec![wheels.path().into()], ..StoreOptions::default() };
    let store = store(work.path(), options);
    let resolved = names(&store.resolve(&requirements(&["private-app"])).unwrap());
    let [certifi, idna, app, six] = &resolved[..] else { panic!("{resolved:?}") };
    assert_eq!([certifi, app, six], ["certifi 2023.7.22", "private-app 1", "six 1.11+own"]);
    assert!(idna.starts_with("idna 2."), "{idna}");
    // What is asked for is the owner's, or an error.
    let told = store.resolve(&requirements(&["private-app", "idna"])).unwrap_err().to_string();
    assert!(told.contains("idna"), "{told}");
}

#[test]
fn a_package_that_only_pyodide_has_comes_from_there() {
    let (work, wheels) = (directory(), directory());
    put_wheel(wheels.path(), "private-app", "1", "Requires-Dist: numpy>=2\nRequires-Dist: idna\n");
    let file = "numpy-2.4.6-cp314-cp314-pyemscripten_2026_0_wasm32.whl";
    let bytes = wheel_bytes("numpy", "2.4.6", "", &[("numpy/core.so", b"\0asm")]);
    let json = lock(&[("numpy", "numpy", file, Digest::of(&bytes), &[])]);
    let options = StoreOptions { wheels: vec![wheels.path().into()], ..StoreOptions::default() };
    let cache = work.path().join("cache");
    let wanted = requirements(&["private-app"]);

    let store = PackageStore::new(cache.clone(), &json, options.clone()).unwrap();
    let told = store.resolve(&wanted).unwrap_err().to_string();
    assert!(told.starts_with("numpy is not available") && told.contains(file), "{told}");

    std::fs::write(work.path().join(file), bytes).unwrap();
    let options = StoreOptions { pyodide_packages: Some(work.path().into()), ..options };
    let store = PackageStore::new(cache, &json, options).unwrap();
    let resolved = names(&store.resolve(&wanted).unwrap());
    assert!(resolved.contains(&"numpy 2.4.6".to_owned()), "{resolved:?}");
    assert!(resolved.iter().any(|name| name.starts_with("idna ")), "{resolved:?}");
}

#[test]
fn a_wheel_of_the_index_stands_before_pyodides_of_the_same_version() {
    let work = directory();
    let file = "jiter-0.19.0-cp314-cp314-pyemscripten_2026_0_wasm32.whl";
    let pyodides = wheel_bytes("jiter", "0.19.0", "", &[]);
    let json = lock(&[("jiter", "jiter", file, Digest::of(&pyodides), &[])]);
    std::fs::write(work.path().join(file), &pyodides).unwrap();
    let options =
        StoreOptions { pyodide_packages: Some(work.path().into()), ..StoreOptions::default() };
    let store = PackageStore::new(work.path().join("cache"), &json, options).unwrap();
    let resolved = store.resolve(&requirements(&["jiter==0.19.0"])).unwrap();
    assert_ne!(resolved.wheels()[0].digest(), Digest::of(&pyodides));
}

#[test]
fn a_package_for_the_guests_python_is_resolved_whatever_python_runs_pip() {
    let (work, wheels) = (directory(), directory());
    let metadata = "Requires-Python: ==3.14.*\nRequires-Dist: idna\n";
    put_wheel(wheels.path(), "newer-app", "2", metadata);
    put_wheel(wheels.path(), "newer-app", "1", "Requires-Python: <3.14\nRequires-Dist: idna\n");
    let options = StoreOptions { wheels: vec![wheels.path().into()], ..StoreOptions::default() };
    let resolved = store(work.path(), options).resolve(&requirements(&["newer-app"])).unwrap();
    assert_eq!(names(&resolved).last().unwrap(), "newer-app 2");
}

#[test]
fn pandas_comes_with_time_zones() {
    let work = directory();
    let file = "pandas-3.0.2-cp314-cp314-pyemscripten_2026_0_wasm32.whl";
    let bytes = wheel_bytes("pandas", "3.0.2", "", &[("pandas/core.so", b"\0asm")]);
    let json = lock(&[("pandas", "pandas", file, Digest::of(&bytes), &[])]);
    std::fs::write(work.path().join(file), bytes).unwrap();
    let pyodide_packages = Some(work.path().into());
    let options = StoreOptions { pyodide_packages, ..StoreOptions::default() };
    let store = PackageStore::new(work.path().join("cache"), &json, options).unwrap();
    let resolved = store.resolve(&requirements(&["pandas==3.0.2"])).unwrap();
    let found: Vec<&str> = resolved.wheels().iter().map(|wheel| wheel.name()).collect();
    assert_eq!(found, ["pandas", "tzdata"]);
}

#[test]
fn a_package_whose_accelerator_nobody_has_is_taken_without_it() {
    let work = directory();
    let digest = Digest::of(b"a file that is not at hand");
    let native = |name: &str| format!("{name}-cp314-cp314-pyemscripten_2026_0_wasm32.whl");
    let (markupsafe, numpy) = (native("markupsafe-3.0.3"), native("numpy-2.4.6"));
    let packages = [
        ("markupsafe", "markupsafe", markupsafe.as_str(), digest, &[][..]),
        ("numpy", "numpy", numpy.as_str(), digest, &[]),
    ];
    let cache = work.path().join("cache");
    let store = PackageStore::new(cache, &lock(&packages), StoreOptions::default()).unwrap();
    let resolved = store.resolve(&requirements(&["markupsafe==3.0.3"])).unwrap();
    let [wheel] = resolved.wheels() else { panic!("{resolved:?}") };
    assert_eq!(wheel.file_name(), "markupsafe-3.0.3-0pure-py3-none-any.whl");
    let tree = PackageTree::default();
    tree.add(wheel).unwrap();
    let names = tree.names("markupsafe").unwrap();
    assert!(names.contains(&"_native.py".to_owned()), "{names:?}");
    assert!(names.iter().all(|name| !name.contains(".so")), "{names:?}");
    // One that does nothing without its native code is still missing.
    let error = store.resolve(&requirements(&["numpy==2.4.6"])).unwrap_err().to_string();
    assert!(error.contains("`numpy-2.4.6-cp314"), "{error}");
}
