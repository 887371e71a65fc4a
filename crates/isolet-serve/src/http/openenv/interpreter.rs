//! The interpreter of an environment: a session, which is replaced after a limit has ended it.

use std::sync::Arc;

use isolet::profile::json_dumps;
use isolet::{Syntax, Value};
use tokio_util::sync::CancellationToken;

use super::PATIENCE;
use isolet_service::core::{Command, Exception, Execution, Policy, Run, RunOptions, Status};
use isolet_service::node::{Charge, NewSession, Node, OwnSession, Refusal, Tenant};

/// Code that a new interpreter runs first, and its file name.
pub(super) type Helpers = (&'static str, &'static str);

pub(super) struct Interpreter {
    node: Arc<Node>,
    tenant: Arc<Tenant>,
    helpers: Helpers,
    /// `None` after a limit has ended it.
    session: Option<OwnSession>,
    /// The variables of a new interpreter.
    variables: Vec<(String, Value)>,
    /// What a deterministic interpreter is made with.
    seed: Option<u64>,
    /// Set once client code has run.
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
            Self { node, tenant, helpers, session: None, variables, seed: None, is_used: false };
        interpreter.open().await?;
        Ok(interpreter)
    }

    /// Returns a token that is cancelled when the session ends.
    pub(super) fn ended(&self) -> CancellationToken {
        let session = self.session.as_ref();
        session.map(|session| session.used().session().ended().clone()).unwrap_or_default()
    }

    /// Starts a charge for data that is kept for the client.
    pub(super) fn charge(&self) -> Charge {
        self.node.charge(&self.tenant)
    }

    /// Returns the text of an initial variable.
    pub(super) fn given(&self, name: &str) -> &str {
        let given = self.variables.iter().find(|(its, _)| its == name);
        given.and_then(|(_, value)| value.as_str()).unwrap_or_default()
    }

    /// Replaces the interpreter by a new one with these variables and a full lifetime. With a seed
    /// it is deterministic.
    pub(super) async fn renew(
        &mut self,
        variables: Vec<(String, Value)>,
        seed: Option<i64>,
    ) -> Result<(), Refusal> {
        self.variables = variables;
        let seed = seed.map(i64::cast_unsigned);
        if self.seed != seed {
            // The sandbox is another one.
            (self.seed, self.session) = (seed, None);
        }
        let Some(session) = &self.session else { return self.open().await };
        self.node.renew(session.used(), None)?;
        // A deterministic one has told some time since, even if no code has run.
        if self.is_used || self.seed.is_some() {
            self.node.carry_out(session.used(), |reply| Command::Reset { reply }).await?;
            self.help().await?;
        }
        if let Some(session) = &self.session
            && !self.variables.is_empty()
        {
            let variables = self.variables.clone();
            let set = |reply| Command::Set { variables, reply };
            self.node.carry_out(session.used(), set).await?;
            self.keep().await;
        }
        self.is_used = !self.variables.is_empty();
        Ok(())
    }

    /// Starts a session, unless there is one.
    async fn open(&mut self) -> Result<(), Refusal> {
        if self.session.is_some() {
            return Ok(());
        }
        let policy = Policy::default().seeded(self.seed);
        let new = NewSession { policy, inputs: self.variables.clone(), ..NewSession::default() };
        self.session = Some(self.node.create_own(&self.tenant, new, PATIENCE).await?);
        self.is_used = !self.variables.is_empty();
        self.help().await
    }

    /// Runs the helper code.
    async fn help(&mut self) -> Result<(), Refusal> {
        let Some(session) = &self.session else { return Ok(()) };
        let (code, name) = self.helpers;
        let options = RunOptions { name: Some(name.to_owned()), ..RunOptions::default() };
        let run = Run { code: code.to_owned(), inputs: Vec::new(), options, input: None };
        self.node.run(session.used(), run).await?;
        self.keep().await;
        Ok(())
    }

    /// Takes a checkpoint, before which the session never goes on: it has what the environment has
    /// set up. Does nothing if the node's policy has no checkpoints.
    async fn keep(&self) {
        if let Some(session) = &self.session {
            let keep = |reply| Command::Checkpoint { reply };
            let _ = self.node.carry_out(session.used(), keep).await;
        }
    }

    /// Runs code for at most this many seconds.
    pub(super) async fn run(
        &mut self,
        code: String,
        seconds: Option<f64>,
    ) -> Result<Execution, Refusal> {
        self.open().await?;
        self.is_used = true;
        let options =
            RunOptions { timeout: seconds, syntax: Syntax::Ipython, ..RunOptions::default() };
        self.evaluate(Run { code, inputs: Vec::new(), options, input: None }).await
    }

    /// Runs code in the current session.
    pub(super) async fn evaluate(&mut self, run: Run) -> Result<Execution, Refusal> {
        let session = self.session.as_ref().ok_or(Refusal::Unknown)?;
        let ran = self.node.run(session.used(), run).await;
        if session.used().session().ended().is_cancelled() {
            self.session = None;
        }
        ran
    }

    /// Returns `true` if the session with the earlier variables still exists.
    pub(super) fn is_alive(&self) -> bool {
        self.session.is_some()
    }

    /// Returns the names of the variables.
    pub(super) async fn names(&self) -> Result<Vec<String>, Refusal> {
        let Some(session) = &self.session else { return Ok(Vec::new()) };
        let list = |reply| Command::Variables { reply };
        let variables = self.node.carry_out(session.used(), list).await?;
        Ok(variables.into_iter().map(|variable| variable.name).collect())
    }
}

/// Returns the standard output, and the value of the last expression on a separate line.
pub(super) fn output(execution: &Execution) -> (String, String) {
    (execution.stdout.clone(), shown(execution))
}

/// Returns the value of the last expression as JSON, or its `repr` if JSON cannot represent it.
fn shown(execution: &Execution) -> String {
    match execution.value() {
        Some(value) if is_json(value) => json_dumps(value),
        None if execution.value_error.is_none() => String::new(),
        _ => execution.repr().to_owned(),
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

/// Returns the error of code that did not complete. With `is_titled`, the exception's type and
/// message precede the traceback, and `SystemExit` is an error whatever its status.
pub(super) fn failure(execution: &Execution, is_titled: bool) -> Option<String> {
    let failure = match execution.status {
        Status::Raised => raised(execution.exception.as_ref()?, is_titled),
        Status::Exited => {
            let status = execution.exit_code.unwrap_or_default();
            match &execution.system_exit {
                Some(_) if status == 0 && !is_titled => return None,
                Some(exit) => raised(exit, is_titled),
                None => format!("the code exited with status {status}"),
            }
        }
        Status::Terminated => execution.termination.as_ref()?.message.clone(),
        Status::Completed | Status::Submitted => return None,
    };
    Some(match execution.loss() {
        Some(loss) => joined(failure, &loss),
        None => failure,
    })
}

fn raised(exception: &Exception, is_titled: bool) -> String {
    let Exception { type_name, message, traceback, .. } = exception;
    if is_titled { format!("{type_name}: {message}\n{traceback}") } else { traceback.clone() }
}
