//! Tests of what operators and their programs use: batches, creations that are sent again, quotas,
//! metrics, the description of the routes.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use futures_util::future::{Either, select};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, prlimit};
use serde_json::{Value, json};

use super::{EVENTS, Events, Node, key_hash};
use isolet_test_support::{LONGEST, Scratch, command, wheel};

/// How often to look whether a condition holds.
const LOOK: Duration = Duration::from_millis(5);

/// Waits until a condition holds.
pub(super) async fn until(mut holds: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !holds().await {
            // What it waits for needs the processor, too.
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::time::timeout(LONGEST, wait).await.unwrap();
}

#[tokio::test]
async fn a_batch_answers_each_line_once_and_what_is_wrong_with_one_ends_no_other() {
    let node = Node::start(&["--max-sessions", "2"]);
    let mut lines: Vec<_> =
        (0..12).map(|n| json!({"id": n, "code": format!("{n} * {n}")}).to_string()).collect();
    lines.push(json!({"id": "raises", "code": "1 / 0"}).to_string());
    lines.push(json!({"id": "denied", "code": "1", "policy": {"allow_net": ["a.b"]}}).to_string());
    lines.push(json!({"id": ["no code"]}).to_string());
    lines.push(String::new());
    lines.push("no JSON".to_owned());
    lines.push(r#"{"code": "1", "inputs": {"x": NaN}, "id": "unread"}"#.to_owned());
    let answer = node.send_text("POST /v1/batch", &[EVENTS], lines.join("\n")).await;
    let mut events = Events::of(answer);
    let (mut squares, mut others) = (BTreeSet::new(), Vec::new());
    while let Some(event) = events.next().await {
        match event["id"].as_i64() {
            Some(n) => {
                assert_eq!(event["execution"]["value"], n * n, "{event}");
                assert!(squares.insert(n), "{event}");
            }
            None => others.push(event),
        }
    }
    assert_eq!(squares, (0..12).collect());
    others.sort_by_key(|event| event["id"].to_string());
    let ids: Vec<_> = others.iter().map(|event| event["id"].clone()).collect();
    let expected =
        [json!("denied"), json!("raises"), json!("unread"), json!(["no code"]), json!(null)];
    assert_eq!(ids, expected);
    assert_eq!(others[0]["problem"]["code"], "denied");
    assert_eq!(others[1]["execution"]["exception"]["type"], "ZeroDivisionError");
    for wrong in &others[2..] {
        assert_eq!(wrong["problem"]["code"], "invalid");
    }
}

#[tokio::test]
async fn a_client_is_told_in_its_own_words_what_helps() {
    let node = Node::start(&[]);
    let id = node.session(&json!({"policy": {"limits": {"run_time": 0.2}}})).await;
    let (_, ran) = node.run(&id, "import yaml").await;
    assert_eq!(ran["hint"], "`packages=[\"pyyaml\"]` loads it: that is the package of `yaml`");
    let (_, ran) = node.run(&id, "import torch").await;
    assert!(ran["hint"].as_str().unwrap().starts_with("`torch` has no wheel"), "{ran}");
    let (_, ran) = node.run(&id, "while True: pass").await;
    let message = ran["termination"]["message"].as_str().unwrap().to_owned();
    assert!(message.ends_with("the limit is 0.2 s (`limits.run_time`)"), "{message}");
    assert_eq!(ran.get("hint"), None, "{ran}");
    for policy in [
        json!({"mounts": [{"host": "/", "guest": "/data"}]}),
        json!({"allow_net": ["*"]}),
        json!({"allow_net": ["https://a.example"]}),
        json!({"packages": ["no such"]}),
        json!({"limits": {"run_time": -1}}),
        json!({"nosuch": 1}),
    ] {
        let (status, problem) = node.ask("POST /v1/sessions", &json!({"policy": policy})).await;
        assert!((400..500).contains(&status), "{policy}: {problem}");
        let told = problem.to_string();
        assert!(!told.contains("::") && !told.contains("`--"), "{policy}: {told}");
    }
}

#[tokio::test]
async fn a_creation_that_is_sent_again_is_the_same_session_and_one_of_its_tenant() {
    let scratch = Scratch::new("node-again");
    let config = format!(
        "[tenants.a]\nkeys = [{:?}]\n[tenants.b]\nkeys = [{:?}]\n",
        key_hash("a"),
        key_hash("b")
    );
    let node = Node::configured(&scratch, &config);
    let create = async |key: &str, again: &str, body: Value| {
        let headers = [("x-api-key", key), ("idempotency-key", again)];
        node.ask_as(&headers, "POST /v1/sessions", &body).await
    };
    let (first, second) = tokio::join!(create("a", "1", json!({})), create("a", "1", json!({})));
    assert_eq!((first.0, second.0), (201, 201));
    assert_eq!(first.1["id"], second.1["id"]);
    assert_eq!(first.1["token"], second.1["token"]);
    let (status, problem) = create("a", "1", json!({"ttl": 5})).await;
    assert_eq!((status, &problem["code"]), (422, &json!("invalid")), "{problem}");
    assert_ne!(create("b", "1", json!({})).await.1["id"], first.1["id"]);
    assert_ne!(create("a", "2", json!({})).await.1["id"], first.1["id"]);
    let listed = node.ask_as(&[("x-api-key", "a")], "GET /v1/sessions", &Value::Null).await.1;
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 2);
}

/// K6
#[tokio::test]
async fn runs_of_a_tenant_that_do_not_end_delay_no_other_tenant() {
    let scratch = Scratch::new("node-turns");
    let config = format!(
        "max_runs = 1\nqueue_time = 0\n[tenants.a]\nkeys = [{:?}]\n[tenants.b]\nkeys = [{:?}]\n",
        key_hash("a"),
        key_hash("b")
    );
    let node = Node::configured(&scratch, &config);
    let of = |key: &'static str| [("x-api-key", key), EVENTS];
    let create = async |key: &'static str, body: Value| {
        let (status, session) = node.ask_as(&of(key)[..1], "POST /v1/sessions", &body).await;
        assert_eq!(status, 201, "{session}");
        format!("POST /v1/sessions/{}/runs", session["id"].as_str().unwrap())
    };
    let policy = json!({"policy": {"tools": [{"name": "ask"}]}});
    let (first, second) = (create("a", policy).await, create("a", json!({})).await);
    let other = create("b", json!({})).await;
    let mut events = Events::of(node.send(&first, &of("a"), &json!({"code": "ask()"})).await);
    assert_eq!(events.next().await.unwrap()["type"], "tool_call");
    // All places are taken, as the tenant's own next run finds, which may not wait.
    let run = json!({"code": "6 * 7"});
    let (status, problem) = node.ask_as(&of("a")[..1], &second, &run).await;
    assert_eq!((status, &problem["code"]), (504, &json!("queue")), "{problem}");
    let (status, ran) = node.ask_as(&of("b")[..1], &other, &run).await;
    assert_eq!((status, &ran["value"]), (200, &json!(42)), "{ran}");
}

