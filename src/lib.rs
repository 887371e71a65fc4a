//! Runs untrusted Python.

pub mod blocking;

mod assets;
mod cell;
mod engine;
mod error;
mod execution;
mod frame;
mod host;
mod limits;
mod output;
mod sandbox;
mod session;
mod stdin;
mod stream;
mod value;
mod waist;
mod watchdog;

pub use assets::{ASSETS_VARIABLE, find_assets};
pub use cell::Cell;
pub use engine::{Engine, v8_version};
pub use error::{Error, ErrorKind};
pub use execution::{Execution, Outcome, PyException, Termination, Truncation, Usage, Variable};
pub use limits::Limits;
pub use output::Stream;
pub use sandbox::{Sandbox, SandboxBuilder};
pub use session::{InterruptHandle, Session, SessionState};
pub use stdin::Stdin;
pub use stream::{OutputChunk, RunStream};
pub use value::{BigInt, Value};
