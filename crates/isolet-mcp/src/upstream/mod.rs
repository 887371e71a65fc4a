//! The servers: started when they are first needed, shared by all sessions, and started again when
//! they have ended.

mod answers;
mod catalogue;
mod child;
mod connection;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod http;
mod lines;
mod sse;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rmcp::model::{CallToolResult, JsonObject};
use tokio::sync::Semaphore;

use self::catalogue::Era;
pub(crate) use self::catalogue::{Catalogue, Shelf};
use self::child::Started;
use self::connection::{Connection, Listener, Next, Start, StartFailure};
use self::lines::Lines;
use crate::config::ServerConfig;
use crate::config::redact::Redactor;
use crate::support::background;
use crate::tool::pins::PinFile;
use crate::tool::text;
use isolet::ToolError;
use isolet::Value;
use isolet::internals::lock;
use isolet_support::quoted::quoted;

/// The maximum number of tools of a server. Others are left out.
const MAX_TOOLS: usize = 5_000;

/// The maximum size of all tools of a server, in bytes. Others are left out.
const MAX_LIST_BYTES: usize = 32 * 1024 * 1024;

/// The wait before a server is started again. It doubles with each failure in a row.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// A call does not wait longer than this for the next start, but fails.
const PATIENCE: Duration = Duration::from_secs(2);

/// A server that has lived this long has not failed at its start.
const SETTLED: Duration = Duration::from_mins(1);

/// The maximum length of a reason, in characters.
const REASON_CHARS: usize = 1_000;

/// Receives a server's name and a line of its standard error.
pub(crate) type Log = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// Receives the name of a server whose tools have changed.
pub(crate) type Changed = Arc<dyn Fn(&str) + Send + Sync>;

/// The parts of the hub that a server uses.
#[derive(Clone)]
pub(crate) struct Surroundings {
    pub(crate) start_time: Duration,
    pub(crate) answer_bytes: usize,
    pub(crate) cache_dir: Option<PathBuf>,
    pub(crate) pin_dir: Option<PathBuf>,
    pub(crate) log: Log,
    pub(crate) changed: Changed,
}

/// The most calls that a server gets at a time. Further ones wait, even if the limit of a sandbox
/// is higher.
const CONCURRENT_CALLS: usize = 16;

/// A server. Dropping it ends the connection.
pub(crate) struct Upstream {
    config: ServerConfig,
    surroundings: Surroundings,
    shelf: Shelf,
    redactor: Mutex<Redactor>,
    link: tokio::sync::Mutex<Link>,
    /// The server has said that its list is another one, and it was not listed since.
    is_outdated: AtomicBool,
    /// Held while the tools are listed.
    listing: tokio::sync::Mutex<()>,
    /// The places of calls that run concurrently.
    places: Semaphore,
}

#[derive(Default)]
struct Link {
    connection: Option<Arc<Connection>>,
    /// The number of failures in a row.
    failures: u32,
    not_before: Option<Instant>,
    reason: String,
}

/// The answers of a server about itself.
pub(crate) struct Described {
    pub(crate) protocol: String,
    pub(crate) name: String,
    pub(crate) left_out: usize,
}

impl Upstream {
    pub(crate) fn new(config: ServerConfig, surroundings: Surroundings) -> Arc<Self> {
        let file = |directory: &Option<PathBuf>, key: String| {
            directory.as_ref().map(|directory| directory.join(format!("{key}.json")))
        };
        let catalogue = file(&surroundings.cache_dir, config.key());
        let pins = file(&surroundings.pin_dir, config.identity());
        let pins = pins.map(|path| PinFile::new(path, config.name()));
        let shelf = Shelf::new(catalogue, pins);
        Arc::new(Self {
            config,
            surroundings,
            shelf,
            redactor: Mutex::default(),
            link: tokio::sync::Mutex::default(),
            is_outdated: AtomicBool::new(false),
            listing: tokio::sync::Mutex::default(),
            places: Semaphore::new(CONCURRENT_CALLS),
        })
    }

    pub(crate) fn config(&self) -> &ServerConfig {
        &self.config
    }

    pub(crate) fn shelf(&self) -> &Shelf {
        &self.shelf
    }

    /// Returns the tools, from memory or disk if they are known.
    pub(crate) async fn catalogue(self: &Arc<Self>) -> Result<Catalogue, ToolError> {
        if let Some(known) = self.shelf.get() {
            return Ok(known);
        }
        self.connection().await?;
        self.shelf.get().ok_or_else(|| self.unreachable("it listed no tools"))
    }

