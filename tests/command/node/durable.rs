//! Tests of durable sessions: a node is killed behind its clients and started again, and they go on
//! where they were.

use std::path::Path;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{EVENTS, Events, Node, key_hash};
use isolet_test_support::{LONGEST, Scratch};

/// Writes to a mount, prints, displays and calls tools, by turns.
pub(super) const STORY: &str = "
import os
def step(number):
    with open('/m/log', 'a') as log:
        log.write(f'{number}\\n')
    print(f'é{number}', flush=True)
    display(number)
    return ask(number=number)
answers = [step(1), step(2), step(3)]
print(answers)
answers";

const MOUNTED: &str = "[[policy.mounts]]\nguest = \"/m\"\nmode = \"rw\"\n";

/// A node with two tenants, and a directory that its guests may write to.
pub(super) fn start(scratch: &Scratch) -> Node {
    let path = |name: &str| {
        let path = scratch.path().join(name);
        path.into_os_string().into_string().unwrap()
    };
    std::fs::create_dir_all(path("m")).unwrap();
    let config = format!(
        "drain = 0\n{MOUNTED}host = {:?}\n[tenants.a]\nkeys = [{:?}]\n[tenants.b]\nkeys = [{:?}]\n\
         [journals]\ndirectory = {:?}\n",
        path("m"),
        key_hash("a"),
        key_hash("b"),
        path("journals")
    );
    Node::configured(scratch, &config)
}

pub(super) const A: [(&str, &str); 1] = [("x-api-key", "a")];
pub(super) const A_EVENTS: [(&str, &str); 2] = [("x-api-key", "a"), EVENTS];

pub(super) fn kill(node: Node) {
    node.signal(Signal::KILL);
    node.end();
}

/// Makes a durable session with the tool `ask`. Returns its id and token.
pub(super) async fn session(node: &Node) -> (String, String) {
    let tool = json!({"name": "ask", "parameters": [{"name": "number"}]});
    let body = json!({"durable": true, "policy": {"tools": [tool]}, "metadata": {"for": "test"}});
    let (status, made) = node.ask_as(&A, "POST /v1/sessions", &body).await;
    assert_eq!((status, &made["durable"]), (201, &json!(true)), "{made}");
    let text = |key: &str| made[key].as_str().unwrap().to_owned();
    (text("id"), text("token"))
}

/// Answers a call, as often as the node says that it is not ready for it.
pub(super) async fn answer(node: &Node, id: &str, call: &Value, value: &Value) {
    let request = format!("POST /v1/sessions/{id}/calls/{call}");
    tokio::time::timeout(LONGEST, async {
        loop {
            let (status, problem) = node.ask_as(&A, &request, &json!({"value": value})).await;
            match status {
                204 => return,
                503 => assert_eq!(problem["code"], "restoring"),
                _ => panic!("{status} {problem}"),
            }
        }
    })
    .await
    .unwrap();
}

/// What a client has been told of a run: output, displays, and calls, each in its order.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Heard {
    pub(super) output: String,
    pub(super) displays: Vec<Value>,
    pub(super) calls: Vec<(Value, Value)>,
    pub(super) cursor: String,
    pub(super) execution: Value,
}

impl Heard {
    /// Takes events until a call of this number, or the end of the run. Returns the call.
    pub(super) async fn until(
        &mut self,
        events: &mut Events,
        number: Option<u64>,
    ) -> Option<Value> {
        while let Some(event) = events.next().await {
            assert_eq!(event["run"], 1, "{event}");
            event["cursor"].as_str().unwrap().clone_into(&mut self.cursor);
            match event["type"].as_str().unwrap() {
                "stdout" => self.output.push_str(event["text"].as_str().unwrap()),
                "display" => self.displays.push(event["display"]["data"]["text/plain"].clone()),
                "tool_call" => {
                    let (call, arguments) = (&event["call_id"], &event["arguments"]);
                    self.calls.push((call.clone(), arguments.clone()));
                    if arguments["number"].as_u64() == number {
                        return Some(call.clone());
                    }
                }
                "end" => {
                    self.execution = event["execution"].clone();
                    self.execution.as_object_mut().unwrap().remove("usage");
                }
                _ => panic!("{event}"),
            }
        }
        assert_eq!(number, None, "{self:?}");
        None
    }

    /// Answers calls from this number on, up to the end of the run.
    pub(super) async fn answer_from(
        &mut self,
        node: &Node,
        id: &str,
        events: &mut Events,
        first: u64,
    ) {
        for number in first..=3 {
            let call = self.until(events, Some(number)).await.unwrap();
            answer(node, id, &call, &json!(number * 10)).await;
        }
        self.until(events, None).await;
    }
}

