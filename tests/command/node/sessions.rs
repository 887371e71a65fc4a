//! Tests of a node's sessions and runs: who may use them, and when they end.

use std::path::Path;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::Request;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{EVENTS, Events, Node, key_hash};
use isolet_test_support::{LONGEST, Scratch, command};

#[tokio::test]
async fn a_session_keeps_its_variables_from_run_to_run_until_it_is_ended() {
    let node = Node::start(&["--name", "n7"]);
    let id = node.session(&json!({"inputs": {"x": 40}, "metadata": {"for": "test"}})).await;
    assert!(id.starts_with("n7-"), "{id}");
    let (status, execution) = node.run(&id, "y = x + 2\nprint('hi')\ny").await;
    assert_eq!(
        (status, &execution["value"], &execution["stdout"]),
        (200, &json!(42), &json!("hi\n"))
    );
    assert_eq!(node.run(&id, "y * 2").await.1["value"], 84);
    let (status, raised) = node.run(&id, "1/0").await;
    assert_eq!((status, &raised["exception"]["type"]), (200, &json!("ZeroDivisionError")));
    // Variables and files by their own routes.
    let variable = format!("/v1/sessions/{id}/variables/z");
    assert_eq!(node.ask(&format!("PUT {variable}"), &json!({"value": [1, 2]})).await.0, 204);
    assert_eq!(
        node.ask(&format!("GET {variable}"), &Value::Null).await.1,
        json!({"value": [1, 2]})
    );
    assert_eq!(node.ask(&format!("DELETE {variable}"), &Value::Null).await.0, 204);
    assert_eq!(node.ask(&format!("GET {variable}"), &Value::Null).await.0, 404);
    let file = format!("/v1/sessions/{id}/files/tmp/a.json");
    assert_eq!(node.ask(&format!("PUT {file}"), &json!({"a": 1})).await.0, 204);
    assert_eq!(node.run(&id, "open('/tmp/a.json').read()").await.1["value"], "{\"a\":1}");
    assert_eq!(node.ask(&format!("GET {file}"), &Value::Null).await, (200, json!({"a": 1})));
    assert_eq!(node.ask(&format!("DELETE {file}"), &Value::Null).await.0, 204);
    assert_eq!(node.ask(&format!("GET {file}"), &Value::Null).await.0, 404);
    // It is listed with what its owner says about it.
    let (_, listed) = node.ask("GET /v1/sessions", &Value::Null).await;
    assert_eq!(listed["sessions"][0]["metadata"]["for"], "test");
    assert_eq!(node.ask(&format!("POST /v1/sessions/{id}/reset"), &Value::Null).await.0, 200);
    assert_eq!(node.run(&id, "y").await.1["exception"]["type"], "NameError");
    assert_eq!(node.ask(&format!("DELETE /v1/sessions/{id}"), &Value::Null).await.0, 204);
    let (status, problem) = node.run(&id, "1").await;
    assert_eq!((status, &problem["code"]), (410, &json!("gone")));
    assert!(problem["detail"].as_str().unwrap().contains("closed"), "{problem}");
}

#[tokio::test]
async fn a_run_of_its_own_leaves_no_session() {
    let node = Node::start(&[]);
    let body = json!({"code": "import sys; print(sys.stdin.read()); 42", "stdin": "in"});
    let (status, execution) = node.ask("POST /v1/run", &body).await;
    assert_eq!((status, &execution["value"]), (200, &json!(42)), "{execution}");
    assert_eq!(execution["stdout"], "in\n");
    assert_eq!(node.ask("GET /v1/node", &Value::Null).await.1["sessions"], 0);
}

