//! Tables of HTML and pictures that a terminal shows.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| isolet_fuzz::shown(data));
