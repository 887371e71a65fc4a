//! The hub: servers, the rules for their tools, and the tools as a sandbox takes them.

pub(crate) mod audit;
mod builder;
mod call;
pub(crate) mod policy;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use builder::HubBuilder;

use self::policy::{Approver, Grants, Rule, Verdict};
use crate::hub::audit::CallRecord;
use crate::tool::definition::Definition;
use crate::tool::names;
use crate::tool::pins::PinDiff;
use crate::tool::signature::Signature;
use crate::tool::text;
use crate::upstream::{Catalogue, Upstream};
use isolet::ToolError;
use isolet::{Tool, ToolModule};

/// The tools of MCP servers, as tools of Python.
///
/// A hub starts a server when it is first needed, keeps one connection to it for all sessions, and
/// ends it when the last clone of the hub and the last of its tools are dropped. It works on a
/// separate thread, so its futures need no runtime.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use isolet_mcp::{Config, Environment, Hub, Origin, Rule};
///
/// let environment = Environment::new(std::env::vars());
/// let config = Config::read("isolet.mcp.json", &environment, Origin::Own)?;
/// let hub = Hub::builder().config(config).rule(Rule::allow("github.get_*")?).build()?;
/// for server in hub.servers() {
///     println!("import {}", server.module);
/// }
/// let tools = hub.tools("github").await.map_err(|error| error.to_string())?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Hub(Arc<Inner>);

struct Inner {
    /// Sorted by name, each with the name of its module.
    servers: Vec<(Arc<Upstream>, String)>,
    rules: Vec<Rule>,
    approver: Option<Arc<dyn Approver>>,
    audit: Option<Audit>,
    grants: Grants,
    call_time: Duration,
}

type Audit = Arc<dyn Fn(&CallRecord) + Send + Sync>;

/// A server of a hub.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Server {
    /// The name in the configuration.
    pub name: String,
    /// The name of its module in Python.
    pub module: String,
    /// The number of its tools, if they are known without asking the server.
    pub tools: Option<usize>,
}

/// A tool of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolInfo {
    /// The name, as the server has it.
    pub name: String,
    /// The name in Python.
    pub python_name: String,
    /// The signature in Python, as in `get_sum(a: float, b: float)`.
    pub signature: String,
    /// The first paragraph of the description, at most 200 characters, without invisible
    /// characters.
    pub summary: String,
    /// The whole docstring, at most 2,000 characters of description.
    pub doc: String,
    /// The verdict of the rules on calls.
    pub verdict: Verdict,
    /// The server says that the tool changes nothing. It may say so of any tool.
    pub says_read_only: bool,
    /// The tool is new or has changed since the user accepted the server's tools, so it is refused.
    pub is_unaccepted: bool,
}

/// The answer of a server to [`Hub::check`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerReport {
    /// The name and version of the server, as it says.
    pub name: String,
    /// The version of MCP.
    pub protocol: String,
    /// The number of tools.
    pub tools: usize,
    /// The number of tools that were left out: invalid, too large, or too many.
    pub left_out: usize,
    /// The time that the server took to start, if it was not running, and to list its tools.
    pub duration: Duration,
    /// The changes since the user accepted the tools.
    pub pins: PinDiff,
}

impl Hub {
    /// Starts to build a hub.
    pub fn builder() -> HubBuilder {
        HubBuilder::new()
    }

    /// Returns the servers, without those that are switched off.
    #[must_use]
    pub fn servers(&self) -> Vec<Server> {
        let server = |(upstream, module): &(Arc<Upstream>, String)| Server {
            name: upstream.config().name().to_owned(),
            module: module.clone(),
            tools: upstream.shelf().get().map(|known| known.tools.len()),
        };
        self.0.servers.iter().map(server).collect()
    }

    /// Returns the tools of a server, which is named as in the configuration or as its module.
    ///
    /// The list comes from memory or disk if the server was listed before; otherwise the server is
    /// started. A call of a tool checks the rules and the arguments, asks the approver if the rules
    /// say so, and only then sends anything.
    ///
    /// # Errors
    ///
    /// `LookupError` if there is no such server, `ConnectionError` if it does not start.
    pub async fn tools(&self, server: &str) -> Result<Vec<Tool>, ToolError> {
        let upstream = self.server(server)?;
        let known = upstream.catalogue().await?;
        Ok(described(&known)
            .map(|(definition, signature)| {
                call::tool(self.clone(), Arc::clone(upstream), definition, signature)
            })
            .collect())
    }