async fn begin(node: &Node, id: &str) -> Events {
    let runs = format!("POST /v1/sessions/{id}/runs");
    let response = node.send(&runs, &A_EVENTS, &json!({"code": STORY})).await;
    assert_eq!(response.headers()["isolet-run"], "1");
    Events::of(response)
}

pub(super) async fn reattach(node: &Node, id: &str, cursor: &str) -> Events {
    let get = format!("GET /v1/sessions/{id}/runs/1?after={cursor}");
    let response = node.send(&get, &A_EVENTS, &Value::Null).await;
    assert_eq!(response.headers()["isolet-run"], "1");
    Events::of(response)
}

pub(super) fn log(scratch: &Scratch) -> String {
    std::fs::read_to_string(scratch.path().join("m/log")).unwrap()
}

/// Tells the whole story, without an end of the node in between.
async fn unkilled(name: &str) -> Heard {
    let scratch = Scratch::new(name);
    let node = start(&scratch);
    let (id, _) = session(&node).await;
    let mut heard = Heard::default();
    heard.answer_from(&node, &id, &mut begin(&node, &id).await, 1).await;
    assert_eq!(log(&scratch), "1\n2\n3\n");
    heard
}

#[tokio::test]
async fn a_node_that_is_killed_in_a_call_goes_on_and_clients_hear_what_they_have_not_heard() {
    let whole = unkilled("node-durable-whole").await;
    assert_eq!(whole.execution["value"], json!([10, 20, 30]), "{whole:?}");
    let scratch = Scratch::new("node-durable");
    let node = start(&scratch);
    let (id, token) = session(&node).await;
    let mut heard = Heard::default();
    let mut events = begin(&node, &id).await;
    let first = heard.until(&mut events, Some(1)).await.unwrap();
    answer(&node, &id, &first, &json!(10)).await;
    let second = heard.until(&mut events, Some(2)).await.unwrap();
    kill(node);

    let node = start(&scratch);
    let mut events = reattach(&node, &id, &heard.cursor).await;
    // Under the number that it had in the process that was killed.
    answer(&node, &id, &second, &json!(20)).await;
    heard.answer_from(&node, &id, &mut events, 3).await;
    assert_eq!(heard, whole);
    assert_eq!(log(&scratch), "1\n2\n3\n", "each effect happens once");

    // The session is the same one, for its key and its token.
    let path = format!("GET /v1/sessions/{id}");
    for who in [("x-api-key", "a"), ("x-session-token", &token)] {
        let (status, found) = node.ask_as(&[who], &path, &Value::Null).await;
        assert_eq!((status, &found["metadata"]), (200, &json!({"for": "test"})), "{found}");
        let (status, mut again) =
            node.ask_as(&[who], &format!("{path}/runs/1"), &Value::Null).await;
        again.as_object_mut().unwrap().remove("usage");
        assert_eq!((status, &again), (200, &whole.execution));
    }
    let (status, listed) = node.ask_as(&A, "GET /v1/sessions", &Value::Null).await;
    assert_eq!((status, listed["sessions"].as_array().unwrap().len()), (200, 1));
    // To others, its id is like any one of before the start.
    let b = [("x-api-key", "b")];
    let other = format!("GET /v1/sessions/{}aaaa", &id[..id.len() - 4]);
    let (theirs, unheard_of) =
        (node.ask_as(&b, &path, &Value::Null).await, node.ask_as(&b, &other, &Value::Null).await);
    assert!(theirs == unheard_of && theirs.0 == 410, "{theirs:?} {unheard_of:?}");
    // The next run has the next number.
    let runs = format!("POST /v1/sessions/{id}/runs");
    let response = node.send(&runs, &A, &json!({"code": "answers"})).await;
    assert_eq!(
        (response.status().as_u16(), &response.headers()["isolet-run"]),
        (200, &"2".parse().unwrap())
    );
    assert_eq!(node.ask_as(&A, &format!("{path}/runs/1"), &Value::Null).await.0, 404);
    let delete = format!("DELETE /v1/sessions/{id}");
    assert_eq!(node.ask_as(&A, &delete, &Value::Null).await.0, 204);
    assert_eq!(files(&scratch.path().join("journals")), ["node.secret"]);
}

