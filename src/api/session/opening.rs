//! Opens sessions: gives each an interpreter and the host that serves it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Session;
use super::checkpoint::Keeper;
use super::saved::{self, Opened};
use super::seat::Seat;
use super::shared::Shared;
use super::variables::definitions;
use crate::api::engine::pool::Refill;
use crate::api::engine::ready::{BootedInterpreter, InterpreterKind};
use crate::api::engine::startup::Startup;
use crate::api::engine::{Engine, Slot};
use crate::api::policy::Policy;
use crate::data::error::{Error, ErrorKind};
use crate::data::isolation::IsolationReport;
use crate::host::catch_panic::CatchPanic;
use crate::host::journal::JournalHost;
use crate::host::{HostConfig, SessionHost};
use crate::protocol::StartCommand;

impl Session {
    /// Starts a fresh interpreter under the sandbox's policy.
    pub(crate) async fn start(engine: Engine, policy: Arc<Policy>) -> Result<Self, Error> {
        let slot = engine.take_slot()?;
        let (pool, kind) = (engine.pool(), policy.kind());
        let id = next_id();
        let host = Arc::new(SessionHost::new(config(id, &engine, &policy)));
        let startup = startup(&host, &policy);
        // The replacement boots once the session is open, so that the two do not compete.
        let _refill = Refill { pool, kind: &kind };
        let ready = if let Some(ready) = pool.take(&kind, &policy.tenant, Some(&startup)) {
            ready
        } else {
            Self::fresh(&engine, &kind).await?
        };
        let (in_background, has_begun) = (ready.starts_up_surely(), ready.begun().is_some());
        let session = Self::connect(id, &engine, &policy, host, ready);
        if engine.may_leave(&policy) {
            session.shared.note_setup();
        }
        if has_begun {
            session.shared.began();
        } else {
            session.shared.start(&startup).await;
            // If it will surely start up, the session's first command waits for it.
            if !in_background {
                session.shared.started().await?;
            }
        }
        Ok(session.in_slot(slot))
    }

    /// Starts a session that was saved to this file, under the sandbox's policy.
    pub(crate) async fn restore(
        engine: Engine,
        policy: Arc<Policy>,
        path: PathBuf,
    ) -> Result<Self, Error> {
        let slot = engine.take_slot()?;
        let mut saved = saved::open(path.clone(), &policy).await?;
        let engine = if policy.packages.bundle().is_some() {
            engine.for_saved(&saved.1.preloaded).await
        } else {
            engine
        };
        let (pool, kind) = (engine.pool(), policy.kind());
        let _refill = Refill { pool, kind: &kind };
        if let Some(ready) = pool.take(&kind, &policy.tenant, None) {
            match Self::of_saved(&engine, &policy, saved, ready).await {
                // It may have died since the pool checked it.
                Err(error) if error.kind() == ErrorKind::Start => {
                    saved = saved::open(path, &policy).await?;
                }
                restored => return restored.map(|session| session.in_slot(slot)),
            }
        }
        let fresh = Self::fresh(&engine, &kind).await?;
        Ok(Self::of_saved(&engine, &policy, saved, fresh).await?.in_slot(slot))
    }

    /// Boots an interpreter because none is ready. Others will be, if they can be had soon.
    pub(super) async fn fresh(
        engine: &Engine,
        kind: &InterpreterKind,
    ) -> Result<BootedInterpreter, Error> {
        let fresh = engine.pool().boot(kind).await?;
        if fresh.is_copy() && kind.max_copies.is_none() {
            engine.pool().keep_spare(kind, engine.spare_sessions());
        }
        Ok(fresh)
    }

    /// Makes an interpreter that belongs to no session yet the saved session.
    pub(super) async fn of_saved(
        engine: &Engine,
        policy: &Arc<Policy>,
        opened: Opened,
        fresh: BootedInterpreter,
    ) -> Result<Self, Error> {
        let id = next_id();
        let host = saved::host(id, engine, policy, opened).await?;
        let session = Self::connect(id, engine, policy, host, fresh);
        session.shared.restore(&session.policy).await?;
        session.define().await?;
        Ok(session)
    }

