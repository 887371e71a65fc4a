//! The place of a session's interpreter, which another one takes after a run has ended it.

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;

use super::shared::Shared;
use crate::data::cell::Cell;
use crate::data::error::Error;
use crate::data::execution::{Execution, Variable};
use crate::data::value::Value;
use crate::host::tools::SessionAccess;
use crate::support::lock::lock;

/// What handles refer to, so that they outlive an interpreter.
pub(super) struct Seat(Mutex<Arc<Shared>>);

impl Seat {
    pub(super) fn new(shared: &Arc<Shared>) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Arc::clone(shared))))
    }

    pub(super) fn current(&self) -> Arc<Shared> {
        Arc::clone(&lock(&self.0))
    }

    pub(super) fn give_to(&self, shared: &Arc<Shared>) {
        *lock(&self.0) = Arc::clone(shared);
    }
}

impl SessionAccess for Seat {
    fn id(&self) -> u64 {
        self.current().id()
    }

    fn log(&self, line: &str) {
        self.current().log(line);
    }

    fn run(self: Arc<Self>, cell: Cell) -> BoxFuture<'static, Result<Execution, Error>> {
        SessionAccess::run(self.current(), cell)
    }

    fn get(self: Arc<Self>, name: &str) -> BoxFuture<'_, Result<Option<Value>, Error>> {
        self.current().get(name)
    }

    fn variables(self: Arc<Self>) -> BoxFuture<'static, Result<Vec<Variable>, Error>> {
        SessionAccess::variables(self.current())
    }

    fn settled(self: Arc<Self>) -> BoxFuture<'static, ()> {
        self.current().settled()
    }
}