pub(super) fn files(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_run_goes_on_without_its_client_which_reads_each_byte_once_wherever_it_comes_back() {
    let scratch = Scratch::new("node-durable-client");
    let node = start(&scratch);
    let (id, _) = session(&node).await;
    let mut heard = Heard::default();
    let mut events = begin(&node, &id).await;
    let first = heard.until(&mut events, Some(1)).await.unwrap();
    // The client goes, which interrupts a run that is not durable.
    drop(events);
    let mut events = reattach(&node, &id, &heard.cursor).await;
    answer(&node, &id, &first, &json!(10)).await;
    heard.answer_from(&node, &id, &mut events, 2).await;
    assert_eq!(heard.execution["value"], json!([10, 20, 30]), "{heard:?}");
    // All of it again, and from the middle of the output on; calls that are over do not come again.
    for (cursor, output) in [("0-0-0", 0), ("3-1-0", 3)] {
        let mut again = Heard::default();
        again.until(&mut reattach(&node, &id, cursor).await, None).await;
        assert_eq!(again.output, heard.output[output..]);
        assert_eq!((again.calls.len(), &again.execution), (0, &heard.execution));
    }
}

#[tokio::test]
async fn a_node_that_ends_in_order_or_is_killed_between_runs_has_the_variables_again() {
    let scratch = Scratch::new("node-durable-idle");
    let mut node = start(&scratch);
    let (id, _) = session(&node).await;
    let runs = format!("POST /v1/sessions/{id}/runs");
    assert_eq!(node.ask_as(&A, &runs, &json!({"code": "x = [1]"})).await.0, 200);
    let put = format!("PUT /v1/sessions/{id}/variables/y");
    assert_eq!(node.ask_as(&A, &put, &json!({"value": 2})).await.0, 204);
    for signal in [Signal::TERM, Signal::KILL] {
        node.signal(signal);
        node.end();
        node = start(&scratch);
        let last = format!("GET /v1/sessions/{id}/runs/1");
        assert_eq!(node.ask_as(&A, &last, &Value::Null).await.0, 200);
        for (name, value) in [("x", json!([1])), ("y", json!(2))] {
            let get = format!("GET /v1/sessions/{id}/variables/{name}");
            assert_eq!(node.ask_as(&A, &get, &Value::Null).await, (200, json!({"value": value})));
        }
    }
}

#[tokio::test]
async fn what_is_damaged_in_the_directory_is_gone_and_neither_the_start_nor_others_suffer() {
    let scratch = Scratch::new("node-durable-damaged");
    let node = start(&scratch);
    let mut made = Vec::new();
    for _ in 0..4 {
        made.push(session(&node).await);
    }
    kill(node);
    let file = |nth: usize, kind: &str| {
        scratch.path().join("journals").join(format!("{}.{kind}", made[nth].0))
    };
    std::fs::write(file(0, "journal"), "isolet journal 1\nhostile").unwrap();
    std::fs::write(file(1, "session"), [0; 100]).unwrap();
    std::fs::remove_file(file(2, "journal")).unwrap();
    let node = start(&scratch);
    for (nth, status) in [410, 410, 410, 200].into_iter().enumerate() {
        let (id, token) = &made[nth];
        // Waits for the restoration.
        let get = format!("GET /v1/sessions/{id}/runs/1");
        let found = node.ask_as(&[("x-session-token", token)], &get, &Value::Null).await;
        assert_eq!(found.0, if status == 200 { 404 } else { 410 }, "{nth}: {found:?}");
        let place = scratch.path().to_str().unwrap();
        assert!(!found.1.to_string().contains(place), "{found:?}");
        let get = format!("GET /v1/sessions/{id}");
        assert_eq!(node.ask_as(&A, &get, &Value::Null).await.0, status);
    }
}

#[tokio::test]
async fn a_durable_session_is_refused_without_a_directory_and_more_than_there_is_room_for() {
    let node = Node::start(&[]);
    let (status, problem) = node.ask("POST /v1/sessions", &json!({"durable": true})).await;
    assert_eq!(
        (status, problem["detail"].as_str().unwrap()),
        (403, "this node keeps no durable sessions: it was started without `--journals`")
    );
    let scratch = Scratch::new("node-durable-room");
    let directory = scratch.path().join("journals");
    let config =
        format!("[journals]\ndirectory = {directory:?}\nsize = 500000\nsession_size = 300000");
    let node = Node::configured(&scratch, &config);
    let durable = json!({"durable": true});
    let id = node.session(&durable).await;
    let (status, problem) = node.ask("POST /v1/sessions", &durable).await;
    assert_eq!((status, &problem["code"]), (429, &json!("quota")), "{problem}");
    // What a journal has no room for ends its session, which makes room for another one.
    let (status, problem) = node.run(&id, &format!("x = {:?}", "x".repeat(400_000))).await;
    assert_eq!((status, &problem["code"]), (422, &json!("invalid")), "{problem}");
    assert!(!problem.to_string().contains(directory.to_str().unwrap()), "{problem}");
    assert_eq!(node.ask(&format!("GET /v1/sessions/{id}"), &Value::Null).await.0, 410);
    node.session(&durable).await;
}

#[tokio::test]
async fn a_durable_run_ends_by_an_interrupt_or_with_its_session_and_its_reader_hears_it() {
    let scratch = Scratch::new("node-durable-end");
    let node = start(&scratch);
    let (id, _) = session(&node).await;
    let mut heard = Heard::default();
    let mut events = begin(&node, &id).await;
    heard.until(&mut events, Some(1)).await.unwrap();
    let runs = format!("POST /v1/sessions/{id}/runs");
    let (status, problem) = node.ask_as(&A, &runs, &json!({"code": "1"})).await;
    assert_eq!((status, &problem["code"]), (409, &json!("busy")), "{problem}");
    let interrupt = format!("POST /v1/sessions/{id}/interrupt");
    assert_eq!(node.ask_as(&A, &interrupt, &Value::Null).await.0, 204);
    let end = loop {
        let event = events.next().await.unwrap();
        if event["type"] == "end" {
            break event;
        }
    };
    assert_eq!(end["execution"]["termination"]["kind"], "interrupted", "{end}");
    let code = json!({"code": "ask(number=1)"});
    let mut events = Events::of(node.send(&runs, &A_EVENTS, &code).await);
    assert_eq!(events.next().await.unwrap()["type"], "tool_call");
    assert_eq!(node.ask_as(&A, &format!("DELETE /v1/sessions/{id}"), &Value::Null).await.0, 204);
    let mut last = Value::Null;
    while let Some(event) = events.next().await {
        last = event;
    }
    assert_eq!(
        (&last["type"], &last["execution"]["session_alive"]),
        (&json!("end"), &json!(false))
    );
    assert_eq!(files(&scratch.path().join("journals")), ["node.secret"]);
}

#[tokio::test]
async fn a_start_removes_the_sessions_of_a_tenant_that_is_not_there_any_more() {
    let scratch = Scratch::new("node-durable-tenant");
    let node = start(&scratch);
    session(&node).await;
    kill(node);
    let directory = scratch.path().join("journals");
    assert_eq!(files(&directory).len(), 3);
    let config =
        format!("[tenants.b]\nkeys = [{:?}]\n[journals]\ndirectory = {directory:?}", key_hash("b"));
    let _node = Node::configured(&scratch, &config);
    assert_eq!(files(&directory), ["node.secret"]);
}

#[tokio::test]
async fn a_node_that_ends_in_order_in_a_call_tells_the_client_to_come_back_and_goes_on() {
    let scratch = Scratch::new("node-durable-drain");
    let node = start(&scratch);
    let (id, _) = session(&node).await;
    let mut heard = Heard::default();
    let mut events = begin(&node, &id).await;
    let first = heard.until(&mut events, Some(1)).await.unwrap();
    node.signal(Signal::TERM);
    let mut last = Value::Null;
    while let Some(event) = events.next().await {
        last = event;
    }
    assert_eq!(last["problem"]["code"], "draining", "{last}");
    assert_eq!(node.end(), Some(0));
    let node = start(&scratch);
    let mut events = reattach(&node, &id, &heard.cursor).await;
    answer(&node, &id, &first, &json!(10)).await;
    heard.answer_from(&node, &id, &mut events, 2).await;
    assert_eq!(heard.execution["value"], json!([10, 20, 30]), "{heard:?}");
    assert_eq!(log(&scratch), "1\n2\n3\n");
}

#[tokio::test]
async fn what_a_restored_session_may_do_is_decided_again_by_the_node_of_now() {
    let scratch = Scratch::new("node-durable-ceiling");
    let directory = scratch.path().join("journals");
    let start = |ceiling: &str| {
        let config = format!("[journals]\ndirectory = {directory:?}\n[ceiling]\n{ceiling}");
        Node::configured(&scratch, &config)
    };
    let allowed = "allow_net = [\"example.com\"]";
    let node = start(allowed);
    let body = json!({"durable": true, "policy": {"allow_net": ["example.com"]}});
    let id = node.session(&body).await;
    assert_eq!(node.run(&id, "x = 42").await.0, 200);
    kill(node);
    // Waits for the restoration.
    let last = format!("GET /v1/sessions/{id}/runs/1");
    let node = start("");
    let (status, problem) = node.ask(&last, &Value::Null).await;
    assert_eq!((status, &problem["code"]), (410, &json!("gone")), "{problem}");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("cannot restore it") && detail.contains("example.com"), "{detail}");
    kill(node);
    // Its files have stayed, for a node that allows it again.
    let node = start(allowed);
    assert_eq!(node.ask(&last, &Value::Null).await.0, 200);
    assert_eq!(node.run(&id, "x").await.1["value"], 42);
}
