//! Durable sessions, which outlive the node's process, and their runs, which outlive their clients.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use super::journals::{Description, Journals, SessionFiles, wall};
use super::run_gate::Pass;
use super::run_log::{DurableRun, LogWriter, RunEnd};
use super::runs::Code;
use super::session::{Durability, Listed, NewSession, OwnSession, SessionLease, SessionState, Use};
use super::{Node, Refusal, Tenant, gone};
use crate::core::{Answer, Command, Failure, Run};
use isolet::internals::lock;

/// How soon a run that goes on asks again for its turn, if too many wait.
const AGAIN: Duration = Duration::from_secs(1);

/// What a session that outlives the process has besides others.
pub(crate) struct DurableSession {
    files: SessionFiles,
    description: Mutex<Description>,
    /// The last run.
    run: Mutex<Option<Arc<DurableRun>>>,
}

impl DurableSession {
    /// Describes a new session for other processes.
    pub(crate) fn begin(
        files: SessionFiles,
        description: Description,
    ) -> Result<Arc<Self>, Failure> {
        files.keep(&description).map_err(|error| undescribed(&error))?;
        Ok(Self::restored(files, description, None))
    }

    /// A session that another process has begun, with its last run.
    pub(crate) fn restored(
        files: SessionFiles,
        description: Description,
        run: Option<Arc<DurableRun>>,
    ) -> Arc<Self> {
        Arc::new(Self { files, description: Mutex::new(description), run: Mutex::new(run) })
    }

    pub(crate) fn id(&self) -> &str {
        self.files.id()
    }

    pub(crate) fn tenant(&self) -> &str {
        self.files.tenant()
    }

    pub(crate) fn deadline(&self) -> SystemTime {
        lock(&self.description).deadline
    }

    /// Describes it once it has ended.
    pub(crate) fn ended(&self) -> Listed {
        let Description { created, deadline, metadata, .. } = &*lock(&self.description);
        Listed {
            id: self.id().to_owned(),
            created: *created,
            left: deadline.duration_since(SystemTime::now()).unwrap_or_default(),
            state: SessionState::Ended,
            is_durable: true,
            memory_bytes: 0,
            used: Use::default(),
            metadata: metadata.clone(),
        }
    }

    /// Returns `true` if it ends with its first run.
    pub(crate) fn has_one_run(&self) -> bool {
        lock(&self.description).has_one_run
    }

    /// Returns the run of this number, if it is the last one.
    pub(crate) fn run(&self, number: u64) -> Result<Arc<DurableRun>, Refusal> {
        match lock(&self.run).as_ref() {
            Some(last) if last.number() == number => Ok(Arc::clone(last)),
            Some(last) if number < last.number() && number > 0 => {
                let text = format!("run {number} is not kept: the last one is {}", last.number());
                Err(Refusal::NoRun(text))
            }
            _ => Err(Refusal::NoRun(format!("there is no run {number}"))),
        }
    }

    pub(crate) fn renew(&self, deadline: Instant) -> Result<(), Failure> {
        let mut description = lock(&self.description);
        description.deadline = wall(deadline);
        self.files.keep(&description).map_err(|error| undescribed(&error))
    }

    /// Removes the files: no process goes on with the session.
    pub(crate) fn remove(&self) {
        // A description that is being written is removed, too.
        let _description = lock(&self.description);
        self.files.remove();
    }
}

fn undescribed(error: &std::io::Error) -> Failure {
    Failure::config(format!("the session's description cannot be written: {error}"))
}

impl Node {
    pub(crate) fn journals(&self) -> Result<&Arc<Journals>, Refusal> {
        self.journals.as_ref().ok_or_else(|| {
            Refusal::Failure(Failure::denied(
                "this node keeps no durable sessions: it was started without `--journals`",
            ))
        })
    }

