//! Makes a program usable as the worker of its own sessions.

use std::ffi::OsString;
use std::io;

use rustix::fs::{FileType, fstat};

use super::child::serve;
use super::parent::this_program_can_be_a_worker;
use super::wire::WORKER;

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
///     let mut session = isolet::blocking::Session::new(&sandbox)?;
///     println!("{}", session.run("print(40 + 2)")?.stdout());
///     Ok(())
/// }
/// ```
///
/// Some programs cannot call `init` first, such as tests run by `cargo test` or extension modules.
/// They use an installed `isolet` command of the same version, found in the program's directory or
/// on the `PATH`, or set with [`Engine::with_worker`](crate::Engine::with_worker).
///
/// Only Linux has process isolation. On other systems `init` does nothing.
pub fn init() {
    if let Some(parent) = worker_of(std::env::args_os()) {
        let status = i32::from(serve(parent).is_err());
        #[expect(clippy::exit, reason = "a worker is nothing but a worker")]
        std::process::exit(status);
    }
    this_program_can_be_a_worker();
}

/// Returns the number of the parent process if this process was started as a worker.
fn worker_of(arguments: impl IntoIterator<Item = OsString>) -> Option<u32> {
    let mut arguments = arguments.into_iter().skip(1);
    if arguments.next()? != WORKER {
        return None;
    }
    let parent = arguments.next()?.to_str()?.parse().ok()?;
    // If a person types these arguments, the standard input is not a socket.
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
            // The standard input of a test is not a socket.
            &["program", WORKER, "1"],
        ] {
            assert_eq!(worker_of(arguments.iter().map(OsString::from)), None, "{arguments:?}");
        }
    }
}
