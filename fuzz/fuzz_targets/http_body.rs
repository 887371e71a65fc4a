//! Bodies, messages and credentials of a node's clients.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| isolet_serve::fuzzing::http_body(data));
