//! What an index of packages says: pip's report and reasons, Pyodide's lock, and WebAssembly
//! modules of wheels.

use super::memory::measured;
use crate::packages::PackageError;
use crate::packages::lock::Lock;
use crate::packages::report::{Failure, RUNS_HERE, failure, parse};
use crate::packages::requirement::{is_name, normalised};
use crate::packages::signature::{Change, Numbers, Signature};
use crate::packages::wasm::Module;

/// The most dependencies of a wheel that a report has.
const MAX_LISTED: usize = 5_000;
/// The most characters of a reason of pip's: two halves, and what is between them.
const MAX_REASON_CHARS: usize = 403;
/// How many times its length JSON may take, and what it may take besides.
const JSON_FACTOR: usize = 256;
const FIXED: usize = 64 << 10;
/// How many times its length a module may take: a name or a function has three bytes.
const MODULE_FACTOR: usize = 64;

/// Reads the bytes, by their first one, as pip's report, as pip's standard error, as a lock, or as
/// a module. What is read has names in their one spelling, and memory is bounded by the length; a
/// reason of pip's names no server; a module without changes says the same again.
pub fn package_index(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    match kind % 4 {
        0 => report(data),
        1 => reason(data),
        2 => lock(data),
        _ => module(data),
    }
}

fn report(data: &[u8]) {
    let (pins, used) = measured(|| parse(data));
    assert!(used.peak <= JSON_FACTOR * data.len() + FIXED, "{} bytes took {used:?}", data.len());
    let pins = match pins {
        Ok(pins) => pins,
        Err(error) => return is_one_line(&error),
    };
    for pin in pins {
        assert!(is_name(&pin.name) && normalised(&pin.name) == pin.name, "{pin:?}");
        assert!(pin.requires.len() <= MAX_LISTED && pin.extras.len() <= MAX_LISTED);
        assert!(pin.extras.iter().all(|extra| normalised(extra) == *extra), "{pin:?}");
    }
}

/// A refusal is one line, whatever the bytes are.
fn is_one_line(error: &PackageError) {
    let text = error.to_string();
    assert!(!text.contains(['\n', '\r', '\u{1b}']), "{text:?}");
}

fn reason(data: &[u8]) {
    let text = match failure(&String::from_utf8_lossy(data)) {
        Failure::Unresolved(text) | Failure::Broken(text) => text,
        Failure::Unreachable(_) | Failure::Silent => return,
    };
    let plain = text.strip_suffix(RUNS_HERE).unwrap_or(&text);
    assert!(plain.chars().count() <= MAX_REASON_CHARS, "{text:?}");
    assert!(!plain.contains(char::is_control), "{text:?}");
    assert!(!plain.contains("://") && !plain.contains('@'), "{text:?}");
}

fn lock(data: &[u8]) {
    let (lock, used) = measured(|| Lock::parse(data));
    assert!(used.peak <= JSON_FACTOR * data.len() + FIXED, "{} bytes took {used:?}", data.len());
    let Ok(lock) = lock else { return };
    for (name, package) in lock.iter() {
        assert_eq!((normalised(name).as_str(), package.file.name.as_str()), (name, name));
        assert!(!package.file_name.contains(['/', '\\']), "{package:?}");
        assert!(package.depends.iter().all(|other| lock.get(other).is_some()), "{package:?}");
    }
}

/// Reads a module, and writes it with no change, with one, and with one where none can be.
fn module(data: &[u8]) {
    let (module, used) = measured(|| Module::parse(data));
    assert!(used.peak <= MODULE_FACTOR * data.len() + FIXED, "{} bytes took {used:?}", data.len());
    let Ok(module) = module else { return };
    let (same, used) = measured(|| module.with(Vec::new()));
    assert!(used.peak <= 4 * data.len() + FIXED, "{} bytes took {used:?}", data.len());
    let same = same.unwrap_or_default();
    assert!(same.len() <= data.len(), "{} bytes became {}", data.len(), same.len());
    let again = Module::parse(&same);
    assert!(again.as_ref().is_ok_and(|again| again.imports() == module.imports()), "{again:?}");
    let again = again.and_then(|again| again.with(Vec::new()));
    assert_eq!(again.as_ref(), Ok(&same));
    // A function that ends is found by its last byte, and becomes an unreachable one.
    let mut numbers = Numbers::of(&module);
    let signature = "0b".parse::<Signature>();
    let found = signature.ok().and_then(|signature| signature.find(data, &mut numbers));
    if let Some(place) = found {
        let is_inside = module.function_at(place.start).is_some();
        let changed = module.with(vec![Change { place, bytes: vec![0, 0x0b] }]);
        if let Ok(changed) = changed {
            assert!(is_inside && changed.len() > same.len(), "{} bytes", changed.len());
        }
    }
    let outside = Change { place: data.len()..data.len() + 1, bytes: vec![0] };
    assert!(module.with(vec![outside]).is_err());
}
