//! Sessions of `isolet mcp`: handles, ends, turns, cancellation, time.

use std::fs;
use std::time::Instant;

use serde_json::json;

use super::client::{Client, session, text};
use isolet_test_support::{LONGEST, Scratch};

#[test]
fn a_session_goes_on_by_its_handle_and_other_calls_do_not_see_it() {
    let mut client = Client::modern(&[]);
    let first = session(&client.run("x = 41"));
    assert_eq!(client.run_in(&first, "x += 1")["isError"], false);
    assert_eq!(client.run_in(&first, "x")["structuredContent"]["value"], 42);
    let other = client.run("x");
    assert_eq!(other["structuredContent"]["error"]["type"], "NameError");
    assert_ne!(session(&other), first);
    let closed = client.call("close_session", &json!({"session": first}));
    assert_eq!(closed["structuredContent"], json!({"closed": true}));
    for _ in 0..2 {
        let gone = client.run_in(&first, "x");
        assert_eq!(gone["isError"], true);
        assert_eq!(
            text(&gone),
            format!(
                "session {first} has ended: it was closed. Its variables and files are gone. Call \
                 again without `session` for a new one"
            )
        );
    }
    let unknown = client.run_in("s_0", "x");
    assert!(text(&unknown).starts_with("there is no session s_0, or it ended long ago."));
}

#[test]
fn commands_of_the_shell_run_in_the_sessions_of_python_if_the_owner_wants_them() {
    let mut client = Client::modern(&["--shell"]);
    let listed = client.request("tools/list", &json!({}))["result"].clone();
    let names: Vec<_> = listed["tools"].as_array().unwrap().iter().map(|t| &t["name"]).collect();
    assert_eq!(names, ["close_session", "run_python", "run_shell"]);
    let handle = session(&client.run("open('a.txt', 'w').write('x\\ny\\n')"));
    let mut shell =
        |command: &str| client.call("run_shell", &json!({"command": command, "session": handle}));
    let counted = shell("wc -l < a.txt; mkdir d; cd d; v=1");
    assert_eq!(counted["structuredContent"]["stdout"].as_str().unwrap().trim(), "2");
    let failed = shell("pwd; echo $v; grep nothing ../a.txt");
    assert_eq!(
        (&failed["isError"], &failed["structuredContent"]["status"]),
        (&json!(true), &json!("error"))
    );
    assert!(text(&failed).starts_with("/home/user/d\n1\nexit status: 1"), "{failed}");
    assert_eq!(
        text(&shell("true")),
        format!("The command ran and has no output.\nsession: {handle}")
    );
    assert_eq!(
        client.run_in(&handle, "import os; os.getcwd()")["structuredContent"]["value"],
        "/home/user/d"
    );

    let mut without = Client::modern(&[]);
    let params = json!({"name": "run_shell", "arguments": {"command": "true"}});
    let answer = without.request("tools/call", &params);
    assert_eq!(answer["error"]["message"], "there is no tool `run_shell`", "{answer}");
}

#[test]
fn the_session_not_used_for_longest_makes_room_and_says_so() {
    let mut client = Client::start(&["--max-sessions", "2"]);
    let first = session(&client.run("x = 1"));
    let second = session(&client.run("x = 2"));
    assert_eq!(client.run_in(&first, "x")["structuredContent"]["value"], 1);
    let third = session(&client.run("x = 3"));
    let gone = client.run_in(&second, "x");
    assert!(text(&gone).contains("at most 2 are kept"), "{gone}");
    assert_eq!(client.run_in(&first, "x")["structuredContent"]["value"], 1);
    assert_eq!(client.run_in(&third, "x")["structuredContent"]["value"], 3);
}

#[test]
fn a_session_that_nobody_uses_ends_and_never_becomes_a_new_one() {
    let mut client = Client::start(&["--session-ttl", "0s"]);
    let first = session(&client.run("x = 1"));
    let gone = client.run_in(&first, "x");
    assert!(text(&gone).contains("nobody used it for 0 s"), "{gone}");
    assert!(gone["structuredContent"].is_null());
}

#[test]
fn a_timeout_ends_the_run_and_keeps_the_session() {
    let mut client = Client::modern(&["--timeout", "20s"]);
    let code = "x = 5\nprint('begun')\nwhile True: pass";
    let result = client.call("run_python", &json!({"code": code, "timeout": 0.5}));
    let content = &result["structuredContent"];
    assert_eq!((&result["isError"], &content["status"]), (&json!(true), &json!("timeout")));
    assert_eq!(content["stdout"], "begun\n");
    assert!(text(&result).contains("the limit is 0.5 s"), "{result}");
    assert_eq!(client.run_in(&session(&result), "x")["structuredContent"]["value"], 5);
}

