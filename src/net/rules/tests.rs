//! Tests of the rules: what they cover, which are rejected, and that denials win.

mod addresses;
mod headers;

use std::net::IpAddr;

use proptest::prelude::*;

use super::*;

fn host(text: &str) -> Host {
    text.parse::<IpAddr>().map_or_else(
        |_| Host::Name(text.to_owned()),
        |address| Host::Address(address.to_canonical()),
    )
}

fn policy(allow: &[&str], deny: &[&str]) -> NetPolicy {
    let mut policy = NetPolicy::default();
    for rule in allow {
        policy.allow(rule).unwrap();
    }
    for rule in deny {
        policy.deny(rule).unwrap();
    }
    policy
}

fn covers(rule: &str, name: &str, port: u16) -> bool {
    policy(&[rule], &[]).check_host(&host(name), port).is_ok()
}

fn reaches(policy: &NetPolicy, name: &str, port: u16, address: &str) -> bool {
    let (host, address) = (host(name), address.parse::<IpAddr>().unwrap().to_canonical());
    policy.check_host(&host, port).is_ok() && policy.check_address(&host, port, address).is_ok()
}

#[test]
fn rules_cover_hosts_and_ports_label_by_label() {
    let table = [
        ("api.example.com", "api.example.com", 443, true),
        ("api.example.com", "api.example.com", 8080, true),
        ("API.Example.COM.", "api.example.com", 80, true),
        ("api.example.com", "xapi.example.com", 443, false),
        ("api.example.com", "x.api.example.com", 443, false),
        ("api.example.com", "api.example.com.evil.test", 443, false),
        ("api.example.com", "example.com", 443, false),
        ("api.example.com:443", "api.example.com", 443, true),
        ("api.example.com:443", "api.example.com", 80, false),
        ("api.example.com:*", "api.example.com", 1234, true),
        ("*.cdn.example.com", "a.cdn.example.com", 1234, true),
        ("*.cdn.example.com", "a.b.cdn.example.com", 443, true),
        ("*.cdn.example.com", "cdn.example.com", 443, false),
        ("*.cdn.example.com", "xcdn.example.com", 443, false),
        ("*.cdn.example.com:443", "a.cdn.example.com", 80, false),
        ("bücher.example", "xn--bcher-kva.example", 443, true),
        ("localhost", "localhost", 8080, true),
        ("localhost", "127.0.0.1", 8080, false),
        ("localhost", "a.localhost", 8080, false),
        ("10.1.0.0/16:8080", "10.1.2.3", 8080, true),
        ("10.1.0.0/16:8080", "10.1.2.3", 8081, false),
        ("10.1.0.0/16:8080", "10.2.0.0", 8080, false),
        ("10.1.2.3", "10.1.2.3", 80, true),
        ("10.1.2.3", "::ffff:10.1.2.3", 80, true),
        ("[::ffff:10.1.2.3]", "10.1.2.3", 80, true),
        ("[::ffff:10.1.0.0]/112", "10.1.2.3", 80, true),
        ("[2606:4700::1]:443", "2606:4700::1", 443, true),
        ("[2606:4700::1]:443", "2606:4700::1", 80, false),
        ("2606:4700::/32", "2606:4700::1", 80, true),
        ("2606:4700::/32:443", "2606:4700::1", 80, false),
        ("[2606:4700::]/32:443", "2606:4700::1", 443, true),
        ("0.0.0.0/0", "8.8.8.8", 80, true),
        ("0.0.0.0/0", "2606:4700::1", 80, false),
        ("::/0", "2606:4700::1", 80, true),
    ];
    for (rule, name, port, expected) in table {
        assert_eq!(covers(rule, name, port), expected, "{rule} and {name}:{port}");
    }
}

