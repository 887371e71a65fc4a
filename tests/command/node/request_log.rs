//! Tests of a node's request log: a line for each request, which nothing of a client forges.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Stdio};
use std::sync::mpsc::{Receiver, channel};

use hyper::Request;
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::websocket::Client;
use super::{EVENTS, Events, Node, collected, key_hash};
use isolet_test_support::{LONGEST, Scratch, command, ended};

/// What only the one client knows, and no line may have.
const SECRET: &str = "canary-of-a-client";

/// A node whose standard error is read by the test.
fn spawned(args: &[&str]) -> (Child, BufReader<ChildStderr>) {
    let mut child = command(["serve", "--listen", "127.0.0.1:0", "--die-with-parent"])
        .args(args)
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stderr = BufReader::new(child.stderr.take().unwrap());
    (child, stderr)
}

/// Starts a node with a log. Returns its lines from then on.
fn logged(args: &[&str]) -> (Node, Receiver<String>) {
    let (child, mut stderr) = spawned(args);
    let mut place = None;
    while place.is_none() {
        let mut line = String::new();
        assert!(stderr.read_line(&mut line).unwrap() > 0);
        let address = line.split_once("http://").map(|(_, address)| address);
        place = address.map(|address| address.trim_end().trim_end_matches("\"}").to_owned());
    }
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        stderr.lines().map_while(Result::ok).all(|line| sender.send(line).is_ok())
    });
    (Node { child: Some(child), place: place.unwrap() }, lines)
}

/// Starts a node with a log of JSON and this configuration.
fn as_json(scratch: &Scratch, config: &str) -> (Node, Receiver<String>) {
    let config = scratch.file("node.toml", format!("log = \"json\"\n{config}"));
    logged(&["--config", &config])
}

/// Returns the next line of JSON with this event.
fn next(lines: &Receiver<String>, event: &str) -> Value {
    loop {
        let line = lines.recv_timeout(LONGEST).unwrap();
        assert!(!line.contains(SECRET), "{line}");
        let line: Value = serde_json::from_str(&line).unwrap();
        assert!(line["time"].as_f64().unwrap() > 1.7e9, "{line}");
        if line["event"] == event {
            return line;
        }
    }
}

