//! Tests of who gets to ask a node for something: what a request's head proves comes before its
//! body, and clients that are not known before those that are.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{Events, Node, key_hash};
use isolet_test_support::{LONGEST, Scratch};

/// How often to look whether memory was given back.
const LOOK: Duration = Duration::from_millis(20);

/// A request's head, without the body that it announces.
const ANNOUNCED: &str = "host: localhost\r\ncontent-type: application/json\r\n\
                         content-length: 67108864\r\n";

/// Sends a head, and returns the answer that comes before anything of the body is sent.
async fn answered(node: &Node, request: &str, headers: &str) -> String {
    let mut stream = TcpStream::connect(&node.place).await.unwrap();
    let head = format!("{request} HTTP/1.1\r\n{ANNOUNCED}{headers}\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"}") && !answer.ends_with(b"}\n") {
        assert_ne!(timeout(LONGEST, stream.read_buf(&mut answer)).await.unwrap().unwrap(), 0);
    }
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn who_has_no_key_is_told_so_before_the_body_is_read_whatever_the_route() {
    let scratch = Scratch::new("node-admission");
    let config = format!("[tenants.a]\nkeys = [{:?}]", key_hash("the key"));
    let node = Node::configured(&scratch, &config);
    let key = [("authorization", "Bearer the key")];
    let mut made = Vec::new();
    for _ in 0..2 {
        let (_, session) = node.ask_as(&key, "POST /v1/sessions", &json!({})).await;
        let text = |name: &str| session[name].as_str().unwrap().to_owned();
        made.push((text("id"), text("token")));
    }
    let [(id, token), (_, other_token)] = &made[..] else { panic!("{made:?}") };
    let wrong_token = format!("x-session-token: {other_token}\r\n");
    for headers in ["", "x-api-key: wrong\r\n", "authorization: Basic x\r\n", &wrong_token] {
        let run = format!("POST /v1/sessions/{id}/runs");
        let variable = format!("PUT /v1/sessions/{id}/variables/a");
        let file = format!("PUT /v1/sessions/{id}/files/a");
        for request in [
            "POST /v1/sessions",
            "POST /v1/run",
            "POST /v1/batch",
            &run,
            &variable,
            &file,
            "POST /v1/sessions/n-1/runs",
            "POST /execute",
            "DELETE /sessions/a",
            "POST /run_code",
            "POST /run_jupyter",
            "POST /sandboxes",
            "POST /v2/sandboxes",
            "POST /sandboxes/a/timeout",
            "POST /contexts",
            "POST /files?path=a",
            "POST /filesystem.Filesystem/Stat",
            "POST /process.Process/Start",
            "POST /openenv/coding/reset",
            "POST /openenv/repl/step",
            "POST /openenv/coding/mcp",
            "POST /v1/sandbox/run",
            "POST /run",
            "POST /librechat/exec",
            "POST /librechat/exec/programmatic",
            "POST /librechat/upload",
            "POST /librechat/upload/batch",
            "POST /v1/sandboxes",
            "POST /v1/sandboxes/a/renew-expiration",
            "POST /opensandbox/a/code",
            "POST /opensandbox/a/files/upload",
            "POST /no/such/route",
            "PATCH /v1/run",
        ] {
            let answer = answered(&node, request, headers).await;
            assert!(answer.starts_with("HTTP/1.1 401 "), "{request} {headers:?}: {answer}");
        }
        for request in ["POST /execute", "POST /files?path=a", "POST /contexts"] {
            for sandbox in [id, "unknown"] {
                let headers = format!("{headers}e2b-sandbox-id: {sandbox}\r\n");
                let answer = answered(&node, request, &headers).await;
                assert!(answer.starts_with("HTTP/1.1 401 "), "{request} {headers:?}: {answer}");
            }
        }
    }
    for route in ["/livez", "/readyz", "/metrics", "/openapi.json", "/health", "/v1/ping"] {
        assert_eq!(node.ask(&format!("GET {route}"), &Value::Null).await.0, 200, "{route}");
    }
    // A token is right for its session, and says of one that has ended that there was one.
    let mine = format!("x-session-token: {token}\r\n");
    assert!(answered(&node, "POST /v1/run", &mine).await.starts_with("HTTP/1.1 401 "));
    let with_token = [("x-session-token", token.as_str())];
    let request = format!("DELETE /v1/sessions/{id}");
    assert_eq!(node.ask_as(&with_token, &request, &Value::Null).await.0, 204);
    let answer = answered(&node, &format!("POST /v1/sessions/{id}/runs"), &mine).await;
    assert!(answer.starts_with("HTTP/1.1 410 "), "{answer}");
    let sandbox = format!("e2b-sandbox-id: {id}\r\nx-access-token: {token}\r\n");
    let answer = answered(&node, "POST /files?path=a", &sandbox).await;
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
}

