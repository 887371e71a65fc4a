//! A handle to a session for code that does not own it.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::data::cell::Cell;
use crate::data::error::Error;
use crate::data::execution::{Execution, Variable};
use crate::data::value::Value;

/// The operations that a handle needs of its session.
pub(crate) trait SessionAccess: Send + Sync {
    /// Returns the number of the session.
    fn id(&self) -> u64;

    /// Adds a line from the host to standard error.
    fn log(&self, line: &str);

    /// Runs a cell.
    fn run(self: Arc<Self>, cell: Cell) -> BoxFuture<'static, Result<Execution, Error>>;

    /// Reads a variable.
    fn get(self: Arc<Self>, name: &str) -> BoxFuture<'_, Result<Option<Value>, Error>>;

    /// Lists the variables.
    fn variables(self: Arc<Self>) -> BoxFuture<'static, Result<Vec<Variable>, Error>>;

    /// Waits until a run waits and makes no further calls.
    fn settled(self: Arc<Self>) -> BoxFuture<'static, ()>;
}

/// A session as used by code that does not own it, such as the tools that its guest calls.
///
/// It does not keep the session open. After [`Session::reset`](crate::Session::reset) it still
/// refers to the old interpreter.
#[derive(Clone)]
pub struct SessionHandle(Arc<dyn SessionAccess>);

impl SessionHandle {
    pub(crate) fn new(session: Arc<dyn SessionAccess>) -> Self {
        Self(session)
    }

    /// Returns the number of the session, unique in this process.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.0.id()
    }

    /// Runs a cell if the session is idle; otherwise as [`Session::run`](crate::Session::run).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Busy`](crate::ErrorKind::Busy) if the session is already running something.
    pub async fn run(&self, cell: impl Into<Cell>) -> Result<Execution, Error> {
        Arc::clone(&self.0).run(cell.into()).await
    }

    /// Returns the value of a variable, as [`Session::get`](crate::Session::get) does.
    ///
    /// During a run, this works while the run waits for a tool, a timer or similar, and returns the
    /// value at that moment. A run that does not wait is not disturbed: the answer comes when it
    /// waits or ends.
    ///
    /// # Errors
    ///
    /// As [`Session::get`](crate::Session::get).
    pub async fn get(&self, name: &str) -> Result<Option<Value>, Error> {
        Arc::clone(&self.0).get(name).await
    }

    /// Lists the variables, as [`Session::variables`](crate::Session::variables) does. During a run
    /// it behaves as [`get`](Self::get).
    ///
    /// # Errors
    ///
    /// As [`Session::variables`](crate::Session::variables).
    pub async fn variables(&self) -> Result<Vec<Variable>, Error> {
        Arc::clone(&self.0).variables().await
    }

    /// Waits until the run under way waits for something, and has made all the calls that it makes
    /// side by side: `asyncio.gather` and `.map` make one after the other. Then each of them has
    /// begun, if the limits allow. Returns at once if nothing runs.
    ///
    /// A run that does not wait delays this, so limit the wait.
    pub async fn settled(&self) {
        Arc::clone(&self.0).settled().await;
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
