//! Classifies IP addresses: which are public, and which need a rule that names them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use IpAddr::{V4, V6};

/// A block of addresses of one family: a network and the length of its prefix, in bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    network: IpAddr,
    prefix: u8,
}

impl Block {
    /// Makes a block. Returns `None` if the prefix is too long or the address has bits set beyond
    /// it. A block of IPv4-mapped addresses becomes one of IPv4 addresses.
    pub(crate) fn new(network: IpAddr, prefix: u8) -> Option<Self> {
        let block = match (network, network.to_canonical()) {
            (V6(_), V4(folded)) if prefix >= 96 => {
                Self { network: V4(folded), prefix: prefix - 96 }
            }
            _ => Self { network, prefix },
        };
        let fits = prefix <= bits(network) && block.masked(block.network) == value(block.network);
        fits.then_some(block)
    }

    /// Makes the block of one address.
    pub(crate) fn single(address: IpAddr) -> Self {
        let network = address.to_canonical();
        Self { network, prefix: bits(network) }
    }

    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.network.is_ipv4() && self.masked(address) == value(self.network)
    }

    /// Returns `true` if the block consists of this one address.
    pub(crate) fn is_only(&self, address: IpAddr) -> bool {
        self.prefix == bits(self.network) && self.network == address
    }

    fn masked(&self, address: IpAddr) -> u128 {
        let beyond = u32::from(bits(self.network).saturating_sub(self.prefix));
        value(address) & u128::MAX.checked_shl(beyond).unwrap_or(0)
    }
}

fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn value(address: IpAddr) -> u128 {
    match address {
        V4(address) => u128::from(address.to_bits()),
        V6(address) => address.to_bits(),
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Block {
    Block { network: V4(Ipv4Addr::new(a, b, c, d)), prefix }
}

const fn v6(a: u16, b: u16, c: u16, prefix: u8) -> Block {
    Block { network: V6(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0)), prefix }
}

/// The blocks that are not public, from IANA's special-purpose registries and security.md.
const SPECIAL: &[(Block, &str)] = &[
    (v4(0, 0, 0, 0, 8), "unspecified"),
    (v4(10, 0, 0, 0, 8), "private"),
    (v4(100, 64, 0, 0, 10), "shared by a carrier's customers"),
    (v4(127, 0, 0, 0, 8), "loopback"),
    (v4(169, 254, 0, 0, 16), "link-local"),
    (v4(172, 16, 0, 0, 12), "private"),
    (v4(192, 0, 0, 0, 24), "for protocol assignments"),
    (v4(192, 0, 2, 0, 24), "for documentation"),
    (v4(192, 88, 99, 0, 24), "a 6to4 relay"),
    (v4(192, 168, 0, 0, 16), "private"),
    (v4(198, 18, 0, 0, 15), "for benchmarks"),
    (v4(198, 51, 100, 0, 24), "for documentation"),
    (v4(203, 0, 113, 0, 24), "for documentation"),
    (v4(224, 0, 0, 0, 4), "multicast"),
    (v4(240, 0, 0, 0, 4), "reserved or broadcast"),
    (v6(0, 0, 0, 96), "unspecified, loopback or IPv4-compatible"),
    (v6(0x64, 0xff9b, 0, 96), "translated by NAT64"),
    (v6(0x64, 0xff9b, 1, 48), "translated by NAT64"),
    (v6(0x2001, 0, 0, 32), "a Teredo tunnel"),
    (v6(0x2001, 0, 0, 23), "for protocol assignments"),
    (v6(0x2001, 0xdb8, 0, 32), "for documentation"),
    (v6(0x2002, 0, 0, 16), "a 6to4 tunnel"),
    (v6(0x3fff, 0, 0, 20), "for documentation"),
    (v6(0xfc00, 0, 0, 7), "private"),
    (v6(0xfe80, 0, 0, 10), "link-local"),
    (v6(0xfec0, 0, 0, 10), "site-local"),
    (v6(0xff00, 0, 0, 8), "multicast"),
];

/// The only block of IPv6 addresses assigned for public use.
const GLOBAL_UNICAST: Block = v6(0x2000, 0, 0, 3);

/// The addresses at which clouds serve a machine's credentials.
const METADATA: &[IpAddr] = &[
    V4(Ipv4Addr::new(169, 254, 169, 254)),
    V4(Ipv4Addr::new(169, 254, 170, 2)),   // Amazon's containers
    V4(Ipv4Addr::new(169, 254, 170, 23)),  // Amazon's pods
    V4(Ipv4Addr::new(100, 100, 100, 200)), // Alibaba
    V4(Ipv4Addr::new(168, 63, 129, 16)),   // Azure, a public address
    V4(Ipv4Addr::new(192, 0, 0, 192)),     // Oracle
    V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23)),
    V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)), // Google
];

/// Returns why an address is not public; `None` if it is. Expects a folded address.
pub(crate) fn special(address: IpAddr) -> Option<&'static str> {
    if let Some((_, what)) = SPECIAL.iter().find(|(block, _)| block.contains(address)) {
        return Some(what);
    }
    match address {
        V6(inner) if is_isatap(inner) => Some("an ISATAP tunnel"),
        V6(_) if !GLOBAL_UNICAST.contains(address) => Some("not assigned to public use"),
        _ => None,
    }
}

/// Returns `true` if an address, or an IPv4 address embedded in it, is a cloud's metadata service.
pub(crate) fn is_metadata(address: IpAddr) -> bool {
    with_embedded(address).any(|address| METADATA.contains(&address))
}

/// Returns an address and the IPv4 addresses that a tunnel or translator would extract from it.
pub(crate) fn with_embedded(address: IpAddr) -> impl Iterator<Item = IpAddr> {
    let embedded = match address {
        V4(_) => [None; 3],
        V6(address) => embedded(address),
    };
    std::iter::once(address).chain(embedded.into_iter().flatten().map(V4))
}

fn embedded(address: Ipv6Addr) -> [Option<Ipv4Addr>; 3] {
    let [s0, s1, s2, s3, s4, s5, s6, s7] = address.segments();
    let pair =
        |high: u16, low: u16| Some(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)));
    let last = pair(s6, s7);
    match (s0, s1, s2) {
        (0, 0, 0) | (0x64, 0xff9b, 0) => [last, None, None],
        // RFC 6052 skips bits 64 to 71 of an address after a prefix of 48 bits.
        (0x64, 0xff9b, 1) => [last, pair(s3, s4 << 8 | s5 >> 8), None],
        (0x2002, ..) => [pair(s1, s2), isatap(address), None],
        (0x2001, 0, _) => [pair(s2, s3), pair(!s6, !s7), isatap(address)],
        _ => [isatap(address), None, None],
    }
}

fn isatap(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [.., s6, s7] = address.segments();
    is_isatap(address).then(|| Ipv4Addr::from_bits(u32::from(s6) << 16 | u32::from(s7)))
}

fn is_isatap(address: Ipv6Addr) -> bool {
    let [_, _, _, _, s4, s5, ..] = address.segments();
    s4 & !0x0200 == 0 && s5 == 0x5efe
}
