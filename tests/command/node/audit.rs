//! Tests of a node's audit log: what it has, and what happens while it cannot be written.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};

use super::operations::until;
use super::{Node, key_hash};
use isolet_test_support::Scratch;

#[tokio::test]
async fn the_audit_log_has_accesses_with_their_tenant_and_session() {
    let scratch = Scratch::new("node-audit");
    let log = scratch.path().join("audit.ndjson");
    let config = format!("audit_log = {log:?}\n[tenants.a]\nkeys = [{:?}]", key_hash("a"));
    let node = Node::configured(&scratch, &config);
    let key = [("x-api-key", "a")];
    let (_, session) = node.ask_as(&key, "POST /v1/sessions", &json!({})).await;
    let id = session["id"].as_str().unwrap();
    let code = "import urllib.request\nurllib.request.urlopen('http://denied.example/')";
    let runs = format!("POST /v1/sessions/{id}/runs");
    assert_eq!(node.ask_as(&key, &runs, &json!({"code": code})).await.0, 200);
    assert_eq!(node.ask_as(&key, &format!("DELETE /v1/sessions/{id}"), &Value::Null).await.0, 204);
    let mode = std::fs::metadata(&log).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "only its owner reads it");
    let text = std::fs::read_to_string(&log).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().all(|line| line["tenant"] == "a" && line["session"] == id), "{text}");
    assert!(lines.iter().all(|line| line["time"].as_f64().unwrap() > 1e9), "{text}");
    let events: Vec<_> = lines.iter().filter_map(|line| line["event"].as_str()).collect();
    assert_eq!(events, ["created", "ran", "ended"]);
    let denied = lines.iter().find(|line| line["access"] == "network").unwrap();
    assert_eq!((&denied["allowed"], &denied["host"]), (&json!(false), &json!("denied.example")));
}

/// The files in a directory of the host, and those that a log says a guest may have made.
fn made_and_logged(directory: &Path, log: &Path) -> (BTreeSet<String>, BTreeSet<String>) {
    let made = std::fs::read_dir(directory).unwrap();
    let made = made.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let logged = entries(log).into_iter().filter(|line| line["allowed"] == true);
    let logged =
        logged.filter_map(|line| line["path"].as_str()?.strip_prefix("/m/").map(str::to_owned));
    (made, logged.collect())
}

/// The lines of a log, each of which is whole.
fn entries(log: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(log).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The log is on a disk that is full, and later has room again. `RLIMIT_FSIZE` makes one of it.
#[tokio::test]
async fn what_cannot_be_logged_does_not_happen_and_the_node_goes_on_once_it_can() {
    let scratch = Scratch::new("node-audit-full");
    let (log, shared) = (scratch.path().join("audit.ndjson"), scratch.path().join("shared"));
    std::fs::create_dir(&shared).unwrap();
    let config = format!(
        "audit_log = {log:?}\n[policy]\nlimits = {{ run_time = 150 }}\nmounts = [{{ host = {shared:?}, guest = \"/m\", \
         mode = \"rw\" }}]\n"
    );
    let node = Node::configured(&scratch, &config);
    let id = node.session(&json!({})).await;
    let runs = format!("POST /v1/sessions/{id}/runs");
    let code = |names: &str| {
        json!({"code": format!("denied = 0\nfor name in {names}:\n    try: open(f'/m/{{name}}', 'w')\n    \
                                except PermissionError: denied += 1\ndenied")})
    };
    assert_eq!(node.ask(&runs, &code("['before']")).await.1["value"], 0);

    let process = Pid::from_child(node.child.as_ref().unwrap());
    // There is room for a part of a line.
    let size = std::fs::metadata(&log).unwrap().len() + 20;
    let limit = Rlimit { current: Some(size), maximum: None };
    let unlimited = prlimit(Some(process), Resource::Fsize, limit).unwrap();
    // The entry of the first file finds that out, and is kept: it is made, and not opened any more.
    // There is room for a part of the others.
    let (status, ran) = node.ask(&runs, &code("['first', *range(6000)]")).await;
    assert_eq!((status, &ran["value"]), (200, &json!(6001)), "{ran}");
    for (request, body) in [
        (&*runs, json!({"code": "1"})),
        ("POST /v1/run", json!({"code": "1"})),
        ("POST /v1/sessions", json!({})),
        ("GET /readyz", Value::Null),
    ] {
        let response = node.send(request, &[], &body).await;
        assert_eq!(response.status(), 503, "{request}");
        assert!(response.headers().contains_key("retry-after"));
        let (_, problem) = node.ask(request, &body).await;
        assert_eq!(problem["code"], "audit", "{problem}");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("cannot be written: File too large"), "{problem}");
        assert!(!problem.to_string().contains(scratch.path().to_str().unwrap()), "{problem}");
    }
    assert_eq!(node.send("GET /livez", &[], &Value::Null).await.status(), 200);

    prlimit(Some(process), Resource::Fsize, unlimited).unwrap();
    until(async || node.send("GET /readyz", &[], &Value::Null).await.status() == 200).await;
    assert_eq!(node.ask(&runs, &code("['after']")).await.1["value"], 0);
    let (made, logged) = made_and_logged(&shared, &log);
    assert_eq!(made, ["after", "before", "first"].map(str::to_owned).into());
    assert_eq!(logged, made);
    let lines = entries(&log);
    let denied = lines.iter().find(|line| line["path"] == "/m/0").unwrap();
    assert_eq!((&denied["allowed"], &denied["access"]), (&json!(false), &json!("file")));
    assert!(denied["reason"].as_str().unwrap().contains("audit log"), "{denied}");
    let resumed: Vec<_> = lines.iter().filter(|line| line["event"] == "resumed").collect();
    let is_kept = |line: &&Value| line["allowed"] == false || line["event"] == "ran";
    let kept = u64::try_from(lines.iter().filter(is_kept).count()).unwrap();
    assert_eq!(resumed.len(), 1);
    // With the ends of the three runs.
    assert_eq!(resumed[0]["lost"].as_u64().unwrap() + kept, 6004, "{kept} {resumed:?}");
    assert!(resumed[0]["since"].as_f64().unwrap() <= resumed[0]["time"].as_f64().unwrap());
}

