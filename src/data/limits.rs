//! The limits of a session and its runs, with safe defaults.

use std::time::Duration;

use crate::data::error::{Error, ErrorKind};

/// Calls a macro with all limits of a session. They are listed only here: Rust's type, the policies
/// of clients and their OpenAPI schema are made of this list. A test compares it with the pages,
/// the command's options and Python's `Limits`.
///
/// A limit has its name, its type here and in policies, its setter, its default, and the command's
/// option or the reason why there is none.
#[doc(hidden)]
#[macro_export]
macro_rules! for_each_limit {
    ($callback:ident) => {
        $callback! {
            /// Seconds that a run may take, without the time in which tools run.
            run_time: Duration as f64, max_run_time, DEFAULT_RUN_TIME, Ok("--timeout");
            /// Seconds in which tools of a run may run.
            host_time: Duration as f64, max_host_time, DEFAULT_HOST_TIME, Ok("--host-timeout");
            /// Seconds from an interrupt until the session is killed.
            grace: Duration as f64, max_grace, DEFAULT_GRACE,
                Err("a script has nothing to do after its deadline");
            /// Bytes of the interpreter's memory and files.
            memory_bytes: u64 as u64, max_memory_bytes, DEFAULT_MEMORY_BYTES, Ok("--memory");
            /// Bytes of the standard output of a run that are kept.
            stdout_bytes: u64 as u64, max_stdout_bytes, DEFAULT_STDOUT_BYTES, Ok("--max-output");
            /// Bytes of the standard error of a run that are kept.
            stderr_bytes: u64 as u64, max_stderr_bytes, DEFAULT_STDERR_BYTES, Ok("--max-output");
            /// Lines of each stream of a run that are kept.
            output_lines: u64 as u64, max_output_lines, DEFAULT_OUTPUT_LINES,
                Err("output is passed on, or its bytes are limited");
            /// Displays of a run that are kept.
            displays: u64 as u64, max_displays, DEFAULT_DISPLAYS,
                Err("a script has few, and those beyond the limit are told");
            /// Bytes of a run's displays together.
            display_bytes: u64 as u64, max_display_bytes, DEFAULT_DISPLAY_BYTES,
                Err("a script has few, and those beyond the limit are told");
            /// Files written by a run that are listed.
            files: u64 as u64, max_files, DEFAULT_FILES,
                Err("quotas of mounts limit what is written");
            /// Bytes of a value or file that crosses.
            value_bytes: u64 as u64, max_value_bytes, DEFAULT_VALUE_BYTES,
                Err("a script passes no values but its last one");
            /// Bytes of the code of a run.
            source_bytes: u64 as u64, max_source_bytes, DEFAULT_SOURCE_BYTES,
                Err("the code is the user's file");
            /// Tool calls in a run.
            tool_calls: u64 as u64, max_tool_calls, DEFAULT_TOOL_CALLS,
                Err("a script has no tools");
            /// Refused requests in a run.
            refusals: u64 as u64, max_refusals, DEFAULT_REFUSALS,
                Err("a script that probes is ended by the default");
            /// Tool calls at once in a session.
            concurrent_tools: usize as usize, max_concurrent_tools, DEFAULT_CONCURRENT_TOOLS,
                Err("a script has no tools");
            /// Bytes of the arguments of a session's unfinished tool calls.
            call_bytes: u64 as u64, max_call_bytes, DEFAULT_CALL_BYTES,
                Err("a script has no tools");
        }
    };
}

/// Makes Rust's type of the list. The setters and the defaults are below: without one of them, this
/// does not compile.
macro_rules! limits {
    ($($(#[$doc:meta])* $name:ident: $type:ty as $plain:ty, $setter:ident, $default:ident,
       $option:expr;)*) => {
        /// Limits of the sessions of a [`Sandbox`](crate::Sandbox) and of their runs.
        ///
        /// Every limit has a default, which is a documented constant. No limit can be switched off,
        /// only set very high.
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
            $($name: $type,)*
        }

        impl Default for Limits {
            fn default() -> Self {
                Self { $($name: Self::$default,)* }
            }
        }

        impl Limits {
            $(
                #[doc = concat!(
                    "Returns the limit that [`", stringify!($setter), "`](Self::",
                    stringify!($setter), ") sets.",
                )]
                #[must_use]
                pub fn $name(&self) -> $type {
                    self.$name
                }
            )*
        }
    };
}

for_each_limit!(limits);

