//! Servers that are processes: their protocols, their lists, their ends.

use std::fs;
use std::time::Duration;

use super::{Rig, call, failed, fake};
use isolet::Value;
use isolet::internals::testing;

#[tokio::test]
async fn servers_of_both_protocols_are_called() {
    for (options, protocol) in
        [(["legacy"], "2025-06-18"), (["modern"], "2026-07-28"), (["both"], "2026-07-28")]
    {
        let rig = Rig::new();
        // The second hub knows the protocol from the first one.
        for _ in 0..2 {
            let hub = rig.hub(fake(options));
            let sum = call(&hub, "get_sum", [("a", 1.into()), ("b", 2.5.into())]).await;
            assert_eq!(sum, Ok(Value::Float(3.5)), "{options:?}");
            assert_eq!(hub.check("fake").await.unwrap().protocol, protocol);
        }
    }
}

#[tokio::test]
async fn a_server_that_dies_of_the_newer_protocol_is_started_again_with_the_older() {
    let rig = Rig::new();
    let hub = rig.hub(fake(["legacy", "dies"]));
    let found = call(&hub, "find", [("from_", "x".into())]).await.unwrap();
    assert_eq!(found.get("found").and_then(Value::as_list).map(<[Value]>::len), Some(1));
}

#[tokio::test]
async fn a_server_that_answers_late_is_started_once_whatever_its_protocol() {
    let called = ["legacy", "modern"].map(|protocol| async move {
        let rig = Rig::new();
        let starts = rig.path("starts");
        let option = format!("starts={}", starts.display());
        let hub = rig.hub(fake([protocol, "late", &option]));
        let sum = call(&hub, "get_sum", [("a", 1.into()), ("b", 2.5.into())]).await;
        assert_eq!(sum, Ok(Value::Float(3.5)), "{protocol}");
        assert_eq!(fs::read_to_string(starts).unwrap(), "start\n", "{protocol}");
    });
    futures_util::future::join_all(called).await;
}

#[tokio::test]
async fn all_pages_are_listed_and_invalid_tools_left_out() {
    let rig = Rig::new();
    let hub = rig.hub(fake(["page=2", "bad"]));
    let report = hub.check("fake").await.unwrap();
    assert_eq!((report.tools, report.left_out), (14, 0));
    let infos = hub.describe("fake").await.unwrap();
    let sum = infos.iter().find(|info| info.name == "get-sum").unwrap();
    assert_eq!(sum.python_name, "get_sum");
    assert_eq!(sum.signature, "get_sum(a: float, b: float) -> float");
    assert_eq!(sum.summary, "Adds two numbers.");
    assert!(sum.says_read_only);
}

#[tokio::test]
async fn a_server_has_at_most_five_thousand_tools() {
    let rig = Rig::new();
    let hub = rig.hub(fake(["many=6000", "page=1000"]));
    assert_eq!(hub.check("fake").await.unwrap().tools, 5_000);
}

#[tokio::test]
async fn listing_what_is_known_starts_no_server() {
    let rig = Rig::new();
    let starts = rig.path("starts");
    let option = format!("starts={}", starts.display());
    let count = || fs::read_to_string(&starts).unwrap_or_default().lines().count();
    for _ in 0..3 {
        let hub = rig.hub(fake([&option]));
        assert_eq!(hub.tools("fake").await.unwrap().len(), 13);
        assert_eq!(count(), 1);
    }
    let hub = rig.hub(fake([&option]));
    assert_eq!(hub.servers()[0].tools, Some(13));
    call(&hub, "echo", []).await.unwrap();
    call(&hub, "echo", []).await.unwrap();
    assert_eq!(count(), 2);
}

