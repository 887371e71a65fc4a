//! Sandboxes of clients: one request builds a sandbox, and later ones wait for it.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use isolet::Sandbox;

use super::Failure;
use isolet::internals::lock;

/// A sandbox and its settings for new sessions.
#[derive(Clone)]
pub(crate) struct Made {
    pub(crate) sandbox: Sandbox,
    /// The packages to load when a session starts.
    pub(crate) packages: Vec<String>,
    pub(crate) has_checkpoints: bool,
    /// The limit `grace`.
    pub(crate) grace: Duration,
}

/// A sandbox that is being made, or has been made.
pub struct SandboxEntry {
    /// Its name in messages.
    name: String,
    made: Mutex<Option<Result<Made, Failure>>>,
    changed: Condvar,
}

impl SandboxEntry {
    pub(crate) fn new(name: String) -> Self {
        Self { name, made: Mutex::default(), changed: Condvar::new() }
    }

    /// Stores the result.
    pub(crate) fn finish(&self, made: Result<Made, Failure>) {
        *lock(&self.made) = Some(made);
        self.changed.notify_all();
    }

    /// Waits for the result.
    pub(crate) fn wait(&self) -> Result<Made, Failure> {
        let made = self.changed.wait_while(lock(&self.made), |made| made.is_none());
        let made = made.unwrap_or_else(PoisonError::into_inner).clone();
        let made = made.ok_or_else(|| Failure::protocol("the sandbox is not made"))?;
        made.map_err(|failure| Failure {
            message: format!("sandbox {} could not be made: {}", self.name, failure.message),
            ..failure
        })
    }
}
