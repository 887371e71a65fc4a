//! Keeps the state of an idle session, from which it goes on when a run has ended its interpreter.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::shared::Shared;
use super::state::SessionState;
use crate::api::engine::checkpointer::Checkpointer;
use crate::data::error::{Error, ErrorKind};
use crate::host::saved::{SavedFile, SavedWriter};
use crate::support::block_on::block_on;
use crate::support::lock::lock;

/// How long a session is idle until its state is kept.
const IDLE: Duration = Duration::from_millis(50);

/// How much longer than keeping the state took before the session must be idle, so that a session
/// whose state takes long seldom waits for it.
const PATIENCE: u32 = 20;

/// The maximum size of a state that is kept, in bytes. It is in the host's memory.
pub(crate) const CHECKPOINT_BYTES: u64 = 16 << 20;

/// The maximum memory of a session whose state is kept in the background, in bytes. More takes long
/// to look through, and a run would have to wait.
const MOST_MEMORY: u64 = 128 << 20;

/// How long keeping the state in the background may take: destructors of the guest run meanwhile.
/// Past it, the session is stopped as a run is at its limit.
pub(super) const KEEPING_TIME: Duration = Duration::from_secs(5);

/// The state of a session between two runs.
#[derive(Clone)]
pub(super) struct Checkpoint {
    pub(super) file: Arc<SavedFile>,
    /// How many runs the session had had.
    pub(super) runs: u64,
}

/// Who has the turn to use the interpreter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// A command of the owner, or of a handle.
    Command,
    /// The state is being kept.
    Keeping,
}

/// What is kept of a session.
pub(super) struct Keeper {
    checkpointer: Arc<Checkpointer>,
    /// The commands so far, and the runs among them.
    commands: AtomicU64,
    runs: AtomicU64,
    /// The size of the guest's memory, in bytes.
    memory: AtomicU64,
    /// Set while work is scheduled.
    is_scheduled: AtomicBool,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    checkpoint: Option<Checkpoint>,
    /// How many commands there had been when the state was last kept, or could not be.
    commands: u64,
    /// How long that took.
    took: Duration,
}

impl Keeper {
    /// Makes the keeper of a session that has had so many runs.
    pub(super) fn new(checkpointer: Arc<Checkpointer>, runs: u64) -> Self {
        Self {
            checkpointer,
            commands: AtomicU64::new(0),
            runs: AtomicU64::new(runs),
            memory: AtomicU64::new(0),
            is_scheduled: AtomicBool::new(false),
            kept: Mutex::default(),
        }
    }

    /// Makes the keeper of the same session in another interpreter, with the state that it has now
    /// unless it is too large.
    pub(super) fn moved(&self, file: Option<Arc<SavedFile>>) -> Self {
        let runs = self.runs();
        let moved = Self::new(Arc::clone(&self.checkpointer), runs);
        let checkpoint = file.map(|file| Checkpoint { file, runs });
        lock(&moved.kept).checkpoint = checkpoint.or(self.last().0);
        moved
    }

    /// Takes the state that an interpreter begins with.
    pub(super) fn begin_with(&self, file: Arc<SavedFile>) {
        let runs = self.runs.load(Ordering::SeqCst);
        lock(&self.kept).checkpoint = Some(Checkpoint { file, runs });
    }

    /// Returns the last state, and how many runs there were since.
    pub(super) fn last(&self) -> (Option<Checkpoint>, u64) {
        let checkpoint = lock(&self.kept).checkpoint.clone();
        let before = checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.runs);
        (checkpoint, self.runs.load(Ordering::SeqCst).saturating_sub(before))
    }

    /// Returns how many runs there were.
    pub(super) fn runs(&self) -> u64 {
        self.runs.load(Ordering::SeqCst)
    }

    /// Counts a command that begins.
    pub(super) fn count(&self, is_run: bool) {
        self.commands.fetch_add(1, Ordering::SeqCst);
        if is_run {
            self.runs.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Takes note of the size of the guest's memory.
    pub(super) fn note_memory(&self, bytes: u64) {
        self.memory.store(bytes, Ordering::SeqCst);
    }

    fn idle(&self) -> Duration {
        IDLE.max(lock(&self.kept).took * PATIENCE)
    }
}

impl Shared {
    /// Has the state kept once the session has been idle for a while.
    pub(super) fn keep_when_idle(self: &Arc<Self>) {
        let Some(keeper) = &self.keeper else { return };
        if self.is_recorded() {
            return;
        }
        let is_large = keeper.memory.load(Ordering::SeqCst) > MOST_MEMORY;
        if is_large || keeper.is_scheduled.swap(true, Ordering::SeqCst) {
            return;
        }
        let commands = keeper.commands.load(Ordering::SeqCst);
        let session = Arc::downgrade(self);
        let work = move || {
            if let Some(session) = session.upgrade() {
                session.keep_if_idle(commands);
            }
        };
        if !keeper.checkpointer.schedule(keeper.idle(), Box::new(work)) {
            keeper.is_scheduled.store(false, Ordering::SeqCst);
        }
    }

    /// Keeps the state if there was no command since; otherwise waits again.
    fn keep_if_idle(self: &Arc<Self>, commands: u64) {
        let Some(keeper) = &self.keeper else { return };
        keeper.is_scheduled.store(false, Ordering::SeqCst);
        if self.state() != SessionState::Ready || self.is_recorded() {
            return;
        }
        if keeper.commands.load(Ordering::SeqCst) != commands {
            return self.keep_when_idle();
        }
        if lock(&keeper.kept).commands != commands {
            block_on(self.keep(keeper, commands));
        }
    }

    /// Keeps the state now, for the owner.
    pub(super) async fn keep_now(self: &Arc<Self>) -> Result<(), Error> {
        let Some(keeper) = &self.keeper else {
            let message = "the session has no checkpoints: its sandbox was built without \
                           `SandboxBuilder::checkpoint`";
            return Err(Error::new(ErrorKind::Config, message).with_session_alive());
        };
        if self.is_recorded() {
            let message =
                "no checkpoint is made of a recorded session: it goes on from its journal";
            return Err(Error::new(ErrorKind::Config, message).with_session_alive());
        }
        let checkpoint = self.checkpoint(keeper.runs(), Turn::Command).await?;
        let mut kept = lock(&keeper.kept);
        kept.checkpoint = Some(checkpoint);
        // Saving is a command too.
        kept.commands = keeper.commands.load(Ordering::SeqCst);
        Ok(())
    }

    async fn keep(self: &Arc<Self>, keeper: &Keeper, commands: u64) {
        let (start, runs) = (Instant::now(), keeper.runs());
        let checkpoint = self.checkpoint(runs, Turn::Keeping).await;
        let mut kept = lock(&keeper.kept);
        // A session that cannot be saved now keeps its earlier state.
        if let Ok(checkpoint) = checkpoint {
            kept.checkpoint = Some(checkpoint);
        }
        kept.commands = commands;
        kept.took = start.elapsed();
    }

    async fn checkpoint(self: &Arc<Self>, runs: u64, turn: Turn) -> Result<Checkpoint, Error> {
        let written = self.write(SavedWriter::in_memory(CHECKPOINT_BYTES), turn, false).await?;
        let bytes = written.keep()?.unwrap_or_default();
        let (file, _) = SavedFile::in_memory(bytes, self.host.saved_limits())?;
        Ok(Checkpoint { file: Arc::new(file), runs })
    }
}
