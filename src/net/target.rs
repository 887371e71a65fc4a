//! The decision: whether a URL may be requested, and at which addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use url::{Position, Url};

use super::error::{NetError, NetErrorKind};
use super::limits::NetLimits;
use super::resolve::Resolve;
use super::rules::{Host, NetPolicy, Origin, is_bad_port};

/// A URL that may be requested, and the addresses to connect to.
///
/// Only [`decide`] makes one, and every connection needs one: the fields, and the only constructor,
/// are private to this file.
#[derive(Clone, Debug)]
pub(crate) struct CheckedTarget {
    url: Url,
    origin: Origin,
    host: Host,
    port: u16,
    addresses: Vec<IpAddr>,
}

impl CheckedTarget {
    /// Returns the URL, with the canonical host.
    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    pub(crate) fn origin(&self) -> &Origin {
        &self.origin
    }

    pub(crate) fn host(&self) -> &Host {
        &self.host
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn is_https(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// Returns the addresses, in the order of the answer, without duplicates.
    pub(crate) fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }

    pub(crate) fn sockets(&self) -> Vec<SocketAddr> {
        self.addresses.iter().map(|address| SocketAddr::new(*address, self.port)).collect()
    }

    /// Returns host and port in the form for messages.
    pub(crate) fn server(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

/// Why a URL may not be requested, or why its name could not be resolved.
#[derive(Clone, Debug)]
pub(crate) struct Denial {
    pub(crate) scheme: String,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) reason: String,
    cause: Cause,
}

#[derive(Clone, Debug)]
enum Cause {
    Policy,
    Unlogged,
    NotFound,
    Slow(Duration),
    ManyAddresses(usize),
}

impl Denial {
    /// Makes the denial of a URL for a reason unrelated to it. Nothing is looked up.
    pub(super) fn of(url: &str, reason: &str) -> Self {
        Parsed::new(url).map_or_else(|denial| denial, |parsed| parsed.deny(reason))
    }

    /// Makes the denial of an allowed target, because the decision cannot be reported.
    pub(super) fn unlogged(target: &CheckedTarget, reason: String) -> Self {
        Self {
            scheme: target.url.scheme().to_owned(),
            host: target.host().to_string(),
            port: target.port(),
            addresses: target.addresses().to_vec(),
            reason,
            cause: Cause::Unlogged,
        }
    }

    /// Returns the error for the guest. It omits the reason, which would reveal the host's network.
    pub(crate) fn to_error(&self) -> NetError {
        let host = &self.host;
        match self.cause {
            Cause::Policy => {
                let server =
                    if self.port == 0 { host.clone() } else { format!("{host}:{}", self.port) };
                let message = format!(
                    "network access to {server} is not allowed; allow-net does not cover it"
                );
                NetError::new(NetErrorKind::Denied, message)
            }
            Cause::Unlogged => {
                let message = format!(
                    "network access to {host}:{} is not possible: the host cannot log it",
                    self.port
                );
                NetError::new(NetErrorKind::Denied, message)
            }
            Cause::NotFound => {
                let message = format!("[Errno -2] Name or service not known: {host}");
                NetError::new(NetErrorKind::NotFound, message)
            }
            Cause::Slow(limit) => NetError::timeout(&format!("resolving {host}"), limit),
            Cause::ManyAddresses(count) => {
                let what = format!("addresses of {host}");
                NetError::limit(&what, NetLimits::ADDRESSES as u64, count as u64)
            }
        }
    }
}

/// Decides about a URL: parses it, compares the canonical host with the rules, and checks every
/// address.
///
/// A name is looked up at most once, and only if the policy allows it as a name.
pub(crate) async fn decide(
    policy: &NetPolicy,
    resolver: &dyn Resolve,
    resolve_time: Duration,
    url: &str,
) -> Result<CheckedTarget, Denial> {
    let parsed = Parsed::new(url)?;
    if let Err(reason) = policy.check_host(&parsed.host, parsed.port) {
        return Err(parsed.deny(reason));
    }
    let mut addresses = match &parsed.host {
        Host::Address(address) => vec![*address],
        Host::Name(_) if parsed.host.is_localhost() => {
            vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]
        }
        Host::Name(name) => match policy.answer(name) {
            Some(addresses) => addresses.to_vec(),
            None => match tokio::time::timeout(resolve_time, resolver.lookup(name)).await {
                Ok(Ok(addresses)) => addresses,
                Ok(Err(error)) => {
                    return Err(
                        parsed.fail(&format!("resolving it failed: {error}"), Cause::NotFound)
                    );
                }
                Err(_) => {
                    return Err(parsed.fail("resolving it is slow", Cause::Slow(resolve_time)));
                }
            },
        },
    };
    for address in &mut addresses {
        *address = address.to_canonical();
    }
    let mut seen = std::collections::HashSet::new();
    addresses.retain(|address| seen.insert(*address));
    if addresses.is_empty() {
        return Err(parsed.fail("it has no address", Cause::NotFound));
    }
    if addresses.len() > NetLimits::ADDRESSES {
        let cause = Cause::ManyAddresses(addresses.len());
        return Err(parsed.fail("it has too many addresses", cause));
    }
    // One denied address denies the name. Otherwise a name could mix public addresses with those of
    // the host's network.
    let check = |address: &IpAddr| policy.check_address(&parsed.host, parsed.port, *address).err();
    if let Some((address, reason)) = addresses.iter().find_map(|a| Some((*a, check(a)?))) {
        let reason = format!("{reason}: {address}");
        return Err(Denial { addresses, ..parsed.deny(&reason) });
    }
    let Parsed { url, origin, host, port } = parsed;
    Ok(CheckedTarget { url, origin, host, port, addresses })
}

/// Decides, as far as that is possible without a DNS lookup, whether any request to a server may be
/// allowed. Used to refuse a connection before a request is written to it.
pub(crate) fn precheck(policy: &NetPolicy, host: &str, port: u32) -> Result<(), Denial> {
    let parsed = Parsed::new(&server_url(host, port))?;
    // A text that the guest takes for a host may contain other parts of a URL, which would hide the
    // port.
    let (path, more) = (parsed.url.path(), &parsed.url[Position::AfterPath..]);
    let checked = match &parsed.host {
        _ if path != "/" || !more.is_empty() => Err("it is no host name"),
        host => policy.check_host(host, parsed.port),
    };
    match (checked, &parsed.host) {
        (Err(reason), _) => Err(parsed.deny(reason)),
        (Ok(()), Host::Address(address)) => policy
            .check_address(&parsed.host, parsed.port, *address)
            .map_err(|reason| parsed.deny(reason)),
        (Ok(()), Host::Name(_)) => Ok(()),
    }
}

/// Returns a URL of a server, for a decision about a connection to it.
pub(crate) fn server_url(host: &str, port: u32) -> String {
    let bare = host.contains(':') && !host.starts_with('[');
    if bare { format!("http://[{host}]:{port}/") } else { format!("http://{host}:{port}/") }
}

/// A URL that can be requested if the policy allows it.
struct Parsed {
    url: Url,
    origin: Origin,
    host: Host,
    port: u16,
}

impl Parsed {
    fn new(text: &str) -> Result<Self, Denial> {
        let unparsed = |reason: &str| Denial {
            scheme: String::new(),
            host: shown(text),
            port: 0,
            addresses: Vec::new(),
            reason: reason.to_owned(),
            cause: Cause::Policy,
        };
        let mut url = Url::parse(text).map_err(|error| unparsed(&error.to_string()))?;
        let host = url.host().as_ref().and_then(Host::from_url);
        let host = host.ok_or_else(|| unparsed("the URL has no valid host"))?;
        let port = url.port_or_known_default().unwrap_or_default();
        let denied = |reason: &str| Denial {
            scheme: url.scheme().to_owned(),
            host: host.to_string(),
            port,
            ..unparsed(reason)
        };
        if !matches!(url.scheme(), "http" | "https") {
            return Err(denied("the scheme is not http or https"));
        }
        if let Some(reason) = ambiguity(text, url.scheme()) {
            return Err(denied(reason));
        }
        if is_bad_port(port) {
            return Err(denied("no HTTP request goes to this port"));
        }
        let canonical = host.to_string();
        if url.host_str() != Some(&canonical) && url.set_host(Some(&canonical)).is_err() {
            return Err(unparsed("the URL has no valid host"));
        }
        let origin = Origin::of(&url).ok_or_else(|| unparsed("the URL has no origin"))?;
        Ok(Self { url, origin, host, port })
    }

