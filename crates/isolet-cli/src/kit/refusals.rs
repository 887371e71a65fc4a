//! Why the last request of a run was refused. The guest is not told, because it would learn of the
//! host's network; the user of the command is.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use isolet::internals::lock;
use isolet::{Access, AuditEvent, Execution, Outcome};

/// The last request that was refused, for all sessions of a sandbox.
#[derive(Clone, Default)]
pub(crate) struct Refusals(Arc<Mutex<Option<Refusal>>>);

struct Refusal {
    host: String,
    port: u16,
    /// The address for which it was refused, if the name was looked up.
    address: Option<String>,
    reason: String,
}

impl Refusals {
    /// Remembers a refused request.
    pub(crate) fn note(&self, event: &AuditEvent) {
        let Access::Network { host, port, .. } = &event.access else { return };
        if event.allowed {
            return;
        }
        let (reason, address) = match event.reason.split_once(": ") {
            Some((reason, address)) => (reason, Some(address.to_owned())),
            None => (&*event.reason, None),
        };
        let refusal = Refusal { host: host.clone(), port: *port, address, reason: reason.into() };
        *lock(&self.0) = Some(refusal);
    }

    /// Forgets the last refusal, and returns what would have allowed the request, if the run failed
    /// after it.
    pub(crate) fn hint(&self, execution: &Execution) -> Option<String> {
        let refusal = lock(&self.0).take()?;
        let has_failed = match execution.outcome() {
            Outcome::Raised(_) => true,
            Outcome::Exited(status) => *status != 0,
            _ => false,
        };
        has_failed.then(|| refusal.hint())
    }
}

impl Refusal {
    fn hint(&self) -> String {
        let Self { host, port, address, reason } = self;
        let server = match port {
            0 | 80 | 443 => host.clone(),
            port => format!("{host}:{port}"),
        };
        let own = host.trim_matches(['[', ']']);
        let is_address = own.parse::<IpAddr>().is_ok();
        let address = address.as_deref().or_else(|| is_address.then_some(own));
        let what = |address: &str| {
            if is_address {
                address.to_owned()
            } else {
                format!("`{host}` resolves to {address}, which")
            }
        };
        match (reason.as_str(), address) {
            ("no rule allows it", _) => {
                format!("`--allow-net {server}` allows requests to this server")
            }
            ("a rule denies it", _) => format!("`--deny-net` denies requests to `{host}`"),
            ("a rule denies its address", Some(address)) => {
                format!("{} is denied by `--deny-net`", what(address))
            }
            ("its address is a cloud's metadata service", Some(address)) => format!(
                "{} is a cloud's metadata service; `--allow-net {address}` allows it",
                what(address)
            ),
            (kind, Some(address)) if self.address.is_some() || KINDS.contains(&kind) => format!(
                "{} is not public but {kind}; `--allow-net {address}` allows it",
                what(address)
            ),
            (reason, _) => format!("the request to `{server}` was refused: {reason}"),
        }
    }
}

/// Kinds of addresses that are not public.
const KINDS: [&str; 5] = ["private", "loopback", "link-local", "for documentation", "multicast"];

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(host: &str, port: u16, reason: &str, address: Option<&str>) -> String {
        let (host, address) = (host.to_owned(), address.map(str::to_owned));
        Refusal { host, port, address, reason: reason.to_owned() }.hint()
    }

    #[test]
    fn the_reason_of_a_refusal_comes_with_the_option_that_allows_it() {
        assert_eq!(
            hint("db.example", 443, "private", Some("10.1.2.3")),
            "`db.example` resolves to 10.1.2.3, which is not public but private; \
             `--allow-net 10.1.2.3` allows it"
        );
        assert_eq!(
            hint("127.0.0.1", 80, "loopback", None),
            "127.0.0.1 is not public but loopback; `--allow-net 127.0.0.1` allows it"
        );
        assert_eq!(
            hint("a.example", 8443, "no rule allows it", None),
            "`--allow-net a.example:8443` allows requests to this server"
        );
        assert_eq!(
            hint("a.example", 9, "no HTTP request goes to this port", None),
            "the request to `a.example:9` was refused: no HTTP request goes to this port"
        );
    }
}
