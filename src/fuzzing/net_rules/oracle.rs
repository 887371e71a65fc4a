//! A second reading of the rules, written from `docs/concepts/permissions.md` and as plain as can
//! be.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::scenario::Scenario;
use crate::net::rules::Host;

/// A rule that was accepted, so that it has one of the forms and no fault in it.
#[derive(Debug)]
pub(super) struct Rule {
    hosts: Hosts,
    port: Port,
}

#[derive(Debug)]
enum Hosts {
    Name(String),
    Below(String),
    Network(IpAddr, u8),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Port {
    Unsaid,
    Any,
    One(u16),
}

impl Rule {
    pub(super) fn of(text: &str) -> Self {
        let (host, port) = match text.rsplit_once(':') {
            Some((host, "*")) => (host, Port::Any),
            // What follows the last colon of `[::1]` and `fe80::/10` is no port.
            Some((host, digits)) if !digits.contains([']', '/']) => {
                (host, Port::One(digits.parse().unwrap_or_default()))
            }
            _ => (text, Port::Unsaid),
        };
        let (address, prefix) = host.split_once('/').unwrap_or((host, "128"));
        let hosts = match address.trim_matches(['[', ']']).parse::<IpAddr>() {
            Ok(IpAddr::V4(network)) => {
                Hosts::Network(network.into(), prefix.parse().unwrap_or(32).min(32))
            }
            Ok(IpAddr::V6(network)) => {
                let prefix: u8 = prefix.parse().unwrap_or_default();
                match (network.to_ipv4_mapped(), prefix.checked_sub(96)) {
                    (Some(inner), Some(prefix)) => Hosts::Network(inner.into(), prefix),
                    _ => Hosts::Network(network.into(), prefix),
                }
            }
            Err(_) => match host.strip_prefix("*.") {
                Some(parent) => Hosts::Below(name(parent)),
                None => Hosts::Name(name(host)),
            },
        };
        Self { hosts, port }
    }

    fn names(&self, host: &Host) -> bool {
        match (&self.hosts, host) {
            (Hosts::Name(rule), Host::Name(name)) => rule == name,
            (Hosts::Below(parent), Host::Name(name)) => name.ends_with(&format!(".{parent}")),
            (Hosts::Network(..), Host::Address(address)) => self.contains(*address),
            _ => false,
        }
    }

    fn contains(&self, address: IpAddr) -> bool {
        match (&self.hosts, address) {
            (Hosts::Network(IpAddr::V4(network), prefix), IpAddr::V4(address)) => {
                let shift = 32 - u32::from(*prefix);
                u64::from(network.to_bits()) >> shift == u64::from(address.to_bits()) >> shift
            }
            (Hosts::Network(IpAddr::V6(network), prefix), IpAddr::V6(address)) => {
                let bits =
                    |address: Ipv6Addr| address.to_bits().checked_shr(128 - u32::from(*prefix));
                bits(*network) == bits(address)
            }
            _ => false,
        }
    }

    /// Whether the rule is about this one address.
    fn is_only(&self, address: IpAddr) -> bool {
        let longest = if address.is_ipv4() { 32 } else { 128 };
        matches!(self.hosts, Hosts::Network(it, prefix) if it == address && prefix == longest)
    }

    fn has_port(&self, port: u16, unsaid: bool) -> bool {
        self.port == Port::Any
            || self.port == Port::One(port)
            || (self.port == Port::Unsaid && unsaid)
    }
}

/// The rule in its plainest spelling.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.hosts {
            Hosts::Name(name) => f.write_str(name)?,
            Hosts::Below(parent) => write!(f, "*.{parent}")?,
            Hosts::Network(network, prefix) => write!(f, "{network}/{prefix}")?,
        }
        match self.port {
            Port::Unsaid => Ok(()),
            Port::Any => f.write_str(":*"),
            Port::One(port) => write!(f, ":{port}"),
        }
    }
}

