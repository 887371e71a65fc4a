//! DNS lookups.

use std::future::Future;
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::Semaphore;

use super::limits::NetLimits;
use super::pool::Pool;

/// The future of a lookup.
pub(crate) type Lookup<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// A source of addresses. A decision asks it once, and only for names that the policy allows.
pub(crate) trait Resolve: Send + Sync {
    /// Looks up a name. An empty result means that the name does not exist.
    fn lookup<'a>(&'a self, name: &'a str) -> Lookup<'a>;
}

/// A resolver that knows the addresses of the servers which are connected to.
pub(super) struct Reached<'a> {
    pub(super) pool: &'a Pool,
    pub(super) resolver: &'a dyn Resolve,
}

impl Resolve for Reached<'_> {
    fn lookup<'a>(&'a self, name: &'a str) -> Lookup<'a> {
        match self.pool.addresses(name) {
            Some(addresses) => Box::pin(std::future::ready(Ok(addresses))),
            None => self.resolver.lookup(name),
        }
    }
}

/// The system's resolver, with a limit on each session's concurrent lookups. They block threads
/// that all sessions share, and cannot be cancelled.
pub(super) struct SystemResolver {
    lookups: Arc<Semaphore>,
}

impl SystemResolver {
    pub(super) fn new() -> Self {
        Self { lookups: Arc::new(Semaphore::new(NetLimits::CONCURRENT_LOOKUPS)) }
    }
}

impl Resolve for SystemResolver {
    fn lookup<'a>(&'a self, name: &'a str) -> Lookup<'a> {
        Box::pin(async move {
            let permit =
                Arc::clone(&self.lookups).acquire_owned().await.map_err(io::Error::other)?;
            let name = name.to_owned();
            let lookup = move || {
                let _until_it_has_returned = permit;
                let addresses = (name.as_str(), 0).to_socket_addrs()?;
                Ok(addresses.map(|address| address.ip()).collect())
            };
            tokio::task::spawn_blocking(lookup).await.map_err(io::Error::other)?
        })
    }
}
