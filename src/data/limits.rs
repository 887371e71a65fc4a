//! What a run may use, with safe defaults.

use std::time::Duration;

use crate::data::error::{Error, ErrorKind};

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
    grace: Duration,
    stdout_bytes: u64,
    stderr_bytes: u64,
    output_lines: u64,
    value_bytes: u64,
    concurrent_tools: usize,
    call_bytes: u64,
    tool_calls: u64,
    refusals: u64,
    source_bytes: u64,
    memory_bytes: u64,
}

impl Limits {
    /// Default of [`max_run_time`](Self::max_run_time).
    pub const DEFAULT_RUN_TIME: Duration = Duration::from_secs(30);
    /// The longest [`max_run_time`](Self::max_run_time) that there can be, a century: as good as
    /// none.
    pub const LONGEST_RUN_TIME: Duration = Duration::from_hours(100 * 365 * 24);
    /// Default of [`max_grace`](Self::max_grace).
    pub const DEFAULT_GRACE: Duration = Duration::from_millis(500);
    /// Default of [`max_stdout_bytes`](Self::max_stdout_bytes): 1 MiB.
    pub const DEFAULT_STDOUT_BYTES: u64 = 1 << 20;
    /// Default of [`max_stderr_bytes`](Self::max_stderr_bytes): 1 MiB.
    pub const DEFAULT_STDERR_BYTES: u64 = 1 << 20;
    /// Default of [`max_output_lines`](Self::max_output_lines).
    pub const DEFAULT_OUTPUT_LINES: u64 = 1_000_000;
    /// Default of [`max_value_bytes`](Self::max_value_bytes): 256 MiB.
    pub const DEFAULT_VALUE_BYTES: u64 = 256 << 20;
    /// Default of [`max_concurrent_tools`](Self::max_concurrent_tools).
    pub const DEFAULT_CONCURRENT_TOOLS: usize = 16;
    /// Default of [`max_call_bytes`](Self::max_call_bytes): 256 MiB.
    pub const DEFAULT_CALL_BYTES: u64 = 256 << 20;
    /// Default of [`max_tool_calls`](Self::max_tool_calls).
    pub const DEFAULT_TOOL_CALLS: u64 = 10_000;
    /// Default of [`max_refusals`](Self::max_refusals).
    pub const DEFAULT_REFUSALS: u64 = 10_000;
    /// Default of [`max_source_bytes`](Self::max_source_bytes): 16 MiB.
    pub const DEFAULT_SOURCE_BYTES: u64 = 16 << 20;
    /// Timers of a session that may be pending, `time.sleep` and `asyncio.sleep` included; a
    /// further one raises an exception in the guest.
    pub const PENDING_TIMERS: u32 = 100_000;
    /// Default of [`max_memory_bytes`](Self::max_memory_bytes): 1 GiB.
    pub const DEFAULT_MEMORY_BYTES: u64 = 1 << 30;
    /// Least of [`max_memory_bytes`](Self::max_memory_bytes): 64 MiB, what an interpreter needs to
    /// start and to run small programs.
    pub const MIN_MEMORY_BYTES: u64 = 64 << 20;
    /// Calls of host functions that may wait for others of the run to end; a further one raises
    /// `RuntimeError` in the guest.
    pub const WAITING_TOOL_CALLS: usize = 10_000;
    /// Events of a run that an audit sink is told of one by one; those beyond are counted.
    pub const AUDIT_EVENTS: u64 = 100_000;
    /// Output of a run that waits for its reader, see
    /// [`Session::run_streaming`](crate::Session::run_streaming), in bytes: 256 KiB. With more than
    /// that the guest waits.
    pub const QUEUED_OUTPUT_BYTES: usize = 256 << 10;
    /// Longest `repr` of a cell's value, in characters; longer ones are cut and end in `...`.
    pub const REPR_CHARS: u32 = 65_536;
    /// Longest `repr` of a [variable](crate::Variable), in characters; longer ones are cut and end
    /// in `...`.
    pub const LOCAL_REPR_CHARS: u32 = 500;
    /// Longest name of a class or a variable, in characters; longer ones are cut and end in `...`.
    pub const NAME_CHARS: u32 = 500;
    /// Longest message, traceback and `args` of an exception, in characters each. Of longer ones
    /// the end is kept, after a note; longer `args` are left out.
    pub const EXCEPTION_CHARS: u32 = 65_536;

