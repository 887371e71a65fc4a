//! Lines of JSON-RPC.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| isolet_fuzz::json_rpc(data));
