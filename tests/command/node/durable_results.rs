//! Tests of how clients get the results of durable runs: of runs in sessions of their own, of runs
//! that end their session, and while a run is under way or being restored.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::durable::{A, A_EVENTS, Heard, STORY, answer, files, kill, log, reattach, start};
use super::operations::until;
use super::{Events, Node};
use isolet_test_support::Scratch;

fn policy() -> Value {
    json!({"tools": [{"name": "ask", "parameters": [{"name": "number"}]}]})
}

/// Begins a durable run in a session of its own. Returns the id of the session.
async fn begin(node: &Node, code: &str) -> String {
    let body = json!({"code": code, "durable": true, "policy": policy()});
    let response = node.send("POST /v1/run", &A, &body).await;
    assert_eq!(
        (response.status().as_u16(), &response.headers()["isolet-run"]),
        (202, &"1".parse().unwrap())
    );
    let path = response.headers()["location"].to_str().unwrap().to_owned();
    let answer: Value = serde_json::from_slice(&super::collected(response).await).unwrap();
    let id = answer["session"].as_str().unwrap().to_owned();
    assert_eq!((path, &answer["run"]), (format!("/v1/sessions/{id}/runs/1"), &json!(1)));
    assert!(!answer["token"].as_str().unwrap().is_empty());
    id
}

/// The execution of the run, which has ended or is about to.
async fn result(node: &Node, id: &str) -> Value {
    let (status, mut execution) =
        node.ask_as(&A, &format!("GET /v1/sessions/{id}/runs/1"), &Value::Null).await;
    assert_eq!(status, 200, "{execution}");
    execution.as_object_mut().unwrap().remove("usage");
    execution
}

#[tokio::test]
async fn a_run_of_its_own_goes_on_after_kills_and_its_result_waits_for_its_client() {
    let scratch = Scratch::new("node-durable-run");
    let node = start(&scratch);
    let id = begin(&node, STORY).await;
    // Right after the answer.
    kill(node);
    let node = start(&scratch);
    let mut heard = Heard::default();
    let mut events = reattach(&node, &id, "0-0-0").await;
    let first = heard.until(&mut events, Some(1)).await.unwrap();
    answer(&node, &id, &first, &json!(10)).await;
    let second = heard.until(&mut events, Some(2)).await.unwrap();
    kill(node);

    let node = start(&scratch);
    let mut events = reattach(&node, &id, &heard.cursor).await;
    answer(&node, &id, &second, &json!(20)).await;
    heard.answer_from(&node, &id, &mut events, 3).await;
    assert_eq!(heard.execution["value"], json!([10, 20, 30]), "{heard:?}");
    // Its session has ended. Another process has the result, too.
    let session = format!("GET /v1/sessions/{id}");
    let mut node = node;
    for _ in 0..2 {
        assert_eq!(result(&node, &id).await, heard.execution);
        let (status, shown) = node.ask_as(&A, &session, &Value::Null).await;
        assert_eq!((status, &shown["has_ended"]), (200, &json!(true)), "{shown}");
        let (_, listed) = node.ask_as(&A, "GET /v1/sessions", &Value::Null).await;
        assert_eq!(
            (&listed["sessions"][0]["id"], listed["sessions"].as_array().unwrap().len()),
            (&json!(id), 1)
        );
        let runs = format!("POST /v1/sessions/{id}/runs");
        assert_eq!(node.ask_as(&A, &runs, &json!({"code": "1"})).await.0, 410);
        // Others do not hear of it.
        let b = [("x-api-key", "b")];
        for path in [&session, &format!("{session}/runs/1"), &format!("DELETE /v1/sessions/{id}")] {
            let theirs = node.ask_as(&b, path, &Value::Null).await;
            assert!(matches!(theirs.0, 404 | 410), "{theirs:?}");
        }
        let (_, listed) = node.ask_as(&b, "GET /v1/sessions", &Value::Null).await;
        assert_eq!(listed["sessions"], json!([]));
        kill(node);
        node = start(&scratch);
    }
    assert_eq!(result(&node, &id).await, heard.execution);
    assert_eq!(log(&scratch), "1\n2\n3\n", "each effect happens once");
    let delete = format!("DELETE /v1/sessions/{id}");
    assert_eq!(node.ask_as(&A, &delete, &Value::Null).await.0, 204);
    assert_eq!(files(&scratch.path().join("journals")), ["node.secret"]);
    assert_eq!(node.ask_as(&A, &delete, &Value::Null).await.0, 410);
}

