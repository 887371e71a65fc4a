//! Notebooks, and displays in their files.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| isolet_fuzz::notebook(data));
