//! `isolet serve --listen`: a node over HTTP. Each file has the routes of one thing; `problem.rs`
//! says how they refuse.

mod admission;
mod answers;
mod aside;
mod audit_log;
mod batch;
mod body;
mod credentials;
mod e2b;
mod execute;
mod exits;
mod lenient;
mod meter;
mod nemo_skills;
mod openapi;
mod openenv;
mod operator;
mod otlp;
mod paths;
mod problem;
mod runs;
mod sandbox_fusion;
mod saved;
mod sessions;
mod sockets;
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
use isolet_service::core::Engines;
use isolet_service::node::{Config, Node, Observers, Settings, within};
use isolet_support::http_server::{self, Limits, Listener};
use isolet_support::journal::Journal;
use isolet_support::socket::{Address, LOOPBACK, bind_unix};

/// The maximum size of a request's body, in bytes.
const MAX_BODY_BYTES: usize = 64 << 20;

/// How much nicer a node's workers are than the node, which answers for all of them: a guest that
/// computes, or a thousand workers that end with another node, hold it up less.
pub const NODE_WORKER_NICENESS: u8 = 10;

/// Where a node listens, and what it is made of.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// Where it listens.
    pub address: Address,
    /// The file with the node's tenants, limits and permissions. Without one, everybody on this
    /// machine is served, and nothing is allowed.
    pub config: Option<PathBuf>,
    /// The node's name, which is a part of its sessions' ids.
    pub name: String,
    /// The maximum number of open sessions, instead of that of the file.
    pub max_sessions: Option<usize>,
    /// Whether the process ends when the one that has started it ends.
    pub dies_with_parent: bool,
}

/// Serves until a signal ends it. `engines` makes the engines of so many sessions, for the event
/// loop that reads what workers send.
///
/// # Errors
///
/// Fails if the configuration is invalid, the address cannot be had, or no session can start.
pub fn serve(
    options: &NodeOptions,
    engines: impl FnOnce(usize, &Handle) -> Result<Engines>,
) -> Result<()> {
    let address = &options.address;
    if options.dies_with_parent {
        crate::parent::end_with_it()?;
    }
    let mut settings = settings(options.config.as_deref())?;
    if let Some(most) = options.max_sessions {
        ensure!(most > 0, "`--max-sessions` is 0, and has to be 1 or more");
        settings.max_sessions = most;
    }
    if let Address::Tcp(tcp) = address {
        ensure!(
            tcp.ip().is_loopback() || !settings.tenants.is_open(),
            "`--listen {tcp}` is open to other machines and needs keys: add `[tenants]` to the \
             file of `--config`"
        );
    }
    // Each session takes some descriptors. More than the limit for all cannot be had.
    let files = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: files.maximum, ..files });
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
    let exporter = otlp::Exporter::of_environment(runtime.handle(), &options.name)?;
    let observers = Observers {
        audit,
        tracer: exporter.as_ref().map(otlp::Exporter::tracer),
        operator: Some(operator::told()?),
    };
    let node =
        Node::new(&options.name, settings, engines, observers).map_err(|error| anyhow!(error))?;
    runtime.block_on(listen(options, address, limits, node))?;
    if let Some(exporter) = exporter {
        exporter.end();
    }
    Ok(())
}

/// Returns how many threads carry requests. The workers do most of the work, and with more threads
/// than are busy, each request wakes another one.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, |processors| processors.get().div_ceil(4))
}

fn settings(config: Option<&Path>) -> Result<Settings> {
    let Some(path) = config else {
        return Config::default().settings().map_err(|error| anyhow!(error));
    };
    let shown = path.display();
    let text = fs::read_to_string(path).with_context(|| format!("cannot read `{shown}`"))?;
    let settings = Config::read(&text).and_then(Config::settings);
    let settings = settings.map_err(|error| anyhow!("`{shown}`: {error}"))?;
    Ok(Settings { file: Some(path.to_owned()), ..settings })
}

