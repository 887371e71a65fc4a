//! Decides which calls are allowed, which are denied, and which need a person.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::pin::Pin;
use std::sync::Mutex;

use crate::config::ServerConfig;
use isolet::SessionHandle;
use isolet::Value;
use isolet::internals::lock;
use isolet::{Error, ErrorKind};

/// The maximum number of sessions whose approvals are remembered.
const MAX_SESSIONS: usize = 10_000;

/// The verdict of a rule on a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The call is made.
    Allow,
    /// The call is made if the [`Approver`] says so.
    Ask,
    /// The call is refused.
    Deny,
}

/// A rule for the tools whose `SERVER.TOOL` matches a glob: `*` is any text, `?` any character.
///
/// The name of the tool is the server's own or that of Python.
///
/// ```
/// use isolet_mcp::Rule;
///
/// let rule = Rule::allow("github.get_*")?;
/// assert_eq!(rule.pattern(), "github.get_*");
/// assert!(Rule::allow("github").is_err());
/// # Ok::<(), isolet::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pattern: String,
    verdict: Verdict,
}

impl Rule {
    /// Makes a rule that allows calls.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if the pattern names no server and tool.
    pub fn allow(pattern: impl Into<String>) -> Result<Self, Error> {
        Self::new(pattern.into(), Verdict::Allow)
    }

    /// Makes a rule that has a person asked before each call.
    ///
    /// # Errors
    ///
    /// As [`allow`](Self::allow).
    pub fn ask(pattern: impl Into<String>) -> Result<Self, Error> {
        Self::new(pattern.into(), Verdict::Ask)
    }

    /// Makes a rule that denies calls and overrides all other rules.
    ///
    /// # Errors
    ///
    /// As [`allow`](Self::allow).
    pub fn deny(pattern: impl Into<String>) -> Result<Self, Error> {
        Self::new(pattern.into(), Verdict::Deny)
    }

    fn new(pattern: String, verdict: Verdict) -> Result<Self, Error> {
        let parts = pattern.split_once('.');
        if !parts.is_some_and(|(server, tool)| !server.is_empty() && !tool.is_empty()) {
            return Err(Error::new(
                ErrorKind::Config,
                format!(
                    "the rule `{pattern}` names no tool, it is written SERVER.TOOL, as in `x.*`"
                ),
            ));
        }
        Ok(Self { pattern, verdict })
    }

    /// Returns the glob.
    #[must_use]
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// Returns the verdict of the rule.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.verdict
    }
}

/// The rule, person or check that decided about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecidedBy {
    /// A rule of the server's configuration, with its glob.
    Config(String),
    /// A [`Rule`] of the hub, with its glob.
    Rule(String),
    /// The server's hint that the tool only reads, which the configuration trusts.
    Hint,
    /// No rule: a person has to be asked.
    Default,
    /// The approver was asked.
    Approver,
    /// The approver had allowed the tool for the run or the session.
    Earlier,
    /// The tool differs from the accepted one.
    Pin,
    /// The run has made as many calls as it may.
    Limit,
    /// The arguments are not those of the tool.
    Arguments,
}

impl fmt::Display for DecidedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(glob) => write!(f, "the configuration's `{glob}`"),
            Self::Rule(glob) => write!(f, "the rule `{glob}`"),
            Self::Hint => f.write_str("the server's hint"),
            Self::Default => f.write_str("the default"),
            Self::Approver => f.write_str("the approver"),
            Self::Earlier => f.write_str("an earlier approval"),
            Self::Pin => f.write_str("the pins"),
            Self::Limit => f.write_str("the limit of calls"),
            Self::Arguments => f.write_str("the check of the arguments"),
        }
    }
}

/// A call that a person has to decide about.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Ask {
    /// The session. [`settled`](SessionHandle::settled) waits for the calls that run side by side
    /// with this one, to ask about all of them at once.
    pub session: SessionHandle,
    /// The number of the run, as [`ToolContext::run_id`](isolet::ToolContext::run_id).
    pub run_id: u64,
    /// The server's name in the configuration.
    pub server: String,
    /// The tool's name, as the server has it.
    pub tool: String,
    /// The tool's name in Python, which rules may have as well.
    pub python_name: String,
    /// The arguments exactly as they are sent if the call is allowed: a dict by the server's names.
    pub arguments: Value,
}

impl Ask {
    /// Returns the pattern of a [`Rule`] for this tool and no other: its name, or that of Python if
    /// the other one has more than letters, digits and a few marks.
    #[must_use]
    pub fn pattern(&self) -> String {
        pattern(&self.server, &self.tool, &self.python_name)
    }
}

/// Returns the pattern of a rule for a tool.
pub(crate) fn pattern(server: &str, tool: &str, python: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./".contains(letter);
    let name = if tool.chars().all(is_plain) { tool } else { python };
    format!("{server}.{name}")
}

