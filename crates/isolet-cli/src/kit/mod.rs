//! The parts that subcommands share: engines, streams, signals, logs.

pub(crate) mod audit;
pub(crate) mod engine;
pub(crate) mod environment;
pub(crate) mod head_start;
pub(crate) mod heap;
pub(crate) mod host_files;
pub(crate) mod import_hints;
pub(crate) mod interrupts;
pub(crate) mod output;
pub(crate) mod person;
pub(crate) mod refusals;
pub(crate) mod signal_mask;
pub(crate) mod signals;
pub(crate) mod stack;
