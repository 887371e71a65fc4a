//! Frames of `isolet serve --stdio`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| isolet_serve::fuzzing::serve_frame(data));