#[tokio::test]
async fn a_request_is_a_line_without_what_was_sent_and_with_whose_it_is() {
    let scratch = Scratch::new("node-log-lines");
    let key = key_hash(SECRET);
    let (node, lines) = as_json(&scratch, &format!("[tenants.alice]\nkeys = [{key:?}]"));
    let bearer = format!("Bearer {SECRET}");
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let parent = format!("00-{trace}-b7ad6b7169203331-01");
    let headers =
        [("authorization", &*bearer), ("traceparent", &parent), ("x-request-id", "id-of-a-proxy")];

    let (_, session) = node.ask_as(&headers, "POST /v1/sessions", &json!({})).await;
    let id = session["id"].as_str().unwrap();
    let line = next(&lines, "request");
    assert_eq!((&line["method"], &line["route"]), (&json!("POST"), &json!("/v1/sessions")));
    assert_eq!((&line["status"], &line["tenant"]), (&json!(201), &json!("alice")));
    assert_eq!((&line["session"], &line["trace"]), (&json!(id), &json!(trace)));
    assert_eq!(
        (&line["request_id"], &line["received_bytes"]),
        (&json!("id-of-a-proxy"), &json!(2))
    );
    assert!(line["peer"].as_str().unwrap().starts_with("127.0.0.1:"), "{line}");
    assert!(line["duration"].as_f64().unwrap() > 0.0 && line.get("incomplete").is_none(), "{line}");

    let body = json!({"code": format!("print({SECRET:?})")});
    let runs = format!("POST /v1/sessions/{id}/runs?{SECRET}");
    let response = node.send(&runs, &[headers[0]], &body).await;
    let answer = collected(response).await;
    let line = next(&lines, "request");
    assert_eq!((&line["route"], &line["session"]), (&json!("/v1/sessions/{id}/runs"), &json!(id)));
    assert_eq!(line["received_bytes"], body.to_string().len());
    assert_eq!(line["sent_bytes"], answer.len());

    // A stream's line comes with its end, and tells of all its bytes.
    let streamed = node.send(&runs, &[headers[0], EVENTS], &body).await;
    let mut events = Events::of(streamed);
    while events.next().await.is_some() {}
    let line = next(&lines, "request");
    assert!(line["sent_bytes"].as_u64().unwrap() > 100 && line.get("incomplete").is_none());

    let file = format!("GET /v1/sessions/{id}/files/{SECRET}");
    assert_eq!(node.ask_as(&[headers[0]], &file, &Value::Null).await.0, 404);
    let line = next(&lines, "request");
    let expected = json!("/v1/sessions/{id}/files/{*path}");
    assert_eq!((&line["route"], &line["code"]), (&expected, &json!("not_found")));

    // A client that goes away.
    let body = json!({"code": "print(1)\nwhile True: pass"}).to_string();
    let mut stream = TcpStream::connect(&node.place).await.unwrap();
    let request = format!(
        "POST /v1/sessions/{id}/runs HTTP/1.1\r\nhost: localhost\r\nx-api-key: {SECRET}\r\n\
         accept: {}\r\ncontent-length: {}\r\n\r\n{body}",
        EVENTS.1,
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.windows(6).any(|part| part == b"stdout") {
        assert_ne!(stream.read_buf(&mut answer).await.unwrap(), 0);
    }
    drop(stream);
    assert_eq!(next(&lines, "request")["incomplete"], true);

    node.signal(Signal::TERM);
    assert_eq!(next(&lines, "draining")["sessions"], 1);
    assert!(next(&lines, "ended")["uptime"].as_f64().unwrap() > 0.0);
    assert_eq!(node.end(), Some(0));
}

#[tokio::test]
async fn who_is_refused_is_a_line_with_the_reason() {
    let scratch = Scratch::new("node-log-refused");
    let key = key_hash("the key");
    let (node, lines) = as_json(&scratch, &format!("[tenants.a]\nkeys = [{key:?}]"));
    let bearer = format!("Bearer {SECRET}");
    let refused = async |headers: &[(&str, &str)], request: &str| {
        let (status, _) = node.ask_as(headers, request, &Value::Null).await;
        let line = next(&lines, "refused");
        assert_eq!(line["status"], status, "{line}");
        assert!(line.get("tenant").is_none(), "{line}");
        line["reason"].as_str().unwrap().to_owned()
    };
    assert_eq!(refused(&[], "POST /v1/run").await, "no key was sent");
    for headers in [("authorization", &*bearer), ("x-api-key", SECRET)] {
        assert_eq!(refused(&[headers], "POST /v1/run").await, "the key is none of this node's");
    }
    let token = [("x-session-token", SECRET)];
    let reason = refused(&token, "GET /v1/sessions/node-x").await;
    assert_eq!(reason, "the token is none of this session's");
    let scratch = Scratch::new("node-log-refused-host");
    let (node, lines) = as_json(&scratch, "");
    for (headers, reason) in [
        ([("host", "attacker.example"), ("a", "b")], "the host is not a loopback address"),
        (
            [("host", "localhost"), ("origin", "http://a.example")],
            "the request is another web page's",
        ),
    ] {
        assert_eq!(node.ask_as(&headers, "POST /v1/run", &Value::Null).await.0, 403);
        assert_eq!(next(&lines, "refused")["reason"], reason);
    }
}

#[tokio::test]
async fn nothing_that_a_client_sends_makes_another_line_or_field() {
    let scratch = Scratch::new("node-log-forged");
    let key = key_hash("k");
    // The operator has chosen this name, but it may be a customer's.
    let config = format!("[tenants.\"a\\n\\u001b[31m status=200\"]\nkeys = [{key:?}]");
    let config = scratch.file("node.toml", config);
    let (node, lines) = logged(&["--config", &config, "--log", "text"]);
    let long = format!("/{}", "x".repeat(10_000));
    let headers = [("x-api-key", "k"), ("x-request-id", "a b=\"c\" status=200")];
    for path in ["/%0a2026%20GET", "/%1b[31m", "/%E2%80%AE", "/a\"=b", "/\u{202e}\u{85}", &long] {
        let mut connection = node.connect().await;
        let mut request = Request::builder().method("BREW").uri(path).header("host", "localhost");
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let request = request.body(http_body_util::Full::default()).unwrap();
        assert_eq!(connection.send_request(request).await.unwrap().status(), 404, "{path}");
        let line = lines.recv_timeout(LONGEST).unwrap();
        let mut words = line.split(' ');
        let time = words.next().unwrap();
        assert!(time.len() == 24 && time.ends_with('Z'), "{line}");
        assert_eq!(words.next(), Some("BREW"), "{line}");
        assert!(words.next().unwrap().starts_with('/'), "{line}");
        assert_eq!(words.next(), Some("404"), "{line}");
        assert!(line.len() < 600 && !line.contains("request_id"), "{line}");
        assert!(line.contains(r#" tenant="a\n\u{1b}[31m status=200" "#), "{line}");
        let is_shown = |letter: char| !letter.is_control() && letter != '\u{202e}';
        assert!(line.chars().all(is_shown), "{line}");
    }
    node.signal(Signal::TERM);
    let draining = lines.recv_timeout(LONGEST).unwrap();
    assert!(draining.ends_with(" draining runs=0 sessions=0"), "{draining}");
    assert_eq!(node.end(), Some(0));
}

#[tokio::test]
async fn a_websocket_is_a_line_once_it_has_ended() {
    let scratch = Scratch::new("node-log-socket");
    let (node, lines) = as_json(&scratch, "");
    let mut client = Client::connect(&node, "/v1/ws").await;
    let session = client.ask(&json!({"type": "session"})).await["session"].clone();
    let ended = client.ask(&json!({"type": "run", "code": "6 * 7"})).await;
    assert_eq!(ended["execution"]["value"], 42);
    drop(client);
    let line = next(&lines, "socket");
    assert_eq!((&line["route"], &line["status"]), (&json!("/v1/ws"), &json!(101)));
    assert_eq!((&line["session"], &line["tenant"]), (&session, &json!("local")));
    assert!(line["received_bytes"].as_u64().unwrap() > 50, "{line}");
    assert!(line["sent_bytes"].as_u64().unwrap() > 100, "{line}");
}

#[tokio::test]
async fn a_log_that_nobody_reads_holds_nothing_up_and_says_what_it_has_lost() {
    let (mut child, mut stderr) = spawned(&["--log", "json"]);
    let mut first = String::new();
    stderr.read_line(&mut first).unwrap();
    let first: Value = serde_json::from_str(&first).unwrap();
    assert_eq!(first["event"], "started");
    let place = first["address"].as_str().unwrap().trim_start_matches("http://").to_owned();
    let node = Node { child: None, place };
    // More lines than the pipe and the queue take together.
    let mut connection = node.connect().await;
    let asked = 6000;
    for _ in 0..asked {
        let request = Request::get("/livez").header("host", "localhost");
        let request = request.body(http_body_util::Full::default()).unwrap();
        connection.ready().await.unwrap();
        let sent = tokio::time::timeout(LONGEST, connection.send_request(request)).await;
        assert_eq!(collected(sent.unwrap().unwrap()).await, "ok\n");
    }
    let (sender, read) = std::sync::mpsc::channel::<Value>();
    std::thread::spawn(move || {
        let lines = stderr.lines().map_while(Result::ok);
        lines.map(|line| serde_json::from_str(&line).unwrap()).try_for_each(|l| sender.send(l))
    });
    // Once somebody reads, the next line tells of those that are lost.
    collected(node.send("GET /livez", &[], &Value::Null).await).await;
    let (mut requests, mut lost) = (0, 0);
    while requests + lost < asked + 1 {
        let line = read.recv_timeout(LONGEST).unwrap();
        match line["event"].as_str().unwrap() {
            "request" => requests += 1,
            "dropped" => lost += line["lines"].as_u64().unwrap(),
            other => panic!("{other}: {line}"),
        }
    }
    assert!(lost > 0, "{requests}");
    assert_eq!(requests + lost, asked + 1);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(read.iter().last().unwrap()["event"], "ended");
}

#[test]
fn a_node_whose_pipe_stays_full_ends_all_the_same() {
    let (child, mut stderr) = spawned(&["--log", "json"]);
    let mut first = String::new();
    stderr.read_line(&mut first).unwrap();
    let first: Value = serde_json::from_str(&first).unwrap();
    let place = first["address"].as_str().unwrap().trim_start_matches("http://").to_owned();
    let node = Node { child: Some(child), place };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let mut connection = node.connect().await;
        for _ in 0..1000 {
            let request = Request::get("/livez").header("host", "localhost");
            let request = request.body(http_body_util::Full::default()).unwrap();
            connection.ready().await.unwrap();
            collected(connection.send_request(request).await.unwrap()).await;
        }
    });
    // The tenants are read again, which the node says, too.
    node.signal(Signal::HUP);
    node.signal(Signal::TERM);
    assert_eq!(node.end(), Some(0));
    drop(stderr);
}

#[tokio::test]
async fn without_a_terminal_and_an_option_only_the_start_is_a_line() {
    let (child, mut stderr) = spawned(&[]);
    let mut first = String::new();
    stderr.read_line(&mut first).unwrap();
    let (_, place) = first.split_once(" listening at http://").unwrap();
    let node = Node { child: None, place: place.trim_end().to_owned() };
    assert_eq!(node.ask("POST /v1/run", &json!({"code": "1"})).await.0, 200);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, Signal::TERM).unwrap();
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
    assert_eq!(ended(child).code(), Some(0));
}
