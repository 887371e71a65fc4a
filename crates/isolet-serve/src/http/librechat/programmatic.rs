//! `POST /exec/programmatic`: a program that calls tools of the client. Each answer has the calls
//! that wait, and a token with which the client sends their results.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use isolet::{ToolError, Value};
use serde::Deserialize;
use serde_json::{Value as AnyJson, json};

use super::exec::{PATIENCE, stderr};
use super::waiting::{WaitingRun, WaitingRuns};
use super::workspace::{FileRef, Workspace, new_session};
use super::{Failed, Language, LibreChatBody};
use crate::http::answers::{check_length, check_size, fit, measured};
use crate::http::body::DialectJson;
use crate::http::credentials::Credentials;
use crate::http::dify::failure;
use crate::http::lenient;
use crate::http::problem::Problem;
use crate::http::sessions::MAX_POLICY_BYTES;
use isolet_service::core::{Execution, Plain, Policy};
use isolet_service::node::{Node, Refusal, SessionLease, Step, Tenant, WaitingCall};

/// The maximum number of tools of a program.
const MAX_TOOLS: usize = 100;

/// The beginning of the names of calls, before their numbers.
const CALL: &str = "call_";

/// The parameter that takes what has no parameter of its own.
const MORE: &str = "_arguments";

/// Words that cannot be names in Python, and in bash. Clients append the same to them.
const OF_PYTHON: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
    "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import",
    "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
    "with", "yield",
];
const OF_BASH: [&str; 22] = [
    "if", "then", "else", "elif", "fi", "case", "esac", "for", "while", "until", "do", "done",
    "in", "function", "select", "time", "coproc", "declare", "typeset", "local", "readonly",
    "export",
];
const APPENDED: &str = "_tool";

/// A program to begin, or the results with which one goes on.
#[derive(Deserialize)]
pub(in crate::http) struct ProgrammaticRequest {
    #[serde(default)]
    code: Option<String>,
    #[serde(default)]
    lang: Option<String>,
    #[serde(default)]
    language: Option<String>,
    #[serde(default)]
    tools: Vec<ToolDefinition>,
    #[serde(default)]
    session_id: Option<String>,
    /// In milliseconds.
    #[serde(default)]
    timeout: Option<f64>,
    #[serde(default)]
    files: Vec<FileRef>,
    #[serde(default)]
    continuation_token: Option<String>,
    #[serde(default)]
    tool_results: Vec<ToolResult>,
}

#[derive(Deserialize)]
pub(in crate::http) struct ToolDefinition {
    name: String,
    #[serde(default)]
    description: Option<String>,
    /// A JSON schema.
    #[serde(default)]
    parameters: Value,
}

#[derive(Deserialize)]
pub(in crate::http) struct ToolResult {
    call_id: String,
    #[serde(default)]
    result: Value,
    #[serde(default)]
    is_error: bool,
    #[serde(default)]
    error_message: Option<String>,
}

/// What a run was begun with.
pub(super) struct Program {
    language: Language,
    workspace: Workspace,
    /// The client's names of tools by those of the program.
    names: BTreeMap<String, String>,
}

pub(super) async fn run(
    State(node): State<Arc<Node>>,
    Extension(runs): Extension<Arc<WaitingRuns>>,
    credentials: Credentials,
    LibreChatBody(body): LibreChatBody,
) -> Result<DialectJson, Failed> {
    let tenant = node.tenant(&credentials)?;
    let mut request: ProgrammaticRequest = lenient::read(body, &[])?;
    let waiting = match request.continuation_token.take().filter(|token| !token.is_empty()) {
        Some(token) => answered(&node, &runs, &tenant, &token, request.tool_results)?,
        None => begun(&node, &tenant, request).await?,
    };
    let WaitingRun { mut run, program } = waiting;
    match run.step().await {
        Step::Calls(calls) => {
            let calls = calls.iter().map(|(number, call)| program.shown(*number, call));
            let calls: AnyJson = calls.collect();
            check_length(&node, measured(&calls))?;
            let token = node.random_token()?;
            let session = run.session().used().handle().to_owned();
            runs.keep(&tenant, token.clone(), WaitingRun { run, program });
            Ok(DialectJson(json!({
                "status": "tool_call_required",
                "continuation_token": token,
                "tool_calls": calls,
                "session_id": session,
            })))
        }
        Step::Ended(ended) => {
            let session = run.into_session();
            let answer = program.ended(&node, &tenant, session.used(), ended).await;
            session.end().await;
            answer.map(DialectJson)
        }
    }
}

