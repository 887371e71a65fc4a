//! The source of a process's isolates: the memory image, loaded or built, and the code compiled
//! from it.

use std::path::Path;
use std::sync::Arc;

use isolet_pyodide_assets::{Assets, lock};
use tokio::sync::mpsc;

use super::Files;
use super::image::{Image, Place};
use super::inbox::queue;
use super::native_code::SharedModules;
use super::runtime::Parts;
use super::thread;
use crate::data::error::{Error, ErrorKind};
use crate::packages::Preload;
use crate::protocol::{Host, Link};
use crate::support::shared_file::SharedFile;

/// An image, and the modules compiled from it in this process.
pub(crate) struct Source {
    image: Image,
    modules: SharedModules,
}

impl Source {
    /// Opens the image of the assets in `dir` with these packages. Builds it if there is none, or
    /// if `replace_damaged` is set and the existing one cannot be used.
    pub(crate) fn open(
        dir: &Path,
        preload: &Preload,
        replace_damaged: bool,
    ) -> Result<Self, Error> {
        let wrong =
            |error: isolet_pyodide_assets::Error| Error::new(ErrorKind::Assets, error.to_string());
        let place = Place::new(dir, lock().map_err(wrong)?, preload);
        let modules = SharedModules::default();
        let image = match Image::find(&place) {
            Ok(Some(image)) => image,
            Err(error) if !replace_damaged => return Err(error),
            Ok(None) | Err(_) => {
                // If several processes start at once, one makes the image and the others find it.
                let _turn = place.turn();
                match Image::find(&place) {
                    Ok(Some(image)) => image,
                    Err(error) if !replace_damaged => return Err(error),
                    Ok(None) | Err(_) => {
                        let assets = Assets::open(dir).map_err(wrong)?;
                        Image::build(&place, &Files::new(&assets)?, &modules, preload)?
                    }
                }
            }
        };
        Ok(Self { image, modules })
    }

    /// Returns the path of the stored image; `None` if it could not be stored.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.image.path()
    }

    /// Returns the image in the form that is passed to other processes.
    pub(crate) fn shared_file(&self) -> Result<&SharedFile, Error> {
        let none = || Error::new(ErrorKind::Start, "the interpreter cannot be shared");
        self.image.shared().ok_or_else(none)
    }

    /// Starts an isolate on a separate thread.
    pub(crate) fn spawn(
        &self,
        host: Arc<dyn Host>,
        max_memory_bytes: u64,
        max_report_bytes: u64,
    ) -> Result<Link, Error> {
        let (files, modules) = (self.image.files(), Arc::clone(&self.modules));
        let (messages, inbox) = queue();
        let preload = Vec::new();
        let parts =
            Parts { files, modules, host, inbox, max_memory_bytes, max_report_bytes, preload };
        let (sink, replies) = mpsc::unbounded_channel();
        let sink = Box::new(move |reply| sink.send(reply).is_ok());
        let control = thread::spawn(parts, self.image.clone(), sink)?;
        // If the isolate is gone, its replies report it.
        let messages = Arc::new(move |message| messages.send(message));
        Ok(Link { messages, replies, control, source: None })
    }
}
