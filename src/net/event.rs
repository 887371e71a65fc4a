//! The events that report network decisions to the host.

use std::net::IpAddr;

use super::target::{CheckedTarget, Denial};

/// A decision, reported before any connection is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NetEvent {
    pub(crate) allowed: bool,
    pub(crate) method: String,
    pub(crate) scheme: String,
    /// The canonical host, or the guest's spelling if it has no canonical form.
    pub(crate) host: String,
    /// The port; 0 if there is none.
    pub(crate) port: u16,
    /// The addresses that were checked. They are not revealed to the guest.
    pub(crate) addresses: Vec<IpAddr>,
    /// Why the request was denied; empty if it was allowed.
    pub(crate) reason: String,
    /// The number of redirects before this request.
    pub(crate) hop: u32,
}

impl NetEvent {
    pub(super) fn new(decision: &Result<CheckedTarget, Denial>, method: &str, hop: u32) -> Self {
        let method = method.to_owned();
        match decision {
            Ok(target) => Self {
                allowed: true,
                method,
                scheme: target.url().scheme().to_owned(),
                host: target.host().to_string(),
                port: target.port(),
                addresses: target.addresses().to_vec(),
                reason: String::new(),
                hop,
            },
            Err(denial) => Self {
                allowed: false,
                method,
                scheme: denial.scheme.clone(),
                host: denial.host.clone(),
                port: denial.port,
                addresses: denial.addresses.clone(),
                reason: denial.reason.clone(),
                hop,
            },
        }
    }
}
