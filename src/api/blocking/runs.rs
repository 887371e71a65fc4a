//! Runs under way, and handles to sessions, whose calls block.

use super::{RunOutput, RunStream, SessionHandle, block_on};
use crate::data::cell::Cell;
use crate::data::error::Error;
use crate::data::execution::{Execution, Truncation, Variable};
use crate::data::output::RunEvent;
use crate::data::value::Value;

impl RunStream<'_> {
    /// Takes the output out of the stream, so that another thread can read it during
    /// [`finish`](Self::finish), as [`RunStream::take_output`](crate::RunStream::take_output) does.
    pub fn take_output(&mut self) -> Option<RunOutput> {
        self.0.take_output().map(RunOutput)
    }

    /// Waits for the run's result, as [`RunStream::finish`](crate::RunStream::finish) does.
    ///
    /// # Errors
    ///
    /// As [`Session::run`](crate::Session::run).
    pub fn finish(self) -> Result<Execution, Error> {
        block_on(self.0.finish())
    }
}

impl Iterator for RunStream<'_> {
    type Item = RunEvent;

    fn next(&mut self) -> Option<RunEvent> {
        block_on(self.0.next())
    }
}

impl RunOutput {
    /// Returns how much output was dropped so far, as
    /// [`RunOutput::dropped`](crate::RunOutput::dropped) does.
    #[must_use]
    pub fn dropped(&self) -> Truncation {
        self.0.dropped()
    }
}

impl Iterator for RunOutput {
    type Item = RunEvent;

    fn next(&mut self) -> Option<RunEvent> {
        block_on(self.0.next())
    }
}

impl SessionHandle {
    /// Returns the number of the session, unique in this process.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.0.id()
    }

    /// Runs a cell, as [`SessionHandle::run`](crate::SessionHandle::run) does.
    ///
    /// # Errors
    ///
    /// As [`SessionHandle::run`](crate::SessionHandle::run).
    pub fn run(&self, cell: impl Into<Cell>) -> Result<Execution, Error> {
        block_on(self.0.run(cell))
    }

    /// Returns the value of a variable, as [`SessionHandle::get`](crate::SessionHandle::get) does.
    ///
    /// # Errors
    ///
    /// As [`Session::get`](crate::Session::get).
    pub fn get(&self, name: &str) -> Result<Option<Value>, Error> {
        block_on(self.0.get(name))
    }

    /// Lists the variables, as [`SessionHandle::variables`](crate::SessionHandle::variables) does.
    ///
    /// # Errors
    ///
    /// As [`Session::variables`](crate::Session::variables).
    pub fn variables(&self) -> Result<Vec<Variable>, Error> {
        block_on(self.0.variables())
    }

    /// Waits until a run waits and makes no further calls, as
    /// [`SessionHandle::settled`](crate::SessionHandle::settled) does.
    pub fn settled(&self) {
        block_on(self.0.settled());
    }
}
