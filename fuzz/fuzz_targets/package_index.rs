//! What an index of packages says: pip's reports, Pyodide's lock, modules of wheels.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| isolet::fuzzing::package_index(data));
