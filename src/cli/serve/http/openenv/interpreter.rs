//! The interpreter of an environment: a session, and another one when a limit has ended it.

use std::sync::Arc;

use isolet::Value;
use isolet::profile::json_dumps;
use tokio_util::sync::CancellationToken;

use super::PATIENCE;
use crate::service::SessionCommand;
use crate::service::node::{Charge, NewRun, NewSession, Node, OwnSession, Refusal, Tenant};

/// What the output of code ends with that has ended its session.
const LOST: &str = "The session has ended: variables and imports are lost.";

/// Code that a fresh interpreter runs before the client's, and its file name.
pub(super) type Helpers = (&'static str, &'static str);

pub(super) struct Interpreter {
    node: Arc<Node>,
    tenant: Arc<Tenant>,
    helpers: Helpers,
    /// None after a limit has ended it.
    session: Option<OwnSession>,
    /// What a fresh interpreter has.
    variables: Vec<(String, Value)>,
    /// Set once it has more than the helpers.
    is_used: bool,
}

impl Interpreter {
    pub(super) async fn start(
        node: Arc<Node>,
        tenant: Arc<Tenant>,
        helpers: Helpers,
    ) -> Result<Self, Refusal> {
        let variables = Vec::new();
        let mut interpreter =
            Self { node, tenant, helpers, session: None, variables, is_used: false };
        interpreter.open().await?;
        Ok(interpreter)
    }

    /// Returns what is cancelled when somebody else ends the session.
    pub(super) fn ended(&self) -> CancellationToken {
        let session = self.session.as_ref();
        session.map(|session| session.used().session().ended().clone()).unwrap_or_default()
    }

    /// Begins to count what is kept for the environment's client.
    pub(super) fn charge(&self) -> Charge {
        self.node.charge(&self.tenant)
    }

    /// Returns a text that a fresh interpreter has.
    pub(super) fn given(&self, name: &str) -> &str {
        let given = self.variables.iter().find(|(its, _)| its == name);
        given.and_then(|(_, value)| value.as_str()).unwrap_or_default()
    }

    /// Has a fresh interpreter, with these variables and the whole time of a session.
    pub(super) async fn renew(&mut self, variables: Vec<(String, Value)>) -> Result<(), Refusal> {
        self.variables = variables;
        let Some(session) = &self.session else { return self.open().await };
        self.node.renew(session.used(), None)?;
        if self.is_used {
            self.node.carry_out(session.used(), SessionCommand::Reset).await?;
            self.help().await?;
        }
        if let Some(session) = &self.session
            && !self.variables.is_empty()
        {
            let variables = self.variables.clone();
            self.node.carry_out(session.used(), SessionCommand::Set { variables }).await?;
        }
        self.is_used = !self.variables.is_empty();
        Ok(())
    }

    /// Starts a session if there is none.
    async fn open(&mut self) -> Result<(), Refusal> {
        if self.session.is_some() {
            return Ok(());
        }
        let new = NewSession {
            policy: Value::Dict(Vec::new()),
            inputs: self.variables.clone(),
            ..NewSession::default()
        };
        self.session = Some(self.node.create_own(&self.tenant, new, PATIENCE).await?);
        self.is_used = !self.variables.is_empty();
        self.help().await
    }

    /// Runs the helpers.
    async fn help(&mut self) -> Result<(), Refusal> {
        let Some(session) = &self.session else { return Ok(()) };
        let (code, name) = self.helpers;
        let options = Value::dict([("name", name)]);
        let run = NewRun { code: code.to_owned(), inputs: Vec::new(), options };
        self.node.run(session.used(), run).await.map(drop)
    }

    /// Runs code for at most so many seconds. Returns its execution.
    pub(super) async fn run(
        &mut self,
        code: String,
        seconds: Option<f64>,
    ) -> Result<Value, Refusal> {
        self.open().await?;
        self.is_used = true;
        let mut options = vec![("syntax", Value::from("ipython"))];
        options.extend(seconds.map(|seconds| ("timeout", seconds.into())));
        let options = Value::dict(options);
        self.evaluate(NewRun { code, inputs: Vec::new(), options }).await
    }

    /// Runs code in the session that there is.
    pub(super) async fn evaluate(&mut self, run: NewRun) -> Result<Value, Refusal> {
        let session = self.session.as_ref().ok_or(Refusal::Unknown)?;
        let ran = self.node.run(session.used(), run).await;
        if session.used().session().ended().is_cancelled() {
            self.session = None;
        }
        ran
    }

    /// Whether there is a session, with what has run in it.
    pub(super) fn is_alive(&self) -> bool {
        self.session.is_some()
    }

    /// Returns the names of the variables.
    pub(super) async fn names(&self) -> Result<Vec<String>, Refusal> {
        let Some(session) = &self.session else { return Ok(Vec::new()) };
        let variables = self.node.carry_out(session.used(), SessionCommand::Variables).await?;
        let names = variables.as_list().unwrap_or_default().iter().map(|one| text(one, "name"));
        Ok(names.collect())
    }
}

/// Returns a text of a value; an empty one if there is none.
pub(super) fn text(of: &Value, name: &str) -> String {
    of.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Returns the standard output and, on a line of its own, the value of the last expression.
pub(super) fn output(execution: &Value) -> (String, String) {
    (text(execution, "stdout"), shown(execution))
}

/// Returns the value of the last expression as JSON, or its `repr` if JSON does not have it.
fn shown(execution: &Value) -> String {
    match execution.get("value") {
        Some(value) if is_json(value) => json_dumps(value),
        None if execution.get("value_error").is_none() => String::new(),
        _ => text(execution, "repr"),
    }
}

fn is_json(value: &Value) -> bool {
    match value {
        Value::Bytes(_) => false,
        Value::List(items) => items.iter().all(is_json),
        Value::Dict(items) => items.iter().all(|(key, item)| is_json(key) && is_json(item)),
        _ => true,
    }
}

pub(super) fn joined(first: String, second: &str) -> String {
    if first.is_empty() || second.is_empty() {
        first + second
    } else {
        format!("{first}\n{second}")
    }
}

/// Returns why code did not complete: with `is_titled`, an exception's type and message come
/// before its traceback, and `SystemExit` is one whatever its status.
pub(super) fn failure(execution: &Value, is_titled: bool) -> Option<String> {
    let failure = match text(execution, "status").as_str() {
        "raised" => raised(execution.get("exception")?, is_titled),
        "exited" => {
            let status = execution.get("exit_code").and_then(Value::as_i64).unwrap_or_default();
            match execution.get("system_exit") {
                Some(_) if status == 0 && !is_titled => return None,
                Some(exit) => raised(exit, is_titled),
                None => format!("the code exited with status {status}"),
            }
        }
        "terminated" => text(execution.get("termination")?, "message"),
        _ => return None,
    };
    let is_lost = execution.get("session_alive").is_some();
    Some(if is_lost { joined(failure, LOST) } else { failure })
}

fn raised(exception: &Value, is_titled: bool) -> String {
    let traceback = text(exception, "traceback");
    if !is_titled {
        return traceback;
    }
    let (name, message) = (text(exception, "type"), text(exception, "message"));
    format!("{name}: {message}\n{traceback}")
}
