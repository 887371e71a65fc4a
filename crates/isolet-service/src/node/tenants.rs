//! The tenants of a node: each has keys, a ceiling of permissions, and quotas.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::ceiling::Ceiling;
use isolet::internals::lock;

/// The name of the only tenant of a node without keys.
pub const LOCAL: &str = "local";

/// The default quota of the audit log, in bytes a day.
const AUDIT_BYTES: u64 = 1 << 30;

/// The prefix of a hashed key.
const HASH: &str = "sha256:";

/// A tenant's quotas.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Quotas {
    /// The maximum number of sessions. Default: all of the node's, or half of them if there are
    /// other tenants.
    pub sessions: Option<usize>,
    /// The maximum number of concurrent runs. Further ones are queued.
    pub runs: usize,
    /// The maximum number of sessions started in a second.
    pub starts: f64,
    /// The maximum number of paused sessions and snapshots.
    pub saved: usize,
    /// The maximum number of bytes of requests and unread answers.
    pub in_flight: u64,
    /// The maximum number of connections with a request under way, or a WebSocket.
    pub connections: usize,
    /// The maximum number of bytes of the audit log a day.
    pub audit: u64,
}

impl Default for Quotas {
    fn default() -> Self {
        Self {
            sessions: None,
            runs: usize::MAX,
            starts: f64::INFINITY,
            saved: usize::MAX,
            in_flight: u64::MAX,
            connections: usize::MAX,
            audit: AUDIT_BYTES,
        }
    }
}

/// A user of a node, with keys of its own.
#[derive(Debug)]
pub struct Tenant {
    pub name: String,
    pub ceiling: Ceiling,
    pub quotas: Quotas,
    /// Whether the node has no other tenant.
    is_alone: bool,
    pub starts: Starts,
}

/// Limits how fast a tenant starts sessions. After a pause, it may start as many at once as it may
/// start in a second.
#[derive(Debug, Default)]
pub struct Starts(Mutex<Option<Instant>>);

impl Starts {
    /// Counts a start, at most `rate` a second. Fails with the time until the next one is allowed.
    pub fn take(&self, rate: f64, now: Instant) -> Result<(), Duration> {
        let mut used = lock(&self.0);
        *used = Some(Self::next(*used, rate, now)?);
        Ok(())
    }

    /// Returns the time until the next start is allowed; `None` if it is allowed now.
    pub fn wait(&self, rate: f64, now: Instant) -> Option<Duration> {
        Self::next(*lock(&self.0), rate, now).err()
    }

    /// Returns the time up to which one more start uses the rate.
    fn next(used: Option<Instant>, rate: f64, now: Instant) -> Result<Instant, Duration> {
        // Each start's share of a second; zero if there is no limit.
        let Ok(each) = Duration::try_from_secs_f64(rate.recip()) else {
            return Err(Duration::MAX);
        };
        let most = Duration::from_secs(1).max(each);
        let from = used.map_or(now, |used| used.max(now));
        let above = (from.duration_since(now) + each).saturating_sub(most);
        if above.is_zero() { Ok(from + each) } else { Err(above) }
    }
}

impl Tenant {
    pub fn new(name: String, ceiling: Ceiling, quotas: Quotas) -> Self {
        Self { name, ceiling, quotas, is_alone: true, starts: Starts::default() }
    }

    /// Returns how many of the node's sessions it may have.
    pub fn most_sessions(&self, all: usize) -> usize {
        let share = if self.is_alone { all } else { (all / 2).max(1) };
        self.quotas.sessions.unwrap_or(share)
    }

    /// Returns how many it may have of bytes that the tenants share.
    pub(crate) fn share(&self, all: u64) -> u64 {
        if self.is_alone { all } else { all / 2 }
    }
}

/// A tenant, as the configuration file describes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TenantEntry {
    /// The SHA-256 of each key: `sha256:` and 64 hexadecimal digits.
    keys: Vec<String>,
    #[serde(default)]
    quotas: Quotas,
    ceiling: Option<Ceiling>,
}

