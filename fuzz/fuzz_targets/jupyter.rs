//! What comes to the sockets of a kernel of Jupyter.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| isolet_jupyter::fuzzing::jupyter(data));
