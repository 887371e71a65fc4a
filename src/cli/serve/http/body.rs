//! Bodies: JSON in and out, in which values have the form of `docs/protocol.md`.

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, FromRequestParts, Path};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use isolet::Value;
use serde::de::DeserializeOwned;

use super::super::wire::Wire;
use super::MAX_BODY_BYTES;
use super::problem::Problem;

const BODY: &str = "the body";

/// A request's body. An empty one is an empty object.
pub(super) struct Given<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Given<T> {
    type Rejection = Problem;

    async fn from_request(request: Request<Body>, state: &S) -> Result<Self, Problem> {
        let Raw(bytes) = Raw::from_request(request, state).await?;
        Self::read(&bytes)
    }
}

impl<T: DeserializeOwned> Given<T> {
    /// Reads an object.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, Problem> {
        let value = if bytes.is_empty() { Value::Dict(Vec::new()) } else { decode(BODY, bytes)? };
        Self::of(value)
    }

    /// Reads what a value has.
    pub(super) fn of(value: Value) -> Result<Self, Problem> {
        read(BODY, value).map(Self)
    }
}

/// Decodes JSON. `what` names it in errors.
pub(super) fn decode(what: &str, bytes: &[u8]) -> Result<Value, Problem> {
    let value = Wire::Json.decode(bytes);
    value.map_err(|error| Problem::unreadable(format!("{what} is no JSON: {error}")))
}

/// Reads an object.
pub(super) fn read<T: DeserializeOwned>(what: &str, value: Value) -> Result<T, Problem> {
    // A list would be taken for the fields in their order.
    if !matches!(value, Value::Dict(_)) {
        let kind = value.type_name();
        return Err(Problem::unreadable(format!("{what} is {kind}, and has to be an object")));
    }
    let given = isolet::from_value(value);
    given.map_err(|error| Problem::unreadable(format!("{what} is invalid: {error}")))
}

/// A request's body as it is.
pub(super) struct Raw(pub(super) Bytes);

impl<S: Send + Sync> FromRequest<S> for Raw {
    type Rejection = Problem;

    async fn from_request(request: Request<Body>, state: &S) -> Result<Self, Problem> {
        let bytes = Bytes::from_request(request, state).await;
        bytes.map(Self).map_err(|error| match error.status() {
            StatusCode::PAYLOAD_TOO_LARGE => Problem::too_large(MAX_BODY_BYTES),
            _ => Problem::unreadable(error.body_text()),
        })
    }
}

/// The parts of a path that stand for something.
pub(super) struct Part<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Part<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let part = Path::from_request_parts(parts, state).await;
        part.map(|Path(part)| Self(part)).map_err(|error| Problem::unreadable(error.body_text()))
    }
}

/// Reads a dict of variables.
pub(super) fn variables(inputs: Value) -> Result<Vec<(String, Value)>, Problem> {
    let item = |(name, value)| match name {
        Value::Str(name) => Ok((name, value)),
        _ => Err(Problem::unreadable("the names of `inputs` have to be strings")),
    };
    match inputs {
        Value::None => Ok(Vec::new()),
        Value::Dict(items) => items.into_iter().map(item).collect(),
        other => {
            let kind = other.type_name();
            Err(Problem::unreadable(format!("`inputs` is {kind}, and has to be an object")))
        }
    }
}

/// A value as JSON.
pub(super) fn json(value: &Value) -> Vec<u8> {
    let mut text = Vec::new();
    Wire::Json.encode(value, &mut text);
    text
}

/// A value as a line of JSON.
pub(super) fn line(value: &Value) -> Vec<u8> {
    let mut text = json(value);
    text.push(b'\n');
    text
}

/// Answers with JSON of another protocol.
pub(super) struct Foreign(pub(super) serde_json::Value);

impl IntoResponse for Foreign {
    fn into_response(self) -> Response {
        ([(CONTENT_TYPE, "application/json")], self.0.to_string()).into_response()
    }
}

/// Answers with a value.
pub(super) struct Answered(pub(super) StatusCode, pub(super) Value);

impl IntoResponse for Answered {
    fn into_response(self) -> Response {
        let mut response = (self.0, line(&self.1)).into_response();
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(CONTENT_TYPE, json);
        response
    }
}
