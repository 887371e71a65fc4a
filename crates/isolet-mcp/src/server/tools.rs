//! The tools of the server, as clients list them: the same ones in the same order for everybody.
//!
//! The schemas of arguments have no other keywords than `type`, `description`, `properties` and
//! `required`: clients hand them to models whose functions know few others, such as Gemini's. The
//! code checks all else.

use std::sync::Arc;
use std::time::Duration;

use isolet::Syntax;
use rmcp::model::{JsonObject, MetaObject, Tool, ToolAnnotations};
use serde_json::{Value as Json, json};

pub(super) const RUN_PYTHON: &str = "run_python";
pub(super) const RUN_SHELL: &str = "run_shell";
pub(super) const RUN_SKILL: &str = "run_skill";
pub(super) const CLOSE_SESSION: &str = "close_session";
pub(super) const SEARCH_TOOLS: &str = "search_tools";
pub(super) const WRITE_FILE: &str = "write_file";

/// The most characters of the description that name other servers' tools.
pub(super) const CATALOGUE_CHARS: usize = 6_000;

/// The least number of characters that a name takes, with its separator.
pub(super) const MIN_NAME_CHARS: usize = 3;

/// The key by which Claude Code lets a tool have long results, in characters.
const MAX_RESULT_KEY: &str = "anthropic/maxResultSizeChars";

/// A difference from numpy on a desktop, for code that computes with indices.
pub(super) const NUMPY: &str = " numpy's integers have 64 bits, but arrays of indices (argsort, \
     nonzero, where, searchsorted, factorize) have 32: use .astype('int64') before multiplying \
     them.";

/// A tool that runs code in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Runner {
    Python,
    Shell,
    Skill,
}

impl Runner {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Python => RUN_PYTHON,
            Self::Shell => RUN_SHELL,
            Self::Skill => RUN_SKILL,
        }
    }

    /// The name of the parameter that has the code, and what it is.
    pub(super) fn code(self) -> (&'static str, &'static str) {
        match self {
            Self::Python => ("code", ", the code to run"),
            Self::Shell => ("command", ", the command to run"),
            Self::Skill => ("script", ", the script to run"),
        }
    }

    /// The names of all parameters.
    pub(super) fn params(self) -> &'static [&'static str] {
        match self {
            Self::Python => &["code", "session", "timeout"],
            Self::Shell => &["command", "session", "timeout"],
            Self::Skill => &["skill", "script", "arguments", "file", "session", "timeout"],
        }
    }

    pub(super) fn syntax(self) -> Syntax {
        match self {
            Self::Python => Syntax::Ipython,
            Self::Shell | Self::Skill => Syntax::Shell,
        }
    }
}

/// The facts about this server in the definitions of its tools.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct Facts {
    pub(super) timeout: Duration,
    pub(super) session_ttl: Duration,
    /// The time that an idle session may sleep; `None` if it ends instead.
    pub(super) sleep: Option<Duration>,
    pub(super) max_sessions: usize,
    pub(super) result_chars: usize,
    /// The packages that sessions have, in words; empty if there are none.
    pub(super) packages: String,
    /// Advice for code that uses them; empty if there is none.
    pub(super) about_packages: &'static str,
    /// The resources that the code may reach besides its own memory, in words; empty if none.
    pub(super) access: String,
    /// `true` if the code may change something outside of its session.
    pub(super) is_destructive: bool,
    /// `true` if the code may reach other servers.
    pub(super) is_open: bool,
    /// `true` if the code may ask a language model.
    pub(super) has_llm: bool,
    /// `true` if clients may run commands of the shell by a tool.
    pub(super) has_shell: bool,
    /// `true` if clients may write files by a tool.
    pub(super) takes_files: bool,
    /// The skills whose scripts clients may run, each as its name and description.
    pub(super) skills: Vec<(String, String)>,
    /// The servers whose tools it may call.
    pub(super) servers: Vec<ServerFacts>,
}

/// The facts about a server that are known without asking it.
pub(super) struct ServerFacts {
    pub(super) module: String,
    /// The number of its tools; `None` if the server was never asked.
    pub(super) tools: Option<usize>,
    /// Their signatures; `None` if they are too many, too.
    pub(super) signatures: Option<Vec<String>>,
}

pub(super) fn all(facts: &Facts) -> Vec<Tool> {
    // In the order of their names.
    let mut tools = vec![close_session(), run_python(facts)];
    if facts.has_shell {
        tools.push(run_shell(facts));
    }
    if !facts.skills.is_empty() {
        tools.push(run_skill(facts));
    }
    if !facts.servers.is_empty() {
        tools.push(search_tools());
    }
    if facts.takes_files {
        tools.push(write_file());
    }
    tools
}

