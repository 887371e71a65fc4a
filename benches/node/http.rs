//! A node, and clients that keep their connections.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::control_group::ControlGroup;
use super::{CLIENTS, Subject, Work, in_threads};

pub(crate) struct Node {
    process: Child,
    address: String,
    clients: Vec<Client>,
    sessions: Vec<String>,
    group: ControlGroup,
    _config: tempfile::NamedTempFile,
}

/// A client with a connection of its own.
pub(crate) struct Client {
    connection: BufReader<TcpStream>,
    /// The header with its key.
    key: String,
}

impl Node {
    pub(crate) fn start() -> Result<Self> {
        Self::start_with("")
    }

    /// Starts a node with more of a configuration.
    pub(crate) fn start_with(more: &str) -> Result<Self> {
        let group = ControlGroup::new("node")?;
        let mut config = tempfile::NamedTempFile::new()?;
        writeln!(config, "max_sessions = 10000\nmemory_reserve = 0.02\nidle = 3600\n{more}")?;
        let mut command = group.command(env!("CARGO_BIN_EXE_isolet"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--die-with-parent", "--config"]);
        let mut process = command.arg(config.path()).stderr(Stdio::piped()).spawn()?;
        let said = BufReader::new(process.stderr.take().context("no standard error")?);
        let address = said.lines().map_while(Result::ok).find_map(|line| {
            line.split_once("listening at http://").map(|(_, address)| address.to_owned())
        });
        let address = address.context("the node has ended before it listened")?;
        let clients = (0..CLIENTS).map(|_| Client::connect(&address, None));
        let clients = clients.collect::<Result<_>>()?;
        Ok(Self { process, address, clients, sessions: Vec::new(), group, _config: config })
    }

    /// Connects a client that has a key.
    pub(crate) fn client(&self, key: &str) -> Result<Client> {
        Client::connect(&self.address, Some(key))
    }

    pub(crate) fn process(&self) -> u32 {
        self.process.id()
    }
}

impl Subject for Node {
    fn order(&mut self, work: Work, count: usize, clients: usize) -> Result<()> {
        let each = count / clients;
        let clients = &mut self.clients[..clients];
        match work {
            Work::Create => {
                let made = std::sync::Mutex::new(&mut self.sessions);
                in_threads(clients.iter_mut().collect(), |client| {
                    for _ in 0..each {
                        let id = client.session()?;
                        made.lock().ok().context("another client has failed")?.push(id);
                    }
                    Ok(())
                })
            }
            Work::RunEach => {
                let parts = self.sessions.chunks(self.sessions.len().div_ceil(clients.len()));
                in_threads(clients.iter_mut().zip(parts).collect(), |(client, part)| {
                    part.iter().try_for_each(|session| client.run(session))
                })
            }
            Work::Run => {
                in_threads(clients.iter_mut().zip(&self.sessions).collect(), |(client, session)| {
                    (0..each).try_for_each(|_| client.run(session))
                })
            }
            Work::End => {
                let sessions = std::mem::take(&mut self.sessions);
                let parts = sessions.chunks(sessions.len().div_ceil(clients.len()));
                in_threads(clients.iter_mut().zip(parts).collect(), |(client, part)| {
                    part.iter().try_for_each(|session| {
                        client.ask("DELETE", &format!("/v1/sessions/{session}"), &Value::Null)?;
                        Ok(())
                    })
                })
            }
            Work::Once => in_threads(clients.iter_mut().collect(), |client| {
                (0..each).try_for_each(|_| client.check("/v1/run", "40+2"))
            }),
        }
    }

    fn group(&self) -> &ControlGroup {
        &self.group
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // Its workers end with it.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Client {
    fn connect(address: &str, key: Option<&str>) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let key = key.map_or_else(String::new, |key| format!("authorization: Bearer {key}\r\n"));
        Ok(Self { connection: BufReader::new(stream), key })
    }

    /// Starts a session, and returns its id.
    pub(crate) fn session(&mut self) -> Result<String> {
        let session = self.ask("POST", "/v1/sessions", &json!({}))?;
        Ok(session["id"].as_str().context("no id")?.to_owned())
    }

    fn run(&mut self, session: &str) -> Result<()> {
        self.run_code(session, "40+2")
    }

    /// Runs code whose value is 42.
    fn run_code(&mut self, session: &str, code: &str) -> Result<()> {
        self.check(&format!("/v1/sessions/{session}/runs"), code)
    }

    /// Runs what a body describes, whose value is 42.
    pub(crate) fn run_body(&mut self, session: &str, body: &str) -> Result<()> {
        let ran = self.send("POST", &format!("/v1/sessions/{session}/runs"), body)?;
        ensure!(ran["value"] == 42, "unexpected: {ran}");
        Ok(())
    }

    fn check(&mut self, path: &str, code: &str) -> Result<()> {
        let ran = self.ask("POST", path, &json!({ "code": code }))?;
        ensure!(ran["value"] == 42, "unexpected: {ran}");
        Ok(())
    }

    fn ask(&mut self, method: &str, path: &str, body: &Value) -> Result<Value> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.send(method, path, &body)
    }

    fn send(&mut self, method: &str, path: &str, body: &str) -> Result<Value> {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             {}content-length: {}\r\n\r\n{body}",
            self.key,
            body.len()
        );
        self.connection.get_mut().write_all(request.as_bytes())?;
        let (mut head, mut length) = (String::new(), 0);
        self.connection.read_line(&mut head)?;
        let is_done = head.starts_with("HTTP/1.1 2");
        loop {
            let mut line = String::new();
            self.connection.read_line(&mut line)?;
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse()?;
            }
            if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        self.connection.read_exact(&mut body)?;
        ensure!(is_done, "{head}{}", String::from_utf8_lossy(&body));
        Ok(if body.is_empty() { Value::Null } else { serde_json::from_slice(&body)? })
    }
}
