//! `isolet mcp --http`, by requests as they are on the wire.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::client::{MODERN, add_meta};
use isolet_test_support::{LONGEST, Scratch, command, ended, isolet};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

struct Server {
    child: Child,
    address: String,
    /// What it said about itself.
    said: Vec<String>,
}

impl Server {
    fn start(args: &[&str], lines: usize) -> Self {
        let mut server = command(["mcp", "--http"]);
        server.args(args);
        Self::of(server, lines)
    }

    /// Starts a server by this command.
    fn of(mut server: Command, lines: usize) -> Self {
        let mut child = server.stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let said: Vec<String> = stderr.lines().take(lines).map(Result::unwrap).collect();
        let address = said[0].strip_prefix("listening at ").unwrap();
        let address = address.strip_prefix("http://").unwrap_or(address);
        let address = address.split('/').next().unwrap().to_owned();
        Self { child, address, said }
    }

    fn with_token(scratch: &Scratch) -> Self {
        let path = token_file(scratch.path());
        Self::start(&["127.0.0.1:0", "--token-file", &path], 1)
    }

    /// Sends a request with these headers. Returns the status and the body.
    fn post(&self, headers: &[(&str, &str)], body: &Value) -> (u16, String) {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(LONGEST)).unwrap();
        let mut all = vec![("Host", self.address.as_str())];
        all.retain(|(name, _)| headers.iter().all(|(other, _)| other != name));
        all.extend_from_slice(headers);
        exchange(stream, &all, body)
    }

    /// Calls the server as a client of the modern revision does.
    fn call(&self, headers: &[(&str, &str)], method: &str, params: Value) -> (u16, Value) {
        let bearer = format!("Bearer {TOKEN}");
        let mut all = vec![("Authorization", bearer.as_str())];
        all.extend_from_slice(headers);
        let (status, body) = modern(method, params, |extra, message| {
            let mut all = all.clone();
            all.extend_from_slice(extra);
            self.post(&all, message)
        });
        (status, body)
    }

    fn run(&self, code: &str, session: Option<&str>) -> Value {
        let mut arguments = json!({"code": code});
        if let Some(session) = session {
            arguments["session"] = session.into();
        }
        let params = json!({"name": "run_python", "arguments": arguments});
        let (status, answer) = self.call(&[], "tools/call", params);
        assert_eq!(status, 200, "{answer}");
        answer["result"]["structuredContent"].clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Makes a request of the modern revision, and returns the answer in it.
fn modern(
    method: &str,
    mut params: Value,
    post: impl FnOnce(&[(&str, &str)], &Value) -> (u16, String),
) -> (u16, Value) {
    add_meta(&mut params);
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let mut headers = vec![("MCP-Protocol-Version", MODERN), ("Mcp-Method", method)];
    if let Some(name) = message["params"]["name"].as_str() {
        headers.push(("Mcp-Name", name));
    }
    let (status, body) = post(&headers, &message);
    // The answer is a JSON text, or the last event of a stream.
    let data = body.lines().filter_map(|line| line.strip_prefix("data:"));
    let mut events = data.filter_map(|data| serde_json::from_str(data.trim()).ok());
    let answer = events.next_back().or_else(|| serde_json::from_str(&body).ok());
    (status, answer.unwrap_or(Value::String(body)))
}

fn exchange(
    mut stream: impl Read + Write,
    headers: &[(&str, &str)],
    body: &Value,
) -> (u16, String) {
    send(&mut stream, headers, body);
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

fn send(stream: &mut impl Write, headers: &[(&str, &str)], body: &Value) {
    let body = body.to_string();
    let mut request = String::from("POST /mcp HTTP/1.1\r\nConnection: close\r\n");
    for (name, value) in headers {
        write!(request, "{name}: {value}\r\n").unwrap();
    }
    write!(
        request,
        "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    stream.write_all(request.as_bytes()).unwrap();
}

fn token_file(directory: &Path) -> String {
    let path = directory.join("token");
    fs::write(&path, TOKEN).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn sessions_go_on_over_http_from_connection_to_connection() {
    let scratch = Scratch::new("mcp-http");
    let server = Server::with_token(&scratch);
    let first = server.run("x = 41", None);
    let handle = first["session"].as_str().unwrap();
    assert_eq!(server.run("x + 1", Some(handle))["value"], 42);
    let (_, tools) = server.call(&[], "tools/list", json!({}));
    assert_eq!(tools["result"]["tools"].as_array().unwrap().len(), 2, "{tools}");
}

#[test]
fn who_does_not_know_the_token_gets_nothing() {
    let scratch = Scratch::new("mcp-token");
    let server = Server::with_token(&scratch);
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
    let wrong = format!("Bearer {}x", &TOKEN[1..]);
    let basic = format!("Basic {TOKEN}");
    for headers in [&[][..], &[("Authorization", &*wrong)], &[("Authorization", &*basic)]] {
        let (status, body) = server.post(headers, &list);
        assert_eq!(status, 401);
        assert!(body.contains("Authorization: Bearer TOKEN"), "{body}");
    }
}

#[test]
fn pages_of_other_origins_and_other_host_names_are_refused() {
    let scratch = Scratch::new("mcp-origin");
    let path = token_file(scratch.path());
    let allowed = "https://app.example.com:443";
    let args = ["127.0.0.1:0", "--token-file", &path, "--allow-origin", allowed];
    let server = Server::start(&args, 1);
    let status = |headers: &[(&str, &str)]| server.call(headers, "tools/list", json!({})).0;
    assert_eq!(status(&[]), 200);
    assert_eq!(status(&[("Origin", "https://app.example.com")]), 200);
    assert_eq!(status(&[("Origin", "https://evil.example.com")]), 403);
    assert_eq!(status(&[("Origin", "http://localhost:6274")]), 200);
    assert_eq!(status(&[("Origin", "http://localhost.example.com")]), 403);
    assert_eq!(status(&[("Origin", "null")]), 403);
    assert_eq!(status(&[("Host", "evil.example.com")]), 403);
    let port = server.address.rsplit(':').next().unwrap();
    assert_eq!(status(&[("Host", &format!("localhost:{port}"))]), 200);
}

/// Sends a request without the headers that clients of the protocol have. Returns the head of the
/// answer, in lower case, and its body.
fn plain(address: &str, method: &str, headers: &[(&str, &str)], body: &str) -> (String, Value) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LONGEST)).unwrap();
    let mut request = format!("{method} /mcp HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    for (name, value) in headers {
        write!(request, "{name}: {value}\r\n").unwrap();
    }
    write!(request, "Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let body = serde_json::from_str(body).unwrap_or_else(|_| body.into());
    (head.to_ascii_lowercase(), body)
}

fn status(head: &str) -> &str {
    head.split(' ').nth(1).unwrap()
}

#[test]
fn a_page_of_an_allowed_origin_is_asked_answered_and_can_read_it() {
    let scratch = Scratch::new("mcp-cors");
    let path = token_file(scratch.path());
    let allowed = "https://app.example.com";
    let args = ["127.0.0.1:0", "--token-file", &path, "--allow-origin", allowed];
    let server = Server::start(&args, 1);
    let ask =
        [("Access-Control-Request-Method", "POST"), ("Access-Control-Request-Headers", "x-y")];
    let asked = |origin| {
        let headers = [&[("Origin", origin)], &ask[..]].concat();
        plain(&server.address, "OPTIONS", &headers, "").0
    };
    let head = asked(allowed);
    assert_eq!(status(&head), "204", "{head}");
    for line in [
        "access-control-allow-origin: https://app.example.com",
        "access-control-allow-headers: x-y",
        "access-control-allow-methods: get, post, delete, options",
        "vary: origin",
    ] {
        assert!(head.contains(line), "{head}");
    }
    let head = asked("https://evil.example.com");
    assert!(status(&head) != "204" && !head.contains("access-control"), "{head}");

    let (origin, kind) = (("Origin", allowed), ("Content-Type", "application/json"));
    let bearer = format!("Bearer {TOKEN}");
    let token = ("Authorization", bearer.as_str());
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}}})
    .to_string();
    let (head, _) = plain(&server.address, "POST", &[origin, kind, token], &hello);
    assert_eq!(status(&head), "200", "{head}");
    assert!(head.contains("access-control-allow-origin: https://app.example.com"), "{head}");
    assert!(head.contains("access-control-expose-headers: mcp-session-id"), "{head}");
    // Also why it was refused.
    let (head, said) = plain(&server.address, "POST", &[origin, kind], &hello);
    assert_eq!((status(&head), &said["id"]), ("401", &Value::Null), "{head}");
    assert!(head.contains("access-control-allow-origin: https://app.example.com"), "{head}");
}

