//! One connection to a server, from its start to its end.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;

use hyper::http::{HeaderName, HeaderValue};
use rmcp::ClientHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ClientConfig,
    ClientRequest, CustomResult, ErrorCode, Implementation, JsonObject, ListToolsRequest,
    PaginatedRequestParams, ProtocolVersion, ServerResult, SubscriptionFilter,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, NotificationContext, Peer,
    RoleClient, RunningService, ServiceError,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::Value as Json;
use url::Url;

use super::answers::Reader;
use super::catalogue::Era;
use super::child::{self, LineSink, Process, Started};
use super::http::HttpClient;
use super::{MAX_LIST_BYTES, MAX_TOOLS, Upstream};
use crate::config::Reached;
use crate::tool::definition::Definition;
use isolet::ToolError;

pub(super) struct Connection {
    // Dropped first, which closes the streams of the process.
    service: RunningService<RoleClient, Listener>,
    _process: Option<Process>,
    /// The process has closed its streams.
    closed: Option<Arc<AtomicBool>>,
    pub(super) since: Instant,
}

/// The way in which the first messages are exchanged.
#[derive(Clone, Copy)]
pub(super) enum Start {
    Legacy,
    Modern,
    /// Asks the server which of both it knows.
    Probe,
}

impl Start {
    fn mode(self) -> ClientLifecycleMode {
        let preferred_versions = vec![ProtocolVersion::LATEST];
        match self {
            Self::Legacy => ClientLifecycleMode::Initialize,
            Self::Modern => ClientLifecycleMode::Discover { preferred_versions },
            Self::Probe => {
                let legacy_version = Some(ProtocolVersion::LATEST_WITH_INITIALIZE);
                ClientLifecycleMode::Auto { preferred_versions, legacy_version }
            }
        }
    }
}

impl Connection {
    /// Connects, to a process that was started before if there is one. Answers have at most so many
    /// bytes.
    pub(super) async fn open(
        reached: &Reached,
        start: Start,
        started: Option<Started>,
        listener: Listener,
        max_bytes: usize,
        log: LineSink,
    ) -> Result<Self, StartFailure> {
        let reader = Reader::new(max_bytes);
        let (service, process, closed) = match reached {
            Reached::Stdio { program, arguments, env, directory } => {
                let Started { lines, process } = match started {
                    Some(started) => started,
                    None => {
                        child::start(program, arguments, env, directory.as_deref(), reader, log)
                            .map_err(StartFailure::certain)?
                    }
                };
                let closed = lines.closed();
                let (lent, back) = lines.lend();
                match listener.serve_with_lifecycle(lent, start.mode()).await {
                    Ok(service) => (Ok(service), Some(process), Some(closed)),
                    Err(error) => {
                        let lines = back.take().filter(|_| !closed.load(Ordering::Acquire));
                        let started = lines.map(|lines| Started { lines, process });
                        return Err(StartFailure::of(&error, started));
                    }
                }
            }
            Reached::Http { url, headers } => {
                let url_of_server = server_url(url).map_err(StartFailure::certain)?;
                let client = HttpClient::new(url_of_server, reader).await;
                let client = client.map_err(|error| StartFailure::certain(error.to_string()))?;
                let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
                config.custom_headers = converted(headers).map_err(StartFailure::certain)?;
                let transport = StreamableHttpClientTransport::with_client(client, config);
                (listener.serve_with_lifecycle(transport, start.mode()).await, None, None)
            }
        };
        let service = service.map_err(|error| StartFailure::of(&error, None))?;
        Ok(Self { service, _process: process, closed, since: Instant::now() })
    }

    /// Returns `false` once no request can be answered any more.
    pub(super) fn is_alive(&self) -> bool {
        let ended = self.closed.as_ref().is_some_and(|closed| closed.load(Ordering::Acquire));
        !ended && !self.service.is_closed() && !self.service.is_transport_closed()
    }

