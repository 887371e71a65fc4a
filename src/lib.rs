//! Runs untrusted Python: full CPython on WebAssembly inside a V8 isolate, in a separate process,
//! with every permission denied by default.
//!
//! ```no_run
//! use isolet::{Engine, Sandbox, Value};
//!
//! fn main() -> Result<(), isolet::Error> {
//!     isolet::init(); // the first line: sessions run in processes made of this program
//!     let engine = Engine::new()?;
//!     let sandbox = Sandbox::builder(&engine).build()?;
//!     let mut session = sandbox.blocking().session()?;
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
//! Each of these four types is made from the one before it:
//!
//! * An [`Engine`] owns what all isolates of a process share: the V8 platform, the verified Pyodide
//!   assets, the compiled WebAssembly and the memory image that interpreters start from. Make one
//!   per process; clones share it. The last clone and the last session to be dropped free its
//!   resources, except V8's platform, which is never freed.
//! * A [`Sandbox`] is policy: the limits, and which parts of the host the guest may see. It owns no
//!   guest state, is cheap to make and to clone, and can be shared between threads.
//! * A [`Session`] owns one interpreter, on a thread or in a process of its own. Runs in a session
//!   keep their state; nothing passes from one session to another. A session can move between
//!   threads. A run needs `&mut Session`, so there is one at a time; threads that share `&Session`
//!   can read variables and make handles. Dropping it ends the interpreter and frees its memory.
//! * An [`Execution`] is the result of one run: the [`Outcome`], the output, the names that the run
//!   bound and the resources that it used. It is plain data.
//!
//! A [`Tool`] is a host function that the guest's Python calls like its own. A [`ToolModule`] has
//! tools that the guest imports. A [`Value`] is plain data that crosses in either direction;
//! [`to_value`] and [`from_value`] convert it from and to any serde type. The [`profile`] module
//! offers the interfaces of other executors. The crate `isolet-mcp` makes tools of those of MCP
//! servers.
//!
//! A Python exception and a limit that ends a run are outcomes; an [`Error`] means that the host
//! failed. The [`blocking`] module has the same API without async, method for method.
//!
//! # What is enforced
//!
//! The guest has no access to files, network, environment, processes or threads of the host,
//! because the interpreter was never given any. A thread outside the guest enforces deadlines, the
//! host bounds output and values, and the host decodes all bytes from the guest as hostile.
//!
//! # Isolation
//!
//! By default each session has a worker ([`Isolation::Process`], on Linux): a process that holds
//! nothing else and that the kernel permits very little. [`Session::isolation`] reports which
//! layers are in force, and [`SandboxBuilder::require`] makes layers a condition of starting. If
//! the program's `main` begins with [`init`], workers are started from the program itself,
//! otherwise from an installed `isolet` command of the same version. The first two workers of a
//! kind start on their own. Later ones are copies of a process that has booted but has run no guest
//! code, unless [`EngineBuilder::worker_start`] forbids it.
//!
//! With [`Isolation::Thread`] an isolate is a thread of your process. A V8 bug that guest code can
//! reach is then a bug in your process. The thread may never end, because some of V8's steps cannot
//! be interrupted, but `run` still returns at the deadline.
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
//! [`Engine::new`] reads one image, and every session boots from it. A server that must not wait
//! for sessions keeps some ready with [`Engine::prewarm`] or [`Sandbox::prewarm`]. Each one taken
//! is replaced in the background.
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
//! The image can include packages that sessions import repeatedly, with their native code:
//!
//! ```no_run
//! # fn example() -> Result<(), isolet::Error> {
//! use isolet::Engine;
//!
//! let engine = Engine::builder().preload("pydantic")?.build()?;
//! # Ok(()) }
//! ```
//!
//! # serde and schemars
//!
//! Public signatures name no type of a dependency. Some name traits: `Serialize` and
//! `DeserializeOwned` of serde 1, `JsonSchema` of schemars 1, and `Stream` of futures-core 0.3. A
//! program that depends on these crates itself needs the same major versions. One that does not
//! can use isolet's re-exports:
//!
//! ```
//! use isolet::{Tool, schemars, serde};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! #[serde(crate = "isolet::serde")]
//! #[schemars(crate = "isolet::schemars")]
//! struct Search {
//!     query: String,
//! }
//!
//! let tool = Tool::from_fn("search", |search: Search, _| async move { Ok(search.query) });
//! assert_eq!(tool.spec().to_string(), "search(query: str)");
//! ```
//!
//! # Features
//!
//! | name | what it adds | default |
//! |-|-|-|
//! | `engine` | V8: sessions on threads, programs that are their own workers ([`init`]) | yes |
//! | `fetch` | an [`Engine`] whose assets are missing fetches them, 13 MiB, once | yes |
//! | `fuzzing` | the checks of isolet's fuzz targets, and an allocator that counts; no API | no |
//!
//! Without `engine`, neither V8 nor `deno_core` is compiled. Sessions run in workers of the
//! installed command `isolet` of the same version, which also makes the memory image when there is
//! none. [`Isolation::Thread`] is refused with [`ErrorKind::Config`].
//!
//! # Other crates
//!
//! `isolet-cli` is the `isolet` command. `isolet-mcp` is for programs: MCP servers as the source of
//! tools, a language model as a tool, and with its feature `server` the server of `isolet mcp`.
//! `isolet-serve` has the server of `isolet serve`. `isolet-service` and `isolet-support` are parts
//! of these and no API. All have the version of this crate.