/// The tenants of a node.
#[derive(Debug)]
pub enum Tenants {
    /// No keys: every client is this tenant.
    Open(Arc<Tenant>),
    /// By the SHA-256 of each key.
    Keys(HashMap<[u8; 32], Arc<Tenant>>),
}

impl Tenants {
    /// Reads the tenants of a configuration. `ceiling` applies to tenants without their own.
    /// Without tenants, the node needs no key.
    ///
    /// # Errors
    ///
    /// Fails if a hash is invalid, or two tenants have the same key.
    pub fn new(entries: BTreeMap<String, TenantEntry>, ceiling: &Ceiling) -> Result<Self, String> {
        if entries.is_empty() {
            let (name, quotas) = (LOCAL.to_owned(), Quotas::default());
            return Ok(Self::Open(Arc::new(Tenant::new(name, ceiling.clone(), quotas))));
        }
        let is_alone = entries.len() == 1;
        let mut keys: HashMap<_, Arc<Tenant>> = HashMap::new();
        for (name, entry) in entries {
            let TenantEntry { keys: hashes, quotas, ceiling: own } = entry;
            if hashes.is_empty() {
                return Err(format!("the tenant `{name}` has no keys"));
            }
            if quotas.starts.is_nan() || quotas.starts <= 0.0 {
                return Err(format!(
                    "`quotas.starts` of the tenant `{name}` is {}, and has to be above 0",
                    quotas.starts
                ));
            }
            let ceiling = own.unwrap_or_else(|| ceiling.clone());
            let tenant = Arc::new(Tenant { is_alone, ..Tenant::new(name, ceiling, quotas) });
            for hash in hashes {
                let digest = digest(&hash).ok_or_else(|| {
                    format!(
                        "a key of the tenant `{}` is {hash:?}, and has to be `{HASH}` and the 64 \
                         hexadecimal digits that `printf %s \"$KEY\" | sha256sum` prints",
                        tenant.name
                    )
                })?;
                if let Some(other) = keys.insert(digest, Arc::clone(&tenant)) {
                    let names = (&other.name, &tenant.name);
                    return Err(format!(
                        "the tenants `{}` and `{}` have the same key",
                        names.0, names.1
                    ));
                }
            }
        }
        Ok(Self::Keys(keys))
    }

    /// Returns the tenant of a key. A node without keys needs none.
    pub fn of(&self, key: Option<&str>) -> Option<&Arc<Tenant>> {
        match self {
            Self::Open(tenant) => Some(tenant),
            // The time of looking up a hash reveals nothing about the key.
            Self::Keys(keys) => keys.get(&<[u8; 32]>::from(Sha256::digest(key?.as_bytes()))),
        }
    }

    /// Returns the tenant of this name.
    pub fn named(&self, name: &str) -> Option<&Arc<Tenant>> {
        match self {
            Self::Open(tenant) => Some(tenant).filter(|tenant| tenant.name == name),
            Self::Keys(keys) => keys.values().find(|tenant| tenant.name == name),
        }
    }

    /// Returns each tenant's name and quota of the audit log, in bytes a day.
    pub fn audit_quotas(&self) -> Vec<(&str, u64)> {
        let quota = |tenant: &'_ Arc<Tenant>| tenant.quotas.audit;
        match self {
            Self::Open(tenant) => vec![(&tenant.name, quota(tenant))],
            Self::Keys(keys) => {
                keys.values().map(|tenant| (&*tenant.name, quota(tenant))).collect()
            }
        }
    }

    /// Returns `true` if the node needs no key.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Open(_))
    }
}

