//! Schemas of tools, and arguments of their calls.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| isolet::fuzzing::tool_schema(data));
