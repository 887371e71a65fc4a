//! The host's side of tool calls in one session: which calls may start, and with which arguments.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use bytes::Bytes;

use super::bind::bind;
use super::queue::{Call, CallPermit, CallQueue};
use super::{ModuleSet, Modules, Role, Tool, unknown};
use crate::data::execution::LimitKind;
use crate::data::limits::Limits;
use crate::data::shown::shown;
use crate::data::tool::{ToolError, ToolSpec};
use crate::data::value::Value;
use crate::data::value::marshal::{self, DecodeError, Reader};
use crate::host::audit::{Access, AuditLog};
use crate::host::journal::CallAgain;
use crate::host::stop::RunCounters;
use crate::protocol::NAME_BYTES;
use crate::support::lock::lock;

/// The tools that a session's guest may call, and its calls.
pub(crate) struct ToolHost {
    /// By name; those of modules by their whole name, from their first call on.
    tools: Mutex<HashMap<String, Entry>>,
    modules: Arc<Modules>,
    /// Every form of `SUBMIT` that the guest was given, because it may have kept old ones.
    submit: Mutex<Vec<Arc<ToolSpec>>>,
    submission: Mutex<Option<Value>>,
    queue: Arc<CallQueue>,
    /// Set while a run is under way.
    running: AtomicBool,
    max_value_bytes: u64,
    audit: AuditLog,
    counters: Arc<RunCounters>,
    on_begin: OnceLock<OnBegin>,
}

/// Is told of the call of a deferred tool that begins.
type OnBegin = Box<dyn Fn(u32) -> Result<(), String> + Send + Sync>;

struct Entry {
    tool: Tool,
    calls: u64,
}

/// Fails if a tool that was called so many times may not be called again.
fn check_calls(tool: &Tool, calls: u64) -> Result<(), ToolError> {
    let Some(limit) = tool.max_calls.filter(|limit| calls >= *limit) else { return Ok(()) };
    let name = &tool.spec.name;
    let message = format!("{name}() was called {calls} times, the limit is {limit}");
    Err(ToolError::new("RuntimeError", message))
}

impl ToolHost {
    pub(crate) fn new(
        limits: &Limits,
        modules: &ModuleSet,
        audit: AuditLog,
        counters: Arc<RunCounters>,
    ) -> Self {
        Self {
            tools: Mutex::default(),
            modules: Arc::new(Modules::new(modules)),
            submit: Mutex::default(),
            submission: Mutex::default(),
            queue: Arc::new(CallQueue::new(limits)),
            running: AtomicBool::new(false),
            max_value_bytes: limits.value_bytes(),
            audit,
            counters,
            on_begin: OnceLock::new(),
        }
    }

    /// Makes the tools of a copy of the session: the same ones, none of which was called.
    pub(crate) fn copy(
        &self,
        limits: &Limits,
        audit: AuditLog,
        counters: Arc<RunCounters>,
    ) -> Self {
        self.again(limits, audit, counters, |_| 0)
    }

    /// Makes the tools of the session after its interpreter has ended: the same ones, whose calls
    /// count on.
    pub(crate) fn revived(
        &self,
        limits: &Limits,
        audit: AuditLog,
        counters: Arc<RunCounters>,
    ) -> Self {
        self.again(limits, audit, counters, |calls| calls)
    }

    fn again(
        &self,
        limits: &Limits,
        audit: AuditLog,
        counters: Arc<RunCounters>,
        calls: impl Fn(u64) -> u64,
    ) -> Self {
        let tools = lock(&self.tools);
        let again = |entry: &Entry| Entry { tool: entry.tool.clone(), calls: calls(entry.calls) };
        let tools = tools.iter().map(|(name, entry)| (name.clone(), again(entry)));
        Self {
            tools: Mutex::new(tools.collect()),
            modules: Arc::clone(&self.modules),
            submit: Mutex::new(lock(&self.submit).clone()),
            submission: Mutex::default(),
            queue: Arc::new(CallQueue::new(limits)),
            running: AtomicBool::new(false),
            max_value_bytes: self.max_value_bytes,
            audit,
            counters,
            on_begin: OnceLock::new(),
        }
    }

    /// Registers a tool. A tool of the same name is replaced, and its number of calls starts at 0
    /// again.
    pub(crate) fn register(&self, tool: Tool) {
        let name = tool.spec.name.clone();
        lock(&self.tools).insert(name, Entry { tool, calls: 0 });
    }

    /// Registers a tool unless one of its name is registered.
    pub(crate) fn register_if_new(&self, tool: &Tool) {
        let entry = || Entry { tool: tool.clone(), calls: 0 };
        lock(&self.tools).entry(tool.spec.name.clone()).or_insert_with(entry);
    }

