//! What a run may use, with safe defaults.

use std::time::Duration;

use crate::error::{Error, ErrorKind};

/// Limits of the runs of a [`Sandbox`](crate::Sandbox).
///
/// Every limit has a default, a documented constant; none is off unless it is set very high.
///
/// ```
/// use std::time::Duration;
///
/// let limits = isolet::Limits::default()
///     .max_run_time(Duration::from_secs(5))
///     .max_stdout_bytes(64 * 1024);
/// assert_eq!(limits.run_time(), Duration::from_secs(5));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    run_time: Duration,
    stdout_bytes: u64,
    stderr_bytes: u64,
    value_bytes: u64,
    concurrent_tools: usize,
    memory_bytes: u64,
}

impl Limits {
    /// Default of [`max_run_time`](Self::max_run_time).
    pub const DEFAULT_RUN_TIME: Duration = Duration::from_secs(30);
    /// Default of [`max_stdout_bytes`](Self::max_stdout_bytes): 1 MiB.
    pub const DEFAULT_STDOUT_BYTES: u64 = 1 << 20;
    /// Default of [`max_stderr_bytes`](Self::max_stderr_bytes): 1 MiB.
    pub const DEFAULT_STDERR_BYTES: u64 = 1 << 20;
    /// Default of [`max_value_bytes`](Self::max_value_bytes): 256 MiB.
    pub const DEFAULT_VALUE_BYTES: u64 = 256 << 20;
    /// Default of [`max_concurrent_tools`](Self::max_concurrent_tools).
    pub const DEFAULT_CONCURRENT_TOOLS: usize = 16;
    /// Default of [`max_memory_bytes`](Self::max_memory_bytes): 1 GiB.
    pub const DEFAULT_MEMORY_BYTES: u64 = 1 << 30;
    /// Least of [`max_memory_bytes`](Self::max_memory_bytes): 64 MiB, what an interpreter needs to start
    /// and to run small programs.
    pub const MIN_MEMORY_BYTES: u64 = 64 << 20;
    /// Calls of host functions that may wait for others of the run to end; a further one raises
    /// `RuntimeError` in the guest.
    pub const WAITING_TOOL_CALLS: usize = 10_000;
    /// Events of a run that an audit sink is told of one by one; those beyond are counted.
    pub const AUDIT_EVENTS: u64 = 100_000;
    /// Longest `repr` of a cell's value, in characters; longer ones are cut and end in `...`.
    pub const REPR_CHARS: u32 = 65_536;

    /// Sets the wall-clock budget of one run.
    ///
    /// The host measures it from the call to the verdict. Past it the guest is terminated, what it
    /// has written is kept, the outcome is
    /// [`Terminated`](crate::Outcome::Terminated), and the session is closed.
    ///
    /// By default this is 30 seconds. [`SandboxBuilder::build`](crate::SandboxBuilder::build)
    /// refuses zero.
    #[must_use]
    pub fn max_run_time(mut self, time: Duration) -> Self {
        self.run_time = time;
        self
    }

    /// Sets how many bytes of a run's standard output are kept.
    ///
    /// Of a longer output the first and the last half of so many bytes are kept, with a line
    /// between them that says how many were dropped. The run goes on.
    ///
    /// By default this is 1 MiB.
    #[must_use]
    pub fn max_stdout_bytes(mut self, bytes: u64) -> Self {
        self.stdout_bytes = bytes;
        self
    }

    /// Sets how many bytes of a run's standard error are kept, as
    /// [`max_stdout_bytes`](Self::max_stdout_bytes) does for standard output.
    ///
    /// By default this is 1 MiB.
    #[must_use]
    pub fn max_stderr_bytes(mut self, bytes: u64) -> Self {
        self.stderr_bytes = bytes;
        self
    }

    /// Sets the largest encoded size of a value that crosses, in either direction: a cell's value, a
    /// variable, the arguments or the result of a host function, a submission.
    ///
    /// A cell's value that is larger stays in the guest: the run completes without a value, and
    /// [`Execution::value_error`](crate::Execution::value_error) names both sizes. Elsewhere it is
    /// an error of the call that wanted it to cross.
    ///
    /// By default this is 256 MiB.
    #[must_use]
    pub fn max_value_bytes(mut self, bytes: u64) -> Self {
        self.value_bytes = bytes;
        self
    }

