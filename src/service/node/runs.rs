//! Runs of a node's sessions: their turns, their results, and what they say while they run.

use std::sync::Arc;
use std::time::Instant;

use isolet::Value;

use super::super::{Answer, Reason, Request, SessionCommand, lock};
use super::audit::AuditRecord;
use super::replies::Events;
use super::run_gate::Pass;
use super::session::SessionLease;
use super::traces::Traced;
use super::{Awaited, Node, OnDrop, Refusal};

/// Code to run.
pub(crate) struct NewRun {
    pub(crate) code: String,
    pub(crate) inputs: Vec<(String, Value)>,
    /// As the option of a run has them in `docs/reference/protocol.md`.
    pub(crate) options: Value,
}

/// A run that is listened to.
pub(crate) struct Streamed {
    pub(crate) events: Events,
    pub(crate) result: futures_util::future::BoxFuture<'static, Result<Value, Refusal>>,
}

impl Node {
    /// Runs code in a session, in the tenant's turn. Dropping the future ends the run.
    pub(crate) async fn run(&self, session: &SessionLease, run: NewRun) -> Result<Value, Refusal> {
        let traced = self.traces.run(&session.session().traced, session.handle());
        let pass = self.turn(session).await?;
        self.finish(session, self.next(), run, traced, pass).await
    }

    /// As [`run`](Self::run), with what the run says while it runs.
    pub(crate) async fn stream(
        self: &Arc<Self>,
        session: SessionLease,
        run: NewRun,
    ) -> Result<Streamed, Refusal> {
        let traced = self.traces.run(&session.session().traced, session.handle());
        let pass = self.turn(&session).await?;
        let number = self.next();
        let events = self.replies.listen(number, traced.context());
        let node = Arc::clone(self);
        let result =
            Box::pin(async move { node.finish(&session, number, run, traced, pass).await });
        Ok(Streamed { events, result })
    }

    /// Waits for the tenant's turn to run code.
    async fn turn(&self, session: &SessionLease) -> Result<Pass, Refusal> {
        let tenant = &session.session().tenant;
        // An answer more, where others are not read, would not be read either.
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
        // Many have waited for those whose answers there are now.
        self.check_in_flight(tenant, 1)?;
        Ok(entered)
    }

    async fn finish(
        &self,
        session: &SessionLease,
        number: i64,
        run: NewRun,
        mut traced: Traced,
        pass: Pass,
    ) -> Result<Value, Refusal> {
        let command =
            SessionCommand::Run { code: run.code, inputs: run.inputs, options: run.options };
        let place = session.session().number()?;
        let request = Request::InSession { session: place, command };
        let cancel = Request::Cancel { session: place };
        // Its place among the runs is taken until it has ended, also if nobody waits for it.
        let cancelled = OnDrop::new(self, cancel).keeping(pass);
        let since = Instant::now();
        let answer = self.ask_as(number, request).await;
        if let Ok(execution) = &answer {
            // Before another run begins.
            self.count_result(&session.session().tenant, execution);
        }
        cancelled.disarm();
        let outcome = match &answer {
            Ok(execution) => execution.get("status").and_then(Value::as_str).unwrap_or_default(),
            Err(_) => "refused",
        };
        self.metrics.ran(outcome, since);
        traced.ended(outcome);
        let tenant = &session.session().tenant.name;
        self.audit.write(tenant, session.handle(), &AuditRecord::Ran(outcome));
        if let Ok(execution) = &answer {
            lock(&session.session().use_so_far).add(execution);
        }
        let is_over = match &answer {
            Ok(execution) => execution.get("session_alive").is_some(),
            Err(failure) => !failure.session_alive,
        };
        if is_over {
            let (kind, reason) = match &answer {
                Ok(execution) => ("ended", ended(execution)),
                Err(failure) => (failure.kind, failure.message.clone()),
            };
            self.remove(session, kind, Reason::Ended(reason)).await;
        }
        Ok(answer?)
    }

    /// Interrupts what runs in a session.
    pub(crate) async fn interrupt(&self, session: &SessionLease) -> Result<(), Refusal> {
        let session = session.session().number()?;
        self.ask(Request::Interrupt { session }).await?;
        Ok(())
    }

    /// Answers a call of a tool. Returns `false` if none of this session waits for it.
    pub(crate) fn answer(&self, session: &SessionLease, call: u64, answer: Answer) -> bool {
        let number = session.session().number();
        if !number.is_ok_and(|number| self.replies.take_call(call, number)) {
            return false;
        }
        self.service.answer(call, answer);
        true
    }
}

/// Says why a session is over, by the execution of its last run.
fn ended(execution: &Value) -> String {
    let message = execution.get("termination").and_then(|termination| termination.get("message"));
    match message.and_then(Value::as_str) {
        Some(message) => format!("it has ended: {message}"),
        None => "it has ended with its last run".to_owned(),
    }
}
