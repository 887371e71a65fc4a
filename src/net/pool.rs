//! Connections that are kept alive, for one session and one target each.

use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::connection::Connection;
use super::limits::NetLimits;
use super::target::CheckedTarget;

/// What a connection was opened for. It serves nothing else: not the same name with other
/// addresses.
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
    /// Takes a connection that can be used at once.
    pub(super) fn take(&self, key: &Key) -> Option<Connection> {
        let mut state = self.state();
        state.idle.retain(Idle::is_usable);
        let newest = state.idle.iter().rposition(|idle| idle.key == *key)?;
        Some(state.idle.remove(newest).connection)
    }

    /// Keeps a connection, in the place of the oldest one if there are too many.
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

    /// Closes all connections and keeps none from now on.
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
