//! Streamable HTTP: what `rmcp` asks of an HTTP client.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use http_body_util::BodyExt;
use hyper::header::{ACCEPT, CONTENT_TYPE, LOCATION, WWW_AUTHENTICATE};
use hyper::http::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Response, StatusCode};
use reqwest::Client;
use rmcp::model::{
    ClientJsonRpcMessage, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, SseError, StreamableHttpClient, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::Sse;
use url::Url;

use super::answers::{self, Reader, RequestKind};
use super::sse::{self, Pending};
use crate::support::http_client::{self, Body};
use isolet_support::json_rpc::Outline;

const SESSION: &str = "mcp-session-id";
const LAST_EVENT: &str = "last-event-id";
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// The most bytes of an error's body that its message shows.
const SHOWN_BYTES: usize = 500;

type Failure = StreamableHttpError<io::Error>;

/// The client of one server.
#[derive(Clone)]
pub(super) struct HttpClient {
    client: Client,
    url: Url,
    reader: Reader,
}

impl HttpClient {
    pub(super) async fn new(url: Url, reader: Reader) -> io::Result<Self> {
        Ok(Self { client: http_client::client().await?, url, reader })
    }

    async fn send(
        &self,
        method: Method,
        accept: &'static str,
        body: Option<Vec<u8>>,
        session: Option<&str>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Response<Body>, Failure> {
        let mut request = self.client.request(method, self.url.clone()).header(ACCEPT, accept);
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, JSON).body(body);
        }
        if let Some(session) = session {
            request = request.header(SESSION, session);
        }
        // Those of the configuration replace ours, as a user who sets them wants.
        let request = request.headers(headers.into_iter().collect::<HeaderMap>());
        let response = http_client::send(request).await.map_err(StreamableHttpError::Client)?;
        let (status, headers) = (response.status(), response.headers());
        let text = |name: HeaderName| {
            headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
        };
        if status == StatusCode::UNAUTHORIZED {
            return Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(text(
                WWW_AUTHENTICATE,
            ))));
        }
        if status.is_redirection() {
            let message = format!("HTTP {status} to `{}`, name that URL instead", text(LOCATION));
            return Err(StreamableHttpError::UnexpectedServerResponse(message.into()));
        }
        if status == StatusCode::NOT_FOUND && session.is_some() {
            return Err(StreamableHttpError::SessionExpired);
        }
        Ok(response)
    }
}

impl StreamableHttpClient for HttpClient {
    type Error = io::Error;

    async fn post_message(
        &self,
        _uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let pending = match &message {
            JsonRpcMessage::Request(request) => {
                self.reader.sent(&message);
                let (id, asked) = (request.id.clone(), answers::asked(&request.request));
                Some(Pending { reader: self.reader.clone(), id, asked })
            }
            _ => None,
        };
        let body = serde_json::to_vec(&message)?;
        let accept = "application/json, text/event-stream";
        let session = session_id.as_deref();
        let response = self.send(Method::POST, accept, Some(body), session, custom_headers).await?;
        let status = response.status();
        let Some(pending) = pending else {
            if status.is_success() {
                return Ok(StreamableHttpPostResponse::Accepted);
            }
            let body = whole(response, self.reader.max_bytes(RequestKind::Other)).await?;
            return Err(unexpected(status, &body));
        };
        let new_session = response.headers().get(SESSION).and_then(|id| id.to_str().ok());
        let new_session = new_session.map(str::to_owned);
        if status.is_success() && has_type(&response, EVENTS) {
            let events = sse::answers(response.into_body().into_data_stream(), pending);
            return Ok(StreamableHttpPostResponse::Sse(events, new_session));
        }
        let Pending { reader, id, asked } = &pending;
        let is_json = has_type(&response, JSON);
        let max_bytes = reader.max_bytes(*asked);
        let body = match whole(response, max_bytes).await {
            Err(StreamableHttpError::ResponseBodyTooLarge { .. }) if status.is_success() => {
                let reason = answers::too_long(max_bytes.saturating_add(1), max_bytes);
                let answer = answers::failure(id.clone(), &reason);
                return Ok(StreamableHttpPostResponse::Json(answer, new_session));
            }
            body => body?,
        };
        if status == StatusCode::BAD_REQUEST && session.is_some() && speaks_of_session(&body) {
            return Err(StreamableHttpError::SessionExpired);
        }
        let is_object = is_json || body.trim_ascii_start().starts_with(b"{");
        let answer = is_object.then(|| reader.body(body.to_vec(), id, *asked));
        match answer {
            Some(answer) if status.is_success() => {
                return Ok(StreamableHttpPostResponse::Json(answer, new_session));
            }
            // An answer that is no JSON-RPC, such as a proxy's, is shown as it is.
            Some(answer @ JsonRpcMessage::Error(_))
                if has_error(&body) && (session.is_some() || *asked != RequestKind::Discovery) =>
            {
                return Ok(StreamableHttpPostResponse::Json(answer, new_session));
            }
            answer if session.is_none() && status.is_client_error() => {
                let answer = answer.filter(|_| has_error(&body));
                if let Some(answer) = rejection(id, *asked, answer, status) {
                    return Ok(answer);
                }
            }
            _ => {}
        }
        Err(unexpected(status, &body))
    }

