//! Lines of DSPy's client.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| isolet_fuzz::dspy(data));