    /// Allows submissions with these fields, in addition to earlier forms. Returns the number of
    /// the form.
    pub(crate) fn allow_submit(&self, spec: &Arc<ToolSpec>) -> u32 {
        let mut forms = lock(&self.submit);
        let known = forms.iter().position(|form| form == spec);
        let number = known.unwrap_or_else(|| {
            forms.push(Arc::clone(spec));
            forms.len() - 1
        });
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    /// Returns how many bytes of memory a value may take.
    pub(super) fn max_value_bytes(&self) -> u64 {
        self.max_value_bytes
    }

    /// Returns the calls that have not ended.
    pub(crate) fn queue(&self) -> &Arc<CallQueue> {
        &self.queue
    }

    /// Counts an answer as unread until the guest has read it.
    pub(crate) fn unread(&self, answer: Vec<u8>) -> Bytes {
        self.queue.unread(answer)
    }

    /// Begins a run, without calls or a submission so far.
    pub(crate) fn begin(&self) {
        self.queue.cancel_all();
        self.running.store(true, Ordering::Release);
        lock(&self.submission).take();
    }

    /// Refuses calls until the next run.
    pub(crate) fn pause(&self) {
        self.running.store(false, Ordering::Release);
    }

    /// Ends a run. Returns the number of its calls and its submission.
    pub(crate) fn finish(&self) -> (u64, Option<Value>) {
        self.pause();
        self.queue.cancel_all();
        (self.counters.observed(LimitKind::ToolCalls), lock(&self.submission).take())
    }

    /// Accepts a call. It waits with its arguments still encoded until it is started.
    pub(crate) fn call(&self, id: u32, name: &str, arguments: &[u8]) -> Result<(), ToolError> {
        let accepted = self.accept(id, name, arguments);
        if let Err(error) = &accepted {
            self.audit.tell(false, error.to_string(), || Access::Tool { name: shown(name) });
        }
        accepted
    }

    fn accept(&self, id: u32, name: &str, arguments: &[u8]) -> Result<(), ToolError> {
        self.check_running()?;
        if name.len() > NAME_BYTES {
            let needed = name.len();
            let message = format!("a tool's name has {needed} bytes, the limit is {NAME_BYTES}");
            return Err(ToolError::new("ValueError", message));
        }
        if let Some(tool) = self.modules.question(name) {
            self.check_length(name, arguments)?;
            let charge = self.queue.admit(id, arguments.len())?;
            self.queue.push(Call { id, tool, arguments: arguments.to_vec(), charge });
            return Ok(());
        }
        let mut tools = lock(&self.tools);
        if !tools.contains_key(name)
            && let Some(tool) = self.modules.tool(name).or_else(|| self.unloaded(name))
        {
            tools.insert(name.to_owned(), Entry { tool, calls: 0 });
        }
        let entry = tools.get_mut(name).ok_or_else(|| unknown(name))?;
        self.check_length(name, arguments)?;
        let charge = self.queue.admit(id, arguments.len())?;
        check_calls(&entry.tool, entry.calls)?;
        if !self.counters.add(LimitKind::ToolCalls) {
            return Err(ToolError::new("RuntimeError", "the run has made too many calls"));
        }
        entry.calls += 1;
        let tool = entry.tool.clone();
        drop(tools);
        self.queue.push(Call { id, tool, arguments: arguments.to_vec(), charge });
        Ok(())
    }

    /// Returns what stands for a tool of a module that is not loaded yet.
    fn unloaded(&self, name: &str) -> Option<Tool> {
        self.modules.may_load(name).then(|| Tool::unloaded(name))
    }

    /// Returns the tool of a call that starts. Loads its module first if it was not loaded when the
    /// call was made.
    pub(super) async fn loaded(&self, tool: Tool) -> Result<Tool, ToolError> {
        if tool.role != Role::Unloaded {
            return Ok(tool);
        }
        let name = &*tool.spec.name;
        let loaded = self.modules.load(name).await;
        let loaded = loaded.and_then(|loaded| loaded.ok_or_else(|| unknown(name)));
        let mut tools = lock(&self.tools);
        match (&loaded, tools.get_mut(name)) {
            (Ok(loaded), Some(entry)) => {
                entry.tool = loaded.clone();
                check_calls(&entry.tool, entry.calls.saturating_sub(1))?;
            }
            // A guest may try any number of names.
            _ => _ = tools.remove(name),
        }
        drop(tools);
        loaded
    }

    /// Returns `true` if this is no tool, but a question of the guest's glue.
    pub(crate) fn is_question(&self, name: &str) -> bool {
        self.modules.question(name).is_some()
    }

    /// Returns whether a call of the tool may be made again after its answer was lost.
    pub(crate) fn may_repeat(&self, name: &str) -> CallAgain {
        if let Some(entry) = lock(&self.tools).get(name) {
            return entry.tool.again;
        }
        match self.modules.tool(name) {
            Some(tool) => tool.again,
            None if self.modules.may_load(name) => CallAgain::Never,
            // What is neither a tool nor a question is refused.
            None => CallAgain::Always,
        }
    }

    /// Has `on_begin` be told of calls of deferred tools that begin.
    pub(crate) fn tell_of_begins(&self, on_begin: OnBegin) {
        // A host has one journal.
        let _ = self.on_begin.set(on_begin);
    }

    /// Notes that the call of a deferred tool begins.
    pub(super) fn note_begin(&self, call: u32) -> Result<(), String> {
        self.on_begin.get().map_or(Ok(()), |on_begin| on_begin(call))
    }

    /// Counts a call that was made before, in a session that is replayed.
    pub(crate) fn count_again(&self, id: u32, name: &str) {
        self.queue.pass(id);
        if self.modules.question(name).is_some() {
            return;
        }
        self.counters.add(LimitKind::ToolCalls);
        let mut tools = lock(&self.tools);
        if let Some(tool) = self.modules.tool(name).filter(|_| !tools.contains_key(name)) {
            tools.insert(name.to_owned(), Entry { tool, calls: 0 });
        }
        if let Some(entry) = tools.get_mut(name) {
            entry.calls += 1;
        }
    }

    /// Decodes the arguments of a call that is about to start. If they are invalid, the call is not
    /// counted.
    pub(super) fn prepare(
        &self,
        tool: &Tool,
        arguments: &[u8],
        permit: &CallPermit,
    ) -> Result<Value, ToolError> {
        let spec = tool.spec();
        let charge = |needed| permit.charge(needed);
        let bound = self.decode(&spec.name, arguments, charge).and_then(|value| bind(spec, value));
        if tool.role == Role::Question {
            return bound;
        }
        let bound = bound.and_then(|value| {
            self.audit.check().map(|()| value).map_err(|reason| {
                let message = format!("{}() was not called: {reason}", spec.name);
                ToolError::new("PermissionError", message)
            })
        });
        let reason = bound.as_ref().err().map_or_else(|| "a tool".to_owned(), ToString::to_string);
        self.audit.tell(bound.is_ok(), reason, || Access::Tool { name: shown(&spec.name) });
        if bound.is_err() {
            self.counters.remove(LimitKind::ToolCalls);
            if let Some(entry) = lock(&self.tools).get_mut(&spec.name) {
                entry.calls = entry.calls.saturating_sub(1);
            }
        }
        bound
    }

    /// Cancels a call that nobody waits for any more.
    pub(crate) fn cancel(&self, id: u32) {
        self.queue.cancel(id);
    }

    /// Accepts a submission. The first one of a run counts.
    pub(crate) fn submit(&self, form: u32, fields: &[u8]) -> Result<(), ToolError> {
        self.check_running()?;
        let form = usize::try_from(form).unwrap_or(usize::MAX);
        let spec = lock(&self.submit).get(form).cloned();
        let spec = spec.ok_or_else(|| ToolError::new("NameError", "there is nothing to submit"))?;
        let fields = bind(&spec, self.decode(&spec.name, fields, |_| Ok(()))?)?;
        lock(&self.submission).get_or_insert(fields);
        Ok(())
    }

    /// Tasks that a run has left behind continue whenever the guest runs, for example while its
    /// variables are read. They may use the host only during a run.
    fn check_running(&self) -> Result<(), ToolError> {
        let refused = || ToolError::new("RuntimeError", "tools can only be called during a run");
        self.running.load(Ordering::Acquire).then_some(()).ok_or_else(refused)
    }

    fn check_length(&self, name: &str, arguments: &[u8]) -> Result<(), ToolError> {
        let (needed, limit) = (arguments.len() as u64, self.max_value_bytes);
        if needed <= limit {
            return Ok(());
        }
        let message =
            format!("the arguments of {name}() have {needed} bytes, the limit is {limit} bytes");
        Err(ToolError::new("ValueError", message))
    }

    /// Decodes arguments, after charging the memory that they need.
    fn decode(
        &self,
        name: &str,
        arguments: &[u8],
        charge: impl FnOnce(u64) -> Result<(), ToolError>,
    ) -> Result<Value, ToolError> {
        self.check_length(name, arguments)?;
        let refuse = |error: DecodeError| match error {
            DecodeError::Memory { needed, limit } => ToolError::new(
                "ValueError",
                format!(
                    "the arguments of {name}() take {needed} bytes of the host's memory, the limit \
                     is {limit} bytes"
                ),
            ),
            error => ToolError::new(
                "TypeError",
                format!("the arguments of {name}() cannot be read: {error}"),
            ),
        };
        charge(Reader::new(arguments).skip().map_err(refuse)?.min(self.max_value_bytes))?;
        marshal::decode_within(arguments, self.max_value_bytes).map_err(refuse)
    }
}