#[tokio::test]
async fn a_program_keeps_its_variables_if_it_is_to() {
    let node = Node::start(&[]);
    let id = node.session(&json!({})).await;
    let (runs, kept) =
        (format!("POST /v1/sessions/{id}/runs"), format!("GET /v1/sessions/{id}/variables/kept"));
    let program = json!({"code": "kept = 42", "program": true});
    assert_eq!(node.ask(&runs, &program).await.0, 200);
    assert_eq!(node.ask(&kept, &Value::Null).await.0, 404);
    let program = json!({"code": "kept = 42", "program": true, "keep_variables": true});
    assert_eq!(node.ask(&runs, &program).await.0, 200);
    assert_eq!(node.ask(&kept, &Value::Null).await, (200, json!({"value": 42})));
}

#[tokio::test]
async fn events_come_while_the_code_runs_and_the_client_answers_its_tools() {
    let node = Node::start(&[]);
    let tools = json!([{"name": "ask", "parameters": [{"name": "what"}]}]);
    let id = node.session(&json!({"policy": {"tools": tools}})).await;
    let other = node.session(&json!({})).await;
    let code = "print('before', end=''); a = ask('x'); print(a, end='')\ntry: ask('y')\nexcept ValueError as e: print(e, end='')\n7";
    let path = format!("POST /v1/sessions/{id}/runs");
    let mut events = Events::of(node.send(&path, &[EVENTS], &json!({"code": code})).await);
    assert_eq!(events.next().await.unwrap(), json!({"type": "stdout", "text": "before"}));
    let call = events.next().await.unwrap();
    assert_eq!((&call["type"], &call["name"]), (&json!("tool_call"), &json!("ask")), "{call}");
    assert_eq!(call["arguments"], json!({"what": "x"}));
    let number = call["call_id"].as_u64().unwrap();
    // No other session's client can answer it.
    let forged = format!("POST /v1/sessions/{other}/calls/{number}");
    assert_eq!(node.ask(&forged, &json!({"value": "forged"})).await.0, 404);
    let answer = format!("POST /v1/sessions/{id}/calls/{number}");
    assert_eq!(node.ask(&answer, &json!({"value": "answered"})).await.0, 204);
    assert_eq!(events.next().await.unwrap()["text"], "answered");
    let number = events.next().await.unwrap()["call_id"].as_u64().unwrap();
    let answer = format!("POST /v1/sessions/{id}/calls/{number}");
    let failure = json!({"error": {"type": "ValueError", "message": "no"}});
    assert_eq!(node.ask(&answer, &failure).await.0, 204);
    assert_eq!(events.next().await.unwrap()["text"], "no");
    let end = events.next().await.unwrap();
    assert_eq!((&end["type"], &end["execution"]["value"]), (&json!("end"), &json!(7)), "{end}");
    assert_eq!(events.next().await, None);
    // A run that nobody listens to has nobody who answers.
    let ran = node.run(&id, "ask('z')").await.1;
    assert_eq!(ran["exception"]["type"], "RuntimeError", "{ran}");
}

#[tokio::test]
async fn a_client_that_goes_away_ends_its_run_and_not_its_session() {
    let scratch = Scratch::new("node-gone");
    let node = Node::patient(&scratch);
    // However loaded the machine is, the interrupt comes in time.
    let policy = json!({"limits": {"grace": 100}});
    let id = node.session(&json!({"inputs": {"x": 5}, "policy": policy})).await;
    let path = format!("POST /v1/sessions/{id}/runs");
    let code = "print('begun', end='', flush=True)\nwhile True: pass";
    let mut events = Events::of(node.send(&path, &[EVENTS], &json!({"code": code})).await);
    assert_eq!(events.next().await.unwrap()["text"], "begun");
    assert_eq!(node.run(&id, "1").await.0, 409);
    drop(events);
    let ended = async {
        loop {
            let (status, ran) = node.run(&id, "x").await;
            if status != 409 {
                return (status, ran["value"].clone());
            }
        }
    };
    assert_eq!(tokio::time::timeout(LONGEST, ended).await.unwrap(), (200, json!(5)));
}

