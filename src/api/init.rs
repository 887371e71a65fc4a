//! Makes a program usable as the worker of its own sessions.

#[cfg(all(feature = "engine", target_os = "linux"))]
mod worker;

use crate::support::signals::outlive_file_size_limit;

/// Lets isolet start workers from this program. Call it in the first line of `main`.
///
/// [`Isolation::Process`](crate::Isolation::Process), the default on Linux, gives each session a
/// worker: a process that runs nothing else. For that, isolet starts this program again, with
/// special arguments. In such a process `init` becomes the worker and never returns. In any other
/// process it registers the program as a possible worker and returns at once.
///
/// A worker locks itself down before it has a second thread and before it opens a file. Nothing
/// else may therefore run first: no async runtime, no logger, no argument parser. With
/// `#[tokio::main]`, write a plain `main` that calls `init` and then the `async fn`.
///
/// ```no_run
/// fn main() -> Result<(), isolet::Error> {
///     isolet::init();
///     let engine = isolet::Engine::new()?;
///     let sandbox = isolet::Sandbox::builder(&engine).build()?;
///     let mut session = sandbox.blocking().session()?;
///     println!("{}", session.run("print(40 + 2)")?.stdout());
///     Ok(())
/// }
/// ```
///
/// Some programs cannot call `init` first, such as tests run by `cargo test` or extension modules.
/// They use an installed `isolet` command of the same version, found in the program's directory or
/// on the `PATH`, or set with [`EngineBuilder::worker`](crate::EngineBuilder::worker).
///
/// It also keeps SIGXFSZ from ending this process, which a guest's write to a mount can cause where
/// the size of files is limited, unless the program has said what is to become of that signal.
/// Making an [`Engine`](crate::Engine) does the same.
///
/// On other systems than Linux there is no process isolation, and `init` makes no worker. Without
/// the feature `engine` it makes none either: there workers start from the installed command.
pub fn init() {
    outlive_file_size_limit();
    #[cfg(all(feature = "engine", target_os = "linux"))]
    worker::init();
}

/// Starts the worker of the first session before it is known what it is for. This program has to
/// have called [`init`]. Where it cannot be a worker, this does nothing.
pub fn start_worker_ahead() {
    #[cfg(all(feature = "engine", target_os = "linux"))]
    crate::worker::start_ahead();
}