#![cfg_attr(
    not(all(feature = "engine", target_os = "linux")),
    expect(dead_code, reason = "workers use it, which are on Linux and have the feature")
)]

#[doc(hidden)]
pub mod internals;
pub mod profile;

mod api;
mod data;
mod fs;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod host;
mod image;
#[cfg(feature = "engine")]
mod isolate;
#[cfg(not(feature = "engine"))]
#[path = "isolate/absent.rs"]
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

pub use api::assets::{find_assets, find_bundle};
pub use api::blocking;
pub use api::engine::{Engine, EngineBuilder, SetImages};
pub use api::init::init;
pub use api::journal::Journal;
pub use api::permissions::Permissions;
pub use api::replay::Replay;
pub use api::sandbox::{Sandbox, SandboxBuilder};
pub use api::session::{FileEntry, Files, InterruptHandle, Session, SessionState, StoppedAt};
#[doc(hidden)] // as `internals`
pub use api::session::{has_program_to_go_on, run_counter};
pub use api::stream::{RunOutput, RunStream};
pub use data::cell::{Cell, Syntax};
pub use data::display::{Display, MimeData};
pub use data::error::{Error, ErrorKind};
pub use data::execution::{
    Execution, LimitKind, MemoryKind, Outcome, PyException, Restored, Termination, Truncation,
    Usage, Variable,
};
pub use data::isolation::{
    CallRule, Isolation, IsolationReport, Layer, LayerState, SystemCall, UnknownLayer, WorkerStart,
};
pub use data::limits::Limits;
pub use data::missing_module::MissingModule;
pub use data::output::{OutputChunk, RunEvent, Stream};
pub use data::stdin::Stdin;
pub use data::terminal::Terminal;
pub use data::tool::{
    ObjectHint, Param, ToolError, ToolSpec, TypeHint, search as search_tools, stub as tool_stub,
};
pub use data::value::{BigInt, Sign, Value, from_value, to_value};
pub use data::version::v8_version;
pub use data::written_file::WrittenFile;
pub use fs::{ChangeKind, ExportDirectory, FileChange, Mount, MountMode};
pub use host::audit::{Access, AuditEvent};
pub use host::journal::{JournalFull, JournalSync, Traced, TracedWhat};
pub use host::stop::ClockPause;
pub use host::tools::{SessionHandle, Tool, ToolContext, ToolModule};
pub use net::rules::Secret;
pub use packages::{
    Bundle, BundledPackage, LoadedPackage, PackageDownload, python_version, script_packages,
};
pub use support::cache_dir::{ASSETS_VARIABLE, BUNDLE_VARIABLE};
#[cfg(any(feature = "engine", not(target_os = "linux")))]
pub use worker::system_calls;
#[doc(no_inline)]
pub use {schemars, serde};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../docs/guides/rust.md")]
struct Guide;

#[cfg(doctest)]
#[doc = include_str!("../docs/concepts/checkpoints.md")]
struct Checkpoints;
