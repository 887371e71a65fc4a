//! Handles a client's requests. The crate `rmcp` implements the protocol itself.

use std::sync::Arc;
use std::time::Duration;

use crate::hub::policy::Decision;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::BoxFuture;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ElicitRequest,
    ElicitResult, ErrorData, Implementation, InputRequest, InputRequiredResult, JsonObject,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProgressNotificationParam, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, ResourceContents, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ServerHandler, model::CacheScope};
use serde_json::json;

use super::approvals::{self, Question};
use super::arguments::Arguments;
use super::outputs::{Data, Output, read_address};
use super::parked::Parked;
use super::python::Python;
use super::running::{Begun, Job, Step};
use super::tools::{
    CLOSE_SESSION, RUN_PYTHON, RUN_SHELL, RUN_SKILL, Runner, SEARCH_TOOLS, WRITE_FILE,
};
use super::{apps, files, http, result, skills, stubs, tools};
use isolet_support::skills::Skill;

/// The time for which clients may cache the list of tools, in milliseconds. The list does not
/// change while the server runs.
const LIST_TTL_MS: u64 = 3_600_000;

/// The name of the question in a result that asks for the user's decision.
const APPROVAL: &str = "approval";

/// The number of tools that a search finds by default, and at most.
const FOUND: usize = 10;
const MAX_FOUND: usize = 50;