    /// Sets the wall-clock budget of one run.
    ///
    /// The host measures it from the call to the verdict. Past it `KeyboardInterrupt` is raised in
    /// the guest, which is killed if it has not ended within the [grace](Self::max_grace). What it
    /// has written is kept, and the outcome is [`Terminated`](crate::Outcome::Terminated) in any
    /// case; the session lives on, with its variables, unless the guest was killed.
    ///
    /// By default this is 30 seconds. [`SandboxBuilder::build`](crate::SandboxBuilder::build)
    /// refuses zero.
    #[must_use]
    pub fn max_run_time(mut self, time: Duration) -> Self {
        self.run_time = time;
        self
    }

    /// Sets how long a guest may take to end once it was interrupted because of a limit.
    ///
    /// Past it the guest is killed, and the session is closed. Long calls into C that never look
    /// for signals, such as `sum(range(10**9))`, and guests that catch the `KeyboardInterrupt` end
    /// so. With zero the guest is killed at once.
    ///
    /// By default this is half a second.
    #[must_use]
    pub fn max_grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
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

    /// Sets how many lines of each of a run's streams are kept, beside the limit of their bytes:
    /// the first and the last half of so many.
    ///
    /// By default this is 1,000,000.
    #[must_use]
    pub fn max_output_lines(mut self, lines: u64) -> Self {
        self.output_lines = lines;
        self
    }

    /// Sets the largest size of a value that crosses, in either direction: a cell's value, a
    /// variable, the arguments or the result of a host function, a submission.
    ///
    /// Neither its encoded size may be larger nor, on the way to the host, the memory that it takes
    /// there: besides text and bytes 32 bytes for each item of a list and 64 for each entry of a
    /// dict. A cell's value that is larger stays in the guest: the run completes without a value,
    /// and [`Execution::value_error`](crate::Execution::value_error) names both sizes. Elsewhere it
    /// is an error of the call that wanted it to cross.
    ///
    /// By default this is 256 MiB.
    #[must_use]
    pub fn max_value_bytes(mut self, bytes: u64) -> Self {
        self.value_bytes = bytes;
        self
    }

    /// Sets how many calls of host functions a session may have under way. Further ones wait.
    ///
    /// A call of a [function that blocks](crate::Tool::from_blocking_fn) is under way until the
    /// function has returned, even if the call is cancelled or its run has ended before.
    ///
    /// By default this is 16. [`SandboxBuilder::build`](crate::SandboxBuilder::build) refuses zero.
    #[must_use]
    pub fn max_concurrent_tools(mut self, calls: usize) -> Self {
        self.concurrent_tools = calls;
        self
    }

    /// Sets how much of the host's memory the arguments of a session's calls of host functions may
    /// take together: encoded while a call waits, as [`max_value_bytes`](Self::max_value_bytes)
    /// counts them once it is under way.
    ///
    /// A call past it raises `RuntimeError` in the guest, with both numbers. The results of
    /// finished calls may take as much again until the guest reads them; while they do, its further
    /// calls wait.
    ///
    /// By default this is 256 MiB.
    #[must_use]
    pub fn max_call_bytes(mut self, bytes: u64) -> Self {
        self.call_bytes = bytes;
        self
    }

    /// Sets how many calls of host functions a run may make, those that are refused aside.
    ///
    /// One more stops the run as its deadline does; the outcome is
    /// [`Termination::Limit`](crate::Termination::Limit). Budgets of single functions, which raise
    /// an exception in the guest, are [`Tool::max_calls`](crate::Tool::max_calls).
    ///
    /// By default this is 10,000.
    #[must_use]
    pub fn max_tool_calls(mut self, calls: u64) -> Self {
        self.tool_calls = calls;
        self
    }