    /// Connects an interpreter with the host of its session.
    pub(super) fn connect(
        id: u64,
        engine: &Engine,
        policy: &Arc<Policy>,
        host: Arc<SessionHost>,
        fresh: BootedInterpreter,
    ) -> Self {
        let (shared, isolation) = Self::connected(id, policy, host, fresh, keeper(engine, policy));
        Self::of(shared, isolation, engine, policy)
    }

    /// Connects an interpreter with the host that serves it.
    pub(super) fn connected(
        id: u64,
        policy: &Arc<Policy>,
        host: Arc<SessionHost>,
        fresh: BootedInterpreter,
        keeper: Option<Keeper>,
    ) -> (Arc<Shared>, IsolationReport) {
        let (link, isolation) = fresh.adopt(Arc::new(CatchPanic(Arc::clone(&host) as _)));
        host.connect(&link.messages);
        (Arc::new(Shared::new(id, link, host, policy.limits.clone(), keeper, None)), isolation)
    }

    /// Connects an interpreter with the journal of its session.
    pub(super) fn connected_by(
        id: u64,
        policy: &Arc<Policy>,
        host: Arc<SessionHost>,
        fresh: BootedInterpreter,
        journal: &Arc<JournalHost>,
        keeper: Option<Keeper>,
    ) -> (Arc<Shared>, IsolationReport) {
        let (mut link, isolation) = fresh.adopt(Arc::new(CatchPanic(Arc::clone(journal) as _)));
        link.messages = journal.connect(link.messages);
        host.connect(&link.messages);
        let limits = policy.limits.clone();
        let shared = Shared::new(id, link, host, limits, keeper, Some(Arc::clone(journal)));
        journal.stop_with(&shared.stopper);
        (Arc::new(shared), isolation)
    }

    pub(super) fn of(
        shared: Arc<Shared>,
        isolation: IsolationReport,
        engine: &Engine,
        policy: &Arc<Policy>,
    ) -> Self {
        Self {
            seat: Seat::new(&shared),
            shared,
            engine: engine.clone(),
            policy: Arc::clone(policy),
            isolation,
            slot: None,
            registered: Vec::new(),
            loaded: Vec::new(),
            submits: Vec::new(),
        }
    }

    pub(super) fn in_slot(mut self, slot: Slot) -> Self {
        self.slot = Some(slot);
        self
    }

    /// Defines the sandbox's tools in a restored guest.
    pub(super) async fn define(&self) -> Result<(), Error> {
        let Policy { tools, submit, modules, .. } = &*self.policy;
        let modules = modules.defined();
        if tools.is_empty() && submit.is_empty() && modules.is_none() {
            return Ok(());
        }
        self.shared.define(tools.clone(), submit.clone(), modules).await
    }
}

/// Returns what keeps the state of a session of this sandbox, if it has checkpoints.
pub(super) fn keeper(engine: &Engine, policy: &Policy) -> Option<Keeper> {
    policy.has_checkpoints.then(|| Keeper::new(Arc::clone(engine.checkpointer()), 0))
}

/// Returns a number for a session.
pub(super) fn next_id() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// Has the host of a session expect the calls of its sandbox's tools, and returns what the session
/// starts up with.
pub(super) fn startup(host: &SessionHost, policy: &Policy) -> Startup {
    // Environment variables may be secrets of their owner. The rest needs nothing of this session's
    // host: no mount is within another one, whose files only the host knows.
    let is_general = policy.permissions.env.is_empty();
    Startup::new(start_command(host, policy), is_general)
}

/// The same, as a command.
pub(super) fn start_command(host: &SessionHost, policy: &Policy) -> StartCommand {
    let Policy { env, terminal, tools, submit, modules, determinism, .. } = policy;
    for tool in tools {
        host.tools().register_if_new(tool);
    }
    StartCommand {
        env: env.clone(),
        terminal: *terminal,
        has_packages: host.packages().any_allowed(),
        mounts: host.mount_points().to_vec(),
        functions: definitions(host, tools, submit, modules.defined()),
        determinism: *determinism,
    }
}

/// Returns the parts of a session's host.
pub(super) fn config<'a>(id: u64, engine: &'a Engine, policy: &'a Policy) -> HostConfig<'a> {
    HostConfig {
        session: id,
        limits: &policy.limits,
        mounts: &policy.permissions.mounts,
        net: &policy.permissions.net,
        packages: &policy.packages,
        preload: engine.preload(),
        audit: policy.audit.clone(),
        modules: &policy.modules,
    }
}
