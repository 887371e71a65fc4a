//! The standard library of guests: Pyodide's archive and the modules that it omits.

use std::io::{Cursor, Write};

use zip::result::ZipResult;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// A file that is added, with its sha256.
struct Added {
    name: &'static str,
    #[cfg_attr(not(test), expect(dead_code, reason = "a test compares it"))]
    sha256: &'static str,
    bytes: &'static [u8],
}

macro_rules! added {
    ($($name:literal: $sha256:literal,)*) => {
        [$(Added {
            name: $name,
            sha256: $sha256,
            bytes: include_bytes!(concat!("../../third_party/python/Lib/", $name)),
        }),*]
    };
}

/// CPython's own modules, by their names in the archive.
const MODULES: [Added; 9] = added! {
    "_pydecimal.py": "b9da2f4c7c740b8ff0d9fa57a0c567898569e5ee740b83c8aef7222fe953e103",
    "dbm/__init__.py": "64576a77d107294ffcb7be37049c2bedb6b61d102526d31e5ca1d8d5aa138459",
    "dbm/dumb.py": "7e18577a32d85827efd72c5da14709b9f3fb7fe0eed86abf74b5f6df54acecb3",
    "dbm/gnu.py": "36cd4904f50e00c4df4ad9d450b3970e150957425f47c00cf979ba73eff49778",
    "dbm/ndbm.py": "1bcc2d9b2fad1901f3421a174eeecb5b8ccc6763283b87bbe0705b404c71904b",
    "dbm/sqlite3.py": "3905182669ce20ffd109b6bfdf349d161747d328976bf1ac687d843d1d62d32e",
    "pydoc_data/__init__.py": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "pydoc_data/topics.py": "2c1b4e2f3474a43745f183ae175d399288f4771200fd9a2240049f707ac92bd3",
    "zoneinfo/_zoneinfo.py": "c148c0529962c11e32aafb35bc846513fdb3d7b8f352bd58ee6b64ac1bf3ca8f",
};

/// The time zone database. The archive gets the whole wheel, including its licences and version.
const TZDATA: Added = Added {
    name: "tzdata-2026.6-py2.py3-none-any.whl",
    sha256: "0a10eec6e13ef16b627fabed9a5f2ba61a62b1c67f327305f4e7e412a70b4aec",
    bytes: include_bytes!("../../third_party/python/tzdata-2026.6-py2.py3-none-any.whl"),
};

/// Returns Pyodide's archive with the added files.
pub(super) fn completed(archive: &[u8]) -> ZipResult<Vec<u8>> {
    let mut writer = ZipWriter::new_append(Cursor::new(archive.to_vec()))?;
    let mut wheel = ZipArchive::new(Cursor::new(TZDATA.bytes))?;
    for index in 0..wheel.len() {
        let file = wheel.by_index_raw(index)?;
        if file.is_file() {
            writer.raw_copy_file(file)?;
        }
    }
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    for module in &MODULES {
        writer.start_file(module.name, options)?;
        writer.write_all(module.bytes)?;
    }
    Ok(writer.finish()?.into_inner())
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use isolet_pyodide_assets::Digest;

    use super::*;

    #[test]
    fn what_is_added_is_what_its_digest_says() {
        for added in MODULES.iter().chain([&TZDATA]) {
            assert_eq!(Digest::of(added.bytes).to_string(), added.sha256, "{}", added.name);
        }
    }

    #[test]
    fn a_completed_archive_has_what_it_had_and_what_is_added() {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        writer.start_file("os.py", SimpleFileOptions::default()).unwrap();
        writer.write_all(b"import abc").unwrap();
        let archive = completed(&writer.finish().unwrap().into_inner()).unwrap();
        let mut archive = ZipArchive::new(Cursor::new(archive)).unwrap();
        let mut read = |name: &str| {
            let mut text = Vec::new();
            archive.by_name(name).unwrap().read_to_end(&mut text).unwrap();
            text
        };
        assert_eq!(read("os.py"), b"import abc");
        assert_eq!(read("_pydecimal.py"), MODULES[0].bytes);
        assert!(read("tzdata/zoneinfo/Europe/Berlin").starts_with(b"TZif"));
    }
}
