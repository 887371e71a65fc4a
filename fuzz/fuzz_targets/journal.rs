//! Journals of recorded sessions.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| isolet::fuzzing::journal(data));
