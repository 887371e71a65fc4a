//! Servers that are reached by streamable HTTP.

use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use super::{HttpFake, Rig, ServerConfig, call, failed};
use isolet::Value;

#[tokio::test]
async fn servers_of_both_protocols_are_called_by_http() {
    for (options, protocol) in [
        (&["legacy"][..], "2025-06-18"),
        (&["legacy", "sse"], "2025-06-18"),
        (&["modern"], "2026-07-28"),
        (&["modern", "sse"], "2026-07-28"),
    ] {
        let server = HttpFake::start(options);
        let rig = Rig::new();
        let hub = rig.hub(ServerConfig::http("fake", &server.url));
        for _ in 0..3 {
            let sum = call(&hub, "get_sum", [("a", 1.into()), ("b", 2.into())]).await.unwrap();
            assert_eq!(sum.as_f64(), Some(3.0), "{options:?}");
        }
        assert_eq!(hub.check("fake").await.unwrap().protocol, protocol);
        let failure = failed(call(&hub, "refuse", []).await);
        assert_eq!(failure, "ToolError: not that", "{options:?}");
    }
}

#[tokio::test]
async fn headers_are_sent_and_a_missing_token_is_named() {
    let server = HttpFake::start(&["modern", "token=Bearer sesame-opens"]);
    let rig = Rig::new();
    let config = ServerConfig::http("fake", &server.url);
    let error = rig.hub(config.clone()).tools("fake").await.unwrap_err().to_string();
    assert!(error.contains("asks for authorization (HTTP 401)"), "{error}");
    let hub = rig.hub(config.header("Authorization", "Bearer sesame-opens"));
    let echoed = call(&hub, "echo", [("arguments", Value::dict([("x", "sesame-opens")]))]).await;
    assert_eq!(echoed.unwrap().get("x"), Some(&Value::from("[secret]")));
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let server = HttpFake::start(&["modern"]);
    let rig = Rig::new();
    let url = server.url.replace("/mcp", "/moved");
    let error = rig.hub(ServerConfig::http("fake", url)).tools("fake").await.unwrap_err();
    assert!(error.message().contains("name that URL instead"), "{error}");
}

#[tokio::test]
async fn a_result_that_is_too_large_is_an_error() {
    for options in [&["modern"][..], &["modern", "sse"]] {
        let server = HttpFake::start(options);
        let rig = Rig::new();
        let hub = rig.hub(ServerConfig::http("fake", &server.url));
        let error = failed(call(&hub, "huge", []).await);
        let said = "ToolError: the server's answer cannot be used: it has 2097153 bytes, the limit \
                    is 2097152 (`maxAnswerBytes`)";
        assert_eq!(error, said, "{options:?}");
        call(&hub, "image", []).await.unwrap();
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_a_connection_error() {
    let url = {
        let server = HttpFake::start(&["modern"]);
        server.url.clone()
    };
    let rig = Rig::new();
    let url = format!("{url}?key=sesame");
    let error = rig.hub(ServerConfig::http("fake", url)).tools("fake").await.unwrap_err();
    assert_eq!(error.type_name(), "ConnectionError");
    assert_eq!(error.message(), "the server `fake` is not there: connection refused");
    let error = rig.hub(ServerConfig::http("fake", "ftp://x")).tools("fake").await.unwrap_err();
    assert!(error.message().contains("its URL has the scheme `ftp`"), "{error}");
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_hung_up_on() {
    let rig = Rig::new();
    let fifo = rig.path("gone");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let server = HttpFake::start(&["modern", &format!("gone={}", fifo.display())]);
    let (sender, seen) = mpsc::channel();
    std::thread::spawn(move || sender.send(std::fs::read_to_string(fifo)));
    let config = ServerConfig::http("fake", &server.url).allow("*");
    let hub = rig.builder(config).call_timeout(Duration::from_secs(1)).build().unwrap();
    let error = failed(call(&hub, "never", []).await);
    assert!(error.contains("took longer than 1 s and was cancelled"), "{error}");
    let seen = seen.recv_timeout(Duration::from_mins(1)).unwrap();
    assert_eq!(seen.unwrap(), "the client is gone\n");
}

#[tokio::test]
async fn an_answer_that_breaks_off_goes_on_in_another_stream() {
    let server = HttpFake::start(&["legacy", "sse", "cuts"]);
    let rig = Rig::new();
    let hub = rig.hub(ServerConfig::http("fake", &server.url));
    for _ in 0..2 {
        let sum = call(&hub, "get_sum", [("a", 1.into()), ("b", 2.into())]).await.unwrap();
        assert_eq!(sum.as_f64(), Some(3.0));
    }
}

#[tokio::test]
async fn an_answer_counts_whatever_its_number_and_the_name_of_its_event() {
    for options in [&["legacy", "odd"][..], &["modern", "odd", "sse"], &["legacy", "odd", "sse"]] {
        let server = HttpFake::start(options);
        let rig = Rig::new();
        let hub = rig.hub(ServerConfig::http("fake", &server.url));
        assert_eq!(call(&hub, "grow", []).await, Ok("done".into()), "{options:?}");
        let failure = failed(call(&hub, "refuse", []).await);
        assert_eq!(failure, "ToolError: not that", "{options:?}");
    }
}

#[tokio::test]
async fn a_session_that_the_server_has_lost_is_begun_anew_and_other_refusals_are_told() {
    for (status, is_anew) in [(400, true), (404, true), (403, false), (422, false), (500, false)] {
        let server = HttpFake::start(&["legacy", &format!("loses={status}")]);
        let rig = Rig::new();
        let hub = rig.hub(ServerConfig::http("fake", &server.url));
        assert_eq!(call(&hub, "changing", []).await, Ok("done".into()));
        let second = call(&hub, "changing", []).await;
        if is_anew {
            assert_eq!(second, Ok("done".into()), "{status}");
        } else {
            assert_eq!(failed(second), "ToolError: no valid session", "{status}");
        }
    }
}
