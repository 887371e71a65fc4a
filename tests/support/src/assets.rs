//! The interpreter's files and memory images, copied and damaged.

use std::fs;
use std::path::Path;

use isolet_pyodide_assets::lock;

use crate::{ASSETS_VARIABLE, Ran, Scratch, assets_dir, command, isolet, root};

/// Copies the locked files and the memory image.
#[must_use]
pub fn copy(test: &str) -> Scratch {
    // The first start makes the image.
    assert_eq!(isolet(["assets", "prepare"]).code, Some(0));
    let scratch = Scratch::new(test);
    let names = lock().unwrap().files().iter().map(|file| file.name().to_owned());
    for name in names.chain([image(&assets_dir())]) {
        fs::copy(assets_dir().join(&name), scratch.path().join(&name)).unwrap();
    }
    scratch
}

/// Returns the name of the newest image in `dir`: another build may have left its own.
#[must_use]
pub fn image(dir: &Path) -> String {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    let names = entries.map(|name| name.into_string().unwrap());
    let images = names.filter(|name| name.starts_with("image-"));
    let made = |name: &String| fs::metadata(dir.join(name)).unwrap().modified().unwrap();
    images.max_by_key(made).unwrap()
}

/// Damages the code that V8 has compiled for the image in `dir`, so that V8 rejects it, as on a
/// processor with other features, and compiles again.
pub fn spoil_stored_code(dir: &Path) {
    // V8's mark before its code, for CPython's WebAssembly and for a script. The next bytes of a
    // script contain its version.
    const MARK: [u8; 2] = [0xde, 0xc0];
    let path = dir.join(image(dir));
    let mut bytes = fs::read(&path).unwrap();
    let mut spoiled = 0;
    for page in bytes.chunks_mut(4096).skip(1).filter(|page| page.get(2..4) == Some(&MARK[..])) {
        page[4] ^= 1;
        spoiled += 1;
    }
    assert_eq!(spoiled, 2);
    // The code of each of our modules follows its specifier and its length.
    let prefix = b"ext:isolet/";
    let found = bytes.windows(prefix.len()).enumerate().filter(|(_, found)| found == prefix);
    let starts: Vec<usize> = found.map(|(start, _)| start).collect();
    let is_module = |name: &str| Path::new(name).extension().is_some_and(|name| name == "js");
    let entries = fs::read_dir(root().join("js")).unwrap().map(|entry| entry.unwrap().file_name());
    let modules = entries.filter(|name| is_module(name.to_str().unwrap())).count();
    let mut spoiled = 0;
    for start in starts {
        let end = bytes[start..].windows(3).take(40).position(|found| found == b".js");
        let Some(code) = end.map(|end| start + end + ".js".len() + size_of::<u64>()) else {
            continue;
        };
        if bytes.get(code + 2..code + 4) == Some(&MARK[..]) {
            bytes[code + 4] ^= 1;
            spoiled += 1;
        }
    }
    assert_eq!(spoiled, modules);
    fs::write(&path, &bytes).unwrap();
    // The error names the digest that belongs to it.
    let refused = run_with(dir, "").stderr;
    let digest = |start: &str| {
        let (_, rest) = refused.split_once(start).unwrap();
        blake3::Hash::from_hex(&rest[..2 * blake3::OUT_LEN]).unwrap()
    };
    let (old, new) = (digest("(expected "), digest("got "));
    let at = bytes.windows(blake3::OUT_LEN).position(|window| window == old.as_bytes()).unwrap();
    bytes[at..at + blake3::OUT_LEN].copy_from_slice(new.as_bytes());
    fs::write(&path, &bytes).unwrap();
}

/// Runs code with the assets in `dir`.
#[must_use]
pub fn run_with(dir: &Path, code: &str) -> Ran {
    let args = ["run", "--timeout", "300", "-c", code];
    command(args).env(ASSETS_VARIABLE, dir).output().unwrap().into()
}