#[tokio::test]
async fn connections_that_say_nothing_end_before_those_of_known_clients() {
    let scratch = Scratch::new("node-connections");
    let key = key_hash("the key");
    let node =
        Node::configured(&scratch, &format!("max_connections = 8\n[tenants.a]\nkeys = [{key:?}]"));
    let run = async |known: &mut TcpStream| {
        let request = "POST /v1/run HTTP/1.1\r\nhost: localhost\r\nx-api-key: the key\r\n\
                       content-length: 12\r\n\r\n{\"code\":\"1\"}";
        known.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"}\n") {
            assert_ne!(timeout(LONGEST, known.read_buf(&mut answer)).await.unwrap().unwrap(), 0);
        }
        assert!(answer.starts_with(b"HTTP/1.1 200 "));
    };
    let mut known = TcpStream::connect(&node.place).await.unwrap();
    run(&mut known).await;
    let mut silent = Vec::new();
    for nth in 0..100 {
        let mut stream = TcpStream::connect(&node.place).await.unwrap();
        if nth % 2 == 1 {
            stream.write_all(b"POST /v1/run HTTP/1.1\r\nhost: localhost\r\nx: ").await.unwrap();
        }
        silent.push(stream);
    }
    let mut newer = TcpStream::connect(&node.place).await.unwrap();
    run(&mut newer).await;
    run(&mut known).await;
    // The oldest have ended, as many as the others leave no room for.
    for stream in &mut silent[..90] {
        let read = timeout(LONGEST, stream.read(&mut [0])).await.unwrap();
        assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    }
}

/// Results of runs that have waited for each other are answers that are not read, too.
#[tokio::test]
async fn runs_that_wait_do_not_begin_while_answers_of_their_tenant_are_unread() {
    let scratch = Scratch::new("node-unread");
    let config = format!(
        "max_in_flight = 40_000_000\nmax_runs = 2\n[tenants.a]\nkeys = [{:?}]\n\
         [tenants.b]\nkeys = [{:?}]",
        key_hash("a"),
        key_hash("b")
    );
    let node = Node::configured(&scratch, &config);
    let body = r#"{"code": "'x' * 10_000_000"}"#;
    let head = "POST /v1/run HTTP/1.1\r\nhost: localhost\r\nx-api-key: a\r\n";
    let request = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
    let mut clients = Vec::new();
    for _ in 0..20 {
        let mut client = TcpStream::connect(&node.place).await.unwrap();
        client.write_all(request.as_bytes()).await.unwrap();
        clients.push(client);
    }
    let mut answered = 0;
    for client in &mut clients {
        let mut begin = [0; 12];
        timeout(LONGEST, client.read_exact(&mut begin)).await.unwrap().unwrap();
        match &begin {
            b"HTTP/1.1 200" => answered += 1,
            other => assert_eq!(other, b"HTTP/1.1 429"),
        }
    }
    // Two fill the tenant's half, and as many run beside them.
    assert!((2..=4).contains(&answered), "{answered}");
    let b = [("x-api-key", "b")];
    assert_eq!(node.ask_as(&b, "POST /v1/run", &json!({"code": "1"})).await.0, 200);
}

