//! A run whose output is seen as it comes.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use tokio::sync::mpsc;

use crate::error::Error;
use crate::execution::Execution;
use crate::output::Stream;

/// Some output of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutputChunk {
    /// Where it was written.
    pub stream: Stream,
    /// What was written. A chunk may end inside a UTF-8 sequence.
    pub bytes: Vec<u8>,
}

/// A run under way: its output in order, then its result.
///
/// The first half of each stream's limit comes while the run goes on. If a stream is longer than
/// that, the rest of what is kept comes as one more chunk when the run has ended.
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
    output: mpsc::UnboundedReceiver<(Stream, Vec<u8>)>,
    run: Pin<Box<dyn Future<Output = Result<Execution, Error>> + Send + 'a>>,
    result: Option<Result<Execution, Error>>,
    rest: Vec<OutputChunk>,
}

impl<'a> RunStream<'a> {
    pub(crate) fn new(
        output: mpsc::UnboundedReceiver<(Stream, Vec<u8>)>,
        run: Pin<Box<dyn Future<Output = Result<Execution, Error>> + Send + 'a>>,
    ) -> Self {
        Self { output, run, result: None, rest: Vec::new() }
    }

    /// Waits for more output; `None` when the run has ended and all of it was given.
    ///
    /// # Cancellation
    ///
    /// Dropping the returned future loses nothing; dropping the stream kills the run.
    pub async fn next(&mut self) -> Option<OutputChunk> {
        while self.result.is_none() {
            tokio::select! {
                biased;
                Some((stream, bytes)) = self.output.recv() => {
                    return Some(OutputChunk { stream, bytes });
                }
                result = &mut self.run => self.set_result(result),
            }
        }
        if let Ok((stream, bytes)) = self.output.try_recv() {
            return Some(OutputChunk { stream, bytes });
        }
        self.rest.pop()
    }

    /// Waits for the run's result. Output that was not asked for is in it all the same.
    ///
    /// # Errors
    ///
    /// As [`Session::run`](crate::Session::run).
    pub async fn finish(mut self) -> Result<Execution, Error> {
        match self.result.take() {
            Some(result) => result,
            None => self.run.await,
        }
    }

    fn set_result(&mut self, result: Result<Execution, Error>) {
        if let Ok(execution) = &result {
            for (stream, captured) in [
                (Stream::Stderr, execution.stderr_capture()),
                (Stream::Stdout, execution.stdout_capture()),
            ] {
                if !captured.after_head().is_empty() {
                    self.rest.push(OutputChunk { stream, bytes: captured.after_head().to_vec() });
                }
            }
        }
        self.result = Some(result);
    }
}

impl fmt::Debug for RunStream<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunStream").finish_non_exhaustive()
    }
}
