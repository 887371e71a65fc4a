//! Decodes a client's messages, which are lists of plain values, into requests for the service.

use std::sync::Arc;

use isolet::{ToolError, Value};
use serde::Deserialize;

use super::PROTOCOL;
use super::client::{RunListener, Stdout};
use isolet_service::core::{
    Answer, Beginning, Command, Failure, GoOnOptions, JournalEntry, LookBack, Plain, Policy, Run,
    RunOptions, SubmitEntry, ToolEntry,
};

/// A message of a client.
pub(super) enum Message {
    Hello {
        number: i64,
        protocol: i64,
    },
    Request {
        number: i64,
        request: Request,
    },
    Answer {
        call: u64,
        answer: Answer,
    },
    Shutdown {
        number: i64,
    },
    /// A request that cannot be carried out.
    Wrong {
        number: i64,
        failure: Failure,
    },
}

/// A client's request, with the numbers that it has chosen.
pub(super) enum Request {
    /// Make a sandbox.
    Sandbox { sandbox: i64, policy: Result<Box<Policy>, Failure> },
    /// Forget a sandbox.
    Drop { sandbox: i64 },
    /// Keep interpreters ready.
    Prewarm { sandbox: i64, count: usize },
    /// Start a session.
    Open { session: i64, sandbox: i64, beginning: Beginning },
    /// Carry out a command in a session.
    InSession { session: i64, command: Command },
    /// Copy a session.
    Fork { session: i64, copy: i64 },
    /// End a session, and forget its number.
    Close { session: i64 },
    /// Interrupt a session's run.
    Interrupt { session: i64 },
    /// Interrupt a session's run, and end the session if that does not help.
    Cancel { session: i64 },
    /// End a session and its run at once.
    Kill { session: i64 },
}

/// The first message, in any version of the protocol.
#[derive(Deserialize)]
struct AnyHello {
    protocol: i64,
}

/// The first message of this version.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Hello {
    #[serde(rename = "protocol")]
    _protocol: i64,
    #[serde(default, rename = "client")]
    _client: Option<String>,
}

/// The unread arguments of a message.
struct Arguments(std::vec::IntoIter<Value>);

/// A description of the wrong argument.
type Mismatch = String;

/// Why a message is invalid.
enum Wrong {
    Mismatch(Mismatch),
    Failure(Failure),
}

impl From<Mismatch> for Wrong {
    fn from(mismatch: Mismatch) -> Self {
        Self::Mismatch(mismatch)
    }
}

impl From<Failure> for Wrong {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl Message {
    /// Decodes a message. Fails if it has no request number to answer to.
    pub(super) fn read(message: Value, client: &Arc<Stdout>) -> Result<Self, String> {
        let Value::List(items) = message else {
            return Err(format!("a message is {}, and has to be a list", message.type_name()));
        };
        let mut items = Arguments(items.into_iter());
        let operation = items.text("the operation")?;
        let number = items.int("the number")?;
        let message = Self::operation(&operation, number, &mut items, client);
        let message = message.and_then(|message| {
            items.check_end()?;
            Ok(message)
        });
        Ok(match message {
            Ok(message) => message,
            Err(Wrong::Mismatch(reason)) => Self::wrong(&operation, number, &reason),
            Err(Wrong::Failure(failure)) => Self::Wrong { number, failure },
        })
    }

    /// Returns the message for a request of which only the operation and the number could be
    /// decoded.
    pub(super) fn unreadable(operation: &str, number: i64, reason: &str) -> Self {
        Self::wrong(operation, number, &format!("the message cannot be read: {reason}"))
    }

    /// Returns the message for an invalid request. A tool call's invalid answer becomes an
    /// exception of the tool, because the guest waits for it.
    fn wrong(operation: &str, number: i64, reason: &str) -> Self {
        let text = format!("`{operation}`: {reason}");
        match (operation, u64::try_from(number)) {
            ("answer" | "fail", Ok(call)) => {
                Self::Answer { call, answer: Err(ToolError::new("ValueError", text)) }
            }
            _ => Self::Wrong { number, failure: Failure::protocol(text) },
        }
    }

