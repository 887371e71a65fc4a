//! The templates of an engine: one for each kind of worker that is needed more than once.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use tokio::sync::watch;

use super::launch::{Fresh, start_template};
use super::link::thread;
use super::template::Template;
use crate::support::lock::lock;

/// Templates, keyed by worker configuration. The first workers of a configuration start without
/// one, unless they are forkable.
#[derive(Default)]
pub(crate) struct Templates(Arc<Mutex<HashMap<Kind, Slot>>>);

/// The configuration that the workers of a template share.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Kind {
    program: PathBuf,
    max_report_bytes: u64,
    memory_bytes: u64,
    spins: bool,
    niceness: u8,
    forkable: bool,
}

enum Slot {
    /// One worker of this kind was started.
    Wanted,
    /// Sends once the template is ready or could not start.
    Starting(watch::Receiver<bool>),
    Ready(Arc<Template>),
    /// The template could not start. Workers start without one.
    Failed,
}

impl Templates {
    /// Returns the template for such a worker. The second call that finds none starts one.
    pub(super) fn find(&self, program: &Path, fresh: &Fresh<'_>) -> Option<Arc<Template>> {
        let kind = Kind::new(program, fresh);
        let mut slots = lock(&self.0);
        match slots.get(&kind) {
            Some(Slot::Ready(template)) if !template.is_gone() => {
                return Some(Arc::clone(template));
            }
            Some(Slot::Starting(_) | Slot::Failed) => {}
            None => drop(slots.insert(kind, Slot::Wanted)),
            Some(Slot::Wanted | Slot::Ready(_)) => {
                // Without a template, workers start as the first one did.
                let slot = self.start(kind.clone(), fresh).map_or(Slot::Failed, Slot::Starting);
                slots.insert(kind, slot);
            }
        }
        None
    }

    /// Returns the template for such a worker, which it starts if there is none.
    pub(super) async fn obtain(
        &self,
        program: &Path,
        fresh: &Fresh<'_>,
    ) -> io::Result<Arc<Template>> {
        let kind = Kind::new(program, fresh);
        let mut is_first = true;
        loop {
            let mut starting = {
                let mut slots = lock(&self.0);
                match slots.get(&kind) {
                    Some(Slot::Ready(template)) if !template.is_gone() => {
                        return Ok(Arc::clone(template));
                    }
                    Some(Slot::Starting(starting)) => starting.clone(),
                    _ if is_first => {
                        let starting = self.start(kind.clone(), fresh)?;
                        slots.insert(kind.clone(), Slot::Starting(starting.clone()));
                        starting
                    }
                    _ => return Err(io::Error::other("its template did not become ready")),
                }
            };
            is_first = false;
            // Fails if the template could not start, which the slot says.
            let _ = starting.changed().await;
        }
    }

    /// Starts a template in the background.
    fn start(&self, kind: Kind, fresh: &Fresh<'_>) -> io::Result<watch::Receiver<bool>> {
        let slots = Arc::downgrade(&self.0);
        let template = start_template(&kind.program, fresh)?;
        let (started, starting) = watch::channel(false);
        thread("isolet-template", move || {
            let slot = match template.wait() {
                Ok(template) => Slot::Ready(Arc::new(template)),
                Err(_) => Slot::Failed,
            };
            // If the engine is gone, nobody needs the template.
            if let Some(slots) = slots.upgrade() {
                lock(&slots).insert(kind, slot);
            }
            started.send_replace(true);
        })?;
        Ok(starting)
    }
}

impl Kind {
    fn new(program: &Path, fresh: &Fresh<'_>) -> Self {
        Self {
            program: program.to_owned(),
            max_report_bytes: fresh.max_report_bytes,
            memory_bytes: fresh.memory_bytes,
            spins: fresh.spins,
            niceness: fresh.niceness,
            forkable: fresh.forkable,
        }
    }
}