    /// Sets how many requests of a run may be refused: calls of host functions that there are none
    /// of, files and servers that are not allowed, packages, WebAssembly.
    ///
    /// One more stops the run as its deadline does; the outcome is
    /// [`Termination::Limit`](crate::Termination::Limit). A guest that probes its walls gets no
    /// further.
    ///
    /// By default this is 10,000.
    #[must_use]
    pub fn max_refusals(mut self, refusals: u64) -> Self {
        self.refusals = refusals;
        self
    }

    /// Sets how long a cell's code may be, in bytes of UTF-8.
    ///
    /// A longer one is not run: the call fails with [`ErrorKind::Limit`](crate::ErrorKind::Limit),
    /// and the session lives on. What the guest compiles itself counts as its memory and its time.
    ///
    /// By default this is 16 MiB.
    #[must_use]
    pub fn max_source_bytes(mut self, bytes: u64) -> Self {
        self.source_bytes = bytes;
        self
    }

    /// Sets how much memory a session may have.
    ///
    /// What counts is the interpreter's memory with all of Python's objects, which never shrinks,
    /// files that the guest keeps there, and the buffers and WebAssembly memories of JavaScript.
    /// Past it Python raises `MemoryError`, JavaScript `RangeError`, a write to a file `OSError`,
    /// and the session lives on.
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

    /// Returns how long a guest may take to end once it was interrupted.
    #[must_use]
    pub fn grace(&self) -> Duration {
        self.grace
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

    /// Returns how many lines of each stream are kept.
    #[must_use]
    pub fn output_lines(&self) -> u64 {
        self.output_lines
    }

    /// Returns the largest size of a value.
    #[must_use]
    pub fn value_bytes(&self) -> u64 {
        self.value_bytes
    }

    /// Returns how much memory the arguments of unfinished calls of host functions may take.
    #[must_use]
    pub fn call_bytes(&self) -> u64 {
        self.call_bytes
    }

    /// Returns how many calls of host functions a session may have under way.
    #[must_use]
    pub fn concurrent_tools(&self) -> usize {
        self.concurrent_tools
    }

    /// Returns how many calls of host functions a run may make.
    #[must_use]
    pub fn tool_calls(&self) -> u64 {
        self.tool_calls
    }

    /// Returns how many requests of a run may be refused.
    #[must_use]
    pub fn refusals(&self) -> u64 {
        self.refusals
    }

    /// Returns how long a cell's code may be.
    #[must_use]
    pub fn source_bytes(&self) -> u64 {
        self.source_bytes
    }

    /// Returns how much memory a session may have.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

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
        for (what, time) in [("run time", self.run_time), ("grace", self.grace)] {
            if time > Self::LONGEST_RUN_TIME {
                return Err(Error::new(
                    ErrorKind::Config,
                    format!(
                        "the {what} limit is {} s, it can be at most {} s",
                        time.as_secs(),
                        Self::LONGEST_RUN_TIME.as_secs()
                    ),
                ));
            }
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
        Ok(())
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            run_time: Self::DEFAULT_RUN_TIME,
            grace: Self::DEFAULT_GRACE,
            stdout_bytes: Self::DEFAULT_STDOUT_BYTES,
            stderr_bytes: Self::DEFAULT_STDERR_BYTES,
            output_lines: Self::DEFAULT_OUTPUT_LINES,
            value_bytes: Self::DEFAULT_VALUE_BYTES,
            concurrent_tools: Self::DEFAULT_CONCURRENT_TOOLS,
            call_bytes: Self::DEFAULT_CALL_BYTES,
            tool_calls: Self::DEFAULT_TOOL_CALLS,
            refusals: Self::DEFAULT_REFUSALS,
            source_bytes: Self::DEFAULT_SOURCE_BYTES,
            memory_bytes: Self::DEFAULT_MEMORY_BYTES,
        }
    }
}