#[tokio::test]
async fn a_log_that_is_never_written_stops_all_starts_unless_the_operator_wants_them() {
    let scratch = Scratch::new("node-audit-never");
    let node = Node::configured(&scratch, "audit_log = \"/dev/full\"");
    for _ in 0..2 {
        let (status, problem) = node.ask("POST /v1/run", &json!({"code": "6 * 7"})).await;
        assert_eq!((status, &problem["code"]), (503, &json!("audit")), "{problem}");
    }
    let load = async || node.ask("GET /v1/node", &Value::Null).await.1["sessions"].clone();
    until(async || load().await == 0).await;
    let metrics = node.text("GET /metrics").await;
    assert!(metrics.contains("isolet_refused_total{gate=\"audit\"} 2"), "{metrics}");
    let lenient = "audit_log = \"/dev/full\"\naudit_outage = \"go_on\"";
    let node = Node::configured(&scratch, lenient);
    for _ in 0..2 {
        assert_eq!(node.ask("POST /v1/run", &json!({"code": "6 * 7"})).await.1["value"], 42);
    }
}

#[tokio::test]
async fn a_tenant_that_has_used_up_its_log_does_nothing_more_and_others_go_on() {
    let scratch = Scratch::new("node-audit-quota");
    let (log, shared) = (scratch.path().join("audit.ndjson"), scratch.path().join("shared"));
    std::fs::create_dir(&shared).unwrap();
    let config = format!(
        "audit_log = {log:?}\n[policy]\nlimits = {{ run_time = 150 }}\nmounts = [{{ host = {shared:?}, guest = \"/m\", \
         mode = \"rw\" }}]\n[tenants.a]\nkeys = [{:?}]\nquotas = {{ audit = 2000 }}\n\
         [tenants.b]\nkeys = [{:?}]\n",
        key_hash("a"),
        key_hash("b")
    );
    let node = Node::configured(&scratch, &config);
    let code = "made = 0\nfor number in range(100):\n    try: open(f'/m/{number}', 'w')\n    \
                except PermissionError: continue\n    made += 1\nmade";
    let key = [("x-api-key", "a")];
    let (status, ran) = node.ask_as(&key, "POST /v1/run", &json!({"code": code})).await;
    assert_eq!(status, 200, "{ran}");
    let (made, logged) = made_and_logged(&shared, &log);
    assert_eq!(made, logged);
    assert!((1..100).contains(&made.len()) && ran["value"] == made.len(), "{ran}");
    let response = node.send("POST /v1/run", &key, &json!({"code": "1"})).await;
    assert_eq!(response.status(), 429);
    let after: u32 = response.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((80_000..=86_400).contains(&after), "{after}");
    let (_, problem) = node.ask_as(&key, "POST /v1/sessions", &json!({})).await;
    assert!(problem["detail"].as_str().unwrap().contains("limit 2000"), "{problem}");
    let of_a = entries(&log).into_iter().filter(|line| line["tenant"] == "a");
    let bytes: usize = of_a.map(|line| line.to_string().len()).sum();
    // What has to be said at the end of what is under way comes on top.
    assert!(bytes < 2000 + 1000, "{bytes}");
    let dropped = entries(&log).into_iter().find(|line| line["event"] == "dropped").unwrap();
    assert_eq!(dropped["events"], 100 - made.len());
    let other = node.ask_as(&[("x-api-key", "b")], "POST /v1/run", &json!({"code": code})).await;
    assert_eq!(other.1["value"], 100);
}