#[test]
fn clients_may_read_one_form_only_and_refusals_are_messages() {
    let scratch = Scratch::new("mcp-accept");
    let server = Server::with_token(&scratch);
    let bearer = format!("Bearer {TOKEN}");
    let (kind, token) = (("Content-Type", "application/json"), ("Authorization", bearer.as_str()));
    let post = |headers: &[(&str, &str)], body: &str| {
        plain(&server.address, "POST", &[&[kind, token], headers].concat(), body)
    };
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}}})
    .to_string();
    let mut session = String::new();
    for (accept, form) in [
        ("*/*", "text/event-stream"),
        ("text/event-stream", "text/event-stream"),
        ("application/json", "application/json"),
    ] {
        let (head, body) = post(&[("Accept", accept)], &hello);
        assert_eq!(status(&head), "200", "{accept}: {body}");
        assert!(head.contains(&format!("content-type: {form}")), "{accept}: {head}");
        let line = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
        session = line.unwrap().to_owned();
        if form == "application/json" {
            assert_eq!(body["result"]["serverInfo"]["name"], "isolet", "{body}");
        }
    }
    let in_session = [("Accept", "application/json"), ("Mcp-Session-Id", session.as_str())];
    let call = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":
        {"name":"run_python","arguments":{"code":"len('\ud83d!')"}}}"#;
    let (_, body) = post(&in_session, call);
    assert_eq!(
        (&body["id"], &body["result"]["structuredContent"]["value"]),
        (&json!(7), &json!(2))
    );
    for (headers, body, expected, id) in [
        (&in_session[..], r#"{"jsonrpc":"2.0","id":7,"method":"ping","x":NaN}"#, "400", json!(7)),
        (&[("Accept", "image/png")], &*hello, "406", Value::Null),
        (&[("Mcp-Session-Id", "gone")], call, "404", Value::Null),
    ] {
        let (head, said) = post(headers, body);
        assert_eq!((status(&head), &said["id"]), (expected, &id), "{said}");
        assert_eq!(said["jsonrpc"], "2.0");
    }
    let (head, said) = plain(&server.address, "GET", &[token, ("Accept", "*/*")], "");
    assert_eq!((status(&head), &said["id"]), ("400", &Value::Null), "{said}");
    let (head, _) = plain(&server.address, "DELETE", &[token, in_session[1]], "");
    assert_eq!(status(&head), "204", "{head}");
}