    fn operation(
        name: &str,
        number: i64,
        rest: &mut Arguments,
        client: &Arc<Stdout>,
    ) -> Result<Self, Wrong> {
        let request = match name {
            "hello" => {
                let fields = rest.next();
                let any: Result<AnyHello, _> = isolet::from_value(fields.clone());
                let AnyHello { protocol } =
                    any.map_err(|_| "the int `protocol` is missing".to_owned())?;
                // Other versions may have other keys.
                if protocol == PROTOCOL {
                    let read: Result<Hello, _> = isolet::from_value(fields);
                    read.map_err(|error| error.to_string())?;
                }
                return Ok(Self::Hello { number, protocol });
            }
            "answer" => {
                let answer = Ok(rest.next());
                return Ok(Self::Answer { call: unsigned(number)?, answer });
            }
            "fail" => {
                let answer = Err(rest.tool_error()?);
                return Ok(Self::Answer { call: unsigned(number)?, answer });
            }
            "shutdown" => return Ok(Self::Shutdown { number }),
            "sandbox" => {
                let (sandbox, policy) = (rest.int("SANDBOX")?, Policy::read(rest.next()));
                Request::Sandbox { sandbox, policy: policy.map(Box::new) }
            }
            "drop" => Request::Drop { sandbox: rest.int("SANDBOX")? },
            "prewarm" => {
                let (sandbox, count) = (rest.int("SANDBOX")?, rest.int("COUNT")?);
                let count = usize::try_from(count).map_err(|_| "COUNT is negative".to_owned())?;
                Request::Prewarm { sandbox, count }
            }
            "session" | "restore" | "resume" | "replay" => Request::Open {
                session: rest.int("SESSION")?,
                sandbox: rest.int("SANDBOX")?,
                beginning: beginning(name, rest)?,
            },
            "interrupt" => Request::Interrupt { session: rest.int("SESSION")? },
            "cancel" => Request::Cancel { session: rest.int("SESSION")? },
            "kill" => Request::Kill { session: rest.int("SESSION")? },
            "close" => Request::Close { session: rest.int("SESSION")? },
            "fork" => Request::Fork { session: rest.int("SESSION")?, copy: rest.int("COPY")? },
            other => {
                let session = rest.int("SESSION")?;
                let command = command(other, rest, client, (session, number))?;
                Request::InSession { session, command }
            }
        };
        Ok(Self::Request { number, request })
    }
}

/// Decodes how a session begins.
fn beginning(name: &str, rest: &mut Arguments) -> Result<Beginning, Wrong> {
    Ok(match name {
        "restore" => Beginning::Saved(rest.text("PATH")?),
        "resume" => Beginning::Resumed(rest.last(JournalEntry::read)?),
        "replay" => {
            let path = rest.text("PATH")?;
            Beginning::LookedBack(rest.last(|until| LookBack::read(path, until))?)
        }
        _ => Beginning::Fresh {
            inputs: rest.variables("INPUTS")?,
            journal: rest.last(JournalEntry::read_optional)?,
        },
    })
}

/// Decodes a command for a session, which answers the request of this number.
fn command(
    name: &str,
    rest: &mut Arguments,
    client: &Arc<Stdout>,
    (session, number): (i64, i64),
) -> Result<Command, Wrong> {
    Ok(match name {
        "reset" => Command::Reset { reply: client.answers(number) },
        "checkpoint" => Command::Checkpoint { reply: client.answers(number) },
        "save" => Command::Save { path: rest.text("PATH")?, reply: client.answers(number) },
        "record" => {
            let journal = rest.last(JournalEntry::read)?;
            Command::Record { journal, reply: client.answers(number) }
        }
        "end_recording" => Command::EndRecording { reply: client.answers(number) },
        "go_on" => Command::GoOn {
            options: rest.last(GoOnOptions::read)?,
            listener: Arc::new(RunListener { client: Arc::clone(client), session, run: number }),
            reply: client.answers(number),
        },
        "bind_locals" => Command::BindLocals { reply: client.answers(number) },
        "run" => Command::Run {
            run: Run {
                code: rest.text("CODE")?,
                inputs: rest.variables("INPUTS")?,
                options: rest.last(RunOptions::read)?,
                input: None,
            },
            listener: Arc::new(RunListener { client: Arc::clone(client), session, run: number }),
            reply: client.answers(number),
        },
        "set" => Command::Set {
            variables: rest.variables("the variables")?,
            reply: client.answers(number),
        },
        "get" => Command::Get {
            name: rest.text("NAME")?,
            reply: client.answers_as(number, |found: Option<Value>| {
                found.into_iter().map(Plain).collect::<Vec<_>>()
            }),
        },
        "delete" => Command::Delete { name: rest.text("NAME")?, reply: client.answers(number) },
        "variables" => Command::Variables { reply: client.answers(number) },
        "complete" => Command::Complete { text: rest.text("TEXT")?, reply: client.answers(number) },
        "register" => {
            let tools = rest.last(ToolEntry::read)?;
            Command::Register { tools, reply: client.answers(number) }
        }
        "submit" => {
            let submit = rest.last(SubmitEntry::read)?;
            Command::Submit { submit, reply: client.answers(number) }
        }
        "load_packages" => Command::LoadPackages {
            requirements: rest.texts("the requirements")?,
            reply: client.answers(number),
        },
        "put_file" => Command::PutFile {
            path: rest.text("PATH")?,
            contents: match rest.next() {
                Value::Bytes(bytes) => bytes,
                Value::Str(text) => text.into_bytes(),
                other => return Err(mismatch("BYTES", "bytes", &other).into()),
            },
            reply: client.answers(number),
        },
        "get_file" => Command::GetFile {
            path: rest.text("PATH")?,
            reply: client.answers_as(number, |found: Option<Vec<u8>>| {
                Plain(found.map_or(Value::None, Value::Bytes))
            }),
        },
        "list_files" => {
            Command::ListFiles { path: rest.text("PATH")?, reply: client.answers(number) }
        }
        "remove_file" => {
            Command::RemoveFile { path: rest.text("PATH")?, reply: client.answers(number) }
        }
        _ => return Err("there is no such operation".to_owned().into()),
    })
}

fn mismatch(what: &str, wanted: &str, found: &Value) -> Mismatch {
    format!("{what} is {}, and has to be {wanted}", found.type_name())
}

fn unsigned(number: i64) -> Result<u64, Mismatch> {
    u64::try_from(number).map_err(|_| format!("there is no call {number}"))
}

fn list_of_texts(value: &Value, what: &str) -> Result<Vec<String>, Mismatch> {
    let text = |item: &Value| item.as_str().map(str::to_owned);
    match value {
        Value::List(items) => items.iter().map(text).collect::<Option<_>>(),
        _ => None,
    }
    .ok_or_else(|| format!("{what} have to be a list of strings"))
}

impl Arguments {
    /// Fails if there are unread arguments.
    fn check_end(&self) -> Result<(), Mismatch> {
        match self.0.len() {
            0 => Ok(()),
            1 => Err("there is an argument too many".to_owned()),
            count => Err(format!("there are {count} arguments too many")),
        }
    }