impl Limits {
    /// The default of [`max_run_time`](Self::max_run_time).
    pub const DEFAULT_RUN_TIME: Duration = Duration::from_secs(30);
    /// The maximum of [`max_run_time`](Self::max_run_time) and
    /// [`max_host_time`](Self::max_host_time): a century, in effect no limit.
    pub const LONGEST_RUN_TIME: Duration = Duration::from_hours(100 * 365 * 24);
    /// The default of [`max_host_time`](Self::max_host_time).
    pub const DEFAULT_HOST_TIME: Duration = Duration::from_hours(1);
    /// The default of [`max_grace`](Self::max_grace).
    pub const DEFAULT_GRACE: Duration = Duration::from_millis(500);
    /// The default of [`max_stdout_bytes`](Self::max_stdout_bytes): 1 MiB.
    pub const DEFAULT_STDOUT_BYTES: u64 = 1 << 20;
    /// The default of [`max_stderr_bytes`](Self::max_stderr_bytes): 1 MiB.
    pub const DEFAULT_STDERR_BYTES: u64 = 1 << 20;
    /// The default of [`max_output_lines`](Self::max_output_lines).
    pub const DEFAULT_OUTPUT_LINES: u64 = 1_000_000;
    /// The default of [`max_displays`](Self::max_displays).
    pub const DEFAULT_DISPLAYS: u64 = 100;
    /// The default of [`max_display_bytes`](Self::max_display_bytes): 32 MiB.
    pub const DEFAULT_DISPLAY_BYTES: u64 = 32 << 20;
    /// The default of [`max_files`](Self::max_files).
    pub const DEFAULT_FILES: u64 = 1000;
    /// The default of [`max_value_bytes`](Self::max_value_bytes): 256 MiB.
    pub const DEFAULT_VALUE_BYTES: u64 = 256 << 20;
    /// The default of [`max_concurrent_tools`](Self::max_concurrent_tools).
    pub const DEFAULT_CONCURRENT_TOOLS: usize = 16;
    /// The default of [`max_call_bytes`](Self::max_call_bytes): 256 MiB.
    pub const DEFAULT_CALL_BYTES: u64 = 256 << 20;
    /// The default of [`max_tool_calls`](Self::max_tool_calls).
    pub const DEFAULT_TOOL_CALLS: u64 = 10_000;
    /// The default of [`max_refusals`](Self::max_refusals).
    pub const DEFAULT_REFUSALS: u64 = 10_000;
    /// The default of [`max_source_bytes`](Self::max_source_bytes): 16 MiB.
    pub const DEFAULT_SOURCE_BYTES: u64 = 16 << 20;
    /// The maximum number of pending timers in a session, including `time.sleep` and
    /// `asyncio.sleep`. One more raises an exception in the guest.
    pub const PENDING_TIMERS: u32 = 100_000;
    /// The default of [`max_memory_bytes`](Self::max_memory_bytes): 1 GiB.
    pub const DEFAULT_MEMORY_BYTES: u64 = 1 << 30;
    /// The minimum of [`max_memory_bytes`](Self::max_memory_bytes): 64 MiB, enough for an
    /// interpreter to start and run small programs.
    pub const MIN_MEMORY_BYTES: u64 = 64 << 20;
    /// The maximum number of tool calls that may wait for other calls of the run to end. One more
    /// raises `RuntimeError` in the guest.
    pub const WAITING_TOOL_CALLS: usize = 10_000;
    /// The maximum number of events of a run that an audit sink receives one by one. Later events
    /// are only counted.
    pub const AUDIT_EVENTS: u64 = 100_000;
    /// The maximum output of a run that waits for its reader, in bytes: 256 KiB. Beyond it the
    /// guest waits. See [`Session::run_streaming`](crate::Session::run_streaming).
    pub const QUEUED_OUTPUT_BYTES: usize = 256 << 10;
    /// The maximum length of the `repr` of a cell's value, in characters. A longer one is truncated
    /// and ends in `...`.
    pub const REPR_CHARS: u32 = 65_536;
    /// The maximum length of the `repr` of a [variable](crate::Variable), in characters. A longer
    /// one is truncated and ends in `...`.
    pub const LOCAL_REPR_CHARS: u32 = 500;
    /// The maximum length of the name of a class or variable, in characters. A longer one is
    /// truncated and ends in `...`.
    pub const NAME_CHARS: u32 = 500;
    /// The maximum length of an exception's message, traceback and `args`, in characters each. Of a
    /// longer message or traceback only the end is kept, after a note; longer `args` are omitted.
    pub const EXCEPTION_CHARS: u32 = 65_536;

    /// Sets the wall-clock limit of one run, without the time that its tools take.
    ///
    /// The host measures the time from the call until it decides how the run ended. The clock
    /// stands still while a [tool](crate::Tool) is running: that time has a limit of its own,
    /// [`max_host_time`](Self::max_host_time). At the deadline the host raises `KeyboardInterrupt`
    /// in the guest, and kills a guest that does not end within the [grace](Self::max_grace). The
    /// output so far is kept, and the outcome is [`Terminated`](crate::Outcome::Terminated) in both
    /// cases. Unless the guest was killed, the session stays usable and keeps its variables.
    ///
    /// Default: 30 seconds. [`SandboxBuilder::build`](crate::SandboxBuilder::build) rejects zero.
    #[must_use]
    pub fn max_run_time(mut self, time: Duration) -> Self {
        self.run_time = time;
        self
    }

