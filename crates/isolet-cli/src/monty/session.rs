//! A session of the client: an interpreter with the guest's half in it.

use std::time::Duration;

use isolet::internals;
use isolet::{Cell, Engine, Error, Param, Sandbox, Session, Tool, ToolError, ToolSpec, Value};
use tokio::sync::{mpsc, oneshot};

use super::asks::{self, Ask};
use super::report::Report;
use super::settings::Settings;

/// The guest's half, in the order in which its modules are made. Tracebacks omit frames whose file
/// name begins with `<isolet>`.
const MODULES: [(&str, &str); 6] = [
    ("_monty_returns", internals::RETURNS),
    ("_monty_failures", internals::FAILURES),
    ("_monty_exceptions", include_str!("guest/exceptions.py")),
    ("_monty_values", include_str!("guest/values.py")),
    ("_monty_session", include_str!("guest/session.py")),
    ("_monty_files", include_str!("guest/files.py")),
];

/// Makes the modules of the guest's half.
const SETUP: &str = include_str!("guest/setup.py");
const SETUP_NAME: &str = "<isolet>/monty";

/// The tool that the guest's half asks with.
const ASK: &str = "_monty_ask";
const QUESTION: &str = "question";

/// A session of the client.
pub(super) struct Held {
    pub(super) session: Session,
    pub(super) asks: mpsc::UnboundedReceiver<Ask>,
    pub(super) report: Report,
    pub(super) feed_limit: Option<Duration>,
    pub(super) turn_limit: Option<Duration>,
    pub(super) print_interval_ms: Option<u32>,
    /// The number of calls so far.
    pub(super) calls: u32,
    /// Why the session has ended, if it has.
    pub(super) ended: Option<String>,
}

impl Held {
    /// Starts a session with these settings.
    pub(super) async fn start(engine: &Engine, settings: Settings) -> Result<Self, Error> {
        let (sender, asks) = mpsc::unbounded_channel();
        let spec = ToolSpec::new(ASK).param(Param::new(QUESTION));
        let ask = Tool::from_handler(spec, move |arguments, _| ask(sender.clone(), arguments));
        let sandbox = Sandbox::builder(engine)
            .limits(settings.limits)
            .permissions(settings.permissions)
            .tool(ask)
            .build()?;
        let mut session = sandbox.session().await?;
        let modules = MODULES.map(|(name, source)| Value::List(vec![name.into(), source.into()]));
        let variables =
            [("_monty_modules", Value::List(modules.into())), ("_monty_policy", settings.policy)];
        let setup = Cell::new(SETUP).name(SETUP_NAME).inputs(variables);
        session.run(setup).await?.into_result()?;
        Ok(Self {
            session,
            asks,
            report: Report::new(settings.wanted),
            feed_limit: settings.feed_limit,
            turn_limit: settings.turn_limit,
            print_interval_ms: settings.print_interval_ms,
            calls: 0,
            ended: None,
        })
    }
}

/// Passes a question on and waits for its answer.
async fn ask(asks: mpsc::UnboundedSender<Ask>, arguments: Value) -> Result<Value, ToolError> {
    let wrong = |reason: String| ToolError::new("ValueError", reason);
    let gone = || ToolError::new("RuntimeError", "the client has gone");
    let Value::Dict(arguments) = arguments else { return Err(gone()) };
    let question = arguments.into_iter().next().map(|(_, question)| question).ok_or_else(gone)?;
    let event = asks::read(question).map_err(wrong)?;
    let (answer, answered) = oneshot::channel();
    // Earlier output must precede the question: when both are ready, the feed takes output first.
    tokio::task::yield_now().await;
    asks.send(Ask { event, answer }).map_err(|_| gone())?;
    answered.await.map_err(|_| gone())
}
