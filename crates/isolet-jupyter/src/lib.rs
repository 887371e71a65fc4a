//! A kernel of Jupyter: cells of notebooks run in one session of isolet.
//!
//! [`kernel`] answers requests, whichever way they come, and [`zmq`] has them come as Jupyter's
//! programs send them: over five sockets, signed. A part of isolet, not an API: any version may
//! change it.

#![expect(
    missing_docs,
    missing_debug_implementations,
    clippy::missing_errors_doc,
    clippy::must_use_candidate,
    reason = "a part of isolet, not an API"
)]

#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod kernel;
pub mod message;
pub mod zmq;
