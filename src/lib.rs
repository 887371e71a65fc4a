//! Runs untrusted Python: full CPython on WebAssembly inside a V8 isolate, in a process of its own,
//! with every permission denied until it is allowed.
//!
//! ```no_run
//! use isolet::blocking::Session;
//! use isolet::{Engine, Sandbox, Value};
//!
//! fn main() -> Result<(), isolet::Error> {
//!     isolet::init(); // the first line: sessions run in processes made of this program
//!     let engine = Engine::new()?;
//!     let sandbox = Sandbox::builder(&engine).build()?;
//!     let mut session = Session::new(&sandbox)?;
//!     session.run("x = 20")?;
//!     let execution = session.run("print('hi'); x + 22")?;
//!     assert_eq!(execution.value(), Some(&Value::Int(42)));
//!     assert_eq!(execution.stdout(), "hi\n");
//!     Ok(())
//! }
//! ```
//!
//! # Concepts
//!
//! Four types, each made from the one before it:
//!
//! * An [`Engine`] owns what all isolates of a process share: the V8 platform, the verified Pyodide
//!   assets, the compiled WebAssembly and the memory image that interpreters start from. Make one a
//!   process; clones are the same engine. What it shares is freed with the last clone and the last
//!   session, V8's platform never.
//! * A [`Sandbox`] is policy: limits and what the guest may see of the host. It owns no guest
//!   state, is cheap to make and to clone, and many threads can share it.
//! * A [`Session`] owns one interpreter on a thread or in a process of its own. Runs in it keep
//!   their state; nothing passes from one session to another. It can move between threads but not
//!   be shared by them. Dropping it ends the interpreter and gives its memory back.
//! * An [`Execution`] is what became of one run: the [`Outcome`], the output, the names it bound
//!   and what it used. It is plain data.
//!
//! A [`Tool`] is a function of the host that the guest's Python calls like its own; a [`Value`] is
//! plain data that crosses either way, from and to any serde type ([`to_value`], [`from_value`]).
//! What other executors promise their users is in [`profile`].
//!
//! A Python exception and a limit that ends a run are outcomes; an [`Error`] means that the host
//! failed. The same without async is in [`blocking`].
//!
//! # What is enforced
//!
//! The guest has no way to files, network, environment, processes or threads of the host: the
//! interpreter was never given one. Deadlines are kept by a thread outside the guest, output and
//! values are bounded on the host's side, and bytes from the guest are decoded as hostile.
//!
//! # Isolation
//!
//! By default each session has a worker ([`Isolation::Process`], on Linux): a process that holds
//! nothing else and that the kernel lets do next to nothing. [`Session::isolation`] says what of
//! that is in force, and [`SandboxBuilder::require`] makes it a condition. Workers are made of the
//! program itself if its `main` begins with [`init`], else of the installed command `isolet` of the
//! same version. From the third session of a kind on, its worker is a copy of one that has booted
//! and run nobody's code, unless [`Engine::with_fresh_workers`] says otherwise.
//!
//! With [`Isolation::Thread`] an isolate is a thread of your process: a bug in V8 that guest code
//! can reach is a bug in your process, and the thread may never end, since V8 has steps that
//! nothing interrupts. `run` returns at the deadline all the same.
//!
//! ```no_run
//! # async fn example() -> Result<(), isolet::Error> {
//! use isolet::{Engine, Layer, Sandbox};
//!
//! let engine = Engine::new()?;
//! let sandbox = Sandbox::builder(&engine).require([Layer::Seccomp, Layer::Landlock]).build()?;
//! let execution = sandbox.run("import os; os.abort()").await?;
//! assert!(!execution.session_alive());
//! # Ok(()) }
//! ```
//!
//! # Starting quickly
//!
//! [`Engine::new`] reads one image, and a session boots from it. A server that wants sessions
//! without waiting has some kept ready, by [`Engine::prewarm`] or [`Sandbox::prewarm`]; each one
//! that is taken is replaced in the background.
//!
//! ```no_run
//! # async fn example() -> Result<(), isolet::Error> {
//! use isolet::{Engine, Sandbox};
//!
//! let engine = Engine::new()?;
//! engine.prewarm(8)?;
//! engine.prewarmed().await?; // before the first request, if it should not wait either
//! let session = Sandbox::builder(&engine).build()?.session().await?;
//! # Ok(()) }
//! ```
//!
//! What sessions import again and again can be in the image, native code and all:
//!
//! ```no_run
//! # fn example() -> Result<(), isolet::Error> {
//! use isolet::Engine;
//!
//! let engine = Engine::builder().preload("pydantic")?.build()?;
//! # Ok(()) }
//! ```
//!
//! # Features
//!
//! | name | what it adds | default |
//! |-|-|-|
//! | `cli` | the `isolet` command and the download of assets | yes |

pub mod profile;

mod api;
mod data;
mod fs;
mod host;
mod isolate;
mod net;
mod packages;
mod protocol;
mod support;
#[cfg(target_os = "linux")]
mod worker;
#[cfg(not(target_os = "linux"))]
#[path = "worker/unsupported.rs"]
mod worker;

pub use api::assets::find_assets;
pub use api::blocking;
pub use api::engine::{Engine, EngineBuilder};
pub use api::permissions::Permissions;
pub use api::sandbox::{Sandbox, SandboxBuilder};
pub use api::session::{FileEntry, Files, InterruptHandle, Session, SessionState};
pub use api::stream::{RunOutput, RunStream};
pub use data::cell::Cell;
pub use data::error::{Error, ErrorKind};
pub use data::execution::{
    Execution, LimitKind, Outcome, PyException, Termination, Truncation, Usage, Variable,
};
pub use data::isolation::{
    CallRule, Isolation, IsolationReport, Layer, LayerState, SystemCall, UnknownLayer,
};
pub use data::limits::Limits;
pub use data::output::{OutputChunk, Stream};
pub use data::stdin::Stdin;
pub use data::terminal::Terminal;
pub use data::tool::{Param, ToolError, ToolSpec, TypeHint};
pub use data::value::{BigInt, Value, from_value, to_value};
pub use data::version::v8_version;
pub use fs::{ChangeKind, ExportDirectory, FileChange, Mount, MountMode};
pub use host::audit::{Access, AuditEvent};
pub use host::tools::{SessionHandle, Tool, ToolContext};
pub use packages::{LoadedPackage, python_version, script_packages};
pub use support::cache_dir::ASSETS_VARIABLE;
pub use worker::{init, system_calls};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
