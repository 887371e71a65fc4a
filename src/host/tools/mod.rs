//! Tools: host functions that the guest's Python calls as if they were its own.

pub(crate) mod bind;
mod calls;
mod context;
mod host;
mod module;
mod modules;
pub(crate) mod no_session;
mod queue;
mod runtime;
mod session_handle;
pub mod testing;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) use calls::Calls;
pub use context::ToolContext;
pub(crate) use host::ToolHost;
pub(crate) use module::ModuleSet;
pub use module::ToolModule;
pub(crate) use modules::Modules;
pub(crate) use session_handle::SessionAccess;
pub use session_handle::SessionHandle;

use crate::data::error::{Error, ErrorKind};
use crate::data::shown::shown;
use crate::data::tool::spec::Style;
use crate::data::tool::{ToolError, ToolSpec, TypeHint, schema};
use crate::data::value::{Value, from_value, to_value};
use crate::host::journal::CallAgain;

type Handler =
    Arc<dyn Fn(Value, ToolContext) -> BoxFuture<'static, Result<Value, ToolError>> + Send + Sync>;

/// A host function that the guest can call by name.
///
/// In Python it is a plain function with a real signature: called by position or by keyword, from
/// anywhere, it returns when the tool has finished. `await search.aio(...)` and `asyncio.gather`
/// run calls concurrently, and `search.map([...])` does so for a list.
///
/// ```
/// use isolet::{Tool, ToolError};
/// use schemars::JsonSchema;
/// use serde::Deserialize;
///
/// /// Adds two numbers.
/// #[derive(Deserialize, JsonSchema)]
/// struct Add {
///     a: i64,
///     #[serde(default)]
///     b: i64,
/// }
///
/// let add = Tool::from_fn("add", |args: Add, _cx| async move {
///     args.a.checked_add(args.b).ok_or_else(|| ToolError::new("OverflowError", "too large"))
/// });
/// assert_eq!(add.spec().to_string(), "add(a: int, b: int = 0)");
/// ```
///
/// The future of the run that called an async tool polls the tool's future, in the caller's
/// runtime. Tokio's timers and sockets work even if the caller has no runtime. A blocking function
/// needs one of the blocking constructors, which run it on a separate thread.
#[derive(Clone)]
#[must_use]
pub struct Tool {
    spec: Arc<ToolSpec>,
    handler: Handler,
    timeout: Option<Duration>,
    max_calls: Option<u64>,
    again: CallAgain,
    role: Role,
    /// Why a sandbox rejects this tool.
    fault: Option<String>,
}

/// What a tool is to the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Function,
    /// It answers a question of the guest's glue, and is no call of the guest's code.
    Question,
    /// It stands for a function of a module that is not loaded yet.
    Unloaded,
}

