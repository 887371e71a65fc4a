//! What is known of the code that runs: for whom it does, and what it waits for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use isolet::{Cell, InterruptHandle, ToolError, Value};
use tokio::sync::oneshot;

use super::contents::InputReply;
use super::text::Text;
use crate::message::{Header, Peer, Request};

/// Code that runs, for a request.
pub(super) struct Running {
    pub(super) peer: Peer,
    pub(super) parent: Arc<Header>,
    /// Whether the front end takes questions to its user.
    pub(super) allows_stdin: bool,
    /// The number of the cell whose value is shown; `None` if no value is.
    pub(super) shows_value_of: Option<u64>,
    pub(super) text: Text,
    /// Set once the value of the last line is told.
    pub(super) has_value: bool,
    /// How many displays were left out because they may not be shown.
    pub(super) left_out: u64,
    input: Option<AwaitedInput>,
    interrupt: Option<Interrupt>,
}

/// What interrupts the session, whether its run has begun or not.
struct Interrupt {
    flag: Arc<AtomicBool>,
    handle: InterruptHandle,
}

/// A line that the guest waits for.
struct AwaitedInput {
    /// The id of the message that asks for it.
    id: String,
    answer: oneshot::Sender<Result<Value, ToolError>>,
}

impl Running {
    /// Code of the kernel's own, or of a comm, for a request.
    pub(super) fn new(request: &Request, max_output_bytes: Option<u64>) -> Self {
        Self {
            peer: request.peer.clone(),
            parent: Arc::clone(&request.header),
            allows_stdin: false,
            shows_value_of: None,
            text: Text::new(max_output_bytes),
            has_value: false,
            left_out: 0,
            input: None,
            interrupt: None,
        }
    }

    /// Notes what interrupts the session that is about to run this cell.
    pub(super) fn begin(&mut self, cell: Cell, handle: InterruptHandle) -> Cell {
        let flag = Arc::new(AtomicBool::new(false));
        self.interrupt = Some(Interrupt { flag: Arc::clone(&flag), handle });
        cell.interrupt_flag(flag)
    }

    pub(super) fn interrupt(&self) {
        if let Some(Interrupt { flag, handle }) = &self.interrupt {
            flag.store(true, Ordering::Relaxed);
            handle.interrupt();
        }
    }

    /// Notes that the guest waits for a line, which a message of this id has asked for.
    pub(super) fn await_input(
        &mut self,
        id: String,
        answer: oneshot::Sender<Result<Value, ToolError>>,
    ) {
        self.input = Some(AwaitedInput { id, answer });
    }

    /// Gives the guest the line that it waits for, if this is it.
    pub(super) fn take_input(&mut self, reply: &Request) {
        let Some(awaited) = &self.input else { return };
        // Some front ends do not say what they answer.
        let is_other = Header::read(reply.parent.clone()).is_ok_and(|asked| asked.id != awaited.id);
        let is_reply = reply.header.kind == "input_reply" && !is_other;
        if !is_reply || reply.peer.identity != self.peer.identity {
            return;
        }
        let value = serde_json::from_slice(&reply.content).map(|reply: InputReply| reply.value);
        let value = value.map(Value::from).map_err(|error| {
            ToolError::new("ValueError", format!("the front end's `input_reply` is none: {error}"))
        });
        if let Some(awaited) = self.input.take() {
            // If nobody waits any longer, it is lost.
            let _ = awaited.answer.send(value);
        }
    }
}