#[tokio::test]
async fn a_tenant_that_uses_up_sessions_and_the_store_leaves_half_for_others() {
    let scratch = Scratch::new("node-shares");
    let store = scratch.path().join("store").into_os_string().into_string().unwrap();
    let config = format!(
        "max_sessions = 4\n[store]\ndirectory = {store:?}\nsize = 8000000\n\
         [tenants.a]\nkeys = [{:?}]\n[tenants.b]\nkeys = [{:?}]",
        key_hash("a's"),
        key_hash("b's")
    );
    let node = Node::configured(&scratch, &config);
    let (a, b) = ([("x-api-key", "a's")], [("x-api-key", "b's")]);
    let mut last = String::new();
    for expected in [201, 201, 429, 429] {
        let (status, session) = node.ask_as(&a, "POST /v1/sessions", &json!({})).await;
        assert_eq!(status, expected, "{session}");
        last = session["id"].as_str().map_or(last, str::to_owned);
    }
    let snapshot = format!("POST /v1/sessions/{last}/snapshots");
    let mut saved = 0;
    let refused = loop {
        let (status, answer) = node.ask_as(&a, &snapshot, &json!({})).await;
        match status {
            201 => saved += 1,
            status => break (status, answer),
        }
    };
    assert_eq!(refused.0, 429, "{refused:?}");
    assert!(refused.1["detail"].as_str().unwrap().contains("limit 4000000, half"), "{refused:?}");
    assert!(saved > 0);
    for _ in 0..2 {
        let (status, session) = node.ask_as(&b, "POST /v1/sessions", &json!({})).await;
        assert_eq!(status, 201, "{session}");
        let snapshot = format!("POST /v1/sessions/{}/snapshots", session["id"].as_str().unwrap());
        let (status, answer) = node.ask_as(&b, &snapshot, &json!({})).await;
        assert_eq!(status, 201, "{answer}");
    }
}

#[tokio::test]
async fn a_tenant_with_many_requests_under_way_leaves_connections_for_others() {
    let scratch = Scratch::new("node-under-way");
    let config = format!(
        "max_connections = 8\n[tenants.a]\nkeys = [{:?}]\n[tenants.b]\nkeys = [{:?}]",
        key_hash("a"),
        key_hash("b")
    );
    let node = Node::configured(&scratch, &config);
    // Each is under way while the node waits for the body that it has asked for.
    let mut held = Vec::new();
    for _ in 0..4 {
        let mut stream = TcpStream::connect(&node.place).await.unwrap();
        let request = "POST /v1/run HTTP/1.1\r\nhost: localhost\r\nx-api-key: a\r\n\
                    expect: 100-continue\r\ncontent-length: 12\r\n\r\n";
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            assert_ne!(timeout(LONGEST, stream.read_buf(&mut answer)).await.unwrap().unwrap(), 0);
        }
        assert!(answer.starts_with(b"HTTP/1.1 100 "), "{}", String::from_utf8_lossy(&answer));
        held.push(stream);
    }
    let run = async |key| {
        let (request, body) = ("POST /v1/run", json!({"code": "6 * 7"}));
        node.ask_as(&[("x-api-key", key)], request, &body).await
    };
    let (status, problem) = run("a").await;
    assert_eq!((status, &problem["code"]), (429, &json!("quota")), "{problem}");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("limit 4 (`quotas.connections`"), "{detail}");
    for _ in 0..3 {
        let (status, ran) = run("b").await;
        assert_eq!((status, &ran["value"]), (200, &json!(42)), "{ran}");
    }
    // One that ends makes room.
    drop(held.pop());
    let ran = async { while run("a").await.0 != 200 {} };
    timeout(LONGEST, ran).await.unwrap();
}

