//! Connections of one session that no request is using, each kept for one target.

use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use rustix::net::RecvFlags;
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::connection::{Connection, check_peer};
use super::limits::NetLimits;
use super::target::CheckedTarget;

/// The target that a connection was opened for. It is never used for another one, not even for the
/// same name with other addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    https: bool,
    host: String,
    port: u16,
    addresses: Vec<IpAddr>,
}

impl Key {
    pub(super) fn of(target: &CheckedTarget) -> Self {
        let mut addresses = target.addresses().to_vec();
        addresses.sort_unstable();
        let host = target.host().to_string();
        Self { https: target.is_https(), host, port: target.port(), addresses }
    }
}

/// The idle connections of a session.
#[derive(Default)]
pub(super) struct Pool(Mutex<State>);

#[derive(Default)]
struct State {
    idle: Vec<Idle>,
    /// In the order in which they were reached.
    reached: Vec<Reached>,
    closed: bool,
}

struct Idle {
    key: Key,
    connection: Connection,
    since: Instant,
}

/// A server that was connected to, and that nothing was sent to.
struct Reached {
    host: String,
    port: u16,
    addresses: Vec<IpAddr>,
    stream: TcpStream,
    since: Instant,
}

impl Pool {
    /// Takes a connection that is ready for use.
    pub(super) fn take(&self, key: &Key) -> Option<Connection> {
        let mut state = self.state();
        state.idle.retain(Idle::is_usable);
        let newest = state.idle.iter().rposition(|idle| idle.key == *key)?;
        Some(state.idle.remove(newest).connection)
    }

    /// Keeps a connection. If there are too many, the oldest one is closed.
    pub(super) fn put(&self, key: Key, connection: Connection) {
        let mut state = self.state();
        if state.closed {
            return;
        }
        state.idle.retain(Idle::is_usable);
        if state.idle.len() >= NetLimits::IDLE_CONNECTIONS {
            state.idle.remove(0);
        }
        state.idle.push(Idle { key, connection, since: Instant::now() });
    }

    /// Returns `true` if the next request to the target's server needs no new connection.
    pub(super) fn has(&self, target: &CheckedTarget) -> bool {
        let key = Key::of(target);
        let mut state = self.state();
        state.idle.retain(Idle::is_usable);
        state.idle.iter().any(|idle| Key { https: key.https, ..idle.key.clone() } == key)
    }

    /// Keeps a connection that nothing was sent on. If there are too many, the oldest is closed.
    pub(super) fn put_reached(&self, target: &CheckedTarget, stream: TcpStream) {
        let mut state = self.state();
        if state.closed {
            return;
        }
        state.reached.retain(Reached::is_usable);
        if state.reached.len() >= NetLimits::IDLE_CONNECTIONS {
            state.reached.remove(0);
        }
        state.reached.push(Reached {
            host: target.host().to_string(),
            port: target.port(),
            addresses: target.addresses().to_vec(),
            stream,
            since: Instant::now(),
        });
    }

    /// Takes a connection to the target's server that nothing was sent on.
    pub(super) fn take_reached(&self, target: &CheckedTarget) -> Option<TcpStream> {
        let host = target.host().to_string();
        let mut state = self.state();
        state.reached.retain(Reached::is_usable);
        let is_same = |reached: &Reached| reached.port == target.port() && reached.host == host;
        let newest = state.reached.iter().rposition(is_same)?;
        let stream = state.reached.remove(newest).stream;
        let peer = stream.peer_addr().ok()?;
        let is_vetted = check_peer(peer, &target.sockets(), &host).is_ok();
        (is_vetted && is_open(&stream)).then_some(stream)
    }

    /// Returns the addresses of a name that was connected to a moment ago for a request which
    /// follows. They are checked again like an answer of the resolver.
    pub(super) fn addresses(&self, name: &str) -> Option<Vec<IpAddr>> {
        let mut state = self.state();
        state.reached.retain(Reached::is_usable);
        let reached = state.reached.iter().rfind(|reached| reached.host == name)?;
        Some(reached.addresses.clone())
    }

    /// Closes all connections. None are kept from now on.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.idle.clear();
        state.reached.clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the peer of a connection that nothing was sent on has neither closed it nor sent what
/// nobody has asked for.
fn is_open(stream: &TcpStream) -> bool {
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    rustix::net::recv(stream, &mut [0; 1], flags).is_err_and(|error| error == Errno::AGAIN)
}

impl Reached {
    fn is_usable(&self) -> bool {
        self.since.elapsed() < NetLimits::IDLE_TIME
    }
}

impl Idle {
    fn is_usable(&self) -> bool {
        self.connection.is_ready() && self.since.elapsed() < NetLimits::IDLE_TIME
    }
}
