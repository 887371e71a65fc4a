//! One server: how to reach it, and what its tools may do.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Environment, Origin, read};
use crate::config::redact::Redactor;
use crate::support::words;
use isolet::{Error, ErrorKind};
use isolet_support::template::Template;

/// A server and the rules for its tools.
///
/// ```
/// use std::time::Duration;
/// use isolet_mcp::ServerConfig;
///
/// let server = ServerConfig::command("files", "mcp-server-files", ["/data"])
///     .env("MODE", "quick")
///     .allow("read_*")
///     .deny("delete_*")
///     .timeout(Duration::from_secs(30));
/// assert_eq!(server.name(), "files");
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct ServerConfig {
    pub(super) name: String,
    pub(super) transport: Transport,
    pub(super) disabled: bool,
    pub(super) allow: Vec<String>,
    pub(super) ask: Vec<String>,
    pub(super) deny: Vec<String>,
    pub(super) max_calls: Option<u64>,
    pub(super) max_answer_bytes: Option<usize>,
    pub(super) timeout: Option<Duration>,
    pub(super) trust_hints: bool,
    /// The project whose file it is from, if it is from one.
    pub(super) project: Option<PathBuf>,
    /// The environment of its process, and of its variables.
    pub(super) environment: Environment,
}

/// How to reach a server. Commands and files in it have not been read yet.
#[derive(Clone, Debug)]
pub(crate) enum Transport {
    Stdio {
        program: Template,
        arguments: Vec<Template>,
        env: BTreeMap<String, Template>,
        env_file: Option<Template>,
        directory: Option<Template>,
    },
    Http {
        url: Template,
        headers: BTreeMap<String, Template>,
    },
}

/// How to reach a server, with all secrets in place.
pub(crate) enum Reached {
    Stdio {
        program: String,
        arguments: Vec<String>,
        env: BTreeMap<String, String>,
        directory: Option<PathBuf>,
    },
    Http {
        url: String,
        headers: BTreeMap<String, String>,
    },
}

impl ServerConfig {
    /// Makes a server that is a process and speaks over its standard streams.
    ///
    /// It gets `PATH`, `HOME`, `LANG` and `TMPDIR` of an environment only by
    /// [`environment`](Self::environment).
    pub fn command<A: Into<String>>(
        name: impl Into<String>,
        program: impl Into<String>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        let arguments = arguments.into_iter().map(Template::literal).collect();
        Self::new(
            name.into(),
            Transport::Stdio {
                program: Template::literal(program),
                arguments,
                env: BTreeMap::new(),
                env_file: None,
                directory: None,
            },
        )
    }

    /// Makes a server that is reached by streamable HTTP.
    pub fn http(name: impl Into<String>, url: impl Into<String>) -> Self {
        let (url, headers) = (Template::literal(url), BTreeMap::new());
        Self::new(name.into(), Transport::Http { url, headers })
    }

