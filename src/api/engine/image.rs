//! The image of an engine: found, or made here, or made by the program that workers are made of.

use std::path::Path;

use isolet_pyodide_assets::lock;

use crate::data::error::Error;
use crate::data::isolation::Confinement;
use crate::image::{ImageFile, ImageLocation, Importer};
use crate::packages::{PackagePolicy, Preload};
use crate::support::patience::Patience;

/// What to do about an image that is damaged, or that others may have written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum DamagedImage {
    #[default]
    Refuse,
    Replace,
}

/// What an image is made of, and where it is stored.
pub(super) struct ImageSpec<'a> {
    pub(super) assets: &'a Path,
    /// The directory of the image without packages.
    pub(super) home: &'a Path,
    /// The directory of images with packages.
    pub(super) images: &'a Path,
    /// The packages in it, resolved, and what they were resolved from.
    pub(super) preload: &'a Preload,
    #[cfg_attr(feature = "engine", expect(dead_code, reason = "another program resolves anew"))]
    pub(super) packages: &'a PackagePolicy,
    /// How workers start, and the layers that must be in force in them.
    pub(super) confinement: &'a Confinement,
    pub(super) importer: Importer,
    pub(super) damaged: DamagedImage,
    /// Gets sentences for a person.
    #[cfg_attr(not(feature = "engine"), expect(dead_code, reason = "another program makes it"))]
    pub(super) tell: &'a dyn Fn(&str),
    /// How long the packages may take.
    pub(super) patience: Patience,
}

/// An image, or where it would be.
pub(super) type Found = Result<ImageFile, ImageLocation>;

/// Finds the image, or has it made.
pub(super) fn open(spec: &ImageSpec<'_>) -> Result<Found, Error> {
    let location = location(spec)?;
    match ImageFile::find(&location) {
        Ok(Some(image)) => Ok(Ok(image)),
        Err(error) if spec.damaged == DamagedImage::Refuse => Err(error),
        Ok(None) | Err(_) => make(spec, &location).map(Ok),
    }
}

/// Finds the image, if there is one.
pub(super) fn find(spec: &ImageSpec<'_>) -> Result<Found, Error> {
    let location = location(spec)?;
    Ok(ImageFile::find(&location)?.ok_or(location))
}

fn location(spec: &ImageSpec<'_>) -> Result<ImageLocation, Error> {
    let lock = lock().map_err(Error::of_assets)?;
    let ImageSpec { home, images, preload, importer, .. } = *spec;
    Ok(ImageLocation::new(home, images, lock, preload, importer))
}

#[cfg(feature = "engine")]
fn make(spec: &ImageSpec<'_>, location: &ImageLocation) -> Result<ImageFile, Error> {
    use super::image_worker::InWorkers;
    use crate::isolate::{Maker, OnThreads};

    let ImageSpec { preload, confinement, importer, ref patience, .. } = *spec;
    let replaces = spec.damaged == DamagedImage::Replace;
    let (in_workers, on_threads);
    let maker: Option<&dyn Maker> = if preload.is_empty() {
        None
    } else if importer == Importer::GuestWorker {
        let program = crate::worker::find_worker(confinement.worker.as_deref())?;
        in_workers = InWorkers { program, confinement, preload };
        Some(&in_workers)
    } else {
        on_threads = OnThreads::new(preload, importer == Importer::GuestThread);
        Some(&on_threads)
    };
    crate::isolate::make_image(spec.assets, location, maker, replaces, &spec.tell, patience)
}

#[cfg(not(feature = "engine"))]
fn make(spec: &ImageSpec<'_>, location: &ImageLocation) -> Result<ImageFile, Error> {
    use super::image_maker::{ImageRequest, ask};

    let program = crate::worker::find_worker(spec.confinement.worker.as_deref())?;
    let replaces = spec.damaged == DamagedImage::Replace;
    let ImageSpec { assets, home, images, packages, importer, ref patience, .. } = *spec;
    let request =
        ImageRequest::new(assets, home, images, packages, importer, replaces, patience.limit());
    ask(&program, &request, patience)?;
    ImageFile::find(location)?.ok_or_else(|| {
        let message = format!(
            "`{}` has made an image, and there is none at `{}`; is the program of version {}?",
            program.display(),
            location.path().display(),
            env!("CARGO_PKG_VERSION")
        );
        Error::new(crate::data::error::ErrorKind::Start, message)
    })
}
