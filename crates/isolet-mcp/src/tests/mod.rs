//! Tests of the hub with a server that is a Python script, `tests/mcp/fake.py`.

mod http;
mod policy;
mod servers;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};

use tempfile::TempDir;

use super::{CallRecord, Config, Environment, Hub, HubBuilder, ServerConfig};
use isolet::ToolError;
use isolet::Value;
use isolet::internals::lock;
use isolet::internals::testing;

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/mcp/fake.py")
}

/// Returns the configuration of the fake as a process, named `fake`.
#[expect(clippy::disallowed_methods, reason = "Python is where the tests' own environment has it")]
fn fake<const N: usize>(options: [&str; N]) -> ServerConfig {
    let script = script().to_str().unwrap().to_owned();
    let arguments = [script].into_iter().chain(options.map(str::to_owned));
    let path = std::env::var("PATH").unwrap();
    let environment = Environment::new([("PATH", &*path), ("HOME", "/h"), ("LANG", "C.UTF-8")]);
    ServerConfig::command("fake", "python3", arguments).environment(environment)
}

/// A fake that is reached by HTTP. Dropping it ends it.
struct HttpFake {
    process: Child,
    url: String,
}

impl HttpFake {
    fn start(options: &[&str]) -> Self {
        let mut command = Command::new("python3");
        command.arg(script()).arg("http").args(options);
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self { process, url: format!("http://127.0.0.1:{}/mcp", port.trim()) }
    }
}

impl Drop for HttpFake {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// A hub with its directories, and what it reports.
struct Rig {
    directory: TempDir,
    records: Arc<Mutex<Vec<CallRecord>>>,
    lines: mpsc::Receiver<String>,
    changes: mpsc::Receiver<String>,
    line_sender: mpsc::Sender<String>,
    change_sender: mpsc::Sender<String>,
}

impl Rig {
    fn new() -> Self {
        let (line_sender, lines) = mpsc::channel();
        let (change_sender, changes) = mpsc::channel();
        let (directory, records) = (tempfile::tempdir().unwrap(), Arc::default());
        Self { directory, records, lines, changes, line_sender, change_sender }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn builder(&self, server: ServerConfig) -> HubBuilder {
        let mut config = Config::new();
        config.add(server);
        let (records, lines) = (Arc::clone(&self.records), self.line_sender.clone());
        let changes = self.change_sender.clone();
        Hub::builder()
            .config(config)
            .cache_dir(self.path("cache"))
            .pin_dir(self.path("pins"))
            .on_call(move |record| lock(&records).push(record.clone()))
            .on_log(move |server, line| _ = lines.send(format!("{server}: {line}")))
            .on_tools_changed(move |server| _ = changes.send(server.to_owned()))
    }

    /// Makes a hub of one server whose tools are all allowed.
    fn hub(&self, server: ServerConfig) -> Hub {
        self.builder(server.allow("*")).build().unwrap()
    }

    fn last(&self) -> CallRecord {
        lock(&self.records).last().unwrap().clone()
    }

    /// Waits for a line of the server.
    fn wait_for(&self, line: &str) {
        let expected = format!("fake: {line}");
        while self.lines.recv_timeout(std::time::Duration::from_mins(1)).unwrap() != expected {}
    }
}

/// Calls a tool of the server `fake`, in session 1 and run 1.
async fn call<const N: usize>(
    hub: &Hub,
    tool: &str,
    arguments: [(&str, Value); N],
) -> Result<Value, ToolError> {
    call_in(hub, (1, 1), tool, arguments).await
}

async fn call_in<const N: usize>(
    hub: &Hub,
    place: (u64, u64),
    tool: &str,
    arguments: [(&str, Value); N],
) -> Result<Value, ToolError> {
    let tools = hub.tools("fake").await?;
    let tool = tools.iter().find(|known| known.spec().name() == tool);
    let tool = tool.ok_or_else(|| ToolError::new("NameError", "no such tool"))?;
    testing::call(tool, Value::dict(arguments), place).await
}

fn failed(result: Result<Value, ToolError>) -> String {
    result.unwrap_err().to_string()
}