#[tokio::test]
async fn a_tenant_starts_no_more_sessions_in_a_second_than_it_may() {
    let scratch = Scratch::new("node-rate");
    let config =
        format!("[tenants.a]\nkeys = [{:?}]\nquotas = {{ starts = 0.001 }}", key_hash("a"));
    let node = Node::configured(&scratch, &config);
    let key = [("x-api-key", "a")];
    assert_eq!(node.ask_as(&key, "POST /v1/sessions", &json!({})).await.0, 201);
    let response = node.send("POST /v1/sessions", &key, &json!({})).await;
    assert_eq!(response.status(), 429);
    let after: u32 = response.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=1000).contains(&after), "{after}");
}

/// No client takes a place that another one has waited for: each has its turn.
#[tokio::test]
async fn who_waits_for_a_session_is_served_in_turn_also_within_a_quota() {
    const CLIENTS: usize = 8;
    const EACH: usize = 3;
    let scratch = Scratch::new("node-line");
    let config = format!(
        "max_sessions = 2\n[tenants.a]\nkeys = [{:?}]\n[tenants.b]\nkeys = [{:?}]\n\
         quotas = {{ sessions = 1 }}\n",
        key_hash("a"),
        key_hash("b")
    );
    let node = Node::configured(&scratch, &config);
    for key in ["a", "b"] {
        let key = [("x-api-key", key)];
        let answered = std::sync::Mutex::new(Vec::new());
        let client = async |number: usize| {
            for _ in 0..EACH {
                let body = json!({"code": "1", "language": "python"});
                let (status, answer) = node.ask_as(&key, "POST /run_code", &body).await;
                assert_eq!((status, &answer["status"]), (200, &json!("Success")), "{answer}");
                answered.lock().unwrap().push(number);
            }
        };
        futures_util::future::join_all((0..CLIENTS).map(client)).await;
        // When one has its last answer, each has had all but its last one at least: of those who
        // ask again and again, none is ahead of another by more than a turn.
        let answered = answered.into_inner().unwrap();
        let mut counts = [0_usize; CLIENTS];
        for number in answered {
            counts[number] += 1;
            let least = *counts.iter().min().unwrap();
            assert!(counts[number] <= least + 2, "{counts:?}");
        }
    }
}