#[test]
fn a_session_whose_interpreter_its_code_has_ended_goes_on_and_says_so() {
    let mut client = Client::start(&[]);
    let handle = session(&client.run("x = 1"));
    let result = client.run_in(&handle, "import os; os._exit(3)");
    assert_eq!(session(&result), handle);
    // The state may have been kept before it.
    let lost = result["structuredContent"]["lost_runs"].as_u64();
    assert!(lost.is_some_and(|lost| lost == 1 || lost == 2), "{result}");
    assert!(text(&result).contains("the session goes on as it was before"), "{result}");
    let next = client.run_in(&handle, "'x' in globals()");
    assert_eq!(next["structuredContent"]["value"], lost == Some(1), "{next}");
    assert!(next["structuredContent"]["lost_runs"].is_null(), "{next}");
}

#[test]
fn a_cancelled_call_is_interrupted_and_its_session_lives_on() {
    let mut client = Client::start(&[]);
    let handle = session(&client.run("import time\nx = 1"));
    for code in ["x += 1\nwhile True: pass", "x += 1\ntime.sleep(100)"] {
        let number = client.begin(
            "tools/call",
            &json!({"name": "run_python", "arguments": {"code": code, "session": handle}}),
        );
        let reason = json!({"requestId": number, "reason": "enough"});
        let cancelled = "notifications/cancelled";
        client.send(&json!({"jsonrpc": "2.0", "method": cancelled, "params": reason}));
        // It waits for its turn, after the cancelled one.
        let value = client.run_in(&handle, "x")["structuredContent"]["value"].clone();
        assert!(value.is_i64(), "{value}");
    }
    // No answer came for the cancelled ones.
    assert!(client.notifications.is_empty(), "{:?}", client.notifications);
}

#[test]
fn calls_of_the_same_session_take_turns() {
    let mut client = Client::start(&[]);
    let handle = session(&client.run("order = []"));
    let calls: Vec<u64> = (0..5)
        .map(|at| {
            let code = format!("order.append({at}); order");
            let arguments = json!({"code": code, "session": handle});
            client.begin("tools/call", &json!({"name": "run_python", "arguments": arguments}))
        })
        .collect();
    let answers: Vec<_> = calls.iter().map(|_| client.next()).collect();
    let ids: Vec<u64> = answers.iter().map(|answer| answer["id"].as_u64().unwrap()).collect();
    assert_eq!(ids, calls);
    assert_eq!(answers[4]["result"]["structuredContent"]["value"], json!([0, 1, 2, 3, 4]));
}

#[test]
fn the_end_of_the_input_ends_the_server_and_its_sessions() {
    let mut client = Client::start(&[]);
    client.run("x = 1");
    client.begin(
        "tools/call",
        &json!({"name": "run_python", "arguments": {"code": "while True: pass"}}),
    );
    assert!(client.end().success());
}

#[test]
fn a_session_that_is_closed_or_idle_or_whose_client_leaves_keeps_what_it_has_written() {
    let scratch = Scratch::new("mcp-endings");
    let mount = format!("{}:/m:rw", scratch.path().display());
    let text_of = |name: &str| fs::read_to_string(scratch.path().join(name)).unwrap();
    let open = |name: &str| format!("f = open('/m/{name}', 'w'); f.write('hi')");
    let mut client = Client::start(&["--mount", &mount]);
    let closed = session(&client.run(&open("a")));
    client.run(&open("b"));
    assert_eq!(text_of("a"), "");
    client.call("close_session", &json!({"session": closed}));
    assert_eq!((text_of("a").as_str(), text_of("b").as_str()), ("hi", ""));
    assert!(client.end().success());
    assert_eq!(text_of("b"), "hi");

    let mut client = Client::start(&["--mount", &mount, "--session-ttl", "0s"]);
    client.run(&open("c"));
    let start = Instant::now();
    while text_of("c").is_empty() && start.elapsed() < LONGEST {
        client.call("close_session", &json!({"session": "s_0"}));
    }
    assert_eq!(text_of("c"), "hi");
}

#[test]
fn a_file_of_the_host_that_is_left_open_is_written_when_its_session_ends_in_order() {
    type End = fn(Client) -> Option<i32>;
    let scratch = Scratch::new("mcp-open-files");
    let store = scratch.path().join("store").into_os_string().into_string().unwrap();
    let stored = ["--session-store", &store];
    let leaves: End = |client| client.end().code();
    let is_told: End = |client| {
        rustix::process::kill_process(client.process(), rustix::process::Signal::TERM).unwrap();
        client.ended().code()
    };
    for (at, (more, end)) in
        [(&[][..], leaves), (&[], is_told), (&stored, leaves), (&stored, is_told)]
            .into_iter()
            .enumerate()
    {
        let name = format!("f{at}");
        let file = scratch.file(&name, "before");
        let mut client = Client::start(&[&["--allow-write", &file], more].concat());
        let open = format!("f = open('/sandbox/{name}', 'w'); f.write('after')");
        assert_eq!(client.run(&open)["structuredContent"]["value"], 5);
        assert_eq!(fs::read_to_string(&file).unwrap(), "");
        assert_eq!(end(client), Some(0));
        assert_eq!(fs::read_to_string(&file).unwrap(), "after", "{at}");
    }
}
