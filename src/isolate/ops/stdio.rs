//! Ops for the three standard streams, and for displays.

use deno_core::{OpState, op2};

use super::OpError;
use crate::data::output::Stream;
use crate::isolate::state::State;
use crate::protocol::{HostReply, HostRequest};

#[op2(fast)]
pub(crate) fn op_isolet_write(state: &OpState, #[smi] stream: u32, #[buffer] bytes: &[u8]) {
    write(state, stream, bytes);
}

fn write(state: &OpState, stream: u32, bytes: &[u8]) {
    let stream = if stream == 2 { Stream::Stderr } else { Stream::Stdout };
    state.borrow::<State>().host.call(HostRequest::Write(stream, bytes));
}

/// Writes `length` bytes of the interpreter's memory, from `start` on. What is not in it is not
/// written.
#[op2(fast)]
pub(crate) fn op_isolet_write_part(
    state: &OpState,
    #[smi] stream: u32,
    #[buffer] memory: &[u8],
    start: u32,
    #[smi] length: u32,
) {
    if let Some(bytes) = part(memory, start, length) {
        write(state, stream, bytes);
    }
}

/// Writes such a part as a line.
#[op2(fast)]
pub(crate) fn op_isolet_write_line(
    state: &OpState,
    #[smi] stream: u32,
    #[buffer] memory: &[u8],
    start: u32,
    #[smi] length: u32,
) {
    if let Some(bytes) = part(memory, start, length) {
        write(state, stream, &[bytes, b"\n"].concat());
    }
}

fn part(memory: &[u8], start: u32, length: u32) -> Option<&[u8]> {
    memory.get(start as usize..)?.get(..length as usize)
}

/// Displays an object: its formats, in the value format.
#[op2(fast)]
pub(crate) fn op_isolet_display(state: &OpState, #[buffer] formats: &[u8]) {
    state.borrow::<State>().host.call(HostRequest::Display(formats));
}

/// Writes a line of `console` output.
#[op2(fast)]
pub(crate) fn op_isolet_console(state: &OpState, #[smi] stream: u32, #[string] line: String) {
    let stream = if stream == 2 { Stream::Stderr } else { Stream::Stdout };
    let line = format!("{line}\n");
    state.borrow::<State>().host.call(HostRequest::Write(stream, line.as_bytes()));
}

/// Fills the buffer from standard input. Returns the number of bytes, or -1 if the wait was
/// interrupted.
#[op2(fast)]
#[smi]
pub(crate) fn op_isolet_stdin(
    state: &OpState,
    #[buffer] buffer: &mut [u8],
) -> Result<i32, OpError> {
    let length = u32::try_from(buffer.len()).unwrap_or(u32::MAX);
    match state.borrow::<State>().host.call(HostRequest::ReadStdin(length)) {
        HostReply::Bytes(bytes) => {
            let target = buffer
                .get_mut(..bytes.len())
                .ok_or(OpError::Size { got: bytes.len(), needed: 0 })?;
            target.copy_from_slice(&bytes);
            Ok(i32::try_from(bytes.len()).unwrap_or(i32::MAX))
        }
        HostReply::Interrupted(_) => Ok(-1),
        HostReply::Failed(reason) => Err(OpError::Host(reason)),
        HostReply::Refused(_, message) => Err(OpError::Host(message)),
        _ => Ok(0),
    }
}
