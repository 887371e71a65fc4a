//! Traces to a collector of OpenTelemetry, over OTLP in HTTP: on if `OTEL_EXPORTER_OTLP_ENDPOINT`
//! or `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` says where it is.

use std::env;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use axum::http::HeaderMap;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::handshake;
use hyper::header::{HOST, HeaderValue};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use opentelemetry::global::BoxedTracer;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{SpanContext, TraceContextExt, TracerProvider};
use opentelemetry_http::{HeaderExtractor, HttpClient, HttpError};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::net::TcpStream;
use tokio::runtime::Handle;

/// The variables that say where the collector is.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];

/// How long the collector may take.
const EXPORT_TIME: Duration = Duration::from_secs(10);

/// The most bytes of an answer that are read.
const MAX_ANSWER_BYTES: usize = 64 << 10;

/// What sends traces. Those that wait are sent when it is dropped.
pub(super) struct Exporter(SdkTracerProvider);

impl Exporter {
    /// Makes one, if the environment says where to. It sends by the tasks of `runtime`.
    pub(super) fn of_environment(runtime: &Handle, node: &str) -> Result<Option<Self>> {
        let set = ENDPOINTS.iter().find_map(|name| Some((name, variable(name)?)));
        let Some((name, endpoint)) = set else { return Ok(None) };
        ensure!(
            endpoint.starts_with("http://"),
            "`{name}` is {endpoint:?}, and has to begin with `http://`: a collector near the node \
             sends traces on over TLS"
        );
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Client(runtime.clone()))
            .with_protocol(Protocol::HttpBinary)
            .with_timeout(EXPORT_TIME)
            .build()
            .with_context(|| format!("cannot send traces to {endpoint:?}"))?;
        let resource = Resource::builder()
            .with_attribute(opentelemetry::KeyValue::new("service.instance.id", node.to_owned()));
        let resource = match variable("OTEL_SERVICE_NAME") {
            Some(_) => resource,
            None => resource.with_service_name("isolet"),
        };
        let provider = SdkTracerProvider::builder().with_resource(resource.build());
        Ok(Some(Self(provider.with_batch_exporter(exporter).build())))
    }

    pub(super) fn tracer(&self) -> BoxedTracer {
        BoxedTracer::new(Box::new(self.0.tracer("isolet")))
    }

    /// Sends what waits. Takes as long as the collector may.
    pub(super) fn end(self) {
        // Who does not get them says so in its own log.
        let _ = self.0.shutdown_with_timeout(EXPORT_TIME);
    }
}

/// Returns a setting of OpenTelemetry.
#[expect(clippy::disallowed_methods, reason = "the operator's own setting")]
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// What the request is a part of, by its `traceparent`.
pub(super) fn parent(headers: &HeaderMap) -> SpanContext {
    let context = TraceContextPropagator::new().extract(&HeaderExtractor(headers));
    context.span().span_context().clone()
}

/// Sends requests from a thread that is none of the runtime's.
#[derive(Debug)]
struct Client(Handle);

type Sent = Result<Response<Bytes>, HttpError>;

impl HttpClient for Client {
    fn send_bytes<'a, 'b>(
        &'a self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Sent> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        // A timer can be made within the runtime only.
        let sent = self.0.spawn(async { tokio::time::timeout(EXPORT_TIME, send(request)).await });
        Box::pin(async { sent.await?? })
    }
}

async fn send(request: Request<Bytes>) -> Sent {
    let uri = request.uri().clone();
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let stream = TcpStream::connect((host, uri.port_u16().unwrap_or(80))).await?;
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let mut request = request.map(Full::new);
    if let Some(authority) = uri.authority() {
        request.headers_mut().insert(HOST, HeaderValue::from_str(authority.as_str())?);
    }
    if let Some(path) = uri.path_and_query() {
        *request.uri_mut() = path.as_str().parse()?;
    }
    let (head, body) = sender.send_request(request).await?.into_parts();
    let body = Limited::new(body, MAX_ANSWER_BYTES).collect().await?.to_bytes();
    Ok(Response::from_parts(head, body))
}
