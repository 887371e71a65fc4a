//! Has the program that workers are made of make an image, for a host without the engine: what the
//! host asks for, and how the program answers.

#[cfg(feature = "engine")]
mod answer;
#[cfg(not(feature = "engine"))]
mod ask;

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::image::Importer;

#[cfg(feature = "engine")]
pub(crate) use self::answer::answer;
#[cfg(not(feature = "engine"))]
pub(crate) use self::ask::ask;

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
    cache: Option<PathBuf>,
    offline: bool,
    pyodide_packages: Option<String>,
    importer: Importer,
    /// Certificate authorities, in PEM form.
    authorities: String,
    replaces_damaged: bool,
    /// How long the packages may take.
    import_time: Duration,
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
