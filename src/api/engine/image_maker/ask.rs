//! The host's part: asks a program for an image, and waits for it.

use std::fmt::Display;
use std::io;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::{IMAGE_MAKER, ImageRequest, Kind, Refusal};
use crate::data::error::{Error, ErrorKind};
use crate::image::Importer;
use crate::packages::PackagePolicy;

impl Kind {
    fn kind(self) -> ErrorKind {
        match self {
            Self::Config => ErrorKind::Config,
            Self::Assets => ErrorKind::Assets,
            Self::Packages => ErrorKind::Packages,
            Self::Start => ErrorKind::Start,
        }
    }
}

impl ImageRequest {
    pub(crate) fn new(
        assets: &Path,
        home: &Path,
        images: &Path,
        packages: &PackagePolicy,
        importer: Importer,
        replaces_damaged: bool,
    ) -> Self {
        let PackagePolicy {
            allowed,
            modules,
            wheels,
            cache,
            offline,
            pyodide_packages,
            authorities,
            on_download: _,
        } = packages.clone();
        // The program may run in another directory.
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            assets: absolute(assets),
            home: absolute(home),
            images: absolute(images),
            preload: allowed.iter().map(ToString::to_string).chain(modules).collect(),
            wheels: wheels.iter().map(|dir| absolute(dir)).collect(),
            cache: cache.as_deref().map(absolute),
            offline,
            pyodide_packages,
            importer,
            authorities: authorities.pem().to_owned(),
            replaces_damaged,
        }
    }
}

/// Has `program` make an image, and waits for it.
pub(crate) fn ask(program: &Path, request: &ImageRequest) -> Result<(), Error> {
    let failed = |what: &dyn Display| {
        let shown = program.display();
        Error::new(ErrorKind::Start, format!("the program `{shown}` made no image: {what}"))
            .with_hint(concat!("workers need the command `isolet` ", env!("CARGO_PKG_VERSION")))
    };
    let output = run(program, request).map_err(|error| failed(&error).with_source(error))?;
    if output.status.success() {
        return Ok(());
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

fn run(program: &Path, request: &ImageRequest) -> io::Result<Output> {
    let mut command = Command::new(program);
    command.arg(IMAGE_MAKER);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    if let Some(stdin) = child.stdin.take() {
        // A program that reads no request says why by its status.
        let _ = serde_json::to_writer(stdin, request);
    }
    child.wait_with_output()
}
