//! A sandbox: the policy that its sessions run under.

use std::sync::Arc;

use crate::cell::Cell;
use crate::engine::Engine;
use crate::error::{Error, ErrorKind};
use crate::execution::Execution;
use crate::host::SessionHost;
use crate::limits::Limits;
use crate::session::Session;

/// Policy for sessions: their limits and what they may see of the host.
///
/// It holds no guest state, is cheap to clone and can be shared by threads. Everything is denied
/// unless the builder was told otherwise:
///
/// * files: only the guest's own in-memory ones;
/// * network: none;
/// * environment: `HOME` is `/home/user`, the guest's own; nothing of the host's;
/// * subprocesses and threads: none;
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
}

/// Makes a [`Sandbox`].
#[derive(Clone, Debug)]
#[must_use]
pub struct SandboxBuilder {
    engine: Engine,
    limits: Limits,
    env: Vec<(String, String)>,
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

    /// Makes the sandbox. Starts nothing yet.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if a limit is zero that must not be, or an environment variable's name
    /// is empty or holds `=`, or a NUL is in it or its value.
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
        let mut env = vec![("HOME".to_owned(), "/home/user".to_owned())];
        env.extend(self.env);
        let policy = Arc::new(Policy { limits: self.limits, env });
        Ok(Sandbox { engine: self.engine, policy })
    }
}

impl Sandbox {
    /// Starts building a sandbox whose sessions run in `engine`.
    pub fn builder(engine: &Engine) -> SandboxBuilder {
        SandboxBuilder { engine: engine.clone(), limits: Limits::default(), env: Vec::new() }
    }

    /// Starts a session: a fresh interpreter on a thread of its own.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Start`] if the interpreter cannot start.
    pub async fn session(&self) -> Result<Session, Error> {
        let host = Arc::new(SessionHost::new());
        let link = self.engine.spawn(Arc::clone(&host) as _, self.policy.limits.value_bytes())?;
        let Policy { limits, env } = &*self.policy;
        Session::start(link, host, limits.clone(), env.clone()).await
    }

    /// Runs one cell in a session of its own.
    ///
    /// # Errors
    ///
    /// As [`session`](Self::session) and [`Session::run`].
    pub async fn run(&self, cell: impl Into<Cell>) -> Result<Execution, Error> {
        self.session().await?.run(cell).await
    }
}
