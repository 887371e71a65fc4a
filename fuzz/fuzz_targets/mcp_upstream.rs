//! What MCP servers say: lines, bodies, events.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| isolet_mcp::fuzzing::mcp_upstream(data));
