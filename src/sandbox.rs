//! A sandbox: the policy that its sessions run under.

use std::sync::Arc;

use crate::cell::Cell;
use crate::engine::Engine;
use crate::error::{Error, ErrorKind};
use crate::execution::Execution;
use crate::limits::Limits;
use crate::session::Session;
use crate::tool::{Param, Tool, ToolSpec};

/// Policy for sessions: their limits, what they may see of the host and what they may call.
///
/// It holds no guest state, is cheap to clone and can be shared by threads. Everything is denied
/// unless the builder was told otherwise:
///
/// * files: only the guest's own in-memory ones;
/// * network: none;
/// * environment: `HOME` is `/home/user`, the guest's own; nothing of the host's;
/// * subprocesses and threads: none;
/// * host functions: none;
/// * standard input: empty.
#[derive(Clone, Debug)]
pub struct Sandbox {
    engine: Engine,
    policy: Arc<Policy>,
}

#[derive(Debug)]
struct Policy {
    limits: Limits,
    env: Vec<(String, String)>,
    tools: Vec<Tool>,
    submit: Option<Arc<ToolSpec>>,
}

/// Makes a [`Sandbox`].
#[derive(Clone, Debug)]
#[must_use]
pub struct SandboxBuilder {
    engine: Engine,
    limits: Limits,
    env: Vec<(String, String)>,
    tools: Vec<Tool>,
    submit: Option<Vec<Param>>,
}

impl SandboxBuilder {
    /// Sets the limits of the sessions' runs.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Gives the guest an environment variable. The last one of a name counts.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Allows the guest a host function.
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Gives the guest a function `SUBMIT`, which ends a run with a value for each of these fields.
    ///
    /// It takes them by position or by keyword. Wrong ones raise `TypeError` in the guest; otherwise
    /// the outcome of the run is [`Submitted`](crate::Outcome::Submitted) with a dict of them. The
    /// first submission of a run counts, also if the guest catches what unwinds it (a
    /// `BaseException`) and goes on.
    pub fn submit(mut self, fields: impl IntoIterator<Item = Param>) -> Self {
        self.submit = Some(fields.into_iter().collect());
        self
    }

    /// Makes the sandbox. Starts nothing yet.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if a limit is zero that must not be, or an environment variable's name
    /// is empty or holds `=`, or a NUL is in it or its value, or Python could not define a tool or
    /// `SUBMIT`, or two tools have the same name.
    pub fn build(self) -> Result<Sandbox, Error> {
        self.limits.validate()?;
        for (name, value) in &self.env {
            if name.is_empty() || name.contains(['=', '\0']) {
                return Err(Error::new(
                    ErrorKind::Config,
                    format!("`{}` is no name of an environment variable", name.escape_debug()),
                ));
            }
            if value.contains('\0') {
                return Err(Error::new(
                    ErrorKind::Config,
                    format!("the value of environment variable `{name}` holds a NUL"),
                ));
            }
        }
        for (at, tool) in self.tools.iter().enumerate() {
            tool.validate()?;
            let name = tool.spec().name();
            if self.tools[..at].iter().any(|earlier| earlier.spec().name() == name) {
                let message = format!("there are two tools of the name `{name}`");
                return Err(Error::new(ErrorKind::Config, message));
            }
        }
        let submit = self.submit.map(ToolSpec::submit).transpose()?.map(Arc::new);
        let mut env = vec![("HOME".to_owned(), "/home/user".to_owned())];
        env.extend(self.env);
        let policy = Arc::new(Policy { limits: self.limits, env, tools: self.tools, submit });
        Ok(Sandbox { engine: self.engine, policy })
    }
}

impl Sandbox {
    /// Starts building a sandbox whose sessions run in `engine`.
    pub fn builder(engine: &Engine) -> SandboxBuilder {
        SandboxBuilder {
            engine: engine.clone(),
            limits: Limits::default(),
            env: Vec::new(),
            tools: Vec::new(),
            submit: None,
        }
    }

    /// Starts a session: a fresh interpreter on a thread of its own.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Start`] if the interpreter cannot start.
    pub async fn session(&self) -> Result<Session, Error> {
        Session::start(self.clone()).await
    }

    /// Runs one cell in a session of its own.
    ///
    /// # Errors
    ///
    /// As [`session`](Self::session) and [`Session::run`].
    pub async fn run(&self, cell: impl Into<Cell>) -> Result<Execution, Error> {
        self.session().await?.run(cell).await
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.policy.limits
    }

    pub(crate) fn env(&self) -> &[(String, String)] {
        &self.policy.env
    }

    /// The host functions, and what `SUBMIT` looks like.
    pub(crate) fn functions(&self) -> (&[Tool], Option<&Arc<ToolSpec>>) {
        (&self.policy.tools, self.policy.submit.as_ref())
    }
}
