//! Access to a session from elsewhere than its owner.

use std::fmt;
use std::sync::Arc;

use super::shared::Shared;
use crate::cell::Cell;
use crate::error::Error;
use crate::execution::{Execution, Variable};
use crate::tool::ToolHost;
use crate::value::Value;

/// A session as seen by those that do not own it, such as the host functions that its guest calls.
///
/// It does not keep the session open. After [`Session::reset`](crate::Session::reset) it still means
/// the old interpreter.
#[derive(Clone)]
pub struct SessionHandle(pub(super) Arc<Shared>);

impl SessionHandle {
    /// Returns the number of the session, unique in this process.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.0.id()
    }

    /// Runs a cell, if the session is idle; otherwise as [`Session::run`](crate::Session::run).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Busy`](crate::ErrorKind::Busy) if something runs in the session already.
    pub async fn run(&self, cell: impl Into<Cell>) -> Result<Execution, Error> {
        self.0.run(cell.into(), None).await
    }

    /// Returns the value of a variable, as [`Session::get`](crate::Session::get) does.
    ///
    /// It works while a run waits for a host function, a timer or the like: the value is the one of
    /// that moment. A run that does not wait is not disturbed, and the answer comes when it waits or
    /// ends.
    ///
    /// # Errors
    ///
    /// As [`Session::get`](crate::Session::get).
    pub async fn get(&self, name: &str) -> Result<Option<Value>, Error> {
        self.0.get(name).await
    }

    /// Lists the variables, as [`Session::variables`](crate::Session::variables) does; during a run
    /// as [`get`](Self::get).
    ///
    /// # Errors
    ///
    /// As [`Session::variables`](crate::Session::variables).
    pub async fn variables(&self) -> Result<Vec<Variable>, Error> {
        self.0.variables().await
    }

    pub(crate) fn tools(&self) -> &ToolHost {
        self.0.host.tools()
    }

    pub(crate) fn log(&self, line: &str) {
        self.0.log(line);
    }
}

impl fmt::Debug for SessionHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionHandle").field("id", &self.id()).finish_non_exhaustive()
    }
}

/// Interrupts the run of one session, from any thread.
#[derive(Clone)]
pub struct InterruptHandle(pub(super) Arc<Shared>);

impl InterruptHandle {
    /// Raises `KeyboardInterrupt` in the run that is under way.
    ///
    /// The session lives on. A guest that catches it goes on too, until its deadline; long C calls
    /// that never look for signals, such as `sum(range(10**9))`, see it when they return. Without a
    /// run under way nothing happens.
    pub fn interrupt(&self) {
        self.0.interrupt();
    }
}

impl fmt::Debug for InterruptHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InterruptHandle").finish_non_exhaustive()
    }
}
