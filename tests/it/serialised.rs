//! Results of runs as JSON: the form in which the servers answer.

use isolet::{Limits, from_value, to_value};
use serde_json::{Value as Json, json};

use crate::util::{builder, sandbox};

/// Code, and what is in its result's JSON.
fn cases() -> [(&'static str, Json); 8] {
    [
        (
            "x = 20\nprint('hi')\nx + 22",
            json!({
                "status": "completed", "value": 42, "repr": "42", "stdout": "hi\n",
                "locals": {"x": "20"},
            }),
        ),
        ("None", json!({"status": "completed", "repr": "None"})),
        (
            "{'b': b'\\0', 'f': float('nan'), 1: 2 ** 64}",
            json!({
                "status": "completed",
                "value": {"$dict": [
                    ["b", {"$bytes": "AA=="}], ["f", {"$float": "nan"}], [1, 18_446_744_073_709_551_616.0],
                ]},
            }),
        ),
        (
            "1 / 0",
            json!({
                "status": "raised",
                "exception": {
                    "type": "ZeroDivisionError", "message": "division by zero",
                    "args": "[\"division by zero\"]", "cause": null,
                },
            }),
        ),
        (
            "import sys; sys.exit(3)",
            json!({
                "status": "exited", "exit_code": 3, "system_exit": {"type": "SystemExit"},
            }),
        ),
        ("object()", json!({"status": "completed"})),
        (
            "display({'text/plain': 'x', 'image/png': b'\\1'}, raw=True)",
            json!({
                "status": "completed",
                "displays": [{
                    "data": {"text/plain": "x", "image/png": {"$bytes": "AQ=="}}, "is_result": false,
                }],
            }),
        ),
        (
            "open('a.txt', 'w').write('abc'); SUBMIT(a=1)",
            json!({
                "status": "submitted", "value": {"a": 1},
                "files": [{"path": "/home/user/a.txt", "size": 3}],
            }),
        ),
    ]
}

/// Asserts that everything in `expected` is in `found`.
#[track_caller]
fn assert_within(expected: &Json, found: &Json, code: &str) {
    match expected {
        Json::Object(fields) => {
            for (name, field) in fields {
                assert_within(field, &found[name], code);
            }
        }
        _ => assert_eq!(expected, found, "{code}"),
    }
}

#[tokio::test]
async fn a_result_serialises_as_the_servers_answer() {
    let sandbox = builder().submit([isolet::Param::new("a")]).build().unwrap();
    for (code, expected) in cases() {
        let execution = sandbox.run(code).await.unwrap();
        let json: Json = serde_json::from_str(&serde_json::to_string(&execution).unwrap()).unwrap();
        assert_within(&expected, &json, code);
        assert!(json["usage"]["wall_time"].as_f64().is_some_and(|time| time > 0.0), "{json}");
        let ended = serde_json::to_value(execution.outcome()).unwrap();
        assert_within(&ended, &json, code);
        let answer = isolet_service::core::Execution::of(execution, true);
        assert_eq!(serde_json::to_value(&answer).unwrap(), json, "{code}");
    }
}

#[tokio::test]
async fn the_end_of_a_run_by_the_host_serialises_with_its_kind_and_message() {
    let limits = Limits::default().max_run_time(std::time::Duration::from_millis(200));
    let execution = sandbox(limits).run("print('kept')\nwhile True: pass").await.unwrap();
    let json = serde_json::to_value(&execution).unwrap();
    assert_eq!((&json["status"], &json["stdout"]), (&json!("terminated"), &json!("kept\n")));
    assert_eq!(json["termination"]["kind"], "timeout");
    let message = json["termination"]["message"].as_str().unwrap();
    assert!(message.contains("the limit is 0.2 s"), "{message}");
}

#[tokio::test]
async fn a_result_crosses_into_a_guest() {
    let execution = sandbox(Limits::default()).run("print('hi'); [1, 2]").await.unwrap();
    let value = to_value(&execution).unwrap();
    let json: Json = from_value(value).unwrap();
    assert_within(&json!({"stdout": "hi\n", "value": [1, 2]}), &json, "");
}
