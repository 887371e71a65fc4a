//! One isolate: its boot, and the calls into it.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use deno_core::{JsRuntime, RuntimeOptions, v8};

use super::budget::Exceeded;
use super::control::IsolateControl;
use super::extension::{HostHandle, extension};
use super::heap::Memory;
use super::image::Image;
use super::loader::{self, NoModules, Pyodide};
use super::module_cache::ModuleCache;
use super::native_code::{Pending, SharedModules};
use super::ops::memory::WasmMemory;
use super::ops::wasm::refuse_compilation;
use super::order::event_log::EventLog;
use super::pending::PendingCalls;
use super::platform;
use super::relay::{Relay, Settled};
use super::restore::PagesAside;
use super::state::{EntryPoints, SessionClock, State};
use super::stoppable::StoppableHost;
use super::{Confine, Files};
use crate::data::execution::MemoryKind;
use crate::data::tool::ToolError;
use crate::protocol::codec::{self, CommandFrame};
use crate::protocol::happened::Event;
use crate::protocol::{Inbox, Message, Reply, ReplySink};
use crate::support::spin::Habit;

/// The inputs of an isolate.
pub(crate) struct Parts {
    pub(crate) files: Files,
    pub(crate) modules: SharedModules,
    pub(crate) host: HostHandle,
    pub(crate) inbox: Box<dyn Inbox>,
    pub(crate) max_memory_bytes: u64,
    pub(crate) max_report_bytes: u64,
    /// Whether it looks for what it waits for before it sleeps.
    pub(crate) spins: bool,
    /// The modules to import, if the isolate is booted for its image.
    pub(crate) preload: Vec<String>,
    /// Confines the process on the way, if it is confined before the isolate has booted.
    pub(crate) confine: Option<Confine>,
    /// The pages of the image, in the template of other processes.
    pub(crate) pages_aside: Option<PagesAside>,
}

pub(super) struct Isolate {
    pub(super) runtime: JsRuntime,
    pub(super) pyodide: Pyodide,
    pub(super) entry_points: EntryPoints,
    pub(super) control: Arc<IsolateControl>,
    /// How long it spins for the next message.
    habit: Habit,
}

/// How a call into JavaScript ended.
pub(super) enum Called {
    Returned,
    Stopped,
    /// The interpreter has ended outside this call, so that nothing will settle the call.
    Ended,
    Threw(String),
}

/// The state of a call into JavaScript when it returns.
enum Entered {
    Returned,
    Pending(v8::Global<v8::Value>),
    Threw(String),
}

