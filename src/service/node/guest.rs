//! Python of the node's own that a session runs, for what the library has no command for.
//!
//! It leaves no variable behind. It runs where the client's code does, so its answers are data of
//! the guest.

use isolet::Value;

use super::{NewRun, Node, Refusal, SessionLease};

/// Functions.
const SOURCE: &str = include_str!("guest.py");

/// Calls one of them. Everything comes as values and none of it as a part of the source.
const CALL: &str = "(lambda main: (lambda space, call: (exec(call['source'], space), \
    space[call['function']](*((main,) if call['has_main'] else ()), *call['arguments']))[1])\
    ({'__name__': '_isolet_node'}, main.pop('_isolet_call')))(globals())";

/// The file name in tracebacks.
const NAME: &str = "<isolet>";

/// An exception of the guest: its type and its message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Raised {
    pub(crate) type_name: String,
    pub(crate) message: String,
}

/// A function of the guest's.
#[derive(Clone, Copy)]
pub(super) struct Function {
    name: &'static str,
    /// Whether the variables of the session are its first argument.
    has_main: bool,
}

const fn function(name: &'static str, has_main: bool) -> Function {
    Function { name, has_main }
}

const LOOK: Function = function("look", false);
const ENTRIES: Function = function("entries", false);
const MAKE_DIRECTORY: Function = function("make_directory", false);
const MOVE: Function = function("move", false);
const REMOVE: Function = function("remove", false);
pub(super) const ENTER: Function = function("enter", true);
pub(super) const FORGET: Function = function("forget", true);
pub(super) const SET_ENVIRON: Function = function("set_environ", true);

impl Node {
    /// Returns what is known of an entry of the guest's file system.
    pub(crate) async fn look(&self, session: &SessionLease, path: &str) -> Called {
        self.call_in_turn(session, LOOK, vec![path.into()]).await
    }

    /// Returns the entries of a directory, so many levels deep.
    pub(crate) async fn entries(&self, session: &SessionLease, path: &str, depth: u32) -> Called {
        self.call_in_turn(session, ENTRIES, vec![path.into(), i64::from(depth).into()]).await
    }

    /// Makes a directory and those above it, unless there is one.
    pub(crate) async fn make_directory(&self, session: &SessionLease, path: &str) -> Called {
        self.call_in_turn(session, MAKE_DIRECTORY, vec![path.into()]).await
    }

    /// Moves an entry.
    pub(crate) async fn move_entry(&self, session: &SessionLease, path: &str, to: &str) -> Called {
        self.call_in_turn(session, MOVE, vec![path.into(), to.into()]).await
    }

    /// Removes an entry with all that is in it.
    pub(crate) async fn remove_entry(&self, session: &SessionLease, path: &str) -> Called {
        self.call_in_turn(session, REMOVE, vec![path.into()]).await
    }

    async fn call_in_turn(
        &self,
        session: &SessionLease,
        function: Function,
        arguments: Vec<Value>,
    ) -> Called {
        let _turn = self.hold(session).await?;
        self.call(session, function, arguments).await
    }

    /// Calls a function of the guest's in a session that is held.
    pub(super) async fn call(
        &self,
        session: &SessionLease,
        function: Function,
        arguments: Vec<Value>,
    ) -> Called {
        let call = Value::dict([
            ("source", Value::from(SOURCE)),
            ("function", function.name.into()),
            ("has_main", function.has_main.into()),
            ("arguments", Value::List(arguments)),
        ]);
        let run = NewRun {
            code: CALL.to_owned(),
            inputs: vec![("_isolet_call".to_owned(), call)],
            options: Value::dict([("name", NAME)]),
        };
        let mut execution = self.run(session, run).await?;
        let text = |of: &Value, name: &str| {
            of.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        if let Some(exception) = execution.get("exception") {
            let (type_name, message) = (text(exception, "type"), text(exception, "message"));
            return Ok(Err(Raised { type_name, message }));
        }
        let status = text(&execution, "status");
        let message = match (status.as_str(), execution.get("termination")) {
            ("completed", _) => match text(&execution, "value_error") {
                reason if reason.is_empty() => return Ok(Ok(value(&mut execution))),
                reason => reason,
            },
            (_, Some(termination)) => text(termination, "message"),
            _ => format!("the call has {status}"),
        };
        Ok(Err(Raised { type_name: "RuntimeError".to_owned(), message }))
    }
}

/// What a call has returned, or raised.
pub(crate) type Called = Result<Result<Value, Raised>, Refusal>;

/// Takes the value of an execution.
fn value(execution: &mut Value) -> Value {
    let Value::Dict(fields) = execution else { return Value::None };
    let value = fields.iter_mut().find(|(name, _)| name.as_str() == Some("value"));
    value.map_or(Value::None, |(_, value)| std::mem::replace(value, Value::None))
}
