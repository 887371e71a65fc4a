//! Runs of a node's sessions: queueing, results and events.

use std::sync::Arc;
use std::time::Instant;

use super::audit::AuditRecord;
use super::events::{EventSender, Events, NoListener};
use super::run_gate::Pass;
use super::session::SessionLease;
use super::traces::Traced;
use super::{Awaited, Node, OnDrop, Refusal};
use crate::core::{
    Answer, Command, Execution, Failure, GoOnOptions, Listener, Reason, Run, SessionEntry,
};
use isolet::internals::lock;

/// The events and the result of a run.
pub struct Streamed {
    pub events: Events,
    pub result: futures_util::future::BoxFuture<'static, Result<Execution, Refusal>>,
}

impl Node {
    /// Runs code in a session, after waiting in the tenant's queue. Dropping the future cancels the
    /// run.
    pub async fn run(&self, session: &SessionLease, run: Run) -> Result<Execution, Refusal> {
        not_durable(session)?;
        let traced = self.traces.run(&session.session().traced, session.handle());
        let pass = self.turn(session).await?;
        self.finish(session, Code::Run(run), Arc::new(NoListener), traced, pass).await
    }

    /// As [`run`](Self::run), with the run's events.
    pub async fn stream(
        self: &Arc<Self>,
        session: SessionLease,
        run: Run,
    ) -> Result<Streamed, Refusal> {
        not_durable(&session)?;
        let traced = self.traces.run(&session.session().traced, session.handle());
        let pass = self.turn(&session).await?;
        let counter = self.metrics.tool_calls();
        let (sender, events) =
            EventSender::new(traced.context(), Arc::clone(&self.traces), counter);
        let node = Arc::clone(self);
        let result = Box::pin(async move {
            node.finish(&session, Code::Run(run), Arc::new(sender), traced, pass).await
        });
        Ok(Streamed { events, result })
    }

    /// Waits in the tenant's queue of runs.
    pub(super) async fn turn(&self, session: &SessionLease) -> Result<Pass, Refusal> {
        let tenant = &session.session().tenant;
        // A client that does not read its answers would not read another one.
        self.check_in_flight(tenant, 1)?;
        self.counted(self.audit.check(&tenant.name))?;
        let (patience, since) = (self.settings.queue_time, Instant::now());
        let entering = self.runs.enter(&tenant.name, tenant.quotas.runs);
        let entered = tokio::time::timeout(patience, entering).await;
        self.metrics.waited(since);
        let entered = self.counted(match entered {
            Ok(entered) => entered.map_err(Refusal::from),
            Err(_) => Err(Refusal::Waited(Awaited::Run, patience)),
        })?;
        // Checked again: answers may have piled up while this run waited.
        self.check_in_flight(tenant, 1)?;
        Ok(entered)
    }

    pub(super) async fn finish(
        &self,
        session: &SessionLease,
        code: Code,
        listener: Arc<dyn Listener>,
        mut traced: Traced,
        pass: Pass,
    ) -> Result<Execution, Refusal> {
        let entry = session.session().entry()?;
        // Keeps the pass until the run has ended, even if the client is gone.
        let cancelled = OnDrop::cancel(&entry, pass);
        let since = Instant::now();
        let answer = self.execute(&entry, code, listener).await;
        if let Ok(execution) = &answer {
            // Before another run begins.
            self.count_result(&session.session().tenant, execution);
            if execution.restored.is_some() {
                session.session().contexts.restored();
            }
        }
        cancelled.disarm();
        let outcome = match &answer {
            Ok(execution) => execution.status.name(),
            Err(_) => "refused",
        };
        self.metrics.ran(outcome, since);
        traced.ended(outcome);
        let tenant = &session.session().tenant.name;
        self.audit.write(tenant, session.handle(), &AuditRecord::Ran(outcome));
        if let Ok(execution) = &answer {
            lock(&session.session().use_so_far).add(&execution.usage);
        }
        let is_over = match &answer {
            Ok(execution) => execution.session_ended,
            Err(failure) => !failure.session_alive,
        };
        let has_one_run =
            session.session().durable.as_ref().is_some_and(|durable| durable.has_one_run());
        match &answer {
            Ok(execution) if is_over || has_one_run => {
                self.finish_session(session, "ended", Reason::Ended(ended(execution))).await;
            }
            Err(failure) if is_over || has_one_run => {
                let reason = Reason::Ended(failure.message.clone());
                self.remove(session, failure.kind.name(), reason).await;
            }
            _ => {}
        }
        Ok(answer?)
    }

    /// Runs code in a session of the service.
    async fn execute(
        &self,
        session: &Arc<SessionEntry>,
        code: Code,
        listener: Arc<dyn Listener>,
    ) -> Result<Execution, Failure> {
        let mut execution = match code {
            Code::Run(run) => {
                let command = |reply| Command::Run { run, listener, reply };
                self.ask(|reply| self.service.carry_out(session, command(reply))).await?
            }
            Code::OfJournal => self.go_on(session, &listener).await?,
        };
        if let Some(termination) = &mut execution.termination
            && self.has_clients.load(std::sync::atomic::Ordering::Relaxed)
        {
            self.discretion.hide_own(&mut termination.message);
        }
        Ok(execution)
    }

    /// Runs the last run of a session's journal.
    async fn go_on(
        &self,
        session: &Arc<SessionEntry>,
        listener: &Arc<dyn Listener>,
    ) -> Result<Execution, Failure> {
        let mut last = None;
        loop {
            let options = GoOnOptions { stream: true };
            let command = |reply| Command::GoOn { options, listener: Arc::clone(listener), reply };
            let next = self.ask(|reply| self.service.carry_out(session, command(reply))).await?;
            let Some(next) = next else { break };
            let is_over = next.session_ended;
            last = Some(next);
            if is_over {
                break;
            }
            // One that was interrupted before it went on is still to go on.
        }
        last.ok_or_else(|| Failure::config("the run had not begun when the node ended"))
    }

    /// Answers a tool call of this session. Returns `false` if it is no longer waiting.
    pub fn answer(&self, session: &SessionLease, call: u64, answer: Answer) -> bool {
        let entry = session.session().entry();
        entry.is_ok_and(|entry| self.service.answer(call, Some(&entry), answer))
    }
}

/// What runs in a session.
pub(super) enum Code {
    Run(Run),
    /// The last run of the session's journal, which goes on.
    OfJournal,
}

/// Fails for a durable session: its runs have numbers, and outlive their clients.
fn not_durable(session: &SessionLease) -> Result<(), Refusal> {
    if session.session().is_durable() {
        let message = "a durable session runs code by `POST /v1/sessions/ID/runs` only";
        return Err(Failure::config(message).into());
    }
    Ok(())
}

/// Returns why a session ended, from the execution of its last run.
fn ended(execution: &Execution) -> String {
    match &execution.termination {
        Some(termination) => format!("it has ended: {}", termination.message),
        None => "it has ended with its last run".to_owned(),
    }
}
