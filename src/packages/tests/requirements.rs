//! Tests of requirements, their markers, and texts that are not requirements.

use std::collections::BTreeSet;

use super::super::Requirement;
use super::super::marker;
use super::super::requirement::Dependency;

#[test]
fn a_requirement_is_written_for_pip_as_it_was_meant() {
    for (text, written) in [
        ("requests", "requests"),
        ("  Ruamel.Yaml ", "ruamel-yaml"),
        ("zope__interface>=1,<2", "zope-interface>=1,<2"),
        ("httpx [http2, Brotli] ~= 0.28", "httpx[brotli,http2]~=0.28"),
        ("a==1.*", "a==1.*"),
        ("a (!=1.5, >1)", "a>1,!=1.5"),
    ] {
        assert_eq!(text.parse::<Requirement>().unwrap().to_string(), written);
    }
}

#[test]
fn an_option_a_path_or_a_url_is_no_requirement() {
    for text in [
        "",
        "-r x",
        "-rx",
        "--index-url=http://127.0.0.1/",
        "--index-url http://127.0.0.1/",
        "requests --index-url=http://127.0.0.1/",
        "requests\n--index-url=http://127.0.0.1/",
        "requests\n-e .",
        "requests --hash=sha256:00",
        "./x",
        "../x",
        ".",
        "/x",
        "x/y",
        "x\\y",
        "C:\\x",
        "file:///x",
        "git+https://127.0.0.1/x",
        "x @ file:///x",
        "x@file:///x",
        "x[a] @ http://127.0.0.1/x.whl",
        "x==1 @ file:///x",
        "x ==1 y",
        "x=1",
        "x==",
        "x[a",
        "x[-e]",
        "x[a b]",
        "x\0",
        "rеquests",
        "x; python_version > '3'",
        "_x",
        "x-",
        "$(x)",
    ] {
        let parsed = text.parse::<Requirement>();
        assert!(parsed.is_err(), "{text:?} is {parsed:?}");
    }
    assert!("x".repeat(5000).parse::<Requirement>().is_err());
}

#[test]
fn what_was_written_for_pip_begins_with_a_letter_or_digit_and_is_one_line() {
    for text in ["a-b", "A.B>=1", "3to2", "x[y]==1+local.1"] {
        let written = text.parse::<Requirement>().unwrap().to_string();
        assert!(written.starts_with(|c: char| c.is_ascii_alphanumeric()));
        assert!(!written.contains(|c: char| c.is_whitespace() || matches!(c, '/' | '@' | '\\')));
    }
}

#[test]
fn markers_hold_for_the_guest() {
    for (marker, holds) in [
        ("python_version >= '3.9'", true),
        ("python_version < \"3.14\"", false),
        ("python_full_version >= '3.14.1'", true),
        ("'3.10' <= python_version", true),
        ("'3.15' < python_version", false),
        ("sys_platform == 'emscripten'", true),
        ("sys.platform != 'emscripten'", false),
        ("platform_machine in 'x86_64 wasm32'", true),
        ("'linux' not in sys_platform", true),
        ("os_name == 'nt' or (os_name == 'posix' and python_version ~= '3.0')", true),
        ("os_name == 'posix' or os_name == 'posix' and os_name == 'nt'", true),
        ("extra == 'socks'", false),
        ("implementation_name == 'pypy'", false),
        ("python_version not in '2.7, 3.0'", true),
    ] {
        assert_eq!(marker::holds(marker, "").unwrap(), holds, "{marker}");
    }
    assert!(marker::holds("extra == 'My_Extra' and os_name == 'posix'", "my-extra").unwrap());
}

#[test]
fn a_marker_that_cannot_be_read_is_told_of() {
    let deep = format!("{}os_name == 'posix'{}", "(".repeat(100), ")".repeat(100));
    let broken = [
        "",
        "os_name",
        "os_name ==",
        "os_name == 'posix",
        "(os_name == 'a'",
        "x == 'y'",
        "é == 'a'",
        "os_name == 'a' 'b'",
        "os_name ~= 'a'",
        "os_name not 'a'",
        "== ==",
        "'é' <> 'é'",
        &deep,
    ];
    for marker in broken {
        assert!(marker::holds(marker, "").is_err(), "{marker}");
    }
}

#[test]
fn a_dependency_of_an_extra_applies_with_that_extra() {
    let dependency: Dependency = "socksio==1.*; extra == 'socks'".parse().unwrap();
    assert!(!dependency.applies(&BTreeSet::new()).unwrap());
    assert!(!dependency.applies(&BTreeSet::from(["http2".to_owned()])).unwrap());
    let extras = BTreeSet::from(["http2".to_owned(), "socks".to_owned()]);
    assert!(dependency.applies(&extras).unwrap());
}
