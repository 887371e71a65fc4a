//! Tests of the WebSockets of a node, by a client that writes their frames itself, so that it can
//! also write what none should.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::client::conn::http1::handshake;
use hyper::upgrade::Upgraded;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{Node, key_hash};
use isolet_test_support::{LONGEST, Scratch};

const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// What a client of version 13 sends, with the key of the standard's example.
const HANDSHAKE: [(&str, &str); 4] = [
    ("connection", "Upgrade"),
    ("upgrade", "websocket"),
    ("sec-websocket-version", "13"),
    ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
];

/// Asks for a WebSocket. Returns the response, and the connection that becomes one.
async fn asked(
    place: &str,
    path: &str,
    headers: &[(&str, &str)],
) -> Response<hyper::body::Incoming> {
    let stream = TcpStream::connect(place).await.unwrap();
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection.with_upgrades());
    let mut request = Request::get(path);
    if !headers.iter().any(|(name, _)| *name == "host") {
        request = request.header("host", "localhost");
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(String::new()).unwrap();
    let response = tokio::time::timeout(LONGEST, sender.send_request(request)).await;
    response.unwrap().unwrap()
}

pub(super) struct Client {
    connection: TokioIo<Upgraded>,
}

impl Client {
    pub(super) async fn connect(node: &Node, path: &str) -> Self {
        Self::connect_as(node, path, &[]).await
    }

    async fn connect_as(node: &Node, path: &str, headers: &[(&str, &str)]) -> Self {
        Self::connect_to(&node.place, path, headers).await
    }

