//! Routes that two protocols share: `/execute`, whose bodies differ, and `/health`.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{FromRequest, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use isolet::Value;

use super::body::JsonBody;
use super::problem::Problem;
use super::{e2b, measure, nemo_skills, otlp};
use isolet_service::node::Node;

pub(super) fn routes() -> Router<Arc<Node>> {
    Router::new().route("/execute", post(execute)).route("/health", get(health))
}

async fn execute(State(node): State<Arc<Node>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let parent = otlp::parent(&parts.headers);
    let mut given = Request::new(body);
    *given.extensions_mut() = parts.extensions.clone();
    let body = JsonBody::<Value>::from_request(given, &node).await;
    let answered = match body {
        Ok(JsonBody(body)) if body.get("generated_code").is_some() => {
            let work = nemo_skills::execute(Arc::clone(&node), parts, body);
            measure(&node, "nemo_skills", parent, work).await
        }
        Ok(JsonBody(body)) => {
            let work = e2b::execute(Arc::clone(&node), parts, body);
            measure(&node, "e2b", parent, work).await
        }
        Err(problem) => Err(Problem::into_response(problem)),
    };
    answered.unwrap_or_else(|failed| failed)
}

async fn health(State(node): State<Arc<Node>>, request: Request<Body>) -> Response {
    e2b::health(&node, &mut request.into_parts().0).await
}
