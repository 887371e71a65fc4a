//! The templates of an engine: one for each configuration of workers that is used more than once.

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
pub(crate) struct Templates(Arc<Mutex<HashMap<WorkerConfig, TemplateState>>>);

/// The configuration that the workers of a template share.
#[derive(Clone, PartialEq, Eq, Hash)]
struct WorkerConfig {
    program: PathBuf,
    max_report_bytes: u64,
    memory_bytes: u64,
    spins: bool,
    niceness: u8,
    forkable: bool,
}

enum TemplateState {
    /// One worker with this configuration was started.
    SeenOnce,
    /// Sends once the template is ready or could not start.
    Starting(watch::Receiver<bool>),
    Ready(Arc<Template>),
    /// The template could not start. Workers start without one.
    Failed,
}

impl Templates {
    /// Returns the template for such a worker. The second call that finds none starts one.
    pub(super) fn find(&self, program: &Path, fresh: &Fresh<'_>) -> Option<Arc<Template>> {
        let config = WorkerConfig::new(program, fresh);
        let mut templates = lock(&self.0);
        match templates.get(&config) {
            Some(TemplateState::Ready(template)) if !template.is_gone() => {
                return Some(Arc::clone(template));
            }
            Some(TemplateState::Starting(_) | TemplateState::Failed) => {}
            None => drop(templates.insert(config, TemplateState::SeenOnce)),
            Some(TemplateState::SeenOnce | TemplateState::Ready(_)) => {
                // Without a template, workers start as the first one did.
                let state = self
                    .start(config.clone(), fresh)
                    .map_or(TemplateState::Failed, TemplateState::Starting);
                templates.insert(config, state);
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
        let config = WorkerConfig::new(program, fresh);
        let mut is_first = true;
        loop {
            let mut starting = {
                let mut templates = lock(&self.0);
                match templates.get(&config) {
                    Some(TemplateState::Ready(template)) if !template.is_gone() => {
                        return Ok(Arc::clone(template));
                    }
                    Some(TemplateState::Starting(starting)) => starting.clone(),
                    _ if is_first => {
                        let starting = self.start(config.clone(), fresh)?;
                        templates.insert(config.clone(), TemplateState::Starting(starting.clone()));
                        starting
                    }
                    _ => return Err(io::Error::other("its template did not become ready")),
                }
            };
            is_first = false;
            // Fails if the template could not start, which the state says.
            let _ = starting.changed().await;
        }
    }

    /// Starts a template in the background.
    fn start(&self, config: WorkerConfig, fresh: &Fresh<'_>) -> io::Result<watch::Receiver<bool>> {
        let templates = Arc::downgrade(&self.0);
        let template = start_template(&config.program, fresh)?;
        let (started, starting) = watch::channel(false);
        thread("isolet-template", move || {
            let state = match template.wait() {
                Ok(template) => TemplateState::Ready(Arc::new(template)),
                Err(_) => TemplateState::Failed,
            };
            // If the engine is gone, nobody needs the template.
            if let Some(templates) = templates.upgrade() {
                lock(&templates).insert(config, state);
            }
            started.send_replace(true);
        })?;
        Ok(starting)
    }
}

impl WorkerConfig {
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
