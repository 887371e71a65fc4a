//! The configuration of a node.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use super::audit::Outage;
use super::ceiling::Ceiling;
use super::domain::Domain;
use super::memory::Memory;
use super::tenants::{TenantEntry, Tenants};
use crate::core::Policy;

/// Memory reserved for a session: an idle one takes some 3 MiB, and code adds what it allocates.
const SESSION_BYTES: u64 = 10 << 20;

/// The default maximum number of sessions. A larger node would lose more sessions if its process
/// ended, and needs more descriptors.
const MOST: usize = 2500;

/// The default maximum number of connections, if the limit of open files has room for them.
const MAX_CONNECTIONS: usize = 50_000;

/// The default `max_in_flight`, in bytes.
const MAX_IN_FLIGHT: u64 = 256 << 20;

/// The default `file_bytes`.
const FILE_BYTES: u64 = 256 << 20;

/// The minimum `max_answer`: room for every answer without a value, displays and output.
const LEAST_ANSWER: u64 = 1 << 20;

/// The default `max_answer`, in bytes.
const MAX_ANSWER: u64 = 16 << 20;

/// A configuration file, in TOML.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The maximum number of sessions. Default: as many as fit into memory.
    max_sessions: Option<usize>,
    /// The part of the memory to keep free: while less is left, no session starts.
    memory_reserve: f64,
    /// The certificate of the node, if its clients speak TLS.
    tls: Option<TlsSettings>,
    /// The domain below which sandboxes have names, as E2B's clients derive them.
    domain: Option<String>,
    /// Whether browsers get a console at `/`.
    console: bool,
    /// The request log. Default: text if standard error is a terminal, else none.
    log: Option<RequestLogFormat>,
    /// The maximum number of connections.
    max_connections: usize,
    /// The maximum number of bytes of requests and unread answers.
    max_in_flight: u64,
    /// The maximum number of bytes of an answer.
    max_answer: u64,
    /// The maximum number of bytes of files that clients leave on the node between requests.
    file_bytes: u64,
    /// The maximum number of concurrent runs. Default: two for each processor.
    max_runs: Option<usize>,
    /// The maximum number of a tenant's queued runs.
    max_queue: usize,
    /// The longest time that a run waits in the queue, in seconds.
    queue_time: f64,
    /// The longest time for preparing the packages of a start, in seconds.
    package_time: f64,
    /// The default and longest lifetime of a session, in seconds.
    ttl: f64,
    /// The time after which an unused session ends, in seconds.
    idle: f64,
    /// The longest time that the node waits for runs when it shuts down, in seconds.
    drain: f64,
    /// The file to append the audit log to.
    audit_log: Option<PathBuf>,
    /// What the node does while the audit log cannot be written.
    audit_outage: Outage,
    /// The store of paused sessions and snapshots.
    store: Option<StoreEntry>,
    /// Where durable sessions are recorded.
    journals: Option<JournalsEntry>,
    /// The policy of all sessions.
    policy: Policy,
    /// What clients may ask for in addition.
    ceiling: Ceiling,
    tenants: BTreeMap<String, TenantEntry>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_sessions: None,
            memory_reserve: 0.1,
            tls: None,
            domain: None,
            console: true,
            log: None,
            max_connections: MAX_CONNECTIONS,
            max_in_flight: MAX_IN_FLIGHT,
            max_answer: MAX_ANSWER,
            file_bytes: FILE_BYTES,
            max_runs: None,
            max_queue: 1000,
            queue_time: 30.0,
            package_time: 120.0,
            ttl: 3600.0,
            idle: 600.0,
            drain: 60.0,
            audit_log: None,
            audit_outage: Outage::Refuse,
            store: None,
            journals: None,
            policy: Policy::default(),
            ceiling: Ceiling::default(),
            tenants: BTreeMap::new(),
        }
    }
}

