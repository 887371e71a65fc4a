//! The kernels of a node: each has a task, which passes messages between it and its connections.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use isolet::internals::lock;
use isolet_jupyter::kernel::{Arrival, Ended, Ends, Options};
use isolet_jupyter::message::{Message, MessageKind, To};
use serde::Deserialize;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::message;
use super::sessions::KernelSessions;
use crate::http::problem::Problem;
use isolet_service::node::{Node, Tenant};

/// The most bytes of messages that a connection has not taken yet.
const UNREAD_BYTES: usize = 32 << 20;

/// The most connections of a kernel.
const CONNECTIONS: usize = 100;

/// How long a kernel takes to end or to restart in order, before it is dropped.
const GRACE: Duration = Duration::from_secs(5);

/// The most bytes of output of each stream of a cell.
const OUTPUT_BYTES: u64 = 16 << 20;

/// All kernels, by their ids.
#[derive(Default)]
pub(super) struct Kernels(Mutex<HashMap<String, Arc<Kernel>>>);

/// A kernel, as its routes see it.
pub(super) struct Kernel {
    id: String,
    tenant: String,
    state: Mutex<State>,
    next_connection: AtomicU64,
    /// Notified when the kernel is to be dropped where it is.
    dropped: Notify,
    /// Notified when a kernel has taken the place of the one that ended.
    restarted: Notify,
    /// Cancelled when it has ended.
    ended: CancellationToken,
}

struct State {
    /// `starting`, `idle` or `busy`.
    phase: String,
    used: Instant,
    used_at: SystemTime,
    arrivals: mpsc::Sender<Arrival>,
    connections: HashMap<u64, Outlet>,
}

/// The way to a connection.
struct Outlet {
    messages: mpsc::UnboundedSender<Bytes>,
    /// The bytes of messages in it.
    unread: Arc<AtomicUsize>,
}

/// A connection's end of a kernel.
pub(super) struct Connection {
    kernel: Arc<Kernel>,
    pub(super) number: u64,
    messages: mpsc::UnboundedReceiver<Bytes>,
    unread: Arc<AtomicUsize>,
}

#[derive(Deserialize)]
struct Status {
    execution_state: String,
}

impl Kernels {
    /// Starts a kernel.
    pub(super) async fn start(
        this: &Arc<Self>,
        node: &Arc<Node>,
        tenant: &Arc<Tenant>,
    ) -> Result<Arc<Kernel>, Problem> {
        let sessions = KernelSessions::start(node, tenant).await?;
        let failed = |error: anyhow::Error| Problem::unreadable(error.to_string());
        let (core, arrivals) = Core::new(sessions).map_err(failed)?;
        let state = State {
            phase: "starting".to_owned(),
            used: Instant::now(),
            used_at: SystemTime::now(),
            arrivals,
            connections: HashMap::new(),
        };
        let kernel = Arc::new(Kernel {
            id: id().map_err(|error| Problem::unreadable(error.to_string()))?,
            tenant: tenant.name.clone(),
            state: Mutex::new(state),
            next_connection: AtomicU64::new(1),
            dropped: Notify::new(),
            restarted: Notify::new(),
            ended: CancellationToken::new(),
        });
        lock(&this.0).insert(kernel.id.clone(), Arc::clone(&kernel));
        let removed = Removed { kernels: Arc::clone(this), kernel: Arc::clone(&kernel) };
        let work = Arc::clone(&kernel).serve(Arc::clone(node), Arc::clone(tenant), core);
        tokio::spawn(async move {
            work.await;
            drop(removed);
        });
        Ok(kernel)
    }

    /// Returns a tenant's kernel.
    pub(super) fn get(&self, tenant: &Tenant, id: &str) -> Option<Arc<Kernel>> {
        let kernels = lock(&self.0);
        kernels.get(id).filter(|kernel| kernel.tenant == tenant.name).cloned()
    }

    /// Returns the kernels of a tenant.
    pub(super) fn all(&self, tenant: &Tenant) -> Vec<Arc<Kernel>> {
        let kernels = lock(&self.0);
        let own = kernels.values().filter(|kernel| kernel.tenant == tenant.name);
        own.cloned().collect()
    }
}

