//! `isolet serve --listen`: a node over HTTP. Each file has the routes of one resource;
//! `problem.rs` defines the form of refusals.

mod admission;
mod answers;
mod aside;
mod audit_log;
mod batch;
mod body;
mod console;
mod credentials;
mod dify;
mod e2b;
mod execute;
mod exits;
mod form;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod jupyter;
mod lenient;
mod librechat;
mod meter;
mod nemo_skills;
mod network;
mod openapi;
mod openenv;
mod opensandbox;
mod otlp;
mod paths;
mod problem;
mod ragflow;
mod request_log;
mod runs;
mod sandbox_fusion;
mod saved;
mod sessions;
mod sockets;
mod standard_error;
mod transfer;
mod websocket;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, ensure};
use axum::Router;
use axum::extract::{DefaultBodyLimit, FromRequestParts, Request, State};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_TYPE, HOST, ORIGIN};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use opentelemetry::trace::SpanContext;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::runtime::Handle;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tower_service::Service as _;
use utoipa::OpenApi as _;
use utoipa_axum::router::OpenApiRouter;

use self::audit_log::AuditLog;
use self::problem::Problem;
use self::request_log::RequestLog;
use isolet_service::core::Engines;
pub use isolet_service::node::RequestLogFormat;
use isolet_service::node::{Config, JournalSettings, Node, Observers, Settings, within};
use isolet_support::http_server::{self, Limits, Listener, Tls};
use isolet_support::journal::Journal;
use isolet_support::socket::{Address, LOOPBACK, bind_unix};
use isolet_support::template::{Environment, Origin, Template};

/// The maximum size of a request's body, in bytes.
const MAX_BODY_BYTES: usize = 64 << 20;

/// The niceness of workers relative to the node, so that computing guests, or a thousand workers
/// that end at once, do not delay answers.
pub const NODE_WORKER_NICENESS: u8 = 10;

/// The options of a node.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// The address to listen at.
    pub address: Address,
    /// The configuration file with tenants, limits and permissions. Without it, every client on
    /// this machine is served, and guests have no permissions.
    pub config: Option<PathBuf>,
    /// The variables that the configuration may name.
    pub environment: Environment,
    /// The node's name, which is a part of its sessions' ids.
    pub name: String,
    /// The directory of durable sessions, which overrides the file's.
    pub journals: Option<PathBuf>,
    /// The maximum number of sessions, which overrides the file's.
    pub max_sessions: Option<usize>,
    /// The format of the request log, which overrides the file's. Without either, it is text if
    /// standard error is a terminal, and off otherwise.
    pub log: Option<RequestLogFormat>,
    /// Whether browsers get a console at `/`, if the file allows it.
    pub console: bool,
    /// Set if the process ends with its parent.
    pub dies_with_parent: bool,
}

/// Serves until a signal ends it. `engines` creates the engines, for this many sessions and with
/// this runtime as their event loop.
///
/// # Errors
///
/// Fails if the configuration is invalid, the address is unavailable, or no session can start.
pub fn serve(
    options: &NodeOptions,
    engines: impl FnOnce(usize, &Handle) -> Result<Engines>,
) -> Result<()> {
    let address = &options.address;
    if options.dies_with_parent {
        crate::parent::end_with_it()?;
    }
    let mut settings = settings(options.config.as_deref(), &options.environment)?;
    if let Some(most) = options.max_sessions {
        ensure!(most > 0, "`--max-sessions` is 0, and has to be 1 or more");
        settings.max_sessions = most;
    }
    settings.console &= options.console;
    if let Some(directory) = &options.journals {
        match &mut settings.journals {
            Some(journals) => journals.directory.clone_from(directory),
            journals => *journals = Some(JournalSettings::at(directory.clone())),
        }
    }
    if let Address::Tcp(tcp) = address {
        ensure!(
            tcp.ip().is_loopback() || !settings.tenants.is_open(),
            "`--listen {tcp}` is open to other machines and needs keys: add `[tenants]` to the \
             file of `--config`"
        );
    }
    // Each session takes some descriptors. The hard limit is the most that can be set.
    let files = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: files.maximum, ..files });
    let tls = settings.tls.as_ref().map(|tls| Tls::read(&tls.certificate, &tls.key));
    let tls = tls.transpose()?.map(Arc::new);
    ensure!(
        tls.is_none() || matches!(address, Address::Tcp(_)),
        "`[tls]` needs an address of TCP: clients of a Unix socket speak no TLS"
    );
    let limits = Limits::new(settings.max_connections);
    settings.max_connections = limits.connections;
    check_own_files(&settings, options)?;
    let open = |path| Journal::open(path, audit_log::meanwhile(settings.audit_outage));
    let audit = settings.audit_log.as_deref().map(open).transpose()?;
    let audit = audit.map(|journal| Box::new(AuditLog(journal)) as _);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads())
        .enable_all()
        .build()?;
    let engines = Arc::new(engines(settings.max_sessions, runtime.handle())?);
    let log = RequestLog::open(options.log.or(settings.log))?;
    let exporter = otlp::Exporter::of_environment(runtime.handle(), &options.name)?;
    let observers = Observers {
        audit,
        tracer: exporter.as_ref().map(otlp::Exporter::tracer),
        operator: Some(log.operator()),
    };
    let node =
        Node::new(&options.name, settings, engines, observers).map_err(|error| anyhow!(error))?;
    runtime.block_on(listen(options, (address, tls), limits, &node, &log))?;
    if let Some(exporter) = exporter {
        exporter.end();
    }
    log.ended(&node);
    Ok(())
}

