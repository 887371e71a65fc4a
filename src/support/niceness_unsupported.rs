//! Replaces `niceness.rs` on other systems than Linux: a process has one priority there.

/// A thread whose priority stays as it is.
#[derive(Default)]
pub(crate) struct NiceThread;

impl NiceThread {
    #[expect(clippy::unused_self, reason = "as on Linux")]
    pub(crate) fn set_to_this_thread(&self) {}

    #[expect(clippy::unused_self, reason = "as on Linux")]
    pub(crate) fn yield_processors(&self) {}
}
