//! Runs that outlive the server while they wait for the user's decision: with a store, a run that
//! may ask is recorded to a journal of the store, and the next server goes on with it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use isolet::blocking::Session;
use isolet::profile::copied_files::CopiedFiles;
use isolet::{InterruptHandle, Journal, JournalFull};
use tokio::task::spawn_blocking;

use super::outputs::Outputs;
use super::parked::{Parked, Reference};
use super::python::{Interpreter, Python, failed};
use super::running::{Begun, Running, Work};
use super::store::Store;
use isolet_service::core::in_options;

/// The journal of a run. It is removed with the run, unless that is to go on in another process.
pub(super) struct RunJournal {
    store: Store,
    path: PathBuf,
    max_bytes: u64,
    /// Set while the journal has the run.
    is_kept: AtomicBool,
}

impl RunJournal {
    pub(super) fn new(store: &Store, owner: &str, handle: &str) -> Arc<Self> {
        let (path, max_bytes) = (store.journal(owner, handle), store.max_bytes());
        Arc::new(Self { store: store.clone(), path, max_bytes, is_kept: AtomicBool::new(false) })
    }

    fn journal(&self) -> Journal {
        Journal::at(&self.path).max_bytes(self.max_bytes).when_full(JournalFull::EndRecording)
    }

    /// Records a run that begins. One that cannot be recorded runs without it, and ends with the
    /// server.
    pub(super) fn begin(&self, session: &mut Session) {
        // Of a run whose server was killed, and for whose result nobody has come.
        self.store.remove_journal(&self.path);
        // What cannot be saved cannot be recorded from its middle on.
        let _ = session.record(self.journal());
    }

    /// Leaves the journal as it is, and ends the run, which can go on in another process.
    fn leave(&self, session: &InterruptHandle) {
        self.is_kept.store(true, Ordering::SeqCst);
        session.kill();
    }
}

impl Drop for RunJournal {
    fn drop(&mut self) {
        if !self.is_kept.load(Ordering::SeqCst) {
            self.store.remove_journal(&self.path);
        }
    }
}

impl Python {
    /// Ends the runs that wait for a decision so that the next server can go on with them.
    pub(super) fn leave_parked(&self) {
        for Parked { begun, .. } in self.parked.take_all() {
            if let Some(journal) = &begun.journal {
                journal.leave(&begun.interrupt());
            }
        }
    }

    /// Goes on with a run that has waited for a decision in a server that has ended. Returns `None`
    /// if there is none.
    pub(super) async fn revive(
        self: &Arc<Self>,
        owner: &str,
        reference: &Reference,
    ) -> Result<Option<Begun>, String> {
        let (Some(store), handle) = (self.store(), &reference.handle) else { return Ok(None) };
        let turn = store.turn(handle);
        let _turn = turn.lock().await;
        let journal = RunJournal::new(store, owner, handle);
        if !journal.path.exists() || self.get(owner, handle).is_ok() {
            journal.is_kept.store(true, Ordering::SeqCst);
            return Ok(None);
        }
        let made = self.made().await?;
        let room = self.room().await?;
        let (sandbox, python, path) =
            (made.sandbox.clone(), Arc::clone(self), Arc::clone(&journal));
        let resumed = spawn_blocking(move || {
            let session = sandbox.blocking().resume(path.journal());
            let session = session.map_err(|error| {
                // Another server, or this one with other options, may go on with it.
                path.is_kept.store(true, Ordering::SeqCst);
                format!("{}. The code still waits for the answer", in_options(&error.to_string()))
            })?;
            // Sessions with files of the host are not recorded.
            let interpreter = Interpreter { session, files: CopiedFiles::default() };
            Ok::<_, String>(python.session(interpreter, Outputs::of_woken()))
        });
        let session = resumed.await.map_err(|error| failed(&error))??;
        let in_use = room.fill_again(owner, handle.clone(), session);
        let turn = in_use.session().turns.try_take();
        let turn = turn.ok_or("the session is in use already; call again")?;
        let approvals = self.approvals.register(in_use.session().id);
        let running = Running::start(turn, in_use.session(), Work::GoOn);
        Ok(Some(Begun { running, in_use, approvals, journal: Some(journal) }))
    }
}