/// Returns the number of threads that serve requests. Workers do most of the work, and idle threads
/// would only cost wake-ups.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, |processors| processors.get().div_ceil(4))
}

fn settings(config: Option<&Path>, environment: &Environment) -> Result<Settings> {
    let Some(path) = config else {
        return Config::default().settings().map_err(|error| anyhow!(error));
    };
    let shown = path.display();
    let text = fs::read_to_string(path).with_context(|| format!("cannot read `{shown}`"))?;
    let filled = |text: &str| {
        let template = Template::parse(text, environment, Origin::Own)?;
        Ok(template.fill(environment)?.text)
    };
    let config = Config::read(&text).and_then(|config| config.fill_secrets(filled));
    let settings = config.and_then(Config::settings);
    let settings = settings.map_err(|error| anyhow!("`{shown}`: {error}"))?;
    Ok(Settings { file: Some(path.to_owned()), ..settings })
}

/// Fails if guests could change files that the node trusts.
fn check_own_files(settings: &Settings, options: &NodeOptions) -> Result<()> {
    let own = [
        ("the node's configuration", options.config.as_deref()),
        ("the node's `audit_log`", settings.audit_log.as_deref()),
        ("the node's `tls.certificate`", settings.tls.as_ref().map(|tls| &*tls.certificate)),
        ("the node's `tls.key`", settings.tls.as_ref().map(|tls| &*tls.key)),
        (
            "the node's directory of journals",
            settings.journals.as_ref().map(|journals| &*journals.directory),
        ),
        ("the node's `[store]`", settings.store.as_ref().map(|store| &*store.directory)),
    ];
    let authorities =
        settings.policy.ca_files().iter().map(|file| ("the node's `ca_files`", Some(&**file)));
    for (what, path) in own.into_iter().chain(authorities) {
        let Some(path) = path else { continue };
        let checked = settings.policy.check_out_of_reach(what, path);
        checked.map_err(|failure| anyhow!(failure.message))?;
    }
    Ok(())
}

