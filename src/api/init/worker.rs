//! Makes a process a worker, or the maker of an image, if it was started as one.

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use rustix::fs::{FileType, fstat};

use crate::api::engine::image_maker::{self, IMAGE_MAKER};
use crate::worker::{FORKABLE, WORKER, serve, this_program_can_be_a_worker};

/// What a process was started for.
#[derive(Debug, PartialEq, Eq)]
enum Started {
    Worker { parent: u32, forkable: bool },
    ImageMaker,
}

pub(super) fn init() {
    let status = match started_as(std::env::args_os()) {
        Some(Started::Worker { parent, forkable }) => i32::from(serve(parent, forkable).is_err()),
        Some(Started::ImageMaker) => i32::from(image_maker::answer() != ExitCode::SUCCESS),
        None => return this_program_can_be_a_worker(),
    };
    #[expect(clippy::exit, reason = "such a process is nothing else")]
    std::process::exit(status);
}

/// Returns what this process was started for, if isolet started it.
fn started_as(arguments: impl IntoIterator<Item = OsString>) -> Option<Started> {
    let mut arguments = arguments.into_iter().skip(1);
    let first = arguments.next()?;
    // A person who types this has neither a socket nor a pipe for a standard input.
    let stdin = fstat(io::stdin()).ok().map(|stat| FileType::from_raw_mode(stat.st_mode));
    let started = if first == WORKER && stdin == Some(FileType::Socket) {
        let parent = arguments.next()?.to_str()?.parse().ok()?;
        match arguments.next() {
            None => return Some(Started::Worker { parent, forkable: false }),
            Some(last) if last == FORKABLE => Started::Worker { parent, forkable: true },
            Some(_) => return None,
        }
    } else if first == IMAGE_MAKER && stdin == Some(FileType::Fifo) {
        Started::ImageMaker
    } else {
        return None;
    };
    arguments.next().is_none().then_some(started)
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
            &["program", WORKER, "1", FORKABLE, "2"],
            &["program", IMAGE_MAKER, "1"],
            // The standard input of a test is no socket.
            &["program", WORKER, "1"],
        ] {
            assert_eq!(started_as(arguments.iter().map(OsString::from)), None, "{arguments:?}");
        }
    }
}
