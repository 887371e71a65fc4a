//! The memory in which a worker leaves its output: see `isolet::fuzzing::output_ring`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| isolet::fuzzing::output_ring(data));
