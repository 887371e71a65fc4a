//! Values in marshal's format, as the guest sends them.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| isolet::fuzzing::value(data));
