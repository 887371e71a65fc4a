//! Has the program that workers are made of make an image, for a host without the engine: what the
//! host asks for, and how the program answers.

#[cfg(all(feature = "engine", target_os = "linux"))]
mod answer;
#[cfg(not(feature = "engine"))]
mod ask;
mod background;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::image::Importer;
use crate::packages::PackagePolicy;

#[cfg(all(feature = "engine", target_os = "linux"))]
pub(crate) use self::answer::answer;
#[cfg(not(feature = "engine"))]
pub(crate) use self::ask::ask;
pub(crate) use self::background::begin;

/// The one argument of a program that is to make an image. The request is its standard input.
pub(crate) const IMAGE_MAKER: &str = "isolet-image-maker-of-this-version";

/// An image to make.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ImageRequest {
    /// The version that asks.
    version: String,
    assets: PathBuf,
    /// The directory of the image without packages.
    home: PathBuf,
    images: PathBuf,
    /// Requirements of the packages that are imported in it.
    preload: Vec<String>,
    wheels: Vec<PathBuf>,
    bundle: Option<PathBuf>,
    cache: Option<PathBuf>,
    offline: bool,
    pyodide_packages: Option<String>,
    importer: Importer,
    /// Certificate authorities, in PEM form.
    authorities: String,
    replaces_damaged: bool,
    /// How long the packages may take.
    import_time: Duration,
    /// Set if nobody waits for it: everything else goes first.
    is_background: bool,
}

impl ImageRequest {
    pub(crate) fn new(
        assets: &Path,
        home: &Path,
        images: &Path,
        packages: &PackagePolicy,
        importer: Importer,
        replaces_damaged: bool,
        import_time: Duration,
    ) -> Self {
        let PackagePolicy {
            allowed,
            modules,
            wheels,
            bundle,
            forbids_bundle: _,
            cache,
            offline,
            pyodide_packages,
            authorities,
            on_download: _,
            given_up: _,
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
            bundle: bundle.map(|bundle| absolute(bundle.directory())),
            cache: cache.as_deref().map(absolute),
            offline,
            pyodide_packages,
            importer,
            authorities: authorities.pem().to_owned(),
            replaces_damaged,
            import_time,
            is_background: false,
        }
    }

    /// The same image, for which nobody waits.
    pub(crate) fn in_background(self) -> Self {
        Self { is_background: true, ..self }
    }
}

/// Why an image was not made.
#[derive(Debug, Serialize, Deserialize)]
struct Refusal {
    kind: Kind,
    message: String,
    hint: Option<String>,
}

/// The kinds of errors that making an image has.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Kind {
    Config,
    Assets,
    Packages,
    Start,
    Limit,
}