/// The decision of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// The call is made; the next one is asked about again.
    Once,
    /// All calls of this tool in this run are made.
    ForRun,
    /// All calls of this tool in this session are made.
    ForSession,
    /// The call is refused, for this reason.
    No(String),
}

/// The future of a [`Decision`].
pub type DecisionFuture<'a> = Pin<Box<dyn Future<Output = Decision> + Send + 'a>>;

/// Decides about the calls that need a person.
///
/// Python's stack waits for the decision. Calls that run concurrently ask concurrently, so that one
/// prompt can list them. The future is dropped when the run ends.
pub trait Approver: Send + Sync {
    /// Decides about a call.
    fn approve(&self, ask: Ask) -> DecisionFuture<'_>;
}

/// Functions decide at once.
impl<F: Fn(Ask) -> Decision + Send + Sync> Approver for F {
    fn approve(&self, ask: Ask) -> DecisionFuture<'_> {
        let decision = self(ask);
        Box::pin(std::future::ready(decision))
    }
}

/// Returns the verdict of the rules on a tool, with its names of the server and of Python.
pub(crate) fn decide(
    server: &ServerConfig,
    rules: &[Rule],
    (tool, python): (&str, &str),
    says_read_only: bool,
) -> (Verdict, DecidedBy) {
    let matches_tool = |glob: &str| matches(glob, tool) || matches(glob, python);
    let name = server.name();
    let (full, full_python) = (format!("{name}.{tool}"), format!("{name}.{python}"));
    let matches_full = |glob: &str| matches(glob, &full) || matches(glob, &full_python);

    let verdicts = [Verdict::Allow, Verdict::Ask, Verdict::Deny];
    // The most specific glob counts: the one with the most literal characters. Of two that are
    // equally specific, the stricter one counts. A denial is final.
    let configured = verdicts
        .into_iter()
        .zip(server.globs())
        .flat_map(|(verdict, globs)| globs.iter().map(move |glob| (verdict, glob)))
        .filter(|(_, glob)| matches_tool(glob))
        .max_by_key(|(verdict, glob)| {
            let letters = glob.chars().filter(|letter| !"*?".contains(*letter)).count();
            (*verdict == Verdict::Deny, letters, *verdict)
        });
    let denied =
        rules.iter().find(|rule| rule.verdict == Verdict::Deny && matches_full(&rule.pattern));
    let first = rules.iter().find(|rule| matches_full(&rule.pattern));
    match (configured, denied.or(first)) {
        (Some((Verdict::Deny, glob)), _) => (Verdict::Deny, DecidedBy::Config(glob.clone())),
        (_, Some(rule)) if rule.verdict == Verdict::Deny => {
            (Verdict::Deny, DecidedBy::Rule(rule.pattern.clone()))
        }
        (Some((verdict, glob)), _) => (verdict, DecidedBy::Config(glob.clone())),
        (None, Some(rule)) => (rule.verdict, DecidedBy::Rule(rule.pattern.clone())),
        (None, None) if server.trusts_hints() && says_read_only => {
            (Verdict::Allow, DecidedBy::Hint)
        }
        (None, None) => (Verdict::Ask, DecidedBy::Default),
    }
}

/// Returns `true` if a glob matches all of a text.
fn matches(glob: &str, text: &str) -> bool {
    let (glob, text): (Vec<char>, Vec<char>) = (glob.chars().collect(), text.chars().collect());
    let (mut at, mut from) = (0, 0);
    // The positions to continue from if the text after the last star does not match.
    let mut star: Option<(usize, usize)> = None;
    while from < text.len() {
        match glob.get(at) {
            Some('*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(letter) if *letter == '?' || *letter == text[from] => {
                at += 1;
                from += 1;
            }
            _ => {
                let Some((place, taken)) = star else { return false };
                star = Some((place, taken + 1));
                at = place + 1;
                from = taken + 1;
            }
        }
    }
    glob[at..].iter().all(|letter| *letter == '*')
}

/// The approvals that hold for longer than one call, and the number of calls that runs have made.
#[derive(Default)]
pub(crate) struct Grants(Mutex<BTreeMap<u64, Session>>);

#[derive(Default)]
struct Session {
    run: u64,
    in_run: HashSet<(String, String)>,
    always: HashSet<(String, String)>,
    /// The number of calls in the run, by server.
    calls: HashMap<String, u64>,
}

impl Grants {
    /// Returns `true` if the tool was approved before.
    pub(crate) fn has(&self, session: u64, run: u64, server: &str, tool: &str) -> bool {
        let key = (server.to_owned(), tool.to_owned());
        self.with(session, run, |session| {
            session.in_run.contains(&key) || session.always.contains(&key)
        })
    }

    /// Remembers a decision about the tool.
    pub(crate) fn add(&self, ask: &Ask, decision: &Decision) {
        let key = || (ask.server.clone(), ask.tool.clone());
        self.with(ask.session.id(), ask.run_id, |session| match decision {
            Decision::ForRun => _ = session.in_run.insert(key()),
            Decision::ForSession => _ = session.always.insert(key()),
            Decision::Once | Decision::No(_) => {}
        });
    }