/// Removes a kernel from the table when it has ended, also by a panic.
struct Removed {
    kernels: Arc<Kernels>,
    kernel: Arc<Kernel>,
}

impl Drop for Removed {
    fn drop(&mut self) {
        lock(&self.kernels.0).remove(&self.kernel.id);
        lock(&self.kernel.state).connections.clear();
        self.kernel.ended.cancel();
    }
}

/// Returns a new id, in the form of a UUID.
fn id() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    let mut id = format!("{:032x}", u128::from_be_bytes(bytes));
    for at in [20, 16, 12, 8] {
        id.insert(at, '-');
    }
    Ok(id)
}

impl Kernel {
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn execution_state(&self) -> String {
        lock(&self.state).phase.clone()
    }

    pub(super) fn last_activity(&self) -> String {
        humantime::format_rfc3339_micros(lock(&self.state).used_at).to_string()
    }

    pub(super) fn connections(&self) -> usize {
        lock(&self.state).connections.len()
    }

    /// Returns a token that is cancelled when the kernel has ended.
    pub(super) fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    /// Passes something on to the kernel, once it has room. It is lost if the kernel has ended.
    pub(super) async fn send(&self, arrival: Arrival) {
        let arrivals = lock(&self.state).arrivals.clone();
        let _ = arrivals.send(arrival).await;
    }

    pub(super) async fn interrupt(&self) {
        let _ = timeout(GRACE, self.send(Arrival::Interrupt)).await;
    }

    /// Ends the kernel with its session.
    pub(super) async fn end(&self) {
        let ask = async {
            self.shut_down(false).await;
            self.ended.cancelled().await;
        };
        if timeout(GRACE, ask).await.is_err() {
            self.dropped.notify_one();
            self.ended.cancelled().await;
        }
    }

    /// Has a kernel with a new session take the place of this one.
    pub(super) async fn restart(&self) -> Result<(), Problem> {
        let ask = async {
            let restarted = self.restarted.notified();
            self.shut_down(true).await;
            tokio::select! {
                () = restarted => true,
                () = self.ended.cancelled() => false,
            }
        };
        match timeout(GRACE, ask).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(Problem::nothing("the kernel has ended; start another one")),
            Err(_) => Err(Problem::busy(
                "the kernel does not end to be restarted; delete it and start another one",
            )),
        }
    }

    async fn shut_down(&self, restarts: bool) {
        let content = BTreeMap::from([("restart", restarts)]);
        self.send(Arrival::Request(message::own("shutdown_request", &content))).await;
    }

    /// Adds a connection.
    pub(super) fn connect(self: &Arc<Self>) -> Result<Connection, Problem> {
        let number = self.next_connection.fetch_add(1, Ordering::Relaxed);
        let (sender, messages) = mpsc::unbounded_channel();
        let unread = Arc::<AtomicUsize>::default();
        let mut state = lock(&self.state);
        if state.connections.len() == CONNECTIONS {
            return Err(Problem::busy(format!("connections of a kernel: limit {CONNECTIONS}")));
        }
        let outlet = Outlet { messages: sender, unread: Arc::clone(&unread) };
        state.connections.insert(number, outlet);
        drop(state);
        Ok(Connection { kernel: Arc::clone(self), number, messages, unread })
    }

    /// Serves until a client, the node or the end of its session ends the kernel.
    async fn serve(self: Arc<Self>, node: Arc<Node>, tenant: Arc<Tenant>, mut core: Core) {
        loop {
            let Core { kernel, mut messages, current } = core;
            let ended = tokio::select! {
                ended = kernel.serve() => ended.ok(),
                () = self.pass_on(&mut messages) => None,
                () = until_ended(current) => None,
                () = self.dropped.notified() => None,
                () = self.until_unused(node.idle()) => None,
            };
            while let Ok(message) = messages.try_recv() {
                self.publish(&message);
            }
            if !matches!(ended, Some(Ended::Shutdown { restarts: true })) {
                return;
            }
            let Ok(sessions) = KernelSessions::start(&node, &tenant).await else { return };
            let Ok((next, arrivals)) = Core::new(sessions) else { return };
            lock(&self.state).arrivals = arrivals;
            self.restarted.notify_waiters();
            core = next;
        }
    }

    /// Passes the kernel's messages on.
    async fn pass_on(&self, messages: &mut mpsc::Receiver<Message>) {
        while let Some(message) = messages.recv().await {
            self.publish(&message);
        }
        // The kernel itself tells how it has ended.
        std::future::pending::<()>().await;
    }

    fn publish(&self, message: &Message) {
        // What a kernel writes is JSON.
        let Ok(text) = message::write(message) else { return };
        let text = Bytes::from(text);
        let mut state = lock(&self.state);
        if message.kind == MessageKind::Status
            && let Ok(status) = serde_json::from_str::<Status>(&message.content)
        {
            state.phase = status.execution_state;
        }
        (state.used, state.used_at) = (Instant::now(), SystemTime::now());
        match &message.to {
            // One that does not read is closed: its messages would fill the memory.
            To::Everybody => state.connections.retain(|_, outlet| outlet.put(&text)),
            To::Peer(_, peer) => {
                let is_full = |outlet: &Outlet| !outlet.put(&text);
                if state.connections.get(&peer.connection).is_some_and(is_full) {
                    state.connections.remove(&peer.connection);
                }
            }
        }
    }

    /// Waits until the kernel has been idle and without connections for this time.
    async fn until_unused(&self, idle: Duration) {
        loop {
            let left = {
                let state = lock(&self.state);
                let is_used = !state.connections.is_empty() || state.phase == "busy";
                if is_used { idle } else { idle.saturating_sub(state.used.elapsed()) }
            };
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left).await;
        }
    }
}

