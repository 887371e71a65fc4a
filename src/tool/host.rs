//! The host's side of tool calls in one session: which may start, with what arguments.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;

use super::calls::{Call, CallEvent};
use super::spec::{Check, Default, ToolSpec};
use super::{Tool, ToolError};
use crate::audit::{Access, AuditLog};
use crate::execution::LimitKind;
use crate::host::tally::Tally;
use crate::value::{Value, marshal};

/// What a session's guest may call, and what it has called.
pub(crate) struct ToolHost {
    tools: Mutex<HashMap<String, Entry>>,
    submit: Mutex<Option<Arc<ToolSpec>>>,
    submission: Mutex<Option<Value>>,
    events: mpsc::UnboundedSender<CallEvent>,
    /// Whether a run is under way.
    running: AtomicBool,
    max_value_bytes: u64,
    audit: AuditLog,
    tally: Arc<Tally>,
}

struct Entry {
    tool: Tool,
    calls: u64,
}

impl ToolHost {
    pub(crate) fn new(
        events: mpsc::UnboundedSender<CallEvent>,
        max_value_bytes: u64,
        audit: AuditLog,
        tally: Arc<Tally>,
    ) -> Self {
        Self {
            tools: Mutex::default(),
            submit: Mutex::default(),
            submission: Mutex::default(),
            events,
            running: AtomicBool::new(false),
            max_value_bytes,
            audit,
            tally,
        }
    }

    /// Allows a tool. One of the same name is replaced, and its calls are forgotten.
    pub(crate) fn register(&self, tool: Tool) {
        let name = tool.spec.name.clone();
        lock(&self.tools).insert(name, Entry { tool, calls: 0 });
    }

    /// Allows submissions with these fields.
    pub(crate) fn set_submit(&self, spec: Arc<ToolSpec>) {
        *lock(&self.submit) = Some(spec);
    }

    /// Starts a run: nothing was called or submitted in it.
    pub(crate) fn begin(&self) {
        self.running.store(true, Ordering::Release);
        lock(&self.submission).take();
    }

    /// Allows no calls until the next run.
    pub(crate) fn pause(&self) {
        self.running.store(false, Ordering::Release);
    }

    /// Ends a run: how many calls it made, and what it submitted.
    pub(crate) fn finish(&self) -> (u64, Option<Value>) {
        self.pause();
        (self.tally.observed(LimitKind::ToolCalls), lock(&self.submission).take())
    }

    /// Has a call started whose arguments are acceptable.
    pub(crate) fn call(&self, id: u32, name: &str, arguments: &[u8]) -> Result<(), ToolError> {
        let started = self.start(id, name, arguments);
        let reason =
            started.as_ref().err().map_or_else(|| "a tool".to_owned(), ToString::to_string);
        self.audit.tell(started.is_ok(), reason, || Access::Tool { name: shown(name) });
        started
    }

    fn start(&self, id: u32, name: &str, arguments: &[u8]) -> Result<(), ToolError> {
        self.check_running()?;
        let unknown = || ToolError::new("NameError", format!("there is no host function '{name}'"));
        let spec = Arc::clone(&lock(&self.tools).get(name).ok_or_else(unknown)?.tool.spec);
        let arguments = bind(&spec, self.decode(name, arguments)?)?;
        let mut tools = lock(&self.tools);
        let entry = tools.get_mut(name).ok_or_else(unknown)?;
        if let Some(limit) = entry.tool.max_calls.filter(|limit| entry.calls >= *limit) {
            return Err(ToolError::new(
                "RuntimeError",
                format!("{name}() was called {} times, the limit is {limit}", entry.calls),
            ));
        }
        if !self.tally.add(LimitKind::ToolCalls) {
            return Err(ToolError::new("RuntimeError", "the run has made too many calls"));
        }
        entry.calls += 1;
        let call = Call { id, tool: entry.tool.clone(), arguments };
        // It fails only when the session is being dropped, and then nobody waits.
        let _ = self.events.send(CallEvent::Start(call));
        Ok(())
    }

    /// Has a call cancelled that nobody waits for.
    pub(crate) fn cancel(&self, id: u32) {
        let _ = self.events.send(CallEvent::Cancel(id));
    }

    /// Takes a submission. The first one of a run counts.
    pub(crate) fn submit(&self, fields: &[u8]) -> Result<(), ToolError> {
        self.check_running()?;
        let spec = lock(&self.submit).clone();
        let spec = spec.ok_or_else(|| ToolError::new("NameError", "there is nothing to submit"))?;
        let fields = bind(&spec, self.decode(&spec.name, fields)?)?;
        lock(&self.submission).get_or_insert(fields);
        Ok(())
    }

    /// Work that a run has left behind goes on whenever the guest has a turn, as when its variables are
    /// looked at; what it does to the host it may do in a run only.
    fn check_running(&self) -> Result<(), ToolError> {
        let refused =
            || ToolError::new("RuntimeError", "host functions can only be called in a run");
        self.running.load(Ordering::Acquire).then_some(()).ok_or_else(refused)
    }

    fn decode(&self, name: &str, arguments: &[u8]) -> Result<Value, ToolError> {
        if arguments.len() as u64 > self.max_value_bytes {
            return Err(ToolError::new(
                "ValueError",
                format!(
                    "the arguments of {name}() have {} bytes, the limit is {} bytes",
                    arguments.len(),
                    self.max_value_bytes
                ),
            ));
        }
        marshal::decode_within(arguments, self.max_value_bytes).map_err(|error| {
            ToolError::new(
                "TypeError",
                format!("the arguments of {name}() cannot be read: {error}"),
            )
        })
    }
}

/// A name that a guest gave, as far as anybody wants to see it.
fn shown(name: &str) -> String {
    const SHOWN: usize = 100;
    name.chars().take(SHOWN).collect()
}

/// The arguments by name, complete, checked and in the order of the parameters.
///
/// Python's own function object has bound them already; what arrives here otherwise was made by a
/// guest that went around it.
fn bind(spec: &ToolSpec, arguments: Value) -> Result<Value, ToolError> {
    let name = &spec.name;
    let refuse = |text: String| Err(ToolError::new("TypeError", format!("{name}() {text}")));
    let Value::Dict(mut given) = arguments else {
        return refuse("takes its arguments as a dict".to_owned());
    };
    let mut bound = Vec::with_capacity(spec.params.len());
    for param in &spec.params {
        let at = given.iter().position(|(key, _)| key.as_str() == Some(&param.name));
        let value = match (at, &param.default) {
            (Some(at), _) => {
                let (_, value) = given.swap_remove(at);
                if param.check == Check::Checked
                    && let Err(reason) = param.hint.check(&value)
                {
                    return refuse(format!("argument '{}' {reason}", param.name));
                }
                value
            }
            (None, Default::Is(value)) => value.clone(),
            (None, Default::Unknown) => continue,
            (None, Default::Required) => {
                return refuse(format!("missing 1 required positional argument: '{}'", param.name));
            }
        };
        bound.push((Value::from(param.name.as_str()), value));
    }
    match given.first() {
        Some((key, _)) => refuse(format!("got an unexpected keyword argument {key}")),
        None => Ok(Value::Dict(bound)),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