impl Isolate {
    pub(super) async fn boot(
        parts: Parts,
        image: Option<Image>,
        control: Arc<IsolateControl>,
    ) -> Result<Self, String> {
        let make_image = image.is_none();
        let stored = image.as_ref().and_then(Image::native_code);
        let module =
            Pending::start(Arc::clone(&parts.modules), parts.files.asm_wasm.clone(), stored);
        let kept = image.as_ref().map(Image::module_cache).unwrap_or_default();
        let memory = Memory::new(parts.max_memory_bytes);
        let habit = Habit::new(parts.spins);
        let log = Arc::<EventLog>::default();
        let state = State {
            host: Arc::new(StoppableHost {
                host: parts.host,
                control: Arc::clone(&control),
                log: Arc::clone(&log),
            }),
            log,
            control: Arc::clone(&control),
            files: parts.files.clone(),
            module: Some(module),
            image: image.clone(),
            saved: None,
            preload: parts.preload,
            confine: parts.confine,
            is_confined: false,
            pages_aside: parts.pages_aside,
            libraries: Vec::new(),
            modules: parts.modules,
            booted: false,
            entry_points: None,
            frame: CommandFrame::default(),
            report: None,
            peeks: false,
            max_report_bytes: parts.max_report_bytes,
            spinning: habit.limit(),
            exited: None,
            order: None,
            alarm: None,
            died: None,
            calls: PendingCalls::default(),
            inbox: parts.inbox,
            held: VecDeque::new(),
            memory: WasmMemory::new(Arc::clone(&memory.budget)),
            clock: SessionClock::default(),
            writer: None,
            reader: None,
        };
        let mut runtime = JsRuntime::try_new(RuntimeOptions {
            extensions: vec![extension(state)],
            module_loader: Some(Rc::new(NoModules)),
            create_params: Some(memory.create_params()),
            extension_code_cache: Some(Rc::new(ModuleCache::read(kept))),
            ..Default::default()
        })
        .map_err(|error| error.to_string())?;
        loader::refuse_imports(runtime.v8_isolate());
        refuse_compilation(runtime.v8_isolate());
        memory.enforce(&mut runtime, Arc::clone(&control));
        control.attach(runtime.v8_isolate().thread_safe_handle());
        let entry_points = runtime
            .op_state()
            .borrow()
            .borrow::<State>()
            .entry_points
            .clone()
            .ok_or("the engine's JavaScript did not load")?;
        let cache = image.as_ref().and_then(Image::script_cache);
        let pyodide = loader::load_pyodide(&mut runtime, &parts.files.asm_mjs, cache.as_deref())?;
        let create_module = pyodide.create_module.clone();
        let mut isolate = Self { runtime, pyodide, entry_points, control, habit };
        let make_image = {
            deno_core::scope!(scope, isolate.runtime);
            let flag: v8::Local<v8::Value> = v8::Boolean::new(scope, make_image).into();
            v8::Global::new(scope, flag)
        };
        let start = isolate.entry_points.start.clone();
        let nowhere: ReplySink = Box::new(|_| true);
        let arguments = [create_module, make_image];
        let failure = match isolate.call(&start, &arguments, &nowhere).await {
            Called::Returned => {
                isolate.state(|state| state.booted = true);
                return Ok(isolate);
            }
            Called::Stopped | Called::Ended => {
                "the isolate was stopped while it started".to_owned()
            }
            Called::Threw(error) => {
                let refusal = isolate.state(|state| state.memory.last_refusal());
                let refusal = refusal.map(|refusal| format!(" ({refusal})")).unwrap_or_default();
                format!("the interpreter did not start: {}{refusal}", summary(&error))
            }
        };
        if isolate.state(|state| state.is_confined) {
            // Cleaning up would make system calls that kill a worker.
            std::mem::forget(isolate);
        }
        Err(failure)
    }

    /// Prepares the inbox for the event loop of this thread.
    pub(super) fn attach_inbox(&self) -> std::io::Result<()> {
        self.state(|state| state.inbox.attach())
    }

    /// Waits for a message. Returns `None` when the session is gone or has stopped this isolate.
    pub(super) async fn next_message(&mut self) -> Option<Message> {
        let started = Instant::now();
        loop {
            if self.control.is_stopped() {
                return None;
            }
            // The next message often follows soon after the last.
            let spinning = self.habit.limit();
            if !spinning.is_zero() {
                self.state(|state| state.inbox.wait(spinning, spinning));
            }
            tokio::select! {
                message = self.message() => {
                    self.habit.learn(started.elapsed());
                    return message;
                }
                () = self.control.woken() => {}
            }
        }
    }

    /// Waits for a message. Returns `None` when the session is gone.
    pub(super) async fn message(&self) -> Option<Message> {
        std::future::poll_fn(|context| self.state(|state| state.poll_message(context))).await
    }

    /// Becomes the saved session that the host has, and carries out the command of this frame.
    pub(super) async fn restore(&mut self, frame: Vec<u8>, replies: &ReplySink) -> Reply {
        let restore = self.entry_points.restore.clone();
        match self.call(&restore, &[], replies).await {
            Called::Returned => self.carry_out(frame, replies).await,
            Called::Stopped => self.stopped(),
            Called::Threw(error) => Reply::Failed(summary(&error)),
            Called::Ended => Reply::Failed("it ended while it was restored".to_owned()),
        }
    }

