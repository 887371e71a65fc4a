//! A function by which the guest asks a language model: `llm_query(prompt)`.
//!
//! The model is a program or a server of the host. The guest has neither its key nor a way to it
//! other than this function, and a budget in each run:
//!
//! ```no_run
//! use isolet_mcp::llm::Llm;
//! use isolet::{Engine, Sandbox};
//!
//! # async fn example() -> Result<(), isolet::Error> {
//! let llm = Llm::from_text("http://127.0.0.1:11434/v1")?.model("qwen3:8b").max_calls(200);
//! let sandbox = Sandbox::builder(&Engine::new()?).tool(llm.tool()).build()?;
//! sandbox.run("llm_query.map([f'Summarise: {page}' for page in pages])").await?;
//! # Ok(()) }
//! ```
//!
//! In Python:
//!
//! * `llm_query(prompt)` returns the answer, a `str`.
//! * `llm_query(prompt, schema={...})` asks for JSON of this JSON Schema and returns the value. An
//!   answer that is no JSON raises `ValueError`. isolet does not check the value against the
//!   schema.
//! * `llm_query.map(prompts)` asks side by side, and `await llm_query(...)` works.
//! * Failures raise `RuntimeError` (the model, an exhausted budget), `TimeoutError` or
//!   `ConnectionError`, which the code can catch.

mod budget;
mod chat;
mod command;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value as Json;
use url::Url;

use self::budget::Budget;
use self::chat::Chat;
use crate::support::background;
use crate::support::json;
use crate::support::words;
use isolet::{
    Error, ErrorKind, Param, Tool, ToolContext, ToolError, ToolSpec, TypeHint, Value, from_value,
    to_value,
};

/// The maximum size of an answer, in bytes.
const MAX_ANSWER_BYTES: usize = 4 << 20;

/// The most values of an answer that is JSON. No model writes as many.
const MAX_ANSWER_VALUES: usize = 100_000;

/// A language model, and the guest's budget for it.
#[derive(Clone)]
#[must_use]
pub struct Llm {
    model: Model,
    name: String,
    timeout: Duration,
    max_calls: u64,
    max_tokens: u64,
}

#[derive(Clone)]
enum Model {
    /// A program and its arguments.
    Command(Vec<String>),
    Chat(Chat),
}

/// The answer of a model, and its cost.
struct Answer {
    text: String,
    /// The tokens of prompt and answer, if the model tells.
    tokens: Option<u64>,
}

impl Llm {
    /// Makes a model that is a program: it gets the prompt on its standard input and writes the
    /// answer to its standard output. It runs as the user, once for each call, with the environment
    /// of this process, and is **not** sandboxed. An exit status other than 0 is an error with the
    /// text of its standard error.
    pub fn command<S: Into<String>>(
        program: impl Into<String>,
        args: impl IntoIterator<Item = S>,
    ) -> Self {
        let args = args.into_iter().map(Into::into);
        Self::new(Model::Command(std::iter::once(program.into()).chain(args).collect()))
    }

