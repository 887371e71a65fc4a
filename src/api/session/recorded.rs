//! Records a session to a journal, and makes sessions of journals.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::watch;

use super::Session;
use super::checkpoint::{CHECKPOINT_BYTES, Keeper};
use super::finish::Ended;
use super::frame::{Frame, Origin};
use super::opening::{config, keeper, next_id, start_command};
use super::saved::{SAVING_TIME, on_a_thread};
use super::shared::Shared;
use super::state::SessionState;
use super::stopped_at::StoppedAt;
use super::variables::completed;
use crate::api::engine::Engine;
use crate::api::engine::pool::Refill;
use crate::api::engine::ready::BootedInterpreter;
use crate::api::journal::Journal;
use crate::api::permissions::Permissions;
use crate::api::policy::Policy;
use crate::api::replay::Replay;
use crate::api::stream::RunStream;
use crate::data::determinism::{Clocks, Determinism};
use crate::data::error::{Error, ErrorKind};
use crate::data::execution::Execution;
use crate::data::shown::shown;
use crate::data::stdin::Stdin;
use crate::data::version::program;
use crate::fs::MountTable;
use crate::host::SessionHost;
use crate::host::journal::{
    Begin, CommandKind, CommandRecord, Ending, JournalHost, NextCommand, Replay as Replayed,
    Stopped, Until, difference,
};
use crate::host::pipe::{PipeWriter, pipe};
use crate::host::saved::{SavedFile, SavedState, SavedWriter};
use crate::packages::SITE_PACKAGES;
use crate::protocol::codec;
use crate::protocol::{Command, Message, StartCommand};
use crate::support::clock;

/// How much of a session that is recorded from here on may be saved, in bytes, in addition to its
/// memory: names and places.
const OVERHEAD_BYTES: u64 = 64 << 20;

/// How much longer than it was allowed a command may take that is repeated up to its end, which was
/// recorded; and how long at least. The machine may be slower.
const REPEATED_TIMES: u32 = 10;
const REPEATED_TIME: Duration = Duration::from_mins(1);

impl Session {
    /// Starts a session that is recorded from its beginning.
    pub(crate) async fn start_recorded(
        engine: Engine,
        policy: Arc<Policy>,
        journal: Journal,
    ) -> Result<Self, Error> {
        check(&policy)?;
        let slot = engine.take_slot()?;
        let id = next_id();
        let host = Arc::new(SessionHost::new(config(id, &engine, &policy)));
        let begin = beginning(&engine, &policy, &host)?;
        let command = Command::Start(start(&host, &policy, &begin));
        let created = create(&host, journal, begin, Vec::new()).await?;
        let first = Frame::first(CommandKind::Start, codec::encode(command));
        let keeper = keeper(&engine, &policy);
        let session =
            Self::with_journal(id, &engine, &policy, (host, created), first, keeper).await?;
        Ok(session.in_slot(slot))
    }