    /// Returns a module of tools for each server, by its name in Python.
    ///
    /// A server is started when a session first uses its module, unless its tools are known.
    #[must_use]
    pub fn modules(&self) -> Vec<ToolModule> {
        let servers = self.0.servers.iter();
        let module = |(upstream, module): &(Arc<Upstream>, String)| {
            let (hub, server) = (self.clone(), upstream.config().name().to_owned());
            let doc = format!("The tools of the MCP server `{}`.", text::clean(&server));
            let watched = Arc::clone(upstream);
            let provided = ToolModule::new(module.clone(), doc, move || {
                let (hub, server) = (hub.clone(), server.clone());
                async move { hub.tools(&server).await }
            });
            provided.version(move || {
                let upstream = Arc::clone(&watched);
                async move { upstream.version().await }
            })
        };
        servers.map(module).collect()
    }

    /// Describes the tools of a server, as [`tools`](Self::tools) finds them.
    ///
    /// # Errors
    ///
    /// As [`tools`](Self::tools).
    pub async fn describe(&self, server: &str) -> Result<Vec<ToolInfo>, ToolError> {
        let upstream = self.server(server)?;
        let known = upstream.catalogue().await?;
        let diff = upstream.shelf().diff();
        let info = |(definition, signature): (&Definition, Signature)| {
            let spec = &signature.spec;
            let names = (definition.name.as_str(), spec.name());
            let says_read_only = definition.says_read_only();
            let (verdict, _) =
                policy::decide(upstream.config(), &self.0.rules, names, says_read_only);
            ToolInfo {
                name: definition.name.clone(),
                python_name: spec.name().to_owned(),
                signature: spec.to_string(),
                summary: text::summary(definition.description.as_deref().unwrap_or_default()),
                doc: spec.docstring(),
                verdict,
                says_read_only,
                is_unaccepted: diff.refuses(&definition.name).is_some(),
            }
        };
        Ok(described(&known).map(info).collect())
    }

    /// Starts a server, if it is not running, and asks it for its tools.
    ///
    /// # Errors
    ///
    /// As [`tools`](Self::tools).
    pub async fn check(&self, server: &str) -> Result<ServerReport, ToolError> {
        let upstream = self.server(server)?;
        let begun = Instant::now();
        let described = upstream.refresh().await?;
        let tools = upstream.shelf().get().map_or(0, |known| known.tools.len());
        Ok(ServerReport {
            name: described.name,
            protocol: described.protocol,
            tools,
            left_out: described.left_out,
            duration: begun.elapsed(),
            pins: PinDiff::clone(&upstream.shelf().diff()),
        })
    }

    /// Returns the changes since the user accepted a server's tools. Asks the server.
    ///
    /// # Errors
    ///
    /// As [`tools`](Self::tools).
    pub async fn pin_diff(&self, server: &str) -> Result<PinDiff, ToolError> {
        self.check(server).await.map(|report| report.pins)
    }

    /// Accepts the tools that a server has now. Asks the server, and returns what had changed.
    ///
    /// # Errors
    ///
    /// As [`tools`](Self::tools), and `OSError` if the pins cannot be written.
    pub async fn accept(&self, server: &str) -> Result<PinDiff, ToolError> {
        let diff = self.pin_diff(server).await?;
        self.server(server)?.shelf().accept().map_err(|error| {
            ToolError::new("OSError", format!("the pins of `{server}` cannot be written: {error}"))
        })?;
        Ok(diff)
    }

    /// Forgets the approvals for a session that has ended.
    pub fn forget_session(&self, session_id: u64) {
        self.0.grants.forget(session_id);
    }

    fn server(&self, name: &str) -> Result<&Arc<Upstream>, ToolError> {
        let servers = || self.0.servers.iter();
        let found = servers()
            .find(|(upstream, _)| upstream.config().name() == name)
            .or_else(|| servers().find(|(_, module)| module == name));
        found.map(|(upstream, _)| upstream).ok_or_else(|| {
            let names: Vec<_> = servers().map(|(upstream, _)| upstream.config().name()).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            let message = format!("there is no server `{name}`, there are {names}");
            ToolError::new("LookupError", message)
        })
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").field("servers", &self.servers()).finish_non_exhaustive()
    }
}

/// Returns the tools with their signatures.
fn described(known: &Catalogue) -> impl Iterator<Item = (&Definition, Signature)> {
    let names: Vec<&str> = known.tools.iter().map(|tool| tool.name.as_str()).collect();
    let pythons = names::assign(&names);
    known.tools.iter().zip(pythons).map(|(tool, python)| {
        let shape = known.shapes.get(&tool.name);
        (tool, Signature::new(&python, tool, shape))
    })
}