#[tokio::test]
async fn a_client_that_goes_away_leaves_no_session_of_one_run() {
    let node = Node::start(&[]);
    let mut connection = node.connect().await;
    let body = json!({"code": "while True: pass", "timeout": 1000}).to_string();
    let request = Request::post("/v1/run").header("host", "localhost").body(Full::from(body));
    let mut response = Box::pin(connection.send_request(request.unwrap()));
    let sessions = async || node.ask("GET /v1/node", &Value::Null).await.1["sessions"].clone();
    let begun = async { while sessions().await != 1 {} };
    tokio::select! {
        _ = &mut response => panic!("the run does not end"),
        begun = tokio::time::timeout(LONGEST, begun) => begun.unwrap(),
    }
    drop(response);
    drop(connection);
    let ended = async { while sessions().await != 0 {} };
    tokio::time::timeout(LONGEST, ended).await.unwrap();
}

#[tokio::test]
async fn an_id_of_before_a_restart_is_gone_and_never_another_session() {
    let first = Node::start(&["--name", "a"]);
    let old = first.session(&json!({})).await;
    drop(first);
    let second = Node::start(&["--name", "a"]);
    let new = second.session(&json!({})).await;
    assert_ne!(old, new);
    let (status, problem) = second.run(&old, "1").await;
    assert_eq!((status, &problem["code"]), (410, &json!("gone")));
    assert_eq!(second.run(&new.replace("a-", "b-"), "1").await.0, 404);
    assert_eq!(second.run("nonsense", "1").await.0, 404);
    assert_eq!(second.run(&new, "1").await.0, 200);
}

#[tokio::test]
async fn a_tenant_has_its_own_sessions_and_no_more_than_its_ceiling() {
    let scratch = Scratch::new("node-tenants");
    let node = Node::configured(
        &scratch,
        &format!(
            "[ceiling]\nallow_net = ['*.example.com']\nlimits = {{ run_time = 20 }}
            [tenants.a]\nkeys = [{:?}]\nquotas = {{ sessions = 1 }}
            [tenants.b]\nkeys = [{:?}]\nceiling = {{}}",
            key_hash("key of a"),
            key_hash("key of b")
        ),
    );
    let (a, b) = ([("authorization", "Bearer key of a")], [("x-api-key", "key of b")]);
    for headers in [&[][..], &[("x-api-key", "key of c")]] {
        let (status, problem) = node.ask_as(headers, "POST /v1/sessions", &json!({})).await;
        assert_eq!((status, &problem["code"]), (401, &json!("unauthorized")));
    }
    let asked = json!({"policy": {"allow_net": ["api.example.com"]}});
    let (status, session) = node.ask_as(&a, "POST /v1/sessions", &asked).await;
    assert_eq!(status, 201, "{session}");
    let (id, token) = (session["id"].as_str().unwrap(), session["token"].as_str().unwrap());
    let (status, problem) = node.ask_as(&b, "POST /v1/sessions", &asked).await;
    assert_eq!((status, &problem["code"]), (403, &json!("denied")));
    assert!(problem["detail"].as_str().unwrap().contains("api.example.com"), "{problem}");
    for policy in [
        json!({"mounts": [{"host": "/", "guest": "/host"}]}),
        json!({"limits": {"run_time": 21}}),
        json!({"allow_env": ["HOME"]}),
        json!({"packages": ["numpy"]}),
    ] {
        let (status, problem) =
            node.ask_as(&a, "POST /v1/sessions", &json!({"policy": policy})).await;
        assert_eq!((status, &problem["code"]), (403, &json!("denied")), "{problem}");
    }
    // Another tenant does not learn that the session is there. Its token is enough to use it.
    let run = format!("POST /v1/sessions/{id}/runs");
    let code = json!({"code": "40 + 2"});
    assert_eq!(node.ask_as(&b, &run, &code).await.0, 404);
    assert_eq!(node.ask_as(&[], &run, &code).await.0, 401);
    let wrong = "0".repeat(32);
    assert_eq!(node.ask_as(&[("x-session-token", &*wrong)], &run, &code).await.0, 401);
    assert_eq!(node.ask_as(&[("x-session-token", token)], &run, &code).await.1["value"], 42);
    assert_eq!(node.ask_as(&b, "GET /v1/sessions", &Value::Null).await.1, json!({"sessions": []}));
    // One session is all that the key may have at once.
    let response = node.send("POST /v1/sessions", &a, &json!({})).await;
    assert_eq!(
        (response.status().as_u16(), &response.headers()["retry-after"]),
        (429, &"1".parse().unwrap())
    );
    assert_eq!(node.ask_as(&a, &format!("DELETE /v1/sessions/{id}"), &Value::Null).await.0, 204);
    assert_eq!(node.ask_as(&a, "POST /v1/sessions", &json!({})).await.0, 201);
}