#[tokio::test]
async fn a_call_under_way_fails_when_the_server_dies_and_the_next_starts_it_again() {
    let rig = Rig::new();
    let hub = rig.hub(fake(["both"]));
    let error = failed(call(&hub, "crash", []).await);
    assert!(error.starts_with("ConnectionError: the server `fake`: "), "{error}");
    assert_eq!(call(&hub, "grow", []).await, Ok("done".into()));
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_cancelled_at_the_server() {
    let rig = Rig::new();
    let hub = rig.hub(fake(["both"]).timeout(Duration::from_millis(200)));
    let error = failed(call(&hub, "never", []).await);
    assert_eq!(
        error,
        "TimeoutError: the server `fake`: `never` took longer than 0.2 s and was cancelled"
    );
    rig.wait_for("cancelled");
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_is_cancelled_at_the_server() {
    let rig = Rig::new();
    let hub = rig.hub(fake(["both"]));
    let tools = hub.tools("fake").await.unwrap();
    let tool = tools.iter().find(|tool| tool.spec().name() == "never").unwrap().clone();
    let called =
        tokio::spawn(async move { testing::call(&tool, Value::Dict(vec![]), (1, 1)).await });
    let rig = tokio::task::spawn_blocking(move || {
        rig.wait_for("called");
        rig
    });
    let rig = rig.await.unwrap();
    called.abort();
    assert!(called.await.unwrap_err().is_cancelled());
    rig.wait_for("cancelled");
    assert_eq!(rig.last().outcome.to_string(), "cancelled");
}

#[tokio::test]
async fn a_server_that_does_not_answer_or_start_is_said_to_be_gone() {
    let rig = Rig::new();
    let deaf = rig.builder(fake(["deaf"])).start_timeout(Duration::from_millis(300));
    let error = deaf.build().unwrap().tools("fake").await.unwrap_err().to_string();
    assert_eq!(
        error,
        "ConnectionError: the server `fake` is not there: it was not ready after 0.3 s"
    );
    let nothing = super::ServerConfig::command("fake", "/no/such", [""; 0]);
    let error = rig.hub(nothing).tools("fake").await.unwrap_err().to_string();
    assert!(error.contains("cannot start `/no/such`"), "{error}");
    let error = rig.hub(fake([])).tools("other").await.unwrap_err().to_string();
    assert_eq!(error, "LookupError: there is no server `other`, there are fake");
}

#[tokio::test]
async fn a_failing_start_is_not_repeated_without_end() {
    let rig = Rig::new();
    let nothing = super::ServerConfig::command("fake", "/no/such", [""; 0]);
    let hub = rig.hub(nothing);
    let mut error = String::new();
    for _ in 0..8 {
        error = hub.tools("fake").await.unwrap_err().to_string();
    }
    assert!(error.contains("times and is tried again in"), "{error}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_server_ends_with_its_hub() {
    use std::io::Read;
    let rig = Rig::new();
    let fifo = rig.path("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    let option = format!("hold={}", fifo.display());
    let opened = tokio::task::spawn_blocking(move || fs::File::open(fifo).unwrap());
    let hub = rig.hub(fake([&option]));
    call(&hub, "echo", []).await.unwrap();
    let mut held = opened.await.unwrap();
    drop(hub);
    // The end of the file comes when the process has ended.
    let end = tokio::task::spawn_blocking(move || held.read(&mut [0]).unwrap());
    assert_eq!(end.await.unwrap(), 0);
}

#[tokio::test]
async fn a_new_tool_is_known_when_the_server_says_so() {
    for option in ["legacy", "modern"] {
        let rig = Rig::new();
        let hub = rig.builder(fake([option]).allow("*")).without_pins().build().unwrap();
        assert_eq!(failed(call(&hub, "grown", []).await), "NameError: no such tool");
        assert_eq!(rig.changes.recv().unwrap(), "fake");
        call(&hub, "grow", []).await.unwrap();
        let rig = tokio::task::spawn_blocking(move || {
            assert_eq!(rig.changes.recv_timeout(Duration::from_mins(1)).unwrap(), "fake");
            rig
        });
        let _rig = rig.await.unwrap();
        assert_eq!(call(&hub, "grown", []).await, Ok("done".into()), "{option}");
    }
}

#[tokio::test]
async fn a_result_that_is_too_large_fails_its_call_only() {
    let rig = Rig::new();
    let hub = rig.hub(fake(["both"]));
    let error = failed(call(&hub, "huge", []).await);
    let said = "ToolError: the server's answer cannot be used: it has ";
    assert!(error.starts_with(said) && error.ends_with("(`maxAnswerBytes`)"), "{error}");
    assert_eq!(
        call(&hub, "image", []).await.unwrap().get("data"),
        Some(&Value::bytes(*b"\x89PNG"))
    );
}

#[tokio::test]
async fn the_environment_of_a_server_is_small() {
    let rig = Rig::new();
    let hub = rig.hub(fake(["both"]).env("MODE", "quick"));
    let variables = call(&hub, "environment", []).await.unwrap();
    for (name, value) in [("HOME", "/h"), ("LANG", "C.UTF-8"), ("MODE", "quick")] {
        assert_eq!(variables.get(name), Some(&Value::from(value)));
    }
    // Cargo sets it for the tests. A wrapper of Python may set others of its own.
    assert_eq!(variables.get("CARGO_MANIFEST_DIR"), None);
}

#[tokio::test]
async fn what_a_server_prints_for_people_is_no_message() {
    let rig = Rig::new();
    let hub = rig.hub(fake(["both"]).env("TOKEN", "abcdefgh"));
    assert_eq!(call(&hub, "noise", []).await, Ok("done".into()));
    rig.wait_for("one [secret]");
}

#[tokio::test]
async fn results_without_a_schema_teach_the_return_type() {
    let rig = Rig::new();
    let find = |hub: super::Hub| async move {
        let infos = hub.describe("fake").await.unwrap();
        infos.into_iter().find(|info| info.name == "find").unwrap().signature
    };
    let hub = rig.hub(fake(["both"]));
    assert_eq!(find(hub.clone()).await, "find(from_: str)");
    call(&hub, "find", [("from_", "s3cret".into())]).await.unwrap();
    let learnt = find(hub.clone()).await;
    assert!(learnt.starts_with("find(from_: str) -> "), "{learnt}");
    assert!(!learnt.contains("s3cret"), "{learnt}");
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_fails_its_call_at_once_and_half_a_pair_is_a_character() {
    let rig = Rig::new();
    let hub = rig.hub(fake(["legacy", "raw"]).max_answer_bytes(100_000));
    let answer = |result: &str| format!("{{\"jsonrpc\":\"2.0\",\"id\":ID,{result}}}");
    let ones = "1,".repeat(20_000);
    for (result, said) in [
        (r#""result":{"content":[],"structuredContent":{"x":NaN}}"#, "expected value"),
        (r#""result":{"structuredContent":1e400}"#, "number out of range"),
        ("\"result\":{\"content\":[\"\u{ff}\"]}", "it is not UTF-8"),
        (&format!("\"result\":{{\"structuredContent\":[{ones}1]}}"), "values, the limit is 12500"),
        (r#""error":"boom""#, "ToolError: boom"),
    ] {
        let error = failed(call(&hub, "raw", [("line", answer(result).into())]).await);
        assert!(error.contains(said), "{error}");
    }
    for (content, expected) in [
        (r#"[{"type":"text","text":"a\ud83db"}]"#, Value::from("a\u{fffd}b")),
        (
            r#"[{"type":"hologram"},{"type":"text","text":"ok"}]"#,
            Value::List(vec![r#"{"type":"hologram"}"#.into(), "ok".into()]),
        ),
    ] {
        let line = answer(&format!("\"result\":{{\"content\":{content}}}"));
        assert_eq!(call(&hub, "raw", [("line", line.into())]).await, Ok(expected));
    }
}

#[tokio::test]
async fn what_is_missing_is_named_when_a_server_cannot_be_started() {
    let rig = Rig::new();
    let start = |entry: &str| {
        let text = format!("{{\"mcpServers\": {{\"fake\": {entry}}}}}");
        let environment = crate::config::Environment::default();
        let config =
            crate::config::Config::parse(&text, "x", &environment, crate::config::Origin::Own)
                .unwrap();
        rig.hub(config.servers()[0].clone())
    };
    for (entry, said) in [
        (r#"{"command": "/bin/sh", "cwd": "/no/such"}"#, "its `cwd` is `/no/such`, which is no"),
        (
            r#"{"command": "/no/npx -y server"}"#,
            "its `command` is `/no/npx` and the others are its `args`",
        ),
    ] {
        let error = start(entry).tools("fake").await.unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}
