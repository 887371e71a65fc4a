//! The messages of a session to its isolate, of which there is one kind here.

use std::task::{Context, Poll};
use std::time::Duration;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Message {
    Peek(u64, Vec<u8>),
}

pub(crate) trait Inbox: Send {
    fn try_take(&self) -> Option<Message>;
    fn poll_take(&self, context: &mut Context<'_>) -> Poll<Option<Message>>;
    fn wait(&self, spinning: Duration, limit: Duration);
}
