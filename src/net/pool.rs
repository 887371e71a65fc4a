//! Idle connections of one session, each kept for one target.

use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::connection::Connection;
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
    closed: bool,
}

struct Idle {
    key: Key,
    connection: Connection,
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

    /// Closes all connections. None are kept from now on.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.idle.clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Idle {
    fn is_usable(&self) -> bool {
        self.connection.is_ready() && self.since.elapsed() < NetLimits::IDLE_TIME
    }
}
