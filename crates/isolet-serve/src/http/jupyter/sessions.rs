//! The sessions of a kernel: each is one of the node, lent to the kernel.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use isolet::{Execution, Session};
use isolet_jupyter::kernel::Sessions;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::http::problem::Problem;
use isolet_service::core::{LentSession, Loan, Policy};
use isolet_service::node::{
    ImplicitGrants, LentRun, MOST_SECONDS, NewSession, Node, OwnSession, Refusal, Tenant,
};

/// How long a start waits for a slot. Clients wait for 30 s or longer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The sessions of one kernel.
pub(super) struct KernelSessions {
    node: Arc<Node>,
    tenant: Arc<Tenant>,
    held: Option<Held>,
    /// The first session, which the kernel has not opened yet.
    ready: Option<Session>,
    /// Tells which end of a session is the kernel's.
    current: watch::Sender<Option<CancellationToken>>,
}

/// A session that is lent to the kernel.
struct Held {
    own: OwnSession,
    /// The run that has its turn.
    run: Option<LentRun>,
    loan: Loan,
}

impl KernelSessions {
    /// Starts the first session.
    pub(super) async fn start(node: &Arc<Node>, tenant: &Arc<Tenant>) -> Result<Self, Refusal> {
        let (current, _) = watch::channel(None);
        let (node, tenant) = (Arc::clone(node), Arc::clone(tenant));
        let mut this = Self { node, tenant, held: None, ready: None, current };
        this.ready = Some(this.next().await?);
        Ok(this)
    }

    /// Returns the token that is cancelled once the session has ended, with its changes.
    pub(super) fn current(&self) -> watch::Receiver<Option<CancellationToken>> {
        self.current.subscribe()
    }

    /// Ends the session that is held, and starts another one.
    async fn next(&mut self) -> Result<Session, Refusal> {
        self.end().await;
        let policy = Policy::without_checkpoints();
        let grants = ImplicitGrants {
            packages: true,
            run_time: Some(MOST_SECONDS),
            most_run_time: Some(MOST_SECONDS),
            ..ImplicitGrants::default()
        };
        let new = NewSession { policy, grants, ..NewSession::default() };
        let own = self.node.create_own(&self.tenant, new, PATIENCE).await?;
        let LentSession { session, loan } = self.node.lend(own.used()).await?;
        self.current.send_replace(Some(own.used().session().ended().clone()));
        self.held = Some(Held { own, run: None, loan });
        Ok(session)
    }

    /// Ends the session that is held, once the kernel has dropped it.
    async fn end(&mut self) {
        self.current.send_replace(None);
        if let Some(Held { own, run, loan }) = self.held.take() {
            drop((run, loan));
            own.end().await;
        }
    }
}

impl Sessions for KernelSessions {
    fn open(&mut self) -> BoxFuture<'_, Result<Session>> {
        async {
            match self.ready.take() {
                Some(session) => Ok(session),
                None => self.next().await.map_err(told),
            }
        }
        .boxed()
    }

    fn admit(&mut self) -> BoxFuture<'_, Result<()>> {
        async {
            let Some(held) = &mut self.held else { return Ok(()) };
            held.run = None;
            held.run = Some(self.node.admit_run(held.own.used()).await.map_err(told)?);
            Ok(())
        }
        .boxed()
    }

    fn ran(&mut self, execution: Option<&Execution>) {
        if let Some(held) = &mut self.held
            && let Some(run) = held.run.take()
        {
            self.node.end_run(held.own.used(), run, execution);
        }
    }

    fn settle<'a>(&'a mut self, _session: &'a mut Session) -> BoxFuture<'a, Result<()>> {
        std::future::ready(Ok(())).boxed()
    }
}

fn told(refusal: Refusal) -> anyhow::Error {
    anyhow!(Problem::from(refusal).text())
}