    /// Makes the session of a journal, up to its last run.
    pub(crate) async fn resume(
        engine: Engine,
        policy: Arc<Policy>,
        journal: Journal,
    ) -> Result<Self, Error> {
        check(&policy)?;
        let slot = engine.take_slot()?;
        let id = next_id();
        let path = journal.path().to_owned();
        let replay = on_a_thread(move || Replayed::open(&path, true, &Until::End)).await?;
        let engine = for_journal(engine, &policy, replay.begin(), journal.path()).await?;
        let (host, is_saved) = host(id, &engine, &policy, &replay).await?;
        let begin = replay.begin().clone();
        let resumed = JournalHost::resume(Arc::clone(&host), replay, journal.options())?;
        let first = resumed.next_command()?;
        let (kind, own) = if is_saved {
            // A saved guest has its tools.
            drop(start_command(&host, &policy));
            (
                CommandKind::Resume,
                Command::Resume {
                    env: policy.env.clone(),
                    terminal: policy.terminal,
                    has_packages: host.packages().any_allowed(),
                    determinism: Some(determinism(&begin)),
                },
            )
        } else {
            (CommandKind::Start, Command::Start(start(&host, &policy, &begin)))
        };
        let own = codec::encode(own);
        let keeper = keeper(&engine, &policy);
        let Some(NextCommand { command: first, ending, .. }) = first else {
            // The session was killed before it began.
            let first = Frame::first(kind, own);
            let session =
                Self::with_journal(id, &engine, &policy, (host, resumed), first, keeper).await?;
            return Ok(session.in_slot(slot));
        };
        if first.kind != kind {
            return Err(refused(journal.path(), "its first command does not begin a session"));
        }
        if let Some(field) = difference(&first.frame, &own) {
            let message = format!(
                "the session was recorded with other {field} than the sandbox has, so it would do \
                 something else"
            );
            return Err(refused(journal.path(), &message));
        }
        let first = Frame::repeated(kind, own, ending);
        let session =
            Self::with_journal(id, &engine, &policy, (host, resumed), first, keeper).await?;
        session.shared.replay().await?;
        Ok(session.in_slot(slot))
    }

    /// Makes the session of a journal, up to its last run, to look back at it: nothing of the host
    /// is touched.
    pub(crate) async fn look_back(
        engine: Engine,
        policy: Arc<Policy>,
        replay: Replay,
    ) -> Result<Self, Error> {
        let slot = engine.take_slot()?;
        let id = next_id();
        let (path, until) = (replay.path().to_owned(), replay.until());
        let replayed = on_a_thread(move || Replayed::open(&path, false, &until)).await?;
        let engine = for_journal(engine, &policy, replayed.begin(), replay.path()).await?;
        let mut mounts = MountTable::default();
        for guest in replayed.begin().mounts.iter().filter(|guest| *guest != SITE_PACKAGES) {
            mounts.add_absent(guest);
        }
        let permissions = Permissions { mounts, ..Permissions::none() };
        let policy = Arc::new(Policy { permissions, ..policy.without_access() });
        let (host, _) = host(id, &engine, &policy, &replayed).await?;
        let (until, tracer) = (replay.until(), replay.tracer());
        let journal = JournalHost::look_back(Arc::clone(&host), replayed, until, tracer);
        let Some(NextCommand { command, ending, .. }) = journal.next_command()? else {
            return Err(refused(replay.path(), "the session was killed before it began"));
        };
        if !matches!(command.kind, CommandKind::Start | CommandKind::Resume) {
            return Err(refused(replay.path(), "its first command does not begin a session"));
        }
        let first = Frame::repeated(command.kind, command.frame, ending);
        let session =
            Self::with_journal(id, &engine, &policy, (host, journal), first, None).await?;
        session.shared.replay().await?;
        Ok(session.in_slot(slot))
    }

    /// Connects an interpreter with the journal of its session, and gives it the first command.
    async fn with_journal(
        id: u64,
        engine: &Engine,
        policy: &Arc<Policy>,
        (host, journal): (Arc<SessionHost>, JournalHost),
        first: Frame,
        keeper: Option<Keeper>,
    ) -> Result<Self, Error> {
        let interpreter = interpreter(engine, policy).await?;
        let journal = Arc::new(journal);
        let (shared, isolation) =
            Self::connected_by(id, policy, host, interpreter, &journal, keeper);
        let session = Self::of(shared, isolation, engine, policy);
        session.shared.begin_recorded(first).await?;
        Ok(session)
    }