#[tokio::test]
async fn a_full_node_says_so_and_has_room_again_when_a_session_ends() {
    let node = Node::start(&["--max-sessions", "1"]);
    let id = node.session(&json!({})).await;
    let response = node.send("POST /v1/sessions", &[], &json!({})).await;
    assert_eq!(response.status(), 503);
    assert_eq!(response.headers()["retry-after"], "1");
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    assert_eq!(node.ask(&format!("DELETE /v1/sessions/{id}"), &Value::Null).await.0, 204);
    node.session(&json!({})).await;
}

#[tokio::test]
async fn a_session_whose_worker_dies_is_gone_and_others_are_not() {
    let node = Node::start(&[]);
    let policy = json!({"policy": {"checkpoint": false}});
    let (victim, other) = (node.session(&policy).await, node.session(&json!({})).await);
    let (status, ran) = node.run(&victim, "import os; os._exit(3)").await;
    assert_eq!((status, &ran["exit_code"]), (200, &json!(3)), "{ran}");
    assert_eq!((&ran["session_alive"], &ran["restored"]), (&json!(false), &Value::Null), "{ran}");
    let (status, problem) = node.run(&victim, "1").await;
    assert_eq!((status, &problem["code"]), (410, &json!("gone")), "{problem}");
    assert_eq!(node.run(&other, "1").await.1["value"], 1);
}

#[tokio::test]
async fn a_session_goes_on_when_its_worker_has_died_with_what_it_was_given() {
    let node = Node::start(&[]);
    let id = node.session(&json!({"inputs": {"given": [1]}})).await;
    let (status, ran) = node.run(&id, "given.append(2); import os; os._exit(3)").await;
    assert_eq!((status, &ran["exit_code"]), (200, &json!(3)), "{ran}");
    assert_eq!(ran["restored"], json!({"lost_runs": 1}), "{ran}");
    assert_eq!(ran.get("session_alive"), None, "{ran}");
    assert_eq!(node.run(&id, "given").await.1["value"], json!([1]));
}

