//! E2B's snapshots: saved sandboxes that serve as templates.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use serde::Deserialize;
use serde_json::{Value as AnyJson, json};

use super::{E2bBody, Failed};
use crate::http::answers::check_name;
use crate::http::body::DialectJson;
use crate::http::credentials::Credentials;
use isolet_service::node::{Node, Snapshot};

type Served = State<Arc<Node>>;

pub(super) fn routes() -> Router<Arc<Node>> {
    Router::new()
        .route("/sandboxes/{id}/snapshots", post(create))
        .route("/snapshots", get(list))
        .route("/templates/{id}", delete(remove))
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SnapshotRequest {
    name: Option<String>,
    memory: Option<bool>,
}

async fn create(
    State(node): Served,
    credentials: Credentials,
    Path(id): Path<String>,
    E2bBody(wanted): E2bBody<SnapshotRequest>,
) -> Result<Response, Failed> {
    if wanted.memory == Some(false) {
        return Err(super::control::no_memory());
    }
    check_name("name", wanted.name.as_deref())?;
    let session = node.find(&credentials, &id).map_err(Failed::control)?;
    let snapshot = node.snapshot(&session, wanted.name).await.map_err(Failed::control)?;
    Ok((StatusCode::CREATED, DialectJson(shown(&snapshot))).into_response())
}

fn shown(snapshot: &Snapshot) -> AnyJson {
    json!({"snapshotID": snapshot.id, "names": snapshot.name.iter().collect::<Vec<_>>()})
}

async fn list(
    State(node): Served,
    credentials: Credentials,
    RawQuery(query): RawQuery,
) -> Result<DialectJson, Failed> {
    let tenant = node.tenant(&credentials).map_err(Failed::control)?;
    let mut all = node.snapshots(&tenant);
    for (name, value) in url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        match &*name {
            "sandboxID" => all.retain(|snapshot| snapshot.session == value),
            "name" => all.retain(|snapshot| snapshot.name.as_deref() == Some(&*value)),
            // All snapshots are on one page.
            _ => {}
        }
    }
    Ok(DialectJson(all.iter().map(shown).collect()))
}

async fn remove(
    State(node): Served,
    credentials: Credentials,
    Path(id): Path<String>,
) -> Result<StatusCode, Failed> {
    let tenant = node.tenant(&credentials).map_err(Failed::control)?;
    if node.remove_snapshot(&tenant, &id) {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(Failed::nothing(format!("there is no snapshot `{id}`")))
    }
}
