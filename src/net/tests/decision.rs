//! Tests of the decision against the table in security.md, with a resolver that counts queries.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::Duration;

use proptest::prelude::*;

use super::super::resolve::{Lookup, Resolve, SystemResolver};
use super::super::target::{CheckedTarget, Denial, decide, precheck};
use super::super::{NetError, NetEvent, NetLimits};
use super::guest::denied;
use crate::net::rules::NetPolicy;

/// Answers each name with its answers in turn, and repeats the last one.
#[derive(Default)]
struct Script {
    answers: HashMap<String, Vec<Vec<IpAddr>>>,
    asked: Mutex<Vec<String>>,
}

impl Script {
    fn with(mut self, name: &str, answers: &[&str]) -> Self {
        let parse = |answer: &&str| answer.split_whitespace().map(|a| a.parse().unwrap()).collect();
        self.answers.insert(name.to_owned(), answers.iter().map(parse).collect());
        self
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

impl Resolve for Script {
    fn lookup<'a>(&'a self, name: &'a str) -> Lookup<'a> {
        let mut asked = self.asked.lock().unwrap();
        let turn = asked.iter().filter(|asked| *asked == name).count();
        asked.push(name.to_owned());
        let answers = self.answers.get(name);
        let answer = answers.and_then(|answers| answers.get(turn).or(answers.last()));
        Box::pin(std::future::ready(Ok(answer.cloned().unwrap_or_default())))
    }
}

fn ask(policy: &NetPolicy, script: &dyn Resolve, url: &str) -> Result<CheckedTarget, Denial> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let time = NetLimits::DEFAULT_RESOLVE_TIME;
    runtime.block_on(async { decide(policy, script, time, url).await })
}

fn policy() -> NetPolicy {
    let mut policy = NetPolicy::default();
    for rule in ["api.example.com:443", "*.cdn.example.com", "10.1.0.0/16:8080"] {
        policy.allow(rule).unwrap();
    }
    policy
}

const PUBLIC: &str = "93.184.216.34";

fn script() -> Script {
    ["a.b.cdn.example.com", "api.example.com", "evil.test", "cdn.example.com", "xapi.example.com"]
        .iter()
        .fold(Script::default(), |script, name| script.with(name, &[PUBLIC]))
}

#[test]
fn what_the_rules_cover_is_allowed_at_its_address_with_one_lookup() {
    let table = [
        ("https://api.example.com/", "api.example.com:443", PUBLIC),
        ("https://API.EXAMPLE.COM/", "api.example.com:443", PUBLIC),
        ("HTTPS://api.example.com./x?y#z", "api.example.com:443", PUBLIC),
        ("https://api.example.com:443", "api.example.com:443", PUBLIC),
        ("https://api.example.com:0443/", "api.example.com:443", PUBLIC),
        ("http://api.example.com:443/", "api.example.com:443", PUBLIC),
        ("http://a.b.cdn.example.com:1234/", "a.b.cdn.example.com:1234", PUBLIC),
        ("https://a.b.cdn.example.com/", "a.b.cdn.example.com:443", PUBLIC),
        ("http://10.1.2.3:8080/", "10.1.2.3:8080", "10.1.2.3"),
        ("http://[::ffff:10.1.2.3]:8080/", "10.1.2.3:8080", "10.1.2.3"),
        ("http://0xa010203:8080/", "10.1.2.3:8080", "10.1.2.3"),
    ];
    for (url, server, address) in table {
        let script = script();
        let target = ask(&policy(), &script, url).expect(url);
        assert_eq!(target.server(), server, "{url}");
        assert_eq!(target.addresses(), [address.parse::<IpAddr>().unwrap()], "{url}");
        let lookups = usize::from(address == PUBLIC);
        assert_eq!(script.asked().len(), lookups, "{url}");
    }
}

#[test]
fn what_the_rules_do_not_cover_is_denied_without_a_lookup() {
    let table = "
        https://cdn.example.com/                     cdn.example.com:443
        http://api.example.com/                      api.example.com:80
        http://api.example.com:80/                   api.example.com:80
        https://api.example.com:8443/                api.example.com:8443
        https://xapi.example.com/                    xapi.example.com:443
        https://example.com/                         example.com:443
        https://api.example.com.evil.test/           api.example.com.evil.test:443
        https://api.example.com@evil.test/           evil.test:443
        https://api.example.com:443@evil.test/       evil.test:443
        https://user:secret@api.example.com/         api.example.com:443
        https://@api.example.com/                    api.example.com:443
        https://evil.test\\@api.example.com/         evil.test:443
        https://api.example.com\\@evil.test/         api.example.com:443
        https:\\\\api.example.com/                   api.example.com:443
        https:/api.example.com/                      api.example.com:443
        https:api.example.com/                       api.example.com:443
        https:///api.example.com/                    api.example.com:443
        https://api%2eexample%2ecom/                 api.example.com:443
        https://api.example.com%2eevil.test/         api.example.com.evil.test:443
        https://api.example.com%00.evil.test/        api.example.com%00.evil.test
        https://api.example.com..                    api.example.com..
        https://.api.example.com/                    .api.example.com
        https://*.cdn.example.com/                   *.cdn.example.com
        https://api.ex\u{430}mple.com/               api.xn--exmple-4nf.com:443
        https://api\u{ff0e}example.com.evil.test/    api.example.com.evil.test:443
        http://10.1.2.3:8081/                        10.1.2.3:8081
        http://10.1.2.3/                             10.1.2.3:80
        http://10.2.2.3:8080/                        10.2.2.3:8080
        http://a.cdn.example.com:22/                 a.cdn.example.com:22
        http://a.cdn.example.com:6000/               a.cdn.example.com:6000
        http://a.cdn.example.com:0/                  a.cdn.example.com
        http://a.cdn.example.com:65536/              a.cdn.example.com:65536
        ws://a.cdn.example.com/                      a.cdn.example.com:80
        wss://api.example.com/                       api.example.com:443
        ftp://a.cdn.example.com/                     a.cdn.example.com:21
        gopher://a.cdn.example.com:70/               a.cdn.example.com:70
        file:///etc/passwd                           (no host)
        data:text/html,hello                         data:text
        blob:https://api.example.com/x               api.example.com
        http://localhost/                            localhost:80
        http://localhost.:8080/                      localhost:8080
        http://a.localhost/                          a.localhost:80
        /relative                                    (no host)
        http://                                      (no host)
        http://user:secret@                          (no host)
        http://user:secret@a\u{202e}b..c/            ab..c
    ";
    for line in table.trim().lines() {
        let (url, server) = line.trim().split_once(' ').unwrap();
        let script = script();
        let denial = ask(&policy(), &script, url).expect_err(url);
        assert_eq!(denial.to_error().message, denied(server.trim()), "{url}");
        assert_eq!(denial.to_error().python_type(), "PermissionError");
        assert!(!format!("{denial:?}").contains("secret"), "{denial:?}");
        assert_eq!(script.asked(), [""; 0], "{url}");
    }
    for url in
        ["https://api.exa\tmple.com/", "https://api.example.com/\n", "\u{1}https://api.example.com"]
    {
        ask(&policy(), &script(), url).expect_err(url);
    }
}

#[test]
fn every_spelling_of_an_address_gets_the_verdict_of_that_address() {
    let spellings = "
        127.0.0.1 2130706433 0x7f000001 0X7F.1 017700000001 0177.0.0.1 127.1 127.0.1
        0x7f.0x0.0x0.0x1 127.0.0.1. 127.000.000.001 00000000177.1 [::ffff:127.0.0.1] [::ffff:7f00:1]
        [::127.0.0.1] [::7f00:1] [64:ff9b::127.0.0.1] [64:ff9b::7f00:1] [64:ff9b:1::7f00:1]
        [2002:7f00:1::] [2001:0:7f00:1::] [2001::80ff:fffe] [fe80::5efe:127.0.0.1]
        [2606:4700::5efe:7f00:1] [::1] [::] [0:0:0:0:0:0:0:1] 0.0.0.0 0 0x0 169.254.169.254
        2852039166 0xa9fea9fe 025177524776 169.254.43518 169.16689662 0251.0376.0251.0376
        [::ffff:169.254.169.254] [::ffff:a9fe:a9fe] [64:ff9b::a9fe:a9fe] [2002:a9fe:a9fe::1]
        [fd00:ec2::254] 100.100.100.200 10.0.0.1 192.168.1.1 172.16.0.1 100.64.0.1 [fc00::1]
        [fec0::1] [ff02::1] 255.255.255.255 \u{ff11}\u{ff12}\u{ff17}.0.0.1 \u{2460}27.0.0.1
        127\u{3002}0\u{3002}0\u{3002}1
    ";
    // With everything public allowed, only the class of the address can deny it.
    let mut public = NetPolicy::default();
    public.allow_public();
    for spelling in spellings.split_whitespace() {
        for policy in [&public, &policy()] {
            let script = Script::default();
            let url = format!("http://{spelling}/");
            let denial = ask(policy, &script, &url).expect_err(&url);
            assert_eq!(denial.to_error().python_type(), "PermissionError", "{url}");
            assert_eq!(script.asked(), [""; 0], "{url}");
        }
    }
    for zoned in ["http://[fe80::1%25eth0]/", "http://[fe80::1%eth0]/", "http://[::1%lo]/"] {
        ask(&public, &Script::default(), zoned).expect_err(zoned);
    }
    assert!(ask(&public, &Script::default(), "http://8.8.8.8:8080/").is_ok());
    assert!(ask(&public, &Script::default(), "http://[2606:4700:4700::1111]/").is_ok());
}

#[test]
fn one_address_that_is_not_public_denies_the_whole_name() {
    let answers = "127.0.0.1 10.1.2.3 192.168.0.1 169.254.169.254 100.64.0.1 0.0.0.0 ::1 fc00::1 \
        fe80::1 ::ffff:10.0.0.1 64:ff9b::a00:1 2002:a00:1::1 2001::1 2606:4700::5efe:a00:1 \
        168.63.129.16";
    for private in answers.split_whitespace() {
        for answer in
            [private.to_owned(), format!("{PUBLIC} {private}"), format!("{private} {PUBLIC}")]
        {
            let script = Script::default().with("api.example.com", &[&answer]);
            let denial = ask(&policy(), &script, "https://api.example.com/").expect_err(&answer);
            // The message contains no address, and is the same as if the name were denied.
            assert_eq!(denial.to_error().message, denied("api.example.com:443"), "{answer}");
            assert!(denial.reason.contains(':'), "{}", denial.reason);
            assert_eq!(script.asked(), ["api.example.com"], "{answer}");
        }
    }
}

#[test]
fn a_name_that_turns_private_is_denied_at_its_second_lookup() {
    let script = Script::default().with("api.example.com", &[PUBLIC, "10.0.0.1"]);
    let first = ask(&policy(), &script, "https://api.example.com/").unwrap();
    assert_eq!(first.sockets(), [format!("{PUBLIC}:443").parse().unwrap()]);
    ask(&policy(), &script, "https://api.example.com/").unwrap_err();
    assert_eq!(script.asked().len(), 2);
}

#[test]
fn the_empty_policy_denies_everything_without_a_lookup() {
    for url in ["https://api.example.com/", "http://8.8.8.8/", "http://localhost/", "http://[::1]/"]
    {
        let script = script();
        ask(&NetPolicy::default(), &script, url).expect_err(url);
        assert_eq!(script.asked(), [""; 0]);
    }
}

#[test]
fn localhost_is_loopback_without_a_lookup() {
    let mut policy = NetPolicy::default();
    policy.allow("localhost:8080").unwrap();
    policy.allow("a.localhost").unwrap();
    let script = Script::default().with("localhost", &[PUBLIC]).with("a.localhost", &[PUBLIC]);
    for url in ["http://LOCALHOST.:8080/", "http://a.localhost/"] {
        let target = ask(&policy, &script, url).expect(url);
        assert!(target.addresses().iter().all(IpAddr::is_loopback));
    }
    for url in ["http://localhost:8081/", "http://b.localhost/", "http://127.0.0.1:8080/"] {
        ask(&policy, &script, url).expect_err(url);
    }
    assert_eq!(script.asked(), [""; 0]);
}

#[test]
fn set_addresses_replace_dns_and_are_judged_all_the_same() {
    let mut policy = policy();
    policy.resolve_to("api.example.com", vec!["10.1.2.3".parse().unwrap()]).unwrap();
    policy.resolve_to("x.cdn.example.com", vec!["10.1.2.3".parse().unwrap()]).unwrap();
    let script = script();
    ask(&policy, &script, "https://api.example.com/").unwrap_err();
    let target = ask(&policy, &script, "http://x.cdn.example.com:8080/").unwrap();
    assert_eq!(target.addresses(), ["10.1.2.3".parse::<IpAddr>().unwrap()]);
    assert_eq!(script.asked(), [""; 0]);
}

#[test]
fn names_without_an_answer_fail_as_python_says_it() {
    struct Never;
    impl Resolve for Never {
        fn lookup<'a>(&'a self, _: &'a str) -> Lookup<'a> {
            Box::pin(std::future::pending())
        }
    }
    let told =
        |script: &dyn Resolve| ask(&policy(), script, "https://api.example.com/").unwrap_err();
    let error = told(&Script::default()).to_error();
    let message = "[Errno -2] Name or service not known: api.example.com";
    assert_eq!((error.python_type(), &*error.message), ("gaierror", message));

    let many = (0..33).map(|n| format!("8.8.4.{n}")).collect::<Vec<_>>().join(" ");
    let error = told(&Script::default().with("api.example.com", &[&many])).to_error();
    assert_eq!(error.message, "addresses of api.example.com: limit 32, needed 33");

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let soon = Duration::from_millis(1);
    let policy = policy();
    let decision =
        runtime.block_on(async { decide(&policy, &Never, soon, "https://api.example.com/").await });
    assert_eq!(decision.unwrap_err().to_error().python_type(), "TimeoutError");
}

#[test]
fn an_event_tells_the_host_what_the_guest_is_not_told() {
    let script = Script::default().with("api.example.com", &["8.8.8.8 10.0.0.7"]);
    let decision = ask(&policy(), &script, "https://api.example.com/secret-path");
    let event = NetEvent::new(&decision, "GET", 3);
    assert!(!event.allowed && event.hop == 3 && event.port == 443);
    assert_eq!((&*event.method, &*event.scheme, &*event.host), ("GET", "https", "api.example.com"));
    assert_eq!(event.addresses.len(), 2);
    assert_eq!(event.reason, "private: 10.0.0.7");
    let error: NetError = decision.unwrap_err().to_error();
    assert!(!error.message.contains("10.0.0.7"));
}

#[test]
fn the_systems_resolver_finds_what_the_system_knows() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let resolver = SystemResolver::new();
    let addresses = runtime.block_on(resolver.lookup("localhost")).unwrap();
    assert!(!addresses.is_empty() && addresses.iter().all(IpAddr::is_loopback));
}