    /// Records the session from here on: everything that the host tells it. The journal begins with
    /// the state of the session, which goes on in another interpreter.
    ///
    /// See [`Sandbox::record`](crate::Sandbox::record), which records a session from its beginning.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Journal`] if the journal cannot be written, [`ErrorKind::Config`] if the
    /// session is recorded already; otherwise as [`save`](Self::save). The session stays as it was.
    ///
    /// # Cancellation
    ///
    /// Dropping the future kills the session.
    pub async fn record(&mut self, journal: impl Into<Journal>) -> Result<(), Error> {
        let journal = journal.into();
        check(&self.policy).map_err(Error::with_session_alive)?;
        if self.shared.is_recorded() {
            let message = "the session is recorded already";
            return Err(Error::new(ErrorKind::Config, message).with_session_alive());
        }
        let limit = self.policy.limits.memory_bytes().saturating_add(OVERHEAD_BYTES);
        let saved = self.shared.write_all(SavedWriter::in_memory(limit)).await?;
        let saved = saved.keep()?.unwrap_or_default();
        let limits = self.shared.host.saved_limits().clone();
        let (file, state, saved) = on_a_thread(move || {
            let (file, state) = SavedFile::in_memory(saved.clone(), &limits)?;
            Ok((file, state, saved))
        })
        .await?;
        let (engine, policy, old) = (&self.engine, &self.policy, &self.shared);
        let host = Arc::new(old.host.revived(config(old.id, engine, policy), Some(state))?);
        let file = Arc::new(file);
        let fits = saved.len() as u64 <= CHECKPOINT_BYTES;
        let keeper = old.keeper.as_ref();
        let keeper = keeper.map(|keeper| keeper.moved(fits.then(|| Arc::clone(&file))));
        host.saving().read_from(file);
        let begin = beginning(engine, policy, &host)?;
        let command = Command::Resume {
            env: policy.env.clone(),
            terminal: policy.terminal,
            has_packages: host.packages().any_allowed(),
            determinism: Some(determinism(&begin)),
        };
        let created = create(&host, journal, begin, saved).await;
        let created = Arc::new(created.map_err(Error::with_session_alive)?);
        let interpreter = interpreter(engine, policy).await.map_err(Error::with_session_alive)?;
        let (shared, isolation) =
            Self::connected_by(old.id, policy, host, interpreter, &created, keeper);
        let first = Frame::first(CommandKind::Resume, codec::encode(command));
        shared.begin_recorded(first).await?;
        self.seat.give_to(&shared);
        let old = std::mem::replace(&mut self.shared, shared);
        self.isolation = isolation;
        old.close();
        Ok(())
    }

    /// Returns the number of runs in the session's journal, with the one under way; 0 if it is not
    /// recorded. A session that goes on in another process counts on.
    #[must_use]
    pub fn recorded_runs(&self) -> u64 {
        self.shared.journal.as_ref().map_or(0, |journal| journal.runs())
    }

    /// Records the session no longer. The journal ends here, and can still be resumed from here.
    pub fn end_recording(&mut self) {
        self.shared.end_recording();
    }

    /// Runs the last run of the journal that the session was [resumed](crate::Sandbox::resume)
    /// from: again as far as it is recorded, and from there on as it goes. Returns `None` if there
    /// is none, or this was called before. Until then the session does nothing else.
    ///
    /// Of a session that is [looked back](crate::Sandbox::replay) at, each call runs the next run,
    /// and returns `None` after the last one.
    ///
    /// The output and the result are the whole run's.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run); [`ErrorKind::Journal`] if the program does something else than when
    /// it was recorded.
    ///
    /// # Cancellation
    ///
    /// Dropping the future kills the session. The journal can be resumed again.
    pub async fn go_on(&mut self) -> Result<Option<Execution>, Error> {
        let Some(execution) = self.shared.go_on(Stdin::empty(), None).await? else {
            return Ok(None);
        };
        Ok(Some(self.after(execution, None).await))
    }