    async fn delete_session(
        &self,
        _uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failure> {
        let response =
            self.send(Method::DELETE, JSON, None, Some(&session_id), custom_headers).await?;
        match response.status() {
            StatusCode::METHOD_NOT_ALLOWED => {
                Err(StreamableHttpError::ServerDoesNotSupportDeleteSession)
            }
            _ => Ok(()),
        }
    }

    async fn get_stream(
        &self,
        _uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        mut custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        if let Some(id) = last_event_id.and_then(|id| HeaderValue::from_str(&id).ok()) {
            custom_headers.insert(HeaderName::from_static(LAST_EVENT), id);
        }
        let session = session_id.as_deref();
        let response = self.send(Method::GET, EVENTS, None, session, custom_headers).await?;
        if !response.status().is_success() || !has_type(&response, EVENTS) {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        Ok(sse::messages(response.into_body().into_data_stream(), self.reader.clone()))
    }
}

fn has_type(response: &Response<Body>, wanted: &str) -> bool {
    let given = response.headers().get(CONTENT_TYPE).and_then(|given| given.to_str().ok());
    let essence = given.and_then(|given| given.split(';').next());
    essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case(wanted))
}

async fn whole(response: Response<Body>, max_size: usize) -> Result<Bytes, Failure> {
    let body = http_client::whole(response.into_body(), max_size).await;
    let body = body.map_err(StreamableHttpError::Client)?;
    body.ok_or(StreamableHttpError::ResponseBodyTooLarge { max_size })
}

/// Returns the error that shows the text that a server sent instead of an answer.
fn unexpected(status: StatusCode, body: &[u8]) -> Failure {
    let shown = String::from_utf8_lossy(&body[..body.len().min(SHOWN_BYTES)]);
    StreamableHttpError::UnexpectedServerResponse(Cow::Owned(format!("HTTP {status}: {shown}")))
}

/// Returns `true` if an error is about the session. Servers that have lost it should answer 404,
/// and some answer 400.
fn speaks_of_session(body: &[u8]) -> bool {
    String::from_utf8_lossy(body).to_ascii_lowercase().contains("session")
}

/// Returns `true` if a body is an error of JSON-RPC, perhaps without all of its fields.
fn has_error(body: &[u8]) -> bool {
    let outline = Outline::of(body);
    outline.is_answer() && outline.is_named
}

/// Returns the answer that stands for the rejection of a discovery, by which `rmcp` recognises a
/// server of the older protocol. Such a server may not name the request that it rejects.
fn rejection(
    id: &RequestId,
    asked: RequestKind,
    said: Option<ServerJsonRpcMessage>,
    status: StatusCode,
) -> Option<StreamableHttpPostResponse> {
    if asked != RequestKind::Discovery || status == StatusCode::FORBIDDEN {
        return None;
    }
    let error = match said {
        Some(JsonRpcMessage::Error(error)) => error.error,
        _ => ErrorData::invalid_request(format!("HTTP {status}"), None),
    };
    let answer = ServerJsonRpcMessage::error(error, Some(id.clone()));
    Some(StreamableHttpPostResponse::Json(answer, None))
}
