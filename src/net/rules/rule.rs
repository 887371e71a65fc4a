//! Parses a network rule.
//!
//! `rule = host [":" (port | "*")]`; a host is a name, `*.` and a name, `localhost`, an IPv4
//! address, an IPv6 address in brackets, or a block such as `10.1.0.0/16`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::address::{Block, with_embedded};
use super::host::Host;
use super::ports;

/// An invalid network rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the network rule `{}` {problem}", .entry.escape_debug())]
pub(crate) struct RuleError {
    entry: String,
    problem: String,
}

impl RuleError {
    pub(super) fn new(entry: &str, problem: impl Into<String>) -> Self {
        Self { entry: entry.to_owned(), problem: problem.into() }
    }
}

/// A rule: hosts and ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    hosts: Hosts,
    port: Port,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Hosts {
    /// This name.
    Name(String),
    /// Names with at least one more label than this one.
    Below(String),
    /// These addresses.
    Block(Block),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Port {
    Unsaid,
    Any,
    One(u16),
}

impl Rule {
    pub(super) fn parse(entry: &str) -> Result<Self, RuleError> {
        let fail = |problem: &str| Err(RuleError::new(entry, problem));
        if entry.is_empty() {
            return fail("is empty; leave it out to allow nothing");
        }
        if entry == "*" {
            return fail(
                "would cover every host; `Permissions::allow_public_net` allows the public network",
            );
        }
        let bad = [
            (',', "has a comma; give each rule by itself"),
            ('@', "has user information; a rule is a host and perhaps a port"),
            ('%', "has a percent sign; write the host plainly, without a zone"),
            ('\\', "has a backslash; a rule is a host and perhaps a port"),
            ('?', "has a query; a rule is a host and perhaps a port"),
            ('#', "has a fragment; a rule is a host and perhaps a port"),
        ];
        if entry.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return fail("has white space or control characters; write `host` or `host:port`");
        }
        if entry.contains("://") {
            return fail("has a scheme; write `host` or `host:port`");
        }
        if let Some((_, problem)) = bad.iter().find(|(c, _)| entry.contains(*c)) {
            return fail(problem);
        }
        let (host, port) = split_port(entry)?;
        let hosts = match host.split_once('/') {
            Some((network, prefix)) => Hosts::Block(block(entry, network, prefix)?),
            None => hosts(entry, host)?,
        };
        Ok(Self { hosts, port })
    }

    /// Rejects a rule that is too wide or has no effect as a rule that allows.
    pub(super) fn fit_to_allow(self, entry: &str) -> Result<Self, RuleError> {
        if let Hosts::Below(parent) = &self.hosts
            && !parent.contains('.')
        {
            return Err(RuleError::new(
                entry,
                "covers a whole public suffix; name at least two labels after `*.`, as in \
                 `*.example.com`",
            ));
        }
        match self.port {
            Port::One(port) if ports::is_bad(port) => Err(RuleError::new(
                entry,
                format!("never matches: no HTTP request goes to port {port}; name another port"),
            )),
            _ => Ok(self),
        }
    }

    /// Returns `true` if the rule covers this host, as it is named.
    pub(super) fn names(&self, host: &Host) -> bool {
        match (&self.hosts, host) {
            (Hosts::Name(rule), Host::Name(name)) => rule == name,
            (Hosts::Below(parent), Host::Name(name)) => {
                let below =
                    name.strip_suffix(parent.as_str()).and_then(|rest| rest.strip_suffix('.'));
                below.is_some_and(|rest| !rest.is_empty())
            }
            (Hosts::Block(block), Host::Address(address)) => block.contains(*address),
            _ => false,
        }
    }

    /// Returns `true` if this is a rule for addresses and covers this one.
    pub(super) fn contains(&self, address: IpAddr) -> bool {
        matches!(self.hosts, Hosts::Block(block) if block.contains(address))
    }

    /// Returns `true` if this is a rule for addresses and covers this one, or an IPv4 address that
    /// a tunnel would extract from it.
    pub(super) fn contains_embedded(&self, address: IpAddr) -> bool {
        with_embedded(address).any(|address| self.contains(address))
    }

    /// Returns `true` if the rule is for exactly this one address.
    pub(super) fn is_only(&self, address: IpAddr) -> bool {
        matches!(self.hosts, Hosts::Block(block) if block.is_only(address))
    }

    /// Returns `true` if the rule covers this port. `unsaid` is the result for a rule without a
    /// port.
    pub(super) fn has_port(&self, port: u16, unsaid: bool) -> bool {
        match self.port {
            Port::Unsaid => unsaid,
            Port::Any => true,
            Port::One(one) => one == port,
        }
    }
}

