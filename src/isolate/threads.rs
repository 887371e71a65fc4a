//! Starts isolates on threads of this process, which share the modules that are compiled here.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::image::Image;
use super::inbox::queue;
use super::native_code::SharedModules;
use super::runtime::Parts;
use super::thread;
use crate::data::error::Error;
use crate::image::ImageFile;
use crate::protocol::{Host, Link};

/// An image, and the modules that were compiled of it in this process.
pub(crate) struct Threads {
    image: Image,
    modules: SharedModules,
}

impl Threads {
    /// Takes a verified image.
    pub(crate) fn new(image: Arc<ImageFile>) -> Result<Self, Error> {
        Ok(Self { image: Image::new(image)?, modules: SharedModules::default() })
    }

    /// Starts an isolate on a thread of its own.
    pub(crate) fn spawn(
        &self,
        host: Arc<dyn Host>,
        max_memory_bytes: u64,
        max_report_bytes: u64,
        spins: bool,
    ) -> Result<Link, Error> {
        let (files, modules) = (self.image.files(), Arc::clone(&self.modules));
        let (messages, inbox) = queue();
        let parts = Parts {
            files,
            modules,
            host,
            inbox,
            max_memory_bytes,
            max_report_bytes,
            spins,
            preload: Vec::new(),
            confine: None,
            pages_aside: None,
        };
        let (sink, replies) = mpsc::unbounded_channel();
        let sink = Box::new(move |reply| sink.send(reply).is_ok());
        let control = thread::spawn(parts, self.image.clone(), sink)?;
        // An isolate that is gone says so by its replies.
        let messages = Arc::new(move |message| messages.send(message));
        Ok(Link { messages, replies, control, source: None, forker: None })
    }
}