    pub(super) fn era(&self) -> Era {
        let info = self.service.peer_info();
        let is_modern = info.is_some_and(|info| !info.protocol_version.has_initialize());
        if is_modern { Era::Modern } else { Era::Legacy }
    }

    /// Returns the version of the protocol, and the name and version of the server.
    pub(super) fn described(&self) -> (String, String) {
        let Some(info) = self.service.peer_info() else { return Default::default() };
        let name = info.server_info.as_ref().map(|server| {
            format!("{} {}", server.title.as_ref().unwrap_or(&server.name), server.version)
        });
        (info.protocol_version.as_str().to_owned(), name.unwrap_or_default())
    }

    /// Lists the tools, sorted, and counts those that were left out.
    pub(super) async fn list(&self) -> Result<(Vec<Definition>, usize), String> {
        let (mut tools, mut names, mut left_out) = (Vec::new(), BTreeSet::new(), 0);
        let (mut cursor, mut cursors) = (None, BTreeSet::new());
        let mut room = MAX_LIST_BYTES;
        loop {
            let params = cursor.clone().map(|cursor| {
                let mut params = PaginatedRequestParams::default();
                params.cursor = Some(cursor);
                params
            });
            let request = params.map_or_else(ListToolsRequest::default, |params| {
                ListToolsRequest::with_param(params)
            });
            let answer = self.service.send_request(ClientRequest::ListToolsRequest(request)).await;
            let (page, next) = match answer {
                Ok(ServerResult::ListToolsResult(page)) => {
                    let tools = page.tools.iter().map(Definition::from_tool);
                    (tools.collect::<Vec<_>>(), page.next_cursor)
                }
                // One of the tools has not the right form.
                Ok(ServerResult::CustomResult(CustomResult(Json::Object(mut page)))) => {
                    let Some(Json::Array(tools)) = page.remove("tools") else {
                        return Err("its list of tools is no list".to_owned());
                    };
                    let next = page.get("nextCursor").and_then(Json::as_str).map(str::to_owned);
                    (tools.into_iter().map(Definition::from_json).collect(), next)
                }
                Err(ServiceError::McpError(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => {
                    (Vec::new(), None)
                }
                Ok(_) => return Err("its list of tools is no list".to_owned()),
                Err(error) => return Err(format!("it does not list its tools: {error}")),
            };
            for tool in page {
                let fits = |tool: &Definition| tools.len() < MAX_TOOLS && tool.bytes() <= room;
                match tool.filter(fits) {
                    Some(tool) if names.insert(tool.name.clone()) => {
                        room -= tool.bytes();
                        tools.push(tool);
                    }
                    _ => left_out += 1,
                }
            }
            // A server could send pages for ever.
            let goes_on = tools.len() < MAX_TOOLS && cursors.len() < MAX_TOOLS;
            cursor = next.filter(|next| goes_on && cursors.insert(next.clone()));
            if cursor.is_none() {
                tools.sort_by(|one, other| one.name.cmp(&other.name));
                return Ok((tools, left_out));
            }
        }
    }

    /// Calls a tool. Dropping the future cancels the call at the server.
    pub(super) async fn call(
        &self,
        tool: String,
        arguments: JsonObject,
    ) -> Result<CallToolResult, ToolError> {
        let params = CallToolRequestParams::new(tool).with_arguments(arguments);
        match self.service.call_tool_once(params).await {
            Ok(CallToolResponse::Complete(result)) => Ok(result),
            Ok(CallToolResponse::InputRequired(_)) => Err(ToolError::new(
                "ToolError",
                "the server asks for more input, which isolet does not give",
            )),
            Ok(_) => Err(ToolError::new(
                "ToolError",
                "the server answers with a task, which isolet does not wait for",
            )),
            Err(error) => Err(call_failure(&error)),
        }
    }

    /// Subscribes the listener to changes of the list, if a server of the newer protocol requires a
    /// subscription.
    pub(super) fn subscribe(&self, upstream: Weak<Upstream>) {
        let info = self.service.peer_info();
        let tells = info
            .and_then(|info| info.capabilities.tools.as_ref()?.list_changed)
            .unwrap_or_default();
        if !tells || self.era() == Era::Legacy {
            return;
        }
        let peer: Peer<RoleClient> = self.service.peer().clone();
        tokio::spawn(async move {
            let filter = SubscriptionFilter::builder().tools_list_changed().build();
            let Ok(mut changes) = peer.listen(filter).await else { return };
            while let Ok(Some(_)) = changes.next().await {
                let Some(upstream) = upstream.upgrade() else { return };
                upstream.list_changed();
            }
        });
    }
}

/// Receives the messages that a server sends without a request. isolet declines the server's own
/// requests: it offers neither a model nor a person.
pub(super) struct Listener(pub(super) Weak<Upstream>);

impl ClientHandler for Listener {
    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        if let Some(upstream) = self.0.upgrade() {
            upstream.list_changed();
        }
    }

    fn get_info(&self) -> ClientConfig {
        let isolet = Implementation::new("isolet", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), isolet)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}

fn server_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("its URL is invalid: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(format!("its URL has the scheme `{}`, it needs http or https", url.scheme()));
    }
    Ok(url)
}

