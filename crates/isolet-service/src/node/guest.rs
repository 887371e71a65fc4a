//! Python code of the node that runs in a session, for operations that the library has no command
//! for.
//!
//! It leaves no variables behind. It runs beside the client's code, so its answers are untrusted
//! data of the guest.

use isolet::Value;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{Node, Refusal, SessionLease};
use crate::core::{Exception, Execution, Run, RunOptions, Status};

/// Python source of the functions.
const SOURCE: &str = include_str!("guest.py");

/// Calls one of the functions. All arguments are passed as values, never as source.
const CALL: &str = "(lambda main: (lambda space, call: (exec(call['source'], space), \
    space[call['function']](*((main,) if call['has_main'] else ()), *call['arguments']))[1])\
    ({'__name__': '_isolet_node'}, main.pop('_isolet_call')))(globals())";

/// The file name in tracebacks.
const NAME: &str = "<isolet>";

/// An exception of the guest: its type and its message.
#[derive(Debug, PartialEq, Eq)]
pub struct Raised {
    pub type_name: String,
    pub message: String,
}

impl Raised {
    fn internal(message: String) -> Self {
        Self { type_name: "RuntimeError".to_owned(), message }
    }
}

/// An entry of the guest's file system, as the guest describes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    pub name: String,
    pub kind: EntryKind,
    pub path: String,
    pub size: i64,
    pub mode: i64,
    pub permissions: String,
    /// In seconds since 1970.
    pub modified: f64,
    /// The target of a symbolic link.
    pub target: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryKind {
    File,
    Dir,
    Link,
}

/// A function of [`SOURCE`].
#[derive(Clone, Copy)]
pub(crate) struct Function {
    name: &'static str,
    /// Set if its first argument is the variables of the session.
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
pub(crate) const ENTER: Function = function("enter", true);
pub(crate) const FORGET: Function = function("forget", true);
pub(crate) const SET_ENVIRON: Function = function("set_environ", true);

impl Node {
    /// Describes an entry of the guest's file system.
    pub async fn look(&self, session: &SessionLease, path: &str) -> Called<Entry> {
        self.call_in_turn(session, LOOK, vec![path.into()]).await
    }

    /// Lists a directory, down to this depth.
    pub async fn entries(
        &self,
        session: &SessionLease,
        path: &str,
        depth: u32,
    ) -> Called<Vec<Entry>> {
        self.call_in_turn(session, ENTRIES, vec![path.into(), i64::from(depth).into()]).await
    }

    /// Creates a directory and its parents, unless it exists.
    pub async fn make_directory(&self, session: &SessionLease, path: &str) -> Called<Entry> {
        self.call_in_turn(session, MAKE_DIRECTORY, vec![path.into()]).await
    }

    /// Moves an entry.
    pub async fn move_entry(&self, session: &SessionLease, path: &str, to: &str) -> Called<Entry> {
        self.call_in_turn(session, MOVE, vec![path.into(), to.into()]).await
    }

    /// Removes an entry with its contents.
    pub async fn remove_entry(&self, session: &SessionLease, path: &str) -> Called<()> {
        self.call_in_turn(session, REMOVE, vec![path.into()]).await
    }

    async fn call_in_turn<T: DeserializeOwned>(
        &self,
        session: &SessionLease,
        function: Function,
        arguments: Vec<Value>,
    ) -> Called<T> {
        let _turn = self.hold(session).await?;
        self.call(session, function, arguments).await
    }

    /// Calls a function in a held session.
    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        session: &SessionLease,
        function: Function,
        arguments: Vec<Value>,
    ) -> Called<T> {
        let call = Value::dict([
            ("source", Value::from(SOURCE)),
            ("function", function.name.into()),
            ("has_main", function.has_main.into()),
            ("arguments", Value::List(arguments)),
        ]);
        let options = RunOptions { name: Some(NAME.to_owned()), ..RunOptions::default() };
        let inputs = vec![("_isolet_call".to_owned(), call)];
        let run = Run { code: CALL.to_owned(), inputs, options, input: None };
        let execution = self.run(session, run).await?;
        Ok(returned(execution).and_then(|value| {
            isolet::from_value(value).map_err(|error| Raised::internal(error.to_string()))
        }))
    }
}

/// Returns the value that a call has returned.
fn returned(execution: Execution) -> Result<Value, Raised> {
    let Execution { status, exception, termination, value, value_error, .. } = execution;
    if let Some(Exception { type_name, message, .. }) = exception {
        return Err(Raised { type_name, message });
    }
    match (status, termination, value_error) {
        (Status::Completed, _, None) => Ok(value.unwrap_or_default().0),
        (Status::Completed, _, Some(reason)) => Err(Raised::internal(reason)),
        (_, Some(termination), _) => Err(Raised::internal(termination.message)),
        _ => Err(Raised::internal(format!("the call has {}", status.name()))),
    }
}

/// The value that a call has returned, or the exception that it has raised.
pub(super) type Called<T> = Result<Result<T, Raised>, Refusal>;
