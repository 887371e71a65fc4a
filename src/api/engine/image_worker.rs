//! Makes images with packages in workers, which are locked down before they import anything: what
//! the packages do reaches no further than what a guest does.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use isolet_pyodide_assets::Digest;

use crate::data::error::{Error, ErrorKind};
use crate::data::isolation::Confinement;
use crate::isolate::{Compiled, IMAGE_MEMORY_BYTES, Image, ImageHost, Maker, SavedMemory, Unmade};
use crate::packages::Preload;
use crate::protocol::{Host, Reply};
use crate::support::block_on::block_on;
use crate::support::patience::Patience;
use crate::support::watchdog;
use crate::worker::{Launch, Launched, Purpose, launch};

/// The maximum length of the report of a command that warms a worker up, in bytes.
const MAX_REPORT_BYTES: u64 = 1 << 20;

/// Makes images with packages in workers.
pub(super) struct InWorkers<'a> {
    /// The program that they are made of.
    pub(super) program: PathBuf,
    /// How they start, and the layers that must be in force.
    pub(super) confinement: &'a Confinement,
    pub(super) preload: &'a Preload,
}

impl InWorkers<'_> {
    /// Runs one step of the image build in a worker.
    fn make(
        &self,
        purpose: Purpose,
        image: &Image,
        host: &Arc<ImageHost>,
        patience: &Patience,
    ) -> Result<Vec<u8>, Unmade> {
        let unshared = || Error::new(ErrorKind::Start, "this system cannot share the image");
        let launched = launch(Launch {
            purpose,
            program: &self.program,
            image: image.shared().ok_or_else(unshared).map_err(Unmade::Untried)?,
            host: Arc::clone(host) as Arc<dyn Host>,
            max_report_bytes: MAX_REPORT_BYTES,
            memory_bytes: IMAGE_MEMORY_BYTES,
            spins: true,
            niceness: self.confinement.worker_niceness,
            required: &self.confinement.required,
            templates: None,
            max_copies: None,
            event_loop: None,
        });
        let failed = |reason: String| {
            let message = format!("the memory image cannot be made: {reason}");
            Unmade::Failed(Error::new(ErrorKind::Start, message))
        };
        let Launched { mut link, .. } = block_on(launched).map_err(Unmade::Untried)?;
        let control = Arc::clone(&link.control);
        let waits = patience.clone();
        let look = move || {
            if waits.is_over() {
                control.terminate();
                return None;
            }
            Some(Instant::now() + Patience::STEP)
        };
        let armed = watchdog::arm(Instant::now() + Patience::STEP, Box::new(look));
        let armed = armed.map_err(|error| failed(error.to_string()))?;
        let reply = block_on(link.replies.recv());
        drop(armed);
        link.control.terminate();
        match reply {
            Some(Reply::Done { .. }) => host.take().map_err(failed),
            _ if patience.is_over() => Err(Unmade::Late(patience.error())),
            Some(Reply::Failed(reason)) => Err(failed(reason)),
            reply => Err(failed(format!("the worker ended with {reply:?}"))),
        }
    }
}

impl Maker for InWorkers<'_> {
    fn memory(&self, base: &Image, patience: &Patience) -> Result<SavedMemory, Unmade> {
        let purpose = Purpose::Import(self.preload.modules().to_vec());
        let host = Arc::new(ImageHost::new(self.preload));
        let made = self.make(purpose, base, &host, patience)?;
        host.require_silence()?;
        let tree = self.preload.tree();
        let is_known = |wasm: &[u8]| tree.contains_module(Digest::of(wasm).as_bytes());
        SavedMemory::received(made, is_known).map_err(|reason| refused(&reason))
    }

    fn libraries(&self, draft: Image, patience: &Patience) -> Result<Vec<Vec<u8>>, Unmade> {
        let host = Arc::new(ImageHost::without_packages());
        let made = self.make(Purpose::Compile, &draft, &host, patience)?;
        Compiled::decode_libraries(made).map_err(|reason| refused(&reason))
    }
}

fn refused(reason: &str) -> Unmade {
    let message = format!("what a worker made for the memory image is refused: {reason}");
    Unmade::Failed(Error::new(ErrorKind::Start, message))
}
