//! Limits that a run reaches: each has its own status and words, and the server goes on.

use std::time::Instant;

use serde_json::json;

use super::client::{Client, session, text};
use isolet_test_support::LONGEST;

/// The server's answer to the next run shows that it goes on.
fn goes_on(client: &mut Client) {
    assert_eq!(client.run("40 + 2")["structuredContent"]["value"], 42);
}

#[test]
fn memory_that_is_too_much_is_an_exception_or_the_end_of_the_interpreter() {
    let mut client = Client::modern(&["--memory", "256MiB"]);
    let result = client.run("x = bytearray(400 << 20)");
    let content = &result["structuredContent"];
    assert_eq!(
        (&content["status"], &content["error"]["type"]),
        (&json!("error"), &json!("MemoryError"))
    );
    assert_eq!(client.run_in(&session(&result), "1")["structuredContent"]["value"], 1);
    let heap = "from pyodide.code import run_js\n\
                run_js('const a = []; while (true) a.push(new Array(1e6).fill(1.5))')";
    let result = client.run(heap);
    let content = &result["structuredContent"];
    assert_eq!((&content["status"], &content["lost_runs"]), (&json!("limit"), &json!(1)));
    assert!(text(&result).contains("which follows from `--memory`"), "{result}");
    assert_eq!(client.run_in(&session(&result), "1")["structuredContent"]["value"], 1);
    goes_on(&mut client);
}

#[test]
fn output_that_is_too_much_loses_its_middle_and_the_value_is_there() {
    let mut client = Client::modern(&["--max-output", "1KiB"]);
    let result = client.run("print('a' * 3000 + 'b' * 3000)\n7");
    let content = &result["structuredContent"];
    assert_eq!((&content["status"], &content["value"]), (&json!("ok"), &json!(7)));
    let stdout = content["stdout"].as_str().unwrap();
    assert!(stdout.starts_with("aaa") && stdout.ends_with("bbb\n"), "{stdout}");
    assert!(stdout.len() < 1_200 && stdout.contains("[... 4977 bytes dropped ...]"), "{stdout}");
    goes_on(&mut client);
}

#[test]
fn calls_of_a_server_beyond_its_limit_are_an_exception() {
    let servers = super::servers::Servers::new(
        "mcp-max-calls",
        &json!({"isolet": {"allow": ["*"], "maxCalls": 3}}),
    );
    let mut client = servers.client(true, &json!({}));
    let result = client.run("[fake.echo(x=i) for i in range(5)]");
    let said = "call 4 of the server `fake` in this run, `maxCalls` is 3";
    assert!(text(&result).contains(said), "{result}");
    assert!(text(&result).contains("calls already made: 3 x fake.echo (ok)"), "{result}");
    goes_on(&mut client);
}

#[test]
fn sessions_that_all_run_code_leave_no_place_for_another() {
    let mut client = Client::modern(&["--max-sessions", "1", "--timeout", "10m"]);
    let busy = client.begin(
        "tools/call",
        &json!({"name": "run_python", "arguments": {"code": "while True: pass"}}),
    );
    let refused = client.run("1");
    assert!(text(&refused).contains("all 1 sessions are running code"), "{refused}");
    client.send(&json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": busy},
    }));
    // The session is free once its code is interrupted; a new one takes its place.
    let deadline = Instant::now() + LONGEST;
    while client.run("1")["structuredContent"]["value"] != 1 {
        assert!(Instant::now() < deadline);
    }
}