#[test]
fn what_is_no_rule_is_refused_with_its_text() {
    let bad = "* *:443 *.com *. *.*.example.com a.*.com a*.example.com , a.com,b.com http://a.com \
        https://a.com:443 a.com/ a.com/path a.com?x a.com#x user@a.com user:pw@a.com a%2ecom \
        [fe80::1%eth0] a..com .a.com a.com.. a.com: a.com:0 a.com:00443 a.com:+443 a.com:65536 \
        a.com:443:443 a.com:http a.com:22 a.com:6000 ::1 2606:4700::1 [::1 ::1] [10.1.2.3] [] \
        []:80 \
        10.1.2.3/16 10.1.0.0/33 10.1.0.0/ 10.1.0.0/+8 10.1.0.0/08 10.1.0.0/8/8 ::/129 [::1]/127 \
        2130706433 0x7f.1 127.1 0177.0.0.1 1.2.3.4.5 a.123 a._tcp a\\b a<b.com a!b.com \
        [::ffff:10.1.2.3]/16";
    let blank =
        ["", " ", "\t", "a.com ", " a.com", "a.com\n", "a.com\0", "a b.com", "a\u{a0}b.com"];
    for entry in bad.split_whitespace().chain(blank) {
        let error = NetPolicy::default().allow(entry).expect_err(entry).to_string();
        assert!(error.starts_with("the network rule `"), "{error}");
        assert!(error.contains(&*entry.escape_debug().to_string()), "{error}");
    }
    let long = format!("{}.example.com", "a".repeat(64));
    assert!(NetPolicy::default().allow(&long).is_err());
    assert!(NetPolicy::default().allow(&"a.".repeat(200)).is_err());
}

#[test]
fn a_public_suffix_may_be_denied_though_not_allowed() {
    let error = NetPolicy::default().allow("*.com").unwrap_err().to_string();
    assert!(error.contains("covers a whole public suffix"), "{error}");
    let mut policy = policy(&["evil.com", "good.org"], &["*.com"]);
    assert!(policy.check_host(&host("evil.com"), 443).is_err());
    assert!(policy.check_host(&host("good.org"), 443).is_ok());
    policy.deny("example.org:22").unwrap();
}

#[test]
fn a_refused_rule_leaves_nothing_behind() {
    let mut policy = NetPolicy::default();
    for entry in ["", "*", "a.com,b.com"] {
        policy.allow(entry).unwrap_err();
    }
    for name in ["a.com", "b.com", "", "*"] {
        assert!(policy.check_host(&host(name), 443).is_err());
    }
}

#[test]
fn strict_ports_narrow_what_allows_and_never_what_denies() {
    let mut strict =
        policy(&["a.example", "b.example:8080", "c.example:*", "10.0.0.0/8"], &["d.example"]);
    strict.strict_ports();
    strict.allow("d.example:8080").unwrap();
    let asked = |name: &str, port| strict.check_host(&host(name), port).is_ok();
    assert!(asked("a.example", 80) && asked("a.example", 443) && !asked("a.example", 8080));
    assert!(asked("b.example", 8080) && !asked("b.example", 443));
    assert!(asked("c.example", 9999));
    assert!(!asked("d.example", 8080));
    assert!(!reaches(&strict, "b.example", 8080, "10.0.0.1"));
    strict.allow_public();
    assert!(strict.check_host(&host("z.example"), 443).is_ok());
    assert!(strict.check_host(&host("z.example"), 8080).is_err());
}

#[test]
fn ports_that_speak_other_protocols_are_known() {
    for port in [0, 1, 22, 25, 53, 110, 139, 143, 587, 6000, 6667, 10080] {
        assert!(is_bad_port(port), "{port}");
    }
    for port in [80, 443, 8080, 8443, 3000, 5432, 65535] {
        assert!(!is_bad_port(port), "{port}");
    }
    let found = (0..=u16::MAX).filter(|port| is_bad_port(*port)).count();
    assert_eq!(found, 83);
}

