//! Frames of the guest's glue: reports, requests, answers.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| isolet::fuzzing::frame(data));
