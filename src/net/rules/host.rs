//! Hosts in canonical form.

use std::fmt;
use std::net::IpAddr;

/// A host as rules and decisions compare it: an address, with IPv4-mapped ones folded, or a name in
/// lower-case ASCII without a trailing dot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Host {
    Name(String),
    Address(IpAddr),
}

impl Host {
    /// Returns the canonical form of a host from a parsed URL. Returns `None` if no request to such
    /// a host is possible.
    pub(crate) fn from_url(host: &url::Host<&str>) -> Option<Self> {
        match host {
            url::Host::Ipv4(address) => Some(Self::Address((*address).into())),
            url::Host::Ipv6(address) => Some(Self::Address(IpAddr::from(*address).to_canonical())),
            url::Host::Domain(name) => {
                let name = name.strip_suffix('.').unwrap_or(name);
                is_name(name).then(|| Self::Name(name.to_owned()))
            }
        }
    }

    /// Returns `true` for `localhost` and names below it. They are loopback by definition and never
    /// looked up.
    pub(crate) fn is_localhost(&self) -> bool {
        match self {
            Self::Name(name) => name == "localhost" || name.ends_with(".localhost"),
            Self::Address(_) => false,
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// Returns `true` if the text is a host name in canonical form.
fn is_name(name: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'))
    };
    let last = name.rsplit('.').next().unwrap_or_default();
    name.len() <= 253
        && name.split('.').all(is_label)
        && !last.starts_with('_')
        && !last.bytes().all(|b| b.is_ascii_digit())
}
