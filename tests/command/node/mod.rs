//! A node, `isolet serve --listen`, for the tests that speak HTTP to the real command.

mod admission;
mod audit;
mod browser;
mod console;
mod description;
mod discretion;
mod durable;
mod durable_results;
mod facts;
mod operations;
mod request_log;
mod sessions;
mod unknown_keys;
mod websocket;

use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use isolet_test_support::{LONGEST, Scratch, command, ended};

pub(crate) const EVENTS: (&str, &str) = ("accept", "application/x-ndjson");

/// A node, which ends with the test.
pub(crate) struct Node {
    pub(crate) child: Option<Child>,
    /// Where it listens: `127.0.0.1:PORT`, or the path of a socket.
    pub(crate) place: String,
}

impl Node {
    /// Starts a node that listens at a port of its own.
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::at("127.0.0.1:0", args)
    }

    pub(crate) fn at(address: &str, args: &[&str]) -> Self {
        let mut child = command(["serve", "--listen", address, "--die-with-parent"])
            .args(args)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let said = lines.find_map(|line| {
            let line = line.unwrap();
            line.split_once(" listening at ").map(|(_, place)| place.to_owned())
        });
        let said = said.unwrap();
        // What it says later must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child: Some(child), place: said.trim_start_matches("http://").to_owned() }
    }

    /// Starts a node with a configuration.
    pub(crate) fn configured(scratch: &Scratch, config: &str) -> Self {
        let path = scratch.path().join("node.toml");
        std::fs::write(&path, config).unwrap();
        Self::start(&["--config", path.to_str().unwrap()])
    }

    /// Starts a node whose clients may have more time than by default.
    pub(crate) fn patient(scratch: &Scratch) -> Self {
        Self::configured(scratch, "[ceiling]\nlimits = { run_time = 1000, grace = 100 }")
    }

    pub(crate) async fn connect(&self) -> SendRequest<Full<Bytes>> {
        if self.place.starts_with('/') {
            connected(UnixStream::connect(&self.place).await.unwrap()).await
        } else {
            connected(TcpStream::connect(&self.place).await.unwrap()).await
        }
    }

    /// Sends a request, and returns the response before its body.
    pub(crate) async fn send(
        &self,
        request: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> Response<Incoming> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.send_text(request, headers, body).await
    }

    /// As [`send`](Self::send), with a body that need not be JSON.
    pub(crate) async fn send_text(
        &self,
        request: &str,
        headers: &[(&str, &str)],
        body: String,
    ) -> Response<Incoming> {
        let (method, path) = request.split_once(' ').unwrap();
        let mut builder = Request::builder().method(method).uri(path);
        if !headers.iter().any(|(name, _)| *name == "host") {
            builder = builder.header("host", "localhost");
        }
        for (name, value) in headers {
            builder = builder.header(*name, *value);
        }
        let request = builder.body(Full::from(body)).unwrap();
        let mut connection = self.connect().await;
        let response = tokio::time::timeout(LONGEST, connection.send_request(request)).await;
        response.unwrap().unwrap()
    }

    /// Sends a request, and returns the status and the JSON of the answer.
    pub(crate) async fn ask_as(
        &self,
        headers: &[(&str, &str)],
        request: &str,
        body: &Value,
    ) -> (u16, Value) {
        let response = self.send(request, headers, body).await;
        let status = response.status().as_u16();
        let bytes = collected(response).await;
        (status, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
    }

    pub(crate) async fn ask(&self, request: &str, body: &Value) -> (u16, Value) {
        self.ask_as(&[], request, body).await
    }

    /// Returns the text of an answer with the status 200.
    pub(crate) async fn text(&self, request: &str) -> String {
        let response = self.send(request, &[], &Value::Null).await;
        assert_eq!(response.status(), 200, "{request}");
        let bytes = collected(response).await;
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    /// Starts a session. Returns its id.
    pub(crate) async fn session(&self, body: &Value) -> String {
        let (status, session) = self.ask("POST /v1/sessions", body).await;
        assert_eq!(status, 201, "{session}");
        session["id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn run(&self, id: &str, code: &str) -> (u16, Value) {
        self.ask(&format!("POST /v1/sessions/{id}/runs"), &json!({"code": code})).await
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let child = self.child.as_ref().unwrap();
        let pid = rustix::process::Pid::from_child(child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Waits for the end of the process. Returns its status.
    pub(crate) fn end(mut self) -> Option<i32> {
        ended(self.child.take().unwrap()).code()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Returns the body of a response, once all of it is there.
async fn collected(response: Response<Incoming>) -> Bytes {
    let body = tokio::time::timeout(LONGEST, response.into_body().collect()).await;
    body.unwrap().unwrap().to_bytes()
}

pub(crate) async fn connected(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) -> SendRequest<Full<Bytes>> {
    let (sender, connection) = handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

/// The events of a response, as they come.
pub(crate) struct Events {
    pub(crate) body: Incoming,
    bytes: Vec<u8>,
}

impl Events {
    pub(crate) fn of(response: Response<Incoming>) -> Self {
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], EVENTS.1);
        Self { body: response.into_body(), bytes: Vec::new() }
    }

    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.bytes.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let frame = tokio::time::timeout(LONGEST, self.body.frame()).await;
            match frame.unwrap() {
                Some(frame) => self.bytes.extend_from_slice(&frame.unwrap().into_data().unwrap()),
                None => return None,
            }
        }
    }
}

pub(crate) fn key_hash(key: &str) -> String {
    let mut hash = String::from("sha256:");
    for byte in Sha256::digest(key.as_bytes()) {
        write!(hash, "{byte:02x}").unwrap();
    }
    hash
}