/// Begins a program.
async fn begun(
    node: &Arc<Node>,
    tenant: &Arc<Tenant>,
    request: ProgrammaticRequest,
) -> Result<WaitingRun, Failed> {
    let ProgrammaticRequest { code, lang, language, tools, session_id, timeout, files, .. } =
        request;
    let missing = "the body has neither `code` nor `continuation_token`";
    let code = code.ok_or_else(|| Failed(Problem::unreadable(missing)))?;
    let language = language.or(lang);
    let language = language.as_deref().map(|name| Language::read("lang", name)).transpose()?;
    let language = language.unwrap_or(Language::Python);
    let (tools, names) = language.tools(tools)?;
    let policy = Plain(Value::dict([("tools", tools)]));
    check_size("tools", &policy, MAX_POLICY_BYTES)?;
    let policy = Policy::read(policy.0).map_err(Problem::from)?;
    let mut workspace = Workspace::find(node, tenant, session_id, &files)?;
    let session = node.create_own(tenant, new_session(policy), PATIENCE).await?;
    workspace.write(node, session.used()).await?;
    let timeout = timeout.map(|milliseconds| milliseconds / 1000.0);
    let run = language.program(code, Vec::new(), timeout);
    let run = node.start_tool_run(session, run).await?;
    Ok(WaitingRun { run, program: Program { language, workspace, names } })
}

/// Gives a waiting run the results of its calls.
fn answered(
    node: &Node,
    runs: &WaitingRuns,
    tenant: &Tenant,
    token: &str,
    results: Vec<ToolResult>,
) -> Result<WaitingRun, Failed> {
    if results.is_empty() {
        let text = "`tool_results` is empty, and has to have the results of calls";
        return Err(Failed(Problem::unreadable(text)));
    }
    let mut answers = BTreeMap::new();
    for result in results {
        let number = result.call_id.strip_prefix(CALL).and_then(|number| number.parse().ok());
        answers.insert(number.ok_or_else(|| unknown_call(&result.call_id))?, result);
    }
    let waiting = runs.take(tenant, token, |waiting: &WaitingRun| {
        let unknown = answers.iter().find(|(call, _)| !waiting.run.calls().contains_key(call));
        unknown.map_or(Ok(()), |(_, result)| Err(unknown_call(&result.call_id)))
    })?;
    let mut waiting = waiting.ok_or_else(|| {
        let text = "no run waits with this `continuation_token`, or no longer; begin it again";
        Failed(Problem::nothing(text))
    })?;
    for (call, result) in answers {
        let answer = waiting.program.language.answer(result);
        waiting.run.answer(node, call, answer);
    }
    Ok(waiting)
}

fn unknown_call(id: &str) -> Failed {
    Failed(Problem::unreadable(format!("no call {id:?} waits for a result")))
}

impl Program {
    /// Returns a call for the client.
    fn shown(&self, number: u64, call: &WaitingCall) -> AnyJson {
        let name = self.names.get(&call.tool).unwrap_or(&call.tool);
        let mut input = Vec::new();
        for (name, value) in call.arguments.as_dict().unwrap_or_default() {
            match value {
                // Left out, as an argument that was not given.
                Value::None => {}
                Value::Dict(more) if name.as_str() == Some(MORE) => input.extend(more.clone()),
                value => input.push((name.clone(), value.clone())),
            }
        }
        let input = serde_json::to_value(Plain(Value::Dict(input))).unwrap_or_default();
        json!({"id": format!("{CALL}{number:03}"), "name": name, "input": input})
    }

    /// Returns the answer for a run that has ended.
    async fn ended(
        self,
        node: &Node,
        tenant: &Tenant,
        session: &SessionLease,
        ended: Result<Box<Execution>, Refusal>,
    ) -> Result<AnyJson, Failed> {
        let execution = fit(node, session, *ended?);
        if let Some(failure) = failure(&execution) {
            let reason = failure.trim_end().rsplit('\n').next().unwrap_or_default();
            // Clients show no `stdout` of an error.
            let stderr = format!("{}{}", execution.stdout, stderr(&execution, ""));
            return Ok(json!({
                "status": "error",
                "error": reason,
                "stdout": execution.stdout,
                "stderr": stderr,
                "session_id": session.handle(),
            }));
        }
        let (id, files, said) = self.workspace.keep(node, tenant, session, &execution).await?;
        Ok(json!({
            "status": "completed",
            "session_id": id,
            "stdout": execution.stdout,
            "stderr": stderr(&execution, &said),
            "files": files,
        }))
    }
}

impl Language {
    /// Returns the tools for a policy, and the client's names by those of the program.
    fn tools(
        self,
        given: Vec<ToolDefinition>,
    ) -> Result<(Value, BTreeMap<String, String>), Failed> {
        let invalid = |text: String| Failed(Problem::unreadable(text));
        if given.len() > MAX_TOOLS {
            let count = given.len();
            return Err(invalid(format!("`tools` has {count} tools: limit {MAX_TOOLS}")));
        }
        let (mut tools, mut names) = (Vec::new(), BTreeMap::new());
        for ToolDefinition { name, description, parameters } in given {
            let own = self.identifier(&name);
            tools.push(Value::dict([
                ("name", Value::from(own.as_str())),
                ("doc", description.unwrap_or_default().into()),
                ("parameters", Value::List(self.parameters(&parameters))),
                ("style", if self == Self::Python { "async" } else { "plain" }.into()),
            ]));
            if let Some(other) = names.insert(own.clone(), name.clone()) {
                return Err(invalid(format!(
                    "the tools {other:?} and {name:?} have the same name `{own}` in the program"
                )));
            }
        }
        Ok((Value::List(tools), names))
    }

