//! The audit log: what the guest was allowed and what it was denied, as it happens.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use crate::data::execution::LimitKind;
use crate::data::limits::Limits;
use crate::host::stop::RunCounters;

/// One decision of the host about the guest.
///
/// Events come in the order of the decisions, before what was allowed is done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuditEvent {
    /// The number of the session, as [`SessionHandle::id`](crate::SessionHandle::id) gives it.
    pub session: u64,
    /// When it was decided.
    pub time: SystemTime,
    /// Whether it was allowed.
    pub allowed: bool,
    /// What the guest wanted.
    pub access: Access,
    /// Why it was allowed or denied, in words. For the owner: it may say what the guest must not
    /// know.
    pub reason: String,
}

/// What a guest wants of its host.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Access {
    /// A request over the network.
    Network {
        /// The HTTP method.
        method: String,
        /// `http` or `https`.
        scheme: String,
        /// The host as it was compared with the rules.
        host: String,
        /// The port.
        port: u16,
        /// The addresses that the name has, if it was looked up.
        addresses: Vec<IpAddr>,
        /// How many redirects led here.
        hop: u32,
    },
    /// A file beneath a mount point: opening, creating, removing, renaming; reads and writes of an
    /// open file are not told.
    File {
        /// What was to be done, such as `open for reading`.
        operation: String,
        /// The guest's path.
        path: String,
    },
    /// A package that the guest imports.
    Package {
        /// The name of the module, or of the package if the owner loads it.
        name: String,
    },
    /// WebAssembly code to compile.
    Module {
        /// Its sha256, in hexadecimal digits.
        sha256: String,
    },
    /// A host function.
    Tool {
        /// Its name, as the guest gives it.
        name: String,
    },
    /// So many events were not told, because there were more than
    /// [`Limits::AUDIT_EVENTS`](Limits::AUDIT_EVENTS) in a run.
    Dropped {
        /// How many.
        events: u64,
    },
}

/// Where events go.
pub(crate) type AuditSink = Arc<dyn Fn(&AuditEvent) + Send + Sync>;

/// One session's way to the sink, which a guest cannot flood. Refusals are counted here, since
/// every one of them comes by.
#[derive(Clone)]
pub(crate) struct AuditLog {
    listener: Option<Arc<Listener>>,
    counters: Arc<RunCounters>,
}

struct Listener {
    sink: AuditSink,
    session: u64,
    told: AtomicU64,
}

impl AuditLog {
    pub(crate) fn new(sink: Option<AuditSink>, session: u64, counters: Arc<RunCounters>) -> Self {
        let listener =
            sink.map(|sink| Arc::new(Listener { sink, session, told: AtomicU64::new(0) }));
        Self { listener, counters }
    }

    /// Tells of a decision, if anybody listens.
    pub(crate) fn tell(&self, allowed: bool, reason: String, access: impl FnOnce() -> Access) {
        if !allowed {
            self.counters.add(LimitKind::Refusals);
        }
        let Some(inner) = &self.listener else { return };
        if inner.told.fetch_add(1, Ordering::Relaxed) < Limits::AUDIT_EVENTS {
            inner.tell(allowed, reason, access());
        }
    }

    /// A run ends, and with it the count of its events.
    pub(crate) fn end_run(&self) {
        let Some(inner) = &self.listener else { return };
        let events = inner.told.swap(0, Ordering::Relaxed).saturating_sub(Limits::AUDIT_EVENTS);
        if events > 0 {
            let reason = format!("limit {} events a run", Limits::AUDIT_EVENTS);
            inner.tell(false, reason, Access::Dropped { events });
        }
    }
}

impl Listener {
    fn tell(&self, allowed: bool, reason: String, access: Access) {
        let time = SystemTime::now();
        (self.sink)(&AuditEvent { session: self.session, time, allowed, access, reason });
    }
}

impl fmt::Debug for AuditLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditLog")
            .field("listened_to", &self.listener.is_some())
            .finish_non_exhaustive()
    }
}