/// The parameters of the tools.
const SEARCH_PARAMS: &[&str] = &["query", "server", "limit"];
const CLOSE_PARAMS: &[&str] = &["session"];
const WRITE_PARAMS: &[&str] = &["path", "text", "data", "session"];

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

    async fn tools(&self, context: &RequestContext<RoleServer>) -> Vec<Tool> {
        let mut tools = tools::all(self.python.facts().await);
        if shows_pages(context) {
            apps::add_to(&mut tools);
        }
        tools
    }

    /// Returns whose sessions a request may use.
    fn owner(&self, context: &RequestContext<RoleServer>) -> String {
        http::principal(&context.extensions).unwrap_or_else(|| self.owner.clone())
    }

    /// Returns the answer to a call that runs code.
    async fn ran(
        &self,
        runner: Runner,
        request: &CallToolRequestParams,
        arguments: &JsonObject,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let response = self.run(runner, request, arguments, context).await;
        Ok(response.unwrap_or_else(|reason| CallToolResponse::Complete(result::refusal(&reason))))
    }

    async fn run(
        &self,
        runner: Runner,
        request: &CallToolRequestParams,
        arguments: &JsonObject,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, String> {
        let owner = self.owner(&context);
        // The answer to the question of a server that has ended.
        let mut answer = None;
        let mut begun = match &request.request_state {
            Some(reference) => {
                let resumed = self.resumed(request, arguments, &owner, reference).await?;
                answer = resumed.1;
                resumed.0
            }
            None => match self.begun(runner, arguments, &owner, &context).await? {
                Some(begun) => begun,
                None => return Ok(cancelled()),
            },
        };
        loop {
            let step = self.python.step(&owner, begun, &context.ct, beat(&context)).await?;
            let (waiting, questions) = match step {
                Step::Ended(ran) => {
                    let arguments = Arguments::new(runner.name(), arguments, runner.params());
                    let max_chars = self.python.bounds().result_chars;
                    let shown = (runner == Runner::Python && shows_pages(&context))
                        .then(apps::Shown::default);
                    let ignored = arguments.ignored();
                    let result = result::of_run(&ran, &ignored, runner, max_chars, shown);
                    return Ok(CallToolResponse::Complete(result));
                }
                Step::Cancelled => return Ok(cancelled()),
                Step::Asked(begun, questions) => (begun, questions),
            };
            if let Some((question, decision)) = answer.take()
                && question == approvals::digest(&questions)
            {
                approvals::decide(questions, &decision);
                begun = waiting;
                continue;
            }
            match way_to_ask(&context) {
                Way::Elicitation => {
                    let decision = self.elicit(&questions, &context).await;
                    approvals::decide(questions, &decision);
                    begun = waiting;
                }
                Way::Return => {
                    let parked = Parked { begun: waiting, questions };
                    return self.park(&owner, arguments, parked);
                }
                Way::None => {
                    let options = approvals::options(&questions);
                    let reason = format!(
                        "this client cannot ask its user; the user can allow it with {options}"
                    );
                    approvals::decide(questions, &Decision::No(reason));
                    begun = waiting;
                }
            }
        }
    }

    /// Begins a run. Returns `None` if it was cancelled before.
    async fn begun(
        &self,
        runner: Runner,
        arguments: &JsonObject,
        owner: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<Option<Begun>, String> {
        let arguments = Arguments::new(runner.name(), arguments, runner.params());
        let (name, what) = runner.code();
        let code = arguments.text(name)?.ok_or_else(|| arguments.missing(name, what))?;
        let code = match runner {
            Runner::Python | Runner::Shell => code,
            Runner::Skill => {
                let skill = self.skill(&arguments)?;
                let line = arguments.text("arguments")?.unwrap_or_default();
                skills::command(skill, &code, &line)?
            }
        };
        let handle = arguments.session()?;
        let may_wait = matches!(way_to_ask(context), Way::Return);
        let timeout = arguments.seconds("timeout")?;
        let has_tables = runner == Runner::Python && shows_pages(context);
        let job = Job { code, runner, timeout, has_tables, may_wait };
        self.python.begin(owner, handle.as_deref(), job, &context.ct).await
    }

    /// Returns the skill that a call names.
    fn skill(&self, arguments: &Arguments<'_>) -> Result<&Skill, String> {
        let name = arguments.text("skill")?;
        let name = name.ok_or_else(|| arguments.missing("skill", ", the name of one"))?;
        skills::named(self.python.skills(), &name)
    }

    /// Returns a text of a skill, unless the call is for a script.
    fn read_skill(&self, given: &JsonObject) -> Option<Result<CallToolResult, String>> {
        let arguments = Arguments::new(RUN_SKILL, given, Runner::Skill.params());
        let read = || {
            if arguments.text("script")?.is_some() {
                return Ok(None);
            }
            let skill = self.skill(&arguments)?;
            let text = match arguments.text("file")? {
                Some(file) => skill.text(&file).map_err(|error| error.to_string())?,
                None => skills::instructions(skill),
            };
            Ok(Some(text))
        };
        let read = read().transpose()?;
        Some(read.map(|text| {
            let remark =
                arguments.remark().map_or_else(String::new, |remark| format!("\n{remark}"));
            let text = format!("{text}{remark}");
            let mut result = CallToolResult::success(vec![ContentBlock::text(text.as_str())]);
            result.structured_content = Some(result::of_text(&text));
            result
        }))
    }

    /// Goes on with a run that waits for the user's decision. Returns the answer with the digest of
    /// its question if the run asks again, because its server has ended.
    async fn resumed(
        &self,
        request: &CallToolRequestParams,
        arguments: &JsonObject,
        owner: &str,
        reference: &str,
    ) -> Result<(Begun, Option<(String, Decision)>), String> {
        let python = &self.python;
        let none = "no code waits for this answer: it was given before, came too late, or belongs \
                    to another call. Nothing was run. Call again without `requestState` to run the \
                    code anew";
        let reference = python.parked.open(owner, arguments, reference).ok_or(none)?;
        let answers = request.input_responses.as_ref();
        let answer = answers.and_then(|answers| answers.get(APPROVAL)).cloned();
        let answer = answer.and_then(|answer| serde_json::from_value::<ElicitResult>(answer).ok());
        let decision = answer.map_or_else(
            || Decision::No(format!("the client's answer has no `{APPROVAL}`")),
            |answer| approvals::decision(&answer),
        );
        if let Some(parked) = python.parked.take(&reference) {
            approvals::decide(parked.questions, &decision);
            return Ok((parked.begun, None));
        }
        let revived = python.revive(owner, &reference).await?;
        let revived = revived.ok_or(none)?;
        Ok((revived, Some((reference.question, decision))))
    }

    /// Has the client ask its user, and come back with the answer.
    fn park(
        &self,
        owner: &str,
        arguments: &JsonObject,
        parked: Parked,
    ) -> Result<CallToolResponse, String> {
        let form = approvals::form(&parked.questions).map_err(|error| error.to_string())?;
        let request = InputRequest::Elicitation(ElicitRequest::new(form));
        let reference = self.python.parked.park(owner, arguments, parked)?;
        let requests = [(APPROVAL.to_owned(), request)].into_iter().collect();
        let result = InputRequiredResult::new(Some(requests), Some(reference));
        Ok(CallToolResponse::InputRequired(result))
    }

    /// Asks the client's user, as older revisions do.
    async fn elicit(
        &self,
        questions: &[Question],
        context: &RequestContext<RoleServer>,
    ) -> Decision {
        let form = match approvals::form(questions) {
            Ok(form) => form,
            Err(error) => return Decision::No(error.to_string()),
        };
        let asked = context.peer.create_elicitation(form);
        let asked = tokio::time::timeout(self.python.bounds().approval_timeout, asked);
        tokio::select! {
            biased;
            () = context.ct.cancelled() => Decision::No("the call was cancelled".to_owned()),
            answer = asked => match answer {
                Ok(Ok(answer)) => approvals::decision(&answer),
                Ok(Err(error)) => Decision::No(format!("the client could not ask: {error}")),
                Err(_) => {
                    Decision::No("nobody answered in time (`--approval-timeout`)".to_owned())
                }
            },
        }
    }

    async fn search_tools(&self, arguments: &JsonObject) -> Result<CallToolResult, String> {
        let hub = self.python.hub().ok_or("there are no other servers")?;
        let arguments = Arguments::new(SEARCH_TOOLS, arguments, SEARCH_PARAMS);
        let query = arguments.text("query")?.ok_or_else(|| arguments.missing("query", ""))?;
        let server = arguments.name("server")?;
        let limit = arguments.count("limit", MAX_FOUND)?.unwrap_or(FOUND);
        let mut text = stubs::search(hub, &query, server.as_deref(), limit).await?;
        if let Some(remark) = arguments.remark() {
            text.extend(["\n", &remark]);
        }
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]))
    }

    async fn close_session(
        &self,
        arguments: &JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, String> {
        let arguments = Arguments::new(CLOSE_SESSION, arguments, CLOSE_PARAMS);
        let handle = arguments.session()?;
        let handle =
            handle.ok_or_else(|| arguments.missing("session", ", from an earlier result"))?;
        self.python.close(&self.owner(context), &handle).await?;
        let remark = arguments.remark().map_or_else(String::new, |remark| format!("\n{remark}"));
        let text = ContentBlock::text(format!("Session {handle} has ended.{remark}"));
        let mut result = CallToolResult::success(vec![text]);
        result.structured_content = Some(json!({"closed": true}));
        Ok(result)
    }
}

