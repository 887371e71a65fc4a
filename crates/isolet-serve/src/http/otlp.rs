//! Exports traces to an OpenTelemetry collector, by OTLP over HTTP, if
//! `OTEL_EXPORTER_OTLP_ENDPOINT` or `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` is set.

use std::env;
use std::future::Future;
use std::io::Write as _;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Error, Result, ensure};
use axum::http::HeaderMap;
use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::{Request, Response};
use isolet_pyodide_assets::http::{self, Authorities, Failure};
use opentelemetry::global::BoxedTracer;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{SpanContext, TraceContextExt, TracerProvider};
use opentelemetry_http::{HeaderExtractor, HttpClient, HttpError};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use reqwest::redirect::Policy;
use tokio::runtime::Handle;

/// The variables with the collector's URL.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];

/// The timeout of an export.
const EXPORT_TIME: Duration = Duration::from_secs(10);

/// The maximum length of an answer that is read.
const MAX_ANSWER_BYTES: usize = 64 << 10;

/// Exports traces. Dropping it sends queued spans.
pub(super) struct Exporter(SdkTracerProvider);

impl Exporter {
    /// Creates an exporter, if the environment configures one. It sends on `runtime`.
    pub(super) fn of_environment(runtime: &Handle, node: &str) -> Result<Option<Self>> {
        let set = ENDPOINTS.iter().find_map(|name| Some((name, variable(name)?)));
        let Some((name, endpoint)) = set else { return Ok(None) };
        ensure!(
            endpoint.starts_with("http://") || endpoint.starts_with("https://"),
            "`{name}` is {endpoint:?}, and has to begin with `http://` or `https://`"
        );
        let client = Client::new(runtime).map_err(Error::msg)?;
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(client)
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

    /// Sends queued spans, within the timeout of an export.
    pub(super) fn end(self) {
        // The client has already reported why an export failed.
        let _ = self.0.shutdown_with_timeout(EXPORT_TIME);
    }
}

/// Returns a setting of OpenTelemetry.
#[expect(clippy::disallowed_methods, reason = "the operator's own setting")]
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// Returns the parent span in the request's `traceparent`.
pub(super) fn parent(headers: &HeaderMap) -> SpanContext {
    let context = TraceContextPropagator::new().extract(&HeaderExtractor(headers));
    context.span().span_context().clone()
}

/// Sends requests on a runtime, for a thread outside of it.
#[derive(Debug)]
struct Client {
    runtime: Handle,
    requests: reqwest::Client,
    /// Set while exports fail and the operator was informed.
    is_failing: Arc<AtomicBool>,
}

type Sent = Result<Response<Bytes>, HttpError>;

impl Client {
    /// Follows no redirects, because the headers may hold secrets for the configured collector.
    fn new(runtime: &Handle) -> Result<Self, String> {
        let client = http::client(&Authorities::default())?;
        let client = client.redirect(Policy::none()).timeout(EXPORT_TIME).build();
        let client = client.map_err(|error| error.to_string())?;
        Ok(Self { runtime: runtime.clone(), requests: client, is_failing: Arc::default() })
    }
}

impl HttpClient for Client {
    fn send_bytes<'a, 'b>(
        &'a self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Sent> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        let (client, is_failing) = (self.requests.clone(), Arc::clone(&self.is_failing));
        let sent = self.runtime.spawn(async move {
            let url = request.uri().to_string();
            let sent = send(&client, &url, request).await;
            let problem = match &sent {
                Err(error) => Some(error.to_string()),
                Ok(answer) if answer.status().is_success() => None,
                Ok(answer) => Some(format!("it answers HTTP {}", answer.status())),
            };
            let was_failing = is_failing.swap(problem.is_some(), Ordering::Relaxed);
            if let (Some(problem), false) = (problem, was_failing) {
                let said = format!("isolet: traces do not reach `{url}`: {problem}");
                let _ = writeln!(std::io::stderr(), "{said}");
            }
            sent
        });
        Box::pin(async { sent.await? })
    }
}

async fn send(client: &reqwest::Client, url: &str, request: Request<Bytes>) -> Sent {
    let failed = |error: reqwest::Error| Failure::of(&error, url).in_environment();
    let request = reqwest::Request::try_from(request).map_err(failed)?;
    let response = client.execute(request).await.map_err(failed)?;
    let (head, body) = Response::<reqwest::Body>::from(response).into_parts();
    let body = Limited::new(body, MAX_ANSWER_BYTES).collect().await?.to_bytes();
    Ok(Response::from_parts(head, body))
}