/// K27
#[tokio::test]
async fn packages_of_a_tenant_that_do_not_come_to_an_end_hold_up_nobody_else() {
    let scratch = Scratch::new("node-packages");
    wheel(scratch.path(), "loopy", "1", "while True: pass\n");
    wheel(scratch.path(), "tiny", "1", "X = 1\n");
    let config = format!(
        "package_time = 1000\n[policy]\nwheels = [{:?}]\noffline = true\n[ceiling]\n\
         packages = [\"*\"]\n[tenants.a]\nkeys = [{:?}]\n[tenants.b]\nkeys = [{:?}]\n",
        scratch.path(),
        key_hash("a"),
        key_hash("b")
    );
    let node = Node::configured(&scratch, &config);
    let run = async |key: &'static str, packages: &[&str]| {
        let body = json!({"code": "6 * 7", "policy": {"packages": packages}});
        let (status, ran) = node.ask_as(&[("x-api-key", key)], "POST /v1/run", &body).await;
        assert_eq!((status, &ran["value"]), (200, &json!(42)), "{ran}");
    };
    let sets: Vec<String> = (0..4).map(|nth| format!("loopy>=0.{nth}")).collect();
    let mut endless = Box::pin(futures_util::future::join_all(
        sets.iter().map(async |set| run("a", &[set]).await),
    ));
    // Until one has its packages made ready, and the others wait for it.
    let prepares = until(async || {
        let metrics = node.text("GET /metrics").await;
        ["isolet_packages_preparing 1", "isolet_packages_waiting 3"]
            .iter()
            .all(|wanted| metrics.lines().any(|line| line == *wanted))
    });
    assert!(matches!(select(&mut endless, Box::pin(prepares)).await, Either::Right(_)));
    // Neither another tenant, with packages or without, nor the same one without waits for it.
    for (key, packages) in [("b", &[][..]), ("b", &["tiny"]), ("a", &[])] {
        let other = Box::pin(run(key, packages));
        assert!(matches!(select(&mut endless, other).await, Either::Right(_)));
    }
    // When nobody waits for them any more, the tenant's next packages have their turn.
    drop(endless);
    run("a", &["tiny>=1"]).await;
}