    /// Asks the server for its tools.
    pub(crate) async fn refresh(self: &Arc<Self>) -> Result<Described, ToolError> {
        let connection = self.connection().await?;
        let upstream = Arc::clone(self);
        let listed = background::finish(async move {
            let left_out = upstream.learn(&connection).await?;
            let (protocol, name) = connection.described();
            Ok(Described { protocol, name: text::summary(&name), left_out })
        });
        listed
            .await
            .unwrap_or_else(|error| Err(error.to_string()))
            .map_err(|r| self.unreachable(&r))
    }

    /// Calls a tool, within a time that begins when the server is there.
    pub(crate) async fn call(
        self: &Arc<Self>,
        tool: &str,
        arguments: JsonObject,
        time: Duration,
    ) -> Result<CallToolResult, ToolError> {
        // It is never closed.
        let _place = self.places.acquire().await.ok();
        let connection = self.connection().await?;
        // Only now the tools are certainly those that the server has.
        self.check_pins(tool)?;
        let (name, tool) = (self.config.name().to_owned(), tool.to_owned());
        let called = background::serve(async move {
            let called = tokio::time::timeout(time, connection.call(tool.clone(), arguments)).await;
            called.unwrap_or_else(|_| {
                let seconds = time.as_secs_f64();
                let message = format!("`{tool}` took longer than {seconds} s and was cancelled");
                Err(ToolError::new("TimeoutError", message))
            })
        });
        let called = called
            .await
            .unwrap_or_else(|error| Err(ToolError::new("ConnectionError", error.to_string())));
        called.map_err(|error| match error.type_name() {
            "ToolError" => ToolError::new("ToolError", self.clean(error.message())),
            kind => {
                let text = format!("the server `{name}`: {}", self.clean(error.message()));
                ToolError::new(kind.to_owned(), text)
            }
        })
    }

    /// Refuses a tool that differs from the one that the user has accepted.
    pub(crate) fn check_pins(&self, tool: &str) -> Result<(), ToolError> {
        let Some(reason) = self.shelf.diff().refuses(tool) else { return Ok(()) };
        let server = self.config.name();
        let tool = text::clean(tool);
        Err(ToolError::new(
            "PermissionError",
            format!(
                "`{tool}` of the server `{server}` {reason} since its tools were accepted, the \
                 user can look at it and run `isolet mcp pin --accept {}`",
                quoted(server)
            ),
        ))
    }

    /// Remembers the shape of a result.
    pub(crate) fn saw(self: &Arc<Self>, tool: &str, result: &Value) {
        if self.shelf.saw(tool, result)
            && let Ok(runtime) = background::handle()
        {
            let upstream = Arc::clone(self);
            runtime.spawn_blocking(move || upstream.shelf.write());
        }
    }

    /// Removes secrets from a value.
    pub(crate) fn redact(&self, value: &mut Value) {
        let redactor = lock(&self.redactor).clone();
        redactor.value(value);
    }

    /// Removes secrets and invisible characters from a text.
    pub(crate) fn clean(&self, message: &str) -> String {
        let redacted = lock(&self.redactor).text(message);
        text::cut(&text::clean(&redacted), REASON_CHARS)
    }

    /// Called when the server says that it has other tools.
    fn list_changed(self: Arc<Self>) {
        // However often it says so, one task waits for the one that lists.
        if self.is_outdated.swap(true, Ordering::AcqRel) {
            return;
        }
        tokio::spawn(self.learn_news());
    }

    /// Lists the tools again, if the server was reached.
    async fn learn_news(self: Arc<Self>) {
        let connection = self.link.lock().await.connection.clone();
        if let Some(connection) = connection {
            // A failure shows itself at the next call.
            let _ = self.learn(&connection).await;
        }
    }

    /// Returns a number that changes with the tools. Waits for a list that the server has
    /// announced.
    pub(crate) async fn version(self: &Arc<Self>) -> u64 {
        if self.is_outdated.load(Ordering::Acquire) {
            // The task that was started then may not have begun.
            let _ = background::finish(Arc::clone(self).learn_news()).await;
        }
        drop(self.listing.lock().await);
        self.shelf.version()
    }

    async fn connection(self: &Arc<Self>) -> Result<Arc<Connection>, ToolError> {
        let upstream = Arc::clone(self);
        // Others wait for the same start, so it continues if the caller that began it goes away.
        let linked = background::finish(async move { upstream.link().await }).await;
        linked.unwrap_or_else(|error| Err(error.to_string())).map_err(|r| self.unreachable(&r))
    }