    /// Makes a model of a server with the API `/chat/completions`, which nearly all servers of
    /// models have: `url` is the base that this path is appended to.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if this is no URL of `http` or `https`.
    pub fn url(url: &str) -> Result<Self, Error> {
        let refuse = |reason: String| {
            Error::new(ErrorKind::Config, format!("the language model's URL `{url}` {reason}"))
        };
        let mut parsed = Url::parse(url).map_err(|error| refuse(format!("is none: {error}")))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(refuse("is not one of http or https".to_owned()));
        }
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err(refuse("has a user or a password, the key is set separately".to_owned()));
        }
        let path = parsed.path().trim_end_matches('/').to_owned();
        if !path.ends_with("/chat/completions") {
            parsed.set_path(&format!("{path}/chat/completions"));
        }
        Ok(Self::new(Model::Chat(Chat::new(parsed))))
    }

    /// Reads a model from an option of a command: a URL, or a command whose words are separated as
    /// in a shell.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if the text has another form.
    pub fn from_text(text: &str) -> Result<Self, Error> {
        if text.starts_with("http://") || text.starts_with("https://") {
            return Self::url(text);
        }
        let refuse = |reason: &str| {
            Error::new(ErrorKind::Config, format!("the language model's command `{text}` {reason}"))
        };
        let mut words = words::split(text).map_err(|reason| refuse(&reason))?.into_iter();
        match words.next() {
            Some(program) if !program.is_empty() => Ok(Self::command(program, words)),
            _ => Err(refuse("is empty")),
        }
    }

    fn new(model: Model) -> Self {
        Self {
            model,
            name: "llm_query".to_owned(),
            timeout: Duration::from_mins(2),
            max_calls: 100,
            max_tokens: 1_000_000,
        }
    }

    /// Sets the model's name, which isolet sends to a server. Default: none, for servers with one
    /// model. A command gets no name.
    pub fn model(mut self, name: impl Into<String>) -> Self {
        if let Model::Chat(chat) = &mut self.model {
            chat.set_model(name.into());
        }
        self
    }

    /// Sets the key that a server wants as bearer token. The guest never sees it: `[secret]` stands
    /// in its place where the server repeats it.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        if let Model::Chat(chat) = &mut self.model {
            chat.set_key(key.into());
        }
        self
    }

    /// Returns `true` for a server, which has a [`model`](Self::model) and a [`key`](Self::key).
    #[must_use]
    pub fn is_server(&self) -> bool {
        matches!(self.model, Model::Chat(_))
    }

    /// Sets the function's name. Default: `llm_query`.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets how long a call may take, retries included. Default: 2 minutes.
    pub fn timeout(mut self, time: Duration) -> Self {
        self.timeout = time;
        self
    }

    /// Sets how many calls a run may make. Default: 100.
    pub fn max_calls(mut self, calls: u64) -> Self {
        self.max_calls = calls;
        self
    }

    /// Sets how many tokens a run may spend on prompts and answers. Default: 1,000,000.
    ///
    /// The count that a server reports is used; without a report, four bytes are a token. A call is
    /// refused if its prompt does not fit into the rest of the budget. The answers of calls under
    /// way may exceed it.
    pub fn max_tokens(mut self, tokens: u64) -> Self {
        self.max_tokens = tokens;
        self
    }

    /// Makes the function. Sandboxes that have it share no budget: each run has its own.
    pub fn tool(&self) -> Tool {
        let spec = ToolSpec::new(&self.name)
            .doc(
                "Asks a language model, and returns its answer. With a JSON Schema it returns a \
                 value of that form.",
            )
            .param(Param::new("prompt").hint(TypeHint::Str))
            .param(
                Param::new("schema")
                    .hint(TypeHint::Dict(Box::new(TypeHint::Any)).or_none())
                    .default_value(Value::None),
            )
            .returns(TypeHint::Any);
        let (model, timeout) = (self.model.clone(), self.timeout);
        let budget = Arc::new(Budget::new(self.max_calls, self.max_tokens));
        Tool::from_handler(spec, move |arguments, cx| {
            let (model, budget) = (model.clone(), Arc::clone(&budget));
            async move { query(model, &budget, timeout, &arguments, &cx).await }
        })
    }
}

impl fmt::Debug for Llm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Llm").field("name", &self.name).finish_non_exhaustive()
    }
}

async fn query(
    model: Model,
    budget: &Budget,
    timeout: Duration,
    arguments: &Value,
    cx: &ToolContext,
) -> Result<Value, ToolError> {
    let prompt = arguments.get("prompt").and_then(Value::as_str).unwrap_or_default().to_owned();
    let schema = match arguments.get("schema") {
        None | Some(Value::None) => None,
        Some(schema) => Some(from_value::<Json>(schema.clone()).map_err(|error| {
            ToolError::new("ValueError", format!("the schema is no JSON: {error}"))
        })?),
    };
    let wants_json = schema.is_some();
    let charge = budget.charge(cx, &prompt)?;
    let asked = background::serve(async move {
        let answer = async {
            match &model {
                Model::Command(words) => command::ask(words, &prompt, schema.as_ref()).await,
                Model::Chat(chat) => chat.ask(&prompt, schema.as_ref()).await,
            }
        };
        tokio::time::timeout(timeout, answer).await
    });
    let asked = asked.await.map_err(|error| {
        ToolError::new("RuntimeError", format!("the language model cannot be asked: {error}"))
    })?;
    let answer = asked.map_err(|_| {
        let seconds = timeout.as_secs_f64();
        let message = format!("the language model did not answer within {seconds} s");
        ToolError::new("TimeoutError", message)
    })??;
    charge.spent(&answer);
    if !wants_json {
        return Ok(answer.text.into());
    }
    let text = unfenced(&answer.text);
    let values = json::values(text.as_bytes());
    if values > MAX_ANSWER_VALUES {
        let message =
            format!("the answer has {values} values of JSON, the limit is {MAX_ANSWER_VALUES}");
        return Err(ToolError::new("ValueError", message));
    }
    let value: Json = serde_json::from_str(text).map_err(|error| {
        let shown: String = answer.text.chars().take(200).collect();
        ToolError::new("ValueError", format!("the answer is no JSON ({error}): {shown}"))
    })?;
    to_value(&value).map_err(|error| ToolError::new("ValueError", error.to_string()))
}

/// Returns the JSON in a fenced block, as models like to write it.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let Some(inner) = inner else { return text };
    inner.strip_prefix("json").unwrap_or(inner).trim()
}

/// Adds the schema to a prompt, for a program or a server that knows no schemas.
fn asking_for_json(prompt: &str, schema: &Json) -> String {
    let asked = "Answer with JSON only, without any other text, of this JSON Schema:";
    format!("{prompt}\n\n{asked}\n{schema}\n")
}
