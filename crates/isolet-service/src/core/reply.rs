//! Where the answer to a request goes.

use super::Failure;

/// Takes the answer to one request, of this type.
pub struct Reply<T>(Box<dyn FnOnce(Result<T, Failure>) + Send>);

/// An answer on its way.
pub(crate) type Answering = Box<dyn FnOnce() + Send>;

impl<T: Send + 'static> Reply<T> {
    pub fn new(take: impl FnOnce(Result<T, Failure>) + Send + 'static) -> Self {
        Self(Box::new(take))
    }

    /// Answers. It may wait for a client to read.
    pub fn send(self, result: Result<T, Failure>) {
        (self.0)(result);
    }

    /// Answers later.
    pub(crate) fn with(self, result: Result<T, Failure>) -> Answering {
        Box::new(move || self.send(result))
    }
}

impl<T: Send + 'static> Reply<T> {
    /// An answer that nobody waits for.
    pub fn to_nobody() -> Self {
        Self::new(drop)
    }

    /// Returns a reply and what receives its answer.
    pub fn channel() -> (Self, tokio::sync::oneshot::Receiver<Result<T, Failure>>) {
        let (sender, answer) = tokio::sync::oneshot::channel();
        // Who has asked may be gone.
        (Self::new(|result| drop(sender.send(result))), answer)
    }
}
