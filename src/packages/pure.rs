//! Makes pure Python wheels of native ones that are for other platforms, where a package works
//! without its compiled part.

use std::io::{Cursor, Write};
use std::sync::Arc;

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::archive::Archive;
use super::error::PackageError;
use super::wheel_name::WheelName;

/// The native packages of Pyodide's lock whose compiled part only makes them faster. Each was
/// imported and used without it.
const ACCELERATED: [&str; 4] = ["lazy-object-proxy", "markupsafe", "pymongo", "pyyaml"];

/// What compiled modules are called on the platforms that have wheels.
const COMPILED: [&str; 3] = [".so", ".pyd", ".dylib"];

/// The tag of what is made, and the build number, which tells it from a wheel of the package's
/// authors.
const TAG: &str = "py3-none-any";
const BUILD: &str = "0pure";

/// Returns `true` if this package works without its compiled part.
pub(super) fn works_without_accelerator(name: &str) -> bool {
    ACCELERATED.contains(&name)
}

/// Makes a wheel without compiled modules of one that has some. Returns its file name and bytes.
///
/// # Errors
///
/// Fails if this is no wheel.
pub(super) fn without_accelerator(
    file_name: &str,
    bytes: Arc<[u8]>,
) -> Result<(String, Vec<u8>), PackageError> {
    let WheelName { name, version, .. } = file_name.parse()?;
    let stem = format!("{}-{version}", name.replace('-', "_"));
    let refused = |reason: String| PackageError::wheel(file_name, reason);
    let archive = Archive::open(bytes).map_err(refused)?;
    // The same input makes the same bytes, whenever it is.
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .last_modified_time(DateTime::default());
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let mut copy = || -> zip::result::ZipResult<()> {
        for file in archive.files() {
            let path = file.path.as_str();
            if COMPILED.iter().any(|extension| path.ends_with(extension)) {
                continue;
            }
            zip.start_file(path, options)?;
            match path.rsplit('/').next() {
                Some("WHEEL") if path.ends_with(".dist-info/WHEEL") => {
                    writeln!(zip, "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {TAG}")?;
                }
                // It would list what is not there.
                Some("RECORD") if path.ends_with(".dist-info/RECORD") => {}
                _ => zip.write_all(&archive.read(file)?)?,
            }
        }
        Ok(())
    };
    copy().map_err(|error| PackageError::wheel(file_name, error.to_string()))?;
    let made = zip.finish().map_err(|error| PackageError::wheel(file_name, error.to_string()))?;
    Ok((format!("{stem}-{BUILD}-{TAG}.whl"), made.into_inner()))
}

#[cfg(test)]
mod tests {
    use super::super::tests::wheel_bytes;
    use super::super::wheel::Wheel;
    use super::*;

    #[test]
    fn a_wheel_for_another_platform_becomes_one_for_the_guest() {
        let files: [(&str, &[u8]); 3] = [
            ("fast/__init__.py", b"try: from ._fast import f\nexcept ImportError: f = None\n"),
            ("fast/_fast.cpython-314-x86_64-linux-gnu.so", b"\x7fELF"),
            ("fast/_fast.pyd", b"MZ"),
        ];
        let bytes: Arc<[u8]> = wheel_bytes("fast", "1.5", "", &files).into();
        let name = "fast-1.5-cp314-cp314-manylinux_2_17_x86_64.whl";
        assert!(Wheel::open(name, Arc::clone(&bytes)).is_err());
        let (file_name, made) = without_accelerator(name, Arc::clone(&bytes)).unwrap();
        assert_eq!(file_name, "fast-1.5-0pure-py3-none-any.whl");
        assert_eq!(without_accelerator(name, bytes).unwrap().1, made);
        let wheel = Wheel::open(&file_name, made.into()).unwrap();
        let paths: Vec<&str> = wheel.files().iter().map(|file| file.path.as_str()).collect();
        assert!(paths.contains(&"fast/__init__.py"), "{paths:?}");
        assert!(paths.iter().all(|path| !path.contains("_fast")), "{paths:?}");
        assert!(without_accelerator(name, b"no zip".as_slice().into()).is_err());
    }
}
