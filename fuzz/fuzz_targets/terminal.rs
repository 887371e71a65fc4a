//! Guest output on its way to a terminal.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| isolet_fuzz::terminal(data));
