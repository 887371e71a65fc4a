//! Tools of MCP servers: definitions, results, names.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| isolet_mcp::fuzzing::mcp_tool(data));
