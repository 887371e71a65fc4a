//! The program's part: makes the image that standard input asks for.

use std::io::{self, Read};
use std::process::ExitCode;

use isolet_pyodide_assets::Authorities;

use super::{ImageRequest, Kind, Refusal};
use crate::api::engine::Engine;
use crate::data::error::{Error, ErrorKind};
use crate::data::isolation::Isolation;
use crate::image::Importer;
use crate::packages::{Bundle, PackagePolicy};
use crate::support::patience::GivenUp;

/// Bytes of the longest request.
const MAX_REQUEST_BYTES: u64 = 64 << 20;

impl Kind {
    fn of(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Config => Self::Config,
            ErrorKind::Assets => Self::Assets,
            ErrorKind::Packages => Self::Packages,
            ErrorKind::Limit => Self::Limit,
            _ => Self::Start,
        }
    }
}

/// Makes the image that standard input asks for. Prints why it could not.
pub(crate) fn answer() -> ExitCode {
    let Err(error) = read_and_make() else { return ExitCode::SUCCESS };
    let refusal = Refusal {
        kind: Kind::of(error.kind()),
        message: error.to_string(),
        hint: error.hint().map(str::to_owned),
    };
    // A host that is gone needs no answer.
    let _ = serde_json::to_writer(io::stdout(), &refusal);
    ExitCode::FAILURE
}

/// Has everything else use the processors first.
fn wait_for_others() {
    /// The lowest priority.
    #[cfg(unix)]
    const NICENESS: i32 = 19;
    // Otherwise it competes with others.
    #[cfg(unix)]
    let _ = rustix::process::nice(NICENESS);
}

fn read_and_make() -> Result<(), Error> {
    let stdin = io::stdin().take(MAX_REQUEST_BYTES);
    let request: ImageRequest = serde_json::from_reader(stdin).map_err(|error| {
        Error::new(ErrorKind::Config, format!("this is no request: {error}")).with_source(error)
    })?;
    let (theirs, ours) = (&request.version, env!("CARGO_PKG_VERSION"));
    if theirs != ours {
        let message = format!("isolet {theirs} asks for an image, and this program has {ours}");
        return Err(Error::new(ErrorKind::Start, message));
    }
    if request.is_background {
        wait_for_others();
    }
    let mut authorities = Authorities::default();
    if !request.authorities.is_empty() {
        let added = authorities.add_pem(request.authorities.as_bytes());
        added.map_err(|reason| {
            Error::new(ErrorKind::Config, format!("the certificate authorities: {reason}"))
        })?;
    }
    let mut packages = PackagePolicy {
        allowed: Vec::new(),
        modules: Vec::new(),
        wheels: request.wheels,
        bundle: request.bundle.map(Bundle::open).transpose()?,
        forbids_bundle: false,
        cache: request.cache,
        offline: request.offline,
        pyodide_packages: request.pyodide_packages,
        authorities,
        on_download: None,
        given_up: GivenUp::default(),
    };
    for requirement in &request.preload {
        packages.preload(requirement)?;
    }
    let builder = Engine::builder()
        .assets(request.assets)
        .images(request.images)
        .max_import_time(request.import_time);
    let mut builder = builder.image_home(request.home);
    builder = match request.importer {
        Importer::Owner => builder,
        Importer::GuestThread => builder.confine_preloaded().isolation(Isolation::Thread),
        Importer::GuestWorker => builder.confine_preloaded().isolation(Isolation::Process),
    };
    if request.replaces_damaged {
        builder = builder.replace_damaged_image();
    }
    builder.packages(packages).build().map(drop)
}