#[test]
fn strangers_that_say_nothing_keep_nobody_waiting() {
    let scratch = Scratch::new("mcp-strangers");
    let path = token_file(scratch.path());
    let isolet = command([""]);
    let mut few = Command::new("sh");
    few.args(["-c", "ulimit -n 128; exec \"$0\" \"$@\""]).arg(isolet.get_program());
    few.envs(isolet.get_envs().filter_map(|(name, value)| Some((name, value?))));
    few.args(["mcp", "--http", "127.0.0.1:0", "--token-file", &path]).stdin(Stdio::null());
    let server = Server::of(few, 1);
    // More than it has descriptors, half of them with half a head.
    let strangers = (0..160).map(|at| {
        let mut stranger = TcpStream::connect(&server.address).unwrap();
        if at % 2 == 0 {
            stranger.write_all(b"POST /mcp HTTP/1.1\r\nX: ").unwrap();
        }
        stranger
    });
    let _strangers: Vec<TcpStream> = strangers.collect();
    let (status, answer) = server.call(&[], "tools/list", json!({}));
    assert_eq!(status, 200, "{answer}");
}

#[test]
fn without_a_token_file_a_server_makes_a_token_and_serves_this_machine_only() {
    let server = Server::start(&["127.0.0.1:0"], 2);
    let token = server.said[1].strip_prefix("clients have to send: Authorization: ").unwrap();
    let (status, answer) = modern("tools/list", json!({}), |extra, message| {
        let mut headers = vec![("Authorization", token)];
        headers.extend_from_slice(extra);
        server.post(&headers, message)
    });
    assert_eq!(status, 200, "{answer}");
    let ran = isolet(["mcp", "--http", "0.0.0.0:0"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("`--http 0.0.0.0:0` is open to other machines"), "{ran:?}");
}

#[test]
fn a_unix_socket_lets_its_owner_in_and_is_removed_at_the_end() {
    let scratch = Scratch::new("mcp-unix");
    let path = scratch.path().join("socket");
    let address = format!("unix:{}", path.display());
    let mut server = Server::start(&[&address], 1);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let (status, answer) = modern("tools/list", json!({}), |extra, message| {
        let mut headers = vec![("Host", "localhost")];
        headers.extend_from_slice(extra);
        exchange(UnixStream::connect(&path).unwrap(), &headers, message)
    });
    assert_eq!(status, 200, "{answer}");
    let second = isolet(["mcp", "--http", &address]);
    assert!(second.stderr.contains("a server listens at"), "{second:?}");
    let id = server.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    let child = std::mem::replace(&mut server.child, Command::new("true").spawn().unwrap());
    assert!(ended(child).success());
    assert!(!path.exists());
}

#[test]
fn code_whose_client_is_gone_is_interrupted_and_its_session_goes_on() {
    let scratch = Scratch::new("mcp-gone");
    let path = token_file(scratch.path());
    // Longer than any test takes.
    let args = ["127.0.0.1:0", "--token-file", &path, "--timeout", "10m"];
    let server = Server::start(&args, 1);
    let handle = server.run("x = 5", None)["session"].as_str().unwrap().to_owned();
    let code = "while True: x += 1";
    let arguments = json!({"code": code, "session": handle});
    let bearer = format!("Bearer {TOKEN}");
    modern(
        "tools/call",
        json!({"name": "run_python", "arguments": arguments}),
        |extra, message| {
            let mut headers = vec![("Host", server.address.as_str()), ("Authorization", &*bearer)];
            headers.extend_from_slice(extra);
            let mut stream = TcpStream::connect(&server.address).unwrap();
            send(&mut stream, &headers, message);
            // It is closed before an answer came.
            (0, String::new())
        },
    );
    let value = server.run("x >= 5", Some(&handle))["value"].clone();
    assert_eq!(value, true);
}
