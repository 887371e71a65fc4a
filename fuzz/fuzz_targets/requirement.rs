//! Requirements, markers, names of wheels, scripts' metadata.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| isolet::fuzzing::requirement(data));