fn run_python(facts: &Facts) -> Tool {
    let mut meta = MetaObject::new();
    meta.insert(MAX_RESULT_KEY.to_owned(), (facts.result_chars * 3).min(500_000).into());
    let annotations = ToolAnnotations::with_title("Run Python")
        .read_only(false)
        .destructive(facts.is_destructive)
        .idempotent(false)
        .open_world(facts.is_open);
    let input = run_input(Runner::Python, "The Python code to run.", facts);
    Tool::new(RUN_PYTHON, description(facts), object(input))
        .with_title("Run Python")
        .with_raw_output_schema(object(run_output()))
        .with_annotations(annotations)
        .with_meta(meta)
}

fn run_shell(facts: &Facts) -> Tool {
    let annotations = ToolAnnotations::with_title("Run a command of the shell")
        .read_only(false)
        .destructive(facts.is_destructive)
        .idempotent(false)
        .open_world(facts.is_open);
    let input = run_input(Runner::Shell, "The script to run, as for bash -c.", facts);
    let mut meta = MetaObject::new();
    meta.insert(MAX_RESULT_KEY.to_owned(), (facts.result_chars * 3).min(500_000).into());
    Tool::new(RUN_SHELL, SHELL, object(input))
        .with_title("Run a command of the shell")
        .with_raw_output_schema(object(run_output()))
        .with_annotations(annotations)
        .with_meta(meta)
}

fn run_skill(facts: &Facts) -> Tool {
    let text = |about: &str| json!({"type": "string", "description": about});
    let Json::Object(mut input) = run_input(Runner::Skill, "A script of the skill.", facts) else {
        return Tool::new(RUN_SKILL, "", Arc::default());
    };
    if let Some(properties) = input.get_mut("properties").and_then(Json::as_object_mut) {
        properties.insert("skill".to_owned(), text("The name of the skill."));
        let arguments = "The script's arguments, as on a command line of bash.";
        properties.insert("arguments".to_owned(), text(arguments));
        properties.insert("file".to_owned(), text("Instead of `script`: a text to read."));
    }
    input.insert("required".to_owned(), json!(["skill"]));
    let annotations = ToolAnnotations::with_title("Use a skill")
        .read_only(false)
        .destructive(facts.is_destructive)
        .idempotent(false)
        .open_world(facts.is_open);
    Tool::new(RUN_SKILL, about_skills(&facts.skills), Arc::new(input))
        .with_title("Use a skill")
        .with_raw_output_schema(object(run_output()))
        .with_annotations(annotations)
}

/// Describes the skills, within a budget: the descriptions whole if they fit, else their
/// beginnings, else the names only.
fn about_skills(skills: &[(String, String)]) -> String {
    let begun = "Skills: instructions and scripts for certain tasks. Read a skill's instructions \
                 first: call with `skill` alone. `script` with `arguments` then runs one of its \
                 scripts in a session, like run_python; the skill's files are in /skills/NAME, \
                 read only. The skills:";
    let lists = [usize::MAX, SHORT_DESCRIPTION, 0].into_iter().map(|most| {
        let mut list = String::new();
        for (name, description) in skills {
            list.extend(["\n- ", name]);
            let shown: String = description.chars().take(most).collect();
            if !shown.is_empty() {
                list.extend([": ", &shown.replace('\n', " ")]);
                list.push_str(if shown.len() < description.len() { "..." } else { "" });
            }
        }
        list
    });
    let mut fitting = lists.filter(|list| list.len() <= SKILL_CHARS);
    let list = fitting.next().unwrap_or_else(|| format!("\n{} skills", skills.len()));
    format!("{begun}{list}")
}

/// The most characters of the description that names skills, and of one of them if not all fit.
const SKILL_CHARS: usize = 12_000;
const SHORT_DESCRIPTION: usize = 150;

/// The description of `run_shell`.
const SHELL: &str = "Runs a script of bash in a sandbox, on the files of run_python and in the \
     same sessions: `session` goes on with directory, variables and files. It has about a hundred \
     commands (grep, sed, awk, jq, find, sort, xargs, tar and others) and python3, and starts no \
     process: git, gcc and the like are not there.";

fn description(facts: &Facts) -> String {
    let mut text = format!(
        "Runs Python code in a sandbox: full CPython 3.14 with its standard library. The value of \
         the last expression is the result, as in a notebook; print() works, and so do top-level \
         await and return, %commands of IPython, and `!command` of a shell. Every call starts \
         a fresh session, unless `session` names an earlier one: then variables, imports and files \
         are still there. {} Pictures (matplotlib, display()) come back as images.",
        end_of_sessions(facts),
    );
    if facts.packages.is_empty() {
        text.push_str(
            " No other packages are there (no numpy, no requests), and pip does not work.",
        );
    } else {
        text.extend([" Packages: ", &facts.packages, "; no others, and pip does not work."]);
    }
    text.push_str(facts.about_packages);
    text.push(' ');
    if facts.access.is_empty() {
        text.push_str("The code has no network and none of the user's files.");
    } else {
        text.extend(["The code may use ", &facts.access, ", and nothing else."]);
    }
    if facts.has_llm {
        text.push_str(
            " llm_query(prompt) asks a language model and returns its answer; with \
             schema={...}, a JSON Schema, a value of that form. llm_query.map(prompts) asks side \
             by side.",
        );
    }
    if !facts.servers.is_empty() {
        text.push_str(&catalogue(&facts.servers));
    }
    text
}