    pub(super) async fn carry_out(&mut self, frame: Vec<u8>, replies: &ReplySink) -> Reply {
        let length = self.offer(frame);
        self.state(|state| {
            state.report = None;
            if let Some(recording) = state.recording() {
                recording.begin();
            }
        });
        let handle = self.entry_points.handle.clone();
        let called = self.call(&handle, &[length], replies).await;
        self.state(|state| {
            // The guest may have had no memory to take it.
            state.frame = CommandFrame::default();
            state.log.tell(&*state.host);
        });
        match called {
            Called::Stopped => self.stopped(),
            Called::Threw(error) => Reply::Failed(summary(&error)),
            Called::Ended => match self.state(|state| (state.died.take(), state.exited)) {
                (Some(reason), _) => Reply::Failed(summary(&reason)),
                (None, status) => Reply::Exited(status.unwrap_or_default()),
            },
            Called::Returned => match self.state(|state| (state.report.take(), state.exited)) {
                (_, Some(status)) => Reply::Exited(status),
                (Some(Ok(report)), None) => match self.measure() {
                    Ok(memory_bytes) => Reply::Done { memory_bytes, report },
                    Err(error) => Reply::Failed(error.to_string()),
                },
                (Some(Err(reason)), None) => {
                    Reply::Failed(format!("its report cannot be read: {reason}"))
                }
                (None, None) => Reply::Failed("it ended the run without a report".to_owned()),
            },
        }
    }

    /// Returns the reply of an isolate that was stopped.
    fn stopped(&mut self) -> Reply {
        let Some((limit, observed)) = self.control.exhausted() else {
            return Reply::Terminated;
        };
        let heap = self.runtime.v8_isolate().get_heap_statistics().total_heap_size() as u64;
        Reply::OutOfMemory { kind: MemoryKind::Heap, limit, observed: observed.max(heap) }
    }

    /// Returns the session's peak memory, in bytes. Fails if the interpreter's memory has exceeded
    /// the budget without asking.
    fn measure(&mut self) -> Result<u64, Exceeded> {
        let state = self.runtime.op_state();
        deno_core::scope!(scope, self.runtime);
        state.borrow_mut().borrow_mut::<State>().memory.measure(scope)
    }

    /// Provides a command's frame for the guest to take. Returns the length of the command without
    /// its long texts as a JavaScript value.
    fn offer(&mut self, frame: Vec<u8>) -> v8::Global<v8::Value> {
        let frame = CommandFrame::new(frame);
        let length = {
            deno_core::scope!(scope, self.runtime);
            let length: v8::Local<v8::Value> =
                v8::Number::new(scope, f64::from(frame.length())).into();
            v8::Global::new(scope, length)
        };
        self.state(|state| state.frame = frame);
        length
    }

    /// Handles a message that may arrive at any time.
    pub(super) fn serve(&mut self, message: Message, replies: &ReplySink) {
        match message {
            Message::Answer(call, answer) => self.state(|state| state.calls.answer(call, answer)),
            Message::Peek(number, frame) if frame.is_empty() => {
                // As below.
                let _ = replies(Reply::Peeked { number, refusal: None, report: Vec::new() });
            }
            Message::Peek(number, frame) => {
                if self.is_replayed() {
                    let refusal = Some("the session is being replayed".to_owned());
                    let _ = replies(Reply::Peeked { number, refusal, report: Vec::new() });
                    return;
                }
                self.state(|state| {
                    if let Some(recording) = state.recording() {
                        recording.push(&Event::Peek(frame.clone()));
                    }
                });
                let (refusal, report) = match self.peek(frame) {
                    Some(Ok(report)) => (None, report),
                    Some(Err(reason)) => (Some(reason), Vec::new()),
                    None => (None, Vec::new()),
                };
                // Fails only if the session is gone, and then nobody waits.
                let _ = replies(Reply::Peeked { number, refusal, report });
            }
            // A session sends only one command at a time, and this one arrived during another.
            Message::Command(_) | Message::Fork | Message::Restore(_) => {}
        }
    }

    /// Returns `true` while what happens in a recorded session was recorded before.
    fn is_replayed(&self) -> bool {
        self.state(|state| state.recording().is_some_and(|recording| recording.is_replayed()))
    }

    /// Makes this isolate independent of the one that it was copied from.
    pub(super) fn renew(&mut self) {
        let reason = "the session was forked while this call was under way, and its answer goes to \
                      the session that made it";
        let answer = codec::encode_answer(Err(ToolError::new("RuntimeError", reason)), u64::MAX);
        self.state(|state| {
            state.held.clear();
            state.calls.answer_all(&answer.into());
        });
    }

