//! The little that a plan reads of WebAssembly modules and zip archives: names of exports, and the
//! files with their checksums.

use std::collections::{BTreeMap, BTreeSet};

/// The section of a module that lists its exports.
const EXPORTS: u8 = 7;

/// Returns the names of what a WebAssembly module exports; `None` if it is no such module.
pub(super) fn exports(wasm: &[u8]) -> Option<BTreeSet<String>> {
    let mut rest = wasm.strip_prefix(b"\0asm\x01\0\0\0")?;
    while let Some((&id, body)) = rest.split_first() {
        rest = body;
        let length = number(&mut rest)?;
        let mut section = rest.get(..length)?;
        rest = &rest[length..];
        if id != EXPORTS {
            continue;
        }
        let mut names = BTreeSet::new();
        for _ in 0..number(&mut section)? {
            let length = number(&mut section)?;
            names.insert(String::from_utf8(section.get(..length)?.to_vec()).ok()?);
            // Its kind is one byte.
            section = section.get(length + 1..)?;
            number(&mut section)?;
        }
        return Some(names);
    }
    Some(BTreeSet::new())
}

/// Takes a number of 32 bits in LEB128 from the start.
fn number(bytes: &mut &[u8]) -> Option<usize> {
    let mut value = 0;
    for shift in [0, 7, 14, 21, 28] {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= usize::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Returns the files of a zip archive with their checksums; `None` if it is no such archive.
pub(super) fn members(zip: &[u8]) -> Option<BTreeMap<String, u32>> {
    let end = zip.windows(4).rposition(|found| found == b"PK\x05\x06")?;
    let mut at = usize::try_from(four(zip, end + 16)?).ok()?;
    let mut members = BTreeMap::new();
    for _ in 0..two(zip, end + 10)? {
        if zip.get(at..at + 4)? != b"PK\x01\x02" {
            return None;
        }
        let name_length = two(zip, at + 28)?;
        let name = zip.get(at + 46..at + 46 + name_length)?;
        members.insert(String::from_utf8_lossy(name).into_owned(), four(zip, at + 16)?);
        at += 46 + name_length + two(zip, at + 30)? + two(zip, at + 32)?;
    }
    Some(members)
}

fn two(bytes: &[u8], at: usize) -> Option<usize> {
    Some(usize::from(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?)))
}

fn four(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns a module that exports functions with these names.
    pub(in crate::bump::pyodide) fn module(names: &[&str]) -> Vec<u8> {
        let byte = |length: usize| u8::try_from(length).unwrap();
        let mut list = vec![byte(names.len())];
        for name in names {
            list.push(byte(name.len()));
            list.extend(name.bytes());
            list.extend([0, 0]);
        }
        let mut wasm = b"\0asm\x01\0\0\0\x01\x01\x00\x07".to_vec();
        wasm.push(byte(list.len()));
        wasm.extend(list);
        wasm
    }

    /// Returns an archive's directory of files, without their contents.
    pub(in crate::bump::pyodide) fn archive(members: &[(&str, u32)]) -> Vec<u8> {
        let mut zip = Vec::new();
        for (name, checksum) in members {
            let mut header = [0; 46];
            header[..4].copy_from_slice(b"PK\x01\x02");
            header[16..20].copy_from_slice(&checksum.to_le_bytes());
            header[28] = u8::try_from(name.len()).unwrap();
            zip.extend(header);
            zip.extend(name.bytes());
        }
        let mut end = [0; 22];
        end[..4].copy_from_slice(b"PK\x05\x06");
        end[10] = u8::try_from(members.len()).unwrap();
        zip.extend(end);
        zip
    }

    #[test]
    fn exports_of_a_module_are_read() {
        let names = exports(&module(&["Py_Main", "malloc"])).unwrap();
        assert!(names.iter().eq(["Py_Main", "malloc"]));
        assert_eq!(exports(b"no module"), None);
        let cut = module(&["Py_Main"]);
        assert_eq!(exports(&cut[..cut.len() - 3]), None);
    }

    #[test]
    fn files_of_an_archive_are_read() {
        let members = members(&archive(&[("a.py", 7), ("b/c.py", 0x1234_5678)])).unwrap();
        assert_eq!(members["a.py"], 7);
        assert_eq!(members["b/c.py"], 0x1234_5678);
        assert_eq!(super::members(b"no archive"), None);
    }
}
