//! Tests of the packages, and their shared helpers: generated wheels and directories.

mod archives;
mod cache;
mod directories;
mod exports;
mod hostile_pip;
mod index;
mod requirements;
mod scripts;
mod trees;
mod wheels;

use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use isolet_pyodide_assets::Digest;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::files::WorkDirectory;
use super::store::{PackageStore, StoreOptions};
use super::{Requirement, Wheel};

pub(super) fn directory() -> WorkDirectory {
    WorkDirectory::new(&std::env::temp_dir().join("isolet-tests")).unwrap()
}

pub(super) fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    for (path, bytes) in files {
        zip.start_file(*path, options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// Makes a pure wheel with this name and version, these lines in its metadata and these files.
pub(super) fn wheel_bytes(
    name: &str,
    version: &str,
    metadata: &str,
    files: &[(&str, &[u8])],
) -> Vec<u8> {
    let header = format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{metadata}\n");
    let path = format!("{}-{version}.dist-info/METADATA", name.replace('-', "_"));
    let mut all = vec![(path.as_str(), header.as_bytes())];
    all.extend_from_slice(files);
    let tag = path.replace("METADATA", "WHEEL");
    all.push((&tag, b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"));
    zip(&all)
}

pub(super) fn file_name(name: &str, version: &str) -> String {
    format!("{}-{version}-py3-none-any.whl", name.replace('-', "_"))
}

/// Writes a pure wheel with one module to a directory and returns its path.
pub(super) fn put_wheel(into: &Path, name: &str, version: &str, metadata: &str) -> PathBuf {
    let module = format!("{}/__init__.py", name.replace('-', "_"));
    let source = format!("version = {version:?}\n");
    let path = into.join(file_name(name, version));
    let files = [(module.as_str(), source.as_bytes())];
    std::fs::write(&path, wheel_bytes(name, version, metadata, &files)).unwrap();
    path
}

pub(super) fn open(name: &str, version: &str, files: &[(&str, &[u8])]) -> Arc<Wheel> {
    let bytes = wheel_bytes(name, version, "", files);
    Arc::new(Wheel::open(&file_name(name, version), bytes.into()).unwrap())
}

pub(super) fn requirements(texts: &[&str]) -> Vec<Requirement> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// Returns the wheels of a resolution as `name version`.
pub(super) fn names(resolution: &super::Resolution) -> Vec<String> {
    let wheels = resolution.wheels().iter();
    wheels.map(|wheel| format!("{} {}", wheel.name(), wheel.version())).collect()
}

/// Makes a lock in Pyodide's format with these packages: name, modules, file name, digest,
/// dependencies.
pub(super) fn lock(packages: &[(&str, &str, &str, Digest, &[&str])]) -> Vec<u8> {
    let mut all = serde_json::Map::new();
    for (name, module, file_name, digest, depends) in packages {
        let package = serde_json::json!({
            "name": name,
            "imports": [module],
            "file_name": file_name,
            "sha256": digest.to_string(),
            "depends": depends,
            "package_type": "package",
        });
        all.insert((*name).to_owned(), package);
    }
    let info = serde_json::json!({"abi_version": "2026_0", "python": "3.14.2"});
    serde_json::to_vec(&serde_json::json!({"info": info, "packages": all})).unwrap()
}

/// Makes a store without pip: its `python` does not exist.
pub(super) fn store_without_pip(cache: &Path, options: StoreOptions) -> PackageStore {
    let python = Some(cache.join("no-such-python"));
    let options = StoreOptions { python, ..options };
    PackageStore::new(cache.join("cache"), &lock(&[]), options).unwrap()
}
