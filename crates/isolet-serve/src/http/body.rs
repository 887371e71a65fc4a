//! Extractors and responses of JSON. Values have the form of `docs/reference/protocol.md`.

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, FromRequestParts, Path};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use isolet::Value;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;

use super::aside::{LARGE_BYTES, aside};
use super::problem::Problem;
use super::transfer::{self, Transfer};
use crate::wire::Wire;
use isolet_service::core::{Plain, size_up_to};
use isolet_support::json_text;

const BODY: &str = "the body";

/// A JSON body. An empty body is an empty object.
pub(super) struct JsonBody<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request<Body>, state: &S) -> Result<Self, Problem> {
        let transfer = request.extensions().get::<Transfer>().cloned();
        let RawBody(bytes) = RawBody::from_request(request, state).await?;
        if let Some(transfer) = transfer {
            transfer.take(in_turn(bytes.len(), || decoded(&bytes)).await?)?;
        }
        Self::read(&bytes).await
    }
}

impl<T: DeserializeOwned + Send> JsonBody<T> {
    /// Decodes an object.
    pub(super) async fn read(bytes: &[u8]) -> Result<Self, Problem> {
        if bytes.is_empty() {
            return Self::of(Value::Dict(Vec::new()));
        }
        in_turn(bytes.len(), || Self::of(decode(BODY, bytes)?)).await
    }

    /// Deserialises a value.
    pub(super) fn of(value: Value) -> Result<Self, Problem> {
        read(BODY, value).map(Self)
    }
}

/// JSON of a value with fewer bytes and items is shorter than a MiB.
const SMALL_BYTES: usize = 32 << 10;

/// The maximum number of values in a body, a line or a message, which take some 64 MiB decoded.
const MAX_VALUES: usize = 1_000_000;

/// The memory that a value takes while it is decoded.
const VALUE_BYTES: usize = 64;

/// Returns the memory that JSON takes once decoded, without its texts. Short JSON counts as 0.
pub(super) fn decoded(json: &[u8]) -> Result<usize, Problem> {
    if json.len() < LARGE_BYTES {
        return Ok(0);
    }
    Ok(count_values(BODY, json)? * VALUE_BYTES)
}

/// Counts the values in JSON. Fails, with `what` in the message, if there are too many.
pub(super) fn count_values(what: &str, json: &[u8]) -> Result<usize, Problem> {
    let count = json_text::count(json);
    if count <= MAX_VALUES {
        return Ok(count);
    }
    Err(Problem::too_many_values(format!("{what} has more values than the limit of {MAX_VALUES}")))
}

/// Does work on this many bytes of a request. If there are many, this thread's other requests
/// continue, but only one such request is worked on at a time, so that they keep only one processor
/// busy.
pub(super) async fn in_turn<T: Send>(bytes: usize, work: impl FnOnce() -> T + Send) -> T {
    static TURN: Semaphore = Semaphore::const_new(1);
    if bytes < LARGE_BYTES {
        return work();
    }
    // Fails only if it is closed, which never happens.
    let _turn = TURN.acquire().await;
    aside(bytes, work)
}

/// Decodes JSON. `what` describes it in errors.
pub(super) fn decode(what: &str, bytes: &[u8]) -> Result<Value, Problem> {
    count_values(what, bytes)?;
    let value = Wire::Json.decode(bytes);
    value.map_err(|error| Problem::unreadable(format!("{what} is no JSON: {error}")))
}

/// Deserialises an object. `what` describes it in errors.
pub(super) fn read<T: DeserializeOwned + Send>(what: &str, value: Value) -> Result<T, Problem> {
    // Serde would read a list as the fields in order.
    if !matches!(value, Value::Dict(_)) {
        let kind = value.type_name();
        return Err(Problem::unreadable(format!("{what} is {kind}, and has to be an object")));
    }
    let value = Plain(value);
    let given = aside(size(&value), || isolet::from_value(value.0));
    given.map_err(|error| Problem::unreadable(format!("{what} is invalid: {error}")))
}

/// An empty body, or an empty object.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NoFields {}

/// A body as bytes.
pub(super) struct RawBody(pub(super) Bytes);

impl<S: Send + Sync> FromRequest<S> for RawBody {
    type Rejection = Problem;

    async fn from_request(request: Request<Body>, _state: &S) -> Result<Self, Problem> {
        transfer::read(request.into_body()).await.map(Self)
    }
}

/// The parameters of a path.
pub(super) struct PathParam<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for PathParam<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let part = Path::from_request_parts(parts, state).await;
        part.map(|Path(part)| Self(part)).map_err(|error| Problem::unreadable(error.body_text()))
    }
}

/// Reads variables from a dict.
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

/// Encodes an answer as JSON.
pub(super) fn json(answer: impl Serialize + Send) -> Vec<u8> {
    aside(size(&answer), || {
        let mut text = Vec::new();
        // Writing to a vector does not fail, and all types of answers have a JSON form.
        let _ = Wire::Json.encode(&answer, &mut text);
        drop(answer);
        text
    })
}

/// Encodes an answer as a line of JSON.
pub(super) fn line(answer: impl Serialize + Send) -> Vec<u8> {
    let mut text = json(answer);
    text.push(b'\n');
    text
}

/// Returns `true` if something is small enough for every limit of answers.
pub(super) fn is_small(of: &impl Serialize) -> bool {
    size_up_to(SMALL_BYTES, of) < SMALL_BYTES
}

/// Does work on something. If it is large, this thread's other requests continue.
pub(super) fn aside_of<T: Send>(of: &impl Serialize, work: impl FnOnce() -> T + Send) -> T {
    aside(size(of), work)
}

/// Returns the size of the texts and items of something, or [`LARGE_BYTES`] if it is larger.
fn size(of: &impl Serialize) -> usize {
    size_up_to(LARGE_BYTES, of)
}

/// A JSON response of another protocol.
pub(super) struct DialectJson(pub(super) serde_json::Value);

impl IntoResponse for DialectJson {
    fn into_response(self) -> Response {
        ([(CONTENT_TYPE, "application/json")], self.0.to_string()).into_response()
    }
}

/// A JSON response with its status.
pub(super) struct ApiResponse<T>(pub(super) StatusCode, pub(super) T);

impl<T: Serialize + Send> IntoResponse for ApiResponse<T> {
    fn into_response(self) -> Response {
        let mut response = (self.0, line(self.1)).into_response();
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(CONTENT_TYPE, json);
        response
    }
}