#[tokio::test]
async fn a_run_of_its_own_that_was_refused_leaves_nothing() {
    let scratch = Scratch::new("node-durable-run-refused");
    let node = start(&scratch);
    for (body, problem) in [
        (json!({"code": "1", "policy": {"allow_net": ["a.example"]}}), 403),
        (json!({"code": "1", "timeout": -1}), 422),
        (json!({"code": "1", "policy": {"tools": 1}}), 422),
    ] {
        let mut body = body;
        body["durable"] = json!(true);
        let (status, found) = node.ask_as(&A, "POST /v1/run", &body).await;
        assert_eq!(status, problem, "{body} {found}");
    }
    let line = json!({"code": "1", "durable": true}).to_string();
    let response = node.send_text("POST /v1/batch", &A_EVENTS, line).await;
    let answer = Events::of(response).next().await.unwrap();
    let detail = answer["problem"]["detail"].as_str().unwrap();
    assert_eq!(detail, "a run of a batch cannot be durable: it ends with its request");
    assert_eq!(files(&scratch.path().join("journals")), ["node.secret"]);
    let (_, listed) = node.ask_as(&A, "GET /v1/sessions", &Value::Null).await;
    assert_eq!(listed["sessions"], json!([]));
}

#[tokio::test]
async fn the_result_of_a_run_that_ends_its_session_waits_for_its_client() {
    let scratch = Scratch::new("node-durable-exit");
    let mut node = start(&scratch);
    let (_, session) = node.ask_as(&A, "POST /v1/sessions", &json!({"durable": true})).await;
    let id = session["id"].as_str().unwrap();
    let runs = format!("POST /v1/sessions/{id}/runs");
    let code = json!({"code": "open('/m/log', 'a').write('x')\nimport os; os._exit(3)"});
    let (status, mut ran) = node.ask_as(&A, &runs, &code).await;
    assert_eq!((status, &ran["session_alive"]), (200, &json!(false)), "{ran}");
    ran.as_object_mut().unwrap().remove("usage");
    for signal in [Signal::TERM, Signal::KILL] {
        assert_eq!(result(&node, id).await, ran);
        assert_eq!(node.ask_as(&A, &runs, &code).await.0, 410);
        node.signal(signal);
        node.end();
        node = start(&scratch);
    }
    assert_eq!((result(&node, id).await, log(&scratch)), (ran, "x".to_owned()));
}

#[tokio::test]
async fn another_process_has_the_same_result_of_each_way_to_run() {
    let scratch = Scratch::new("node-durable-ways");
    let node = start(&scratch);
    let mut runs = Vec::new();
    for mut body in [
        json!({"code": "print(1)\n7", "program": true}),
        json!({"code": "n + 1", "inputs": {"n": 41}}),
        json!({"code": "echo a; exit 3", "syntax": "shell"}),
        json!({"code": "input()", "stdin": "typed\n", "timeout": 20.0}),
        json!({"code": "import sys\nsys.exit(4)", "program": true, "argv": ["x"]}),
        json!({"code": "1 / 0", "name": "a.py"}),
    ] {
        body["durable"] = json!(true);
        let (status, begun) = node.ask_as(&A, "POST /v1/run", &body).await;
        assert_eq!(status, 202, "{begun}");
        let id = begun["session"].as_str().unwrap().to_owned();
        let ran = result(&node, &id).await;
        runs.push((id, ran));
    }
    kill(node);
    let node = start(&scratch);
    for (id, ran) in runs {
        assert_eq!(result(&node, &id).await, ran);
    }
}

