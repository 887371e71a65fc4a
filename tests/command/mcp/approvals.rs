//! Approvals that take longer than the server runs: with `--session-store` the next server goes on
//! with the code, and nothing is done twice.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::client::{Client, session, text};
use super::servers::{Servers, can_ask, value};
use isolet_test_support::root;

/// Code with a generator and a local variable, in the middle of a function, that asks twice.
const CODE: &str = "
import random
def titles():
    for name in ('a', 'b'):
        yield drawn, fake.find(from_=name)['found'][0]['title']
drawn = random.random()
fake.get_sum(1, 2)
pairs = list(titles())
print(pairs[0][0] == pairs[1][0] == drawn)
[title for _, title in pairs]
";

/// A server with a store, whose tools note their calls.
struct Story {
    servers: Servers,
    store: String,
    calls: PathBuf,
}

impl Story {
    fn new(test: &str) -> Self {
        let directory = root().join("target/tmp");
        fs::create_dir_all(&directory).unwrap();
        let calls = directory.join(format!("{test}-{}.calls", std::process::id()));
        let _ = fs::remove_file(&calls);
        let fake = root().join("tests/mcp/fake.py");
        let args = json!({"args": [fake, format!("calls={}", calls.display())]});
        let servers = Servers::new(test, &args);
        let store = servers.scratch.path().join("store").to_str().unwrap().to_owned();
        Self { servers, store, calls }
    }

    fn client(&self) -> Client {
        let args = ["--session-store", &self.store, "--approval-timeout", "3d"];
        self.servers.client_of(true, &args, &can_ask())
    }

    /// Returns the names of the tools that were called.
    fn called(&self) -> Vec<String> {
        let calls = fs::read_to_string(&self.calls).unwrap_or_default();
        calls.lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect()
    }

    fn journals(&self) -> usize {
        let files = fs::read_dir(Path::new(&self.store)).unwrap();
        files.filter(|file| is_journal(&file.as_ref().unwrap().path())).count()
    }
}

impl Drop for Story {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.calls);
    }
}

fn is_journal(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "journal")
}

/// Asks for something, and returns the call that has the answer to the question.
fn asked(client: &mut Client, call: &Value, decision: &str) -> Value {
    let asked = client.request("tools/call", call)["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let mut answer = call.clone();
    answer["inputResponses"] =
        json!({"approval": {"action": "accept", "content": {"decision": decision}}});
    answer["requestState"] = asked["requestState"].clone();
    answer
}

fn call(code: &str) -> Value {
    json!({"name": "run_python", "arguments": {"code": code}})
}

#[test]
fn code_goes_on_in_the_next_server_after_each_question_whether_the_last_was_stopped_or_killed() {
    let story = Story::new("mcp-approvals");
    let call = call(CODE);
    let mut client = story.client();
    let first = asked(&mut client, &call, "once");
    assert_eq!(story.journals(), 1);
    assert!(client.end().success());
    assert_eq!((story.journals(), &*story.called()), (1, &["get-sum".to_owned()][..]));

    let mut client = story.client();
    let second = asked(&mut client, &first, "once");
    // It is killed.
    drop(client);
    assert_eq!(story.called(), ["get-sum", "find"]);

    let mut client = story.client();
    let result = client.request("tools/call", &second)["result"].clone();
    assert_eq!(value(&result), &json!(["a", "b"]), "{result}");
    assert!(text(&result).contains("True"), "{result}");
    assert_eq!(story.called(), ["get-sum", "find", "find"]);
    assert_eq!(story.journals(), 0);
    // The session has a stack no longer, and its variables.
    let handle = session(&result);
    assert_eq!(value(&client.run_in(&handle, "len(pairs)")), 2);
    // The answer counts once.
    for used in [&first, &second] {
        let refused = client.request("tools/call", used)["result"].clone();
        assert!(text(&refused).starts_with("no code waits for this answer"), "{refused}");
    }
    // Sessions with a journal sleep like others.
    assert!(client.end().success());
    let mut client = story.client();
    assert_eq!(value(&client.run_in(&handle, "len(pairs)")), 2);
    assert_eq!(story.called().len(), 3);
}

#[test]
fn an_answer_applies_to_its_question_in_the_next_server_only() {
    let story = Story::new("mcp-approvals-other");
    let code = call("fake.find(from_='a')\nfake.find(from_='b')");
    let mut client = story.client();
    let first = asked(&mut client, &code, "once");
    let second = asked(&mut client, &first, "no");
    drop(client);
    // The first answer was used, so the second question is asked again.
    let mut client = story.client();
    let again = asked(&mut client, &first, "once");
    assert_eq!(story.called(), ["find"]);
    drop(client);
    let mut client = story.client();
    let mut other = second.clone();
    other["arguments"]["code"] = "fake.find(from_='b')".into();
    let refused = client.request("tools/call", &other)["result"].clone();
    assert!(text(&refused).starts_with("no code waits for this answer"), "{refused}");
    let result = client.request("tools/call", &second)["result"].clone();
    assert!(text(&result).contains("was not approved: the user has declined"), "{result}");
    let refused = client.request("tools/call", &again)["result"].clone();
    assert!(text(&refused).starts_with("no code waits for this answer"), "{refused}");
    assert_eq!(story.called(), ["find"]);
}

#[test]
fn two_servers_do_not_go_on_with_the_same_code() {
    let story = Story::new("mcp-approvals-two");
    let mut client = story.client();
    let answer = asked(&mut client, &call("fake.find(from_='a')"), "once");
    let mut other = story.client();
    let refused = other.request("tools/call", &answer)["result"].clone();
    assert!(text(&refused).contains("a process goes on with it"), "{refused}");
    let result = client.request("tools/call", &answer)["result"].clone();
    assert_eq!(result["isError"], false, "{result}");
    assert_eq!((story.called().len(), story.journals()), (1, 0));
}

#[test]
fn a_function_of_another_server_works_in_a_session_that_has_slept() {
    let story = Story::new("mcp-approvals-slept");
    let mut client = story.client();
    let handle = session(&client.run("from fake import get_sum\nget_sum(1, 2)"));
    assert!(client.end().success());
    let mut client = story.client();
    let result = client.run_in(&handle, "get_sum(2, 2)");
    assert_eq!(value(&result).as_f64(), Some(4.0), "{result}");
}
