//! Lets a program be the worker of its own sessions.

#[cfg(all(feature = "engine", target_os = "linux"))]
mod worker;

/// Lets isolet make its workers of this program. Call it in the first line of `main`.
///
/// [`Isolation::Process`](crate::Isolation::Process), the default, gives each session a worker: a
/// process that runs nothing else. isolet starts this program again for it, with arguments of its
/// own. In such a process `init` becomes the worker, which never returns; in any other it takes
/// note that this program can be one, and returns at once.
///
/// A worker locks itself down before it has a second thread and before it opens a file, so that
/// nothing of the program may come before: no async runtime, no logger, no argument parser. With
/// `#[tokio::main]` that means a `main` of your own that calls `init` and then the `async fn`.
///
/// ```no_run
/// fn main() -> Result<(), isolet::Error> {
///     isolet::init();
///     let engine = isolet::Engine::new()?;
///     let sandbox = isolet::Sandbox::builder(&engine).build()?;
///     let mut session = isolet::blocking::Session::new(&sandbox)?;
///     println!("{}", session.run("print(40 + 2)")?.stdout());
///     Ok(())
/// }
/// ```
///
/// A program that cannot call it first, such as a test by `cargo test` or an extension module, uses
/// the installed command `isolet` of the same version, which is looked for beside the program and
/// in `PATH`, or names one by [`EngineBuilder::worker`](crate::EngineBuilder::worker).
///
/// Without the feature `engine`, and on other systems than Linux, `init` does nothing: there the
/// workers are of the installed command, or there are none.
pub fn init() {
    #[cfg(all(feature = "engine", target_os = "linux"))]
    worker::init();
}