    /// Sets the limit of the time that the tools of one run take.
    ///
    /// This time passes while at least one tool's function is running: from its start until its
    /// result is there, or the call is cancelled. Several at once count once. What the guest does
    /// meanwhile counts too, so that no guest can compute longer than this limit and
    /// [`max_run_time`](Self::max_run_time) together. Calls that wait to be started, requests to
    /// the network, access to files and loading packages belong to the run time.
    ///
    /// At the limit the host stops the run as at the deadline; the outcome is
    /// [`Termination::HostTime`](crate::Termination::HostTime).
    /// [`Tool::timeout`](crate::Tool::timeout) limits a single call, with an exception in the
    /// guest.
    ///
    /// Default: one hour. [`SandboxBuilder::build`](crate::SandboxBuilder::build) rejects zero.
    #[must_use]
    pub fn max_host_time(mut self, time: Duration) -> Self {
        self.host_time = time;
        self
    }

    /// Sets how long an interrupted guest may take to end after it reached a limit.
    ///
    /// After this time the guest is killed and the session is closed. This happens to guests that
    /// catch the `KeyboardInterrupt`, and during long C calls that never check for signals, such as
    /// `sum(range(10**9))`. With zero the guest is killed at once.
    ///
    /// Default: half a second.
    #[must_use]
    pub fn max_grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets how many bytes of a run's standard output are kept.
    ///
    /// Of a longer output the first and last halves of this size are kept. A line between them says
    /// how many bytes were dropped. The run goes on.
    ///
    /// Default: 1 MiB.
    #[must_use]
    pub fn max_stdout_bytes(mut self, bytes: u64) -> Self {
        self.stdout_bytes = bytes;
        self
    }

    /// Sets how many bytes of a run's standard error are kept, as
    /// [`max_stdout_bytes`](Self::max_stdout_bytes) does for standard output.
    ///
    /// Default: 1 MiB.
    #[must_use]
    pub fn max_stderr_bytes(mut self, bytes: u64) -> Self {
        self.stderr_bytes = bytes;
        self
    }

    /// Sets how many lines of each output stream of a run are kept: the first and last halves of
    /// this number. The limits in bytes apply as well.
    ///
    /// Default: 1,000,000.
    #[must_use]
    pub fn max_output_lines(mut self, lines: u64) -> Self {
        self.output_lines = lines;
        self
    }

    /// Sets how many [displays](crate::Display) of a run are kept and streamed. Further ones are
    /// only counted, in [`Execution::truncated`](crate::Execution::truncated); the run goes on.
    ///
    /// Default: 100.
    #[must_use]
    pub fn max_displays(mut self, displays: u64) -> Self {
        self.displays = displays;
        self
    }

    /// Sets the maximum size of a run's [displays](crate::Display) together, in bytes. A display
    /// that exceeds it is only counted, as one beyond [`max_displays`](Self::max_displays).
    ///
    /// Default: 32 MiB.
    #[must_use]
    pub fn max_display_bytes(mut self, bytes: u64) -> Self {
        self.display_bytes = bytes;
        self
    }

    /// Sets how many [files](crate::Execution::files) that a run has written are listed. Further
    /// ones are only counted, in [`Execution::truncated`](crate::Execution::truncated).
    ///
    /// Default: 1000.
    #[must_use]
    pub fn max_files(mut self, files: u64) -> Self {
        self.files = files;
        self
    }

    /// Sets the maximum size of a value that crosses in either direction: a cell's value, a
    /// variable, the arguments or result of a tool, a submission.
    ///
    /// The limit applies to the encoded size. For values from the guest it also applies to the
    /// memory that the value takes on the host. This memory is that of texts and bytes, plus 32
    /// bytes for each item of a list and 64 bytes for each entry of a dict. If a cell's value is
    /// too large, the run completes without a value, and
    /// [`Execution::value_error`](crate::Execution::value_error) names both sizes. For any other
    /// value the call fails.
    ///
    /// Default: 256 MiB.
    #[must_use]
    pub fn max_value_bytes(mut self, bytes: u64) -> Self {
        self.value_bytes = bytes;
        self
    }

