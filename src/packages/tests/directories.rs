//! Tests of wheel directories and of Pyodide's own packages, without pip.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use isolet_pyodide_assets::{Digest, Wanted};

use super::super::PackageError;
use super::super::cache::Cache;
use super::super::directory::list;
use super::super::store::{PackageStore, StoreOptions};
use super::{directory, lock, names, put_wheel, requirements, store_without_pip, wheel_bytes};
use crate::data::error::{Error, ErrorKind};

fn resolve(wheels: &Path, texts: &[&str]) -> Result<Vec<String>, PackageError> {
    let work = directory();
    let options =
        StoreOptions { wheels: vec![wheels.to_owned()], offline: true, ..StoreOptions::default() };
    store_without_pip(work.path(), options).resolve(&requirements(texts)).map(|r| names(&r))
}

#[test]
fn the_highest_version_that_fits_is_taken_with_all_it_needs() {
    let wheels = directory();
    let at = wheels.path();
    put_wheel(at, "app", "1.0", "Requires-Dist: lib<2\nRequires-Dist: Win.Only; os_name == 'nt'\n");
    put_wheel(at, "app", "2.0", "Requires-Dist: lib (>=1)\nRequires-Dist: tool; extra == 'cli'\n");
    put_wheel(at, "app", "3.0rc1", "");
    put_wheel(at, "app", "4.0", "Requires-Python: >=3.15\n");
    put_wheel(at, "lib", "1.5", "");
    put_wheel(at, "lib", "2.5", "Requires-Dist: app\n");
    put_wheel(at, "tool", "1", "");
    let resolved = |texts: &[&str]| resolve(at, texts).unwrap();
    assert_eq!(resolved(&["app"]), ["app 2.0", "lib 2.5"]);
    assert_eq!(resolved(&["App[CLI]"]), ["app 2.0", "lib 2.5", "tool 1"]);
    assert_eq!(resolved(&["app<2"]), ["app 1.0", "lib 1.5"]);
    assert_eq!(resolved(&["app>=3.0rc1"]), ["app 3.0rc1"]);
    assert_eq!(resolved(&["app", "lib<2"]), ["app 2.0", "lib 1.5"]);
    assert_eq!(resolved(&["lib", "app<2"]), ["app 1.0", "lib 1.5"]);
    assert_eq!(resolved(&[]), Vec::<String>::new());
}

#[test]
fn what_is_missing_is_named() {
    let wheels = directory();
    put_wheel(wheels.path(), "app", "1", "Requires-Dist: lib>=2\n");
    put_wheel(wheels.path(), "lib", "1", "");
    let told = resolve(wheels.path(), &["app"]).unwrap_err().to_string();
    assert!(told.contains("lib>=2") && told.contains("app"), "{told}");
    let error = Error::from(resolve(wheels.path(), &["other"]).unwrap_err());
    assert_eq!(error.kind(), ErrorKind::Packages);
    assert!(error.to_string().contains("other") && error.hint().is_some());
    assert!(resolve(&wheels.path().join("gone"), &["app"]).is_err());
}

#[test]
fn a_broken_wheel_in_a_directory_is_told_of() {
    let wheels = directory();
    fs::write(wheels.path().join("app-1-py3-none-any.whl"), b"PK").unwrap();
    assert!(resolve(wheels.path(), &["app"]).unwrap_err().to_string().contains("app-1"));
}

#[cfg(unix)]
#[test]
fn a_fifo_in_a_directory_does_not_block() {
    let wheels = directory();
    let path = wheels.path().join("app-1-py3-none-any.whl");
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    let told = resolve(wheels.path(), &["app"]).unwrap_err().to_string();
    assert!(told.contains("regular file"), "{told}");
}

#[test]
fn a_wheel_of_another_interpreter_is_passed_over() {
    let wheels = directory();
    let at = wheels.path();
    put_wheel(at, "app", "1", "");
    fs::write(at.join("app-2-cp313-cp313-win_amd64.whl"), b"anything").unwrap();
    assert_eq!(resolve(at, &["app"]).unwrap(), ["app 1"]);
}

#[test]
fn a_dependency_by_url_is_refused() {
    let wheels = directory();
    put_wheel(wheels.path(), "app", "1", "Requires-Dist: x @ file:///x.whl\n");
    let told = resolve(wheels.path(), &["app"]).unwrap_err().to_string();
    assert!(told.contains("URL") && told.contains("app-1"), "{told}");
}