fn any_rule() -> impl Strategy<Value = String> {
    let hosts = prop_oneof![
        Just("a.example"),
        Just("b.a.example"),
        Just("*.a.example"),
        Just("*.b.a.example"),
        Just("localhost"),
        Just("10.1.2.3"),
        Just("10.0.0.0/8"),
        Just("0.0.0.0/0"),
        Just("[::1]"),
        Just("::/0"),
        Just("8.8.8.8"),
        Just("169.254.169.254"),
    ];
    let ports = prop_oneof![Just(""), Just(":*"), Just(":80"), Just(":443"), Just(":8080")];
    (hosts, ports).prop_map(|(host, port)| format!("{host}{port}"))
}

fn any_question() -> impl Strategy<Value = (&'static str, u16, &'static str)> {
    let named = prop_oneof![
        Just("a.example"),
        Just("b.a.example"),
        Just("c.b.a.example"),
        Just("localhost"),
        Just("other.example"),
    ];
    let addresses = prop_oneof![
        Just("8.8.8.8"),
        Just("10.1.2.3"),
        Just("127.0.0.1"),
        Just("::1"),
        Just("2606:4700::1"),
        Just("169.254.169.254"),
        Just("64:ff9b::a01:203"),
    ];
    let ports = prop_oneof![Just(80_u16), Just(443), Just(8080), Just(9999)];
    (named, addresses, ports, any::<bool>()).prop_map(|(name, address, port, literal)| {
        (if literal { address } else { name }, port, address)
    })
}

proptest! {
    #[test]
    fn denying_wins_over_everything_in_any_order(
        allow in prop::collection::vec(any_rule(), 0..6),
        deny in prop::collection::vec(any_rule(), 0..4),
        wide in 0..3,
        strict: bool,
        deny_first: bool,
        (name, port, address) in any_question(),
    ) {
        let build = |allow: &[String], deny: &[String], deny_first: bool| {
            let mut policy = NetPolicy::default();
            if deny_first { for rule in deny { policy.deny(rule).unwrap(); } }
            if wide == 1 { policy.allow_public(); }
            if wide == 2 { policy.dangerous_allow_all(); }
            for rule in allow { policy.allow(rule).unwrap(); }
            if strict { policy.strict_ports(); }
            if !deny_first { for rule in deny { policy.deny(rule).unwrap(); } }
            policy
        };
        let verdict = reaches(&build(&allow, &deny, deny_first), name, port, address);
        // The order of rules does not matter.
        let reversed = |rules: &[String]| rules.iter().rev().cloned().collect::<Vec<_>>();
        let other = build(&reversed(&allow), &reversed(&deny), !deny_first);
        prop_assert_eq!(verdict, reaches(&other, name, port, address));
        // A rule that denies never allows more, and what it covers is denied.
        let without = reaches(&build(&allow, &[], deny_first), name, port, address);
        prop_assert!(!verdict || without);
        for rule in &deny {
            let mut alone = NetPolicy::default();
            alone.dangerous_allow_all();
            alone.allow("169.254.169.254").unwrap();
            prop_assert!(reaches(&alone, name, port, address));
            alone.deny(rule).unwrap();
            let still = reaches(&alone, name, port, address);
            prop_assert!(!verdict || still, "{} lost to a rule that allows", rule);
        }
        // A rule that allows never denies more.
        for rule in &allow {
            let mut more = build(&allow, &deny, deny_first);
            more.allow(rule).unwrap();
            prop_assert!(!verdict || reaches(&more, name, port, address));
        }
    }

    #[test]
    fn reading_a_rule_never_panics_and_never_opens_everything(
        entry in "\\PC{0,40}|[a-z0-9.*:/\\[\\]-]{0,30}",
    ) {
        let mut policy = NetPolicy::default();
        if policy.allow(&entry).is_ok() {
            let asked = ["q7.example", "8.8.4.4", "2606:4700::7"];
            let open = |name: &&&str| policy.check_host(&host(name), 443).is_ok();
            let open = asked.iter().filter(open).count();
            prop_assert!(open <= 1, "{entry} is too wide");
        }
        let _ = NetPolicy::default().deny(&entry);
    }
}