    /// Sets how many calls of host functions a run may have under way. Further ones wait.
    ///
    /// By default this is 16. [`SandboxBuilder::build`](crate::SandboxBuilder::build) refuses zero.
    #[must_use]
    pub fn max_concurrent_tools(mut self, calls: usize) -> Self {
        self.concurrent_tools = calls;
        self
    }

    /// Sets how much memory a session may have.
    ///
    /// What counts is the interpreter's memory with all of Python's objects, which never shrinks, files
    /// that the guest keeps there, and the buffers and WebAssembly memories of JavaScript. Past it
    /// Python raises `MemoryError`, JavaScript `RangeError`, a write to a file `OSError`, and the
    /// session lives on.
    ///
    /// JavaScript's own objects are in a heap of V8's besides, of a quarter of this, but at least
    /// 64 MiB and at most 512 MiB. A guest that fills it is terminated with
    /// [`Termination::Memory`](crate::Termination::Memory), and the session is closed.
    ///
    /// The interpreter has no more than 4 GiB, however large this is. By default it is 1 GiB.
    /// [`SandboxBuilder::build`](crate::SandboxBuilder::build) refuses less than
    /// [`MIN_MEMORY_BYTES`](Self::MIN_MEMORY_BYTES).
    #[must_use]
    pub fn max_memory_bytes(mut self, bytes: u64) -> Self {
        self.memory_bytes = bytes;
        self
    }

    /// Returns the wall-clock budget of one run.
    #[must_use]
    pub fn run_time(&self) -> Duration {
        self.run_time
    }

    /// Returns how many bytes of standard output are kept.
    #[must_use]
    pub fn stdout_bytes(&self) -> u64 {
        self.stdout_bytes
    }

    /// Returns how many bytes of standard error are kept.
    #[must_use]
    pub fn stderr_bytes(&self) -> u64 {
        self.stderr_bytes
    }

    /// Returns the largest encoded size of a value.
    #[must_use]
    pub fn value_bytes(&self) -> u64 {
        self.value_bytes
    }

    /// Returns how many calls of host functions a run may have under way.
    #[must_use]
    pub fn concurrent_tools(&self) -> usize {
        self.concurrent_tools
    }

    /// Returns how much memory a session may have.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// The longest budget the watchdog's clock can add to now without overflow: a century.
    const LONGEST_RUN_TIME: Duration = Duration::from_hours(100 * 365 * 24);

    pub(crate) fn validate(&self) -> Result<(), Error> {
        if self.run_time.is_zero() {
            return Err(Error::new(
                ErrorKind::Config,
                "the run time limit is 0 s, it must be more than that",
            ));
        }
        if self.concurrent_tools == 0 {
            return Err(Error::new(
                ErrorKind::Config,
                "the limit of concurrent tool calls is 0, it must be more than that",
            ));
        }
        if self.memory_bytes < Self::MIN_MEMORY_BYTES {
            return Err(Error::new(
                ErrorKind::Config,
                format!(
                    "the memory limit is {} bytes, it must be at least {} bytes",
                    self.memory_bytes,
                    Self::MIN_MEMORY_BYTES
                ),
            ));
        }
        if self.run_time > Self::LONGEST_RUN_TIME {
            return Err(Error::new(
                ErrorKind::Config,
                format!(
                    "the run time limit is {} s, it can be at most {} s",
                    self.run_time.as_secs(),
                    Self::LONGEST_RUN_TIME.as_secs()
                ),
            ));
        }
        Ok(())
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            run_time: Self::DEFAULT_RUN_TIME,
            stdout_bytes: Self::DEFAULT_STDOUT_BYTES,
            stderr_bytes: Self::DEFAULT_STDERR_BYTES,
            value_bytes: Self::DEFAULT_VALUE_BYTES,
            concurrent_tools: Self::DEFAULT_CONCURRENT_TOOLS,
            memory_bytes: Self::DEFAULT_MEMORY_BYTES,
        }
    }
}
