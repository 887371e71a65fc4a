//! Rules for the network, and the decision about a URL.

mod oracle;
mod scenario;

use std::net::IpAddr;
use std::sync::Mutex;
use std::time::Duration;

use hyper::header::HeaderMap;
use url::Url;

use self::oracle::Oracle;
use self::scenario::Scenario;
use crate::net::NetLimits;
use crate::net::resolve::{Lookup, Resolve};
use crate::net::rules::{Host, NetPolicy, is_bad_port};
use crate::net::target::{CheckedTarget, Denial, decide, precheck};

/// Makes a policy of the rules in a text and decides about its URLs. Rules are read alike in every
/// spelling, a verdict does not depend on their order, and what is allowed is what a second,
/// plainer reading of the rules allows too: the addresses are public or named by a rule, and denied
/// by none.
pub fn net_rules(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let scenario = Scenario::parse(text);
    for (rule, _) in scenario.rules() {
        is_read_alike(rule);
    }
    let policy = scenario.policy(false);
    let reversed = scenario.policy(true);
    for url in &scenario.urls {
        let resolver = Answers::new(&scenario.answer);
        let verdict = ask(&policy, &resolver, url);
        resolver.was_asked_properly(&policy, &verdict);
        let again = ask(&reversed, &resolver, url);
        assert_eq!(shown(&verdict), shown(&again), "{url:?}, rules in the other order");
        match verdict {
            Ok(target) => check_allowed(&scenario, &policy, &target, &resolver),
            Err(denial) => check_denied(&denial, &scenario.answer),
        }
    }
    for (host, port) in &scenario.servers {
        check_server(&scenario, &policy, host, *port);
    }
}

/// What may be connected to is a host and a port, and nothing that only begins with one.
fn check_server(scenario: &Scenario<'_>, policy: &NetPolicy, host: &str, port: u32) {
    if precheck(policy, host, port).is_err() {
        return;
    }
    assert!(!scenario.allows_nothing(), "{host}:{port}");
    let bare = host.contains(':') && !host.starts_with('[');
    let read = url::Host::parse(&if bare { format!("[{host}]") } else { host.to_owned() });
    assert!(read.is_ok(), "{host:?} is no host: {read:?}");
    assert!(u16::try_from(port).is_ok_and(|port| !is_bad_port(port)), "{host}:{port}");
}

/// The case of a rule's letters does not matter, and neither does a second reading of what it
/// means.
fn is_read_alike(rule: &str) {
    let read = |rule: &str| {
        let mut policy = NetPolicy::default();
        let read = policy.deny(rule);
        let shown = format!("{policy:?}");
        if read.is_err() {
            assert_eq!(shown, format!("{:?}", NetPolicy::default()), "{rule:?} left something");
        }
        read.is_ok().then_some(shown)
    };
    let Some(meaning) = read(rule) else { return };
    assert_eq!(read(&rule.to_ascii_uppercase()).as_ref(), Some(&meaning), "{rule:?}");
    let plain = oracle::Rule::of(rule).to_string();
    assert_eq!(read(&plain).as_ref(), Some(&meaning), "{rule:?} as {plain:?}");
}

/// Holds what was allowed against the rules.
fn check_allowed(
    scenario: &Scenario<'_>,
    policy: &NetPolicy,
    target: &CheckedTarget,
    resolver: &Answers,
) {
    let (url, host, port) = (target.url(), target.host(), target.port());
    assert!(matches!(url.scheme(), "http" | "https"), "{url}");
    assert!(url.username().is_empty() && url.password().is_none(), "{url}");
    assert_eq!(url.host_str(), Some(host.to_string().as_str()), "{url}");
    assert!(url.port_or_known_default() == Some(port) && !is_bad_port(port), "{url}");
    let addresses = target.addresses();
    assert!((1..=NetLimits::ADDRESSES).contains(&addresses.len()), "{url} at {addresses:?}");
    assert_eq!(target.sockets().len(), addresses.len());
    let oracle = Oracle::new(scenario);
    oracle.assert_allowed(host, port, addresses);
    // What it says is read as the same again.
    let again = ask(policy, resolver, url.as_str());
    let is_same = |again: &CheckedTarget| {
        again.host() == host && again.port() == port && again.addresses() == addresses
    };
    assert!(again.as_ref().is_ok_and(is_same), "{url} became {again:?}");
    let server = precheck(policy, &host.to_string(), port.into());
    assert!(server.is_ok(), "{host}:{port} is refused before its requests: {server:?}");
    check_mapped(policy, resolver, target);
    check_injected(scenario, policy, target);
    check_denying(policy, resolver, target);
}

/// An IPv4 address means the same when it is written as one of IPv6.
fn check_mapped(policy: &NetPolicy, resolver: &Answers, target: &CheckedTarget) {
    if let Host::Address(IpAddr::V4(address)) = target.host() {
        let mut url = target.url().clone();
        let mapped = format!("[{}]", address.to_ipv6_mapped());
        assert!(url.set_host(Some(&mapped)).is_ok());
        let verdict = ask(policy, resolver, url.as_str());
        assert!(verdict.is_ok_and(|it| it.host() == target.host()), "{url}");
    }
}

