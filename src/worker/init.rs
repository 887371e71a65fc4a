//! Lets a program be the worker of its own sessions.

use std::ffi::OsString;
use std::io;

use rustix::fs::{FileType, fstat};

use super::child::serve;
use super::parent::this_program_can_be_a_worker;
use super::wire::WORKER;

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
/// in `PATH`, or names one by [`Engine::with_worker`](crate::Engine::with_worker).
///
/// Only Linux has process isolation; elsewhere `init` does nothing.
pub fn init() {
    if let Some(parent) = worker_of(std::env::args_os()) {
        let status = i32::from(serve(parent).is_err());
        #[expect(clippy::exit, reason = "a worker is nothing but a worker")]
        std::process::exit(status);
    }
    this_program_can_be_a_worker();
}

/// Returns the number of the parent's process if this one was started as a worker.
fn worker_of(arguments: impl IntoIterator<Item = OsString>) -> Option<u32> {
    let mut arguments = arguments.into_iter().skip(1);
    if arguments.next()? != WORKER {
        return None;
    }
    let parent = arguments.next()?.to_str()?.parse().ok()?;
    // A person who types this has no socket for a standard input.
    let is_socket = fstat(io::stdin())
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Socket);
    (is_socket && arguments.next().is_none()).then_some(parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_of_others_make_no_worker() {
        for arguments in [
            &["program"][..],
            &["program", "worker", "1"],
            &["program", WORKER],
            &["program", WORKER, "x"],
            &["program", WORKER, "1", "2"],
            // The standard input of a test is no socket.
            &["program", WORKER, "1"],
        ] {
            assert_eq!(worker_of(arguments.iter().map(OsString::from)), None, "{arguments:?}");
        }
    }
}