    async fn link(self: Arc<Self>) -> Result<Arc<Connection>, String> {
        let mut link = self.link.lock().await;
        if let Some(connection) = &link.connection {
            if connection.is_alive() {
                return Ok(Arc::clone(connection));
            }
            let lived = connection.since.elapsed();
            link.failed("it ended", lived);
        }
        link.wait().await?;
        let begun = Instant::now();
        let started = tokio::time::timeout(self.surroundings.start_time, self.start()).await;
        let started = started.unwrap_or_else(|_| {
            let seconds = self.surroundings.start_time.as_secs_f64();
            Err(format!("it was not ready after {seconds} s"))
        });
        match started {
            Ok(connection) => {
                link.connection = Some(Arc::clone(&connection));
                Ok(connection)
            }
            Err(reason) => {
                link.failed(&reason, begun.elapsed().min(SETTLED / 2));
                Err(reason)
            }
        }
    }

    async fn start(self: &Arc<Self>) -> Result<Arc<Connection>, String> {
        let upstream = Arc::clone(self);
        let reached = tokio::task::spawn_blocking(move || {
            let mut redactor = Redactor::default();
            let reached = upstream.config.reach(&mut redactor);
            *lock(&upstream.redactor) = redactor;
            (reached, upstream.shelf.get().map(|known| known.era))
        });
        let (reached, era) = reached.await.map_err(|error| error.to_string())?;
        let reached = reached?;
        let first = match era {
            None => Start::Probe,
            Some(Era::Legacy) => Start::Legacy,
            Some(Era::Modern) => Start::Modern,
        };
        let connection = match self.open(&reached, first, None).await {
            Ok(connection) => connection,
            Err(StartFailure { reason, next, started }) => {
                // Some servers end at a message that they do not know, or have become newer or
                // older. One that is still there is asked again: it may take long to start.
                let second = match (first, next) {
                    (_, Next::No) => return Err(reason),
                    (Start::Probe, Next::Older) => Start::Legacy,
                    (Start::Probe, Next::Newer) => Start::Modern,
                    (Start::Legacy | Start::Modern, _) => Start::Probe,
                };
                self.open(&reached, second, started).await.map_err(|_| reason)?
            }
        };
        let connection = Arc::new(connection);
        self.learn(&connection).await?;
        connection.subscribe(Arc::downgrade(self));
        Ok(connection)
    }

    async fn open(
        self: &Arc<Self>,
        reached: &crate::config::Reached,
        start: Start,
        started: Option<Started>,
    ) -> Result<Connection, StartFailure> {
        let (log, name) = (Arc::clone(&self.surroundings.log), self.config.name().to_owned());
        let redactor = lock(&self.redactor).clone();
        let line = Box::new(move |line: &str| log(&name, &redactor.text(line)));
        let max_bytes = self.config.answer_bytes().unwrap_or(self.surroundings.answer_bytes);
        let listener = Listener(Arc::downgrade(self));
        Connection::open(reached, start, started, listener, max_bytes, line).await
    }

    /// Lists the tools and remembers them. Returns how many were left out.
    async fn learn(self: &Arc<Self>, connection: &Arc<Connection>) -> Result<usize, String> {
        let listing = self.listing.lock().await;
        self.is_outdated.store(false, Ordering::Release);
        let time = self.surroundings.start_time;
        let listed = tokio::time::timeout(time, connection.list()).await;
        let (tools, left_out) = listed
            .map_err(|_| format!("it did not list its tools in {} s", time.as_secs_f64()))??;
        let (era, upstream) = (connection.era(), Arc::clone(self));
        let put = tokio::task::spawn_blocking(move || upstream.shelf.put(era, tools)).await;
        drop(listing);
        if put.unwrap_or(false) {
            (self.surroundings.changed)(self.config.name());
        }
        Ok(left_out)
    }

    fn unreachable(&self, reason: &str) -> ToolError {
        let (server, reason) = (self.config.name(), self.clean(reason));
        ToolError::new("ConnectionError", format!("the server `{server}` is not there: {reason}"))
    }
}

impl Link {
    fn failed(&mut self, reason: &str, lived: Duration) {
        self.connection = None;
        self.failures = if lived >= SETTLED { 1 } else { self.failures.saturating_add(1) };
        let doublings = self.failures.saturating_sub(1).min(16);
        let wait = (FIRST_WAIT * 2_u32.pow(doublings)).min(LONGEST_WAIT);
        self.not_before = Some(Instant::now() + wait);
        reason.clone_into(&mut self.reason);
    }

    /// Waits until the server may be started.
    async fn wait(&self) -> Result<(), String> {
        let Some(not_before) = self.not_before else { return Ok(()) };
        let wait = not_before.saturating_duration_since(Instant::now());
        if wait > PATIENCE {
            let (failures, seconds) = (self.failures, wait.as_secs());
            return Err(format!(
                "{}; it has failed {failures} times and is tried again in {seconds} s",
                self.reason
            ));
        }
        tokio::time::sleep(wait).await;
        Ok(())
    }
}
