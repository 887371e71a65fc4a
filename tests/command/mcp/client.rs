//! A client of `isolet mcp` on its standard input and output.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc;

use rustix::process::Pid;
use serde_json::{Value, json};

use isolet_test_support::{LONGEST, command, ended};

/// The last revision of the protocol with sessions of connections.
const LEGACY: &str = "2025-06-18";

/// The revision in which each request says who sends it.
pub(super) const MODERN: &str = "2026-07-28";

pub(crate) struct Client {
    server: Option<Child>,
    input: Option<ChildStdin>,
    lines: mpsc::Receiver<Value>,
    last: u64,
    is_modern: bool,
    capabilities: Value,
    /// The notifications that came while something else was waited for.
    pub(super) notifications: Vec<Value>,
}

impl Client {
    /// Starts a server and introduces itself as older clients do.
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::spawn(args, &[], false, &json!({})).greeted()
    }

    /// Starts a server whose files are in this directory, for a client that can do this.
    pub(super) fn with(
        args: &[&str],
        directory: &str,
        is_modern: bool,
        capabilities: &Value,
    ) -> Self {
        let (data, cache) = (format!("{directory}/data"), format!("{directory}/cache"));
        let env = [("XDG_DATA_HOME", &*data), ("XDG_CACHE_HOME", &*cache)];
        let client = Self::spawn(args, &env, is_modern, capabilities);
        if is_modern { client } else { client.greeted() }
    }

    /// Introduces itself.
    fn greeted(mut self) -> Self {
        let hello = json!({
            "protocolVersion": LEGACY,
            "capabilities": self.capabilities,
            "clientInfo": {"name": "test", "version": "1"},
        });
        let answer = self.request("initialize", &hello);
        assert_eq!(answer["result"]["serverInfo"]["name"], "isolet", "{answer}");
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        self
    }

    /// Starts a server, and speaks the revision without sessions of connections.
    pub(super) fn modern(args: &[&str]) -> Self {
        Self::spawn(args, &[], true, &json!({}))
    }

    fn spawn(args: &[&str], env: &[(&str, &str)], is_modern: bool, capabilities: &Value) -> Self {
        let mut server = command(["mcp"]);
        server.args(args).envs(env.iter().copied());
        Self::of(server, is_modern, capabilities)
    }

    /// Starts a server by this command.
    pub(crate) fn of(mut server: Command, is_modern: bool, capabilities: &Value) -> Self {
        let mut server = server.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(server.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in output.lines() {
                // Whatever else is on standard output fails the test.
                let message = serde_json::from_str(&line.unwrap()).unwrap();
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        Self {
            input: server.stdin.take(),
            server: Some(server),
            lines,
            last: 0,
            is_modern,
            capabilities: capabilities.clone(),
            notifications: Vec::new(),
        }
    }

    pub(super) fn send(&mut self, message: &Value) {
        self.write(format!("{message}\n").as_bytes());
    }

    /// Writes bytes as they are.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// Closes the input.
    pub(super) fn close(&mut self) {
        drop(self.input.take());
    }

    /// Sends a request. Returns its number.
    pub(super) fn begin(&mut self, method: &str, params: &Value) -> u64 {
        self.last += 1;
        let mut params = params.clone();
        if self.is_modern {
            add_meta(&mut params);
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
                self.capabilities.clone();
        }
        self.send(&json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}));
        self.last
    }

    /// Waits for the answer to a request.
    pub(super) fn answer(&mut self, number: u64) -> Value {
        loop {
            let message = self.next();
            if message["id"] == number {
                return message;
            }
            self.notifications.push(message);
        }
    }

    pub(super) fn next(&mut self) -> Value {
        self.lines.recv_timeout(LONGEST).unwrap()
    }

    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Value {
        let number = self.begin(method, params);
        self.answer(number)
    }

    /// Calls a tool and returns its result.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.request("tools/call", &json!({"name": tool, "arguments": arguments}));
        assert!(answer["error"].is_null(), "{answer}");
        answer["result"].clone()
    }

    /// Runs code in a fresh session.
    pub(crate) fn run(&mut self, code: &str) -> Value {
        self.call("run_python", &json!({"code": code}))
    }

    /// Runs code in a session.
    pub(crate) fn run_in(&mut self, session: &str, code: &str) -> Value {
        self.call("run_python", &json!({"code": code, "session": session}))
    }

    /// The server's process.
    pub(super) fn process(&self) -> Pid {
        Pid::from_child(self.server.as_ref().unwrap())
    }

    /// Closes the input, and waits for the end of the server.
    pub(super) fn end(mut self) -> ExitStatus {
        drop(self.input.take());
        self.ended()
    }

    /// Waits for the end of the server.
    pub(super) fn ended(mut self) -> ExitStatus {
        ended(self.server.take().unwrap())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Some(mut server) = self.server.take() {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

/// Adds what each request says in the modern revision.
pub(super) fn add_meta(params: &mut Value) {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = MODERN.into();
    params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({"name": "test", "version": "1"});
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
}

/// Returns the text of a result.
pub(crate) fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

/// Returns the handle in a result.
pub(crate) fn session(result: &Value) -> String {
    result["structuredContent"]["session"].as_str().unwrap().to_owned()
}
