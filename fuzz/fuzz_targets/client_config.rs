//! Files of other MCP clients, which the command edits.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| isolet_fuzz::client_config(data));