#[tokio::test]
async fn a_tenant_that_is_removed_has_no_session_any_more_and_its_tokens_are_of_no_use() {
    let scratch = Scratch::new("node-removed");
    let store = scratch.path().join("store");
    let stays =
        format!("[store]\ndirectory = {store:?}\n[tenants.b]\nkeys = [{:?}]\n", key_hash("b"));
    let both = format!("{stays}[tenants.a]\nkeys = [{:?}]\n", key_hash("a"));
    let node = Node::configured(&scratch, &both);
    let create = async |key: &'static str| {
        let key = [("x-api-key", key)];
        node.ask_as(&key, "POST /v1/sessions", &json!({})).await.1
    };
    let (gone, paused, other) = (create("a").await, create("a").await, create("b").await);
    let of = |session: &Value, what: &str| {
        let id = session["id"].as_str().unwrap();
        (format!("POST /v1/sessions/{id}/{what}"), session["token"].as_str().unwrap().to_owned())
    };
    let ask = async |session: &Value, what: &str, body: Value| {
        let (request, token) = of(session, what);
        let bearer = format!("Bearer {token}");
        node.ask_as(&[("authorization", &bearer)], &request, &body).await
    };
    assert_eq!(ask(&paused, "pause", json!({})).await.0, 200);
    assert_eq!(ask(&gone, "snapshots", json!({})).await.0, 201);
    // A run is under way, too.
    let (request, token) = of(&gone, "runs");
    let bearer = format!("Bearer {token}");
    let endless = json!({"code": "print(1, end='', flush=True)\nwhile True: pass"});
    let headers = [("authorization", bearer.as_str()), EVENTS];
    let mut events = Events::of(node.send(&request, &headers, &endless).await);
    assert_eq!(events.next().await.unwrap()["text"], "1");
    std::fs::write(scratch.path().join("node.toml"), stays).unwrap();
    node.signal(Signal::HUP);
    until(async || create("a").await["code"] == "unauthorized").await;
    while events.next().await.is_some() {}
    for session in [&gone, &paused] {
        for what in ["fork", "renew", "resume", "pause", "snapshots", "runs"] {
            let body = if what == "runs" { json!({"code": "1"}) } else { json!({}) };
            let (status, problem) = ask(session, what, body).await;
            assert_eq!(status, 410, "{what}: {problem}");
            assert!(problem["detail"].as_str().unwrap().contains("its tenant was removed"));
        }
    }
    assert_eq!(ask(&other, "runs", json!({"code": "6 * 7"})).await.1["value"], 42);
    let load = async || {
        node.ask_as(&[("x-api-key", "b")], "GET /v1/node", &Value::Null).await.1["sessions"].clone()
    };
    until(async || load().await == 1).await;
    // The files of its sessions are gone.
    let own = std::fs::read_dir(&store).unwrap().next().unwrap().unwrap().path();
    until(async || std::fs::read_dir(&own).unwrap().count() == 0).await;
}

#[tokio::test]
async fn metrics_count_what_was_done_and_refused_and_name_no_tenant() {
    let scratch = Scratch::new("node-metrics");
    let config = format!("max_sessions = 1\n[tenants.secretive]\nkeys = [{:?}]", key_hash("key"));
    let node = Node::configured(&scratch, &config);
    let key = [("x-api-key", "key")];
    assert_eq!(node.ask("POST /v1/run", &json!({"code": "1"})).await.0, 401);
    for code in ["1", "1 / 0"] {
        assert_eq!(node.ask_as(&key, "POST /v1/run", &json!({"code": code})).await.0, 200);
    }
    assert_eq!(node.ask_as(&key, "POST /v1/sessions", &json!({})).await.0, 201);
    assert_eq!(node.ask_as(&key, "POST /v1/sessions", &json!({})).await.0, 503);
    let text = node.text("GET /metrics").await;
    for line in [
        "isolet_sessions 1",
        "isolet_slots_used_ratio 1.0",
        "isolet_sessions_created_total 3",
        "isolet_sessions_ended_total{reason=\"closed\"} 2",
        "isolet_refused_total{gate=\"key\"} 1",
        "isolet_refused_total{gate=\"capacity\"} 1",
        "isolet_run_seconds_count{outcome=\"completed\"} 1",
        "isolet_run_seconds_count{outcome=\"raised\"} 1",
        "isolet_http_request_seconds_count{dialect=\"native\"} 4",
    ] {
        assert!(text.lines().any(|its| its == line), "{line}\n{text}");
    }
    assert!(!text.contains("secretive"), "{text}");
}

