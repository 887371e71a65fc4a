//! The routes of Jupyter servers about kernels, by which `Open WebUI` and Jupyter's own servers, as
//! clients of a gateway, run code.

mod channels;
mod credentials;
mod kernels;
pub(super) mod message;
mod sessions;

use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRef, Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use isolet::Value;
use serde::Deserialize;
use serde_json::{Value as Json, json};

use self::credentials::JupyterCredentials;
pub(super) use self::credentials::credentials;
use self::kernels::{Kernel, Kernels};
use super::body::{DialectJson, JsonBody};
use super::lenient;
use super::problem::Problem;
use isolet_service::node::{Node, Refusal, Tenant};

/// The first part of the paths.
pub(super) const PREFIX: &str = "jupyter";

/// The name of the only kind of kernel.
const SPEC: &str = "isolet";

/// The version of the Jupyter server whose routes these are.
const VERSION: &str = "2.17.0";

/// What the routes need.
#[derive(Clone)]
struct Gateway {
    node: Arc<Node>,
    kernels: Arc<Kernels>,
}

impl FromRef<Gateway> for Arc<Node> {
    fn from_ref(gateway: &Gateway) -> Self {
        Self::clone(&gateway.node)
    }
}

type Served = State<Gateway>;

pub(super) fn routes(node: &Arc<Node>) -> Router<Arc<Node>> {
    Router::new()
        .route("/jupyter/api", get(async || DialectJson(json!({"version": VERSION}))))
        .route("/jupyter/api/status", get(status))
        .route("/jupyter/api/kernelspecs", get(specs))
        .route("/jupyter/api/kernelspecs/{name}", get(spec))
        .route("/jupyter/api/kernels", get(list).post(start))
        .route("/jupyter/api/kernels/{id}", get(show).delete(end))
        .route("/jupyter/api/kernels/{id}/interrupt", post(interrupt))
        .route("/jupyter/api/kernels/{id}/restart", post(restart))
        .route("/jupyter/api/kernels/{id}/channels", get(channels::connect))
        .with_state(Gateway { node: Arc::clone(node), kernels: Arc::default() })
}

/// Refuses a request before its route sees it.
pub(super) fn refused(refusal: Refusal) -> Response {
    let is_key = matches!(refusal, Refusal::Key);
    let problem = Problem::from(refusal);
    let hint = "send `Authorization: token KEY` or `?token=KEY`; there are no passwords";
    if is_key { problem.with_hint(hint).into_response() } else { problem.into_response() }
}

impl Gateway {
    /// Returns who asks.
    fn tenant(&self, credentials: &JupyterCredentials) -> Result<Arc<Tenant>, Problem> {
        Ok(self.node.tenant(&credentials.0)?)
    }

    /// Returns a kernel of who asks.
    fn kernel(&self, credentials: &JupyterCredentials, id: &str) -> Result<Arc<Kernel>, Problem> {
        let tenant = self.tenant(credentials)?;
        self.kernels.get(&tenant, id).ok_or_else(|| {
            Problem::nothing("there is no such kernel; `POST /jupyter/api/kernels` starts one")
        })
    }
}

async fn status(
    State(gateway): Served,
    credentials: JupyterCredentials,
) -> Result<DialectJson, Problem> {
    let tenant = gateway.tenant(&credentials)?;
    let kernels = gateway.kernels.all(&tenant);
    let connections: usize = kernels.iter().map(|kernel| kernel.connections()).sum();
    Ok(DialectJson(json!({"connections": connections, "kernels": kernels.len()})))
}

/// Describes the only kind of kernel.
fn described() -> Json {
    json!({
        "name": SPEC,
        "spec": {
            "argv": [],
            "env": {},
            "display_name": "Python (isolet)",
            "language": "python",
            "interrupt_mode": "message",
            "metadata": {},
        },
        "resources": {},
    })
}

async fn specs(
    State(gateway): Served,
    credentials: JupyterCredentials,
) -> Result<DialectJson, Problem> {
    gateway.tenant(&credentials)?;
    Ok(DialectJson(json!({"default": SPEC, "kernelspecs": {SPEC: described()}})))
}

async fn spec(
    State(gateway): Served,
    credentials: JupyterCredentials,
    Path(name): Path<String>,
) -> Result<DialectJson, Problem> {
    gateway.tenant(&credentials)?;
    check_spec(&name)?;
    Ok(DialectJson(described()))
}

fn check_spec(name: &str) -> Result<(), Problem> {
    // What Jupyter calls its own kernel of Python, which clients ask for by default.
    if [SPEC, "python3", "python", ""].contains(&name) {
        return Ok(());
    }
    let text = format!("there is no kernelspec {name:?}; there is `{SPEC}`, also as `python3`");
    Err(Problem::nothing(text))
}

/// A request for a kernel. What else clients say, such as the variables of the environment that
/// gateways pass on, is the node's to decide.
#[derive(Deserialize)]
pub(in crate::http) struct StartRequest {
    #[serde(default)]
    name: Option<String>,
}

async fn start(
    State(gateway): Served,
    credentials: JupyterCredentials,
    JsonBody(body): JsonBody<Value>,
) -> Result<Response, Problem> {
    let tenant = gateway.tenant(&credentials)?;
    let StartRequest { name } = lenient::read(body, &[])?;
    check_spec(name.as_deref().unwrap_or(SPEC))?;
    let kernel = Kernels::start(&gateway.kernels, &gateway.node, &tenant).await?;
    Ok((StatusCode::CREATED, DialectJson(model(&kernel))).into_response())
}

/// Describes a kernel.
fn model(kernel: &Kernel) -> Json {
    json!({
        "id": kernel.id(),
        "name": SPEC,
        "last_activity": kernel.last_activity(),
        "execution_state": kernel.execution_state(),
        "connections": kernel.connections(),
    })
}

async fn list(
    State(gateway): Served,
    credentials: JupyterCredentials,
) -> Result<DialectJson, Problem> {
    let tenant = gateway.tenant(&credentials)?;
    let kernels = gateway.kernels.all(&tenant);
    Ok(DialectJson(kernels.iter().map(|kernel| model(kernel)).collect()))
}

async fn show(
    State(gateway): Served,
    credentials: JupyterCredentials,
    Path(id): Path<String>,
) -> Result<DialectJson, Problem> {
    Ok(DialectJson(model(&*gateway.kernel(&credentials, &id)?)))
}

async fn end(
    State(gateway): Served,
    credentials: JupyterCredentials,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    gateway.kernel(&credentials, &id)?.end().await;
    Ok(StatusCode::NO_CONTENT)
}

async fn interrupt(
    State(gateway): Served,
    credentials: JupyterCredentials,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    gateway.kernel(&credentials, &id)?.interrupt().await;
    Ok(StatusCode::NO_CONTENT)
}

async fn restart(
    State(gateway): Served,
    credentials: JupyterCredentials,
    Path(id): Path<String>,
) -> Result<DialectJson, Problem> {
    let kernel = gateway.kernel(&credentials, &id)?;
    kernel.restart().await?;
    Ok(DialectJson(model(&kernel)))
}
