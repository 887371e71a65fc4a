//! Receivers of answers.

use super::Failure;

/// Receives the answer to one request.
pub struct Reply<T>(Box<dyn FnOnce(Result<T, Failure>) + Send>);

/// An answer, ready to be sent.
pub(crate) type Answering = Box<dyn FnOnce() + Send>;

impl<T: Send + 'static> Reply<T> {
    pub fn new(take: impl FnOnce(Result<T, Failure>) + Send + 'static) -> Self {
        Self(Box::new(take))
    }

    /// Sends the answer. May block until the client reads.
    pub fn send(self, result: Result<T, Failure>) {
        (self.0)(result);
    }

    /// Returns the receiver of another answer, which `form` converts.
    pub(crate) fn of<U: Send + 'static>(
        self,
        form: impl FnOnce(U) -> T + Send + 'static,
    ) -> Reply<U> {
        Reply::new(move |result| self.send(result.map(form)))
    }

    /// Returns the answer, to be sent later.
    pub(crate) fn with(self, result: Result<T, Failure>) -> Answering {
        Box::new(move || self.send(result))
    }
}

impl<T: Send + 'static> Reply<T> {
    /// Discards the answer.
    pub fn to_nobody() -> Self {
        Self::new(drop)
    }

    /// Creates a reply and the receiver of its answer.
    pub fn channel() -> (Self, tokio::sync::oneshot::Receiver<Result<T, Failure>>) {
        let (sender, answer) = tokio::sync::oneshot::channel();
        // The receiver may have been dropped.
        (Self::new(|result| drop(sender.send(result))), answer)
    }
}