/// A checked configuration.
pub struct Settings {
    /// The configuration file.
    pub file: Option<PathBuf>,
    pub max_sessions: usize,
    pub memory_reserve: f64,
    pub tls: Option<TlsSettings>,
    pub domain: Option<Domain>,
    pub console: bool,
    pub log: Option<RequestLogFormat>,
    pub max_connections: usize,
    pub max_in_flight: u64,
    pub max_answer: u64,
    pub file_bytes: u64,
    pub audit_log: Option<PathBuf>,
    pub audit_outage: Outage,
    pub store: Option<StoreSettings>,
    pub journals: Option<JournalSettings>,
    pub max_runs: usize,
    pub max_queue: usize,
    pub queue_time: Duration,
    pub package_time: Duration,
    pub ttl: Duration,
    pub idle: Duration,
    pub drain: Duration,
    pub policy: Policy,
    pub tenants: Tenants,
}

/// How a node writes its request log to standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RequestLogFormat {
    /// A line of text for each request.
    Text,
    /// An object of JSON for each request.
    Json,
    /// Nothing.
    Off,
}

/// The files of a certificate, in PEM.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsSettings {
    /// The certificate, and after it those that have signed it.
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// The store, as the configuration file describes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StoreEntry {
    directory: PathBuf,
    /// The maximum size of all its files, in bytes.
    #[serde(default = "one_gibibyte")]
    size: u64,
    /// How long a saved session is kept, in seconds.
    #[serde(default = "one_day")]
    ttl: f64,
}

/// The directory of durable sessions, as the configuration file describes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JournalsEntry {
    directory: PathBuf,
    /// The maximum size of all journals, in bytes.
    #[serde(default = "JournalSettings::default_size")]
    size: u64,
    /// The maximum size of the journal of a session, in bytes.
    #[serde(default = "JournalSettings::default_session_size")]
    session_size: u64,
}

fn one_gibibyte() -> u64 {
    1 << 30
}

fn one_day() -> f64 {
    86_400.0
}

/// The store of paused sessions and snapshots: its directory, size and retention.
pub struct StoreSettings {
    pub directory: PathBuf,
    pub size: u64,
    pub ttl: Duration,
}

/// The directory of durable sessions, and its limits.
pub struct JournalSettings {
    pub directory: PathBuf,
    /// The maximum size of all journals, in bytes.
    pub size: u64,
    /// The maximum size of the journal of a session, in bytes.
    pub session_size: u64,
}

impl JournalSettings {
    /// A directory with the default limits.
    pub fn at(directory: PathBuf) -> Self {
        let (size, session_size) = (Self::default_size(), Self::default_session_size());
        Self { directory, size, session_size }
    }

    /// 4 GiB: 64 sessions.
    fn default_size() -> u64 {
        4 << 30
    }

    /// 64 MiB.
    fn default_session_size() -> u64 {
        64 << 20
    }
}

impl Settings {
    /// Returns the paths that the operator has configured.
    pub(crate) fn own_paths(&self) -> Vec<PathBuf> {
        let store = self.store.as_ref().map(|store| &store.directory);
        let journals = self.journals.as_ref().map(|journals| &journals.directory);
        let tls = self.tls.as_ref();
        let [certificate, key] = [tls.map(|tls| &tls.certificate), tls.map(|tls| &tls.key)];
        let own = [self.file.as_ref(), self.audit_log.as_ref(), store, journals, certificate, key];
        own.into_iter().flatten().chain(self.policy.host_paths()).cloned().collect()
    }
}