impl Tool {
    /// Makes a tool from an async function whose arguments are the fields of a struct.
    ///
    /// Names, types, defaults and documentation come from `A`: the doc comment of the struct is the
    /// docstring, and those of its fields describe the parameters. Fields without a default come
    /// first. If the arguments of a call are not an `A`, the call raises `TypeError` or
    /// `ValueError` in the guest, and the function does not run.
    ///
    /// If `A` is neither a struct with named fields nor `()`, building a sandbox with the tool
    /// fails.
    ///
    /// `JsonSchema` is that of schemars 1, and `DeserializeOwned` and `Serialize` are those of
    /// serde 1; the [crate documentation](crate#serde-and-schemars) shows their re-exports.
    pub fn from_fn<A, R, F, Fut>(name: impl Into<String>, function: F) -> Self
    where
        A: DeserializeOwned + JsonSchema,
        R: Serialize,
        F: Fn(A, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
    {
        Self::typed::<A>(
            name.into(),
            Arc::new(move |arguments, cx| {
                let name = cx.tool_name().to_owned();
                let call = arguments_from(&name, arguments).map(|args| function(args, cx));
                Box::pin(async move { result_from(&name, &call?.await?) })
            }),
        )
    }

    /// Makes a tool from a blocking function; otherwise as [`from_fn`](Self::from_fn).
    ///
    /// Each call runs on a separate thread. Nothing waits for a cancelled call, but its thread runs
    /// until the function returns, so check [`ToolContext::is_cancelled`] regularly. Until then the
    /// call counts towards [`Limits::max_concurrent_tools`](crate::Limits::max_concurrent_tools).
    pub fn from_blocking_fn<A, R, F>(name: impl Into<String>, function: F) -> Self
    where
        A: DeserializeOwned + JsonSchema,
        R: Serialize,
        F: Fn(A, ToolContext) -> Result<R, ToolError> + Send + Sync + 'static,
    {
        let function = Arc::new(function);
        Self::typed::<A>(
            name.into(),
            Arc::new(move |arguments, cx| {
                let function = Arc::clone(&function);
                Box::pin(runtime::blocking(cx.permit(), move || {
                    let name = cx.tool_name().to_owned();
                    result_from(&name, &function(arguments_from(&name, arguments)?, cx)?)
                }))
            }),
        )
    }

    /// Makes a tool from a specification and an async function that takes the arguments as a dict.
    pub fn from_handler<F, Fut>(spec: ToolSpec, handler: F) -> Self
    where
        F: Fn(Value, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Value, ToolError>> + Send + 'static,
    {
        Self::new(spec, Arc::new(move |arguments, cx| Box::pin(handler(arguments, cx))), None)
    }

    /// Makes a tool from a specification and a blocking function, as
    /// [`from_blocking_fn`](Self::from_blocking_fn) does.
    pub fn from_blocking_handler<F>(spec: ToolSpec, handler: F) -> Self
    where
        F: Fn(Value, ToolContext) -> Result<Value, ToolError> + Send + Sync + 'static,
    {
        let handler = Arc::new(handler);
        let call: Handler = Arc::new(move |arguments, cx| {
            let handler = Arc::clone(&handler);
            Box::pin(runtime::blocking(cx.permit(), move || handler(arguments, cx)))
        });
        Self::new(spec, call, None)
    }

    fn typed<A: JsonSchema>(name: String, handler: Handler) -> Self {
        let schema = schemars::generate::SchemaSettings::default().into_generator();
        let schema = schema.into_root_schema_for::<A>();
        let mut spec = ToolSpec::new(name);
        let fault = match schema::arguments(schema.as_value()) {
            Ok(arguments) => {
                spec.doc = arguments.doc;
                spec.params = arguments.params;
                None
            }
            Err(reason) => Some(format!(
                "the arguments of the tool `{}` have to be a struct with named fields, {reason}",
                spec.name
            )),
        };
        Self::new(spec, handler, fault)
    }

    fn new(spec: ToolSpec, handler: Handler, fault: Option<String>) -> Self {
        Self {
            spec: Arc::new(spec),
            handler,
            timeout: None,
            max_calls: None,
            again: CallAgain::Never,
            role: Role::Function,
            fault,
        }
    }

    /// Sets the docstring.
    pub fn doc(mut self, text: impl Into<String>) -> Self {
        Arc::make_mut(&mut self.spec).doc = text.into();
        self
    }

    /// Sets the annotation of the result. It is documentation only.
    pub fn returns(mut self, hint: TypeHint) -> Self {
        Arc::make_mut(&mut self.spec).returns = hint;
        self
    }

    /// Makes the guest's function a coroutine function, as
    /// [`ToolSpec::asynchronous`](crate::ToolSpec::asynchronous) does.
    pub fn asynchronous(mut self) -> Self {
        Arc::make_mut(&mut self.spec).style = Style::Async;
        self
    }

    /// Sets the time limit of a call. Past it the call is cancelled and raises `TimeoutError` in
    /// the guest.
    ///
    /// Default: none; only [`Limits::max_host_time`](crate::Limits::max_host_time) ends a call.
    pub fn timeout(mut self, time: Duration) -> Self {
        self.timeout = Some(time);
        self
    }

    /// Sets how many calls of this tool a session may make. One more raises `RuntimeError` in the
    /// guest, and the function does not run.
    ///
    /// Default: no limit.
    pub fn max_calls(mut self, calls: u64) -> Self {
        self.max_calls = Some(calls);
        self
    }

    /// Lets a call be made again that was under way when the process of a recorded session ended:
    /// making it twice does what making it once does.
    ///
    /// The second call has the same [number](ToolContext::call_id), so a tool can recognise it.
    ///
    /// Default: a call is made at most once. If its answer is lost, it raises `CallInterrupted` in
    /// the guest.
    pub fn idempotent(mut self) -> Self {
        self.again = CallAgain::Always;
        self
    }

    /// Says that a call does nothing that must not be done twice before it has called
    /// [`ToolContext::begin`]: it asks a person first, or waits for its turn. A call that had not
    /// begun when the process of a recorded session ended is made again.
    ///
    /// Default: a call begins at once.
    ///
    /// ```
    /// use isolet::{Tool, ToolError, ToolSpec, Value};
    ///
    /// # async fn ask(_: &str) -> bool { true }
    /// let send = Tool::from_handler(ToolSpec::new("send"), |_, cx| async move {
    ///     let pause = cx.pause_clock();
    ///     if !ask("Send it?").await {
    ///         return Err(ToolError::new("PermissionError", "the user said no"));
    ///     }
    ///     drop(pause);
    ///     cx.begin()?;
    ///     // Sends it.
    ///     Ok(Value::None)
    /// });
    /// let send = send.deferred();
    /// # let _ = send;
    /// ```
    pub fn deferred(mut self) -> Self {
        if self.again == CallAgain::Never {
            self.again = CallAgain::UnlessBegun;
        }
        self
    }

    /// Returns the specification: what the guest sees of the tool.
    #[must_use]
    pub fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// Makes a tool that answers a question of the guest's glue.
    fn question<F, Fut>(spec: ToolSpec, answer: F) -> Self
    where
        F: Fn(Value) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Value, ToolError>> + Send + 'static,
    {
        let mut tool = Self::from_handler(spec, move |arguments, _| answer(arguments));
        tool.role = Role::Question;
        tool
    }

    /// Makes what stands for a tool of a module that is not loaded yet.
    fn unloaded(name: &str) -> Self {
        let unknown = unknown(name);
        let mut tool = Self::from_handler(ToolSpec::new(name), move |_, _| {
            std::future::ready(Err(unknown.clone()))
        });
        tool.role = Role::Unloaded;
        tool
    }

    /// Returns the tool with the name that it has in a module.
    fn in_module(mut self, module: &str) -> Self {
        let spec = Arc::make_mut(&mut self.spec);
        spec.name = format!("{module}.{}", spec.name);
        self
    }

    pub(crate) fn shared_spec(&self) -> Arc<ToolSpec> {
        Arc::clone(&self.spec)
    }

    /// Rejects a tool that Python could not define.
    pub(crate) fn validate(&self) -> Result<(), Error> {
        match &self.fault {
            Some(fault) => Err(Error::new(ErrorKind::Config, fault.clone())),
            None => self.spec.validate(),
        }
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool")
            .field("spec", &self.spec)
            .field("timeout", &self.timeout)
            .field("max_calls", &self.max_calls)
            .finish_non_exhaustive()
    }
}

/// Returns the exception for a call of a tool that there is not.
fn unknown(name: &str) -> ToolError {
    ToolError::new("NameError", format!("there is no tool '{}'", shown(name)))
}

fn arguments_from<A: DeserializeOwned>(name: &str, arguments: Value) -> Result<A, ToolError> {
    let nothing = Value::Dict(Vec::new());
    let parsed = if arguments == nothing {
        // `A` is a struct whose fields all have defaults, or `()`.
        from_value(arguments).or_else(|_| from_value(Value::None))
    } else {
        from_value(arguments)
    };
    parsed.map_err(|error| {
        ToolError::new("ValueError", format!("{name}() cannot take these arguments: {error}"))
    })
}

fn result_from<R: Serialize>(name: &str, result: &R) -> Result<Value, ToolError> {
    to_value(result).map_err(|error| {
        ToolError::new("RuntimeError", format!("the result of {name}() is no value: {error}"))
    })
}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/concepts/tools.md")]
struct Documentation;
