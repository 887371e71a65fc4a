//! Streamable HTTP: what `rmcp` asks of an HTTP client, over hyper and rustls.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, LOCATION, USER_AGENT, WWW_AUTHENTICATE};
use hyper::http::{HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage, ServerJsonRpcMessage,
};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, SseError, StreamableHttpClient, StreamableHttpError,
    StreamableHttpPostResponse, StreamableHttpResponseLimits,
};
use sse_stream::Sse;
use url::{Position, Url};

use super::sse;
use crate::support::http_connections::Connections;

const SESSION: &str = "mcp-session-id";
const LAST_EVENT: &str = "last-event-id";
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// How much of an error's body its message shows.
const SHOWN_BYTES: usize = 500;

type Failure = StreamableHttpError<io::Error>;

/// The client of one server. Redirects are not followed: the headers are for the server that the
/// user named.
#[derive(Clone)]
pub(super) struct HttpClient(Arc<Connections>);

impl HttpClient {
    pub(super) fn new(url: Url) -> Self {
        Self(Arc::new(Connections::new(url)))
    }

    async fn send(
        &self,
        method: Method,
        accept: &'static str,
        body: Option<Vec<u8>>,
        session: Option<&str>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Response<Incoming>, Failure> {
        let url = self.0.url();
        let invalid =
            |error: hyper::http::Error| StreamableHttpError::Client(io::Error::other(error));
        let host = &url[Position::BeforeHost..Position::AfterPort];
        let path = &url[Position::BeforePath..Position::AfterQuery];
        let agent = concat!("isolet/", env!("CARGO_PKG_VERSION"));
        let mut request = Request::builder().method(method).uri(path).header(HOST, host);
        request = request.header(ACCEPT, accept).header(USER_AGENT, agent);
        if body.is_some() {
            request = request.header(CONTENT_TYPE, JSON);
        }
        if let Some(session) = session {
            request = request.header(SESSION, session);
        }
        let body = Full::new(Bytes::from(body.unwrap_or_default()));
        let mut request = request.body(body).map_err(invalid)?;
        // Those of the configuration replace ours, as a user who sets them wants.
        request.headers_mut().extend(headers.into_iter().map(|(name, value)| (Some(name), value)));
        let response = self.0.send(request).await.map_err(StreamableHttpError::Client)?;
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
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let limits = StreamableHttpResponseLimits::default();
        self.post_message_with_response_limits(
            uri,
            message,
            session_id,
            auth_header,
            custom_headers,
            limits,
        )
        .await
    }

    async fn post_message_with_response_limits(
        &self,
        _uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let body = serde_json::to_vec(&message)?;
        let accept = "application/json, text/event-stream";
        let session = session_id.as_deref();
        let response = self.send(Method::POST, accept, Some(body), session, custom_headers).await?;
        let status = response.status();
        let awaits_answer = matches!(message, ClientJsonRpcMessage::Request(_));
        if status.is_success() && !awaits_answer {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let new_session = response.headers().get(SESSION).and_then(|id| id.to_str().ok());
        let new_session = new_session.map(str::to_owned);
        let is_json = has_type(&response, JSON);
        if status.is_success() && has_type(&response, EVENTS) {
            let body = response.into_body().into_data_stream();
            let events = sse::events(body, limits.max_sse_event_size);
            return Ok(StreamableHttpPostResponse::Sse(events, new_session));
        }
        let body = whole(response, limits.max_json_response_size).await?;
        let parsed = if is_json { serde_json::from_slice(&body).ok() } else { None };
        match parsed {
            Some(parsed) if status.is_success() => {
                return Ok(StreamableHttpPostResponse::Json(parsed, new_session));
            }
            Some(JsonRpcMessage::Error(error)) if session.is_some() || !is_discover(&message) => {
                return Ok(StreamableHttpPostResponse::Json(
                    JsonRpcMessage::Error(error),
                    new_session,
                ));
            }
            other if session.is_none() && status.is_client_error() => {
                if let Some(answer) = rejection(&message, other, status) {
                    return Ok(answer);
                }
            }
            _ => {}
        }
        let shown = String::from_utf8_lossy(&body[..body.len().min(SHOWN_BYTES)]).into_owned();
        let message = format!("HTTP {status}: {shown}");
        Err(StreamableHttpError::UnexpectedServerResponse(Cow::Owned(message)))
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
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        let max = StreamableHttpResponseLimits::default().max_sse_event_size;
        self.get_stream_with_max_sse_event_size(
            uri,
            session_id,
            last_event_id,
            auth_header,
            custom_headers,
            max,
        )
        .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        _uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        mut custom_headers: HashMap<HeaderName, HeaderValue>,
        max_sse_event_size: usize,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        if let Some(id) = last_event_id.and_then(|id| HeaderValue::from_str(&id).ok()) {
            custom_headers.insert(HeaderName::from_static(LAST_EVENT), id);
        }
        let session = session_id.as_deref();
        let response = self.send(Method::GET, EVENTS, None, session, custom_headers).await?;
        if !response.status().is_success() || !has_type(&response, EVENTS) {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        Ok(sse::events(response.into_body().into_data_stream(), max_sse_event_size))
    }
}

fn has_type(response: &Response<Incoming>, wanted: &str) -> bool {
    let given = response.headers().get(CONTENT_TYPE).and_then(|given| given.to_str().ok());
    let essence = given.and_then(|given| given.split(';').next());
    essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case(wanted))
}

async fn whole(response: Response<Incoming>, max_size: usize) -> Result<Bytes, Failure> {
    let body = Limited::new(response.into_body(), max_size).collect().await;
    body.map(http_body_util::Collected::to_bytes).map_err(|error| {
        if error.is::<http_body_util::LengthLimitError>() {
            StreamableHttpError::ResponseBodyTooLarge { max_size }
        } else {
            StreamableHttpError::Client(io::Error::other(error))
        }
    })
}

fn is_discover(message: &ClientJsonRpcMessage) -> bool {
    let ClientJsonRpcMessage::Request(request) = message else { return false };
    matches!(request.request, ClientRequest::DiscoverRequest(_))
}

/// Returns the answer that stands for the rejection of a discovery, by which `rmcp` recognises a
/// server of the older protocol. Such a server may not name the request that it rejects.
fn rejection(
    message: &ClientJsonRpcMessage,
    said: Option<ServerJsonRpcMessage>,
    status: StatusCode,
) -> Option<StreamableHttpPostResponse> {
    let ClientJsonRpcMessage::Request(request) = message else { return None };
    if !is_discover(message) || status == StatusCode::FORBIDDEN {
        return None;
    }
    let error = match said {
        Some(ServerJsonRpcMessage::Error(error)) => error.error,
        _ => ErrorData::invalid_request(format!("HTTP {status}"), None),
    };
    let answer = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
    Some(StreamableHttpPostResponse::Json(answer, None))
}