impl Config {
    /// Reads a configuration.
    ///
    /// # Errors
    ///
    /// Fails if it is not TOML, or has an unknown key.
    pub fn read(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error: toml::de::Error| {
            let before = error.span().and_then(|span| text.get(..span.start));
            let line = before.map_or(1, |before| before.matches('\n').count() + 1);
            format!("line {line}: {}", error.message().replace('\n', " "))
        })
    }

    /// Replaces what stands for the policy's secrets by the secrets, as `fill` does.
    ///
    /// # Errors
    ///
    /// Fails with the name of a secret that cannot be had, and why.
    pub fn fill_secrets(
        mut self,
        fill: impl Fn(&str) -> Result<String, String>,
    ) -> Result<Self, String> {
        for (name, secret) in &mut self.policy.secrets {
            secret.value =
                fill(&secret.value).map_err(|error| format!("`policy.secrets.{name}`: {error}"))?;
        }
        Ok(self)
    }

    /// Checks the configuration.
    ///
    /// # Errors
    ///
    /// Fails with the name and value of the wrong entry.
    pub fn settings(self) -> Result<Settings, String> {
        let seconds = |name: &str, value: f64| {
            Duration::try_from_secs_f64(value).map_err(|_| {
                format!("`{name}` is {value}, and has to be a number of seconds, 0 or more")
            })
        };
        let at_least_one = |name: &str, value: usize| {
            if value > 0 {
                Ok(value)
            } else {
                Err(format!("`{name}` is 0, and has to be 1 or more"))
            }
        };
        let part = |name: &str, value: f64| {
            if (0.0..1.0).contains(&value) {
                Ok(value)
            } else {
                Err(format!("`{name}` is {value}, and has to be a part of all: 0.1 is a tenth"))
            }
        };
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Settings {
            file: None,
            max_sessions: match self.max_sessions {
                Some(most) => at_least_one("max_sessions", most)?,
                None => by_memory(),
            },
            memory_reserve: part("memory_reserve", self.memory_reserve)?,
            tls: self.tls,
            domain: self.domain.as_deref().map(Domain::read).transpose()?,
            console: self.console,
            log: self.log,
            max_in_flight: self.max_in_flight,
            max_answer: if self.max_answer >= LEAST_ANSWER {
                self.max_answer
            } else {
                let bytes = self.max_answer;
                return Err(format!(
                    "`max_answer` is {bytes}, and has to be {LEAST_ANSWER} or more"
                ));
            },
            file_bytes: self.file_bytes,
            max_connections: at_least_one("max_connections", self.max_connections)?,
            audit_log: self.audit_log,
            audit_outage: self.audit_outage,
            store: match self.store {
                Some(StoreEntry { directory, size, ttl }) => {
                    let ttl = seconds("store.ttl", ttl)?;
                    Some(StoreSettings { directory, size, ttl })
                }
                None => None,
            },
            journals: match self.journals {
                Some(JournalsEntry { session_size: 0, .. }) => {
                    return Err("`journals.session_size` is 0, and has to be 1 or more".to_owned());
                }
                Some(JournalsEntry { directory, size, session_size }) => {
                    Some(JournalSettings { directory, size, session_size })
                }
                None => None,
            },
            max_runs: at_least_one("max_runs", self.max_runs.unwrap_or(2 * processors))?,
            max_queue: self.max_queue,
            queue_time: seconds("queue_time", self.queue_time)?,
            package_time: seconds("package_time", self.package_time)?,
            ttl: seconds("ttl", self.ttl)?,
            idle: seconds("idle", self.idle)?,
            drain: seconds("drain", self.drain)?,
            policy: self.policy,
            tenants: Tenants::new(self.tenants, &self.ceiling)?,
        })
    }
}

/// Returns how many sessions fit into memory.
fn by_memory() -> usize {
    let total = Memory::read().map_or(u64::MAX, |memory| memory.total);
    usize::try_from(total / SESSION_BYTES).unwrap_or(MOST).clamp(1, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        Config::read(text).and_then(Config::settings).err().unwrap()
    }

    #[test]
    fn a_configuration_without_anything_is_one() {
        let settings = Config::read("").and_then(Config::settings).ok().unwrap();
        assert_eq!(settings.idle, Duration::from_mins(10));
        assert!((1..=MOST).contains(&settings.max_sessions));
        assert!(settings.tenants.is_open());
    }

    #[test]
    fn what_is_wrong_is_named_with_its_value() {
        assert!(refusal("ttl = -1").contains("`ttl` is -1"));
        assert!(refusal("max_sessions = 0").contains("`max_sessions` is 0"));
        assert!(refusal("memory_reserve = 10").contains("`memory_reserve` is 10"));
        assert!(refusal("domain = \"a_b\"").contains("`domain` is \"a_b\""));
        assert!(refusal("max_answer = 5").contains("`max_answer` is 5"));
        assert!(refusal("max_runs = 0").contains("`max_runs` is 0"));
        assert!(refusal("log = \"xml\"").contains("xml"));
        assert!(refusal("max_session = 1").contains("max_session"));
        let text = refusal("ttl = 1\nidle = \"x\"");
        assert!(text.starts_with("line 2: ") && !text.contains('\n'), "{text}");
        assert!(refusal("[policy]\nallow_nets = []").contains("allow_nets"));
        assert!(refusal("[tenants.a]\nkeys = [\"x\"]").contains("tenant `a`"));
    }
}
