//! Models of the waits between threads and processes: the library's own files, whose threads, locks
//! and atomics are those of shuttle here. It runs them in one order after the other, and reports an
//! order in which nobody goes on, or in which an assertion fails.
//!
//! The modules have the paths that the files name, with what is around them in the library.

#![expect(
    clippy::expect_used,
    clippy::unused_self,
    dead_code,
    unreachable_pub,
    reason = "for tests, with files of which the models use a part"
)]

mod data;
mod isolate;
mod messages;
mod protocol;
mod ring;
mod support;
mod wakes;
mod worker;

pub use messages::{messages_arrive, messages_of_a_session_that_stays_arrive};
pub use ring::output_arrives;
pub use wakes::wakes_are_kept;
pub use worker::parent::lease::commands_are_answered;