#[tokio::test]
async fn a_signal_has_the_node_read_its_keys_again() {
    let scratch = Scratch::new("node-reload");
    let config = |key: &str| format!("[tenants.a]\nkeys = [{:?}]", key_hash(key));
    let node = Node::configured(&scratch, &config("old"));
    let status = async |key: &str| {
        node.ask_as(&[("x-api-key", key)], "GET /v1/sessions", &Value::Null).await.0
    };
    let create = node.ask_as(&[("x-api-key", "old")], "POST /v1/sessions", &json!({})).await;
    assert_eq!((create.0, status("new").await), (201, 401));
    let path = scratch.path().join("node.toml");
    std::fs::write(&path, config("new")).unwrap();
    node.signal(Signal::HUP);
    until(async || status("new").await == 200).await;
    assert_eq!(status("old").await, 401);
    let listed = node.ask_as(&[("x-api-key", "new")], "GET /v1/sessions", &Value::Null).await.1;
    assert_eq!(listed["sessions"][0]["id"], create.1["id"]);
    // A file without keys opens the node to nobody.
    std::fs::write(&path, "").unwrap();
    node.signal(Signal::HUP);
    std::fs::write(&path, "nonsense").unwrap();
    node.signal(Signal::HUP);
    std::fs::write(&path, config("newest")).unwrap();
    node.signal(Signal::HUP);
    until(async || status("newest").await == 200).await;
    assert_eq!(node.ask("GET /v1/sessions", &Value::Null).await.0, 401);
}

#[tokio::test]
async fn the_description_has_every_native_route_and_only_those() {
    let node = Node::start(&[]);
    let description: Value = serde_json::from_str(&node.text("GET /openapi.json").await).unwrap();
    assert_eq!(description["openapi"], "3.1.0");
    let paths = description["paths"].as_object().unwrap();
    assert!(paths.len() > 10);
    let mut ids = BTreeSet::new();
    for (path, methods) in paths {
        assert!(path.starts_with("/v1/") && !path.contains('*'), "{path}");
        for (method, operation) in methods.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap();
            assert!(ids.insert(id), "{id} is the id of two operations");
            assert!(id.contains('_'), "{id} is no verb with its noun");
            for (status, response) in operation["responses"].as_object().unwrap() {
                assert_ne!(response["description"], "", "{id} {status}");
            }
            let path = path.replace(['{', '}'], "x");
            let request = format!("{} {path}", method.to_uppercase());
            let (status, problem) = node.ask(&request, &Value::Null).await;
            assert!(problem["code"] != "no_route" && status < 500, "{request} {problem}");
        }
    }
}

#[tokio::test]
async fn workers_go_on_when_a_supervisor_asks_every_process_to_end() {
    let node = Node::start(&["--isolation", "process"]);
    let id = node.session(&json!({})).await;
    assert_eq!(node.run(&id, "kept = 1").await.0, 200);
    let workers = descendants(node.pid());
    assert!(!workers.is_empty());
    for pid in &workers {
        for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
            rustix::process::kill_process(*pid, signal).unwrap();
        }
    }
    let (status, ran) = node.run(&id, "kept").await;
    assert_eq!((status, &ran["value"]), (200, &json!(1)), "{ran}");
}

#[tokio::test]
async fn the_workers_of_a_node_give_way_to_it() {
    let node = Node::start(&["--isolation", "process"]);
    let id = node.session(&json!({})).await;
    assert_eq!(node.run(&id, "40+2").await.0, 200);
    let expected = (niceness(node.pid().cast_signed()) + 10).min(19);
    // One may have started just now.
    until(async || {
        let mut workers = descendants(node.pid()).into_iter();
        workers.all(|worker| niceness(worker.as_raw_nonzero().get()) == expected)
    })
    .await;
}

fn niceness(process: i32) -> i32 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, after_the_name) = stat.rsplit_once(") ").unwrap();
    after_the_name.split(' ').nth(16).unwrap().parse().unwrap()
}

/// Returns the processes that a process has started, and those that these have.
fn descendants(parent: u32) -> Vec<Pid> {
    let mut found = Vec::new();
    let tasks = std::fs::read_dir(format!("/proc/{parent}/task")).unwrap();
    for task in tasks.flatten() {
        let Ok(children) = std::fs::read_to_string(task.path().join("children")) else {
            continue;
        };
        for child in children.split_whitespace() {
            let pid: i32 = child.parse().unwrap();
            found.push(Pid::from_raw(pid).unwrap());
            found.extend(descendants(pid.unsigned_abs()));
        }
    }
    found
}

#[test]
fn a_node_whose_sessions_could_not_start_does_not_start() {
    let args = ["serve", "--listen", "127.0.0.1:0", "--require", "pid-namespace"];
    let output = command(args).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("cannot start a session") && text.contains("pid-namespace"), "{text}");
}

