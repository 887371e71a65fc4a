//! Files with MCP servers.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| isolet_mcp::fuzzing::mcp_config(data));