/// Whether a client shows the page of displays.
fn shows_pages(context: &RequestContext<RoleServer>) -> bool {
    apps::is_wanted(context.client_capabilities().as_ref())
}

/// The ways to ask a client's user.
enum Way {
    /// By a request to the client.
    Elicitation,
    /// By a result that says what to ask.
    Return,
    /// Not at all.
    None,
}

fn way_to_ask(context: &RequestContext<RoleServer>) -> Way {
    let capabilities = context.client_capabilities();
    if capabilities.is_none_or(|capabilities| capabilities.elicitation.is_none()) {
        return Way::None;
    }
    let version = context.protocol_version();
    let is_modern =
        version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
    if is_modern { Way::Return } else { Way::Elicitation }
}

fn cancelled() -> CallToolResponse {
    // A cancelled call's answer is not sent to the client.
    CallToolResponse::Complete(result::refusal("the call was cancelled"))
}

/// Returns a function that notifies a client that its run continues, if it asked for progress.
fn beat(context: &RequestContext<RoleServer>) -> impl Fn(Duration) -> BoxFuture<'static, ()> {
    let (token, peer) = (context.meta.get_progress_token(), context.peer.clone());
    move |time: Duration| -> BoxFuture<'static, ()> {
        let (token, peer) = (token.clone(), peer.clone());
        Box::pin(async move {
            let Some(token) = token else { return };
            let progress = ProgressNotificationParam::new(token, time.as_secs_f64())
                .with_message(format!("the code has run for {} s", time.as_secs()));
            // A client that has gone cancels the call.
            let _ = peer.notify_progress(progress).await;
        })
    }
}

