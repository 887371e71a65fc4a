//! Removes the paths of the node's machine from failures before a client gets them. The operator
//! gets the full message.

use std::path::PathBuf;

use crate::core::{Failure, FailureKind};

/// Replaces a path.
const HIDDEN: &str = "(a path of the node)";

/// Control groups, whose names describe how the machine is organised.
const GROUPS: &str = "/sys/fs/cgroup";

/// Receives one line for the operator of a node.
pub type Operator = Box<dyn Fn(&str) + Send + Sync>;

/// Hides the paths of a node's machine from its clients.
pub(crate) struct Discretion {
    /// The paths of the operator that guests do not see, the longest first.
    own: Vec<String>,
    operator: Option<Operator>,
}

impl Discretion {
    /// `own` are the paths of the operator's configuration. Guests see those in `shown`, so these
    /// are not secret.
    pub(crate) fn new(own: &[PathBuf], shown: &[&str], operator: Option<Operator>) -> Self {
        let canonical = own.iter().filter_map(|path| path.canonicalize().ok());
        let all: Vec<PathBuf> = canonical.chain(own.iter().cloned()).collect();
        let text = |path: PathBuf| Some(path.to_str()?.trim_end_matches('/').to_owned());
        let mut own: Vec<String> = all
            .into_iter()
            .filter(|path| path.is_absolute() && path.components().count() > 2)
            .filter_map(text)
            .filter(|path| !shown.contains(&path.as_str()))
            .chain([GROUPS.to_owned()])
            .collect();
        own.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        own.dedup();
        Self { own, operator }
    }

    /// Returns a failure in the form for clients.
    pub(crate) fn failure(&self, failure: &Failure) -> Failure {
        // These describe the machine and name no file of the guest.
        let hides_all = matches!(
            failure.kind,
            FailureKind::Start | FailureKind::Assets | FailureKind::Packages | FailureKind::Closed
        );
        let hide = |text: &str| if hides_all { without_paths(text) } else { text.to_owned() };
        let hide = |text: &str| hide(&self.without_own(text));
        let message = hide(&failure.message);
        let hint = failure.hint.as_deref().map(hide);
        if message != failure.message || hint != failure.hint {
            self.tell(&failure.message, failure.hint.as_deref());
        }
        Failure { message, hint, kind: failure.kind, session_alive: failure.session_alive }
    }

    /// Replaces the operator's paths in the reason why a run was ended. The rest of an execution
    /// comes from the guest.
    pub(crate) fn hide_own(&self, reason: &mut String) {
        let told = self.without_own(reason);
        if told != *reason {
            self.tell(reason, None);
            *reason = told;
        }
    }

    /// Tells the operator something that concerns no request.
    pub(crate) fn report(&self, text: &str) {
        if let Some(operator) = &self.operator {
            operator(text);
        }
    }

    fn tell(&self, message: &str, hint: Option<&str>) {
        if let Some(operator) = &self.operator {
            let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
            operator(&format!("a client was told this without its paths: {message}{hint}"));
        }
    }

    /// Replaces the operator's paths, and all paths beneath them.
    fn without_own(&self, text: &str) -> String {
        let mut rest = text;
        let mut told = String::with_capacity(text.len());
        while let Some((at, own)) = self.first_own(rest) {
            let (before, from) = rest.split_at(at);
            told.push_str(before);
            told.push_str(HIDDEN);
            let quote = before.chars().next_back();
            let below = from.get(own.len()..).unwrap_or_default();
            rest = below.get(end(below, quote)..).unwrap_or_default();
        }
        told + rest
    }

    fn first_own(&self, text: &str) -> Option<(usize, &str)> {
        let found = self.own.iter().filter_map(|own| Some((text.find(own.as_str())?, &**own)));
        // Of several paths at one position, the longest.
        found.min_by_key(|(at, own)| (*at, usize::MAX - own.len()))
    }
}

