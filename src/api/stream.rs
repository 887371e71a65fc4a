//! Streams the output of a run while it is under way.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::Stream;

use crate::data::error::Error;
use crate::data::execution::{Execution, Truncation};
use crate::data::output::RunEvent;
use crate::host::pipe::PipeReader;

/// A run under way: yields its output and displays in order, then its result.
///
/// The stream yields everything that the guest writes, without a size limit. Limits such as
/// [`Limits::max_stdout_bytes`](crate::Limits::max_stdout_bytes) apply only to the output that the
/// [`Execution`] keeps. While [`Limits::QUEUED_OUTPUT_BYTES`](crate::Limits::QUEUED_OUTPUT_BYTES)
/// bytes wait to be read, the guest waits, and its run time continues to count.
///
/// It is a `Stream` of futures-core 0.3, too, for the adapters of futures and tokio-stream and for
/// servers that send what comes.
///
/// ```no_run
/// use isolet::RunEvent;
///
/// # async fn example(session: &mut isolet::Session) -> Result<(), isolet::Error> {
/// let mut run = session.run_streaming("for i in range(3): print(i)");
/// while let Some(event) = run.next().await {
///     match event {
///         RunEvent::Output(chunk) => print!("{}", String::from_utf8_lossy(&chunk.bytes)),
///         RunEvent::Display(display) => println!("{display:?}"),
///         _ => {}
///     }
/// }
/// let execution = run.finish().await?;
/// # Ok(()) }
/// ```
pub struct RunStream<'a> {
    output: Option<RunOutput>,
    run: Pin<Box<dyn Future<Output = Result<Execution, Error>> + Send + 'a>>,
    result: Option<Result<Execution, Error>>,
}

/// The output of a run, for a task or thread other than the one that waits for the result. A
/// `Stream` of futures-core 0.3, too.
///
/// After it is dropped, the guest writes without waiting.
pub struct RunOutput(PipeReader);

impl<'a> RunStream<'a> {
    pub(crate) fn new(
        output: PipeReader,
        run: Pin<Box<dyn Future<Output = Result<Execution, Error>> + Send + 'a>>,
    ) -> Self {
        Self { output: Some(RunOutput(output)), run, result: None }
    }

    /// Waits for more output. Returns `None` when the run has ended and all output was returned.
    ///
    /// # Cancellation
    ///
    /// Dropping the returned future loses nothing; dropping the stream kills the run.
    pub async fn next(&mut self) -> Option<RunEvent> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// Takes the output out of the stream, so that another task can read it during
    /// [`finish`](Self::finish). A slow or stuck reader then delays the guest, but neither its
    /// deadline nor the result.
    ///
    /// Returns `None` if the output was already taken. Afterwards [`next`](Self::next) returns
    /// `None`.
    pub fn take_output(&mut self) -> Option<RunOutput> {
        self.output.take()
    }

    /// Waits for the run's result. It includes output that was not read, within the limits.
    ///
    /// # Errors
    ///
    /// As [`Session::run`](crate::Session::run).
    pub async fn finish(mut self) -> Result<Execution, Error> {
        drop(self.output.take());
        match self.result.take() {
            Some(result) => result,
            None => self.run.await,
        }
    }
}

impl RunOutput {
    /// Waits for more output. Returns `None` when the run has ended and all output was returned.
    ///
    /// # Cancellation
    ///
    /// Dropping the returned future loses nothing.
    pub async fn next(&mut self) -> Option<RunEvent> {
        poll_fn(|context| self.0.poll_next(context)).await
    }

    /// Returns how much of the output was dropped so far. Output is dropped only if the run is
    /// interrupted, for example by its deadline, while the guest waits for this reader.
    #[must_use]
    pub fn dropped(&self) -> Truncation {
        self.0.dropped()
    }
}

impl Stream for RunStream<'_> {
    type Item = RunEvent;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<RunEvent>> {
        let this = self.get_mut();
        let Some(RunOutput(output)) = &mut this.output else { return Poll::Ready(None) };
        loop {
            let found = output.poll_next(context);
            if this.result.is_some() || matches!(found, Poll::Ready(Some(_))) {
                return found;
            }
            match this.run.as_mut().poll(context) {
                Poll::Ready(result) => this.result = Some(result),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

impl Stream for RunOutput {
    type Item = RunEvent;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<RunEvent>> {
        self.get_mut().0.poll_next(context)
    }
}

impl fmt::Debug for RunStream<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunStream").finish_non_exhaustive()
    }
}

impl fmt::Debug for RunOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunOutput").finish_non_exhaustive()
    }
}