    /// Makes the guest run a command while it waits for something else. Returns its report, if it
    /// gave one.
    pub(super) fn peek(&mut self, frame: Vec<u8>) -> Option<Result<Vec<u8>, String>> {
        let length = self.offer(frame);
        let outer = self.state(|state| {
            state.peeks = true;
            state.report.take()
        });
        let peek = self.entry_points.peek.clone();
        // The guest's report counts, not the result of the call.
        drop(self.runtime.call_with_args(&peek, &[length]));
        self.state(|state| {
            state.frame = CommandFrame::default();
            state.peeks = false;
            std::mem::replace(&mut state.report, outer)
        })
    }

    /// Calls an async function of ours and serves the event loop until it is done or the isolate is
    /// stopped.
    async fn call(
        &mut self,
        function: &v8::Global<v8::Function>,
        arguments: &[v8::Global<v8::Value>],
        replies: &ReplySink,
    ) -> Called {
        let promise = match self.enter(function, arguments) {
            _ if self.control.is_stopped() => return Called::Stopped,
            Entered::Returned => return Called::Returned,
            Entered::Pending(promise) => promise,
            Entered::Threw(error) => return Called::Threw(error),
        };
        if self.state(|state| state.order.is_some()) {
            return self.call_in_order(promise, replies).await;
        }
        let mut call = Box::pin(self.runtime.resolve(promise));
        let relay = Relay::new();
        loop {
            if self.control.is_stopped() {
                return Called::Stopped;
            }
            if self.state(|state| state.died.is_some() || state.exited.is_some()) {
                return Called::Ended;
            }
            let state = self.runtime.op_state();
            let message = std::future::poll_fn(|context| {
                let mut state = state.borrow_mut();
                state.borrow_mut::<State>().poll_message(context)
            });
            tokio::select! {
                biased;
                result = relay.settle(&mut self.runtime, &mut call) => match result {
                    _ if self.control.is_stopped() => return Called::Stopped,
                    Ok(Settled::Done) => return Called::Returned,
                    Ok(Settled::Stalled) => {
                        let stalled = self.entry_points.stalled.clone();
                        // As for an interrupt.
                        drop(self.runtime.call(&stalled));
                    }
                    Err(error) => return Called::Threw(error.to_string()),
                },
                () = self.control.woken() => self.interrupt(),
                Some(message) = message => {
                    self.serve(message, replies);
                    while let Some(message) = self.state(State::try_message) {
                        self.serve(message, replies);
                    }
                }
            }
        }
    }

    /// Calls an async function of ours. If it does not wait for anything, it is done when this
    /// returns, without a turn of the event loop.
    fn enter(
        &mut self,
        function: &v8::Global<v8::Function>,
        arguments: &[v8::Global<v8::Value>],
    ) -> Entered {
        // The deadline applies here, because deferred tasks may be the guest's. When V8 defers some
        // depends on more than the program: those of a deterministic session do not run.
        if self.state(|state| state.order.is_none()) {
            platform::run_tasks(self.runtime.v8_isolate());
        }
        deno_core::scope!(scope, self.runtime);
        v8::tc_scope!(let scope, scope);
        let arguments: Vec<_> =
            arguments.iter().map(|argument| v8::Local::new(scope, argument)).collect();
        let this = v8::undefined(scope).into();
        let Some(result) = function.open(scope).call(scope, this, &arguments) else {
            let error = scope.exception().map(|error| error.to_rust_string_lossy(scope));
            return Entered::Threw(error.unwrap_or_default());
        };
        scope.perform_microtask_checkpoint();
        match v8::Local::<v8::Promise>::try_from(result) {
            Ok(promise) if promise.state() != v8::PromiseState::Fulfilled => {
                Entered::Pending(v8::Global::new(scope, result))
            }
            _ => Entered::Returned,
        }
    }

    /// Collects V8's garbage and returns free memory to the system.
    pub(super) fn collect_garbage(&mut self) {
        self.runtime.v8_isolate().low_memory_notification();
    }

    pub(super) fn state<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(self.runtime.op_state().borrow_mut().borrow_mut::<State>())
    }
}

/// Returns an error's message without the stack trace that follows it or, for Python, precedes it.
fn summary(error: &str) -> String {
    let is_traceback = error.contains("Traceback (most recent call last)");
    let lines = error.lines().filter(|line| !line.trim().is_empty());
    // JavaScript's stack trace may follow.
    let mut lines = lines.take_while(|line| !line.starts_with("    at "));
    let line = if is_traceback { lines.last() } else { lines.next() };
    line.unwrap_or_default().to_owned()
}