/// Replaces all absolute paths.
pub(super) fn without_paths(text: &str) -> String {
    let mut told = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = None;
    while let Some(letter) = rest.chars().next() {
        let begins = letter == '/' && before.is_none_or(is_before_a_path);
        let after = rest.get(1..).and_then(|rest| rest.chars().next());
        let names = after.is_some_and(|after| !after.is_whitespace() && !is_end(after, before));
        let length = if begins && names {
            told.push_str(HIDDEN);
            end(rest, before)
        } else {
            told.push(letter);
            letter.len_utf8()
        };
        before = rest.get(..length).and_then(|taken| taken.chars().next_back());
        rest = rest.get(length..).unwrap_or_default();
    }
    told
}

/// Returns `true` if a path may start after this character.
fn is_before_a_path(letter: char) -> bool {
    letter.is_whitespace() || "`'\"([{<=:,;".contains(letter)
}

/// Returns the end of the path at the start of `text`, including a closing quote.
fn end(text: &str, quote: Option<char>) -> usize {
    text.find(|letter| is_end(letter, quote)).unwrap_or(text.len())
}

fn is_end(letter: char, quote: Option<char>) -> bool {
    match quote {
        Some(quote @ ('`' | '\'' | '"')) => letter == quote,
        _ => letter.is_whitespace() || "`'\")]}>,;:".contains(letter),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    fn discretion(own: &[&str]) -> (Discretion, Arc<Mutex<Vec<String>>>) {
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let kept = Arc::clone(&lines);
        let operator = Box::new(move |line: &str| kept.lock().unwrap().push(line.to_owned()));
        let own: Vec<PathBuf> = own.iter().map(PathBuf::from).collect();
        (Discretion::new(&own, &["/data/shown"], Some(operator)), lines)
    }

    #[test]
    fn all_paths_of_a_failed_start_are_hidden_and_the_operator_has_them() {
        let (discretion, lines) = discretion(&[]);
        let cases = [
            ("`/opt/x y/isolet` did not start", "`(a path of the node)` did not start"),
            ("a: /opt/x: no space", "a: (a path of the node): no space"),
            ("OSError: '/tmp/a b' (/v)", "OSError: '(a path of the node)' ((a path of the node))"),
            (
                "file:///a/b and 1/2, `and/or` / x",
                "file:(a path of the node) and 1/2, `and/or` / x",
            ),
        ];
        for (message, told) in cases {
            for kind in [
                FailureKind::Start,
                FailureKind::Assets,
                FailureKind::Packages,
                FailureKind::Closed,
            ] {
                let failure = Failure { kind, ..Failure::config(message) };
                assert_eq!(discretion.failure(&failure).message, told);
            }
        }
        assert!(lines.lock().unwrap()[0].ends_with(cases[0].0));
    }

    #[test]
    fn other_failures_keep_the_paths_of_the_guest() {
        let (discretion, lines) = discretion(&["/srv/odd `name`", "/srv/odd", "/data/shown"]);
        let told = |message: &str| discretion.failure(&Failure::config(message).with_hint(message));
        let message = "`/srv/odd/a b` and /srv/odd/c, `/home/a` in /data/shown/x";
        let expected =
            "`(a path of the node)` and (a path of the node), `/home/a` in /data/shown/x";
        let failure = told(message);
        assert_eq!((&*failure.message, failure.hint.as_deref()), (expected, Some(expected)));
        assert_eq!(lines.lock().unwrap().len(), 1);
        assert!(!told("x `/srv/odd `name`/y`").message.contains("name"));
        assert_eq!(told("no `/home`").message, "no `/home`");
        assert_eq!(lines.lock().unwrap().len(), 2);
    }

    #[test]
    fn the_control_group_of_a_killed_worker_is_named_to_the_operator_only() {
        let (discretion, lines) = discretion(&[]);
        let message = "the control group `/sys/fs/cgroup/a.slice/b` reached its limit of 1 bytes";
        let mut told = message.to_owned();
        discretion.hide_own(&mut told);
        let expected = "the control group `(a path of the node)` reached its limit of 1 bytes";
        assert_eq!(told, expected);
        assert!(lines.lock().unwrap()[0].ends_with(message));
    }
}
