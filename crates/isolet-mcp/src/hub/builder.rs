//! The settings of a hub.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::{Audit, Hub, Inner};
use crate::config::{Config, ServerConfig};
use crate::hub::audit::CallRecord;
use crate::hub::policy::{Approver, Grants, Rule};
use crate::tool::names;
use crate::upstream::{Changed, Log, Surroundings, Upstream};
use isolet::Error;
use isolet::internals::{cache_dir, data_dir};

/// Builds a [`Hub`].
#[must_use]
pub struct HubBuilder {
    config: Config,
    rules: Vec<Rule>,
    approver: Option<Arc<dyn Approver>>,
    audit: Option<Audit>,
    log: Log,
    changed: Changed,
    call_time: Duration,
    start_time: Duration,
    answer_bytes: usize,
    cache: Storage,
    pins: Storage,
}

/// The directory of some files.
enum Storage {
    Default,
    Directory(PathBuf),
    Disabled,
}

impl HubBuilder {
    pub(super) fn new() -> Self {
        Self {
            config: Config::default(),
            rules: Vec::new(),
            approver: None,
            audit: None,
            log: Arc::new(|_, _| {}),
            changed: Arc::new(|_| {}),
            call_time: Duration::from_mins(1),
            start_time: Duration::from_mins(1),
            answer_bytes: 2 << 20,
            cache: Storage::Default,
            pins: Storage::Default,
        }
    }

    /// Adds servers.
    pub fn config(mut self, config: Config) -> Self {
        self.config.merge(config);
        self
    }

    /// Adds a rule. The first that matches counts, except that a denial is final, and that the
    /// rules of a server's configuration precede these.
    ///
    /// Without a rule, a person is asked, unless the configuration trusts the server's hints and
    /// the tool only reads.
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Adds rules, in their order.
    pub fn rules(mut self, rules: impl IntoIterator<Item = Rule>) -> Self {
        self.rules.extend(rules);
        self
    }

    /// Sets the approver, which decides about calls that need a person.
    ///
    /// Default: none. Such calls raise `PermissionError`.
    pub fn approver(mut self, approver: impl Approver + 'static) -> Self {
        self.approver = Some(Arc::new(approver));
        self
    }

    /// Calls a function after each call of a tool, also a refused one. It must not block.
    pub fn on_call(mut self, f: impl Fn(&CallRecord) + Send + Sync + 'static) -> Self {
        self.audit = Some(Arc::new(f));
        self
    }

    /// Calls a function with a server's name and each line that it writes to standard error. It
    /// must not block.
    pub fn on_log(mut self, f: impl Fn(&str, &str) + Send + Sync + 'static) -> Self {
        self.log = Arc::new(f);
        self
    }

    /// Calls a function with the name of a server whose tools are others than before. It must not
    /// block.
    pub fn on_tools_changed(mut self, f: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.changed = Arc::new(f);
        self
    }

    /// Sets the time limit of a call, for servers whose configuration has none. The server's start
    /// and the wait for an approval do not count.
    ///
    /// Default: 60 seconds.
    pub fn call_timeout(mut self, time: Duration) -> Self {
        self.call_time = time;
        self
    }

    /// Sets how long a server may take to start and to list its tools.
    ///
    /// Default: 60 seconds.
    pub fn start_timeout(mut self, time: Duration) -> Self {
        self.start_time = time;
        self
    }

    /// Sets how many bytes an answer may have, for servers whose configuration has no limit. It may
    /// also have one value for each 8 of these bytes: many small values take much more memory than
    /// text. A longer answer is a failure of the call. Lists of tools have 8 MiB at least.
    ///
    /// Default: 2 MiB.
    pub fn max_answer_bytes(mut self, bytes: usize) -> Self {
        self.answer_bytes = bytes;
        self
    }

    /// Sets the directory of the lists of tools.
    ///
    /// Default: `isolet/mcp` in the user's cache directory.
    pub fn cache_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.cache = Storage::Directory(directory.into());
        self
    }

    /// Keeps no lists of tools on disk. Listing tools then starts the server.
    pub fn without_cache(mut self) -> Self {
        self.cache = Storage::Disabled;
        self
    }

    /// Sets the directory of the pins.
    ///
    /// Default: `isolet/mcp/pins` in the user's data directory.
    pub fn pin_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.pins = Storage::Directory(directory.into());
        self
    }

    /// Pins nothing: a tool that changes is still called.
    pub fn without_pins(mut self) -> Self {
        self.pins = Storage::Disabled;
        self
    }

    /// Makes the hub. Starts no server.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`](isolet::ErrorKind::Config) if the user has no directory for the pins
    /// and the builder names none.
    pub fn build(self) -> Result<Hub, Error> {
        let surroundings = Surroundings {
            start_time: self.start_time,
            answer_bytes: self.answer_bytes,
            // Without a directory, only the start takes longer.
            cache_dir: match self.cache {
                Storage::Default => cache_dir("mcp").ok(),
                Storage::Directory(directory) => Some(directory),
                Storage::Disabled => None,
            },
            pin_dir: match self.pins {
                Storage::Default => Some(data_dir("mcp")?.join("pins")),
                Storage::Directory(directory) => Some(directory),
                Storage::Disabled => None,
            },
            log: self.log,
            changed: self.changed,
        };
        let used = || self.config.servers().iter().filter(|server| !server.is_disabled());
        let modules = names::modules(used().map(ServerConfig::name));
        let upstreams = used().map(|server| Upstream::new(server.clone(), surroundings.clone()));
        Ok(Hub(Arc::new(Inner {
            servers: upstreams.zip(modules).collect(),
            rules: self.rules,
            approver: self.approver,
            audit: self.audit,
            grants: Grants::default(),
            call_time: self.call_time,
        })))
    }
}

impl fmt::Debug for HubBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HubBuilder")
            .field("config", &self.config)
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}
