//! One call: rules, arguments, approval, the server, the result, the record.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rmcp::model::JsonObject;

use super::{Audit, Hub};
use crate::hub::audit::{CallOutcome, CallRecord, measured};
use crate::hub::policy::{self, Ask, DecidedBy, Decision, Verdict};
use crate::tool::definition::Definition;
use crate::tool::signature::Signature;
use crate::tool::text;
use crate::tool::value;
use crate::upstream::Upstream;
use isolet::ToolError;
use isolet::Value;
use isolet::internals::encoded_len;
use isolet::{Tool, ToolContext};
use isolet_support::quoted::quoted;

/// The maximum length of the reason of a refusal, in characters.
const REASON_CHARS: usize = 1_000;

/// Makes the tool of Python that calls a tool of a server.
pub(super) fn tool(
    hub: Hub,
    upstream: Arc<Upstream>,
    definition: &Definition,
    signature: Signature,
) -> Tool {
    let (spec, name) = (signature.spec.clone(), definition.name.clone());
    let says_read_only = definition.says_read_only();
    let may_repeat = upstream.config().trusts_hints() && says_read_only;
    let target = Arc::new(Target { hub, upstream, name, signature, says_read_only });
    let tool = Tool::from_handler(spec, move |bound, cx| {
        let target = Arc::clone(&target);
        async move {
            let mut record = Recorder::new(&target, &cx);
            let result = target.call(bound, &cx, &mut record.record).await;
            record.end(&result);
            result
        }
    });
    // It asks a person first.
    let tool = tool.deferred();
    if may_repeat { tool.idempotent() } else { tool }
}

struct Target {
    hub: Hub,
    upstream: Arc<Upstream>,
    name: String,
    signature: Signature,
    says_read_only: bool,
}

impl Target {
    async fn call(
        &self,
        bound: Value,
        cx: &ToolContext,
        record: &mut CallRecord,
    ) -> Result<Value, ToolError> {
        let arguments = self.permit(bound, cx, record).await?;
        cx.begin()?;
        let config = self.upstream.config();
        let time = config.call_time().unwrap_or(self.hub.0.call_time);
        let begun = Instant::now();
        let called = self.upstream.call(&self.name, arguments, time).await;
        record.duration = begun.elapsed();
        let result = called.and_then(|result| {
            value::unwrap(result, self.signature.is_wrapped).map_err(|error| {
                let message = self.upstream.clean(error.message());
                ToolError::new(error.type_name().to_owned(), message)
            })
        });
        if result.as_ref().is_err_and(|error| error.type_name() == "PermissionError") {
            (record.verdict, record.decided_by) = (Verdict::Deny, DecidedBy::Pin);
        }
        let mut result = result?;
        self.upstream.redact(&mut result);
        record.bytes_out = encoded_len(&result);
        if !self.signature.has_output {
            self.upstream.saw(&self.name, &result);
        }
        Ok(result)
    }

    /// Returns what may be sent.
    async fn permit(
        &self,
        bound: Value,
        cx: &ToolContext,
        record: &mut CallRecord,
    ) -> Result<JsonObject, ToolError> {
        let hub = &*self.hub.0;
        let config = self.upstream.config();
        let server = config.name();
        let names = (self.name.as_str(), self.signature.spec.name());
        let (verdict, by) = policy::decide(config, &hub.rules, names, self.says_read_only);
        (record.verdict, record.decided_by) = (verdict, by);
        if verdict == Verdict::Deny {
            let by = &record.decided_by;
            return Err(self.refused(&format!("is denied by {by}")));
        }
        if let Err(error) = self.upstream.check_pins(&self.name) {
            (record.verdict, record.decided_by) = (Verdict::Deny, DecidedBy::Pin);
            return Err(error);
        }
        let arguments = self.signature.arguments(bound).inspect_err(|_| {
            (record.verdict, record.decided_by) = (Verdict::Deny, DecidedBy::Arguments);
        })?;
        (record.arguments_hash, record.bytes_in) = measured(&arguments);
        let (session, run) = (cx.session_id(), cx.run_id());
        let calls = hub.grants.count(session, run, server);
        if let Some(limit) = config.call_limit().filter(|limit| calls > *limit) {
            (record.verdict, record.decided_by) = (Verdict::Deny, DecidedBy::Limit);
            return Err(ToolError::new(
                "RuntimeError",
                format!("call {calls} of the server `{server}` in this run, `maxCalls` is {limit}"),
            ));
        }
        if verdict == Verdict::Ask {
            self.ask(&arguments, cx, record).await?;
        }
        Ok(arguments)
    }

    async fn ask(
        &self,
        arguments: &JsonObject,
        cx: &ToolContext,
        record: &mut CallRecord,
    ) -> Result<(), ToolError> {
        let hub = &*self.hub.0;
        let server = self.upstream.config().name();
        if hub.grants.has(cx.session_id(), cx.run_id(), server, &self.name) {
            (record.verdict, record.decided_by) = (Verdict::Allow, DecidedBy::Earlier);
            return Ok(());
        }
        let Some(approver) = &hub.approver else {
            record.verdict = Verdict::Deny;
            let pattern = policy::pattern(server, &self.name, self.signature.spec.name());
            return Err(self.refused(&format!(
                "needs an approval, and nobody can be asked; the user can allow it with \
                 `--allow-tool {}`",
                quoted(&pattern)
            )));
        };
        let mut ask = Ask {
            session: cx.session().clone(),
            run_id: cx.run_id(),
            server: server.to_owned(),
            tool: self.name.clone(),
            python_name: self.signature.spec.name().to_owned(),
            arguments: value::value(arguments.clone().into()),
        };
        self.upstream.redact(&mut ask.arguments);
        record.decided_by = DecidedBy::Approver;
        let paused = cx.pause_clock();
        let decision = approver.approve(ask.clone()).await;
        drop(paused);
        hub.grants.add(&ask, &decision);
        let Decision::No(reason) = decision else {
            record.verdict = Verdict::Allow;
            return Ok(());
        };
        record.verdict = Verdict::Deny;
        let reason = text::cut(&text::clean(&reason), REASON_CHARS);
        let said = if reason.is_empty() { reason } else { format!(": {reason}") };
        Err(self.refused(&format!("was not approved{said}")))
    }

    fn refused(&self, reason: &str) -> ToolError {
        let (server, tool) = (self.upstream.config().name(), text::clean(&self.name));
        let message = format!("`{tool}` of the server `{server}` {reason}");
        ToolError::new("PermissionError", message)
    }
}

/// Reports a call once, also if its caller no longer waits.
struct Recorder {
    record: CallRecord,
    audit: Option<Audit>,
}

impl Recorder {
    fn new(target: &Target, cx: &ToolContext) -> Self {
        let record = CallRecord {
            session_id: cx.session_id(),
            run_id: cx.run_id(),
            call_id: cx.call_id(),
            server: target.upstream.config().name().to_owned(),
            tool: target.name.clone(),
            verdict: Verdict::Ask,
            decided_by: DecidedBy::Default,
            arguments_hash: String::new(),
            bytes_in: 0,
            bytes_out: 0,
            duration: Duration::ZERO,
            outcome: CallOutcome::Cancelled,
        };
        Self { record, audit: target.hub.0.audit.clone() }
    }

    fn end(&mut self, result: &Result<Value, ToolError>) {
        self.record.outcome = match result {
            Ok(_) => CallOutcome::Returned,
            Err(error) => CallOutcome::Raised {
                type_name: error.type_name().to_owned(),
                message: error.message().to_owned(),
            },
        };
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if let Some(audit) = &self.audit {
            audit(&self.record);
        }
    }
}