#[tokio::test]
async fn bodies_and_values_have_a_bound_and_give_it_back() {
    let scratch = Scratch::new("node-bodies");
    let config = format!(
        "max_in_flight = 16_000_000\nmax_answer = 2_000_000\n
        [tenants.a]\nkeys = [{:?}]\n[tenants.b]\nkeys = [{:?}]",
        key_hash("a"),
        key_hash("b")
    );
    let node = Node::configured(&scratch, &config);
    let (a, b) = ([("x-api-key", "a")], [("x-api-key", "b")]);
    // One whose length is announced is refused before it comes, another one when it is too long.
    let mut chunked = Vec::new();
    for length in ["content-length: 8000001", "transfer-encoding: chunked"] {
        let mut stream = TcpStream::connect(&node.place).await.unwrap();
        let head = "POST /v1/run HTTP/1.1\r\nhost: localhost\r\nx-api-key: a\r\n";
        stream.write_all(format!("{head}{length}\r\n\r\n").as_bytes()).await.unwrap();
        if length.contains("chunked") {
            stream.write_all(b"8f0d18\r\n").await.unwrap();
            stream.write_all(&vec![b' '; 9_375_000]).await.unwrap();
        }
        let mut answer = Vec::new();
        while !answer.ends_with(b"}\n") {
            assert_ne!(timeout(LONGEST, stream.read_buf(&mut answer)).await.unwrap().unwrap(), 0);
        }
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 429 "), "{answer}");
        assert!(answer.contains("retry-after: 1") && answer.contains("limit 8000000"), "{answer}");
        chunked.push(stream);
    }
    // What they took was given back.
    let large = json!({"code": "1", "stdin": "x".repeat(7_900_000)});
    let given = async { while node.ask_as(&a, "POST /v1/run", &large).await.0 != 200 {} };
    timeout(LONGEST, given).await.unwrap();
    drop(chunked);
    // A body has a million values at most, in every protocol.
    let many = "0,".repeat(1_000_000);
    for (request, body) in [
        ("POST /v1/run", format!("{{\"code\": [{many}0]}}")),
        ("POST /v1/run", format!("{{\"code\": [{}]}}", many.replace("0,", "{},"))),
        ("POST /v1/sessions", format!("{{\"metadata\": [{many}0]}}")),
        ("POST /run_code", format!("{{\"code\": [{many}0]}}")),
        ("POST /execute", format!("{{\"generated_code\": [{many}0]}}")),
        ("POST /openenv/coding/step", format!("{{\"action\": [{many}0]}}")),
        ("POST /sandboxes", format!("{{\"metadata\": [{many}0]}}")),
    ] {
        let response = node.send_text(request, &b, body).await;
        assert_eq!(response.status(), 413, "{request}");
    }
    let response = node.send_text("POST /v1/batch", &b, format!("{{\"code\": [{many}0]}}")).await;
    let line = Events::of(response).next().await.unwrap();
    assert_eq!(line["problem"]["code"], "too_large", "{line}");
    // A value that JSON makes six times as long is an error of the execution.
    let nul = json!({"code": "'\\0' * 1_000_000"});
    let (status, execution) = node.ask_as(&b, "POST /v1/run", &nul).await;
    assert_eq!((status, execution.get("value")), (200, None));
    let error = execution["value_error"].as_str().unwrap();
    assert!(error.contains("6000002 bytes as JSON: limit 2000000"), "{error}");
    let (_, session) = node.ask_as(&b, "POST /v1/sessions", &json!({})).await;
    let id = session["id"].as_str().unwrap();
    let nul = json!({"code": "a = '\\0' * 1_000_000"});
    assert_eq!(node.ask_as(&b, &format!("POST /v1/sessions/{id}/runs"), &nul).await.0, 200);
    let variable = format!("GET /v1/sessions/{id}/variables/a");
    let (status, problem) = node.ask_as(&b, &variable, &Value::Null).await;
    assert_eq!((status, &problem["code"]), (422, &json!("limit")), "{problem}");
}

#[tokio::test]
async fn what_large_answers_took_is_given_back() {
    // Or the memory of the process would be that of its guests, too.
    let node = Node::start(&["--isolation", "process"]);
    let code = "for _ in range(7): display({'text/plain': '\\0' * (1 << 20)}, raw=True)";
    let round = async || {
        let run = async || node.ask("POST /v1/run", &json!({"code": code})).await;
        let (one, two, three, four) = tokio::join!(run(), run(), run(), run());
        for (status, ran) in [one, two, three, four] {
            assert_eq!((status, &ran["status"]), (200, &json!("completed")));
            assert!(!ran["displays"].as_array().unwrap().is_empty());
        }
    };
    let before = resident(&node);
    for _ in 0..6 {
        round().await;
    }
    // The last one may still be on its way.
    let given_back = async {
        while resident(&node) > before + (48 << 20) {
            tokio::time::sleep(LOOK).await;
        }
    };
    let was_given_back = timeout(LONGEST, given_back).await.is_ok();
    assert!(was_given_back, "{before} and {} bytes", resident(&node));
}

/// The memory that the node itself has, in bytes.
fn resident(node: &Node) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", node.pid())).unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    resident.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}
