//! Tests of the arguments of requests, which are those of `docs/reference/protocol.md`.

use serde_json::{Value, json};

use super::Client;

/// Returns an argument of the kind that `docs/reference/protocol.md` calls so.
fn argument(name: &str) -> Value {
    match name.trim_matches(['[', ']', ' ']) {
        "SESSION" | "SANDBOX" | "COUNT" | "COPY" => json!(1),
        "JOURNAL" => json!({"path": "x"}),
        "CODE" | "NAME" | "TEXT" | "PATH" => json!("x"),
        "BYTES" => json!({"$bytes": ""}),
        "TOOL" | "REQUIREMENT" => json!([]),
        "INPUTS" | "OPTIONS" | "POLICY" | "SUBMIT" | "UNTIL" | "{NAME: VALUE}" => json!({}),
        other => panic!("what is {other}?"),
    }
}

#[test]
fn every_request_with_an_argument_too_many_is_refused() {
    let (_, table) = include_str!("../../../docs/reference/protocol.md")
        .split_once("| request | answer |")
        .unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let mut client = Client::with_session(&json!({}));
    let mut count = 0;
    for row in rows {
        let request = row.trim_start_matches("| `[\"").split('`').next().unwrap();
        let (operation, arguments) = request.split_once("\", R").unwrap();
        let arguments = arguments.strip_suffix(']').unwrap().replace(", ...", "");
        let mut sent = vec![json!(operation), json!(5)];
        if operation == "hello" {
            sent.push(json!({"protocol": 1}));
        } else {
            sent.extend(arguments.split(", ").skip(1).map(argument));
        }
        sent.push(json!("more"));
        let (kind, message) = client.fails(&Value::Array(sent));
        assert_eq!(kind, "protocol");
        assert_eq!(message, format!("`{operation}`: there is an argument too many"));
        count += 1;
    }
    assert!(count > 20, "{count}");
    assert_eq!(client.ask(&json!(["run", 6, 1, "1"]))["value"], 1);
}
