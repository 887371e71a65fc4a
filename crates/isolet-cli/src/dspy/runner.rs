//! Carries out the client's requests, in order.

use std::io::{self, Write};

use isolet::Value;
use isolet::profile::python_interpreter::{InterpreterError, PythonInterpreter};
use tokio::sync::mpsc;

use super::bridge;
use super::channel::{self, Channel, Request};
use super::files::AllowedFiles;
use super::messages::{self, Incoming, Params, ToolEntry};
use crate::show::terminal;

/// The answer of DSPy's runner to a message of another protocol.
const NO_MESSAGE: &str = "Invalid Request: not a JSON-RPC 2.0 message";

const INJECT: &str = include_str!("inject.py");

/// A session and its client.
pub(super) struct Runner {
    interpreter: PythonInterpreter,
    files: AllowedFiles,
    channel: Channel,
}

impl Runner {
    pub(super) fn new(
        interpreter: PythonInterpreter,
        files: AllowedFiles,
        channel: Channel,
    ) -> Self {
        Self { interpreter, files, channel }
    }

    /// Serves requests until `shutdown`, or until the client is gone.
    pub(super) async fn serve(mut self, mut requests: mpsc::Receiver<Request>) -> io::Result<()> {
        let mut next = requests.recv().await;
        while let Some(request) = next {
            let message = match request_of(request) {
                Ok(message) if message.method.as_deref() == Some("shutdown") => break,
                Ok(message) => message,
                Err(refusal) => {
                    channel::write(&refusal)?;
                    next = requests.recv().await;
                    continue;
                }
            };
            let mut answer = std::pin::pin!(self.answer(*message));
            let (early, line) = tokio::select! {
                biased;
                line = &mut answer => (None, line),
                early = requests.recv() => match early {
                    // A client that has gone away needs no answer.
                    None => break,
                    early => (early, answer.await),
                },
            };
            if let Some(line) = line {
                channel::write(&line)?;
            }
            next = match early {
                None => requests.recv().await,
                early => early,
            };
        }
        self.interpreter.shutdown();
        Ok(())
    }

    /// Carries out a request. Returns the response line, or `None` for a notification.
    async fn answer(&mut self, message: Incoming) -> Option<String> {
        let Incoming { id, method, params, .. } = message;
        Some(match method.as_deref().unwrap_or_default() {
            "execute" => self.execute(id, &params.code).await,
            "register" => self.register(id, params).await,
            "inject_var" => self.inject(id, params).await,
            "mount_file" => self.mount(id, params).await,
            "sync_file" => {
                self.sync(params).await;
                return None;
            }
            other => {
                let text = format!("Method not found: {other}");
                messages::error(id, messages::METHOD_NOT_FOUND, &text)
            }
        })
    }

    async fn execute(&mut self, id: Value, code: &str) -> String {
        const NOTHING: [(&str, Value); 0] = [];
        match self.interpreter.execute(code, NOTHING).await {
            Ok(output) => messages::output(id, output),
            Err(error) => messages::failure(id, error),
        }
    }

    /// Copies a host file into the guest.
    async fn mount(&mut self, id: Value, params: Params) -> String {
        let Params { host_path, virtual_path, .. } = params;
        let guest = if virtual_path.is_empty() { &host_path } else { &virtual_path };
        let mounted = match self.files.read(&host_path) {
            Ok(contents) => {
                self.interpreter.put_file(guest, contents).await.map_err(|error| error.to_string())
            }
            Err(reason) => Err(reason),
        };
        match mounted {
            Ok(()) => {
                let mounted = Value::from(guest.as_str());
                messages::result(id, Value::Dict(vec![("mounted".into(), mounted)]))
            }
            Err(reason) => {
                let text = format!("Failed to mount file: {reason}");
                messages::error(id, messages::RUNTIME_ERROR, &text)
            }
        }
    }

    /// Writes a guest file back to the host. The client waits for no answer, so failures are
    /// printed to standard error.
    async fn sync(&mut self, params: Params) {
        let Params { host_path, virtual_path, .. } = params;
        let host = if host_path.is_empty() { &virtual_path } else { &host_path };
        let written = match self.interpreter.get_file(&virtual_path).await {
            Ok(Some(contents)) => self.files.write(host, &contents),
            // The code has removed the file; the host's file stays.
            Ok(None) => Ok(()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(reason) = written {
            // If standard error is closed, the error cannot be reported.
            let reason = terminal::for_stderr(&reason);
            let _ = writeln!(io::stderr(), "isolet: a file was not written back: {reason}");
        }
    }

    async fn register(&mut self, id: Value, params: Params) -> String {
        let tool_name = |entry: &ToolEntry| match entry {
            ToolEntry::Name(name) | ToolEntry::Spec { name, .. } => Value::from(name.as_str()),
        };
        let names = Value::List(params.tools.iter().map(tool_name).collect());
        let field_name = |field: &messages::FieldEntry| Value::from(field.name.as_str());
        let outputs = Value::List(params.outputs.iter().map(field_name).collect());
        let tools = params.tools.into_iter().map(|entry| bridge::tool(entry, &self.channel));
        let fields = messages::params(params.outputs);
        match self.interpreter.register(tools.collect(), fields).await {
            Ok(()) => {
                let registered = [("tools".into(), names), ("outputs".into(), outputs)];
                messages::result(id, Value::Dict(registered.into()))
            }
            Err(error) => messages::error(id, messages::RUNTIME_ERROR, &error.to_string()),
        }
    }

    async fn inject(&mut self, id: Value, params: Params) -> String {
        let name = Value::from(params.name);
        let variables = [("_dspy_name", name.clone()), ("_dspy_value", params.value.into())];
        match self.interpreter.execute(INJECT, variables).await {
            Ok(_) => messages::result(id, Value::Dict(vec![("injected".into(), name)])),
            Err(error @ (InterpreterError::Execution(_) | InterpreterError::Interpreter(_))) => {
                let text = format!("Failed to inject var: {error}");
                messages::error(id, messages::RUNTIME_ERROR, &text)
            }
            Err(error) => messages::error(id, messages::INTERNAL_ERROR, &error.to_string()),
        }
    }
}

/// Returns the message, or the error response if the line was not one.
fn request_of(request: Request) -> Result<Box<Incoming>, String> {
    let (id, code, text) = match request {
        Request::Message(message) if message.jsonrpc == Value::from("2.0") => return Ok(message),
        Request::Message(message) => (message.id, messages::INVALID_REQUEST, NO_MESSAGE.to_owned()),
        Request::Stranger(id) => (id, messages::INVALID_REQUEST, NO_MESSAGE.to_owned()),
        Request::Garbage(id, reason) => {
            (id, messages::PARSE_ERROR, format!("Invalid JSON input: {reason}"))
        }
    };
    Err(messages::error(id, code, &text))
}