fn digest(hash: &str) -> Option<[u8; 32]> {
    let digits = hash.strip_prefix(HASH)?;
    if digits.len() != 64 || !digits.is_ascii() {
        return None;
    }
    let mut digest = [0; 32];
    for (nth, byte) in digest.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * nth..2 * nth + 2], 16).ok()?;
    }
    Some(digest)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;

    /// The hash of some key.
    const KEY: &str = "sha256:7b8b6a2b5a6ba4fe2b2b9a3c2f5f8fa6b6a4c7f0a4f3b6a5b0a3b8a7a3d1c4e5";

    fn tenants(text: &str) -> Result<Tenants, String> {
        Tenants::new(toml::from_str(text).unwrap(), &Ceiling::default())
    }

    fn hash(key: &str) -> String {
        let mut hash = HASH.to_owned();
        for byte in Sha256::digest(key.as_bytes()) {
            write!(hash, "{byte:02x}").unwrap();
        }
        hash
    }

    #[test]
    fn a_key_is_of_its_tenant_and_another_one_of_nobody() {
        let text = format!(
            "[a]\nkeys = [{:?}, {:?}]\n[b]\nkeys = [{:?}]\nquotas = {{ sessions = 3 }}",
            hash("one"),
            hash("two"),
            hash("three")
        );
        let tenants = tenants(&text).unwrap();
        let name = |key| tenants.of(key).map(|tenant| tenant.name.as_str());
        assert_eq!(
            [name(Some("one")), name(Some("two")), name(Some("three"))],
            [Some("a"), Some("a"), Some("b")]
        );
        assert_eq!(tenants.named("b").unwrap().quotas.sessions, Some(3));
        // What says nothing else is half, so that one tenant leaves something for others.
        let shares = |tenants: &Tenants, name: &str| {
            let tenant = tenants.named(name).unwrap();
            (tenant.most_sessions(10), tenant.most_sessions(1), tenant.share(10))
        };
        assert_eq!([shares(&tenants, "a"), shares(&tenants, "b")], [(5, 1, 5), (3, 3, 5)]);
        assert!(tenants.named("c").is_none());
        assert_eq!([name(Some("four")), name(Some("")), name(None)], [None; 3]);
        assert_eq!(tenants.of(Some("three")).unwrap().quotas.sessions, Some(3));
        assert!(!tenants.is_open());
    }

    #[test]
    fn without_keys_everybody_is_the_same_tenant() {
        let tenants = tenants("").unwrap();
        assert!(tenants.is_open());
        assert_eq!(tenants.of(None).unwrap().name, LOCAL);
        assert_eq!(tenants.of(Some("any")).unwrap().name, LOCAL);
    }

    #[test]
    fn what_is_no_hash_and_a_key_of_two_are_refused() {
        for hash in ["", "secret", "sha256:12", &KEY[..KEY.len() - 1]] {
            let error = tenants(&format!("[a]\nkeys = [{hash:?}]")).unwrap_err();
            assert!(error.contains("sha256sum"), "{error}");
        }
        let twice = format!("[a]\nkeys = [{KEY:?}]\n[b]\nkeys = [{KEY:?}]");
        assert_eq!(tenants(&twice).unwrap_err(), "the tenants `a` and `b` have the same key");
        assert_eq!(tenants("[a]\nkeys = []").unwrap_err(), "the tenant `a` has no keys");
    }

    #[test]
    fn after_a_pause_a_second_worth_of_sessions_starts_at_once() {
        let (starts, now) = (Starts::default(), Instant::now());
        let at = |millis| now + Duration::from_millis(millis);
        assert!((0..4).all(|_| starts.take(4.0, now).is_ok()));
        assert_eq!(starts.take(4.0, now), Err(Duration::from_millis(250)));
        assert_eq!(starts.take(4.0, at(150)), Err(Duration::from_millis(100)));
        assert_eq!(starts.take(4.0, at(250)), Ok(()));
        assert!(starts.take(4.0, at(250)).is_err());
        // Not more after a long pause.
        assert_eq!((0..9).filter(|_| starts.take(4.0, at(60_000)).is_ok()).count(), 4);

        let slow = Starts::default();
        assert_eq!(slow.take(0.5, now), Ok(()));
        assert_eq!(slow.take(0.5, at(500)), Err(Duration::from_millis(1500)));
        assert_eq!(slow.take(0.5, at(2000)), Ok(()));
        let free = Starts::default();
        assert!((0..1000).all(|_| free.take(f64::INFINITY, now).is_ok()));
    }

    #[test]
    fn a_rate_that_is_none_is_refused() {
        let text = format!("[a]\nkeys = [{KEY:?}]\nquotas = {{ starts = 0 }}");
        assert!(tenants(&text).unwrap_err().contains("`quotas.starts` of the tenant `a` is 0"));
    }
}