    /// Sets how many tool calls of a session may be under way at a time. Further calls wait.
    ///
    /// A call of a [blocking tool](crate::Tool::from_blocking_fn) is under way until its function
    /// has returned, even if the call is cancelled or its run has ended before.
    ///
    /// Default: 16. [`SandboxBuilder::build`](crate::SandboxBuilder::build) rejects zero.
    #[must_use]
    pub fn max_concurrent_tools(mut self, calls: usize) -> Self {
        self.concurrent_tools = calls;
        self
    }

    /// Sets how much host memory the arguments of a session's tool calls may take together. A
    /// waiting call counts with its encoded size, a call under way as
    /// [`max_value_bytes`](Self::max_value_bytes) counts it.
    ///
    /// A call beyond this limit raises `RuntimeError` in the guest, with both numbers. Results that
    /// the guest has not read yet have a separate limit of the same size. At that limit the guest's
    /// further calls wait.
    ///
    /// Default: 256 MiB.
    #[must_use]
    pub fn max_call_bytes(mut self, bytes: u64) -> Self {
        self.call_bytes = bytes;
        self
    }

    /// Sets how many tool calls a run may make, without those that are refused.
    ///
    /// One more stops the run as its deadline would; the outcome is
    /// [`Termination::Limit`](crate::Termination::Limit).
    /// [`Tool::max_calls`](crate::Tool::max_calls) limits a single tool, with an exception in the
    /// guest.
    ///
    /// Default: 10,000.
    #[must_use]
    pub fn max_tool_calls(mut self, calls: u64) -> Self {
        self.tool_calls = calls;
        self
    }

    /// Sets how many requests of a run may be refused: calls of unknown tools, and files, servers,
    /// packages or WebAssembly that are not allowed.
    ///
    /// One more stops the run as its deadline would; the outcome is
    /// [`Termination::Limit`](crate::Termination::Limit). This ends guests that probe for what they
    /// can reach.
    ///
    /// Default: 10,000.
    #[must_use]
    pub fn max_refusals(mut self, refusals: u64) -> Self {
        self.refusals = refusals;
        self
    }

    /// Sets the maximum length of a cell's code, in bytes of UTF-8.
    ///
    /// A longer cell is not run: the call fails with [`ErrorKind::Limit`](crate::ErrorKind::Limit),
    /// and the session stays usable. Code that the guest compiles itself counts towards its memory
    /// and time.
    ///
    /// Default: 16 MiB.
    #[must_use]
    pub fn max_source_bytes(mut self, bytes: u64) -> Self {
        self.source_bytes = bytes;
        self
    }

    /// Sets how much memory a session may have, in bytes.
    ///
    /// The limit covers the interpreter's memory with all Python objects, which never shrinks, the
    /// guest's in-memory files, and JavaScript's buffers and WebAssembly memories. Beyond it Python
    /// raises `MemoryError`, JavaScript `RangeError`, and a write to a file `OSError`; the session
    /// stays usable.
    ///
    /// JavaScript objects are in V8's heap, which has an additional limit: a quarter of this one,
    /// but at least 64 MiB and at most 512 MiB. A guest that fills the heap is terminated with
    /// [`Termination::Memory`](crate::Termination::Memory), and the session is closed.
    ///
    /// The interpreter has at most 4 GiB, however large this limit is. Default: 1 GiB.
    /// [`SandboxBuilder::build`](crate::SandboxBuilder::build) rejects less than
    /// [`MIN_MEMORY_BYTES`](Self::MIN_MEMORY_BYTES).
    #[must_use]
    pub fn max_memory_bytes(mut self, bytes: u64) -> Self {
        self.memory_bytes = bytes;
        self
    }

    pub(crate) fn validate(&self) -> Result<(), Error> {
        for (what, time) in [("run time", self.run_time), ("host time", self.host_time)] {
            if time.is_zero() {
                return Err(Error::new(
                    ErrorKind::Config,
                    format!("the {what} limit is 0 s, it must be more than that"),
                ));
            }
        }
        if self.concurrent_tools == 0 {
            return Err(Error::new(
                ErrorKind::Config,
                "the limit of concurrent tool calls is 0, it must be more than that",
            ));
        }
        let times =
            [("run time", self.run_time), ("host time", self.host_time), ("grace", self.grace)];
        for (what, time) in times {
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
                    "the memory limit is {}; the minimum is {}",
                    in_units(self.memory_bytes),
                    in_units(Self::MIN_MEMORY_BYTES)
                ),
            ));
        }
        Ok(())
    }
}

/// Returns a size in the largest unit of which it is a multiple.
fn in_units(bytes: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    if bytes == 1 {
        return "1 byte".to_owned();
    }
    let unit = units.into_iter().find(|(size, _)| bytes >= *size && bytes.is_multiple_of(*size));
    unit.map_or_else(|| format!("{bytes} bytes"), |(size, name)| format!("{} {name}", bytes / size))
}
