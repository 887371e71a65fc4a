//! What is to be decided: rules, answers and URLs, as lines of text.

use std::net::IpAddr;

use crate::net::rules::NetPolicy;

/// The most lines that count.
const MAX_LINES: usize = 24;

/// An input of the target. A line is a word and its operands: `allow RULE`, `deny RULE`, `public`,
/// `everything`, `strict`, `resolve NAME ADDRESS...`, `header ORIGIN NAME VALUE`, `answer
/// ADDRESS...` for the name server, `url URL`, and `connect HOST PORT` for a connection without a
/// request.
#[derive(Debug, Default)]
pub(super) struct Scenario<'a> {
    pub(super) allow: Vec<&'a str>,
    pub(super) deny: Vec<&'a str>,
    pub(super) public: bool,
    pub(super) everything: bool,
    pub(super) strict: bool,
    pub(super) names: Vec<(&'a str, Vec<IpAddr>)>,
    pub(super) headers: Vec<[&'a str; 3]>,
    pub(super) answer: Vec<IpAddr>,
    pub(super) urls: Vec<&'a str>,
    pub(super) servers: Vec<(&'a str, u32)>,
}

impl<'a> Scenario<'a> {
    pub(super) fn parse(text: &'a str) -> Self {
        let mut scenario = Self::default();
        for line in text.split('\n').take(MAX_LINES) {
            let (word, operand) = line.split_once(' ').unwrap_or((line, ""));
            match word {
                "allow" => scenario.allow.push(operand),
                "deny" => scenario.deny.push(operand),
                "public" => scenario.public = true,
                "everything" => scenario.everything = true,
                "strict" => scenario.strict = true,
                "resolve" => {
                    let (name, given) = operand.split_once(' ').unwrap_or((operand, ""));
                    scenario.names.push((name, addresses(given)));
                }
                "header" => {
                    let mut words = operand.splitn(3, ' ');
                    if let (Some(origin), Some(name), Some(value)) =
                        (words.next(), words.next(), words.next())
                    {
                        scenario.headers.push([origin, name, value]);
                    }
                }
                "answer" => scenario.answer.extend(addresses(operand)),
                "url" => scenario.urls.push(operand),
                "connect" => {
                    let (host, port) = operand.rsplit_once(' ').unwrap_or((operand, ""));
                    scenario.servers.push((host, port.parse().unwrap_or(443)));
                }
                _ => {}
            }
        }
        scenario.refuse_unfit();
        scenario
    }

    /// Leaves out the rules that the policy does not take.
    fn refuse_unfit(&mut self) {
        self.allow.retain(|rule| NetPolicy::default().allow(rule).is_ok());
        self.deny.retain(|rule| NetPolicy::default().deny(rule).is_ok());
    }

    /// Every rule, with whether it allows.
    pub(super) fn rules(&self) -> impl Iterator<Item = (&'a str, bool)> {
        let allow = self.allow.iter().map(|rule| (*rule, true));
        allow.chain(self.deny.iter().map(|rule| (*rule, false)))
    }

    /// Whether there is nothing that allows.
    pub(super) fn allows_nothing(&self) -> bool {
        self.allow.is_empty() && !self.public && !self.everything
    }

    /// Makes the policy, with its rules in the order of the text or from the last to the first.
    pub(super) fn policy(&self, reversed: bool) -> NetPolicy {
        let mut rules: Vec<(&str, bool)> = self.rules().collect();
        if reversed {
            rules.reverse();
        }
        let mut policy = NetPolicy::default();
        for (rule, allows) in rules {
            let added = if allows { policy.allow(rule) } else { policy.deny(rule) };
            assert!(added.is_ok(), "{rule:?} was a rule before");
        }
        if self.everything {
            policy.dangerous_allow_all();
        }
        if self.public {
            policy.allow_public();
        }
        if self.strict {
            policy.strict_ports();
        }
        // What is refused here has no effect.
        for (name, addresses) in &self.names {
            let _ = policy.resolve_to(name, addresses.clone());
        }
        for [origin, name, value] in &self.headers {
            let _ = policy.inject_header(origin, name, value);
        }
        policy
    }
}

fn addresses(text: &str) -> Vec<IpAddr> {
    text.split(' ').filter_map(|word| word.parse().ok()).collect()
}