    /// Starts a run in a durable session, after waiting in the tenant's queue. It goes on when the
    /// client is gone.
    pub async fn start_run(
        self: &Arc<Self>,
        session: SessionLease,
        run: Run,
    ) -> Result<Arc<DurableRun>, Refusal> {
        let of = Arc::clone(session.session());
        let durable = of.durable.as_ref().ok_or(Refusal::Unknown)?;
        let entry = of.entry()?;
        let pass = self.turn(&session).await?;
        let begun = {
            let mut last = lock(&durable.run);
            if last.as_ref().is_some_and(|last| last.end().is_none()) {
                return Err(Failure::busy(session.handle()).into());
            }
            // A run that was refused is not in the journal, and the next one has its number.
            let number = entry.recorded_runs() + 1;
            let begun = DurableRun::new(number, false, &of.policy);
            *last = Some(Arc::clone(&begun));
            begun
        };
        self.follow_run(session, Arc::clone(&begun), Code::Run(run), pass);
        // A client that has its number finds it again in the node's next process.
        tokio::select! {
            () = entry.recorded_run(begun.number()) => {}
            _ = begun.ended() => {}
        }
        Ok(begun)
    }

    /// Starts a run in a durable session of its own, which ends with it. Returns the session's id,
    /// too.
    pub async fn start_one_run(
        self: &Arc<Self>,
        tenant: &Arc<Tenant>,
        new: NewSession,
        run: Run,
    ) -> Result<(String, Arc<DurableRun>), Refusal> {
        let new = NewSession { durable: Some(Durability::Run), ..new };
        let session = self.create(tenant, new, None).await?;
        let id = session.handle().to_owned();
        let same = self.table.get(&tenant.name, &id).map_err(gone)?;
        // Ends it if the run does not begin, or the client goes before.
        let unbegun = OwnSession::new(self, same);
        let run = self.start_run(session, run).await?;
        if let Some(RunEnd::Failed(failure)) = run.end() {
            return Err(failure.into());
        }
        unbegun.keep();
        Ok((id, run))
    }

    /// Has the last run of a restored session go on, in the tenant's turn.
    pub(crate) async fn go_on_with(self: Arc<Self>, session: SessionLease, run: Arc<DurableRun>) {
        let tenant = Arc::clone(&session.session().tenant);
        let pass = loop {
            match self.runs.enter(&tenant.name, tenant.quotas.runs).await {
                Ok(pass) => break pass,
                Err(_) => tokio::time::sleep(AGAIN).await,
            }
        };
        self.follow_run(session, run, Code::OfJournal, pass);
    }

    fn follow_run(
        self: &Arc<Self>,
        session: SessionLease,
        run: Arc<DurableRun>,
        code: Code,
        pass: Pass,
    ) {
        let traced = self.traces.run(&session.session().traced, session.handle());
        let writer = LogWriter {
            run: Arc::clone(&run),
            span: traced.context(),
            traces: Arc::clone(&self.traces),
            tool_calls: self.metrics.tool_calls(),
        };
        let node = Arc::clone(self);
        tokio::spawn(async move {
            let answer = node.finish(&session, code, Arc::new(writer), traced, pass).await;
            // The node has ended the session, and its next process goes on with it.
            let is_left = node.is_draining()
                && answer.as_ref().map_or(true, |execution| execution.session_ended);
            run.finish(match answer {
                _ if is_left => RunEnd::Left,
                Ok(execution) => RunEnd::Done(Arc::new(execution)),
                Err(Refusal::Failure(failure)) => RunEnd::Failed(failure),
                Err(_) => RunEnd::Failed(Failure::closed("the session has ended")),
            });
        });
    }

    /// Answers a tool call of this session. Returns `false` if it is no longer waiting.
    ///
    /// # Errors
    ///
    /// The session is still being replayed, and may come to this call.
    pub fn answer_call(
        &self,
        session: &SessionLease,
        call: u64,
        answer: Answer,
    ) -> Result<bool, Refusal> {
        let may_come = || {
            let durable = session.session().durable.as_ref();
            let run = durable.and_then(|durable| lock(&durable.run).clone());
            run.is_some_and(|run| run.may_yet_call(call))
        };
        if self.answer(session, call, answer) {
            Ok(true)
        } else if may_come() {
            Err(Refusal::Restoring)
        } else {
            Ok(false)
        }
    }

    /// Gives a session a fresh interpreter.
    pub async fn reset(&self, session: &SessionLease) -> Result<(), Refusal> {
        if session.session().is_durable() {
            let message = "a durable session cannot be reset: its journal goes on; make a new one";
            return Err(Failure::config(message).into());
        }
        self.carry_out(session, |reply| Command::Reset { reply }).await?;
        Ok(())
    }
}
