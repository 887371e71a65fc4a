//! The messages of a client: from lists of plain values to requests of the service.

use isolet::{ToolError, Value};
use serde::Deserialize;

use super::PROTOCOL;
use crate::service::{Answer, Failure, Policy, Request, SessionCommand, Terms};

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
    /// A request that cannot be one.
    Wrong {
        number: i64,
        failure: Failure,
    },
}

/// What a client says of itself.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Hello {
    #[serde(rename = "protocol")]
    _protocol: i64,
    #[serde(default, rename = "client")]
    _client: Option<String>,
}

/// The arguments of a message that are still to be read.
struct Arguments(std::vec::IntoIter<Value>);

/// What an argument is not.
type Mismatch = String;

impl Message {
    /// Reads a message. An error means that it is not even a request with a number.
    pub(super) fn read(message: Value) -> Result<Self, String> {
        let Value::List(items) = message else {
            return Err(format!("a message is {}, and has to be a list", message.type_name()));
        };
        let mut items = Arguments(items.into_iter());
        let operation = items.text("the operation")?;
        let number = items.int("the number")?;
        let message = Self::operation(&operation, number, &mut items);
        match message.and_then(|message| items.check_end().map(|()| message)) {
            Ok(message) => Ok(message),
            Err(reason) => Ok(Self::wrong(&operation, number, &reason)),
        }
    }

    /// Returns what a message stands for of which only this can be read.
    pub(super) fn unreadable(operation: &str, number: i64, reason: &str) -> Self {
        Self::wrong(operation, number, &format!("the message cannot be read: {reason}"))
    }

    /// Returns what a wrong message stands for. The guest waits for an answer, and is told of a
    /// wrong one.
    fn wrong(operation: &str, number: i64, reason: &str) -> Self {
        let text = format!("`{operation}`: {reason}");
        match (operation, u64::try_from(number)) {
            ("answer" | "fail", Ok(call)) => {
                Self::Answer { call, answer: Err(ToolError::new("ValueError", text)) }
            }
            _ => Self::Wrong { number, failure: Failure::protocol(text) },
        }
    }

    fn operation(name: &str, number: i64, rest: &mut Arguments) -> Result<Self, Mismatch> {
        let request = match name {
            "hello" => {
                let fields = rest.next();
                let protocol = fields.get("protocol").and_then(Value::as_i64);
                let protocol = protocol.ok_or("the int `protocol` is missing")?;
                // Another version may have other keys.
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
                let (policy, terms) = (policy.map(Box::new), Terms::default());
                Request::Sandbox { sandbox, policy, terms }
            }
            "drop" => Request::Drop { sandbox: rest.int("SANDBOX")? },
            "prewarm" => {
                let (sandbox, count) = (rest.int("SANDBOX")?, rest.int("COUNT")?);
                let count = usize::try_from(count).map_err(|_| "COUNT is negative")?;
                Request::Prewarm { sandbox, count }
            }
            "session" => Request::Session {
                session: rest.int("SESSION")?,
                sandbox: rest.int("SANDBOX")?,
                inputs: rest.variables("INPUTS")?,
                from: None,
            },
            "restore" => Request::Session {
                session: rest.int("SESSION")?,
                sandbox: rest.int("SANDBOX")?,
                from: Some(rest.text("PATH")?),
                inputs: Vec::new(),
            },
            "interrupt" => Request::Interrupt { session: rest.int("SESSION")? },
            "cancel" => Request::Cancel { session: rest.int("SESSION")? },
            "kill" => Request::Kill { session: rest.int("SESSION")? },
            other => {
                let session = rest.int("SESSION")?;
                Request::InSession { session, command: command(other, rest)? }
            }
        };
        Ok(Self::Request { number, request })
    }
}

fn command(name: &str, rest: &mut Arguments) -> Result<SessionCommand, Mismatch> {
    Ok(match name {
        "close" => SessionCommand::Close,
        "reset" => SessionCommand::Reset,
        "fork" => SessionCommand::Fork { copy: rest.int("COPY")? },
        "save" => SessionCommand::Save { path: rest.text("PATH")? },
        "run" => SessionCommand::Run {
            code: rest.text("CODE")?,
            inputs: rest.variables("INPUTS")?,
            options: rest.next(),
        },
        "set" => SessionCommand::Set { variables: rest.variables("the variables")? },
        "get" => SessionCommand::Get { name: rest.text("NAME")? },
        "delete" => SessionCommand::Delete { name: rest.text("NAME")? },
        "variables" => SessionCommand::Variables,
        "complete" => SessionCommand::Complete { text: rest.text("TEXT")? },
        "register" => SessionCommand::Register { tools: rest.next() },
        "submit" => SessionCommand::Submit { submit: rest.next() },
        "load_packages" => {
            SessionCommand::LoadPackages { requirements: rest.texts("the requirements")? }
        }
        "put_file" => SessionCommand::PutFile {
            path: rest.text("PATH")?,
            contents: match rest.next() {
                Value::Bytes(bytes) => bytes,
                Value::Str(text) => text.into_bytes(),
                other => return Err(mismatch("BYTES", "bytes", &other)),
            },
        },
        "get_file" => SessionCommand::GetFile { path: rest.text("PATH")? },
        "list_files" => SessionCommand::ListFiles { path: rest.text("PATH")? },
        "remove_file" => SessionCommand::RemoveFile { path: rest.text("PATH")? },
        _ => return Err("there is no such operation".to_owned()),
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
    /// Fails if there are arguments that nobody has read.
    fn check_end(&self) -> Result<(), Mismatch> {
        match self.0.len() {
            0 => Ok(()),
            1 => Err("there is an argument too many".to_owned()),
            count => Err(format!("there are {count} arguments too many")),
        }
    }

    /// Takes the next argument; `None` stands for those that were left out.
    fn next(&mut self) -> Value {
        self.0.next().unwrap_or_default()
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

    /// Takes what an exception is made of.
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

    /// Takes a dict of variables, which may be missing.
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
