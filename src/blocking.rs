//! The same for callers without async: each call waits on the calling thread.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use crate::cell::Cell;
use crate::error::Error;
use crate::execution::Execution;
use crate::sandbox::Sandbox;
use crate::session::{InterruptHandle, SessionState};
use crate::stream::OutputChunk;

/// A [`Session`](crate::Session) whose calls block.
#[derive(Debug)]
pub struct Session(crate::session::Session);

/// Runs one cell in a session of its own, as [`Sandbox::run`] does.
///
/// # Errors
///
/// As [`Sandbox::run`].
pub fn run(sandbox: &Sandbox, cell: impl Into<Cell>) -> Result<Execution, Error> {
    wait(sandbox.run(cell))
}

impl Session {
    /// Starts a session, as [`Sandbox::session`] does.
    ///
    /// # Errors
    ///
    /// As [`Sandbox::session`].
    pub fn new(sandbox: &Sandbox) -> Result<Self, Error> {
        wait(sandbox.session()).map(Self)
    }

    /// Runs a cell, as [`Session::run`](crate::Session::run) does.
    ///
    /// # Errors
    ///
    /// As [`Session::run`](crate::Session::run).
    pub fn run(&mut self, cell: impl Into<Cell>) -> Result<Execution, Error> {
        wait(self.0.run(cell))
    }

    /// Runs a cell and calls `output` with what it writes, as it writes it.
    ///
    /// # Errors
    ///
    /// As [`Session::run`](crate::Session::run).
    pub fn run_streaming(
        &mut self,
        cell: impl Into<Cell>,
        mut output: impl FnMut(OutputChunk),
    ) -> Result<Execution, Error> {
        wait(async {
            let mut run = self.0.run_streaming(cell);
            while let Some(chunk) = run.next().await {
                output(chunk);
            }
            run.finish().await
        })
    }

    /// Returns whether `code` is the beginning of something longer, as
    /// [`Session::is_incomplete`](crate::Session::is_incomplete) does.
    ///
    /// # Errors
    ///
    /// As [`Session::is_incomplete`](crate::Session::is_incomplete).
    pub fn is_incomplete(&mut self, code: impl Into<String>) -> Result<bool, Error> {
        wait(self.0.is_incomplete(code))
    }

    /// Returns a handle that interrupts the session's runs from another thread.
    #[must_use]
    pub fn interrupt_handle(&self) -> InterruptHandle {
        self.0.interrupt_handle()
    }

    /// Returns whether the session can run code.
    #[must_use]
    pub fn state(&self) -> SessionState {
        self.0.state()
    }
}

/// Drives a future on this thread. Ours wait on channels only, so no reactor is needed.
fn wait<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}