const NATIVE: &str = "numpy-2.4.6-cp314-cp314-pyemscripten_2026_0_wasm32.whl";

/// Makes a Pyodide distribution with numpy, and with pandas, which depends on it.
fn pyodide(numpy: &[u8], pandas: &[u8]) -> Vec<u8> {
    lock(&[
        ("numpy", "numpy", NATIVE, Digest::of(numpy), &[]),
        ("pandas", "pandas", "pandas-3.0.2-py3-none-any.whl", Digest::of(pandas), &["numpy"]),
    ])
}

fn files() -> (Vec<u8>, Vec<u8>) {
    let numpy = wheel_bytes("numpy", "2.4.6", "", &[("numpy/core.so", b"\0asm")]);
    (numpy, wheel_bytes("pandas", "3.0.2", "", &[("pandas/__init__.py", b"")]))
}

#[test]
fn pyodides_packages_are_taken_from_its_directory() {
    let (work, (numpy, pandas)) = (directory(), files());
    fs::write(work.path().join(NATIVE), &numpy).unwrap();
    fs::write(work.path().join("pandas-3.0.2-py3-none-any.whl"), &pandas).unwrap();
    let options = StoreOptions {
        pyodide_packages: Some(work.path().to_owned()),
        offline: true,
        ..StoreOptions::default()
    };
    let json = pyodide(&numpy, &pandas);
    let cache = work.path().join("cache");
    let store = PackageStore::new(cache.clone(), &json, options.clone()).unwrap();
    let resolved = store.resolve(&requirements(&["pandas"])).unwrap();
    assert_eq!(names(&resolved), ["numpy 2.4.6", "pandas 3.0.2"]);

    // A file that does not match the lock is not used, and nothing of it is stored.
    fs::write(work.path().join(NATIVE), b"other").unwrap();
    fs::remove_dir_all(&cache).unwrap();
    let store = PackageStore::new(cache.clone(), &json, options).unwrap();
    let told = store.resolve(&requirements(&["numpy"])).unwrap_err().to_string();
    assert!(told.contains(&Digest::of(&numpy).to_string()), "{told}");
    assert!(!cache.join("wheels").exists());
}

#[test]
fn offline_nothing_is_fetched() {
    let (work, (numpy, pandas)) = (directory(), files());
    let fetches = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&fetches);
    let options = StoreOptions {
        fetch: Some(Arc::new(move |_: &[Wanted], _: &Path| {
            counter.fetch_add(1, Ordering::SeqCst);
            Ok(())
        })),
        offline: true,
        ..StoreOptions::default()
    };
    let store = PackageStore::new(work.path().into(), &pyodide(&numpy, &pandas), options).unwrap();
    let error = store.resolve(&requirements(&["pandas"])).unwrap_err();
    assert!(error.to_string().contains("pandas-3.0.2-py3-none-any.whl"), "{error}");
    assert!(Error::from(error).hint().unwrap().contains("pyodide_packages"));
    assert_eq!(fetches.load(Ordering::SeqCst), 0);
}

#[test]
fn offline_a_version_that_does_not_fit_is_told_with_the_wanted_one() {
    let wheels = directory();
    put_wheel(wheels.path(), "sympy", "1.14.0", "Requires-Dist: mpmath (<1.4,>=1.1.0)\n");
    put_wheel(wheels.path(), "mpmath", "1.4.1", "");
    let told = resolve(wheels.path(), &["sympy"]).unwrap_err().to_string();
    assert_eq!(
        told,
        "mpmath is not available: found no wheel for `mpmath>=1.1.0,<1.4`, which sympy needs (only \
         mpmath 1.4.1), and `Permissions::offline_packages` forbids downloads"
    );
}

#[test]
fn a_lock_for_another_interpreter_is_refused() {
    let work = directory();
    let text = String::from_utf8(lock(&[])).unwrap();
    for json in [text.replace("3.14.2", "3.13.2"), text.replace("2026_0", "2025_0"), "{}".into()] {
        let made = PackageStore::new(work.path().into(), json.as_bytes(), StoreOptions::default());
        assert!(made.is_err());
    }
}

