//! What the library has in `src/isolate`: the queue of messages.

#[path = "../../../src/isolate/inbox.rs"]
pub(crate) mod inbox;
