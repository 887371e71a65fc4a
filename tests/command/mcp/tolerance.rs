//! Clients as they are: lines that nobody can read, and arguments as models send them.

use serde_json::{Value, json};

use super::client::{Client, session, text};
use isolet_test_support::{Scratch, isolet};

/// Returns a call of `run_python` as it is on the wire.
fn line(id: u32, arguments: &str) -> Vec<u8> {
    let head = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"#);
    format!("{head}\"run_python\",\"arguments\":{arguments}}}}}\n").into_bytes()
}

#[test]
fn a_line_that_cannot_be_read_is_answered_and_the_next_one_is_carried_out() {
    let mut client = Client::start(&[]);
    let mut not_utf8 = line(1001, r#"{"code":"'?'"}"#);
    let place = not_utf8.iter().position(|byte| *byte == b'?').unwrap();
    not_utf8[place] = 0xff;
    let deep = format!(r#"{{"code":"1","x":{}{}}}"#, "[".repeat(200), "]".repeat(200));
    let long = format!(r#"{{"code":"{}"}}"#, "x".repeat(17 << 20));
    for (line, id, code) in [
        (not_utf8, json!(1001), -32700),
        (line(1002, r#"{"code":"1","timeout":NaN}"#), json!(1002), -32700),
        (line(1003, r#"{"code":"1","timeout":1e400}"#), json!(1003), -32700),
        (line(1004, &deep), json!(1004), -32700),
        (line(1005, &long), json!(1005), -32700),
        (line(1006, "[1]"), json!(1006), -32602),
        (b"hello\n".to_vec(), Value::Null, -32700),
        (b"[]\n".to_vec(), Value::Null, -32600),
    ] {
        client.write(&line);
        let answer = client.next();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(code)), "{answer}");
        assert!(answer.as_object().unwrap().contains_key("id"), "{answer}");
    }
    // Half of a pair is a character, and the text of an object is one.
    for arguments in [r#"{"code":"len('\ud83d!')"}"#, r#""{\"code\":\"1 + 1\"}""#] {
        client.write(&line(1007, arguments));
        let answer = client.next();
        assert_eq!(answer["result"]["structuredContent"]["value"], 2, "{answer}");
    }
    let last = br#"{"jsonrpc":"2.0","id":1008,"method":"ping"}"#;
    client.write(last);
    client.close();
    assert_eq!(client.next(), json!({"jsonrpc": "2.0", "id": 1008, "result": {}}));
}

#[test]
fn arguments_are_taken_as_clients_send_them() {
    let mut client = Client::start(&[]);
    for more in [
        json!({"session": ""}),
        json!({"session": "null", "timeout": 0}),
        json!({"session": "None", "timeout": ""}),
        json!({"session": "new", "timeout": "null"}),
        json!({"session": "default", "timeout": "10"}),
        json!({"session": null, "timeout": null}),
    ] {
        let mut arguments = json!({"code": "6 * 7"});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let result = client.call("run_python", &arguments);
        assert_eq!(result["structuredContent"]["value"], 42, "{arguments}: {result}");
    }
    let arguments = json!({"code": "6 * 7", "toolCallId": "x", "chatInput": "hi"});
    let result = client.call("run_python", &arguments);
    let said = "ignored, because run_python has only `code`, `session`, `timeout`: ";
    assert!(text(&result).contains(said), "{result}");
    let mut ignored: Vec<&str> = Vec::new();
    let named = result["structuredContent"]["ignored"].as_array().unwrap();
    ignored.extend(named.iter().filter_map(Value::as_str));
    ignored.sort_unstable();
    assert_eq!(ignored, ["`chatInput`", "`toolCallId`"]);
    let closed =
        client.call("close_session", &json!({"session": session(&result), "toolCallId": "x"}));
    assert!(text(&closed).contains("ignored, because close_session has only `session`"));
    let none = client.call("close_session", &json!({"session": ""}));
    assert_eq!(text(&none), "close_session needs `session`, from an earlier result");
}

/// The keywords that the functions of every model's interface know.
const KEYWORDS: [&str; 4] = ["type", "description", "properties", "required"];

#[test]
fn schemas_of_arguments_have_no_keyword_that_clients_refuse() {
    fn check(schema: &Value) {
        let schema = schema.as_object().unwrap();
        let odd: Vec<_> = schema.keys().filter(|key| !KEYWORDS.contains(&key.as_str())).collect();
        assert!(odd.is_empty(), "{odd:?}");
        let properties = schema.get("properties").and_then(Value::as_object);
        for property in properties.into_iter().flat_map(|all| all.values()) {
            check(property);
        }
    }
    let mut client = Client::start(&["--server", "x=/no/such"]);
    let tools = client.request("tools/list", &json!({}))["result"]["tools"].clone();
    let tools = tools.as_array().unwrap();
    assert_eq!(tools.len(), 3);
    for tool in tools {
        check(&tool["inputSchema"]);
    }
}

#[test]
fn the_name_of_a_server_neither_acts_on_a_terminal_nor_adds_a_line() {
    let scratch = Scratch::new("mcp-names");
    let name = "a\u{1b}]0;x\u{7}\u{202e}\nother: fine, 3 tools";
    let servers = json!({"mcpServers": {name: {"command": "/no/such/program"}}});
    let config = scratch.file("servers.json", servers.to_string());
    let ran = isolet(["mcp", "check", "--config", &config]);
    assert_eq!((ran.code, ran.stdout.lines().count()), (Some(2), 1), "{ran:?}");
    assert!(ran.stdout.starts_with("a^[]0;x^G\\u{202e}\\nother: fine"), "{ran:?}");
}