#[tokio::test]
async fn sessions_end_when_their_time_is_over_or_nobody_uses_them() {
    let scratch = Scratch::new("node-times");
    let node = Node::configured(&scratch, "idle = 1");
    let short = node.session(&json!({"ttl": 0})).await;
    let idle = node.session(&json!({})).await;
    let reason = async |id: &str| {
        // Looking at a session would be using it; the list is not.
        loop {
            let (_, listed) = node.ask("GET /v1/sessions", &Value::Null).await;
            if !listed.to_string().contains(id) {
                return node.run(id, "1").await.1["detail"].as_str().unwrap().to_owned();
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let text = tokio::time::timeout(LONGEST, reason(&short)).await.unwrap();
    assert!(text.contains("its time was over"), "{text}");
    let text = tokio::time::timeout(LONGEST, reason(&idle)).await.unwrap();
    assert!(text.contains("nobody used it for 1 s"), "{text}");
}

#[tokio::test]
async fn a_session_that_is_deleted_or_whose_time_is_over_keeps_what_it_has_written() {
    let scratch = Scratch::new("node-endings");
    let shared = scratch.path().join("shared");
    std::fs::create_dir(&shared).unwrap();
    let config = format!(
        "idle = 1\n[policy]\nmounts = [{{ host = {shared:?}, guest = \"/m\", mode = \"rw\" }}]\n"
    );
    let node = Node::configured(&scratch, &config);
    let text = |name: &str| std::fs::read_to_string(shared.join(name)).unwrap();
    let open = |name: &str| format!("f = open('/m/{name}', 'w'); f.write('hi')");
    let deleted = node.session(&json!({})).await;
    assert_eq!(node.run(&deleted, &open("a")).await.1["value"], 2);
    assert_eq!(text("a"), "");
    assert_eq!(node.ask(&format!("DELETE /v1/sessions/{deleted}"), &Value::Null).await.0, 204);
    assert_eq!(text("a"), "hi");
    let idle = node.session(&json!({})).await;
    assert_eq!(node.run(&idle, &open("b")).await.1["value"], 2);
    let written = async {
        while text("b") != "hi" {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(LONGEST, written).await.unwrap();
    // So does one that there is when the node ends, and one that starts over.
    let reset = node.session(&json!({})).await;
    assert_eq!(node.run(&reset, &open("c")).await.1["value"], 2);
    assert_eq!(node.ask(&format!("POST /v1/sessions/{reset}/reset"), &Value::Null).await.0, 200);
    assert_eq!(text("c"), "hi");
    let last = node.session(&json!({})).await;
    assert_eq!(node.run(&last, &open("d")).await.1["value"], 2);
    assert_eq!(text("d"), "");
    node.signal(rustix::process::Signal::TERM);
    assert_eq!(node.end(), Some(0));
    assert_eq!(text("d"), "hi");
}

#[tokio::test]
async fn pages_of_the_web_cannot_use_a_node_without_keys() {
    let node = Node::start(&[]);
    for headers in [
        [("host", "evil.example"), ("accept", "*/*")],
        [("host", "localhost"), ("origin", "https://evil.example")],
        [("host", "localhost"), ("origin", "null")],
    ] {
        let (status, problem) = node.ask_as(&headers, "POST /v1/run", &json!({"code": "1"})).await;
        assert_eq!((status, &problem["code"]), (403, &json!("denied")), "{headers:?}");
    }
    // What a page embeds comes without an origin.
    for site in ["cross-site", "same-site", "anything"] {
        let headers = [("host", "localhost"), ("sec-fetch-site", site)];
        for request in ["GET /openenv/coding/state", "GET /v1/sessions", "GET /livez"] {
            assert_eq!(node.ask_as(&headers, request, &Value::Null).await.0, 403, "{site}");
        }
    }
    let (_, load) = node.ask("GET /v1/node", &Value::Null).await;
    assert_eq!(load["sessions"], 0);
    for site in ["none", "same-origin"] {
        let headers = [("host", "localhost"), ("sec-fetch-site", site)];
        assert_eq!(node.ask_as(&headers, "GET /v1/sessions", &Value::Null).await.0, 200);
    }
    let local = [("host", "127.0.0.1:8080"), ("origin", "http://localhost:3000")];
    assert_eq!(node.ask_as(&local, "POST /v1/run", &json!({"code": "1"})).await.0, 200);
}

#[tokio::test]
async fn a_node_that_is_told_to_end_lets_runs_end_and_takes_no_new_sessions() {
    let node = Node::start(&[]);
    let tools = json!([{"name": "ask"}]);
    let id = node.session(&json!({"policy": {"tools": tools}})).await;
    let path = format!("POST /v1/sessions/{id}/runs");
    let mut events = Events::of(node.send(&path, &[EVENTS], &json!({"code": "ask()"})).await);
    let number = events.next().await.unwrap()["call_id"].as_u64().unwrap();
    assert_eq!(node.ask("GET /readyz", &Value::Null).await.0, 200);
    node.signal(rustix::process::Signal::TERM);
    let refused = async {
        while node.ask("GET /readyz", &Value::Null).await.0 != 503 {}
        node.ask("POST /v1/sessions", &json!({})).await
    };
    let (status, problem) = tokio::time::timeout(LONGEST, refused).await.unwrap();
    assert_eq!((status, &problem["code"]), (503, &json!("draining")), "{problem}");
    assert_eq!(node.ask("GET /livez", &Value::Null).await.0, 200);
    let answer = format!("POST /v1/sessions/{id}/calls/{number}");
    assert_eq!(node.ask(&answer, &json!({"value": "late"})).await.0, 204);
    assert_eq!(events.next().await.unwrap()["execution"]["value"], "late");
    drop(events);
    assert_eq!(node.end(), Some(0));
}

#[tokio::test]
async fn an_answer_that_is_being_sent_arrives_though_the_node_ends() {
    let node = Node::start(&[]);
    let id = node.session(&json!({})).await;
    let path = format!("POST /v1/sessions/{id}/runs");
    let length = 15_000_000;
    let code = json!({"code": format!("'x' * {length}")});
    // Its head is there, and most of its body waits for the client.
    let answer = node.send(&path, &[], &code).await;
    node.signal(rustix::process::Signal::TERM);
    // Nothing runs, so that it listens no more.
    let deaf = async { while TcpStream::connect(&node.place).await.is_ok() {} };
    tokio::time::timeout(LONGEST, deaf).await.unwrap();
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    let execution: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(execution["value"].as_str().unwrap().len(), length);
    assert_eq!(node.end(), Some(0));
}

#[tokio::test]
async fn a_run_whose_client_has_gone_keeps_its_place_until_it_has_ended() {
    let scratch = Scratch::new("node-place");
    let config = "max_runs = 1\nqueue_time = 150\n[ceiling]\nlimits = { grace = 100 }";
    let node = Node::configured(&scratch, config);
    let policy = json!({"tools": [{"name": "ask"}], "limits": {"grace": 100}});
    let (first, second) =
        (node.session(&json!({"policy": policy})).await, node.session(&json!({})).await);
    let runs = format!("POST /v1/sessions/{first}/runs");
    // An interrupt does not end it until it says so.
    let code = "while True:\n    try:\n        if not done: print('begun', end='', flush=True)\n        while not done: pass\n        break\n    except KeyboardInterrupt:\n        done = True\n        x = sum(range(30_000_000))";
    let body = json!({"code": code, "inputs": {"done": false}});
    let mut events = Events::of(node.send(&runs, &[EVENTS], &body).await);
    assert_eq!(events.next().await.unwrap()["text"], "begun");
    drop(events);
    let (status, ran) = node.run(&second, "1").await;
    assert_eq!((status, &ran["value"]), (200, &json!(1)));
    // It has waited for the end of the other one.
    let (status, ran) = node.run(&first, "x").await;
    assert_eq!((status, &ran["value"]), (200, &json!(449_999_985_000_000u64)), "{ran}");
}

#[tokio::test]
async fn a_node_serves_at_a_unix_socket_and_removes_it() {
    let scratch = Scratch::new("node-unix");
    let path = scratch.path().join("socket");
    let node = Node::at(&format!("unix:{}", path.display()), &[]);
    assert_eq!(node.place, path.to_str().unwrap());
    let (status, ran) = node.ask("POST /v1/run", &json!({"code": "6 * 7"})).await;
    assert_eq!((status, &ran["value"]), (200, &json!(42)));
    node.signal(rustix::process::Signal::TERM);
    assert_eq!(node.end(), Some(0));
    assert!(!Path::new(&path).exists());
}

#[tokio::test]
async fn what_is_no_request_is_a_problem_that_says_why() {
    let node = Node::start(&[]);
    let long = "x".repeat(1 << 20);
    let id = node.session(&json!({})).await;
    for (request, body, status, code) in [
        ("POST /v1/sessions", json!([1]), 400, "invalid"),
        ("POST /v1/sessions", json!({"polcy": {}}), 400, "invalid"),
        ("POST /v1/sessions", json!({"policy": {"limits": {"run_tim": 1}}}), 422, "invalid"),
        ("POST /v1/sessions", json!({"ttl": -1}), 422, "invalid"),
        ("POST /v1/run", json!({}), 400, "invalid"),
        ("POST /v1/run", json!({"code": 1}), 400, "invalid"),
        ("POST /v1/run", json!({"code": "1", "timout_s": 1}), 400, "invalid"),
        ("POST /v1/sessions", json!({"metadata": "x".repeat(16_383)}), 422, "invalid"),
        ("POST /v1/sessions", json!({"policy": {"env": {"A": long}}}), 422, "invalid"),
        ("POST /v1/run", json!({"code": "1", "inputs": {"not a name": 1}}), 422, "value"),
        ("GET /v1/nothing", Value::Null, 404, "no_route"),
        ("PATCH /v1/sessions", Value::Null, 405, "no_route"),
        ("GET /v1/sessions/%ff", Value::Null, 400, "invalid"),
        ("POST /v1/sessions/a/calls/b", json!({}), 400, "invalid"),
    ] {
        let (found, problem) = node.ask(request, &body).await;
        assert_eq!(
            (found, &problem["code"]),
            (status, &json!(code)),
            "{request} {body}: {problem}"
        );
        assert!(!problem["detail"].as_str().unwrap().is_empty());
    }
    assert_eq!(node.run(&id, "1").await.0, 200);
}

#[tokio::test]
async fn names_that_stay_in_the_node_have_a_length() {
    let scratch = Scratch::new("node-names");
    let config = format!("[store]\ndirectory = {:?}", scratch.path().join("store"));
    let node = Node::configured(&scratch, &config);
    let id = node.session(&json!({})).await;
    let snapshots = format!("POST /v1/sessions/{id}/snapshots");
    let sandboxes = format!("POST /sandboxes/{id}/snapshots");
    for (length, is_right) in [(256, true), (257, false), (1_000_000, false)] {
        let name = "n".repeat(length);
        for request in [&snapshots, &sandboxes] {
            let (status, answer) = node.ask(request, &json!({"name": name})).await;
            assert_eq!(status == 201, is_right, "{request} {length}: {status}");
            let said = answer.to_string();
            assert!(is_right || said.contains(&format!("{length} bytes: limit 256")), "{request}");
            assert!(is_right || said.len() < 1000, "{request}");
        }
        let cell = json!({"generated_code": "1", "session_id": name});
        let (status, answer) = node.ask("POST /execute", &cell).await;
        assert_eq!(status == 200, is_right, "{length}: {status}");
        let said = answer.to_string();
        assert!(is_right || said.contains(&format!("{length} bytes")), "{said}");
        let reset = json!({"episode_id": name});
        for environment in ["coding", "repl"] {
            let request = format!("POST /openenv/{environment}/reset");
            let (status, answer) = node.ask(&request, &reset).await;
            assert_eq!(status == 200, is_right, "{environment} {length}: {status}");
            let said = answer.to_string();
            assert!(is_right || said.contains(&format!("{length} bytes: limit 256")), "{said}");
        }
    }
    for (length, is_right) in [(255, true), (256, false)] {
        let key = "k".repeat(length);
        let headers = [("idempotency-key", &*key)];
        let (status, answer) = node.ask_as(&headers, "POST /v1/sessions", &json!({})).await;
        assert_eq!(status == 201, is_right, "{length}: {status}");
        let said = answer.to_string();
        assert!(is_right || said.contains("256 characters: limit 255"), "{said}");
    }
}

#[tokio::test]
async fn a_body_above_the_limit_is_refused_with_the_limit() {
    let node = Node::start(&[]);
    let (mut reader, mut writer) = TcpStream::connect(&node.place).await.unwrap().into_split();
    let bytes = (64 << 20) + 1;
    let head =
        format!("POST /v1/run HTTP/1.1\r\nhost: localhost\r\ncontent-length: {bytes}\r\n\r\n");
    let sent = tokio::spawn(async move {
        writer.write_all(head.as_bytes()).await.unwrap();
        writer.write_all(&vec![b' '; bytes]).await.unwrap();
        writer
    });
    let mut answer = Vec::new();
    let read = async {
        while !String::from_utf8_lossy(&answer).contains("67108864") {
            assert_ne!(reader.read_buf(&mut answer).await.unwrap(), 0);
        }
    };
    tokio::time::timeout(LONGEST, read).await.unwrap();
    drop(sent.await);
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 413 ") && answer.contains("too_large"), "{answer}");
}

#[test]
fn an_address_that_other_machines_reach_needs_keys() {
    let output = command(["serve", "--listen", "0.0.0.0:0"]).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("0.0.0.0:0") && text.contains("[tenants]"), "{text}");
}

#[tokio::test]
async fn the_context_of_decimal_lives_from_run_to_run() {
    let node = Node::start(&[]);
    let id = node.session(&json!({})).await;
    node.run(&id, "import decimal; decimal.getcontext().prec = 10").await;
    let ran = node.run(&id, "str(decimal.Decimal(1) / 7)").await.1;
    assert_eq!(ran["value"], "0.1428571429", "{ran}");
}

/// A secret of the node's policy, which its file names by a variable, and one of a client are sent
/// to their hosts, and no answer of the node has them.
#[tokio::test]
async fn secrets_of_operators_and_clients_are_sent_and_not_seen() {
    use isolet_test_support::server::{Response, Server};

    let server = Server::start(|request| {
        Response::text(&format!("{:?} {:?}", request.header("x-own"), request.header("x-theirs")))
    });
    let (host, rule) = (server.url(""), server.rule());
    let scratch = Scratch::new("node-secrets");
    let file = scratch.path().join("key");
    std::fs::write(&file, "canary-of-operator\n").unwrap();
    let config = format!(
        "[policy]\nallow_net = [{rule:?}]\n[policy.secrets.THEIRS]\n\
         value = \"${{file:{}}}\"\nhosts = [{host:?}]\n",
        file.display()
    );
    let node = Node::configured(&scratch, &config);
    let code = format!(
        "import os, urllib.request as u\n\
         headers = {{'X-Own': os.environ['OWN'], 'X-Theirs': os.environ['THEIRS']}}\n\
         u.urlopen(u.Request({:?}, headers=headers)).read().decode()",
        server.url("/")
    );
    let secrets = json!({"OWN": {"value": "canary-of-client", "hosts": [host]}});
    let body = json!({"code": code, "policy": {"secrets": secrets}});
    let (status, answer) = node.ask("POST /v1/run", &body).await;
    assert_eq!(status, 200, "{answer}");
    assert!(!answer.to_string().contains("canary"), "{answer}");
    let value = answer["execution"]["value"].as_str().or(answer["value"].as_str()).unwrap();
    assert!(value.contains("ISOLET_SECRET_OWN_") && value.contains("ISOLET_SECRET_THEIRS_"));
    let seen = &server.requests()[0];
    assert_eq!(seen.header("x-own"), Some("canary-of-client"));
    assert_eq!(seen.header("x-theirs"), Some("canary-of-operator"));

    let secrets = json!({"OWN": {"value": "canary", "hosts": [host]}});
    let body = json!({"code": "1", "policy": {"secrets": secrets}});
    let (status, problem) = node.ask("POST /v1/run", &body).await;
    let detail = problem["detail"].as_str().unwrap();
    assert_eq!((status, detail), (422, "the secret `OWN` has 6 bytes, it needs 8 to 4096"));
}