    /// Binds the local variables of the function in which the run was stopped that this session
    /// [looks back](crate::Sandbox::replay) at, so that code that is run then has them at hand.
    /// Returns where that is; `None` if no run was stopped.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub async fn bind_locals(&mut self) -> Result<Option<StoppedAt>, Error> {
        let report = self.shared.quick(Command::BindLocals).await?;
        completed(&report, "the guest could not bind the variables")?;
        Ok(report.value.filter(|_| report.flag).and_then(StoppedAt::read))
    }

    /// Returns `true` if [`go_on`](Self::go_on) has a run to run.
    #[must_use]
    pub fn has_run_to_go_on(&self) -> bool {
        self.shared.journal.as_ref().is_some_and(|journal| journal.is_waiting())
    }

    /// The same as [`go_on`](Self::go_on), and streams the output.
    ///
    /// # Errors
    ///
    /// As [`go_on`](Self::go_on); [`ErrorKind::Closed`] if there is no run.
    pub fn go_on_streaming(&mut self) -> RunStream<'_> {
        let (writer, reader) = pipe();
        let run = async move {
            let execution = self.shared.go_on(Stdin::empty(), Some(writer)).await?;
            let execution = execution.ok_or_else(|| {
                let message = "the journal has no run that is to go on";
                Error::new(ErrorKind::Closed, message).with_session_alive()
            })?;
            Ok(self.after(execution, None).await)
        };
        RunStream::new(reader, Box::pin(run))
    }
}

/// Returns a counter of the runs in a session's journal, with the one under way; `None` if it is
/// not recorded.
#[must_use]
pub fn run_counter(session: &Session) -> Option<watch::Receiver<u64>> {
    session.shared.journal.as_ref().map(|journal| journal.run_counter())
}

/// Returns `true` if [`Session::go_on`] has a whole program to run.
#[must_use]
pub fn has_program_to_go_on(session: &Session) -> bool {
    let waiting = session.shared.journal.as_ref().and_then(|journal| journal.waiting_kind());
    waiting == Some(CommandKind::Run { is_program: true })
}

impl Shared {
    /// Gives a recorded session its first command.
    async fn begin_recorded(self: &Arc<Self>, first: Frame) -> Result<(), Error> {
        let time = self.limits.run_time().max(SAVING_TIME);
        let ended = self.quick_ended(first, time).await;
        // Of a saved session.
        drop(self.host.saving().forget());
        let unbegun = |error: Error| {
            if error.kind() == ErrorKind::Journal {
                return error;
            }
            Error::new(ErrorKind::Start, format!("the session cannot begin: {error}"))
        };
        let ended = ended.map_err(unbegun)?;
        completed(&ended.report, "the guest's side").map_err(unbegun)
    }

    /// Returns `true` if the session is recorded.
    pub(super) fn is_recorded(&self) -> bool {
        self.journal.as_ref().is_some_and(|journal| journal.is_recorded())
    }

    fn end_recording(&self) {
        if let Some(journal) = &self.journal {
            journal.end();
        }
    }

    /// Records a command that is about to begin.
    pub(super) fn begin_in_journal(
        journal: &JournalHost,
        frame: &Frame,
        run_time: Duration,
        stdin: &Stdin,
    ) -> Result<(), Error> {
        let ending = match &frame.origin {
            Origin::Journal(ending) => ending.as_ref(),
            Origin::Owner => {
                if journal.is_waiting() {
                    let message = "the last run of the session's journal has not gone on yet";
                    let error = Error::new(ErrorKind::Busy, message).with_session_alive();
                    return Err(error.with_hint("call `Session::go_on` first"));
                }
                if frame.saves_to.is_some() && journal.is_recorded() {
                    let message = "a recorded session is not saved: it goes on from its journal";
                    return Err(Error::new(ErrorKind::Config, message).with_session_alive());
                }
                let (Message::Command(bytes) | Message::Restore(bytes)) = &frame.message else {
                    return Ok(());
                };
                let command = CommandRecord {
                    kind: frame.kind,
                    run_milliseconds: u64::try_from(run_time.as_millis()).unwrap_or(u64::MAX),
                    stdin: stdin.known().map(|known| known.to_vec().into()),
                    frame: bytes.clone(),
                };
                return journal.begin_command(command);
            }
        };
        journal.begin_again(ending);
        Ok(())
    }