fn end_of_sessions(facts: &Facts) -> String {
    let unused = |time| in_words(time).map(|time| format!("when nobody has used it for {time}"));
    if let Some(time) = facts.sleep {
        return unused(time).map_or_else(
            || "A session is kept until it is closed.".to_owned(),
            |unused| format!("A session ends {unused}."),
        );
    }
    let unused = unused(facts.session_ttl).map_or_else(String::new, |text| text + ", or ");
    let most = facts.max_sessions;
    format!("A session ends {unused}when newer ones need its place (at most {most}).")
}

/// Describes the functions that the code may call, within a budget: by signatures if they fit, else
/// by names, else by their number.
fn catalogue(servers: &[ServerFacts]) -> String {
    let mut text = String::from(
        "\n\nThe code may call the tools of other servers as functions, each server a module: \
         `import NAME`, then plain calls with keyword arguments (`await` and asyncio.gather work, \
         too; NAME.tool.map(list) calls side by side). Results are plain values, failures \
         exceptions. help(NAME) and search_tools describe them.",
    );
    let list = |form: Form| -> String {
        let mut list = String::new();
        for server in servers {
            list.extend(["\n", &server.module, ":", &form(server)]);
        }
        list
    };
    // Those that are counted only fit into no list of names.
    let is_counted =
        servers.iter().any(|server| server.tools.is_some() && server.signatures.is_none());
    let forms: [Form; 3] = [signatures, names, count];
    let lists = forms.into_iter().skip(if is_counted { 2 } else { 0 }).map(list);
    let mut fitting = lists.filter(|list| list.len() <= CATALOGUE_CHARS);
    text.push_str(&fitting.next().unwrap_or_else(|| format!("\n{} servers", servers.len())));
    text
}

/// A way to list the tools of a server.
type Form = fn(&ServerFacts) -> String;

fn signatures(server: &ServerFacts) -> String {
    server.signatures.iter().flatten().flat_map(|tool| ["\n  ", tool]).collect()
}

fn names(server: &ServerFacts) -> String {
    let Some(tools) = &server.signatures else { return String::new() };
    let names = tools.iter().map(|tool| tool.split('(').next().unwrap_or_default());
    format!(" {}", names.collect::<Vec<_>>().join(", "))
}

fn count(server: &ServerFacts) -> String {
    server.tools.map_or_else(String::new, |tools| format!(" {tools} tools"))
}

fn search_tools() -> Tool {
    let input = json!({
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "Words of what the tool should do."},
            "server": {"type": "string", "description": "Only tools of this server's module."},
            "limit": {"type": "integer", "description": "At most so many: 1 to 50, usually 10."},
        },
        "required": ["query"],
    });
    let annotations = ToolAnnotations::with_title("Search the tools of other servers")
        .read_only(true)
        .open_world(false);
    Tool::new(
        SEARCH_TOOLS,
        "Finds functions that code of run_python can call, and shows them as Python stubs.",
        object(input),
    )
    .with_title("Search the tools of other servers")
    .with_annotations(annotations)
}

fn run_input(runner: Runner, code: &str, facts: &Facts) -> Json {
    let most = in_words(facts.timeout).map_or_else(
        || "no limit unless you give one".to_owned(),
        |time| format!("at most {time}, which is also the default"),
    );
    json!({
        "type": "object",
        "properties": {
            runner.code().0: {"type": "string", "description": code},
            "session": {
                "type": "string",
                "description": "The `session` of an earlier result, to go on with its variables.",
            },
            "timeout": {
                "type": "number",
                "description": format!(
                    "The most seconds that the code may take: {most}. Then it is interrupted, and \
                     the session goes on."
                ),
            },
        },
        "required": [runner.code().0],
    })
}