fn converted(
    headers: &std::collections::BTreeMap<String, String>,
) -> Result<HashMap<HeaderName, HeaderValue>, String> {
    let mut converted = HashMap::new();
    for (name, value) in headers {
        let invalid = || format!("its header `{name}` is no valid header");
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| invalid())?;
        value.set_sensitive(true);
        converted.insert(key, value);
    }
    Ok(converted)
}

/// Why a server did not start.
pub(super) struct StartFailure {
    /// The error, with the server's own words.
    pub(super) reason: String,
    pub(super) next: Next,
    /// The process, if it has answered and still runs.
    pub(super) started: Option<Started>,
}

/// The protocol to try next with a server that did not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Nothing.
    No,
    /// The older protocol: it ended at a message that it may not know.
    Older,
    /// The newer protocol: it answered, and refused the older.
    Newer,
}

impl StartFailure {
    fn certain(reason: String) -> Self {
        Self { reason, next: Next::No, started: None }
    }

    fn of(error: &ClientInitializeError, started: Option<Started>) -> Self {
        if error.is_authorization_required() {
            return Self::certain(UNAUTHORIZED.to_owned());
        }
        let (reason, next) = match error {
            ClientInitializeError::ConnectionClosed(_) => {
                ("it ended before it said that it is a server of MCP".to_owned(), Next::Older)
            }
            ClientInitializeError::TransportError { error, .. } => {
                (transport_failure(&error.error), Next::Older)
            }
            ClientInitializeError::JsonRpcError(error) => (error.message.to_string(), Next::Newer),
            other => (other.to_string(), Next::Newer),
        };
        let started = started.filter(|_| next == Next::Newer);
        Self { reason, next, started }
    }
}

/// Returns what failed, without the layer of `rmcp` that passed it on.
fn transport_failure(error: &impl std::fmt::Display) -> String {
    let said = error.to_string();
    said.strip_prefix("Client error: ").map_or(said.clone(), str::to_owned)
}

const UNAUTHORIZED: &str = "it asks for authorization (HTTP 401), set a token in its `headers`";

fn call_failure(error: &ServiceError) -> ToolError {
    match error {
        ServiceError::McpError(error) => ToolError::new("ToolError", error.message.to_string()),
        ServiceError::TransportClosed => {
            ToolError::new("ConnectionError", "it ended before it answered")
        }
        error if error.is_authorization_required() => {
            ToolError::new("ConnectionError", UNAUTHORIZED)
        }
        ServiceError::TransportSend(error) => {
            ToolError::new("ConnectionError", transport_failure(&error.error))
        }
        other => ToolError::new("ConnectionError", other.to_string()),
    }
}