#[test]
fn an_import_is_matched_with_the_names_that_may_have_it() {
    let (work, wheels) = (directory(), directory());
    let bytes = wheel_bytes("python-slugify", "1", "", &[("slugify/__init__.py", b"")]);
    fs::write(wheels.path().join("python_slugify-1-py3-none-any.whl"), bytes).unwrap();
    let json = lock(&[(
        "beautifulsoup4",
        "bs4",
        "beautifulsoup4-4-py3-none-any.whl",
        Digest::of(b""),
        &[],
    )]);
    let options = StoreOptions { wheels: vec![wheels.path().into()], ..StoreOptions::default() };
    let cache = work.path().join("cache");
    let store = PackageStore::new(cache.clone(), &json, options).unwrap();
    assert_eq!(store.names_for_import("bs4"), ["beautifulsoup4", "bs4"]);
    assert_eq!(store.names_for_import("bs4.element"), ["beautifulsoup4", "bs4"]);
    assert_eq!(store.names_for_import("slugify"), ["python-slugify", "slugify"]);
    assert_eq!(store.names_for_import("typing_extensions"), ["typing-extensions"]);
    assert_eq!(store.names_for_import("../x"), Vec::<String>::new());

    let allowed = requirements(&["rich", "beautifulsoup4<5"]);
    let found = store.allowed_for_import("bs4", &allowed).unwrap();
    assert_eq!(found.to_string(), "beautifulsoup4<5");
    assert_eq!(store.allowed_for_import("slugify", &allowed), None);

    // Another store knows what is recorded in the cache.
    store.resolve(&requirements(&["python-slugify"])).unwrap();
    let other = PackageStore::new(cache, &json, StoreOptions::default()).unwrap();
    assert_eq!(other.names_for_import("slugify"), ["python-slugify", "slugify"]);
}

#[test]
fn a_wheel_that_has_changed_since_it_was_listed_is_read_again() {
    let (work, wheels) = (directory(), directory());
    let path = wheels.path().join("one-1-py3-none-any.whl");
    let cache = Cache::new(work.path().join("cache"));
    let listed = || list(&[wheels.path().into()], &cache).unwrap();
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_mins(1);
    let write = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_modified(long_ago).unwrap();
    };
    write(b"first");
    let first = [("one-1-py3-none-any.whl".to_owned(), Digest::of(b"first"))];
    assert_eq!(listed(), first);
    assert_eq!(cache.listed().len(), 1);
    assert_eq!(listed(), first);
    // The same length and time.
    write(b"other");
    assert_eq!(listed()[0].1, Digest::of(b"other"));
    // One that was written just now may be written again without a difference in its time.
    fs::write(wheels.path().join("two-1-py3-none-any.whl"), b"two").unwrap();
    assert_eq!(listed().len(), 2);
    assert_eq!(cache.listed().len(), 1);
}

#[test]
fn a_module_of_what_an_allowed_package_needs_may_be_imported_first() {
    let (work, wheels) = (directory(), directory());
    let write = |name: &str, metadata: &str, module: &str| {
        let bytes = wheel_bytes(name, "1", metadata, &[(module, b"")]);
        let file = format!("{}-1-py3-none-any.whl", name.replace('-', "_"));
        fs::write(wheels.path().join(file), bytes).unwrap();
    };
    write("app", "Requires-Dist: python-lib\n", "app.py");
    write("python-lib", "Requires-Dist: base\n", "lib/__init__.py");
    write("base", "", "foundation.py");
    write("other", "", "other.py");
    let options = StoreOptions { wheels: vec![wheels.path().into()], ..StoreOptions::default() };
    let store = store_without_pip(work.path(), options);
    let allowed = requirements(&["app"]);
    let needed = |module| store.is_needed_by(module, &allowed);
    // From the metadata of the wheels, and then from the recorded resolution.
    for _ in 0..2 {
        assert!(needed("lib") && needed("lib.part") && needed("foundation"));
        assert!(!needed("other") && !needed("nowhere") && !needed(""));
        store.resolve(&allowed).unwrap();
    }
    // A package of another name than its module.
    let allowed = requirements(&["python-lib", "app"]);
    assert_eq!(store.allowed_for_import("lib", &allowed).unwrap().name(), "python-lib");
}