fn run_output() -> Json {
    let text = |about: &str| json!({"type": "string", "description": about});
    // Not `"type": [...]`, which some clients' dialects of JSON Schema do not have.
    let or_null = |schema: Json| json!([schema, {"type": "null"}]);
    let optional =
        |about: &str| json!({"anyOf": or_null(json!({"type": "string"})), "description": about});
    json!({
        "type": "object",
        "properties": {
            "status": {
                "type": "string",
                "enum": ["ok", "error", "timeout", "interrupted", "limit", "died"],
                "description": "`ok`, or why the code did not run to its end.",
            },
            "session": optional(
                "Pass it as `session` to go on with the variables; null if the session has ended."
            ),
            "value": {"description": "The value of the last expression, if JSON can say it."},
            "repr": optional("Its repr; null if there is no value."),
            "stdout": text("What the code printed, perhaps cut."),
            "stderr": text("What it wrote to sys.stderr, perhaps cut."),
            "error": {"anyOf": or_null(json!({
                "type": "object",
                "properties": {
                    "type": {"type": "string"},
                    "message": {"type": "string"},
                    "traceback": {"type": "string"},
                },
                "required": ["type", "message", "traceback"],
                "additionalProperties": false,
            }))},
            "truncated": {
                "type": "object",
                "description": "For each part that was cut, the resource that has it whole.",
                "additionalProperties": {"type": "string"},
            },
            "calls": {
                "type": "array",
                "description": "The calls of other servers' tools that the code has made; those \
                                of one tool in a row that ended alike are one entry.",
                "items": {
                    "type": "object",
                    "properties": {
                        "tool": {"type": "string"},
                        "status": {
                            "type": "string",
                            "enum": ["ok", "error", "refused", "cancelled"],
                        },
                        "count": {"type": "integer"},
                        "ms": {"type": "integer"},
                    },
                    "required": ["tool", "status", "count", "ms"],
                    "additionalProperties": false,
                },
            },
            "images": {"type": "integer", "description": "How many images the result has."},
            "files": {
                "type": "array",
                "items": {"type": "string"},
                "description": "The files that the code has written, in the sandbox.",
            },
            "ms": {"type": "integer", "description": "How long the code ran."},
            "lost_runs": {
                "type": "integer",
                "description": "If the code has ended its interpreter: how many runs the session \
                                has lost, with this one.",
            },
            "ignored": {
                "type": "array",
                "items": {"type": "string"},
                "description": "The arguments of the call that the tool does not have.",
            },
        },
        "required": [
            "status", "session", "value", "repr", "stdout", "stderr", "error", "truncated",
            "calls", "images", "files", "ms",
        ],
        "additionalProperties": false,
    })
}

fn close_session() -> Tool {
    let input = json!({
        "type": "object",
        "properties": {
            "session": {"type": "string", "description": "The `session` of an earlier result."},
        },
        "required": ["session"],
    });
    let output = json!({
        "type": "object",
        "properties": {"closed": {"type": "boolean"}},
        "required": ["closed"],
        "additionalProperties": false,
    });
    let annotations = ToolAnnotations::with_title("Close a Python session")
        .read_only(false)
        .destructive(true)
        .idempotent(true)
        .open_world(false);
    Tool::new(CLOSE_SESSION, "Ends a session and forgets its variables and files.", object(input))
        .with_title("Close a Python session")
        .with_raw_output_schema(object(output))
        .with_annotations(annotations)
}

fn write_file() -> Tool {
    let text = |about: &str| json!({"type": "string", "description": about});
    let input = json!({
        "type": "object",
        "properties": {
            "path": text("Where the file is in the sandbox. Relative ones are in /home/user."),
            "text": text("What is in it."),
            "data": text("Instead of `text`: its bytes in base64."),
            "session": text("The `session` of an earlier result. Without it a new one is started."),
        },
        "required": ["path"],
    });
    let output = json!({
        "type": "object",
        "properties": {
            "session": {"type": "string"},
            "path": {"type": "string"},
            "bytes": {"type": "integer"},
        },
        "required": ["session", "path", "bytes"],
        "additionalProperties": false,
    });
    let annotations = ToolAnnotations::with_title("Write a file for Python")
        .read_only(false)
        .destructive(true)
        .idempotent(true)
        .open_world(false);
    let about = "Writes a file into the sandbox of run_python, for code of the same session.";
    Tool::new(WRITE_FILE, about, object(input))
        .with_title("Write a file for Python")
        .with_raw_output_schema(object(output))
        .with_annotations(annotations)
}

fn object(schema: Json) -> Arc<JsonObject> {
    match schema {
        Json::Object(object) => Arc::new(object),
        _ => Arc::default(),
    }
}

/// Longer times are no limits.
const LONGEST: Duration = Duration::from_hours(24 * 365);

/// Returns a time in words; `None` if it is no limit.
fn in_words(time: Duration) -> Option<String> {
    const DAY: u64 = 24 * 60 * 60;
    let seconds = time.as_secs();
    (time <= LONGEST).then(|| {
        if seconds > DAY && seconds.is_multiple_of(DAY) {
            format!("{} days", seconds / DAY)
        } else if seconds >= 60 && seconds.is_multiple_of(60) {
            format!("{} minutes", seconds / 60)
        } else {
            format!("{} seconds", time.as_secs_f64())
        }
    })
}