    /// Returns the name of a tool in programs, as clients derive it.
    fn identifier(self, name: &str) -> String {
        let separates =
            |char: char| char == '-' || char.is_whitespace() || (char == '.' && self == Self::Bash);
        let own = name.chars().map(|char| if separates(char) { '_' } else { char });
        let mut own: String =
            own.filter(|char| char.is_ascii_alphanumeric() || *char == '_').collect();
        if own.starts_with(|first: char| first.is_ascii_digit()) {
            own.insert(0, '_');
        }
        let reserved = if self == Self::Python { &OF_PYTHON[..] } else { &OF_BASH[..] };
        if reserved.contains(&own.as_str()) {
            own.push_str(APPENDED);
        }
        own
    }

    /// Returns the parameters of a tool with this schema.
    fn parameters(self, schema: &Value) -> Vec<Value> {
        let parameter = |name: &str, fields: Vec<(&str, Value)>| {
            let fixed = [("name", Value::from(name)), ("check", false.into())];
            Value::dict(fixed.into_iter().chain(fields))
        };
        let properties = schema.get("properties").and_then(Value::as_dict).unwrap_or_default();
        let required = schema.get("required").and_then(Value::as_list).unwrap_or_default();
        let is_required = |name: &str| required.iter().any(|its| its.as_str() == Some(name));
        let named = properties.iter().filter_map(|(name, schema)| Some((name.as_str()?, schema)));
        // In bash the argument is one word, an object as JSON.
        let named: Vec<_> =
            named.filter(|(name, _)| self == Self::Python && is_name(name)).collect();
        let (first, last): (Vec<_>, Vec<_>) =
            named.into_iter().partition(|(name, _)| is_required(name));
        let mut parameters = Vec::new();
        for (name, schema) in first.into_iter().chain(last) {
            let doc = schema.get("description").and_then(Value::as_str).unwrap_or_default();
            let optional = (!is_required(name)).into();
            let fields =
                vec![("doc", doc.into()), ("schema", schema.clone()), ("optional", optional)];
            parameters.push(parameter(name, fields));
        }
        // The others, whose names are none in Python.
        parameters.push(match self {
            Self::Python => parameter(MORE, vec![("kind", "var_keyword".into())]),
            Self::Bash => parameter(MORE, vec![("optional", true.into())]),
        });
        parameters
    }

    /// Returns the answer to a call.
    fn answer(self, result: ToolResult) -> Result<Value, ToolError> {
        if result.is_error {
            let text = result.error_message.unwrap_or_else(|| "the tool has failed".to_owned());
            return Err(ToolError::new("ToolExecutionError", text));
        }
        if self == Self::Python {
            return Ok(result.result);
        }
        // The command prints it, and every result is JSON.
        let text = serde_json::to_string(&Plain(result.result)).unwrap_or_default();
        Ok(text.into())
    }
}

/// Whether a property can be a parameter.
fn is_name(name: &str) -> bool {
    let mut chars = name.chars();
    let is_first = |char: char| char.is_ascii_alphabetic() || char == '_';
    chars.next().is_some_and(is_first)
        && chars.all(|char| is_first(char) || char.is_ascii_digit())
        && !OF_PYTHON.contains(&name)
        && name != MORE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_have_the_names_in_programs_that_clients_derive() {
        for (name, python, bash) in [
            ("get_weather", "get_weather", "get_weather"),
            ("get-the weather", "get_the_weather", "get_the_weather"),
            ("a.b", "ab", "a_b"),
            ("2nd", "_2nd", "_2nd"),
            ("class", "class_tool", "class"),
            ("done", "done", "done_tool"),
            ("é!", "", ""),
        ] {
            let names = [Language::Python, Language::Bash].map(|one| one.identifier(name));
            assert_eq!(names, [python, bash], "{name}");
        }
        let tool = |name: &str| ToolDefinition {
            name: name.to_owned(),
            description: None,
            parameters: Value::None,
        };
        let Err(Failed(problem)) = Language::Python.tools(vec![tool("a-b"), tool("a_b")]) else {
            panic!("one of them would be called for the other")
        };
        assert!(problem.detail().contains("\"a-b\" and \"a_b\""), "{problem:?}");
        let many = (0..=MAX_TOOLS).map(|number| tool(&format!("t{number}"))).collect();
        assert!(Language::Bash.tools(many).is_err());
    }

    #[test]
    fn only_names_of_python_are_parameters() {
        for name in ["a", "_a1"] {
            assert!(is_name(name));
        }
        for name in ["", "1a", "from", "x-y", "é", MORE] {
            assert!(!is_name(name), "{name}");
        }
    }
}