proptest! {
    #[test]
    fn no_text_is_a_panic_or_reaches_more_than_the_rules(
        url in "(https?|ftp|HTTP)?:?[/\\\\]{0,3}[a-z.@:%0-9\\[\\]\\\\]{0,12}\
            (api.example.com)?\\PC{0,12}",
    ) {
        let script = script();
        match ask(&policy(), &script, &url) {
            Ok(target) => prop_assert_eq!(target.server(), "api.example.com:443"),
            Err(denial) => {
                prop_assert_eq!(denial.to_error().python_type(), "PermissionError");
                prop_assert!(script.asked().is_empty());
            }
        }
    }
}

/// D8: a connection over which nothing could be requested is refused before a request.
#[test]
fn a_connection_is_refused_as_its_requests_would_be() {
    let mut policy = policy();
    policy.allow("127.0.0.1:8081").unwrap();
    for (host, port) in [("api.example.com", 443), ("a.cdn.example.com", 5000), ("127.0.0.1", 8081)]
    {
        assert!(precheck(&policy, host, port).is_ok(), "{host}:{port}");
    }
    for (host, port) in [
        ("api.example.com", 80),
        ("cdn.example.com", 443),
        ("127.0.0.1", 8080),
        ("2130706433", 8080),
        ("::1", 8081),
        ("[::1]", 8081),
        ("10.2.0.1", 8080),
        ("api.example.com:443/", 443),
        ("user@api.example.com", 443),
        ("api.example.com/x?", 443),
        ("api.example.com#", 443),
        ("a.cdn.example.com#", 5000),
        ("a.cdn.example.com?", 5000),
        ("api.example.com\\", 443),
        ("", 443),
        ("api.example.com", 0),
        ("api.example.com", 65536),
        ("api.example.com", u32::MAX),
    ] {
        assert!(precheck(&policy, host, port).is_err(), "{host}:{port}");
    }
}