/// A name as a URL has it, without the dot at its end.
fn name(text: &str) -> String {
    let parsed = url::Host::parse(text).map(|host| host.to_string()).unwrap_or_default();
    parsed.strip_suffix('.').unwrap_or(&parsed).to_owned()
}

/// All that a scenario allows and denies.
pub(super) struct Oracle {
    allow: Vec<Rule>,
    deny: Vec<Rule>,
    public: bool,
    everything: bool,
    strict: bool,
}

impl Oracle {
    pub(super) fn new(scenario: &Scenario<'_>) -> Self {
        let read = |rules: &[&str]| rules.iter().map(|rule| Rule::of(rule)).collect();
        Self {
            allow: read(&scenario.allow),
            deny: read(&scenario.deny),
            public: scenario.public,
            everything: scenario.everything,
            strict: scenario.strict,
        }
    }

    /// Fails unless the rules allow this host at these addresses.
    pub(super) fn assert_allowed(&self, host: &Host, port: u16, addresses: &[IpAddr]) {
        for rule in self.deny.iter().filter(|rule| rule.has_port(port, true)) {
            let spoils = |address: &IpAddr| rule.contains(*address);
            let is_denied = rule.names(host) || addresses.iter().any(spoils);
            assert!(!is_denied, "{host}:{port} at {addresses:?}, which {rule} denies");
        }
        let unsaid = !self.strict || port == 80 || port == 443;
        let allowing: Vec<&Rule> =
            self.allow.iter().filter(|rule| rule.has_port(port, unsaid)).collect();
        let everywhere = self.everything && unsaid;
        let named = allowing.iter().any(|rule| rule.names(host));
        assert!(named || everywhere || (self.public && unsaid), "{host}:{port} is not allowed");
        for address in addresses {
            assert_eq!(address.to_canonical(), *address);
            let covered = allowing.iter().any(|rule| rule.contains(*address));
            let local = named && host.is_localhost() && address.is_loopback();
            let reached = everywhere || covered || local || is_public(*address);
            assert!(reached, "{host}:{port} at {address}, which no rule names");
            let only = allowing.iter().any(|rule| rule.is_only(*address));
            assert!(only || !is_metadata(*address), "{host}:{port} at {address}");
        }
    }
}

/// Whether an address is of the public network, by what the standard library and the registries of
/// special addresses say.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, _] = address.octets();
            let special = address.is_private()
                || address.is_loopback()
                || address.is_link_local()
                || address.is_documentation()
                || address.is_multicast();
            let shared = a == 100 && (64..128).contains(&b);
            let protocols = (a, b, c) == (192, 0, 0) || (a, b, c) == (192, 88, 99);
            let benchmarks = a == 198 && (b == 18 || b == 19);
            !(special || shared || protocols || benchmarks || a == 0 || a >= 240)
        }
        IpAddr::V6(address) => {
            let [a, b, _, _, e, f, ..] = address.segments();
            let assigned = a >> 13 == 1;
            let protocols = a == 0x2001 && (b < 0x200 || b == 0xdb8);
            let tunnel = a == 0x2002 || (f == 0x5efe && (e == 0 || e == 0x200));
            let documentation = a == 0x3fff && b < 0x1000;
            assigned && !protocols && !tunnel && !documentation
        }
    }
}

/// Whether an address is a cloud's metadata service, or the tunnel to one.
fn is_metadata(address: IpAddr) -> bool {
    let services = [
        Ipv4Addr::new(169, 254, 169, 254),
        Ipv4Addr::new(169, 254, 170, 2),
        Ipv4Addr::new(100, 100, 100, 200),
        Ipv4Addr::new(168, 63, 129, 16),
    ];
    match address {
        IpAddr::V4(address) => services.contains(&address),
        IpAddr::V6(address) => match address.segments() {
            [0x64, 0xff9b, 0, .., high, low] | [0x2002, high, low, ..] => {
                let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
                services.contains(&Ipv4Addr::new(a, b, c, d))
            }
            [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254] => true,
            _ => false,
        },
    }
}
