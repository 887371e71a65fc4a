//! Frames between a worker and its parent.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| isolet::fuzzing::wire(data));
