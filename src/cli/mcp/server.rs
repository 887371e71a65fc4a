//! What the server does for a client's requests. The protocol itself is the crate `rmcp`.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::BoxFuture;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    Implementation, JsonObject, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProgressNotificationParam, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
    ResourceContents, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ServerHandler, model::CacheScope};
use serde_json::{Value as Json, json};

use super::outputs::{Data, Output, read_address};
use super::python::{Job, Python};
use super::tools::{CLOSE_SESSION, Facts, RUN_PYTHON};
use super::{http, result, tools};

/// How long clients may keep the list of tools, in milliseconds. It stays as it is while the server
/// runs.
const LIST_TTL_MS: u64 = 3_600_000;

/// A client's view of the server.
#[derive(Clone)]
pub(super) struct Server {
    python: Arc<Python>,
    /// Whose sessions a request may use, unless it says who sends it.
    owner: String,
}

impl Server {
    pub(super) fn new(python: Arc<Python>, owner: String) -> Self {
        Self { python, owner }
    }

    fn tools(&self) -> Vec<Tool> {
        tools::all(&facts(&self.python))
    }

    /// Returns whose sessions a request may use.
    fn owner(&self, context: &RequestContext<RoleServer>) -> String {
        http::principal(&context.extensions).unwrap_or_else(|| self.owner.clone())
    }

    async fn run_python(
        &self,
        arguments: &JsonObject,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResult, String> {
        let mut arguments = Arguments::new(RUN_PYTHON, arguments, &["code", "session", "timeout"])?;
        let code = arguments.text("code")?.ok_or("run_python needs `code`, the code to run")?;
        let handle = arguments.text("session")?;
        let timeout = arguments.seconds("timeout")?;
        let job = Job { code, timeout };
        let owner = self.owner(&context);
        let (token, peer) = (context.meta.get_progress_token(), context.peer.clone());
        let beat = move |time: Duration| -> BoxFuture<'static, ()> {
            let (token, peer) = (token.clone(), peer.clone());
            Box::pin(async move {
                let Some(token) = token else { return };
                let progress = ProgressNotificationParam::new(token, time.as_secs_f64())
                    .with_message(format!("the code has run for {} s", time.as_secs()));
                // A client that has gone cancels the call.
                let _ = peer.notify_progress(progress).await;
            })
        };
        let run = self.python.run(&owner, handle.as_deref(), job, &context.ct, beat);
        Ok(match run.await? {
            Some(ran) => result::of_run(&ran, self.python.args().result_chars),
            // Nobody gets it.
            None => result::refusal("the call was cancelled"),
        })
    }

    fn close_session(
        &self,
        arguments: &JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, String> {
        let mut arguments = Arguments::new(CLOSE_SESSION, arguments, &["session"])?;
        let handle = arguments.text("session")?;
        let handle = handle.ok_or("close_session needs `session`, from an earlier result")?;
        self.python.close(&self.owner(context), &handle)?;
        let text = ContentBlock::text(format!("Session {handle} has ended."));
        let mut result = CallToolResult::success(vec![text]);
        result.structured_content = Some(json!({"closed": true}));
        Ok(result)
    }
}

fn facts(python: &Python) -> Facts {
    let args = python.args();
    let reach = args.policy.permissions.reach();
    Facts {
        timeout: args.policy.timeout,
        session_ttl: args.session_ttl,
        max_sessions: args.max_sessions,
        result_chars: args.result_chars,
        packages: args.policy.permissions.package_names().join(", "),
        is_destructive: reach.writes,
        is_open: reach.network,
        access: reach.in_words(),
    }
}

/// The arguments of a call, which are a model's.
struct Arguments<'a> {
    tool: &'static str,
    arguments: &'a JsonObject,
}

impl<'a> Arguments<'a> {
    fn new(tool: &'static str, arguments: &'a JsonObject, known: &[&str]) -> Result<Self, String> {
        match arguments.keys().find(|name| !known.contains(&name.as_str())) {
            Some(name) => {
                let name: String = name.chars().take(40).collect();
                let known = known.join("`, `");
                Err(format!("{tool} has no parameter `{}`; it has `{known}`", name.escape_debug()))
            }
            None => Ok(Self { tool, arguments }),
        }
    }

    /// Returns a text; `None` if it is missing or null.
    fn text(&mut self, name: &str) -> Result<Option<String>, String> {
        match self.arguments.get(name) {
            None | Some(Json::Null) => Ok(None),
            Some(Json::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(self.mismatch(name, "a string", other)),
        }
    }

    fn seconds(&mut self, name: &str) -> Result<Option<Duration>, String> {
        let value = match self.arguments.get(name) {
            None | Some(Json::Null) => return Ok(None),
            Some(value) => value,
        };
        let seconds = value.as_f64().filter(|seconds| *seconds > 0.0);
        let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        time.map(Some).ok_or_else(|| self.mismatch(name, "a number of seconds above 0", value))
    }

    fn mismatch(&self, name: &str, wanted: &str, found: &Json) -> String {
        let found: String = found.to_string().chars().take(40).collect();
        format!("`{name}` of {} is {found}, and has to be {wanted}", self.tool)
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        let mut info = ServerConfig::new(capabilities);
        info.server_info = Implementation::new("isolet", env!("CARGO_PKG_VERSION"))
            .with_title("isolet: Python in a sandbox");
        info.with_instructions(
            "run_python runs Python in a sandbox. Pass the `session` of a result to the next call \
             to go on with its variables. Print what you want to see, and keep large data in \
             variables.",
        )
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools())
            .with_ttl_ms(LIST_TTL_MS)
            .with_cache_scope(CacheScope::Private))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools().into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let result = match request.name.as_ref() {
            RUN_PYTHON => self.run_python(&arguments, context).await,
            CLOSE_SESSION => self.close_session(&arguments, &context),
            name => {
                let name: String = name.chars().take(40).collect();
                let message = format!("there is no tool `{}`", name.escape_debug());
                return Err(ErrorData::invalid_params(message, None));
            }
        };
        Ok(CallToolResponse::Complete(result.unwrap_or_else(|reason| result::refusal(&reason))))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let mut resources = Vec::new();
        for (handle, session) in self.python.sessions(&self.owner(&context)) {
            let outputs = session.outputs.all();
            resources.extend(outputs.iter().map(|output| result::resource(output, &handle)));
        }
        resources.sort_by(|one, other| one.uri.cmp(&other.uri));
        Ok(ListResourcesResult::with_all_items(resources))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let missing = |reason: String| ErrorData::resource_not_found(reason, None);
        let shown: String = request.uri.chars().take(80).collect();
        let (handle, number) = read_address(&request.uri)
            .ok_or_else(|| missing(format!("`{}` is no resource", shown.escape_debug())))?;
        let in_use = self.python.get(&self.owner(&context), handle).map_err(missing)?;
        let output = in_use.session().outputs.get(number);
        let output = output.ok_or_else(|| {
            missing("it is kept no more: newer outputs took its place".to_owned())
        })?;
        let contents = contents(&output, request.uri);
        Ok(ReadResourceResponse::Complete(ReadResourceResult::new(vec![contents])))
    }
}

fn contents(output: &Output, uri: String) -> ResourceContents {
    let contents = match &output.data {
        Data::Text(text) => ResourceContents::text(text.clone(), uri),
        Data::Bytes(bytes) => ResourceContents::blob(STANDARD.encode(bytes), uri),
    };
    contents.with_mime_type(output.format.clone())
}