#[test]
fn a_node_that_could_have_no_session_does_not_start() {
    let output = command(["serve", "--listen", "127.0.0.1:0", "--max-sessions", "0"]).output();
    let output = output.unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("`--max-sessions` is 0"), "{text}");
}

#[tokio::test]
async fn a_node_that_may_open_no_more_files_says_how_many_it_may_and_loses_no_session() {
    // Sessions on threads open no files.
    let node = Node::start(&["--isolation", "process"]);
    let child = node.child.as_ref().unwrap().id();
    let process = Pid::from_raw(child.cast_signed()).unwrap();
    let first = node.session(&json!({})).await;
    let open = std::fs::read_dir(format!("/proc/{child}/fd")).unwrap();
    let numbers = open.map(|file| file.unwrap().file_name().to_str().unwrap().parse().unwrap());
    // Enough for a connection, and not for a worker.
    let few: u64 = numbers.max().map_or(0, |last: u64| last + 3);
    let before = getrlimit(Resource::Nofile);
    let limit = Rlimit { current: Some(few), ..before };
    let before = prlimit(Some(process), Resource::Nofile, limit).unwrap();
    let mut held = Vec::new();
    let refused = loop {
        match node.ask("POST /v1/sessions", &json!({})).await {
            (201, session) => held.push(session),
            (status, problem) => break (status, problem),
        }
        assert!(held.len() < 100, "the limit was not reached");
    };
    assert_eq!(refused.0, 503, "{}", refused.1);
    let detail = refused.1["detail"].as_str().unwrap();
    assert!(detail.contains(&format!("this process may have {few} (`ulimit -n`)")), "{detail}");
    assert_eq!(node.run(&first, "40+2").await.1["value"], 42);
    // A worker needs several files, so that any of them may be the one that is too many.
    for more in 1..=12 {
        let limit = Rlimit { current: Some(few + more), ..before };
        prlimit(Some(process), Resource::Nofile, limit).unwrap();
        match node.ask("POST /v1/sessions", &json!({})).await {
            (201, session) => held.push(session),
            (status, problem) => assert_eq!(status, 503, "{problem}"),
        }
        for session in held.iter().map(|session| session["id"].as_str().unwrap()).chain([&*first]) {
            assert_eq!(node.run(session, "40+2").await.1["value"], 42);
        }
    }
    prlimit(Some(process), Resource::Nofile, before).unwrap();
    let next = node.session(&json!({})).await;
    assert_eq!(node.run(&next, "40+2").await.1["value"], 42);
}