    /// Connects to any server of WebSockets.
    pub(super) async fn connect_to(place: &str, path: &str, headers: &[(&str, &str)]) -> Self {
        let response = asked(place, path, &[&HANDSHAKE, headers].concat()).await;
        assert_eq!(response.status(), 101);
        assert_eq!(response.headers()["sec-websocket-accept"], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        let connection = hyper::upgrade::on(response).await.unwrap();
        Self { connection: TokioIo::new(connection) }
    }

    /// Writes a frame with a mask of zeros, under which the payload is itself.
    async fn frame(&mut self, opcode: u8, is_last: bool, payload: &[u8]) {
        let mut frame = vec![opcode | if is_last { 0x80 } else { 0 }];
        match payload.len() {
            short @ ..126 => frame.push(0x80 | u8::try_from(short).unwrap()),
            // The shortest form of a length is the only one.
            middle @ ..0x1_0000 => {
                frame.push(0x80 | 0x7e);
                frame.extend(u16::try_from(middle).unwrap().to_be_bytes());
            }
            long => {
                frame.push(0x80 | 0x7f);
                frame.extend((long as u64).to_be_bytes());
            }
        }
        frame.extend([0; 4]);
        frame.extend(payload);
        self.connection.write_all(&frame).await.unwrap();
    }

    pub(super) async fn send(&mut self, message: &Value) {
        self.frame(TEXT, true, message.to_string().as_bytes()).await;
    }

    /// Reads a frame.
    async fn read(&mut self) -> (u8, Vec<u8>) {
        let read = async {
            let connection = &mut self.connection;
            let head = connection.read_u16().await.unwrap().to_be_bytes();
            assert_eq!(head[0] & 0x80, 0x80, "the node does not split its messages");
            let length = match head[1] {
                126 => connection.read_u16().await.unwrap().into(),
                127 => connection.read_u64().await.unwrap(),
                short => short.into(),
            };
            let mut payload = vec![0; usize::try_from(length).unwrap()];
            connection.read_exact(&mut payload).await.unwrap();
            (head[0] & 0xf, payload)
        };
        tokio::time::timeout(LONGEST, read).await.unwrap()
    }

    /// Reads a message, and answers pings before it.
    pub(super) async fn next(&mut self) -> Value {
        loop {
            match self.read().await {
                (TEXT, payload) => return serde_json::from_slice(&payload).unwrap(),
                (PING, payload) => self.frame(PONG, true, &payload).await,
                (opcode, payload) => panic!("{opcode}: {}", String::from_utf8_lossy(&payload)),
            }
        }
    }

    pub(super) async fn ask(&mut self, message: &Value) -> Value {
        self.send(message).await;
        self.next().await
    }

    /// Reads until the node closes. Returns the code and the reason.
    async fn closed(&mut self) -> (u16, String) {
        loop {
            let (opcode, payload) = self.read().await;
            if opcode == CLOSE {
                let code = u16::from_be_bytes(payload[..2].try_into().unwrap());
                return (code, String::from_utf8(payload[2..].to_vec()).unwrap());
            }
        }
    }
}

async fn until(mut is_true: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !is_true().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(LONGEST, waiting).await.unwrap();
}

async fn sessions(node: &Node) -> u64 {
    node.ask("GET /v1/node", &Value::Null).await.1["sessions"].as_u64().unwrap()
}

#[tokio::test]
async fn requests_on_one_socket_are_answered_in_their_order_with_their_names() {
    let node = Node::start(&[]);
    let id = node.session(&json!({})).await;
    let mut client = Client::connect(&node, &format!("/v1/sessions/{id}/ws")).await;
    let code = "print('hi', end=''); x + 1";
    client.send(&json!({"type": "run", "id": 1, "code": code, "inputs": {"x": 41}})).await;
    client.send(&json!({"type": "run", "code": "1 / 0"})).await;
    client.send(&json!({"type": "set", "id": "s", "variables": {"y": [1]}})).await;
    client.send(&json!({"type": "get", "id": [], "name": "y"})).await;
    client.send(&json!({"type": "get", "name": "z"})).await;
    assert_eq!(client.next().await, json!({"type": "stdout", "id": 1, "text": "hi"}));
    let end = client.next().await;
    assert_eq!(
        (&end["type"], &end["id"], &end["execution"]["value"]),
        (&json!("end"), &json!(1), &json!(42))
    );
    let end = client.next().await;
    assert_eq!(
        (end.get("id"), &end["execution"]["exception"]["type"]),
        (None, &json!("ZeroDivisionError"))
    );
    assert_eq!(client.next().await, json!({"type": "ok", "id": "s", "value": null}));
    assert_eq!(client.next().await, json!({"type": "ok", "id": [], "value": [1]}));
    assert_eq!(client.next().await["problem"]["code"], "not_found");
    let variables = client.ask(&json!({"type": "variables"})).await;
    assert_eq!(variables["value"][0]["name"], "x");
    assert_eq!(client.ask(&json!({"type": "delete", "name": "y"})).await["value"], true);
    assert_eq!(client.ask(&json!({"type": "reset"})).await["type"], "ok");
    let ran = client.ask(&json!({"type": "run", "code": "x"})).await;
    assert_eq!(ran["execution"]["exception"]["type"], "NameError");
    // The session is there for others, too, and stays when the socket is closed.
    client.frame(CLOSE, true, &1000u16.to_be_bytes()).await;
    assert_eq!(client.closed().await.0, 1000);
    assert_eq!(node.run(&id, "1").await.1["value"], 1);
}

#[tokio::test]
async fn tools_are_answered_and_runs_interrupted_while_they_go_on() {
    let scratch = Scratch::new("websocket-tools");
    let node = Node::patient(&scratch);
    let mut client = Client::connect(&node, "/v1/ws").await;
    let tools = json!([{"name": "ask", "parameters": [{"name": "what"}]}]);
    // However loaded the machine is, the interrupt comes in time.
    let policy = json!({"tools": tools, "limits": {"grace": 100}});
    let session = client.ask(&json!({"type": "session", "id": 7, "policy": policy})).await;
    assert_eq!((&session["type"], &session["id"]), (&json!("session"), &json!(7)));
    assert!(session["session"].as_str().unwrap().starts_with("node-"), "{session}");
    let code = "print(ask('x'), end='')\ntry: ask('y')\nexcept ValueError as e: print(e, end='', flush=True)\nwhile True: pass";
    client.send(&json!({"type": "run", "id": 8, "code": code})).await;
    // It waits for the end of the run.
    client.send(&json!({"type": "run", "id": 9, "code": "'next'"})).await;
    let call = client.next().await;
    assert_eq!((&call["type"], &call["id"]), (&json!("tool_call"), &json!(8)), "{call}");
    assert_eq!(call["arguments"], json!({"what": "x"}));
    let misspelt = json!({"type": "tool_result", "call_id": call["call_id"], "valu": 1});
    for mut bad in [json!({"type": "tool_result", "call_id": "?"}), misspelt] {
        bad["id"] = json!("bad");
        client.send(&bad).await;
        let problem = client.next().await;
        let (id, code) = (&problem["id"], &problem["problem"]["code"]);
        assert_eq!((id, code), (&json!("bad"), &json!("invalid")));
    }
    client
        .send(&json!({"type": "tool_result", "call_id": call["call_id"], "value": "answered"}))
        .await;
    assert_eq!(client.next().await["text"], "answered");
    let call = client.next().await;
    let error = json!({"type": "ValueError", "message": "no"});
    client.send(&json!({"type": "tool_result", "call_id": call["call_id"], "error": error})).await;
    assert_eq!(client.next().await["text"], "no");
    client.send(&json!({"type": "interrupt"})).await;
    let end = client.next().await;
    let kind = &end["execution"]["termination"]["kind"];
    assert_eq!((&end["id"], kind), (&json!(8), &json!("interrupted")), "{end}");
    assert_eq!(client.next().await["execution"]["value"], "next");
}

#[tokio::test]
async fn a_run_that_is_interrupted_while_it_waits_for_its_turn_does_not_begin() {
    let scratch = Scratch::new("websocket-turn");
    let node = Node::configured(&scratch, "max_runs = 1");
    let mut first = Client::connect(&node, "/v1/ws").await;
    let tools = json!([{"name": "ask"}]);
    first.ask(&json!({"type": "session", "policy": {"tools": tools}})).await;
    first.send(&json!({"type": "run", "code": "ask()"})).await;
    let call = first.next().await;
    let mut second = Client::connect(&node, "/v1/ws").await;
    second.ask(&json!({"type": "session"})).await;
    second.send(&json!({"type": "run", "code": "print('begun')"})).await;
    let waiting = async || node.ask("GET /v1/node", &Value::Null).await.1["waiting"] == 1;
    until(waiting).await;
    let end = second.ask(&json!({"type": "interrupt"})).await;
    assert_eq!(end["execution"]["termination"]["kind"], "interrupted", "{end}");
    until(async || !waiting().await).await;
    first.send(&json!({"type": "tool_result", "call_id": call["call_id"], "value": 1})).await;
    assert_eq!(first.next().await["execution"]["value"], 1);
    assert_eq!(second.ask(&json!({"type": "run", "code": "2"})).await["execution"]["value"], 2);
}

#[tokio::test]
async fn a_socket_that_is_closed_ends_its_run_and_its_own_session() {
    let scratch = Scratch::new("websocket-closed");
    let node = Node::patient(&scratch);
    let id = node.session(&json!({"policy": {"limits": {"grace": 100}}})).await;
    let endless =
        json!({"type": "run", "code": "print('begun', end='', flush=True)\nwhile True: pass"});
    let mut attached = Client::connect(&node, &format!("/v1/sessions/{id}/ws")).await;
    assert_eq!(attached.ask(&endless).await["text"], "begun");
    assert_eq!(node.run(&id, "1").await.0, 409);
    // Neither says that it goes.
    drop(attached);
    until(async || node.run(&id, "1").await.0 == 200).await;
    let mut own = Client::connect(&node, "/v1/ws").await;
    own.ask(&json!({"type": "session"})).await;
    assert_eq!(own.ask(&endless).await["text"], "begun");
    assert_eq!(sessions(&node).await, 2);
    drop(own);
    until(async || sessions(&node).await == 1).await;
    assert_eq!(node.run(&id, "2").await.1["value"], 2);
}

#[tokio::test]
async fn a_guest_waits_for_a_client_that_does_not_read() {
    let scratch = Scratch::new("websocket-unread");
    let node = Node::patient(&scratch);
    let mut client = Client::connect(&node, "/v1/ws").await;
    let limits = json!({"run_time": 1000, "grace": 100});
    client.ask(&json!({"type": "session", "policy": {"limits": limits}})).await;
    let before = memory(&node);
    // 64 MiB, which fit into no buffer of a socket.
    let code = "for n in range(1024): print('x' * 65535)\n'written'";
    client.send(&json!({"type": "run", "code": code})).await;
    // Answers that nobody reads either.
    for _ in 0..1000 {
        client.frame(PING, true, b"").await;
    }
    let mut bytes = 0;
    let execution = loop {
        let (opcode, payload) = client.read().await;
        if opcode != TEXT {
            continue;
        }
        let mut event: Value = serde_json::from_slice(&payload).unwrap();
        if event["type"] == "end" {
            break event["execution"].take();
        }
        if bytes == 0 {
            let (_, load) = node.ask("GET /v1/node", &Value::Null).await;
            assert_eq!(load["running"], 1, "it waits, however long that takes");
        }
        bytes += event["text"].as_str().unwrap().len();
    };
    assert_eq!((bytes, &execution["value"]), (1024 * 65536, &json!("written")));
    let after = memory(&node);
    assert!(after < before + (32 << 20), "{before} and {after} bytes");
}

/// The most memory that the node itself has had, in bytes.
fn memory(node: &Node) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", node.pid())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[tokio::test]
async fn what_is_no_message_is_a_problem_and_what_is_no_websocket_ends_it() {
    let node = Node::start(&[]);
    let id = node.session(&json!({})).await;
    let path = format!("/v1/sessions/{id}/ws");
    let mut client = Client::connect(&node, &path).await;
    for (message, text) in [
        (json!([1]), "the message is list, and has to be an object"),
        (json!({"code": "1"}), "the string `type` is missing"),
        (json!({"type": "dance"}), "there is no message `dance`"),
        (json!({"type": "run"}), "missing field `code`"),
        (json!({"type": "get", "name": 1}), "the message is invalid"),
    ] {
        let problem = client.ask(&message).await;
        assert_eq!(
            (&problem["type"], &problem["problem"]["code"]),
            (&json!("error"), &json!("invalid"))
        );
        assert!(problem["problem"]["detail"].as_str().unwrap().contains(text), "{problem}");
    }
    client.frame(TEXT, true, b"{").await;
    assert!(client.next().await["problem"]["detail"].as_str().unwrap().contains("no JSON"));
    for (message, id) in [
        (&br#"{"id": 7, "type": "set", "variables": {"x": NaN}}"#[..], json!(7)),
        (br#"{"type": "run", "code": "1", "id": "a" "b"}"#, json!("a")),
        (br#"{"type": "run", "code": "1", "id": 8, "type": "get"}"#, json!(8)),
        (br#"{"type": "run", "code": "1", "id": 9, "id": 10}"#, json!(9)),
    ] {
        client.frame(TEXT, true, message).await;
        let problem = client.next().await;
        assert_eq!((&problem["type"], &problem["id"]), (&json!("error"), &id));
    }
    // A message in two pieces, with a ping between them.
    client.frame(TEXT, false, b"{\"type\": \"run\",").await;
    client.frame(PING, true, b"between").await;
    client.frame(0, true, b" \"code\": \"6 * 7\"}").await;
    assert_eq!(client.read().await, (PONG, b"between".to_vec()));
    assert_eq!(client.next().await["execution"]["value"], 42);
    client.frame(BINARY, true, b"{}").await;
    assert_eq!(client.closed().await, (1003, "messages have to be text".to_owned()));
    for (opcode, payload, code) in [(TEXT, &b"\xff"[..], 1007), (3, b"", 1002), (0, b"", 1002)] {
        let mut client = Client::connect(&node, &path).await;
        client.frame(opcode, true, payload).await;
        assert_eq!(client.closed().await.0, code, "{opcode}");
    }
    // As one frame, which is not waited for, and as many.
    let mut client = Client::connect(&node, &path).await;
    client.connection.write_all(&[0x81, 0xff, 0, 0, 0, 0, 4, 0, 0, 1, 0, 0, 0, 0]).await.unwrap();
    assert_eq!(client.closed().await.0, 1009);
    let mut client = Client::connect(&node, &path).await;
    let piece = vec![b' '; 32 << 20];
    client.frame(TEXT, false, &piece).await;
    client.frame(0, false, &piece).await;
    client.frame(0, true, b" ").await;
    assert_eq!(client.closed().await, (1009, "a message: limit 67108864 bytes".to_owned()));
    // More messages at once than may wait.
    let mut client = Client::connect(&node, &path).await;
    client.send(&json!({"type": "run", "code": "while True: pass"})).await;
    for _ in 0..17 {
        client.send(&json!({"type": "variables"})).await;
    }
    assert_eq!(client.closed().await.0, 1008);
    until(async || node.run(&id, "1").await.0 != 409).await;
}

#[tokio::test]
async fn messages_count_for_their_tenant_while_they_come_and_while_they_are_there() {
    let scratch = Scratch::new("websocket-meter");
    let config = format!(
        "max_in_flight = 4_000_000\n[tenants.a]\nkeys = [{:?}]\n\
         quotas = {{ connections = 4 }}\n[tenants.b]\nkeys = [{:?}]",
        key_hash("a"),
        key_hash("b")
    );
    let node = Node::configured(&scratch, &config);
    let (a, b) = (("x-api-key", "a"), ("x-api-key", "b"));
    let run = async |key, length: usize| {
        let body = json!({"code": "1", "stdin": "x".repeat(length)});
        node.ask_as(&[key], "POST /v1/run", &body).await
    };
    let given_back = until(async || run(a, 1_800_000).await.0 == 200);
    // What was carried out is given back: ten times as much as may be there at once.
    let mut client = Client::connect_as(&node, "/v1/ws", &[a]).await;
    assert_eq!(client.ask(&json!({"type": "session"})).await["type"], "session");
    for nth in 0..20 {
        let large = json!({"type": "set", "variables": {"x": "x".repeat(1_000_000), "n": nth}});
        assert_eq!(client.ask(&large).await["type"], "ok");
    }
    given_back.await;
    // A part of a message counts before the rest of it comes, for this tenant and no other.
    client.frame(TEXT, false, &vec![b' '; 1_500_000]).await;
    let refused = until(async || {
        let (status, problem) = run(a, 1_000_000).await;
        status == 429 && problem["detail"].as_str().unwrap().contains("limit 2000000")
    });
    refused.await;
    assert_eq!(run(b, 1_000_000).await.0, 200);
    // One for which there is no room ends the connection, which gives all of it back.
    client.frame(0, false, &vec![b' '; 600_000]).await;
    let (code, reason) = client.closed().await;
    assert!(code == 1008 && reason.contains("limit 2000000"), "{code} {reason}");
    drop(client);
    until(async || run(a, 1_800_000).await.0 == 200).await;
    // A WebSocket is a connection in use until it ends.
    let mut open = Vec::new();
    for _ in 0..4 {
        open.push(Client::connect_as(&node, "/v1/ws", &[a]).await);
    }
    let refused = asked(&node.place, "/v1/ws", &[&HANDSHAKE[..], &[a]].concat()).await;
    assert_eq!((refused.status().as_u16(), run(a, 1).await.0), (429, 429));
    drop(open);
    until(async || run(a, 1).await.0 == 200).await;
}

#[tokio::test]
async fn what_an_openenv_environment_keeps_counts_for_its_tenant() {
    let scratch = Scratch::new("websocket-openenv");
    let config = format!("max_in_flight = 4_000_000\n[tenants.a]\nkeys = [{:?}]\n", key_hash("a"));
    let node = Node::configured(&scratch, &config);
    let a = ("x-api-key", "a");
    let run = async |length: usize| {
        let body = json!({"code": "1", "stdin": "x".repeat(length)});
        node.ask_as(&[a], "POST /v1/run", &body).await
    };
    let mut client = Client::connect_as(&node, "/openenv/repl/ws", &[a]).await;
    let reset = |length: usize| json!({"type": "reset", "data": {"context": "x".repeat(length)}});
    let first = client.ask(&reset(900_000)).await;
    assert_eq!(first["data"]["observation"]["context_length"], 900_000, "{first}");
    let (status, problem) = run(1_500_000).await;
    assert_eq!((status, &problem["code"]), (429, &json!("quota")), "{problem}");
    let state = client.ask(&json!({"type": "state"})).await;
    assert_eq!(state["data"]["context"].as_str().unwrap().len(), 900_000);
    // A second one has no room beside it, and a shorter one takes its place.
    let mut other = Client::connect_as(&node, "/openenv/repl/ws", &[a]).await;
    let refused = other.ask(&reset(700_000)).await;
    assert_eq!(refused["type"], "error", "{refused}");
    assert!(refused["data"]["message"].as_str().unwrap().contains("limit 2000000"), "{refused}");
    let shorter = client.ask(&reset(10)).await;
    assert_eq!(shorter["data"]["observation"]["context_preview"], "x".repeat(10), "{shorter}");
    until(async || run(1_500_000).await.0 == 200).await;
    // An answer of the code is kept, too, until the environment ends.
    let code = "answer['content'] = 'y' * 900_000; answer['ready'] = True";
    let step = client.ask(&json!({"type": "step", "data": {"code": code}})).await;
    assert_eq!(step["data"]["done"], true, "{step}");
    assert_eq!(run(1_500_000).await.0, 429);
    drop(client);
    until(async || run(1_500_000).await.0 == 200).await;
}

#[tokio::test]
async fn a_peer_that_is_not_heard_of_is_taken_for_gone_and_one_that_answers_pings_is_not() {
    let scratch = Scratch::new("websocket-silence");
    let node = Node::configured(&scratch, "idle = 1");
    let is_over = Arc::new(AtomicBool::new(false));
    let mut there = Client::connect(&node, "/v1/ws").await;
    there.ask(&json!({"type": "session"})).await;
    let there = tokio::spawn({
        let is_over = Arc::clone(&is_over);
        async move {
            while !is_over.load(Ordering::Relaxed) {
                let (opcode, payload) = there.read().await;
                assert_eq!(opcode, PING);
                there.frame(PONG, true, &payload).await;
            }
            there.ask(&json!({"type": "run", "code": "3"})).await
        }
    });
    let mut silent = Client::connect(&node, "/v1/ws").await;
    silent.send(&json!({"type": "session"})).await;
    assert_eq!(silent.closed().await, (1008, "nothing was heard for 1 s".to_owned()));
    until(async || sessions(&node).await == 1).await;
    is_over.store(true, Ordering::Relaxed);
    assert_eq!(there.await.unwrap()["execution"]["value"], 3);
}

#[tokio::test]
async fn a_session_that_ends_closes_its_socket_and_frees_its_place() {
    let node = Node::start(&["--max-sessions", "1"]);
    let id = node.session(&json!({})).await;
    let path = format!("/v1/sessions/{id}/ws");
    let mut client = Client::connect(&node, &path).await;
    assert_eq!(client.ask(&json!({"type": "run", "code": "1"})).await["type"], "end");
    let mut refused = Client::connect(&node, "/v1/ws").await;
    let answer = refused.ask(&json!({"type": "session", "id": 1})).await;
    assert_eq!((&answer["id"], &answer["problem"]["code"]), (&json!(1), &json!("capacity")));
    assert_eq!(refused.closed().await.0, 4503);
    assert_eq!(node.ask(&format!("DELETE /v1/sessions/{id}"), &Value::Null).await.0, 204);
    assert_eq!(client.closed().await, (4410, "the session is gone: it was closed".to_owned()));
    // Also one that the guest ends, after its answer.
    let mut own = Client::connect(&node, "/v1/ws").await;
    let asked_for = json!({"type": "session", "policy": {"checkpoint": false}});
    assert_eq!(own.ask(&asked_for).await["type"], "session");
    let end = own.ask(&json!({"type": "run", "code": "import os; os._exit(3)"})).await;
    assert_eq!(end["execution"]["exit_code"], 3);
    assert_eq!(own.closed().await.0, 4410);
    until(async || sessions(&node).await == 0).await;
    let response = asked(&node.place, &path, &HANDSHAKE).await;
    assert_eq!(response.status(), 410);
}

#[tokio::test]
async fn a_node_that_ends_says_so_on_its_sockets() {
    let node = Node::start(&[]);
    let mut idle = Client::connect(&node, "/v1/ws").await;
    idle.ask(&json!({"type": "session"})).await;
    let mut busy = Client::connect(&node, "/v1/ws").await;
    busy.ask(&json!({"type": "session", "policy": {"tools": [{"name": "ask"}]}})).await;
    busy.send(&json!({"type": "run", "code": "ask()"})).await;
    let call = busy.next().await;
    node.signal(rustix::process::Signal::TERM);
    until(async || node.ask("GET /readyz", &Value::Null).await.0 == 503).await;
    let mut late = Client::connect(&node, "/v1/ws").await;
    let refused = late.ask(&json!({"type": "session"})).await;
    assert_eq!(refused["problem"]["code"], "draining");
    busy.send(&json!({"type": "tool_result", "call_id": call["call_id"], "value": "late"})).await;
    assert_eq!(busy.next().await["execution"]["value"], "late");
    assert_eq!(busy.closed().await, (1001, "the node ends".to_owned()));
    assert_eq!(idle.closed().await, (1001, "the node ends".to_owned()));
    assert_eq!(node.end(), Some(0));
}

#[tokio::test]
async fn a_websocket_needs_what_a_request_needs() {
    let scratch = Scratch::new("websocket-keys");
    let config = format!("[tenants.a]\nkeys = [{:?}]", key_hash("the key"));
    let node = Node::configured(&scratch, &config);
    let key = ("authorization", "Bearer the key");
    let status = async |path: &str, headers: &[(&str, &str)]| {
        asked(&node.place, path, &[&HANDSHAKE, headers].concat()).await.status().as_u16()
    };
    for path in ["/v1/ws", "/openenv/coding/ws", "/openenv/repl/ws"] {
        assert_eq!(status(path, &[]).await, 401, "{path}");
        assert_eq!(status(path, &[("x-api-key", "another")]).await, 401, "{path}");
        // A browser may know the key, and the page of another host must not use it.
        let origin = ("origin", "https://evil.example");
        assert_eq!(status(path, &[key, origin]).await, 403, "{path}");
        let own = [key, ("host", "node.example:8080"), ("origin", "https://node.example:8080")];
        assert_eq!(status(path, &own).await, 101, "{path}");
    }
    let (_, session) = node.ask_as(&[key], "POST /v1/sessions", &json!({})).await;
    let path = format!("/v1/sessions/{}/ws", session["id"].as_str().unwrap());
    assert_eq!(status(&path, &[]).await, 401);
    let token = ("x-session-token", session["token"].as_str().unwrap());
    let mut client = Client::connect_as(&node, &path, &[token]).await;
    assert_eq!(client.ask(&json!({"type": "run", "code": "1"})).await["type"], "end");
    assert_eq!(
        asked(&node.place, "/openenv/chess/ws", &[&HANDSHAKE[..], &[key]].concat()).await.status(),
        404
    );
    // Without keys, the host counts, too.
    let open = Node::start(&[]);
    for headers in [("host", "evil.example"), ("origin", "https://evil.example")] {
        let response = asked(&open.place, "/v1/ws", &[&HANDSHAKE[..], &[headers]].concat()).await;
        assert_eq!(response.status(), 403, "{headers:?}");
    }
    for missing in 0..HANDSHAKE.len() {
        let mut headers = HANDSHAKE.to_vec();
        headers.remove(missing);
        assert_eq!(asked(&open.place, "/v1/ws", &headers).await.status(), 400, "{missing}");
    }
}
