//! Tests of what the end of a server, of its client or of a session leaves behind.

use serde_json::json;

use super::Client;
use isolet_test_support::{LONGEST, Scratch, ended};

#[test]
fn the_end_of_the_input_ends_every_worker() {
    let mut client = Client::with_session(&json!({}));
    client.send(&json!(["run", 5, 1, "print(1)\nwhile True: pass", null, {"stream": true}]));
    client.expect("output", 5);
    let server = client.server.as_ref().unwrap().id();
    let workers = children(server);
    assert_eq!(client.end(), Some(0));
    for worker in workers {
        while is_running(worker) {
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_client_that_asks_for_the_end_is_answered_first() {
    let mut client = Client::with_session(&json!({}));
    assert_eq!(client.ask(&json!(["shutdown", 5])), json!(null));
    assert_eq!(ended(client.server.take().unwrap()).code(), Some(0));
}

/// Returns the processes that a process has started.
fn children(process: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap().flatten();
    let of_task = |task: std::fs::DirEntry| {
        let text = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        text.split_whitespace().map(|id| id.parse().unwrap()).collect::<Vec<u32>>()
    };
    tasks.flat_map(of_task).collect()
}

fn is_running(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    // A dead process that nobody has waited for is a zombie.
    status.lines().any(|line| line.starts_with("State:") && !line.contains('Z'))
}

#[test]
fn copies_that_have_ended_leave_no_descriptor_behind() {
    const COPIES: u8 = 30;
    let mut client = Client::with_session(&json!({"forkable": 1, "isolation": "process"}));
    let server = client.server.as_ref().unwrap().id();
    // Each thread that serves keeps an eventfd once it has waited: there may be one more of them.
    let open = || {
        let fds = std::fs::read_dir(format!("/proc/{server}/fd")).unwrap().flatten();
        let targets = fds.filter_map(|fd| std::fs::read_link(fd.path()).ok());
        let mut targets: Vec<_> = targets.map(|to| to.display().to_string()).collect();
        targets.sort();
        let events = targets.extract_if(.., |to| to.ends_with("[eventfd]")).count();
        (targets, events)
    };
    let mut fork = |number: u64| {
        client.ask(&json!(["fork", number, 1, 2]));
        client.ask(&json!(["close", number + 1, 2]));
    };
    fork(10);
    let (before, events) = open();
    (0..COPIES).for_each(|copy| fork(20 + 2 * u64::from(copy)));
    let start = std::time::Instant::now();
    loop {
        let (now, now_events) = open();
        if now.len() <= before.len() && now_events < events + usize::from(COPIES) {
            break;
        }
        assert!(
            start.elapsed() < LONGEST,
            "{now_events} eventfds and {now:#?}\n{events} and {before:#?}"
        );
        std::thread::yield_now();
    }
}

#[test]
fn closing_a_session_keeps_what_it_has_written_to_open_files() {
    let scratch = Scratch::new("serve-endings");
    let mount = json!({"host": scratch.path(), "guest": "/m", "mode": "rw"});
    let mut client = Client::with_session(&json!({"mounts": [mount]}));
    let text = || std::fs::read_to_string(scratch.path().join("f")).unwrap();
    let code = "f = open('/m/f', 'w'); f.write('hi')";
    assert_eq!(client.ask(&json!(["run", 4, 1, code, {}, {}]))["value"], 2);
    assert_eq!(text(), "");
    client.ask(&json!(["close", 5, 1]));
    assert_eq!(text(), "hi");

    // The same if the server ends, when it is told to or its client has gone.
    for number in [10, 20] {
        let mut client = Client::with_session(&json!({"mounts": [mount]}));
        assert_eq!(client.ask(&json!(["run", number, 1, code, {}, {}]))["value"], 2);
        assert_eq!(text(), "");
        if number == 10 {
            client.ask(&json!(["shutdown", 11]));
            assert_eq!(ended(client.server.take().unwrap()).code(), Some(0));
        } else {
            assert_eq!(client.end(), Some(0));
        }
        assert_eq!(text(), "hi");
    }

    // Not that of a session whose code runs: it ends at once.
    client.ask(&json!(["session", 6, 2, 1]));
    client.send(&json!(["run", 7, 2, "f = open('/m/f', 'w'); f.write('hi')\nprint(1)\nwhile True: pass", {}, {"stream": true}]));
    assert_eq!(client.next()[0], "output");
    client.send(&json!(["close", 8, 2]));
    client.answers(2);
    assert_eq!(text(), "");
}
