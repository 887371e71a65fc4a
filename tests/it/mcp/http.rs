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
use crate::util::{LONGEST, Scratch, command, ended, isolet};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

struct Server {
    child: Child,
    address: String,
    /// What it said about itself.
    said: Vec<String>,
}

impl Server {
    fn start(args: &[&str], lines: usize) -> Self {
        let mut child =
            command(["mcp", "--http"]).args(args).stderr(Stdio::piped()).spawn().unwrap();
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
    assert!(ran.stderr.contains("0.0.0.0:0 is reached from other machines"), "{ran:?}");
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
