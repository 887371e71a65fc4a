//! Tests of wheels: their names, tags, metadata and files.

use std::sync::Arc;

use super::super::wheel_name::WheelName;
use super::super::{LoadedPackage, Wheel};
use super::{file_name, open, wheel_bytes, zip};

fn told(file_name: &str, bytes: Vec<u8>) -> String {
    Wheel::open(file_name, bytes.into()).unwrap_err().to_string()
}

#[test]
fn only_tags_of_the_guests_interpreter_fit() {
    let rank = |tags: &str| format!("a-1-{tags}.whl").parse::<WheelName>().unwrap().rank;
    let platform = "pyemscripten_2026_0_wasm32";
    let mut last = u32::MAX;
    for tags in [
        format!("cp314-cp314-{platform}"),
        format!("cp314-abi3-{platform}"),
        format!("cp37-abi3-{platform}"),
        format!("py3-none-{platform}"),
        "py2.py3-none-any".to_owned(),
    ] {
        let rank = rank(&tags).unwrap();
        assert!(rank < last, "{tags}");
        last = rank;
    }
    for tags in [
        "cp314-cp314-manylinux_2_17_x86_64",
        "cp313-cp313-pyemscripten_2026_0_wasm32",
        "cp315-abi3-pyemscripten_2026_0_wasm32",
        "cp314-cp314t-pyemscripten_2026_0_wasm32",
        "cp314-cp314-pyodide_2025_0_wasm32",
        "cp314-cp314-pyemscripten_2025_0_wasm32",
        "py2-none-any",
        "py315-none-any",
        "cp314-cp314-any",
    ] {
        assert_eq!(rank(tags), None, "{tags}");
    }
}

#[test]
fn a_name_that_is_not_of_a_wheel_is_refused() {
    for name in [
        "a.whl",
        "a-1.tar.gz",
        "../a-1-py3-none-any.whl",
        "a/b-1-py3-none-any.whl",
        "a-1-py3-none-any.whl/",
        "a-x-py3-none-any.whl",
        "-1-py3-none-any.whl",
        "a-1-b-py3-none-any.whl",
        "a-1-2-3-py3-none-any.whl",
        "a-1-py3-none-any.whl\0",
        "a b-1-py3-none-any.whl",
    ] {
        assert!(name.parse::<WheelName>().is_err(), "{name:?}");
    }
    assert!("A_b-1.0+local-2build-py3-none-any.whl".parse::<WheelName>().is_ok());
}

#[test]
fn a_wheel_for_another_interpreter_is_refused() {
    let told = told("a-1-cp313-cp313-win_amd64.whl", wheel_bytes("a", "1", "", &[]));
    assert!(told.contains("another interpreter"), "{told}");
}

#[test]
fn a_wheel_is_what_its_name_says() {
    assert!(told(&file_name("a", "2"), wheel_bytes("a", "1", "", &[])).contains("a 1"));
    assert!(told(&file_name("a", "1"), wheel_bytes("b", "1", "", &[])).contains("METADATA"));
    assert!(told(&file_name("a", "1"), zip(&[("a.py", b"")])).contains("METADATA"));
    let twice = [("A-1.dist-info/METADATA", b"Name: a\nVersion: 1\n\n".as_slice())];
    assert!(told(&file_name("a", "1"), wheel_bytes("a", "1", "", &twice)).contains("case"));
}

#[test]
fn modules_at_the_top_are_its_imports() {
    let wheel = open(
        "my-pkg",
        "1",
        &[
            ("pkg/__init__.py", b""),
            ("pkg/data.txt", b""),
            ("single.py", b""),
            ("native.cpython-314-wasm32-emscripten.so", b""),
            ("space/part/deep.py", b""),
            ("docs/readme.txt", b""),
            ("my_pkg.libs/libx.so", b""),
            ("my_pkg-1.data/purelib/mapped/__init__.py", b""),
            ("my_pkg-1.data/scripts/run.py", b""),
        ],
    );
    let imports: Vec<&str> = wheel.imports().iter().map(String::as_str).collect();
    assert_eq!(imports, ["mapped", "native", "pkg", "single", "space"]);
}

#[test]
fn the_data_directory_goes_where_an_installer_puts_it() {
    let wheel = open(
        "a",
        "1",
        &[
            ("a-1.data/purelib/x.py", b"x"),
            ("a-1.data/platlib/y/z.py", b"z"),
            ("a-1.data/scripts/tool", b""),
            ("a-1.data/headers/a.h", b""),
            ("a-1.data/data/etc/a.conf", b""),
            ("b-1.data/purelib/other.py", b""),
        ],
    );
    let paths: Vec<&str> = wheel.files().iter().map(|file| file.path.as_str()).collect();
    let (tag, paths) = paths.split_last().unwrap();
    assert_eq!(*tag, "a-1.dist-info/WHEEL");
    assert_eq!(paths, ["a-1.dist-info/METADATA", "x.py", "y/z.py", "b-1.data/purelib/other.py"]);
    assert_eq!(&*wheel.read(2).unwrap(), b"z");
    let twice = [("x.py", b"1".as_slice()), ("a-1.data/purelib/X.py", b"2")];
    assert!(told(&file_name("a", "1"), wheel_bytes("a", "1", "", &twice)).contains("two of"));
}

#[test]
fn the_data_directory_hides_no_odd_path() {
    let both = [("x", b"1".as_slice()), ("a-1.data/purelib/x/y.py", b"2")];
    let clash = told(&file_name("a", "1"), wheel_bytes("a", "1", "", &both));
    assert!(clash.contains("`x` is both a file and a directory"), "{clash}");
    let drive = [("a-1.data/platlib/C:/x.py", b"".as_slice())];
    let drive = told(&file_name("a", "1"), wheel_bytes("a", "1", "", &drive));
    assert!(drive.contains("not plain and relative"), "{drive}");
}

#[test]
fn a_file_read_again_is_the_same_memory() {
    let wheel = open("a", "1", &[("x.py", b"x")]);
    assert!(Arc::ptr_eq(&wheel.read(1).unwrap(), &wheel.read(1).unwrap()));
    assert!(wheel.read(9).is_err());
}

#[test]
fn what_is_loaded_is_named_with_its_digest() {
    let wheel = open("My.Pkg", "1.0", &[]);
    let loaded = LoadedPackage::of(&wheel);
    assert_eq!((loaded.name.as_str(), loaded.version.as_str()), ("my-pkg", "1.0"));
    assert_eq!(loaded.sha256.len(), 64);
}

#[test]
fn a_wheel_with_endless_metadata_is_refused() {
    let header = "Requires-Dist: x\n".repeat(6000);
    let dependencies = told(&file_name("a", "1"), wheel_bytes("a", "1", &header, &[]));
    assert!(dependencies.contains("limit 5000"), "{dependencies}");
    // A description that compresses as well as is allowed.
    let description: Vec<u8> = (0..(17 << 20) / 1000)
        .flat_map(|at: u32| {
            [&at.wrapping_mul(0x9e37_79b9).to_le_bytes()[..], &[b'x'; 996]].concat()
        })
        .collect();
    let header = b"Name: a\nVersion: 1\n\n".as_slice();
    let text = [header, &description].concat();
    let told = told(&file_name("a", "1"), zip(&[("a-1.dist-info/METADATA", &text)]));
    assert!(told.contains("limit 16777216 bytes of METADATA"), "{told}");
}
