//! Tests of the union of loaded wheels.

use std::io::ErrorKind;

use isolet_pyodide_assets::Digest;

use super::super::PackageTree;
use super::open;
use crate::fs::{Tree, TreeEntry};

#[test]
fn the_files_of_all_wheels_are_there() {
    let tree = PackageTree::default();
    tree.add(&open("a", "1", &[("space/a/x.py", b"a"), ("top.py", b"t")])).unwrap();
    tree.add(&open("b", "2", &[("space/b/x.py", b"bb")])).unwrap();
    assert_eq!(tree.names("").unwrap(), ["a-1.dist-info", "b-2.dist-info", "space", "top.py"]);
    assert_eq!(tree.names("space").unwrap(), ["a", "b"]);
    assert_eq!(&*tree.bytes("space/b/x.py").unwrap(), b"bb");
    assert!(matches!(tree.entry("space/b/x.py"), Some(TreeEntry::File { size: 2, .. })));
    assert!(matches!(tree.entry("space/b"), Some(TreeEntry::Directory { .. })));
    assert!(matches!(tree.entry(""), Some(TreeEntry::Directory { .. })));
    let loaded: Vec<String> = tree.loaded().into_iter().map(|package| package.name).collect();
    assert_eq!(loaded, ["a", "b"]);
}

#[test]
fn what_is_not_there_is_not_found() {
    let tree = PackageTree::default();
    tree.add(&open("a", "1", &[("a/x.py", b"")])).unwrap();
    for path in ["b", "a/y", "a/x.py/z", "/a", "a/", "a//x.py", "./a", "../a", "a/../a", "A"] {
        assert_eq!(tree.entry(path), None, "{path}");
        assert_eq!(tree.names(path), None, "{path}");
        assert_eq!(tree.bytes(path).unwrap_err().kind(), ErrorKind::NotFound, "{path}");
    }
    assert_eq!(tree.names("a/x.py"), None);
    assert_eq!(tree.bytes("a").unwrap_err().kind(), ErrorKind::IsADirectory);
    assert_eq!(tree.bytes("").unwrap_err().kind(), ErrorKind::IsADirectory);
}

#[test]
fn another_version_of_a_loaded_package_is_refused() {
    let tree = PackageTree::default();
    let one = open("a", "1", &[]);
    tree.add(&one).unwrap();
    tree.add(&one).unwrap();
    let told = tree.add(&open("a", "2", &[])).unwrap_err().to_string();
    assert!(told.contains("a 2 (") && told.contains("1 (`a-1-"), "{told}");
    assert_eq!(tree.loaded().len(), 1);
}

#[test]
fn a_file_of_two_wheels_must_have_the_same_bytes() {
    let tree = PackageTree::default();
    tree.add(&open("a", "1", &[("space/__init__.py", b"same"), ("x", b"1")])).unwrap();
    tree.add(&open("b", "1", &[("space/__init__.py", b"same"), ("space/b.py", b"")])).unwrap();
    for (name, file) in [
        ("c", ("space/__init__.py", b"evil".as_slice())),
        ("d", ("space/__init__.py", b"longer")),
        ("e", ("x/y", b"1")),
        ("f", ("space", b"1")),
        ("g", ("a-1.dist-info/METADATA", b"Name: evil")),
    ] {
        let wheel = open(name, "1", &[("new.py", b""), file]);
        let told = tree.add(&wheel).unwrap_err().to_string();
        assert!(told.contains("differs"), "{told}");
    }
    assert_eq!(tree.entry("new.py"), None, "a refused wheel leaves nothing");
    assert_eq!(tree.loaded().len(), 2);
}

#[test]
fn only_native_modules_of_loaded_wheels_are_known() {
    let tree = PackageTree::default();
    let known = |bytes: &[u8]| tree.contains_module(Digest::of(bytes).as_bytes());
    let wheel = open("a", "1", &[("a/x.so", b"\0asm native"), ("a/x.py", b"\0asm text")]);
    let twin = open("b", "1", &[("b/y.cpython-314.so", b"\0asm other"), ("b/z.so.1", b"\0asm z")]);
    assert!(!known(b"\0asm native"));
    tree.add(&wheel).unwrap();
    assert!(known(b"\0asm native"));
    assert!(!known(b"\0asm text"));
    assert!(!known(b"\0asm other"));
    tree.add(&twin).unwrap();
    assert!(known(b"\0asm other") && known(b"\0asm z"));
    assert!(!known(b"\0asm Native"));
}