/// Fails if the guests could change files that the node trusts.
fn check_own_files(settings: &Settings, options: &NodeOptions) -> Result<()> {
    let own = [
        ("the node's configuration", options.config.as_deref()),
        ("the node's `audit_log`", settings.audit_log.as_deref()),
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
    address: &Address,
    limits: Limits,
    node: Arc<Node>,
) -> Result<()> {
    // What every client would be told is better told to who starts the node.
    node.check().await.map_err(|refusal| {
        let problem = Problem::from(refusal);
        anyhow!("the node cannot start a session: {}", problem.text())
    })?;
    node.has_clients();
    let router = router(Arc::clone(&node));
    tokio::spawn(Arc::clone(&node).keep_time());
    // Before anybody knows that it listens, and may ask it to end.
    let mut signals = Signals::new()?;
    let end = CancellationToken::new();
    let listener = match address {
        Address::Tcp(tcp) => {
            let socket = std::net::TcpListener::bind(tcp);
            let socket = socket.with_context(|| format!("cannot listen at {tcp}"))?;
            say(&format!("http://{}", socket.local_addr()?), &node)?;
            Listener::tcp(socket)?
        }
        Address::Unix(path) => {
            let socket = bind_unix(path)?;
            say(&path.display().to_string(), &node)?;
            Listener::unix(socket)?
        }
    };
    let answer = move |request| {
        let mut router = router.clone();
        async move {
            let Ok(response) = router.call(request).await;
            response
        }
    };
    let served = tokio::spawn(http_server::serve(listener, limits, end.clone(), answer));
    signals.told_to_end(|| reload(&node, options.config.as_deref())).await;
    let farewell = async {
        let until = node.drain().await;
        end.cancel();
        // What takes longer is cut off.
        let _ = tokio::time::timeout_at(until.into(), served).await;
    };
    // A second signal ends it at once.
    tokio::select! {
        () = farewell => {}
        () = signals.told_to_end(|| ()) => {}
    }
    if let Address::Unix(path) = address {
        // Somebody else may have removed it.
        let _ = fs::remove_file(path);
    }
    Ok(())
}

/// Says on standard error where the node listens.
fn say(place: &str, node: &Node) -> Result<()> {
    use std::io::Write;
    writeln!(std::io::stderr(), "node `{}` listening at {place}", node.name())?;
    Ok(())
}

/// What a node is told by signals.
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

    /// Waits for a signal that ends the node. SIGHUP has it `reload` meanwhile.
    async fn told_to_end(&mut self, reload: impl Fn()) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return,
                _ = self.interrupt.recv() => return,
                _ = self.hang_up.recv() => reload(),
            }
        }
    }
}

/// Reads the tenants again.
fn reload(node: &Arc<Node>, config: Option<&Path>) {
    use std::io::Write;
    let said = match settings(config) {
        Ok(settings) if settings.tenants.is_open() && !node.is_open() => {
            "the tenants stay as they are: the file has none any more".to_owned()
        }
        Ok(settings) => {
            node.replace_tenants(settings);
            "the tenants were read again".to_owned()
        }
        Err(error) => format!("the tenants stay as they are: {error:#}"),
    };
    // Without standard error nobody wants to know.
    let _ = writeln!(std::io::stderr(), "{said}");
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
        .merge(execute::routes())
        .merge(measured("native", sockets::routes(), &node))
        .merge(measured("openenv", openenv::routes(), &node))
        .route("/livez", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .fallback(async || Problem::no_route())
        .method_not_allowed_fallback(async || Problem::no_method())
        // Of forms; `transfer` has the limit of all others.
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        // Around all routes, so that none can be forgotten.
        .layer(from_fn_with_state(Arc::clone(&node), admission::admit))
        .layer(from_fn_with_state(Arc::clone(&node), check_host))
        .with_state(node)
}

/// Counts the requests of a protocol.
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

/// Does what a request of a protocol asks for, as a part of what its client does, and counts it.
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

/// What the node has counted and measured. It needs no key: it says how full the node is, and
/// nothing of whose sessions there are.
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

/// Refuses requests of web pages to a node that needs no key: whoever wrote a page that is open in
/// a browser on this machine could use it.
async fn check_host(State(node): State<Arc<Node>>, request: Request, next: Next) -> Response {
    if node.is_open() && !is_local(request.headers()) {
        return Problem::denied(
            "a node without keys answers requests to `localhost` and loopback addresses, and none \
             of other web pages",
        )
        .into_response();
    }
    next.run(request).await
}

fn is_local(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let host_of = |authority: &str| {
        let authority: Authority = authority.parse().ok()?;
        Some(authority.host().trim_matches(['[', ']']).to_owned())
    };
    let is_loopback = |host: Option<String>| host.is_some_and(|host| LOOPBACK.contains(&&*host));
    // A client of a Unix socket need not name a host.
    let host = headers.get(HOST).is_none() || is_loopback(text(HOST).and_then(host_of));
    let origin = headers.get(ORIGIN).map(|origin| {
        let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
        is_loopback(origin.and_then(|(_, rest)| host_of(rest)))
    });
    // What a page embeds has no origin. Browsers say whether the page is this server's own.
    let site = headers
        .get("sec-fetch-site")
        .is_none_or(|site| matches!(site.as_bytes(), b"same-origin" | b"none"));
    host && origin.unwrap_or(site)
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