/// Where guests may write, one of them could change what the node trusts, or put a link there.
#[test]
fn a_node_whose_guests_could_change_its_own_files_does_not_start() {
    const CANARY: &str = "canary-b8e03a";
    let scratch = Scratch::new("node-reach");
    let path = |name: &str| scratch.path().join(name).into_os_string().into_string().unwrap();
    std::fs::create_dir_all(path("mounted/around/inner")).unwrap();
    std::fs::create_dir(path("outside")).unwrap();
    std::fs::write(path("outside/canary"), CANARY).unwrap();
    std::os::unix::fs::symlink(path("outside/canary"), path("mounted/log")).unwrap();
    std::os::unix::fs::symlink(path("outside"), path("mounted/store")).unwrap();
    let log = |name: &str| format!("audit_log = {:?}\n", path(name));
    let store = |name: &str| format!("[store]\ndirectory = {:?}\n", path(name));
    let policy = |key: &str, name: &str| format!("[policy]\n{key} = [{:?}]\n", path(name));
    std::fs::create_dir(path("mounted/wheels")).unwrap();
    std::fs::create_dir(path("linked")).unwrap();
    std::fs::write(path("mounted/ca.pem"), "").unwrap();
    std::os::unix::fs::symlink(path("mounted/ca.pem"), path("linked/ca.pem")).unwrap();
    std::os::unix::fs::symlink(path("mounted/wheels"), path("linked/wheels")).unwrap();
    for (file, own, mounted, named) in [
        ("node.toml", log("mounted/log"), "mounted", ["the node's `audit_log`", "mounted/log"]),
        ("node.toml", log("mounted/new"), "mounted", ["the node's `audit_log`", "mounted/new"]),
        ("node.toml", store("mounted/store"), "mounted", ["the node's `[store]`", "mounted/store"]),
        ("node.toml", store("mounted/a/b"), "mounted", ["the node's `[store]`", "mounted/a/b"]),
        (
            "node.toml",
            store("mounted/around"),
            "mounted/around/inner",
            ["the node's `[store]`", "mounted/around"],
        ),
        (
            "mounted/node.toml",
            String::new(),
            "mounted",
            ["the node's configuration", "mounted/node.toml"],
        ),
        (
            "node.toml",
            policy("ca_files", "mounted/ca.pem"),
            "mounted",
            ["the node's `ca_files`", "mounted/ca.pem"],
        ),
        (
            "node.toml",
            policy("ca_files", "linked/ca.pem"),
            "mounted",
            ["the node's `ca_files`", "linked/ca.pem"],
        ),
        (
            "node.toml",
            policy("wheels", "mounted/wheels"),
            "mounted",
            ["what `wheels` names", "mounted/wheels"],
        ),
        (
            "node.toml",
            policy("wheels", "linked/wheels"),
            "mounted",
            ["what `wheels` names", "linked/wheels"],
        ),
    ] {
        let mount = format!(
            "[[policy.mounts]]\nhost = {:?}\nguest = \"/m\"\nmode = \"rw\"\n",
            path(mounted)
        );
        std::fs::write(path(file), format!("{own}{mount}")).unwrap();
        let args = ["serve", "--listen", "127.0.0.1:0", "--config", &path(file)];
        let mut node = command(args).stderr(Stdio::piped()).spawn().unwrap();
        // Its last line, or that it listens.
        let mut said = String::new();
        let read = BufReader::new(node.stderr.take().unwrap()).read_line(&mut said);
        node.kill().unwrap();
        node.wait().unwrap();
        assert!(read.is_ok_and(|bytes| bytes > 0));
        let all = [named[0], &path(named[1]), &path(mounted), "with `rw` at `/m`"];
        assert!(all.iter().all(|part| said.contains(part)), "{said}");
    }
    assert_eq!(std::fs::read_to_string(path("outside/canary")).unwrap(), CANARY);
    assert_eq!(std::fs::read_dir(path("outside")).unwrap().count(), 1);
    assert!(!std::path::Path::new(&path("mounted/new")).exists());
}

/// The files of the node may have 1000 bytes, and a write beyond that has the kernel send SIGXFSZ.
#[tokio::test]
async fn a_guest_that_writes_beyond_the_limit_of_files_gets_an_error_and_its_node_goes_on() {
    let scratch = Scratch::new("node-file-limit");
    let shared = scratch.path().join("shared");
    std::fs::create_dir(&shared).unwrap();
    let mounts =
        format!("[policy]\nmounts = [{{ host = {shared:?}, guest = \"/m\", mode = \"rw\" }}]\n");
    let node = Node::configured(&scratch, &mounts);
    // Both start before: to start a session takes files of megabytes.
    let (id, other) = (node.session(&json!({})).await, node.session(&json!({})).await);
    for id in [&id, &other] {
        assert_eq!(node.run(id, "1").await.1["value"], 1);
    }
    let process = Pid::from_child(node.child.as_ref().unwrap());
    let limit = Rlimit { current: Some(1000), maximum: getrlimit(Resource::Fsize).maximum };
    prlimit(Some(process), Resource::Fsize, limit).unwrap();
    let code = "with open('/m/f', 'wb', buffering=0) as file:\n    counts = []\n    try:\n        \
                for _ in range(9): counts.append(file.write(b'x' * 600))\n    \
                except OSError as error: counts.append(-error.errno)\ncounts";
    let (status, ran) = node.run(&id, code).await;
    assert_eq!((status, &ran["value"]), (200, &json!([600, 400, -libc::EFBIG])), "{ran}");
    assert_eq!(std::fs::read(shared.join("f")).unwrap(), [b'x'; 1000]);
    for id in [&id, &other] {
        assert_eq!(node.run(id, "1").await.1["value"], 1);
    }
}
