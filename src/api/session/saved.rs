//! Saves a session to a file, and makes sessions of such files.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::checkpoint::{KEEPING_TIME, Turn};
use super::config;
use super::frame::Frame;
use super::shared::Shared;
use super::variables::{completed, unusable};
use crate::api::engine::Engine;
use crate::api::policy::Policy;
use crate::data::error::{Error, ErrorKind};
use crate::host::SessionHost;
use crate::host::saved::{SavedFile, SavedState, SavedWriter};
use crate::protocol::{Command, Status};
use crate::support::offload;

/// How long a session may take to be saved or restored, at least: its run-time limit is for code.
pub(super) const SAVING_TIME: Duration = Duration::from_secs(30);

/// The size of what is saved in addition to the guest's memory, in bytes: names and places.
const OVERHEAD_BYTES: u64 = 64 << 20;

impl Shared {
    pub(super) async fn save(self: &Arc<Self>, path: PathBuf) -> Result<(), Error> {
        let limit = self.limits.memory_bytes().saturating_add(OVERHEAD_BYTES);
        let writable = self.host.writable();
        let file = on_a_thread(move || SavedWriter::create(&path, limit, &writable)).await?;
        let file = self.write_all(file).await?;
        on_a_thread(move || file.keep().map(drop)).await
    }

    /// Has the guest write its state, and what is in the buffers of open files.
    pub(super) async fn write_all(
        self: &Arc<Self>,
        to: Box<SavedWriter>,
    ) -> Result<Box<SavedWriter>, Error> {
        self.write(to, Turn::Command, true).await
    }

    /// Has the guest write its state.
    pub(super) async fn write(
        self: &Arc<Self>,
        to: Box<SavedWriter>,
        turn: Turn,
        flushes_files: bool,
    ) -> Result<Box<SavedWriter>, Error> {
        let time = match turn {
            Turn::Command => self.limits.run_time().max(SAVING_TIME),
            Turn::Keeping => KEEPING_TIME,
        };
        let ended = self.quick_ended(Frame::save(to, turn, flushes_files), time).await?;
        let unsaved = |reason: &str| unusable(format!("the session cannot be saved: {reason}"));
        match &ended.report.status {
            // The reason that our Python found.
            Status::Raised(exception) if exception.type_name == "ValueError" => {
                return Err(unsaved(&exception.message));
            }
            Status::Raised(exception) => return Err(unsaved(&exception.to_string())),
            Status::Completed | Status::Exited(..) => {}
        }
        let nothing = || Err("the guest has saved nothing".to_owned());
        ended.saved.unwrap_or_else(nothing).map_err(|reason| unsaved(&reason))
    }

    /// Makes the interpreter the saved session that the host has.
    pub(super) async fn restore(self: &Arc<Self>, policy: &Policy) -> Result<(), Error> {
        let Policy { env, terminal, determinism, .. } = policy;
        let command = Command::Resume {
            env: env.clone(),
            terminal: *terminal,
            has_packages: self.host.packages().any_allowed(),
            determinism: *determinism,
        };
        let time = self.limits.run_time().max(SAVING_TIME);
        let resumed = self.quick_within(command, time).await;
        let file = self.host.saving().forget();
        let failed = |error: &Error| {
            let message = format!("the session cannot be restored: {error}");
            Error::new(ErrorKind::Start, message)
        };
        let report = resumed.map_err(|error| failed(&error))?;
        completed(&report, "the guest's side").map_err(|error| failed(&error))?;
        if let (Some(keeper), Some(file)) = (&self.keeper, file) {
            keeper.begin_with(file);
        }
        Ok(())
    }
}

/// A file of a saved session, and the host's part of it.
pub(super) type Opened = (Arc<SavedFile>, SavedState);

/// Opens the file of a saved session for a sandbox with this policy.
pub(super) async fn open(path: PathBuf, policy: &Policy) -> Result<Opened, Error> {
    let limits = policy.permissions.mounts.saved_limits();
    let (file, state) = on_a_thread(move || SavedFile::open(&path, &limits)).await?;
    Ok((Arc::new(file), state))
}

/// Makes the host of a session that was saved.
pub(super) async fn host(
    id: u64,
    engine: &Engine,
    policy: &Arc<Policy>,
    (file, state): Opened,
) -> Result<Arc<SessionHost>, Error> {
    let (engine, policy) = (engine.clone(), Arc::clone(policy));
    on_a_thread(move || {
        let host = SessionHost::new(config(id, &engine, &policy));
        host.restore(state)?;
        host.saving().read_from(file);
        Ok(Arc::new(host))
    })
    .await
}

/// Runs work on files on another thread, so that the caller's can do something else.
pub(super) async fn on_a_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let unstarted = |reason| Error::new(ErrorKind::Start, format!("a saved session: {reason}"));
    offload::run(true, work).await.map_err(unstarted)?
}
