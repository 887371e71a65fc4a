//! Recorded sessions of `isolet serve`: a server that is killed, and another one that goes on.

use serde_json::{Value, json};

use isolet_test_support::Scratch;

use super::Client;

/// A tool that is asked again after a kill, and one that is not.
fn policy() -> Value {
    json!({"tools": [{"name": "look", "parameters": [{"name": "x"}], "idempotent": true},
                     {"name": "act", "parameters": [{"name": "x"}]}]})
}

/// Greets a server that has the sandbox 1.
fn with_sandbox(policy: &Value) -> Client {
    let mut client = Client::start();
    assert_eq!(client.ask(&json!(["sandbox", 2, 1, policy])), json!({}));
    client
}

const PROGRAM: &str = "
print('begins', x)
print(look(1))
try: print(act(2))
except Exception as error: print(type(error).__name__)
'end'
";

/// Records a program, and kills the server while a tool of this name is called. Returns the number
/// of the call in its session.
fn killed_during(tool: &str, journal: &str) -> Value {
    let mut client = with_sandbox(&policy());
    let opened = client.ask(&json!(["session", 3, 1, 1, {"x": 7}, {"path": journal}]));
    assert!(opened["isolation"].is_string(), "{opened}");
    client.send(&json!(["run", 4, 1, PROGRAM]));
    loop {
        let call = client.next();
        assert_eq!((&call[0], &call[3]), (&json!("call"), &json!(4)), "{call}");
        if call[4] == tool {
            return call[6].clone();
        }
        client.send(&json!(["answer", call[1], "first"]));
    }
}

#[test]
fn an_idempotent_call_that_was_under_way_is_made_again_with_its_number() {
    let scratch = Scratch::new("serve-journals");
    let journal = scratch.path().join("run.journal").display().to_string();
    let id = killed_during("look", &journal);
    let mut client = with_sandbox(&policy());
    let opened = client.ask(&json!(["resume", 3, 1, 1, {"path": journal}]));
    assert!(opened["isolation"].is_string(), "{opened}");
    let (kind, message) = client.fails(&json!(["run", 4, 1, "1"]));
    assert_eq!(kind, "busy", "{message}");
    client.send(&json!(["go_on", 5, 1, {"stream": true}]));
    let (output, call) = client.next_after_output();
    assert_eq!(output, "begins 7\n");
    assert_eq!(call, json!(["call", call[1], 1, 5, "look", {"x": 1}, id]));
    client.send(&json!(["answer", call[1], "second"]));
    let (output, call) = client.next_after_output();
    assert_eq!((output.as_str(), &call[4]), ("second\n", &json!("act")));
    client.send(&json!(["answer", call[1], "done"]));
    let execution = client.answers(1)[0][2].clone();
    assert_eq!(execution["stdout"], "begins 7\nsecond\ndone\n");
    assert_eq!(execution["value"], "end");
    assert_eq!(client.ask(&json!(["go_on", 6, 1])), Value::Null);
    assert_eq!(client.ask(&json!(["run", 7, 1, "x"]))["value"], 7);
}

#[test]
fn another_call_that_was_under_way_is_an_exception_and_the_answers_before_it_are_known() {
    let scratch = Scratch::new("serve-journals");
    let journal = scratch.path().join("run.journal").display().to_string();
    killed_during("act", &journal);
    let mut client = with_sandbox(&policy());
    client.ask(&json!(["resume", 3, 1, 1, {"path": journal}]));
    let execution = client.ask(&json!(["go_on", 4, 1]));
    assert_eq!(execution["stdout"], "begins 7\nfirst\nCallInterrupted\n");
    client.ask(&json!(["close", 5, 1]));

    // Nothing of the sandbox is needed to look back.
    client.ask(&json!(["sandbox", 6, 2, {}]));
    client.ask(&json!(["replay", 7, 2, 2, journal]));
    assert_eq!(client.ask(&json!(["go_on", 8, 2]))["stdout"], execution["stdout"]);
    client.ask(&json!(["replay", 10, 3, 2, journal, {"until_call": 2}]));
    let stopped = client.ask(&json!(["go_on", 11, 3]));
    assert_eq!(
        (&stopped["status"], &stopped["stdout"]),
        (&json!("terminated"), &json!("begins 7\nfirst\n"))
    );
    let place = client.ask(&json!(["bind_locals", 12, 3]));
    assert_eq!(place["function"], "<module>");
}

#[test]
fn an_open_session_is_recorded_from_a_request_to_another_one() {
    let scratch = Scratch::new("serve-journals");
    let journal = scratch.path().join("run.journal").display().to_string();
    let mut client = with_sandbox(&json!({}));
    client.ask(&json!(["session", 3, 1, 1]));
    client.ask(&json!(["run", 4, 1, "x = 20"]));
    let options = json!({"path": journal, "sync": "always", "max_bytes": 100 << 20});
    assert_eq!(client.ask(&json!(["record", 5, 1, options])), Value::Null);
    let (kind, message) = client.fails(&json!(["record", 6, 1, options]));
    assert_eq!((kind.as_str(), &*message), ("config", "the session is recorded already"));
    let (kind, _) = client.fails(&json!(["checkpoint", 7, 1]));
    assert_eq!(kind, "config");
    client.ask(&json!(["run", 8, 1, "x += 1; print(x)"]));
    assert_eq!(client.ask(&json!(["end_recording", 9, 1])), Value::Null);
    client.ask(&json!(["run", 10, 1, "x = 'not recorded'"]));
    client.ask(&json!(["resume", 11, 2, 1, {"path": journal}]));
    assert_eq!(client.ask(&json!(["go_on", 12, 2]))["stdout"], "21\n");
    assert_eq!(client.ask(&json!(["get", 13, 2, "x"])), json!([21]));
}

#[test]
fn what_cannot_be_recorded_or_resumed_is_told_in_the_words_of_the_protocol() {
    let scratch = Scratch::new("serve-journals");
    let journal = scratch.path().join("run.journal").display().to_string();
    let mut client = with_sandbox(&json!({}));
    let at = |path: &str| json!({"path": path});
    for (number, (request, kind, message)) in [
        (
            json!(["resume", 0, 9, 1, at(&scratch.file("text", "no"))]),
            "journal",
            "it is no journal",
        ),
        (json!(["resume", 0, 9, 1, at("/nosuch")]), "journal", "No such file"),
        (json!(["resume", 0, 9, 1, journal]), "config", "the journal is invalid"),
        (json!(["resume", 0, 9, 1]), "config", "the journal is invalid"),
        (json!(["session", 0, 9, 1, null, {"path": journal, "sync": 1}]), "config", "sync"),
        (json!(["session", 0, 9, 1, null, {"path": journal, "limit": 1}]), "config", "limit"),
        (json!(["replay", 0, 9, 1, journal, {"until_call": 0}]), "config", "counted from 1"),
        (
            json!(["replay", 0, 9, 1, journal, {"until_call": 1, "until_time": 1}]),
            "config",
            "several",
        ),
        (
            json!(["replay", 0, 9, 1, journal, {"until_line": [null, 0]}]),
            "config",
            "counted from 1",
        ),
        (json!(["replay", 0, 9, 1, journal, {"until_time": -1}]), "config", "`until_time` is -1"),
        (
            json!(["session", 0, 9, 1, null, {"path": journal, "max_bytes": 10}]),
            "journal",
            "the limit is 10 bytes (`max_bytes`)",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let mut request = request;
        request[1] = json!(10 + number);
        request[2] = json!(10 + number);
        let (found, text) = client.fails(&request);
        assert!(found == kind && text.contains(message), "{request}: {found}: {text}");
    }
}