async fn listen(
    options: &NodeOptions,
    (address, tls): (&Address, Option<Arc<Tls>>),
    limits: Limits,
    node: &Arc<Node>,
    log: &RequestLog,
) -> Result<()> {
    // The operator should see a failure that every client would get.
    node.check().await.map_err(|refusal| {
        let problem = Problem::from(refusal);
        anyhow!("the node cannot start a session: {}", problem.text())
    })?;
    node.has_clients();
    node.restore().map_err(|error| anyhow!(error))?;
    let router = router(Arc::clone(node));
    tokio::spawn(Arc::clone(node).keep_time());
    // Before the address is printed, because a reader may send a signal at once.
    let mut signals = Signals::new()?;
    let end = CancellationToken::new();
    let listener = match address {
        Address::Tcp(tcp) => {
            let socket = std::net::TcpListener::bind(tcp);
            let socket = socket.with_context(|| format!("cannot listen at {tcp}"))?;
            let scheme = if tls.is_some() { "https" } else { "http" };
            log.started(node, &format!("{scheme}://{}", socket.local_addr()?));
            Listener::tcp(socket)?.with_tls(tls.clone())
        }
        Address::Unix(path) => {
            let socket = bind_unix(path)?;
            log.started(node, &path.display().to_string());
            Listener::unix(socket)?
        }
    };
    let requests = log.clone();
    let answer = move |request| {
        let mut router = router.clone();
        let (request, record) = requests.begin(request);
        async move {
            let Ok(response) = router.call(request).await;
            match record {
                Some(record) => record.answered(response),
                None => response,
            }
        }
    };
    let served = tokio::spawn(http_server::serve(listener, limits, end.clone(), answer));
    signals.until_terminated(|| reload(node, options, tls.as_deref(), log)).await;
    log.draining(node);
    let farewell = async {
        let until = node.drain().await;
        end.cancel();
        // Answers that take longer are cut off.
        let _ = tokio::time::timeout_at(until.into(), served).await;
    };
    // A second signal skips the shutdown's waits.
    tokio::select! {
        () = farewell => {}
        () = signals.until_terminated(|| ()) => {}
    }
    if let Address::Unix(path) = address {
        // It may have been removed already.
        let _ = fs::remove_file(path);
    }
    Ok(())
}

/// The signals that control a node.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl Signals {
    fn new() -> Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for SIGTERM or SIGINT. On SIGHUP, calls `reload`.
    async fn until_terminated(&mut self, reload: impl Fn()) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return,
                _ = self.interrupt.recv() => return,
                _ = self.hang_up.recv() => reload(),
            }
        }
    }
}

/// Reloads the tenants from the configuration file, and the certificate.
fn reload(node: &Arc<Node>, options: &NodeOptions, tls: Option<&Tls>, log: &RequestLog) {
    let settings = settings(options.config.as_deref(), &options.environment);
    if let Ok(Settings { tls: Some(files), .. }) = &settings
        && let Some(Err(error)) = tls.map(|tls| tls.replace(&files.certificate, &files.key))
    {
        log.say(&format!("the certificate stays as it is: {error:#}"));
    }
    let said = match settings {
        Ok(settings) if settings.tenants.is_open() && !node.is_open() => {
            "the tenants stay as they are: the file has none any more".to_owned()
        }
        Ok(settings) => {
            node.replace_tenants(settings);
            "the tenants were read again".to_owned()
        }
        Err(error) => format!("the tenants stay as they are: {error:#}"),
    };
    log.say(&said);
}

fn router(node: Arc<Node>) -> Router {
    let native = OpenApiRouter::with_openapi(openapi::Description::openapi())
        .merge(sessions::routes())
        .merge(runs::routes())
        .merge(batch::routes())
        .merge(saved::routes());
    Router::new()
        .merge(measured("native", openapi::described(native), &node))
        .merge(measured("sandbox_fusion", sandbox_fusion::routes(), &node))
        .merge(measured("e2b", e2b::routes(), &node))
        .merge(measured("nemo_skills", nemo_skills::routes(), &node))
        .merge(measured("dify", dify::routes(), &node))
        .merge(measured("ragflow", ragflow::routes(), &node))
        .merge(measured("librechat", librechat::routes(), &node))
        .merge(measured("opensandbox", opensandbox::routes(), &node))
        .merge(measured("jupyter", jupyter::routes(&node), &node))
        .merge(execute::routes())
        .merge(measured("native", sockets::routes(), &node))
        .merge(measured("openenv", openenv::routes(), &node))
        .merge(console::routes(node.has_console()))
        .route("/livez", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .fallback(async || Problem::no_route())
        .method_not_allowed_fallback(async || Problem::no_method())
        // For forms. `transfer` limits all other bodies.
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        // Around all routes, so that none is left out.
        .layer(from_fn_with_state(Arc::clone(&node), admission::admit))
        .layer(from_fn_with_state(Arc::clone(&node), e2b::by_host_name))
        .layer(from_fn_with_state(Arc::clone(&node), check_host))
        .with_state(node)
}

/// Counts and times the requests of a protocol.
fn measured(
    dialect: &'static str,
    routes: Router<Arc<Node>>,
    node: &Arc<Node>,
) -> Router<Arc<Node>> {
    node.metrics().speaks(dialect);
    let node = Arc::clone(node);
    routes.route_layer(from_fn(move |request: Request, next: Next| {
        let node = Arc::clone(&node);
        async move {
            let parent = otlp::parent(request.headers());
            measure(&node, dialect, parent, next.run(request)).await
        }
    }))
}

/// Carries out a request of a protocol within its client's span, and counts it.
async fn measure<F: Future>(
    node: &Node,
    dialect: &'static str,
    parent: SpanContext,
    work: F,
) -> F::Output {
    let since = Instant::now();
    let done = within(parent, work).await;
    node.metrics().answered(dialect, since.elapsed());
    done
}

/// Returns the metrics. They need no key, because they contain nothing about tenants.
async fn metrics(State(node): State<Arc<Node>>) -> Response {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(CONTENT_TYPE, kind)], node.metrics_text()).into_response()
}

