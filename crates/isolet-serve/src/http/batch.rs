//! `POST /v1/batch`: many programs over one connection, each in its own session. Requests are lines
//! of JSON; answers are sent as programs finish.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Extension, State};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use futures_util::stream::{self, FuturesUnordered, Stream, StreamExt};
use isolet::Value;
use serde::Serialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::MAX_BODY_BYTES;
use super::body::{JsonBody, decoded, in_turn, line};
use super::openapi::{self, Refusals};
use super::problem::Problem;
use super::runs::{EVENTS, RunOnceRequest};
use super::transfer::{self, Transfer};
use crate::http::credentials::Credentials;
use isolet_service::core::{Execution, Plain};
use isolet_service::node::{Node, Tenant};
use isolet_support::http_server::Patient;
use isolet_support::json_rpc::Outline;
use isolet_support::json_text::message_id;

pub(super) fn routes() -> OpenApiRouter<Arc<Node>> {
    OpenApiRouter::new().routes(routes!(run_batch))
}

/// Runs many programs, each in a session of its own.
///
/// Each line of the body is what `POST /v1/run` takes, and an `id` of any kind. Each line of the
/// answer has the `id` of a line, and its `execution` or `problem`.
#[utoipa::path(
    post,
    path = "/v1/batch",
    request_body(content = String, content_type = "application/x-ndjson"),
    responses(
        (
            status = 200,
            description = "A line for each line of the body",
            body = String, content_type = "application/x-ndjson",
        ),
        Refusals,
    ),
)]
async fn run_batch(
    State(node): State<Arc<Node>>,
    credentials: Credentials,
    Extension(transfer): Extension<Transfer>,
    body: Body,
) -> Result<Response, Problem> {
    let tenant = node.tenant(&credentials)?;
    let items = Lines::of(body, transfer);
    let mut response = Response::new(Body::from_stream(answers(node, tenant, items)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(EVENTS));
    // Lines are read only as fast as the client reads answers.
    response.extensions_mut().insert(Patient);
    Ok(response)
}

/// The answers to a batch. At most as many lines are under way as the node runs at once; the next
/// line is read after an answer was sent.
fn answers(
    node: Arc<Node>,
    tenant: Arc<Tenant>,
    lines: Lines,
) -> impl Stream<Item = Result<Bytes, Infallible>> {
    struct Under<F> {
        /// `None` after the last line.
        lines: Option<Lines>,
        running: FuturesUnordered<F>,
    }
    let most = node.max_runs();
    let under = Under { lines: Some(lines), running: FuturesUnordered::new() };
    stream::unfold(under, move |mut under| {
        let (node, tenant) = (Arc::clone(&node), Arc::clone(&tenant));
        async move {
            loop {
                if under.lines.is_none() && under.running.is_empty() {
                    return None;
                }
                let is_full = under.running.len() >= most;
                let read = async {
                    match &mut under.lines {
                        Some(lines) if !is_full => lines.next().await,
                        _ => std::future::pending().await,
                    }
                };
                tokio::select! {
                    Some(answer) = under.running.next() => return Some((Ok(answer), under)),
                    read = read => match read {
                        Ok(Some(item)) => {
                            let (node, tenant) = (Arc::clone(&node), Arc::clone(&tenant));
                            under.running.push(answer(node, tenant, item));
                        }
                        Ok(None) => under.lines = None,
                        Err(problem) => {
                            // Later lines cannot be delimited any more.
                            let begun = under.lines.take();
                            let begun = begun.as_ref().map(|lines| lines.arrived.rest());
                            let id = message_id(Outline::of(begun.unwrap_or_default()));
                            return Some((Ok(answered(id, Err(problem))), under));
                        }
                    },
                }
            }
        }
    })
}

async fn answer(node: Arc<Node>, tenant: Arc<Tenant>, line: Vec<u8>) -> Bytes {
    let mut charge = node.charge(&tenant);
    let decoded = in_turn(line.len(), || decoded(&line)).await;
    let taken = decoded.and_then(|decoded| Ok(charge.take((line.len() + decoded) as u64)?));
    let read = match taken {
        Ok(()) => JsonBody::read(&line).await,
        Err(problem) => Err(problem),
    };
    let (id, once) = match read {
        Ok(JsonBody(item)) => split(item),
        Err(problem) => (message_id(Outline::of(&line)), Err(problem)),
    };
    drop(line);
    match once {
        Ok(once) => answered(id, once.run(&node, &tenant, node.queue_time()).await),
        Err(problem) => answered(id, Err(problem)),
    }
}

/// Splits a line into its id and its request.
pub(super) fn split(item: Value) -> (Value, Result<RunOnceRequest, Problem>) {
    let Value::Dict(mut fields) = item else {
        return (Value::None, Err(Problem::unreadable("the line has to be an object")));
    };
    let at = fields.iter().position(|(name, _)| name.as_str() == Some("id"));
    let id = at.map_or(Value::None, |at| fields.remove(at).1);
    (id, JsonBody::of(Value::Dict(fields)).map(|JsonBody(once)| once))
}

/// A line of the answer.
#[derive(Serialize)]
struct Done {
    id: Plain,
    #[serde(flatten)]
    ran: Ran,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Ran {
    Execution(Box<Execution>),
    Problem(openapi::Problem),
}

fn answered(id: Value, ran: Result<Execution, Problem>) -> Bytes {
    let ran = match ran {
        Ok(execution) => Ran::Execution(Box::new(execution)),
        Err(problem) => Ran::Problem(problem.to_body()),
    };
    line(Done { id: Plain(id), ran }).into()
}

/// The lines of a request's body.
struct Lines {
    chunks: axum::body::BodyDataStream,
    arrived: Arrived,
    /// Charges bytes that are not a whole line yet.
    transfer: Transfer,
}

impl Lines {
    fn of(body: Body, transfer: Transfer) -> Self {
        Self { chunks: body.into_data_stream(), arrived: Arrived::default(), transfer }
    }

    /// Returns the next non-empty line; `None` after the last one.
    ///
    /// Cancel safe.
    async fn next(&mut self) -> Result<Option<Vec<u8>>, Problem> {
        loop {
            if let Some(line) = self.arrived.next_line() {
                self.transfer.charge().give_back(line.len() as u64);
                if !line.trim_ascii().is_empty() {
                    return Ok(Some(line));
                }
                continue;
            }
            if self.arrived.rest().len() > MAX_BODY_BYTES {
                return Err(Problem::too_large(MAX_BODY_BYTES));
            }
            match self.chunks.next().await {
                Some(Ok(chunk)) => self.arrived.push(&chunk),
                Some(Err(error)) => return Err(transfer::problem(&error)),
                None => {
                    let line = self.arrived.rest().to_vec();
                    self.arrived = Arrived::default();
                    self.transfer.charge().clear();
                    return Ok(Some(line).filter(|line| !line.trim_ascii().is_empty()));
                }
            }
        }
    }
}

/// The bytes that have arrived of a body of lines.
#[derive(Default)]
pub(super) struct Arrived {
    read: Vec<u8>,
    /// Where the next line begins. The bytes before it go with the next chunk and not with each
    /// line, so that many short lines take time in proportion to their bytes.
    start: usize,
    /// Up to where no line ends.
    searched: usize,
}

impl Arrived {
    pub(super) fn push(&mut self, chunk: &[u8]) {
        self.read.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        self.read.extend_from_slice(chunk);
    }

    /// Takes the next line with its end, if all of it has arrived.
    pub(super) fn next_line(&mut self) -> Option<Vec<u8>> {
        let length = self.read[self.searched..].iter().position(|byte| *byte == b'\n');
        let Some(length) = length else {
            self.searched = self.read.len();
            return None;
        };
        let end = self.searched + length + 1;
        let line = self.read[self.start..end].to_vec();
        (self.start, self.searched) = (end, end);
        Some(line)
    }

    /// Returns the bytes after the last whole line.
    pub(super) fn rest(&self) -> &[u8] {
        &self.read[self.start..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(arrived: &mut Arrived) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| arrived.next_line()).collect()
    }

    #[test]
    fn lines_are_the_same_however_they_arrive() {
        let mut arrived = Arrived::default();
        arrived.push(b"one\n\nt");
        assert_eq!(lines(&mut arrived), [&b"one\n"[..], b"\n"]);
        arrived.push(b"w");
        assert!(lines(&mut arrived).is_empty());
        arrived.push(b"o\nthree");
        assert_eq!(lines(&mut arrived), [b"two\n"]);
        assert_eq!(arrived.rest(), b"three");
    }

    /// With a copy of the rest for each line, this would take minutes.
    #[test]
    fn many_short_lines_take_time_in_proportion() {
        let mut arrived = Arrived::default();
        arrived.push(&vec![b'\n'; 4 << 20]);
        assert_eq!(lines(&mut arrived).len(), 4 << 20);
    }
}