impl Server {
    async fn write_file(
        &self,
        given: &JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, String> {
        let arguments = Arguments::new(WRITE_FILE, given, WRITE_PARAMS);
        let path = arguments.name("path")?.ok_or_else(|| arguments.missing("path", ""))?;
        let bytes = match (arguments.text("text")?, arguments.name("data")?) {
            (Some(_), Some(_)) => {
                return Err("write_file has both `text` and `data`, and takes one".to_owned());
            }
            (Some(text), None) => text.into_bytes(),
            (None, Some(data)) => STANDARD.decode(data.trim()).map_err(|error| {
                format!("`data` of write_file is no base64 ({error}); `text` takes a text as it is")
            })?,
            (None, None) => {
                return Err(arguments.missing("text", " or `data`, what is in the file"));
            }
        };
        // The longest message of a client bounds it.
        let (size, path) = (bytes.len(), files::absolute(path));
        let (owner, handle) = (self.owner(context), arguments.session()?);
        let handle = handle.as_deref();
        let python = &self.python;
        let handle = python.write_file(&owner, handle, path.clone(), bytes, &context.ct).await?;
        let remark = arguments.remark().map_or_else(String::new, |remark| format!("\n{remark}"));
        let shown = path.escape_debug();
        let text = format!("Wrote {size} bytes to {shown}.{remark}\nsession: {handle}");
        let link = ContentBlock::resource_link(files::resource(&handle, &path));
        let mut result = CallToolResult::success(vec![ContentBlock::text(text), link]);
        result.structured_content = Some(json!({"session": handle, "path": path, "bytes": size}));
        Ok(result)
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
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools(&context).await)
            .with_ttl_ms(LIST_TTL_MS)
            .with_cache_scope(CacheScope::Private))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.clone().unwrap_or_default();
        let result = match request.name.as_ref() {
            RUN_PYTHON => return self.ran(Runner::Python, &request, &arguments, context).await,
            RUN_SHELL if self.python.has_shell() => {
                return self.ran(Runner::Shell, &request, &arguments, context).await;
            }
            RUN_SKILL if !self.python.skills().is_empty() => match self.read_skill(&arguments) {
                Some(read) => read,
                None => {
                    return self.ran(Runner::Skill, &request, &arguments, context).await;
                }
            },
            CLOSE_SESSION => self.close_session(&arguments, &context).await,
            SEARCH_TOOLS if self.python.hub().is_some() => self.search_tools(&arguments).await,
            WRITE_FILE if self.python.takes_files() => self.write_file(&arguments, &context).await,
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
            let written = session.written.all();
            resources.extend(written.iter().map(|path| files::resource(&handle, path)));
        }
        if shows_pages(&context) {
            resources.push(apps::resource());
        }
        resources.sort_by(|one, other| one.uri.cmp(&other.uri));
        Ok(ListResourcesResult::with_all_items(resources))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(vec![files::template()]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let missing = |reason: String| ErrorData::resource_not_found(reason, None);
        if request.uri == apps::ADDRESS {
            let contents = vec![apps::contents()];
            return Ok(ReadResourceResponse::Complete(ReadResourceResult::new(contents)));
        }
        let shown: String = request.uri.chars().take(80).collect();
        if let Some((handle, path)) = files::read_address(&request.uri) {
            let (owner, python) = (self.owner(&context), &self.python);
            let read = python.read_file(&owner, handle, path.clone(), &context.ct).await;
            let contents = files::contents(request.uri.clone(), &path, read.map_err(missing)?);
            return Ok(ReadResourceResponse::Complete(ReadResourceResult::new(vec![contents])));
        }
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
