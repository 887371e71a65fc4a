//! Has a program make an image for which nobody waits.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{IMAGE_MAKER, ImageRequest};
use crate::data::error::{Error, ErrorKind};

/// Has `program` make an image in the background, and waits for nothing. It goes on if this process
/// ends.
pub(crate) fn begin(program: &Path, request: &ImageRequest) -> Result<(), Error> {
    let failed = |error: io::Error| {
        let message = format!("the program `{}` makes no image: {error}", program.display());
        Error::new(ErrorKind::Start, message).with_source(error)
    };
    let mut command = Command::new(program);
    command.arg(IMAGE_MAKER);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    // What interrupts this process from its terminal does not interrupt the other.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.spawn().map_err(failed)?;
    if let Some(stdin) = child.stdin.take() {
        serde_json::to_writer(stdin, request).map_err(|error| failed(error.into()))?;
    }
    let wait = move || {
        // Whether there is an image is seen when one is looked for.
        let _ = child.wait();
    };
    let waiting = std::thread::Builder::new().name("isolet-images".to_owned()).spawn(wait);
    waiting.map(drop).map_err(failed)
}
