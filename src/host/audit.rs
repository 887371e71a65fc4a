//! The audit log: reports what the guest was allowed and denied, as it happens.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use crate::data::execution::LimitKind;
use crate::data::limits::Limits;
use crate::host::stop::RunCounters;

/// A decision of the host about an access by the guest.
///
/// Events are reported in the order of the decisions, before an allowed access takes place.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuditEvent {
    /// The number of the session, as returned by [`SessionHandle::id`](crate::SessionHandle::id).
    pub session: u64,
    /// When the host decided.
    pub time: SystemTime,
    /// `true` if the access was allowed.
    pub allowed: bool,
    /// What the guest tried to access.
    pub access: Access,
    /// Why the access was allowed or denied. For the owner: the text may contain details that the
    /// guest must not see.
    pub reason: String,
}

/// An access that a guest attempts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Access {
    /// A network request.
    Network {
        /// The HTTP method.
        method: String,
        /// `http` or `https`.
        scheme: String,
        /// The host name in the form that was compared with the rules.
        host: String,
        /// The port.
        port: u16,
        /// The addresses of the name, if it was looked up.
        addresses: Vec<IpAddr>,
        /// The number of redirects before this request.
        hop: u32,
    },
    /// A file beneath a mount point: opening, creating, removing, renaming. Reads and writes of an
    /// open file are not reported.
    File {
        /// The operation, such as `open for reading`.
        operation: String,
        /// The guest path.
        path: String,
    },
    /// A package that the guest imports.
    Package {
        /// The name of the module, or of the package if the owner loads it.
        name: String,
    },
    /// WebAssembly code to be compiled.
    Module {
        /// The sha256 of the code, in hexadecimal.
        sha256: String,
    },
    /// A tool.
    Tool {
        /// The tool's name, as the guest gave it.
        name: String,
    },
    /// The session itself, which its owner has forked.
    Fork {
        /// The number of the copy.
        copy: u64,
    },
    /// Stands for the events beyond [`Limits::AUDIT_EVENTS`](Limits::AUDIT_EVENTS) in a run, which
    /// are not reported one by one.
    Dropped {
        /// The number of these events.
        events: u64,
    },
}

/// The function that receives events.
pub(crate) type AuditSink = Arc<dyn Fn(&AuditEvent) + Send + Sync>;

/// The function that says, by a session's number, whether an access could be logged now.
pub(crate) type AuditGate = Arc<dyn Fn(u64) -> Result<(), String> + Send + Sync>;

/// Who is reported of accesses, and asked before them.
#[derive(Clone, Default)]
pub(crate) struct Auditor {
    pub(crate) sink: Option<AuditSink>,
    pub(crate) gate: Option<AuditGate>,
    /// Told of what is denied, and of nothing that an image does.
    pub(crate) refusals: Option<AuditSink>,
}

impl Auditor {
    /// Returns `true` if somebody is told of all accesses, or asked.
    pub(crate) fn is_set(&self) -> bool {
        self.sink.is_some() || self.gate.is_some()
    }
}

/// A session's access to the sink, with a limit so that a guest cannot flood it. Also counts
/// refusals, because every refusal is reported here.
#[derive(Clone)]
pub(crate) struct AuditLog {
    listener: Option<Arc<Listener>>,
    gate: Option<AuditGate>,
    refusals: Option<AuditSink>,
    session: u64,
    counters: Arc<RunCounters>,
}

struct Listener {
    sink: AuditSink,
    session: u64,
    reported: AtomicU64,
}

impl AuditLog {
    pub(crate) fn new(auditor: Auditor, session: u64, counters: Arc<RunCounters>) -> Self {
        let Auditor { sink, gate, refusals } = auditor;
        let listener =
            sink.map(|sink| Arc::new(Listener { sink, session, reported: AtomicU64::new(0) }));
        Self { listener, gate, refusals, session, counters }
    }

    /// Asks before an access that is allowed otherwise. What cannot be logged must not happen; the
    /// error says why it cannot.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.gate.as_ref().map_or(Ok(()), |gate| gate(self.session))
    }

    /// Reports a decision if there is a sink.
    pub(crate) fn tell(&self, allowed: bool, reason: String, access: impl FnOnce() -> Access) {
        if !allowed {
            self.counters.add(LimitKind::Refusals);
        }
        let refusals = self.refusals.as_ref().filter(|_| !allowed);
        let listener = self.listener.as_ref().filter(|listener| listener.has_room());
        if refusals.is_none() && listener.is_none() {
            return;
        }
        let (session, time, access) = (self.session, SystemTime::now(), access());
        let event = AuditEvent { session, time, allowed, access, reason };
        if let Some(refusals) = refusals {
            refusals(&event);
        }
        if let Some(listener) = listener {
            (listener.sink)(&event);
        }
    }

    /// Ends a run and its count of events.
    pub(crate) fn end_run(&self) {
        let Some(inner) = &self.listener else { return };
        let events = inner.reported.swap(0, Ordering::Relaxed).saturating_sub(Limits::AUDIT_EVENTS);
        if events > 0 {
            let reason = format!("limit {} events a run", Limits::AUDIT_EVENTS);
            inner.tell(false, reason, Access::Dropped { events });
        }
    }
}

impl Listener {
    /// Counts an event. Returns `true` if it is reported.
    fn has_room(&self) -> bool {
        self.reported.fetch_add(1, Ordering::Relaxed) < Limits::AUDIT_EVENTS
    }

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