    /// Records how a command has ended, or has it end as it was recorded.
    pub(super) fn end_in_journal(
        &self,
        journal: &JournalHost,
        origin: Origin,
        ended: &mut Ended,
    ) -> Result<(), Error> {
        if let Some(failure) = journal.failure() {
            self.close();
            return Err(failure);
        }
        if let Origin::Journal(Some(ending)) = origin {
            if let Some(stopped) = ending.stopped {
                ended.termination = Some(stopped.termination);
            }
            return Ok(());
        }
        let stopped = ended.termination.clone().map(|termination| Stopped {
            termination,
            stdout_bytes: ended.run.stdout.written(),
            stderr_bytes: ended.run.stderr.written(),
            given: journal.given(),
            ends_session: self.state() != SessionState::Ready,
        });
        let was_interrupted = self.was_interrupted();
        journal.end_command(Ending { was_interrupted, stopped })
    }

    /// Replays the commands of a journal, up to a run that waits for its owner.
    async fn replay(self: &Arc<Self>) -> Result<(), Error> {
        let Some(journal) = &self.journal else { return Ok(()) };
        while let Some(next) = journal.next_command()? {
            if !next.packages.is_empty() {
                self.load_again(next.packages.clone()).await?;
            }
            if journal.waits_for_owner(&next) {
                journal.wait_with(next);
                return Ok(());
            }
            self.repeat_command(next, Stdin::empty(), None).await?;
        }
        journal.end_replay();
        Ok(())
    }

    /// Runs the run of a journal that has waited for its owner.
    async fn go_on(
        self: &Arc<Self>,
        stdin: Stdin,
        pipe: Option<PipeWriter>,
    ) -> Result<Option<Execution>, Error> {
        let Some(journal) = &self.journal else { return Ok(None) };
        let Some(next) = journal.take_waiting() else { return Ok(None) };
        let execution = self.repeat_command(next, stdin, pipe).await?;
        if self.state() == SessionState::Ready {
            self.replay().await?;
        }
        Ok(Some(execution))
    }

    /// Runs a command of a journal, as far as it is recorded without doing anything of the host.
    async fn repeat_command(
        self: &Arc<Self>,
        next: NextCommand,
        stdin: Stdin,
        pipe: Option<PipeWriter>,
    ) -> Result<Execution, Error> {
        let CommandRecord { kind, run_milliseconds, stdin: known, frame } = next.command;
        let limit = match kind {
            CommandKind::Run { .. } | CommandKind::End => self.limits.run_time(),
            _ => self.limits.run_time().max(SAVING_TIME),
        };
        let run_time = match next.ending {
            // It ends as it did. The limit is for a program that goes on for ever instead.
            Some(_) => limit.saturating_mul(REPEATED_TIMES).max(REPEATED_TIME),
            None => Duration::from_millis(run_milliseconds).min(limit),
        };
        let stdin = known.map_or(stdin, |known| Stdin::from_bytes(known.into_vec()));
        let frame = Frame::repeated(kind, frame, next.ending);
        let ended = self.command(frame, run_time, None, stdin, pipe).await?;
        Ok(self.execution(ended))
    }
}

/// Fails if sessions of this policy cannot be recorded.
fn check(policy: &Policy) -> Result<(), Error> {
    if policy.max_copies.is_some() {
        let message = "a session cannot be recorded whose sandbox is forkable";
        return Err(Error::new(ErrorKind::Config, message));
    }
    Ok(())
}