    /// Takes the next argument; omitted ones are `None`.
    fn next(&mut self) -> Value {
        self.0.next().unwrap_or_default()
    }

    /// Takes the last argument and converts it with `read`.
    fn last<T>(&mut self, read: impl FnOnce(Value) -> Result<T, Failure>) -> Result<T, Wrong> {
        let value = self.next();
        self.check_end()?;
        Ok(read(value)?)
    }

    fn text(&mut self, what: &str) -> Result<String, Mismatch> {
        match self.next() {
            Value::Str(text) => Ok(text),
            other => Err(mismatch(what, "a string", &other)),
        }
    }

    fn int(&mut self, what: &str) -> Result<i64, Mismatch> {
        match self.next() {
            Value::Int(number) => Ok(number),
            Value::BigInt(_) => Err(format!("{what} is an int of more than 64 bits")),
            other => Err(mismatch(what, "an int", &other)),
        }
    }

    fn texts(&mut self, what: &str) -> Result<Vec<String>, Mismatch> {
        list_of_texts(&self.next(), what)
    }

    /// Takes the fields of an exception.
    fn tool_error(&mut self) -> Result<ToolError, Mismatch> {
        let error = ToolError::new(self.text("TYPE")?, self.text("TEXT")?);
        let bases = self.optional_texts("BASES")?;
        let error = bases.into_iter().fold(error, ToolError::based_on);
        let exceptions = match self.next() {
            Value::None => return Ok(error),
            Value::List(exceptions) => exceptions,
            other => return Err(mismatch("EXCEPTIONS", "a list", &other)),
        };
        exceptions.into_iter().try_fold(error, |error, one| match one {
            Value::List(parts) => {
                let mut parts = Self(parts.into_iter());
                let exception = parts.tool_error()?;
                parts.check_end()?;
                Ok(error.with_exception(exception))
            }
            other => Err(mismatch("one of the EXCEPTIONS", "a list", &other)),
        })
    }

    fn optional_texts(&mut self, what: &str) -> Result<Vec<String>, Mismatch> {
        match self.next() {
            Value::None => Ok(Vec::new()),
            texts => list_of_texts(&texts, what),
        }
    }

    /// Takes an optional dict of variables.
    fn variables(&mut self, what: &str) -> Result<Vec<(String, Value)>, Mismatch> {
        let item = |(name, value)| match name {
            Value::Str(name) => Ok((name, value)),
            other => Err(mismatch("the name of a variable", "a string", &other)),
        };
        match self.next() {
            Value::None => Ok(Vec::new()),
            Value::Dict(items) => items.into_iter().map(item).collect(),
            other => Err(mismatch(what, "a dict", &other)),
        }
    }
}
