//! The host's part: asks a program for an image, and waits for it.

use std::fmt::Display;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::{IMAGE_MAKER, ImageRequest, Kind, Refusal};
use crate::data::error::{Error, ErrorKind};
use crate::support::patience::Patience;

impl Kind {
    fn kind(self) -> ErrorKind {
        match self {
            Self::Config => ErrorKind::Config,
            Self::Assets => ErrorKind::Assets,
            Self::Packages => ErrorKind::Packages,
            Self::Start => ErrorKind::Start,
            Self::Limit => ErrorKind::Limit,
        }
    }
}

/// The most bytes of the program's answer. Packages that it imports could write there, too.
const MAX_SAID_BYTES: u64 = 1 << 20;

/// Has `program` make an image, and waits for it.
pub(crate) fn ask(
    program: &Path,
    request: &ImageRequest,
    patience: &Patience,
) -> Result<(), Error> {
    let failed = |what: &dyn Display| {
        let shown = program.display();
        Error::new(ErrorKind::Start, format!("the program `{shown}` made no image: {what}"))
            .with_hint(concat!("workers need the command `isolet` ", env!("CARGO_PKG_VERSION")))
    };
    let output =
        run(program, request, patience).map_err(|error| failed(&error).with_source(error))?;
    if output.status.success() {
        return Ok(());
    }
    if patience.is_given_up() {
        return Err(patience.error());
    }
    match serde_json::from_slice::<Refusal>(&output.stdout) {
        Ok(Refusal { kind, message, hint }) => {
            let error = Error::new(kind.kind(), message);
            Err(match hint {
                Some(hint) => error.with_hint(hint),
                None => error,
            })
        }
        Err(_) => Err(failed(&format_args!("it ended with {}", output.status))),
    }
}

/// Reads what a program says, up to [`MAX_SAID_BYTES`].
fn beginning(said: impl Read) -> Vec<u8> {
    let mut read = Vec::new();
    // What was said until it fails may be enough.
    let _ = said.take(MAX_SAID_BYTES).read_to_end(&mut read);
    read
}

fn run(program: &Path, request: &ImageRequest, patience: &Patience) -> io::Result<Output> {
    let mut command = Command::new(program);
    command.arg(IMAGE_MAKER);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    if let Some(stdin) = child.stdin.take() {
        // A program that reads no request says why by its status.
        let _ = serde_json::to_writer(stdin, request);
    }
    let said = child.stdout.take();
    let reader = std::thread::spawn(move || said.map(beginning).unwrap_or_default());
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if patience.is_given_up() {
            // It may have ended by itself at this moment.
            let _ = child.kill();
        }
        std::thread::sleep(Patience::STEP);
    };
    let stdout = reader.join().unwrap_or_default();
    Ok(Output { status, stdout, stderr: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_says_no_end_of_it_is_heard_for_a_while() {
        assert_eq!(beginning(io::repeat(b' ')).len() as u64, MAX_SAID_BYTES);
        assert_eq!(beginning(&b"{}"[..]), b"{}");
    }
}
