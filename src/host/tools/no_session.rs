//! A handle to no session, for tests of calls without a guest.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::session_handle::{SessionAccess, SessionHandle};
use crate::data::cell::Cell;
use crate::data::error::{Error, ErrorKind};
use crate::data::execution::{Execution, Variable};
use crate::data::value::Value;

/// Returns a handle with this number to no session.
#[must_use]
pub fn no_session(number: u64) -> SessionHandle {
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
