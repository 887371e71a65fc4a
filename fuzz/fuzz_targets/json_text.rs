//! JSON, as our own reader takes it.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| isolet_fuzz::json_text(data));
