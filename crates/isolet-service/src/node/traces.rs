//! Traces of a node: a span for each session, run and tool call.

use opentelemetry::global::{BoxedSpan, BoxedTracer};
use opentelemetry::trace::{Span, SpanContext, SpanKind, Status, TraceContextExt, Tracer};
use opentelemetry::{Context, KeyValue};

tokio::task_local! {
    /// The client's span that the current request belongs to.
    static PARENT: SpanContext;
}

/// Carries out a request within the client's span.
pub async fn within<F: Future>(parent: SpanContext, work: F) -> F::Output {
    PARENT.scope(parent, work).await
}

/// Creates spans, if tracing is on.
#[derive(Default)]
pub(crate) struct Traces {
    tracer: Option<BoxedTracer>,
}

/// A span, which ends when it is dropped. Empty if tracing is off.
#[derive(Default)]
pub(crate) struct Traced(Option<BoxedSpan>);

impl Traces {
    pub(crate) fn new(tracer: Option<BoxedTracer>) -> Self {
        Self { tracer }
    }

    /// Starts the span of a session.
    pub(crate) fn session(&self, tenant: &str, id: &str) -> Traced {
        let attributes = [("isolet.tenant", tenant), ("isolet.session", id)];
        self.start("session", SpanKind::Server, None, attributes)
    }

    /// Starts the span of a run in a session.
    pub(crate) fn run(&self, session: &Traced, id: &str) -> Traced {
        self.start("run", SpanKind::Server, session.context(), [("isolet.session", id)])
    }

    /// Starts the span of a tool call.
    pub(crate) fn call(&self, run: Option<SpanContext>, tool: &str) -> Traced {
        self.start("tool_call", SpanKind::Client, run, [("isolet.tool", tool)])
    }

    /// Starts a span within the client's span, or within `else_of` if the client sent none.
    fn start<const N: usize>(
        &self,
        name: &'static str,
        kind: SpanKind,
        else_of: Option<SpanContext>,
        attributes: [(&'static str, &str); N],
    ) -> Traced {
        let Some(tracer) = &self.tracer else { return Traced::default() };
        let asked = PARENT.try_with(Clone::clone).ok().filter(SpanContext::is_valid);
        let context = match asked.or(else_of) {
            Some(parent) => Context::new().with_remote_span_context(parent),
            None => Context::new(),
        };
        let attributes = attributes.map(|(name, value)| KeyValue::new(name, value.to_owned()));
        let span = tracer.span_builder(name).with_kind(kind).with_attributes(attributes);
        Traced(Some(span.start_with_context(tracer, &context)))
    }
}

impl Traced {
    pub(crate) fn context(&self) -> Option<SpanContext> {
        self.0.as_ref().map(|span| span.span_context().clone())
    }

    /// Sets the outcome. A refusal or a termination is an error.
    pub(crate) fn ended(&mut self, outcome: &str) {
        if let Some(span) = &mut self.0 {
            span.set_attribute(KeyValue::new("isolet.outcome", outcome.to_owned()));
            if matches!(outcome, "refused" | "terminated") {
                span.set_status(Status::error(outcome.to_owned()));
            }
        }
    }
}
