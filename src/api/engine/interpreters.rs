//! Boots interpreters, on a thread of this process or in a worker, at most one per processor at a
//! time.

use std::num::NonZero;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use super::ready::{BootedInterpreter, DeferredHost, InterpreterKind};
use crate::data::error::{Error, ErrorKind};
use crate::data::isolation::{Isolation, IsolationReport, WorkerStart};
use crate::image::ImageFile;
use crate::isolate::Threads;
use crate::protocol::Reply;
use crate::support::obstacles;
use crate::worker::{Launch, Launched, Purpose, Templates, find_worker, launch};

/// Everything that an engine boots interpreters from.
pub(super) struct Interpreters {
    pub(super) image: Arc<ImageFile>,
    /// Set if workers made the image, so that nothing of it is used outside of workers.
    is_confined: bool,
    threads: Threads,
    /// Limits concurrent boots to the number of processors; more would only slow each other down.
    boots: Semaphore,
    /// The processes that workers are copied from.
    templates: Templates,
    /// Reads what workers send, as far as it can. Otherwise threads do.
    event_loop: Option<Handle>,
}

impl Interpreters {
    pub(super) fn new(
        image: ImageFile,
        is_confined: bool,
        event_loop: Option<Handle>,
    ) -> Result<Self, Error> {
        let image = Arc::new(image);
        let threads = Threads::new(Arc::clone(&image))?;
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        let boots = Semaphore::new(processors);
        let templates = Templates::default();
        Ok(Self { image, is_confined, threads, boots, templates, event_loop })
    }

    /// Boots an interpreter of this kind, once fewer boots than processors are under way.
    pub(super) async fn boot(
        self: Arc<Self>,
        kind: InterpreterKind,
    ) -> Result<BootedInterpreter, Error> {
        // The semaphore is never closed.
        let _turn = self.boots.acquire().await;
        let host = Arc::new(DeferredHost::default());
        let InterpreterKind { confinement, memory_bytes, max_report_bytes, max_copies } = kind;
        match confinement.isolation {
            Isolation::Thread if self.is_confined => {
                let message = "the engine's packages are confined to workers, and the session is \
                               to run on a thread";
                Err(Error::new(ErrorKind::Config, message).with_hint(
                    "set `EngineBuilder::isolation` to `Isolation::Thread`, or leave out \
                     `EngineBuilder::confine_preloaded`",
                ))
            }
            Isolation::Thread => {
                let (host_of_it, spins) = (Arc::clone(&host) as _, confinement.busy_wait);
                let mut link =
                    self.threads.spawn(host_of_it, memory_bytes, max_report_bytes, spins)?;
                let report = IsolationReport::thread();
                match link.replies.recv().await {
                    Some(Reply::Booted) => Ok(BootedInterpreter::new(link, report, host, false)),
                    Some(Reply::Failed(reason)) => Err(Error::new(ErrorKind::Start, reason)),
                    _ => {
                        let message = "the interpreter ended while it started";
                        Err(Error::new(ErrorKind::Start, message))
                    }
                }
            }
            Isolation::Process if self.is_confined && max_copies.is_some() => {
                let message = "the engine's packages are confined to workers that start by \
                               themselves, and a session that can be forked starts as a copy";
                Err(Error::new(ErrorKind::Config, message).with_hint(
                    "leave out `EngineBuilder::confine_preloaded`, or allow the packages with \
                     `Permissions::packages`",
                ))
            }
            Isolation::Process => {
                let program = find_worker(confinement.worker.as_deref())?;
                let unshared = || {
                    let why = obstacles::error_suffix();
                    let message = format!("this system cannot share the image{why}");
                    Error::new(ErrorKind::Start, message)
                };
                let may_fork = confinement.worker_start == WorkerStart::Fork && !self.is_confined;
                let purpose =
                    if self.is_confined { Purpose::ConfinedSession } else { Purpose::Session };
                let launched = launch(Launch {
                    purpose,
                    program: &program,
                    image: self.image.shared().ok_or_else(unshared)?,
                    host: Arc::clone(&host) as _,
                    max_report_bytes,
                    memory_bytes,
                    spins: confinement.busy_wait,
                    niceness: confinement.worker_niceness,
                    required: &confinement.required,
                    templates: may_fork.then_some(&self.templates),
                    max_copies,
                    event_loop: self.event_loop.as_ref(),
                });
                // A launched worker has already booted: it is locked down only after that.
                let Launched { link, report, is_copy } = launched.await?;
                Ok(BootedInterpreter::new(link, report, host, is_copy))
            }
        }
    }
}
