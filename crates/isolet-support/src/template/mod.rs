//! Texts with variables: `${NAME}`, `${NAME:-default}`, `${env:NAME}`, `${file:PATH}` and
//! `${command:COMMAND}`.

mod environment;
mod hidden;

use std::fs;
use std::process::{Command, Stdio};

pub use self::environment::{Environment, System};
pub use self::hidden::Secret;

/// The maximum size of a file and of a command's output that a variable stands for, in bytes.
const MAX_BYTES: usize = 64 * 1024;

/// Whose file a text is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// isolet's own: the user wrote it for this purpose.
    Own,
    /// Another client's, or a project's. Its `${command:…}` is refused.
    Imported,
}

/// A text of a configuration. Variables of the environment have been replaced; files and commands
/// are read when the server is started.
#[derive(Clone, Debug)]
pub struct Template {
    /// The text as it was written, for the key of the server.
    raw: Secret,
    parts: Vec<Part>,
}

#[derive(Clone, Debug)]
enum Part {
    Text(Secret),
    /// The value of a variable.
    Value(Secret),
    File(String),
    Command(String),
}

/// A template's text, with what its variables stood for.
pub struct Filled {
    pub text: String,
    pub values: Vec<String>,
}

impl Template {
    /// Makes a template of a text without variables.
    pub fn literal(text: impl Into<String>) -> Self {
        let raw = Secret::new(text);
        Self { parts: vec![Part::Text(raw.clone())], raw }
    }

    /// Reads a template. `Err` says which variable cannot be used, and why.
    pub fn parse(text: &str, environment: &Environment, origin: Origin) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            if start > 0 {
                parts.push(Part::Text(Secret::new(&rest[..start])));
            }
            let inner = &rest[start + 2..];
            let end = closing(inner).ok_or("`${` has no `}`, it needs one")?;
            parts.push(variable(&inner[..end], environment, origin)?);
            rest = &inner[end + 1..];
        }
        if !rest.is_empty() || parts.is_empty() {
            parts.push(Part::Text(Secret::new(rest)));
        }
        Ok(Self { raw: Secret::new(text), parts })
    }

    /// Returns the text as it was written.
    pub fn raw(&self) -> &str {
        self.raw.expose()
    }

    /// Reads the files and runs the commands. Blocks. `Err` says which of them failed.
    pub fn fill(&self, environment: &Environment) -> Result<Filled, String> {
        let mut filled = Filled { text: String::new(), values: Vec::new() };
        for part in &self.parts {
            let value = match part {
                Part::Text(text) => {
                    filled.text.push_str(text.expose());
                    continue;
                }
                Part::Value(value) => value.expose().to_owned(),
                Part::File(path) => read(path)?,
                Part::Command(command) => run(command, environment)?,
            };
            filled.text.push_str(&value);
            filled.values.push(value);
        }
        Ok(filled)
    }
}

/// Returns the place of the brace that closes the variable, past inner pairs of braces.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, letter) in text.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => return Some(at),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

fn variable(inner: &str, environment: &Environment, origin: Origin) -> Result<Part, String> {
    match inner.split_once(':') {
        Some(("input", id)) => Err(format!(
            "`${{input:{id}}}` is a question of an editor and isolet asks none, write \
             `${{env:NAME}}` in its place"
        )),
        Some(("file", path)) => Ok(Part::File(expand_home(path, environment))),
        Some(("command", _)) if origin == Origin::Imported => Err(format!(
            "`${{{inner}}}` is in an imported file and would run a command, it can only be in a \
             file of isolet's own"
        )),
        Some(("command", command)) => Ok(Part::Command(command.to_owned())),
        Some(("env", name)) => value(name, None, environment),
        Some((name, default)) if default.starts_with('-') => {
            value(name, Some(&default[1..]), environment)
        }
        Some((kind, _)) => Err(format!(
            "`${{{inner}}}` has the unknown kind `{kind}`, the kinds are env, file and command"
        )),
        None if inner == "userHome" => value("HOME", None, environment),
        None => value(inner, None, environment),
    }
}