    /// Counts a call, and returns its number in the run.
    pub(crate) fn count(&self, session: u64, run: u64, server: &str) -> u64 {
        self.with(session, run, |session| {
            let calls = session.calls.entry(server.to_owned()).or_default();
            *calls += 1;
            *calls
        })
    }

    pub(crate) fn forget(&self, session: u64) {
        lock(&self.0).remove(&session);
    }

    fn with<T>(&self, session: u64, run: u64, f: impl FnOnce(&mut Session) -> T) -> T {
        let mut sessions = lock(&self.0);
        // Numbers only grow, so the first is the oldest.
        if sessions.len() >= MAX_SESSIONS && !sessions.contains_key(&session) {
            sessions.pop_first();
        }
        let session = sessions.entry(session).or_default();
        if session.run != run {
            session.run = run;
            session.in_run.clear();
            session.calls.clear();
        }
        f(session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolet::internals::no_session;

    #[test]
    fn a_glob_matches_whole_texts() {
        for (glob, text, expected) in [
            ("*", "", true),
            ("get_*", "get_x", true),
            ("get_*", "xget_x", false),
            ("*_id", "a_id_id", true),
            ("a*b*c", "a1b2b3c", true),
            ("a*b*c", "a1b2", false),
            ("?", "ü", true),
            ("?", "", false),
            ("a", "a", true),
            ("a", "ab", false),
        ] {
            assert_eq!(matches(glob, text), expected, "{glob} {text}");
        }
    }

    fn server() -> ServerConfig {
        ServerConfig::command("s", "x", [""; 0])
    }

    fn verdict(server: &ServerConfig, rules: &[Rule], tool: &str) -> Verdict {
        decide(server, rules, (tool, &tool.replace('-', "_")), true).0
    }

    #[test]
    fn without_a_rule_a_person_is_asked() {
        assert_eq!(verdict(&server(), &[], "a"), Verdict::Ask);
        assert_eq!(verdict(&server().trust_hints(), &[], "a"), Verdict::Allow);
        let writes = decide(&server().trust_hints(), &[], ("a", "a"), false);
        assert_eq!(writes, (Verdict::Ask, DecidedBy::Default));
    }

    #[test]
    fn a_denial_is_final_and_the_configuration_precedes_the_rules() {
        let rules = [Rule::allow("s.*").unwrap(), Rule::deny("s.drop*").unwrap()];
        let server = server().allow("drop-x").ask("get-*").deny("rm*").trust_hints();
        assert_eq!(verdict(&server, &rules, "drop-x"), Verdict::Deny);
        assert_eq!(verdict(&server, &rules, "rm"), Verdict::Deny);
        assert_eq!(verdict(&server, &rules, "get-a"), Verdict::Ask);
        assert_eq!(verdict(&server, &rules, "other"), Verdict::Allow);
        assert_eq!(verdict(&server, &[Rule::ask("*.other").unwrap()], "other"), Verdict::Ask);
    }

    #[test]
    fn the_first_rule_counts_and_the_most_specific_of_the_configuration() {
        let rules = [Rule::ask("s.get_x").unwrap(), Rule::allow("s.get_*").unwrap()];
        assert_eq!(verdict(&server(), &rules, "get-x"), Verdict::Ask);
        assert_eq!(verdict(&server(), &rules, "get-y"), Verdict::Allow);
        assert_eq!(verdict(&server().allow("*").ask("del*"), &[], "delete"), Verdict::Ask);
        assert_eq!(verdict(&server().allow("get*").ask("*"), &[], "get"), Verdict::Allow);
        assert_eq!(verdict(&server().allow("get").ask("get"), &[], "get"), Verdict::Ask);
    }

    #[test]
    fn an_approval_lasts_as_long_as_it_says() {
        let grants = Grants::default();
        let ask = |run_id| Ask {
            session: no_session(1),
            run_id,
            server: "s".to_owned(),
            tool: "t".to_owned(),
            python_name: "t".to_owned(),
            arguments: Value::None,
        };
        grants.add(&ask(1), &Decision::Once);
        assert!(!grants.has(1, 1, "s", "t"));
        grants.add(&ask(1), &Decision::ForRun);
        assert!(grants.has(1, 1, "s", "t") && !grants.has(1, 1, "s", "u"));
        assert!(!grants.has(2, 1, "s", "t"));
        assert!(!grants.has(1, 2, "s", "t"));
        grants.add(&ask(2), &Decision::ForSession);
        assert!(grants.has(1, 3, "s", "t"));
        grants.forget(1);
        assert!(!grants.has(1, 3, "s", "t"));
    }

    #[test]
    fn calls_are_counted_by_run() {
        let grants = Grants::default();
        let counted = [(1, 1), (1, 1), (1, 2), (2, 3)].map(|(s, run)| grants.count(s, run, "x"));
        assert_eq!(counted, [1, 2, 1, 1]);
    }
}
