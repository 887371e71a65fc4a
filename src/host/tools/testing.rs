//! Calls of tools without a guest, for tests of what stands above.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use tokio::sync::watch;

use super::queue::CallQueue;
use super::session_handle::{SessionAccess, SessionHandle};
use super::{Tool, ToolContext, bind};
use crate::data::cell::Cell;
use crate::data::error::{Error, ErrorKind};
use crate::data::execution::{Execution, Variable};
use crate::data::limits::Limits;
use crate::data::tool::ToolError;
use crate::data::value::Value;
use crate::host::stop::{CallClock, RunClock};

/// More than any test takes.
const LIMIT: Duration = Duration::from_hours(1);

/// Binds the arguments and calls the tool, as a session does.
pub(crate) async fn call(
    tool: &Tool,
    arguments: Value,
    (session, run): (u64, u64),
) -> Result<Value, ToolError> {
    tool.validate().map_err(|error| ToolError::new("Invalid", error.to_string()))?;
    let bound = bind::bind(&tool.spec, arguments)?;
    let queue = Arc::new(CallQueue::new(&Limits::default()));
    let charge = queue.admit(1, 0)?;
    let arguments = Vec::new();
    queue.push(super::queue::Call { id: 1, tool: tool.clone(), arguments, charge });
    let (_, place) = queue.next().ok_or_else(|| ToolError::new("Invalid", "no place"))?;
    let (_alive, over) = watch::channel(());
    let handle = no_session(session);
    let clock = RunClock::new(Instant::now(), LIMIT, LIMIT);
    let clock = CallClock::new(&Arc::new(clock));
    let context = ToolContext::new(handle, tool.shared_spec(), (run, 1), over, &place, &clock);
    (tool.handler)(bound, context).await
}

/// Returns a handle with this number to no session.
pub(crate) fn no_session(number: u64) -> SessionHandle {
    SessionHandle::new(Arc::new(NoSession(number)))
}

struct NoSession(u64);

impl NoSession {
    fn absent() -> Error {
        Error::new(ErrorKind::Closed, "there is no session")
    }
}

impl SessionAccess for NoSession {
    fn id(&self) -> u64 {
        self.0
    }

    fn log(&self, _line: &str) {}

    fn run(self: Arc<Self>, _cell: Cell) -> BoxFuture<'static, Result<Execution, Error>> {
        Box::pin(async { Err(Self::absent()) })
    }

    fn get(self: Arc<Self>, _name: &str) -> BoxFuture<'_, Result<Option<Value>, Error>> {
        Box::pin(async { Err(Self::absent()) })
    }

    fn variables(self: Arc<Self>) -> BoxFuture<'static, Result<Vec<Variable>, Error>> {
        Box::pin(async { Err(Self::absent()) })
    }

    fn settled(self: Arc<Self>) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}