/// Parses a host name in any spelling. Returns `None` for addresses and invalid names.
pub(super) fn name(text: &str) -> Option<String> {
    let parsed = url::Host::parse(text).ok()?;
    match Host::from_url(&url::Host::Domain(match &parsed {
        url::Host::Domain(name) => name.as_str(),
        _ => return None,
    }))? {
        Host::Name(name) => Some(name),
        Host::Address(_) => None,
    }
}

fn split_port(entry: &str) -> Result<(&str, Port), RuleError> {
    if entry.parse::<Ipv6Addr>().is_ok() {
        return Err(RuleError::new(entry, format!("needs brackets; write `[{entry}]`")));
    }
    // The colons of an IPv6 address are before its bracket or its slash.
    let after = entry.find(['/', ']']).unwrap_or(0);
    let tail = entry.get(after..).unwrap_or_default();
    let Some(colon) = tail.find(':') else { return Ok((entry, Port::Unsaid)) };
    let (host, rest) = entry.split_at(after + colon);
    let port = match rest.get(1..).unwrap_or_default() {
        "*" => Port::Any,
        digits => decimal(digits).filter(|port| *port > 0).map(Port::One).ok_or_else(|| {
            let digits = digits.escape_debug();
            let problem =
                format!("has the port `{digits}`; write a number from 1 to 65535, or `*`");
            RuleError::new(entry, problem)
        })?,
    };
    Ok((host, port))
}

fn block(entry: &str, network: &str, prefix: &str) -> Result<Block, RuleError> {
    let fail = |problem: &str| RuleError::new(entry, problem);
    let bare = network.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(network);
    let network: IpAddr =
        bare.parse().map_err(|_| fail("has a path; a rule is a host and perhaps a port"))?;
    let longest = if network.is_ipv4() { 32 } else { 128 };
    let prefix = decimal(prefix)
        .and_then(|prefix| u8::try_from(prefix).ok())
        .filter(|prefix| *prefix <= longest)
        .ok_or_else(|| fail(&format!("has a prefix that is no number from 0 to {longest}")))?;
    Block::new(network, prefix).ok_or_else(|| {
        fail("has address bits set beyond its prefix; clear them, as in `10.1.0.0/16`")
    })
}

fn hosts(entry: &str, host: &str) -> Result<Hosts, RuleError> {
    let fail = |problem: &str| Err(RuleError::new(entry, problem));
    if let Some(bracketed) = host.strip_prefix('[') {
        return match bracketed.strip_suffix(']').map(str::parse::<Ipv6Addr>) {
            Some(Ok(address)) => Ok(Hosts::Block(Block::single(address.into()))),
            _ => fail("has no IPv6 address in its brackets; write it as in `[2001:db8::1]`"),
        };
    }
    if let Ok(address) = host.parse::<Ipv4Addr>() {
        return Ok(Hosts::Block(Block::single(address.into())));
    }
    if matches!(url::Host::parse(host), Ok(url::Host::Ipv4(_))) {
        return fail("is an unusual spelling of an IPv4 address; write four decimal numbers");
    }
    let (below, parent) = match host.strip_prefix("*.") {
        Some(parent) => (true, parent),
        None => (false, host),
    };
    if parent.contains('*') {
        return fail("has a `*` inside; it may only be the first label, as in `*.example.com`");
    }
    match name(parent) {
        Some(name) if below => Ok(Hosts::Below(name)),
        Some(name) => Ok(Hosts::Name(name)),
        None => fail("has no valid host name; write one as in `api.example.com`"),
    }
}

/// Parses digits only, without a leading zero.
fn decimal(text: &str) -> Option<u16> {
    let plain =
        text.bytes().all(|b| b.is_ascii_digit()) && (text.len() == 1 || !text.starts_with('0'));
    text.parse().ok().filter(|_| plain)
}
