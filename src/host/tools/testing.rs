//! Calls of tools without a guest, for tests of what stands above.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::no_session::no_session;
use super::queue::CallQueue;
use super::{Tool, ToolContext, bind};
use crate::data::limits::Limits;
use crate::data::tool::ToolError;
use crate::data::value::Value;
use crate::host::stop::{CallClock, RunClock};

/// More than any test takes.
const LIMIT: Duration = Duration::from_hours(1);

/// Binds the arguments and calls the tool, as a session does.
/// # Errors
///
/// What the tool or the binding of its arguments raises.
pub async fn call(
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
    let (_, permit) = queue.next().ok_or_else(|| ToolError::new("Invalid", "no place"))?;
    let (_alive, over) = watch::channel(());
    let handle = no_session(session);
    let clock = RunClock::new(Instant::now(), LIMIT, LIMIT);
    let clock = CallClock::new(&Arc::new(clock));
    let context =
        ToolContext::new(handle, tool.shared_spec(), (run, 1), over, &permit, &clock, Weak::new());
    (tool.handler)(bound, context).await
}