fn value(name: &str, default: Option<&str>, environment: &Environment) -> Result<Part, String> {
    let set = environment.get(name).filter(|value| default.is_none() || !value.is_empty());
    match (set, default) {
        (Some(value), _) => Ok(Part::Value(Secret::new(value))),
        (None, Some(default)) => Ok(Part::Text(Secret::new(default))),
        (None, None) => {
            Err(format!("the variable `{name}` is not set, set it or write `${{{name}:-default}}`"))
        }
    }
}

fn expand_home(path: &str, environment: &Environment) -> String {
    match (path.strip_prefix("~/"), environment.get("HOME")) {
        (Some(rest), Some(home)) => format!("{home}/{rest}"),
        _ => path.to_owned(),
    }
}

fn read(path: &str) -> Result<String, String> {
    let bytes = fs::read(path).map_err(|error| format!("cannot read `{path}`: {error}"))?;
    let shown = format!("the content of `{path}`");
    text_of(bytes, &shown)
}

/// Runs a command by the shell, as the user would, and returns its first output without the newline
/// at its end.
fn run(command: &str, environment: &Environment) -> Result<String, String> {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).env_clear().envs(environment.all());
    // The terminal of the command is not the user's: stdin may be the protocol's.
    shell.stdin(Stdio::null()).stderr(Stdio::null());
    let output = shell.output();
    let output = output.map_err(|error| format!("cannot run `{command}`: {error}"))?;
    if !output.status.success() {
        return Err(format!("`{command}` ended with {}", output.status));
    }
    let shown = format!("the output of `{command}`");
    text_of(output.stdout, &shown)
}

fn text_of(bytes: Vec<u8>, shown: &str) -> Result<String, String> {
    if bytes.len() > MAX_BYTES {
        return Err(format!("{shown} has {} bytes, the limit is {MAX_BYTES}", bytes.len()));
    }
    let text = String::from_utf8(bytes).map_err(|_| format!("{shown} is not UTF-8"))?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment() -> Environment {
        Environment::new([("TOKEN", "t0ken"), ("EMPTY", ""), ("HOME", "/h"), ("PATH", "/bin")])
    }

    fn filled(text: &str) -> Result<String, String> {
        let environment = environment();
        Ok(Template::parse(text, &environment, Origin::Own)?.fill(&environment)?.text)
    }

    #[test]
    fn every_form_of_a_variable_is_known() {
        for (text, expected) in [
            ("plain $ text", "plain $ text"),
            ("", ""),
            ("${TOKEN}", "t0ken"),
            ("a${env:TOKEN}b${TOKEN}", "at0kenbt0ken"),
            ("${MISSING:-d:e}", "d:e"),
            ("${EMPTY:-d}", "d"),
            ("${TOKEN:-d}", "t0ken"),
            ("${userHome}/x", "/h/x"),
            ("${command:printf '%s' '{a}'}", "{a}"),
            ("${command:echo \"$TOKEN\"}", "t0ken"),
        ] {
            assert_eq!(filled(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_file_is_read_when_the_server_starts() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = format!("Bearer ${{file:{}}}", file.path().display());
        let template = Template::parse(&text, &environment(), Origin::Imported).unwrap();
        fs::write(file.path(), "abc\n").unwrap();
        assert_eq!(template.fill(&environment()).unwrap().text, "Bearer abc");
    }

    #[test]
    fn a_variable_that_cannot_be_used_is_named() {
        let wrong = |text: &str| filled(text).unwrap_err();
        assert!(wrong("${NOPE}").starts_with("the variable `NOPE` is not set"));
        assert!(wrong("${input:gh-token}").contains("`${input:gh-token}`"));
        assert!(wrong("${vault:x}").contains("unknown kind `vault`"));
        assert!(wrong("${TOKEN").contains("has no `}`"));
        assert!(wrong("${command:exit 3}").contains("`exit 3` ended with"));
        assert!(wrong("${file:/no/such}").contains("cannot read `/no/such`"));
    }

    #[test]
    fn an_imported_file_runs_no_command() {
        let refused = Template::parse("${command:id}", &environment(), Origin::Imported);
        assert!(refused.unwrap_err().contains("imported"));
    }

    #[test]
    fn a_template_is_not_shown() {
        let template = Template::parse("a ${TOKEN}", &environment(), Origin::Own).unwrap();
        assert!(!format!("{template:?}").contains("t0ken"), "{template:?}");
    }
}
