//! Helpers of the security tests: tools that log, and secrets to search for.

use std::sync::{Arc, Mutex, PoisonError};

use isolet::{SandboxBuilder, Tool, ToolSpec, Value};

use crate::util::builder;

/// A text that no guest may ever see.
pub(crate) const CANARY: &str = "canary-7c41e9d2";

/// All calls that reached the host: the tool's name and its arguments.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<(String, Value)>>>);

impl Log {
    /// Makes a tool that accepts any arguments, returns its own name and logs the call.
    pub(crate) fn tool(&self, spec: ToolSpec) -> Tool {
        let log = self.clone();
        Tool::from_handler(spec, move |arguments, call| {
            let name = call.tool_name().to_owned();
            log.lock().push((name.clone(), arguments));
            async move { Ok(Value::from(name)) }
        })
    }

    /// Returns the calls since the last time.
    pub(crate) fn take(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<(String, Value)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes a sandbox with the tools `pay(amount)` and `rob(amount)`, and their log.
pub(crate) fn with_log() -> (SandboxBuilder, Log) {
    let log = Log::default();
    let spec = |name| ToolSpec::new(name).param(isolet::Param::new("amount"));
    (builder().tool(log.tool(spec("pay"))).tool(log.tool(spec("rob"))), log)
}

/// Returns the arguments of `pay(amount=amount)` in the form of the log.
pub(crate) fn amount(amount: i64) -> Value {
    Value::Dict(vec![("amount".into(), amount.into())])
}
