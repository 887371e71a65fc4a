//! The contexts of a sandbox.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::{Value as AnyJson, json};

use super::files::place;
use super::{E2bBody, Failed, Reached};
use crate::http::body::DialectJson;
use isolet_service::node::{Context, Node};

type Served = State<Arc<Node>>;

pub(super) fn routes() -> Router<Arc<Node>> {
    Router::new()
        .route("/contexts", get(list).post(create))
        .route("/contexts/{id}", axum::routing::delete(remove))
        .route("/contexts/{id}/restart", post(restart))
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(in crate::http) struct ContextRequest {
    cwd: Option<String>,
    language: Option<String>,
}

fn shown(context: &Context) -> AnyJson {
    json!({"id": context.id, "language": "python", "cwd": context.directory})
}

/// Refuses every language but Python.
pub(super) fn check_language(language: Option<&str>) -> Result<(), Failed> {
    match language {
        None | Some("python" | "python3") => Ok(()),
        Some(other) => Err(Failed::unreadable(format!(
            "the language is `{other}`, and isolet runs `python` only"
        ))),
    }
}

async fn list(State(node): Served, reached: Reached) -> Result<DialectJson, Failed> {
    let session = reached.find(&node).await?;
    Ok(DialectJson(session.session().contexts().iter().map(shown).collect()))
}

async fn create(
    State(node): Served,
    reached: Reached,
    E2bBody(wanted): E2bBody<ContextRequest>,
) -> Result<Response, Failed> {
    check_language(wanted.language.as_deref())?;
    let session = reached.find(&node).await?;
    let directory = wanted.cwd.as_deref().map(place);
    let context = node.add_context(&session, directory).await.map_err(Failed::data)?;
    Ok((StatusCode::CREATED, DialectJson(shown(&context))).into_response())
}

async fn remove(
    State(node): Served,
    reached: Reached,
    Path(id): Path<String>,
) -> Result<StatusCode, Failed> {
    let session = reached.find(&node).await?;
    node.remove_context(&session, &id).await.map_err(Failed::data)?;
    Ok(StatusCode::NO_CONTENT)
}

async fn restart(
    State(node): Served,
    reached: Reached,
    Path(id): Path<String>,
) -> Result<StatusCode, Failed> {
    let session = reached.find(&node).await?;
    node.restart_context(&session, &id).await.map_err(Failed::data)?;
    Ok(StatusCode::NO_CONTENT)
}
