//! Messages of Monty's client, and reports of the guest for it.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| isolet_fuzz::monty(data));
