//! Python of the node's own that a session runs, for what the library has no command for.
//!
//! It leaves no variable behind. It runs where the client's code does, so its answers are data of
//! the guest.

use isolet::Value;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{Node, Refusal, SessionLease};
use crate::core::{Exception, Execution, Run, RunOptions, Status};

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
    /// Where a link leads to.
    pub target: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryKind {
    File,
    Dir,
    Link,
}

/// A function of the guest's.
#[derive(Clone, Copy)]
pub(crate) struct Function {
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
pub(crate) const ENTER: Function = function("enter", true);
pub(crate) const FORGET: Function = function("forget", true);
pub(crate) const SET_ENVIRON: Function = function("set_environ", true);

impl Node {
    /// Returns what is known of an entry of the guest's file system.
    pub async fn look(&self, session: &SessionLease, path: &str) -> Called<Entry> {
        self.call_in_turn(session, LOOK, vec![path.into()]).await
    }

    /// Returns the entries of a directory, so many levels deep.
    pub async fn entries(
        &self,
        session: &SessionLease,
        path: &str,
        depth: u32,
    ) -> Called<Vec<Entry>> {
        self.call_in_turn(session, ENTRIES, vec![path.into(), i64::from(depth).into()]).await
    }

    /// Makes a directory and those above it, unless there is one.
    pub async fn make_directory(&self, session: &SessionLease, path: &str) -> Called<Entry> {
        self.call_in_turn(session, MAKE_DIRECTORY, vec![path.into()]).await
    }

    /// Moves an entry.
    pub async fn move_entry(&self, session: &SessionLease, path: &str, to: &str) -> Called<Entry> {
        self.call_in_turn(session, MOVE, vec![path.into(), to.into()]).await
    }

    /// Removes an entry with all that is in it.
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

    /// Calls a function of the guest's in a session that is held.
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
        let run = Run { code: CALL.to_owned(), inputs, options };
        let execution = self.run(session, run).await?;
        Ok(returned(execution).and_then(|value| {
            isolet::from_value(value).map_err(|error| Raised::internal(error.to_string()))
        }))
    }
}

/// Returns what a call has returned.
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

/// What a call has returned, or raised.
pub(super) type Called<T> = Result<Result<T, Raised>, Refusal>;
