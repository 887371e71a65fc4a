//! Tests with hostile archives.

use std::io::{Cursor, Write};

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::super::archive::Archive;
use super::zip;

fn told(bytes: Vec<u8>) -> String {
    match Archive::open(bytes.into()) {
        Ok(archive) => panic!("{:?} are taken", archive.files()),
        Err(told) => told,
    }
}

/// Replaces every occurrence of some bytes by others of the same length.
fn forged(mut bytes: Vec<u8>, from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut at = 0;
    while let Some(found) = bytes[at..].windows(from.len()).position(|window| window == from) {
        bytes[at + found..at + found + to.len()].copy_from_slice(to);
        at += found + to.len();
    }
    assert_ne!(at, 0, "nothing to forge");
    bytes
}

/// Returns the position of the first entry of the central directory.
fn central(bytes: &[u8]) -> usize {
    bytes.windows(4).position(|window| window == b"PK\x01\x02").unwrap()
}

#[test]
fn a_plain_archive_is_read() {
    let archive = Archive::open(zip(&[("a/b.py", b"x = 1"), ("c", b"")]).into()).unwrap();
    let paths: Vec<&str> = archive.files().iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["a/b.py", "c"]);
    assert_eq!(&*archive.read(&archive.files()[0]).unwrap(), b"x = 1");
}

#[test]
fn a_path_that_leads_elsewhere_is_refused() {
    for (from, to) in [
        ("aaaaaaaa", "../../xx"),
        ("aaaaaaaa", "/xxxxxxx"),
        ("aaaaaaaa", "x/../../"),
        ("aaaaaaaa", "x/./xxxx"),
        ("aaaaaaaa", "x//xxxxx"),
        ("aaaaaaaa", "xx\\..\\xx"),
        ("aaaaaaaa", "C:/xxxxx"),
        ("aaaaaaaa", "C:xxxxxx"),
        ("aaaaaaaa", "xxx\0.pyx"),
        ("aaaaaaaa", "xxx\n.pyx"),
    ] {
        let told = told(forged(zip(&[(from, b"x")]), from.as_bytes(), to.as_bytes()));
        assert!(told.contains("path"), "{to:?}: {told}");
    }
    let told = told(forged(zip(&[("aaaa", b"x")]), b"aaaa", b"x\xff\xffx"));
    assert!(told.contains("UTF-8"), "{told}");
}

#[test]
fn links_and_devices_are_refused() {
    for mode in [0o120_777_u32, 0o020_666, 0o060_666, 0o010_666, 0o140_777, 0o040_755] {
        let mut bytes = zip(&[("x", b"/etc/passwd")]);
        let at = central(&bytes) + 38;
        bytes[at..at + 4].copy_from_slice(&(mode << 16).to_le_bytes());
        let told = told(bytes);
        assert!(told.contains("link or a device"), "{mode:o}: {told}");
    }
}

#[test]
fn names_that_differ_only_in_case_are_refused() {
    assert!(told(zip(&[("a/X.py", b"1"), ("a/x.py", b"2")])).contains("but for case"));
    assert!(told(zip(&[("a", b"1"), ("a/b", b"2")])).contains("both a file and a directory"));
    let twice = forged(zip(&[("aaaa", b"1"), ("bbbb", b"2")]), b"bbbb", b"aaaa");
    assert!(told(twice).contains("duplicate"));
}

#[test]
fn a_file_that_inflates_too_much_is_refused() {
    let zeros = vec![0; 8 << 20];
    let told = told(zip(&[("x", &zeros)]));
    assert!(told.contains("limit 200 times") && told.contains("8388608"), "{told}");
    assert!(Archive::open(zip(&[("x", &zeros[..1 << 20])]).into()).is_ok());
}

#[test]
fn more_than_the_archive_says_is_not_inflated() {
    let content = vec![b'x'; 4096];
    let mut bytes = zip(&[("x", &content)]);
    let size = 4096_u32.to_le_bytes();
    bytes = forged(bytes, &size, &16_u32.to_le_bytes());
    let archive = Archive::open(bytes.into()).unwrap();
    let error = archive.read(&archive.files()[0]).unwrap_err();
    assert!(error.to_string().contains("larger than its declared"), "{error}");
}

#[test]
fn an_archive_that_says_it_is_huge_is_refused() {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    // Incompressible enough to pass the check of the ratio: the sizes are forged afterwards.
    for index in 0..3 {
        zip.start_file(format!("file{index}"), SimpleFileOptions::default()).unwrap();
        zip.write_all(b"abc").unwrap();
    }
    let mut bytes = zip.finish().unwrap().into_inner();
    let mut at = central(&bytes);
    for _ in 0..3 {
        bytes[at + 20..at + 28].copy_from_slice(&[0, 0, 0, 0x20, 0, 0, 0, 0x20]);
        at += 46 + 5;
    }
    // Its entries would overlap, so the error may name either rule.
    let told = told(bytes);
    assert!(told.contains("sound") || told.contains("unpacked"), "{told}");
}

#[test]
fn too_many_entries_are_refused_before_they_are_read() {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for index in 0..20_001 {
        zip.start_file(format!("{index}"), SimpleFileOptions::default()).unwrap();
    }
    let told = told(zip.finish().unwrap().into_inner());
    assert!(told.contains("limit 20000 entries, has 20001"), "{told}");
}

#[test]
fn a_deep_or_long_path_is_refused() {
    let deep = vec!["d"; 40].join("/");
    let long = "x".repeat(2000);
    for path in [deep, long] {
        assert!(told(zip(&[(&path, b"x")])).contains("limit"));
    }
}

#[test]
fn an_archive_with_two_meanings_is_refused() {
    let (inner, outer) = (zip(&[("a.py", b"good")]), zip(&[("b.py", b"evil")]));
    let joined = [inner.clone(), outer].concat();
    told(joined);
    let prefixed = [b"#!/bin/sh\n".as_slice(), &inner].concat();
    told(prefixed);
    let followed = [inner.as_slice(), b"trailing"].concat();
    told(followed);
    // The local header of a file has a different name than the directory.
    let mut renamed = inner;
    let at = renamed.windows(4).position(|window| window == b"a.py").unwrap();
    renamed[at] = b'z';
    assert!(told(renamed).contains("inconsisten"));
}

#[test]
fn encrypted_files_are_refused() {
    let mut bytes = zip(&[("x", b"x")]);
    let at = central(&bytes);
    bytes[at + 8] |= 1;
    bytes[6] |= 1;
    told(bytes);
}

#[test]
fn no_cut_or_flipped_archive_panics() {
    let bytes = zip(&[("a/b.py", b"x = 1\n"), ("a-1.dist-info/METADATA", b"Name: a\n")]);
    for length in 0..bytes.len() {
        assert!(Archive::open(bytes[..length].into()).is_err());
    }
    for at in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[at / 8] ^= 1 << (at % 8);
        if let Ok(archive) = Archive::open(flipped.into()) {
            for file in archive.files() {
                let _ = archive.read(file);
            }
        }
    }
}