#[tokio::test]
async fn a_reader_that_comes_late_hears_what_is_lost_and_the_rest() {
    let scratch = Scratch::new("node-durable-dropped");
    let node = start(&scratch);
    let limits = json!({"stdout_bytes": 50_000, "stderr_bytes": 1000, "display_bytes": 1000});
    let body = json!({
        "durable": true, "policy": {"limits": limits},
        "code": "for n in range(30_000): print(f'{n:09}')",
    });
    let (_, begun) = node.ask_as(&A, "POST /v1/run", &body).await;
    let id = begun["session"].as_str().unwrap();
    result(&node, id).await;
    let mut events = reattach(&node, id, "0-0-0").await;
    let dropped = events.next().await.unwrap();
    assert_eq!(dropped["type"], "dropped", "{dropped}");
    let cursor = dropped["cursor"].as_str().unwrap();
    let lost: usize = cursor.split('-').next().unwrap().parse().unwrap();
    let mut heard = Heard::default();
    heard.until(&mut events, None).await;
    assert!(heard.output.ends_with("000029999\n") && lost > 0, "{lost}");
    assert_eq!(lost + heard.output.len(), 300_000, "{cursor}");
}

#[tokio::test]
async fn a_run_that_is_under_way_is_said_to_be_and_a_cursor_that_is_none_is_refused() {
    let scratch = Scratch::new("node-durable-under-way");
    let config =
        format!("queue_time = 0.1\n[journals]\ndirectory = {:?}", scratch.path().join("j"));
    let node = Node::configured(&scratch, &config);
    let body = json!({"code": "ask(number=1)", "durable": true, "policy": policy()});
    let (status, begun) = node.ask("POST /v1/run", &body).await;
    assert_eq!(status, 202, "{begun}");
    let run = format!("GET /v1/sessions/{}/runs/1", begun["session"].as_str().unwrap());
    assert_eq!(node.ask(&run, &Value::Null).await, (202, json!({"run": 1})));
    for cursor in ["", "1", "1-2-3-4", "1-2--3", "%ff-1-1", "1-2-99999999999999999999", "a-b-c"] {
        let read = format!("{run}?after={cursor}");
        let (status, problem) = node.ask_as(&[super::EVENTS], &read, &Value::Null).await;
        assert_eq!((status, &problem["code"]), (400, &json!("invalid")), "{cursor}: {problem}");
    }
    let (status, problem) =
        node.ask_as(&[super::EVENTS], &format!("{run}?from=1-2-3"), &Value::Null).await;
    assert_eq!(status, 400, "{problem}");
}

#[tokio::test]
async fn a_session_for_which_there_is_no_room_is_restored_once_there_is() {
    let scratch = Scratch::new("node-durable-full");
    let (directory, log) = (scratch.path().join("j"), scratch.path().join("log"));
    let start = |sessions: usize| {
        let config = format!(
            "max_sessions = {sessions}\nqueue_time = 0.1\naudit_log = {log:?}\n[journals]\ndirectory = {directory:?}"
        );
        Node::configured(&scratch, &config)
    };
    let node = start(2);
    let ids = [
        node.session(&json!({"durable": true})).await,
        node.session(&json!({"durable": true})).await,
    ];
    kill(node);
    let node = start(1);
    let get = |id: &str| format!("GET /v1/sessions/{id}");
    let mut restored = None;
    until(async || {
        for (nth, id) in ids.iter().enumerate() {
            if node.ask(&get(id), &Value::Null).await.0 == 200 {
                restored = Some(nth);
            }
        }
        restored.is_some()
    })
    .await;
    let (id, other) = (&ids[restored.unwrap()], &ids[1 - restored.unwrap()]);
    let (status, problem) = node.ask(&get(other), &Value::Null).await;
    assert_eq!((status, &problem["code"]), (503, &json!("restoring")), "{problem}");
    assert_eq!(node.ask(&format!("DELETE /v1/sessions/{id}"), &Value::Null).await.0, 204);
    until(async || node.ask(&get(other), &Value::Null).await.0 == 200).await;
    assert_eq!(node.run(other, "1 + 1").await.1["value"], 2);
    let text = std::fs::read_to_string(&log).unwrap();
    let restored = text.lines().filter(|line| line.contains("\"restored\""));
    assert_eq!(restored.count(), 2, "{text}");
}
