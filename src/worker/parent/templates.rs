//! The templates of an engine: one for each kind of worker that is needed more than once.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::launch::{Fresh, start_template};
use super::link::thread;
use super::template::Template;
use crate::support::lock::lock;

/// Templates, keyed by worker configuration. The first workers of a configuration start without
/// one.
#[derive(Default)]
pub(crate) struct Templates(Arc<Mutex<HashMap<Kind, Slot>>>);

/// The configuration that the workers of a template share.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Kind {
    program: PathBuf,
    max_report_bytes: u64,
    memory_bytes: u64,
}

enum Slot {
    /// One worker of this kind was started.
    Wanted,
    Starting,
    Ready(Arc<Template>),
    /// The template could not start. Workers start without one.
    Failed,
}

impl Templates {
    /// Returns the template for such a worker. The second call that finds none starts one.
    pub(super) fn find(&self, program: &Path, fresh: &Fresh<'_>) -> Option<Arc<Template>> {
        let program = program.to_owned();
        let (max_report_bytes, memory_bytes) = (fresh.max_report_bytes, fresh.memory_bytes);
        let kind = Kind { program, max_report_bytes, memory_bytes };
        let mut slots = lock(&self.0);
        match slots.get(&kind) {
            Some(Slot::Ready(template)) if !template.is_gone() => {
                return Some(Arc::clone(template));
            }
            Some(Slot::Starting | Slot::Failed) => {}
            None => drop(slots.insert(kind, Slot::Wanted)),
            Some(Slot::Wanted | Slot::Ready(_)) => {
                slots.insert(kind.clone(), Slot::Starting);
                let started = self.start(kind.clone(), fresh);
                if started.is_err() {
                    slots.insert(kind, Slot::Failed);
                }
            }
        }
        None
    }

    /// Starts a template in the background.
    fn start(&self, kind: Kind, fresh: &Fresh<'_>) -> std::io::Result<()> {
        let slots = Arc::downgrade(&self.0);
        let template = start_template(&kind.program, fresh)?;
        thread("isolet-template", move || {
            let slot = match template.wait() {
                Ok(template) => Slot::Ready(Arc::new(template)),
                Err(_) => Slot::Failed,
            };
            // If the engine is gone, nobody needs the template.
            if let Some(slots) = slots.upgrade() {
                lock(&slots).insert(kind, slot);
            }
        })
    }
}
