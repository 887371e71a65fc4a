//! Tests of the classes of addresses, and of the addresses that rules for names and addresses
//! cover.

use std::net::{IpAddr, Ipv6Addr};

use super::super::NetPolicy;
use super::super::address::{is_metadata, special};
use super::{policy, reaches};

#[test]
fn addresses_that_are_not_public_are_told_apart() {
    let not_public = " \
        0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.255 127.0.0.1 \
        127.255.255.254 169.254.0.1 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.1 \
        192.0.2.1 192.88.99.1 192.168.1.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 \
        224.0.0.1 239.1.1.1 240.0.0.1 255.255.255.255 :: ::1 ::2 ::127.0.0.1 ::ffff:127.0.0.1 \
        ::ffff:10.0.0.1 ::ffff:0:127.0.0.1 64:ff9b::7f00:1 64:ff9b::808:808 64:ff9b:1::1 100::1 \
        2001::1 2001:0:7f00:1::1 2001:2::1 2001:db8::1 2002:7f00:1::1 2002:808:808::1 3fff::1 \
        5f00::1 fc00::1 fd00::1 fe80::1 fec0::1 ff02::1 4000::1 2606:4700::5efe:127.0.0.1 \
        2606:4700::200:5efe:10.0.0.1";
    let public = " \
        1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.1 100.63.255.255 100.128.0.1 126.255.255.255 \
        128.0.0.1 172.15.255.255 172.32.0.1 192.0.1.1 198.20.0.1 223.255.255.255 ::ffff:8.8.8.8 \
        2606:4700:4700::1111 2a00:1450::1 2001:4860::1 2001:200::1";
    let judge = |text: &str| special(text.parse::<IpAddr>().unwrap().to_canonical());
    for text in not_public.split_whitespace() {
        assert!(judge(text).is_some(), "{text}");
    }
    for text in public.split_whitespace() {
        assert_eq!(judge(text), None, "{text}");
    }
}

#[test]
fn metadata_services_are_found_in_every_disguise() {
    let disguises = " \
        169.254.169.254 ::ffff:169.254.169.254 ::169.254.169.254 64:ff9b::a9fe:a9fe \
        64:ff9b:1::a9fe:a9fe 64:ff9b:1:a9fe:a9:fe00:: 2002:a9fe:a9fe::1 2001:0:a9fe:a9fe::1 \
        2001:0:1:2:3:4:5601:5601 2606:4700::5efe:a9fe:a9fe fe80::200:5efe:a9fe:a9fe \
        fd00:ec2::254 100.100.100.200 168.63.129.16";
    for text in disguises.split_whitespace() {
        assert!(is_metadata(text.parse::<IpAddr>().unwrap().to_canonical()), "{text}");
    }
    assert!(!is_metadata("169.254.169.253".parse().unwrap()));
}

#[test]
fn an_address_that_is_not_public_needs_a_rule_about_addresses() {
    let by_name = policy(&["internal.example.com", "10.1.0.0/16:8080"], &[]);
    assert!(reaches(&by_name, "internal.example.com", 443, "8.8.8.8"));
    assert!(reaches(&by_name, "internal.example.com", 8080, "10.1.2.3"));
    assert!(!reaches(&by_name, "internal.example.com", 443, "10.1.2.3"));
    assert!(!reaches(&by_name, "internal.example.com", 8080, "10.2.2.3"));
    assert!(!reaches(&by_name, "internal.example.com", 8080, "127.0.0.1"));
    let local = policy(&["localhost:8080"], &[]);
    assert!(reaches(&local, "localhost", 8080, "127.0.0.1"));
    assert!(reaches(&local, "localhost", 8080, "::1"));
    assert!(!reaches(&local, "localhost", 8080, "10.0.0.1"));
    assert!(!reaches(&policy(&["a.example"], &["127.0.0.0/8"]), "localhost", 80, "127.0.0.1"));
}

#[test]
fn wide_permissions_stop_at_their_edges() {
    let mut public = NetPolicy::default();
    public.allow_public();
    assert!(reaches(&public, "anything.example", 1234, "8.8.8.8"));
    assert!(reaches(&public, "8.8.8.8", 1234, "8.8.8.8"));
    for address in ["10.0.0.1", "127.0.0.1", "::1", "169.254.169.254", "168.63.129.16"] {
        assert!(!reaches(&public, "anything.example", 80, address), "{address}");
        assert!(!reaches(&public, address, 80, address), "{address}");
        assert!(!reaches(&public, "localhost", 80, address), "{address}");
    }
    let mut everything = NetPolicy::default();
    everything.dangerous_allow_all();
    everything.allow_public();
    for address in ["8.8.8.8", "10.0.0.1", "127.0.0.1", "::1", "fe80::1"] {
        assert!(reaches(&everything, "anything.example", 80, address), "{address}");
        assert!(reaches(&everything, address, 80, address), "{address}");
    }
    for address in ["169.254.169.254", "64:ff9b::a9fe:a9fe", "fd00:ec2::254"] {
        assert!(!reaches(&everything, "anything.example", 80, address), "{address}");
    }
    everything.deny("10.0.0.0/8").unwrap();
    assert!(!reaches(&everything, "anything.example", 80, "10.0.0.1"));
    assert!(!reaches(&everything, "64:ff9b::a00:1", 80, "64:ff9b::a00:1"));
}

#[test]
fn metadata_needs_a_rule_with_just_its_address() {
    let blocks = policy(&["169.254.0.0/16", "0.0.0.0/0", "::/0", "meta.example"], &[]);
    assert!(!reaches(&blocks, "169.254.169.254", 80, "169.254.169.254"));
    assert!(!reaches(&blocks, "meta.example", 80, "169.254.169.254"));
    assert!(!reaches(&blocks, "64:ff9b::a9fe:a9fe", 80, "64:ff9b::a9fe:a9fe"));
    assert!(reaches(&blocks, "169.254.169.253", 80, "169.254.169.253"));
    let named = policy(&["169.254.169.254:80", "meta.example"], &[]);
    assert!(reaches(&named, "169.254.169.254", 80, "169.254.169.254"));
    assert!(reaches(&named, "meta.example", 80, "169.254.169.254"));
    assert!(!reaches(&named, "meta.example", 81, "169.254.169.254"));
}

#[test]
fn set_addresses_are_for_names_only() {
    let mut policy = NetPolicy::default();
    let loopback: IpAddr = Ipv6Addr::LOCALHOST.into();
    for name in [
        "",
        "localhost",
        "A.LOCALHOST.",
        "127.0.0.1",
        "0x7f.1",
        "*.a.example",
        "a.example:80",
        "a b",
    ] {
        policy.resolve_to(name, vec![loopback]).expect_err(name);
    }
    policy.resolve_to("a.example", Vec::new()).unwrap_err();
    policy.resolve_to("A.Example.", vec!["::ffff:8.8.8.8".parse().unwrap()]).unwrap();
    assert_eq!(policy.answer("a.example"), Some(&["8.8.8.8".parse().unwrap()][..]));
    assert_eq!(policy.answer("b.example"), None);
}