/// A header is added for its own origin only.
fn check_injected(scenario: &Scenario<'_>, policy: &NetPolicy, target: &CheckedTarget) {
    let mut headers = HeaderMap::new();
    policy.inject(target.origin(), &mut headers);
    let of_origin = |origin: &str| {
        Url::parse(origin).is_ok_and(|url| {
            let host = url.host().as_ref().and_then(|host| {
                // A name with a dot at its end is the same name.
                Host::from_url(&match host {
                    url::Host::Domain(name) => url::Host::Domain(name),
                    url::Host::Ipv4(address) => url::Host::Ipv4(*address),
                    url::Host::Ipv6(address) => url::Host::Ipv6(*address),
                })
            });
            url.scheme() == target.url().scheme()
                && url.port_or_known_default() == Some(target.port())
                && host.as_ref() == Some(target.host())
        })
    };
    for (name, value) in &headers {
        let is_given = scenario.headers.iter().any(|[origin, its_name, its_value]| {
            of_origin(origin) && name.as_str().eq_ignore_ascii_case(its_name) && value == its_value
        });
        assert!(is_given, "{name} is sent to {}", target.url());
    }
}

/// One rule that denies the host, or one of its addresses, is enough.
fn check_denying(policy: &NetPolicy, resolver: &Answers, target: &CheckedTarget) {
    let host = target.host().to_string();
    let addresses = target.addresses().iter().map(|address| match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    });
    let rules = [host.clone(), format!("{host}:{}", target.port()), format!("{host}:*")];
    for rule in rules.into_iter().chain(addresses) {
        let mut policy = policy.clone();
        let added = policy.deny(&rule);
        assert!(added.is_ok(), "{rule:?} is no rule: {added:?}");
        let verdict = ask(&policy, resolver, target.url().as_str());
        assert!(verdict.is_err(), "{} is allowed though {rule:?} denies it", target.url());
    }
}

/// The guest is not told what the name server answered.
fn check_denied(denial: &Denial, answer: &[IpAddr]) {
    let message = denial.to_error().message;
    for address in answer {
        let address = address.to_canonical().to_string();
        assert!(!message.contains(&address) || denial.host.contains(&address), "{message}");
    }
}

/// A resolver that knows one answer, for all names.
struct Answers {
    answer: Vec<IpAddr>,
    asked: Mutex<Vec<String>>,
}

impl Answers {
    fn new(answer: &[IpAddr]) -> Self {
        Self { answer: answer.to_vec(), asked: Mutex::default() }
    }

    /// A name is looked up once, in its one spelling, and only if the rules allow it as a name.
    fn was_asked_properly(&self, policy: &NetPolicy, verdict: &Result<CheckedTarget, Denial>) {
        let Ok(asked) = self.asked.lock() else { return };
        let Some(name) = asked.first() else { return };
        let (host, port) = match verdict {
            Ok(target) => (target.host().to_string(), target.port()),
            Err(denial) => (denial.host.clone(), denial.port),
        };
        assert_eq!(*asked, [host]);
        let plain = |b: u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.');
        assert!(name.bytes().all(plain) && !name.ends_with('.'), "{name:?}");
        assert!(policy.answer(name).is_none(), "{name:?} has a fixed answer");
        let host = Host::Name(name.clone());
        assert!(!host.is_localhost() && policy.check_host(&host, port).is_ok(), "{name:?}");
    }
}

impl Resolve for Answers {
    fn lookup<'a>(&'a self, name: &'a str) -> Lookup<'a> {
        if let Ok(mut asked) = self.asked.lock() {
            asked.push(name.to_owned());
        }
        Box::pin(std::future::ready(Ok(self.answer.clone())))
    }
}

/// Returns the checked target of a URL if everything may be reached and all names have this
/// address.
pub(super) fn target(url: &str, address: IpAddr) -> Option<CheckedTarget> {
    let mut policy = NetPolicy::default();
    policy.dangerous_allow_all();
    ask(&policy, &Answers::new(&[address]), url).ok()
}

fn ask(policy: &NetPolicy, resolver: &dyn Resolve, url: &str) -> Result<CheckedTarget, Denial> {
    thread_local! {
        static RUNTIME: std::io::Result<tokio::runtime::Runtime> =
            tokio::runtime::Builder::new_current_thread().enable_time().build();
    }
    let time = Duration::from_secs(5);
    RUNTIME.with(|runtime| {
        let runtime = runtime.as_ref().unwrap_or_else(|error| unreachable!("no runtime: {error}"));
        runtime.block_on(decide(policy, resolver, time, url))
    })
}

/// What a verdict says, without which rule is the reason.
fn shown(verdict: &Result<CheckedTarget, Denial>) -> String {
    match verdict {
        Ok(target) => format!("{target:?}"),
        Err(denial) => format!("{} {} {}", denial.host, denial.port, denial.to_error().message),
    }
}
