//! What clients of the MCP server say.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| isolet_mcp::fuzzing::mcp_server(data));