/// Returns the engine for the session of a journal, if this program can resume it.
async fn for_journal(
    engine: Engine,
    policy: &Policy,
    begin: &Begin,
    path: &Path,
) -> Result<Engine, Error> {
    let own = program();
    if begin.program != own {
        let found = shown(&begin.program);
        return Err(refused(path, &format!("{found} has recorded it, and this is {own}")));
    }
    let engine = if policy.packages.bundle().is_some() {
        engine.for_saved(&begin.preloaded).await
    } else {
        engine
    };
    let own = engine.preload().described();
    if own != begin.preloaded {
        let listed = |names: &[String]| match names {
            [] => "no packages".to_owned(),
            names => shown(&names.join(", ")),
        };
        let (found, own) = (listed(&begin.preloaded), listed(&own));
        return Err(refused(
            path,
            &format!("it began from a memory image with {found}, and this engine's has {own}"),
        ));
    }
    Ok(engine)
}

/// Makes the host of the session of a journal. Returns whether it begins with a saved session.
async fn host(
    id: u64,
    engine: &Engine,
    policy: &Arc<Policy>,
    replay: &Replayed,
) -> Result<(Arc<SessionHost>, bool), Error> {
    let Some((file, start, end)) = replay.saved() else {
        return Ok((Arc::new(SessionHost::new(config(id, engine, policy))), false));
    };
    let (file, path) = (Arc::clone(file), replay.path().to_owned());
    let limits = policy.permissions.mounts.saved_limits();
    let opened: (SavedFile, SavedState) =
        on_a_thread(move || SavedFile::part(file, (start, end), &path, &limits)).await?;
    let opened = (Arc::new(opened.0), opened.1);
    Ok((super::saved::host(id, engine, policy, opened).await?, true))
}

/// Boots an interpreter, or takes one that has not begun.
async fn interpreter(engine: &Engine, policy: &Policy) -> Result<BootedInterpreter, Error> {
    let (pool, kind) = (engine.pool(), policy.kind());
    let _refill = Refill { pool, kind: &kind };
    match pool.take(&kind, &policy.tenant, None) {
        Some(ready) => Ok(ready),
        None => Session::fresh(engine, &kind).await,
    }
}

/// Makes the journal of a session.
async fn create(
    host: &Arc<SessionHost>,
    journal: Journal,
    begin: Begin,
    saved: Vec<u8>,
) -> Result<JournalHost, Error> {
    let host = Arc::clone(host);
    on_a_thread(move || JournalHost::create(host, journal.path(), journal.options(), begin, &saved))
        .await
}

/// Returns how a session that is recorded begins.
fn beginning(engine: &Engine, policy: &Policy, host: &SessionHost) -> Result<Begin, Error> {
    let mut seed = [0; 8];
    getrandom::fill(&mut seed).map_err(|error| {
        let message = format!("the system gave no entropy: {error}");
        Error::new(ErrorKind::Start, message)
    })?;
    let (seed, started, is_virtual) = match policy.determinism {
        Some(Determinism { seed, start_time, .. }) => (seed, start_time, true),
        None => (u64::from_le_bytes(seed), SystemTime::now(), false),
    };
    Ok(Begin {
        program: program(),
        preloaded: engine.preload().described(),
        seed,
        started: clock::milliseconds(started).floor(),
        is_virtual,
        mounts: host.mount_points().to_vec(),
    })
}

/// Returns what the session of a journal depends on.
fn determinism(begin: &Begin) -> Determinism {
    let started = Duration::try_from_secs_f64(begin.started / 1000.0).unwrap_or_default();
    Determinism {
        seed: begin.seed,
        start_time: SystemTime::UNIX_EPOCH + started,
        clocks: if begin.is_virtual { Clocks::RecordedVirtual } else { Clocks::RecordedReal },
    }
}

fn start(host: &SessionHost, policy: &Policy, begin: &Begin) -> StartCommand {
    StartCommand { determinism: Some(determinism(begin)), ..start_command(host, policy) }
}

fn refused(path: &Path, reason: &str) -> Error {
    Error::new(ErrorKind::Journal, format!("the journal `{}`: {reason}", path.display()))
}
