//! Bodies and redirects of the servers that a guest talks to.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| isolet::fuzzing::http_response(data));