/// A kernel without a transport, and what comes from it.
struct Core {
    kernel: isolet_jupyter::kernel::Kernel<KernelSessions>,
    messages: mpsc::Receiver<Message>,
    current: watch::Receiver<Option<CancellationToken>>,
}

impl Core {
    /// Makes a kernel. Returns it with the way to it.
    fn new(sessions: KernelSessions) -> anyhow::Result<(Self, mpsc::Sender<Arrival>)> {
        let options = Options {
            trusts_output: false,
            max_output_bytes: Some(OUTPUT_BYTES),
            access: "what the node's configuration allows".to_owned(),
        };
        let current = sessions.current();
        let (kernel, Ends { arrivals, messages }) =
            isolet_jupyter::kernel::kernel(sessions, options)?;
        Ok((Self { kernel, messages, current }, arrivals))
    }
}

/// Waits until the session that a kernel has was ended by the node.
async fn until_ended(mut current: watch::Receiver<Option<CancellationToken>>) {
    loop {
        let token = current.borrow_and_update().clone().unwrap_or_default();
        tokio::select! {
            biased;
            changed = current.changed() => {
                if changed.is_err() {
                    // The kernel has ended, which it tells itself.
                    std::future::pending::<()>().await;
                }
            }
            () = token.cancelled() => return,
        }
    }
}

impl Outlet {
    /// Adds a message. Returns `false` if there is no room, or no connection any more.
    fn put(&self, text: &Bytes) -> bool {
        let unread = self.unread.fetch_add(text.len(), Ordering::AcqRel) + text.len();
        unread <= UNREAD_BYTES.max(text.len()) && self.messages.send(text.clone()).is_ok()
    }
}

impl Connection {
    pub(super) fn kernel(&self) -> &Arc<Kernel> {
        &self.kernel
    }

    /// Waits for the next message; `None` if the connection is to be closed.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        let text = self.messages.recv().await?;
        self.unread.fetch_sub(text.len(), Ordering::AcqRel);
        Some(text)
    }

    /// Returns why there are no messages any more.
    pub(super) fn reason(&self) -> String {
        if self.kernel.ended.is_cancelled() {
            return "the kernel has ended".to_owned();
        }
        format!("unread messages: limit {UNREAD_BYTES} bytes")
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut state = lock(&self.kernel.state);
        state.connections.remove(&self.number);
        state.used = Instant::now();
    }
}
