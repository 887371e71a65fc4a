//! The templates of an engine: one for each kind of worker that is wanted more than once.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::launch::{Fresh, start_template};
use super::link::thread;
use super::template::Template;
use crate::support::lock::lock;

/// Templates by the workers that they make. A program that wants one worker gets one, and no
/// template.
#[derive(Default)]
pub(crate) struct Templates(Arc<Mutex<HashMap<Kind, Slot>>>);

/// What the workers of a template have in common.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Kind {
    program: PathBuf,
    max_report_bytes: u64,
    memory_bytes: u64,
}

enum Slot {
    /// One such worker was started.
    Wanted,
    Starting,
    Ready(Arc<Template>),
    /// It could not be. Workers are started without.
    Failed,
}

impl Templates {
    /// The template for such a worker. The second time that there is none, one is started.
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
            // Without an engine nobody wants it any more.
            if let Some(slots) = slots.upgrade() {
                lock(&slots).insert(kind, slot);
            }
        })
    }
}
