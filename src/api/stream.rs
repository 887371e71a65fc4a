//! A run whose output is seen as it comes.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;

use crate::data::error::Error;
use crate::data::execution::{Execution, Truncation};
use crate::data::output::OutputChunk;
use crate::host::pipe::PipeReader;

/// A run under way: its output in order, then its result.
///
/// All that the guest writes comes, however much it is; limits such as
/// [`Limits::max_stdout_bytes`](crate::Limits::max_stdout_bytes) are for what the [`Execution`]
/// keeps. While [`Limits::QUEUED_OUTPUT_BYTES`](crate::Limits::QUEUED_OUTPUT_BYTES) wait to be
/// read, the guest waits, and its time runs.
///
/// ```no_run
/// # async fn example(session: &mut isolet::Session) -> Result<(), isolet::Error> {
/// let mut run = session.run_streaming("for i in range(3): print(i)");
/// while let Some(chunk) = run.next().await {
///     print!("{}", String::from_utf8_lossy(&chunk.bytes));
/// }
/// let execution = run.finish().await?;
/// # Ok(()) }
/// ```
pub struct RunStream<'a> {
    output: Option<RunOutput>,
    run: Pin<Box<dyn Future<Output = Result<Execution, Error>> + Send + 'a>>,
    result: Option<Result<Execution, Error>>,
}

/// The output of a run, for another task or thread than the one that waits for the result.
///
/// Dropping it lets the guest write without waiting.
pub struct RunOutput(PipeReader);

impl<'a> RunStream<'a> {
    pub(crate) fn new(
        output: PipeReader,
        run: Pin<Box<dyn Future<Output = Result<Execution, Error>> + Send + 'a>>,
    ) -> Self {
        Self { output: Some(RunOutput(output)), run, result: None }
    }

    /// Waits for more output; `None` when the run has ended and all of it was given.
    ///
    /// # Cancellation
    ///
    /// Dropping the returned future loses nothing; dropping the stream kills the run.
    pub async fn next(&mut self) -> Option<OutputChunk> {
        let output = self.output.as_mut()?;
        while self.result.is_none() {
            tokio::select! {
                biased;
                Some(chunk) = output.next() => return Some(chunk),
                result = &mut self.run => self.result = Some(result),
            }
        }
        // The run has ended, so that nothing is waited for.
        output.next().await
    }

    /// Returns the output apart, to be read while somebody else waits for [`finish`](Self::finish).
    /// A reader that is slow or stuck then holds up the guest, but not its deadline nor the result.
    ///
    /// `None` if it was taken before. From here on [`next`](Self::next) gives nothing.
    pub fn take_output(&mut self) -> Option<RunOutput> {
        self.output.take()
    }

    /// Waits for the run's result. Output that was not asked for is in it all the same, within the
    /// limits.
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
    /// Waits for more output; `None` when the run has ended and all of it was given.
    ///
    /// # Cancellation
    ///
    /// Dropping the returned future loses nothing.
    pub async fn next(&mut self) -> Option<OutputChunk> {
        poll_fn(|context| self.0.poll_next(context)).await
    }

    /// Returns how much of the output was dropped so far. That happens only if the run is
    /// interrupted, by its deadline for example, while the guest waits for this to be read.
    #[must_use]
    pub fn dropped(&self) -> Truncation {
        self.0.dropped()
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