    fn deny(&self, reason: &str) -> Denial {
        self.fail(reason, Cause::Policy)
    }

    fn fail(&self, reason: &str, cause: Cause) -> Denial {
        Denial {
            scheme: self.url.scheme().to_owned(),
            host: self.host.to_string(),
            port: self.port,
            addresses: Vec::new(),
            reason: reason.to_owned(),
            cause,
        }
    }
}

/// Detects text that another URL parser could read as a different host.
fn ambiguity(text: &str, scheme: &str) -> Option<&'static str> {
    if text.contains(char::is_control) {
        return Some("the URL has control characters");
    }
    let Some((_, rest)) = text.split_once("://").filter(|(s, _)| s.eq_ignore_ascii_case(scheme))
    else {
        return Some("the URL does not begin with its scheme and `://`");
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    match authority {
        "" => Some("the URL has no host"),
        _ if authority.contains('\\') => Some("the host has a backslash"),
        _ if authority.contains('%') => Some("the host is percent-encoded"),
        _ if authority.contains('@') => Some("the URL has user information"),
        _ if authority.contains(char::is_whitespace) => Some("the host has white space"),
        _ => None,
    }
}

/// Returns what messages show of a URL without a canonical host: its authority, without user
/// information.
fn shown(text: &str) -> String {
    const SHOWN: usize = 100;
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let printable = |c: &char| c.is_ascii_graphic() || c.is_alphanumeric();
    let shown: String = host.chars().filter(printable).take(SHOWN).collect();
    if shown.is_empty() { "(no host)".to_owned() } else { shown }
}
