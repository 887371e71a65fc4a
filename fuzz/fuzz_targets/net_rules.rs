//! Rules for the network, and the decision about a URL.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| isolet::fuzzing::net_rules(data));