async fn ready(State(node): State<Arc<Node>>) -> Response {
    match node.is_ready() {
        Ok(()) => "ok\n".into_response(),
        Err(refusal) => Problem::from(refusal).into_response(),
    }
}

/// Refuses requests from web pages to a node that needs no key: any page in a browser on this
/// machine could use it. Answers are no pages beside the console.
async fn check_host(State(node): State<Arc<Node>>, request: Request, next: Next) -> Response {
    request_log::note_route(request.extensions());
    let headers = request.headers();
    if node.is_open() && !is_local(headers) && !is_for_domain(&node, headers) {
        if let Some(record) = request_log::record(request.extensions()) {
            record.refused(why_not_local(headers));
        }
        return Problem::denied(
            "a node without keys answers requests to `localhost` and loopback addresses, and none \
             of other web pages",
        )
        .into_response();
    }
    let mut answer = next.run(request).await;
    if node.has_console() {
        console::is_no_page(&mut answer);
    }
    answer
}

fn is_local(headers: &HeaderMap) -> bool {
    // A client of a Unix socket need not send `Host`.
    let host = headers.get(HOST).is_none() || is_loopback(host_name(headers));
    host && has_local_origin(headers)
}

/// Returns why a request is none of this machine, for the log.
fn why_not_local(headers: &HeaderMap) -> &'static str {
    if has_local_origin(headers) {
        "the host is not a loopback address"
    } else {
        "the request is another web page's"
    }
}

/// Whether a request is for a name of the node's domain, which the operator has chosen.
fn is_for_domain(node: &Node, headers: &HeaderMap) -> bool {
    let name = host_name(headers);
    let is_own = node.domain().zip(name.as_deref()).is_some_and(|(domain, name)| domain.has(name));
    is_own && has_local_origin(headers)
}

/// Whether a request is of no web page, or of one of this machine.
fn has_local_origin(headers: &HeaderMap) -> bool {
    let origin = headers.get(ORIGIN).map(|origin| {
        let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
        is_loopback(origin.and_then(|(_, rest)| host_of(rest)))
    });
    // Embedded requests have no origin. Browsers send whether they are same-site.
    let site = headers
        .get("sec-fetch-site")
        .is_none_or(|site| matches!(site.as_bytes(), b"same-origin" | b"none"));
    origin.unwrap_or(site)
}

fn is_loopback(host: Option<String>) -> bool {
    host.is_some_and(|host| LOOPBACK.contains(&&*host))
}

/// Returns the name of the host that a request is for, without a port.
fn host_name(headers: &HeaderMap) -> Option<String> {
    headers.get(HOST).and_then(|host| host.to_str().ok()).and_then(host_of)
}

fn host_of(authority: &str) -> Option<String> {
    let authority: Authority = authority.parse().ok()?;
    Some(authority.host().trim_matches(['[', ']']).to_owned())
}

/// The key of a creation that may be sent again.
pub(super) struct IdempotencyKey(Option<String>);

impl<S: Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Self::Rejection> {
        let key = parts.headers.get("idempotency-key");
        Ok(Self(key.map(|key| String::from_utf8_lossy(key.as_bytes()).into_owned())))
    }
}