    /// Reads a server from an option of a command: `NAME=URL` or `NAME=COMMAND ARGUMENT…`.
    /// Arguments with spaces are quoted as for a shell. Variables are replaced as in a file.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if the text has another form.
    pub fn from_text(text: &str, environment: &Environment) -> Result<Self, Error> {
        let refuse = |reason: String| {
            Err(Error::new(ErrorKind::Config, format!("the server `{text}` {reason}")))
        };
        let Some((name, rest)) = text.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return refuse("has no name, it is written NAME=COMMAND or NAME=URL".to_owned());
        };
        let read = |text: &str| Template::parse(text, environment, Origin::Own);
        let transport = if rest.starts_with("http://") || rest.starts_with("https://") {
            read(rest).map(|url| Transport::Http { url, headers: BTreeMap::new() })
        } else {
            words::split(rest).map_err(|reason| format!("it {reason}")).and_then(|words| {
                let mut words = words.iter().map(|word| read(word));
                let program = words.next().ok_or("it has no command")??;
                if let Some((scheme, _)) = program.raw().split_once("://") {
                    return Err(format!("`{scheme}` is no scheme of MCP, they are http and https"));
                }
                let arguments = words.collect::<Result<_, _>>()?;
                let (env, env_file, directory) = (BTreeMap::new(), None, None);
                Ok(Transport::Stdio { program, arguments, env, env_file, directory })
            })
        };
        match transport {
            Ok(transport) => {
                Ok(Self::new(name.to_owned(), transport).environment(environment.clone()))
            }
            Err(reason) => refuse(format!("cannot be used: {reason}")),
        }
    }

    pub(super) fn new(name: String, transport: Transport) -> Self {
        Self {
            name,
            transport,
            disabled: false,
            allow: Vec::new(),
            ask: Vec::new(),
            deny: Vec::new(),
            max_calls: None,
            max_answer_bytes: None,
            timeout: None,
            trust_hints: false,
            project: None,
            environment: Environment::default(),
        }
    }

    /// Makes it one of a project's file, in whose directory its process starts.
    pub(super) fn of_project(&mut self, project: &Path, shown: &str) {
        if let Transport::Stdio { directory: directory @ None, .. } = &mut self.transport {
            *directory = Some(Template::literal(shown));
        }
        self.project = Some(project.to_owned());
    }

    /// Sets the environment from which the process gets `PATH`, `HOME`, `LANG` and `TMPDIR`.
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }

    /// Sets a variable of the process. Has no effect on a server that is reached by HTTP.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        if let Transport::Stdio { env, .. } = &mut self.transport {
            env.insert(name.into(), Template::literal(value));
        }
        self
    }

    /// Sets a header of every request. Has no effect on a server that is a process.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        if let Transport::Http { headers, .. } = &mut self.transport {
            headers.insert(name.into(), Template::literal(value));
        }
        self
    }

    /// Allows the tools whose names match a glob.
    pub fn allow(mut self, glob: impl Into<String>) -> Self {
        self.allow.push(glob.into());
        self
    }

    /// Has a person asked before each call of the tools whose names match a glob.
    pub fn ask(mut self, glob: impl Into<String>) -> Self {
        self.ask.push(glob.into());
        self
    }

    /// Denies the tools whose names match a glob. Overrides all other rules.
    pub fn deny(mut self, glob: impl Into<String>) -> Self {
        self.deny.push(glob.into());
        self
    }

    /// Sets how many calls of this server's tools a run may make.
    ///
    /// Default: no limit.
    pub fn max_calls(mut self, calls: u64) -> Self {
        self.max_calls = Some(calls);
        self
    }

    /// Sets how many bytes an answer may have.
    ///
    /// Default: that of the hub.
    pub fn max_answer_bytes(mut self, bytes: usize) -> Self {
        self.max_answer_bytes = Some(bytes);
        self
    }

    /// Sets the time limit of a call. The wait for an approval does not count.
    ///
    /// Default: that of the hub.
    pub fn timeout(mut self, time: Duration) -> Self {
        self.timeout = Some(time);
        self
    }

    /// Believes the server's `readOnlyHint`: such tools need no approval.
    ///
    /// Default: off, because a server can claim anything.
    pub fn trust_hints(mut self) -> Self {
        self.trust_hints = true;
        self
    }

    /// Returns the server's name, as the configuration has it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns `true` if the configuration has the server switched off.
    #[must_use]
    pub fn is_disabled(&self) -> bool {
        self.disabled
    }

    /// Returns the text to show a person before the server is used: its command, without the values
    /// of variables, or the origin of its URL.
    #[must_use]
    pub fn shown(&self) -> String {
        match &self.transport {
            Transport::Stdio { program, arguments, .. } => {
                let words = std::iter::once(program).chain(arguments).map(Template::raw);
                words.collect::<Vec<_>>().join(" ")
            }
            Transport::Http { url, .. } => {
                let url = url.raw();
                url.split(['?', '#']).next().unwrap_or_default().to_owned()
            }
        }
    }

    /// Returns further text to show a person before the server is used: the names of variables and
    /// headers that the configuration sets, and which tools it allows without a question.
    #[must_use]
    pub fn settings(&self) -> Vec<String> {
        let (Transport::Stdio { env: named, .. } | Transport::Http { headers: named, .. }) =
            &self.transport;
        let allowed = self.allow.iter().map(|glob| format!("allow {glob}"));
        let trusted = self.trust_hints.then(|| "trustHints".to_owned());
        named.keys().cloned().chain(allowed).chain(trusted).collect()
    }

    /// Returns the key of the user's acceptance: the server, and its rules.
    pub(super) fn accepted_key(&self) -> String {
        // The form of lists has quotes and escapes, so that two are never the same text.
        let rules = format!("{:?} {} {:?}", self.globs(), self.trust_hints, self.max_calls);
        // Variables that the file sets can start a program, too: `LD_PRELOAD`, `NODE_OPTIONS`.
        let variables = match &self.transport {
            Transport::Stdio { env_file: Some(file), .. } => {
                let path = file.fill(&self.environment).map(|filled| filled.text);
                format!(" {:?}", path.and_then(|path| read::env_file(Path::new(&path))))
            }
            _ => String::new(),
        };
        // The same words start another program in another project.
        let project = self.project.as_ref().map(|project| project.display().to_string());
        let project = project.map_or_else(String::new, |project| format!(" in {project:?}"));
        let text = format!("{} {rules}{variables}{project}", self.key());
        blake3::hash(text.as_bytes()).to_hex()[..32].to_owned()
    }

    /// Returns the key of everything that identifies the server.
    pub(crate) fn key(&self) -> String {
        self.digest(true)
    }

    /// Returns the key of the server, which does not depend on its secrets and its environment.
    pub(crate) fn identity(&self) -> String {
        self.digest(false)
    }

    fn digest(&self, with_secrets: bool) -> String {
        let mut hasher = blake3::Hasher::new();
        let mut text = |text: &str| {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        };
        text(&self.name);
        match &self.transport {
            Transport::Stdio { program, arguments, env, env_file, directory } => {
                text("stdio");
                std::iter::once(program).chain(arguments).for_each(|word| text(word.raw()));
                if with_secrets {
                    text("env");
                    for (name, value) in env {
                        text(name);
                        text(value.raw());
                    }
                    for path in [env_file, directory] {
                        text(path.as_ref().map_or("", Template::raw));
                    }
                }
            }
            Transport::Http { url, headers } => {
                text("http");
                text(url.raw());
                if with_secrets {
                    for (name, value) in headers {
                        text(name);
                        text(value.raw());
                    }
                }
            }
        }
        hasher.finalize().to_hex()[..32].to_owned()
    }

    /// Reads the files and runs the commands that the configuration names. Blocks. Adds the secrets
    /// to `redactor`, also if this fails.
    pub(crate) fn reach(&self, redactor: &mut Redactor) -> Result<Reached, String> {
        let environment = &self.environment;
        let mut fill = |template: &Template, name: Option<&str>| -> Result<String, String> {
            let filled = template.fill(environment)?;
            filled.values.iter().for_each(|value| redactor.add(name.unwrap_or_default(), value));
            if let Some(name) = name {
                redactor.add(name, &filled.text);
            }
            Ok(filled.text)
        };
        match &self.transport {
            Transport::Stdio { program, arguments, env, env_file, directory } => {
                let mut variables: BTreeMap<String, String> = environment
                    .passed_on()
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .collect();
                if let Some(file) = env_file {
                    let path = fill(file, None)?;
                    for (name, value) in read::env_file(Path::new(&path))? {
                        let value = fill(&Template::literal(value), Some(&name))?;
                        variables.insert(name, value);
                    }
                }
                for (name, value) in env {
                    variables.insert(name.clone(), fill(value, Some(name))?);
                }
                Ok(Reached::Stdio {
                    program: fill(program, None)?,
                    arguments: arguments.iter().map(|a| fill(a, None)).collect::<Result<_, _>>()?,
                    env: variables,
                    directory: match directory {
                        Some(directory) => Some(PathBuf::from(fill(directory, None)?)),
                        None => None,
                    },
                })
            }
            Transport::Http { url, headers } => {
                let mut filled = BTreeMap::new();
                for (name, value) in headers {
                    filled.insert(name.clone(), fill(value, Some(name))?);
                }
                let url = fill(url, None)?;
                redactor.add_url(&url);
                Ok(Reached::Http { url, headers: filled })
            }
        }
    }

    pub(crate) fn globs(&self) -> [&[String]; 3] {
        [&self.allow, &self.ask, &self.deny]
    }

    pub(crate) fn call_limit(&self) -> Option<u64> {
        self.max_calls
    }

    pub(crate) fn answer_bytes(&self) -> Option<usize> {
        self.max_answer_bytes
    }

    pub(crate) fn call_time(&self) -> Option<Duration> {
        self.timeout
    }

    pub(crate) fn trusts_hints(&self) -> bool {
        self.trust_hints
    }
}
