//! Displays, paths of written files, records of templates.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| isolet::fuzzing::display(data));
