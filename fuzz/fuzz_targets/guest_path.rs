//! Paths of the guest beneath a mount, and targets of its links.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| isolet::fuzzing::guest_path(data));
