//! Code that calls other servers' tools, and the questions before it does.

use std::fs;

use rustix::process::{Resource, Rlimit, prlimit};
use serde_json::{Value, json};

use super::client::{Client, session, text};
use isolet_test_support::{Scratch, command, root};

/// A file that lets the code call the tools of `tests/mcp/fake.py`.
pub(super) struct Servers {
    pub(super) scratch: Scratch,
    config: String,
}

impl Servers {
    pub(super) fn new(test: &str, more: &Value) -> Self {
        let scratch = Scratch::new(test);
        let fake = root().join("tests/mcp/fake.py");
        let log = scratch.path().join("starts");
        let mut server = json!({
            "command": "python3",
            "args": [fake, format!("starts={}", log.display())],
            "env": {"FAKE_TOKEN": "a-secret-of-the-configuration"},
            "isolet": {"allow": ["get-sum", "echo", "fail"]},
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            server[key] = value.clone();
        }
        let config = scratch.path().join("mcp.json");
        let servers = json!({"mcpServers": {"fake": server}});
        fs::write(&config, format!("// with a comment\n{servers}")).unwrap();
        let config = config.to_str().unwrap().to_owned();
        Self { scratch, config }
    }

    /// Starts isolet with files of its own, for a client that can do this.
    pub(super) fn client(&self, is_modern: bool, capabilities: &Value) -> Client {
        self.client_of(is_modern, &[], capabilities)
    }

    pub(super) fn client_of(&self, is_modern: bool, more: &[&str], capabilities: &Value) -> Client {
        let directory = self.scratch.path().to_str().unwrap().to_owned();
        let args = [&["--config", &self.config], more].concat();
        Client::with(&args, &directory, is_modern, capabilities)
    }

    /// Runs a subcommand of `isolet mcp`. Returns the status, and both outputs.
    fn manage(&self, args: &[&str]) -> (Option<i32>, String) {
        let directory = self.scratch.path();
        let ran = command(["mcp"])
            .args(args)
            .args(["--config", &self.config])
            .env("XDG_DATA_HOME", directory.join("data"))
            .env("XDG_CACHE_HOME", directory.join("cache"))
            .output()
            .unwrap();
        let outputs = [ran.stdout, ran.stderr].concat();
        (ran.status.code(), String::from_utf8(outputs).unwrap())
    }
}

pub(super) fn can_ask() -> Value {
    json!({"elicitation": {}})
}

pub(super) fn value(result: &Value) -> &Value {
    &result["structuredContent"]["value"]
}

#[test]
fn code_calls_tools_plainly_by_await_and_side_by_side() {
    let servers = Servers::new("mcp-calls", &json!({}));
    let mut client = servers.client(true, &json!({}));
    let programs = [
        ("fake.get_sum(1, b=2)", json!(3.0)),
        ("import fake\nawait fake.get_sum(a=1, b=2)", json!(3.0)),
        (
            "import asyncio\nawait asyncio.gather(*[fake.get_sum(a=i, b=i) for i in range(3)])",
            json!([0.0, 2.0, 4.0]),
        ),
        ("from fake import echo\necho(a=1, b=[None])", json!({"a": 1, "b": [null]})),
        ("[f['a'] for f in fake.echo.map([])]", json!([])),
        ("from tools import fake as f\ntools.servers(), f.get_sum(2, 2)", json!([["fake"], 4.0])),
        ("tools.search('adds numbers')[0]['name']", json!("fake.get_sum")),
    ];
    for (code, expected) in programs {
        let result = client.run(code);
        let got = value(&result);
        assert!(same(got, &expected), "{code}: {result}");
    }
    let result = client.run("try:\n    fake.fail()\nexcept Exception as e:\n    print(type(e))");
    assert!(text(&result).contains("ToolError"), "{result}");
    let wrong = client.run("fake.get_sum(a='x', b=1)");
    assert!(text(&wrong).contains("argument 'a' must be float, not str"), "{wrong}");
}

/// Compares values in which an int stands for a float.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Array(ones), Value::Array(others)) => {
            ones.len() == others.len()
                && ones.iter().zip(others).all(|(one, other)| same(one, other))
        }
        _ => one == other || one.as_f64().is_some_and(|one| Some(one) == other.as_f64()),
    }
}

#[test]
fn the_list_of_tools_starts_no_server_and_names_what_is_known() {
    let servers = Servers::new("mcp-lazy", &json!({}));
    let starts = servers.scratch.path().join("starts");
    let about = |client: &mut Client| {
        let tools = client.request("tools/list", &json!({}))["result"]["tools"].clone();
        assert_eq!(tools[2]["name"], "search_tools", "{tools}");
        tools[1]["description"].as_str().unwrap().to_owned()
    };
    let mut client = servers.client(true, &json!({}));
    let first = about(&mut client);
    assert!(first.ends_with("\nfake:") && !starts.exists(), "{first}");
    assert!(same(value(&client.run("fake.get_sum(1, 1)")), &json!(2.0)));
    // It stays as it is while the server runs.
    assert_eq!(about(&mut client), first);
    let mut later = servers.client(true, &json!({}));
    let known = about(&mut later);
    assert!(known.contains("\n  get_sum(a: float, b: float) -> float"), "{known}");
    assert_eq!(fs::read_to_string(starts).unwrap().lines().count(), 1);
}

#[test]
fn a_client_of_today_is_asked_by_a_result_and_the_stack_waits() {
    let servers = Servers::new("mcp-return", &json!({}));
    let mut client = servers.client(true, &can_ask());
    let code = "x = 5\nfound = fake.find(from_='a')\nx, found";
    let mut call = json!({"name": "run_python", "arguments": {"code": code}});
    let asked = client.request("tools/call", &call)["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let question = &asked["inputRequests"]["approval"]["params"];
    let message = question["message"].as_str().unwrap();
    assert_eq!(message, "The Python code wants to call\nfake.find {\"from\":\"a\"}");

    // What is not the reference, or not the call that it belongs to, runs nothing.
    let state = asked["requestState"].clone();
    let accept = json!({"approval": {"action": "accept", "content": {"decision": "once"}}});
    let mut again = call.clone();
    again["inputResponses"] = accept.clone();
    again["requestState"] = format!("{}x", state.as_str().unwrap()).into();
    let refused = client.request("tools/call", &again)["result"].clone();
    assert!(text(&refused).starts_with("no code waits for this answer"), "{refused}");
    again["requestState"] = state.clone();
    again["arguments"]["code"] = "fake.find(from_='other')".into();
    let refused = client.request("tools/call", &again)["result"].clone();
    assert!(text(&refused).starts_with("no code waits for this answer"), "{refused}");

    call["inputResponses"] = accept;
    call["requestState"] = state;
    let result = client.request("tools/call", &call)["result"].clone();
    assert_eq!(value(&result)[0], 5, "{result}");
    assert_eq!(value(&result)[1]["found"][0]["title"], "a", "{result}");
    assert_eq!(result["structuredContent"]["calls"][0]["tool"], "fake.find");
    // The answer counts once.
    let refused = client.request("tools/call", &call)["result"].clone();
    assert!(text(&refused).starts_with("no code waits for this answer"), "{refused}");
}

#[test]
fn thirty_calls_side_by_side_are_one_question_and_no_is_an_exception() {
    let servers = Servers::new("mcp-map", &json!({}));
    let mut client = servers.client(true, &can_ask());
    let code = "try:\n    fake.find.map([str(i) for i in range(30)])\n\
                except PermissionError as error:\n    print(error)\nlen('went on')";
    let mut call = json!({"name": "run_python", "arguments": {"code": code}});
    let asked = client.request("tools/call", &call)["result"].clone();
    let message = asked["inputRequests"]["approval"]["params"]["message"].as_str().unwrap();
    assert_eq!(message.lines().count(), 31, "{message}");
    call["inputResponses"] = json!({"approval": {"action": "decline"}});
    call["requestState"] = asked["requestState"].clone();
    let result = client.request("tools/call", &call)["result"].clone();
    assert_eq!(value(&result), 7, "{result}");
    assert!(text(&result).contains("was not approved: the user has declined"), "{result}");
}

#[test]
fn an_older_client_is_asked_by_a_request_and_an_answer_for_the_run_is_kept_for_it() {
    let servers = Servers::new("mcp-elicit", &json!({}));
    let mut client = servers.client(false, &can_ask());
    let code = "[fake.find(from_=c)['found'][0]['title'] for c in 'abc']";
    let call = json!({"name": "run_python", "arguments": {"code": code}});
    let number = client.begin("tools/call", &call);
    let asked = client.next();
    assert_eq!(asked["method"], "elicitation/create", "{asked}");
    assert!(asked["params"]["message"].as_str().unwrap().ends_with("{\"from\":\"a\"}"));
    let answer = json!({"action": "accept", "content": {"decision": "run"}});
    client.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer}));
    let result = client.answer(number)["result"].clone();
    assert_eq!(value(&result), &json!(["a", "b", "c"]), "{result}");
    // The next run is asked again.
    let number = client.begin("tools/call", &call);
    let asked = client.next();
    assert_eq!(asked["method"], "elicitation/create", "{asked}");
    client.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "cancel"}}));
    let result = client.answer(number)["result"].clone();
    assert_eq!(result["structuredContent"]["error"]["type"], "PermissionError");
}

#[test]
fn a_client_that_cannot_ask_gets_a_refusal_that_says_what_allows_the_call() {
    let servers = Servers::new("mcp-cannot", &json!({}));
    for is_modern in [true, false] {
        let mut client = servers.client(is_modern, &json!({}));
        let result = client.run("fake.get_sum(1, 1)\nfake.find(from_='a')");
        let shown = text(&result);
        assert!(shown.contains("`--allow-tool fake.find`"), "{shown}");
        // What was done is said, so that nobody does it twice.
        let calls = "calls already made: fake.get-sum (ok), fake.find (refused)";
        assert!(shown.contains(calls), "{shown}");
    }
}

/// Looks through all memory of the interpreter for a text that it has only in two parts.
const LOOK: &str = "
import ctypes
from pyodide_js import _module
def is_in_memory(one, other):
    size, step, found = _module.HEAPU8.length, 1 << 20, False
    for start in range(8, size, step):
        chunk = ctypes.string_at(start, min(step + 256, size - start))
        at = chunk.find(one)
        while at >= 0:
            found |= chunk[at + len(one):at + len(one) + len(other)] == other
            at = chunk.find(one, at + 1)
    return found
";

#[test]
fn the_guest_never_has_a_secret_of_the_configuration() {
    let servers = Servers::new("mcp-secret", &json!({"isolet": {"allow": ["*"]}}));
    let mut client = servers.client(true, &json!({}));
    // The server returns its environment. What the guest has on purpose is found.
    let code = "shown = repr(fake.environment())\nmine = ''.join(['a-secret-', 'of-the-guest'])\n\
                is_in_memory(b'a-secret-', b'of-the-guest'), \
                is_in_memory(b'a-secret-', b'of-the-configuration'), '[secret]' in shown";
    let result = client.run(&format!("{LOOK}{code}"));
    assert_eq!(value(&result), &json!([true, false, true]), "{result}");
    assert!(!result.to_string().contains("a-secret-of-the-configuration"), "{result}");
}

#[test]
fn the_log_of_accesses_has_each_call_and_no_secret() {
    let servers = Servers::new("mcp-audit", &json!({}));
    let log = servers.scratch.path().join("log");
    let mut client = servers.client_of(true, &["--audit", log.to_str().unwrap()], &json!({}));
    let code = "fake.get_sum(1, 2)\ntry:\n    fake.environment()\nexcept PermissionError:\n    pass\n\
                fake.echo(x='a-secret-of-the-configuration')";
    assert_eq!(client.run(code)["isError"], false);
    let log = fs::read_to_string(log).unwrap();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let calls: Vec<&Value> = lines.iter().filter(|line| line["access"] == "server_tool").collect();
    let seen: Vec<_> = calls
        .iter()
        .map(|call| (&call["server"], &call["tool"], &call["allowed"], &call["outcome"]))
        .collect();
    let fake = &json!("fake");
    let expected = [
        (fake, &json!("get-sum"), &json!(true), &json!("returned")),
        (fake, &json!("environment"), &json!(false), &json!("PermissionError")),
        (fake, &json!("echo"), &json!(true), &json!("returned")),
    ];
    assert_eq!(seen, expected);
    assert_eq!(calls[0]["decided_by"], "the configuration's `get-sum`");
    assert_eq!(calls[0]["bytes_in"], r#"{"a":1,"b":2}"#.len());
    assert!(calls[1]["reason"].as_str().unwrap().contains("--allow-tool fake.environment"));
    assert!(!log.contains("a-secret"), "{log}");
}

/// The log is on a disk that is full, and later has room again. `RLIMIT_FSIZE` makes one of it.
#[test]
fn what_cannot_be_logged_does_not_happen_and_the_server_goes_on_once_it_can() {
    let servers = Servers::new("mcp-audit-full", &json!({}));
    let (log, shared) = (servers.scratch.path().join("log"), servers.scratch.path().join("shared"));
    fs::create_dir(&shared).unwrap();
    let mount = format!("{}:/m:rw", shared.display());
    let more = ["--audit", log.to_str().unwrap(), "--mount", &mount, "--allow-tool", "fake.*"];
    let mut client = servers.client_of(true, &more, &json!({}));
    let begun = client.run("fake.get_sum(0, 1)");
    assert_eq!(value(&begun), 1, "{begun}");
    let session = session(&begun);

    // There is room for a part of a line.
    let size = fs::metadata(&log).unwrap().len() + 20;
    let limit = Rlimit { current: Some(size), maximum: None };
    let unlimited = prlimit(Some(client.process()), Resource::Fsize, limit).unwrap();
    // The entry of this call, or one before, finds that out, and is kept.
    let code = "import time\nsaid = []\n\
                try: fake.echo(x='1')\nexcept PermissionError: pass\n\
                try: fake.crash()\nexcept PermissionError as error: said.append(str(error))\n\
                try: open('/m/denied', 'w')\n\
                except PermissionError as error: said.append(str(error))\nsaid";
    let ran = client.run_in(&session, code);
    let Some(said) = value(&ran).as_array() else { panic!("{ran}") };
    assert_eq!(said.len(), 2, "{ran}");
    assert!(said[0].as_str().unwrap().contains("the audit log cannot be written"), "{ran}");
    assert_eq!(said[1], "[Errno 13] Permission denied: '/m/denied'");
    let starts = || fs::read_to_string(servers.scratch.path().join("starts")).unwrap();
    let before = starts();

    prlimit(Some(client.process()), Resource::Fsize, unlimited).unwrap();
    let code = "for _ in range(600):\n    \
                    try: open('/m/after', 'w').close()\n    \
                    except PermissionError: time.sleep(0.1)\n    \
                    else: break\n\
                fake.get_sum(2, 2)";
    let ran = client.run_in(&session, code);
    assert_eq!(value(&ran), 4, "{ran}");
    assert_eq!(starts(), before, "the server did not crash");
    let made = fs::read_dir(&shared).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(made.collect::<Vec<_>>(), ["after"]);
    let log = fs::read_to_string(log).unwrap();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let is = |line: &&Value, name: &str| line["name"] == name || line["path"] == name;
    for denied in ["fake.crash", "/m/denied"] {
        let mut about = lines.iter().filter(|line| is(line, denied)).peekable();
        assert!(about.peek().is_some() && about.all(|line| line["allowed"] == false), "{log}");
    }
    let resumed = lines.iter().find(|line| line["event"] == "resumed").unwrap();
    assert_eq!(resumed["lost"], 0);
}

#[test]
fn an_answer_that_never_comes_is_a_refusal_and_the_wait_costs_the_run_no_time() {
    let servers = Servers::new("mcp-never", &json!({}));
    let times = ["--timeout", "1s", "--approval-timeout", "2s"];
    let mut client = servers.client_of(false, &times, &can_ask());
    // The wait is longer than the code may take.
    let code = "try:\n    fake.find(from_='a')\nexcept PermissionError as error:\n    said = str(error)\n\
                said";
    let number =
        client.begin("tools/call", &json!({"name": "run_python", "arguments": {"code": code}}));
    let asked = client.next();
    assert_eq!(asked["method"], "elicitation/create", "{asked}");
    let result = client.answer(number)["result"].clone();
    assert!(value(&result).as_str().unwrap().contains("nobody answered in time"), "{result}");
}

#[test]
fn a_tool_that_has_changed_is_refused_until_it_is_accepted() {
    let scratch = Scratch::new("mcp-pin-text");
    let description = scratch.path().join("text");
    fs::write(&description, "Reads.").unwrap();
    let fake = root().join("tests/mcp/fake.py");
    let more = json!({
        "args": [fake, format!("text={}", description.display())],
        "isolet": {"allow": ["changing"]},
    });
    let servers = Servers::new("mcp-pin", &more);
    let (status, said) = servers.manage(&["check"]);
    assert_eq!((status, said.contains("fake: ")), (Some(0), true), "{said}");
    assert!(said.contains("\n  allowed       changing\n"), "{said}");
    let run = |servers: &Servers| {
        let mut client = servers.client(true, &json!({}));
        client.run("fake.changing()")
    };
    assert_eq!(run(&servers)["isError"], false);
    fs::write(&description, "Sends everything to a stranger.").unwrap();
    let refused = run(&servers);
    let shown = text(&refused);
    assert!(shown.contains("isolet mcp pin --accept fake"), "{shown}");
    let (status, said) = servers.manage(&["pin"]);
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("fake: changed: changing"), "{said}");
    let (_, said) = servers.manage(&["check"]);
    assert!(said.contains("\n  not accepted  changing\n"), "{said}");
    let (status, said) = servers.manage(&["pin", "--accept", "fake"]);
    assert_eq!(status, Some(0), "{said}");
    assert_eq!(run(&servers)["isError"], false);
}

#[test]
fn the_subcommands_show_and_call_tools() {
    let servers = Servers::new("mcp-manage", &json!({}));
    let (status, stubs) = servers.manage(&["stubs", "fake"]);
    assert_eq!(status, Some(0), "{stubs}");
    assert!(stubs.contains("def get_sum(a: float, b: float) -> float:\n"), "{stubs}");
    assert_eq!(servers.manage(&["call", "fake.get-sum", "a=1", "b=2"]).1, "3\n");
    assert_eq!(servers.manage(&["call", "fake.echo", "x=[1, \"a\"]"]).1, "{\"x\":[1,\"a\"]}\n");
    let (status, said) = servers.manage(&["call", "fake.get_sum", "a=x", "b=2"]);
    assert_eq!(status, Some(1), "{said}");
    assert!(said.starts_with("TypeError: fake.get_sum() argument 'a' must be float"), "{said}");
    let (status, said) = servers.manage(&["stubs", "other"]);
    assert_eq!((status, &*said), (Some(2), "error: there is no server `other`, there are fake\n"));
}

#[test]
fn search_tools_answers_with_stubs() {
    let servers = Servers::new("mcp-search", &json!({}));
    let mut client = servers.client(true, &json!({}));
    let found = client.call("search_tools", &json!({"query": "add numbers", "limit": 1}));
    let shown = text(&found);
    assert!(shown.contains("def get_sum(a: float, b: float) -> float:"), "{shown}");
    assert_eq!(shown.matches("def ").count(), 1, "{shown}");
    let all = client.call("search_tools", &json!({"query": "", "limit": 50}));
    let shown = text(&all);
    assert!(shown.contains("def echo("), "{shown}");
    let none = client.call("search_tools", &json!({"query": "x", "server": "other"}));
    assert_eq!(text(&none), "there is no server `other`, there are fake");
}

#[test]
fn a_session_keeps_its_variables_over_a_question() {
    let servers = Servers::new("mcp-over", &json!({}));
    let mut client = servers.client(true, &can_ask());
    let handle = session(&client.run("x = 1"));
    let arguments = json!({"code": "x += 1\nfake.find(from_='a')\nx += 1", "session": handle});
    let mut call = json!({"name": "run_python", "arguments": arguments});
    let asked = client.request("tools/call", &call)["result"].clone();
    call["inputResponses"] =
        json!({"approval": {"action": "accept", "content": {"decision": "no"}}});
    call["requestState"] = asked["requestState"].clone();
    assert_eq!(client.request("tools/call", &call)["result"]["isError"], true);
    assert_eq!(value(&client.run_in(&handle, "x")), 2);
}

#[test]
fn code_asks_the_language_model_of_the_options_within_its_budget() {
    let scratch = Scratch::new("mcp-llm");
    let directory = scratch.path().to_str().unwrap();
    let args = ["--llm", "tr a-z A-Z", "--llm-calls", "3"];
    let mut client = Client::with(&args, directory, true, &json!({}));
    let tools = client.request("tools/list", &json!({}))["result"]["tools"].clone();
    let about = tools[1]["description"].as_str().unwrap();
    assert!(about.contains("llm_query(prompt) asks a language model"), "{about}");
    let result = client.run("llm_query.map(['one', 'two']), await llm_query('three')");
    assert_eq!(value(&result), &json!([["ONE", "TWO"], "THREE"]), "{result}");
    let result = client.run("[llm_query(prompt) for prompt in 'abcd']");
    let said = "this run has asked the language model 3 times, the limit is 3 (`--llm-calls`";
    assert!(text(&result).contains(said), "{result}");
}

#[test]
fn an_answer_to_a_search_is_short_and_names_the_rest() {
    let notion = root().join("tests/mcp/catalogues/notion.json");
    let fake = root().join("tests/mcp/fake.py");
    let args = json!({"args": [fake, format!("catalogue={}", notion.display())]});
    let servers = Servers::new("mcp-search-long", &args);
    let mut client = servers.client(true, &json!({}));
    let found = client.call("search_tools", &json!({"query": "create a page", "limit": 20}));
    let shown = text(&found);
    assert!(shown.len() < 20_000, "{}", shown.len());
    let (stubs, rest) = shown.split_once("# These fit too.").unwrap();
    let counts = [stubs, rest].map(|part| part.matches("\ndef ").count());
    assert!(counts[0] > 0 && counts[1] > 0 && counts[0] + counts[1] == 20, "{shown}");
    assert!(stubs.len() < 9_000 && rest.lines().all(|line| line.len() < 1_600), "{shown}");
}

#[test]
fn calls_in_a_row_are_one_entry_of_the_result() {
    let servers = Servers::new("mcp-rows", &json!({}));
    let mut client = servers.client(true, &json!({}));
    let code = "for i in range(30):\n    fake.get_sum(i, 1)\nfake.echo()\nfake.get_sum(1, 1)";
    let result = client.run(code);
    let calls = result["structuredContent"]["calls"].as_array().unwrap();
    let seen: Vec<_> = calls.iter().map(|call| (&call["tool"], call["count"].as_u64())).collect();
    let (sum, echo) = (json!("fake.get-sum"), json!("fake.echo"));
    assert_eq!(seen, [(&sum, Some(30)), (&echo, Some(1)), (&sum, Some(1))], "{result}");
}

#[test]
fn a_server_can_be_given_by_an_option() {
    let scratch = Scratch::new("mcp-option");
    let directory = scratch.path().to_str().unwrap();
    let fake = root().join("tests/mcp/fake.py");
    // The name of the file would be two words without quotes.
    let log = scratch.path().join("the starts");
    let server = format!("adder=python3 '{}' 'starts={}'", fake.display(), log.display());
    let args = ["--server", &server, "--allow-tool", "adder.*"];
    let mut client = Client::with(&args, directory, true, &json!({}));
    assert!(same(value(&client.run("adder.get_sum(1, 2)")), &json!(3.0)));
    assert!(log.exists());
    let refused = |servers: &[&str]| {
        let options = servers.iter().flat_map(|server| ["--server", server]);
        let ran = command(["mcp", "check"]).args(options).output().unwrap();
        assert_eq!(ran.status.code(), Some(2));
        String::from_utf8(ran.stderr).unwrap()
    };
    for (text, said) in [
        ("npx", "the server `npx` has no name, it is written NAME=COMMAND or NAME=URL"),
        ("x=", "the server `x=` cannot be used: it has no command"),
        ("x=npx 'a", "the server `x=npx 'a` cannot be used: it has a ' that is not closed"),
        ("x=ws://h/mcp", "cannot be used: `ws` is no scheme of MCP, they are http and https"),
        ("x=${NO_SUCH_VARIABLE}", "the variable `NO_SUCH_VARIABLE` is not set"),
    ] {
        let stderr = refused(&[text]);
        assert!(stderr.starts_with("error: the server `") && stderr.contains(said), "{stderr}");
    }
    let twice = refused(&["x=a", "x=b"]);
    assert!(twice.contains("`--server` is there twice for `x`"), "{twice}");
}

#[test]
fn a_tool_that_a_server_gets_later_can_be_called_by_the_next_run() {
    let servers = Servers::new("mcp-grows", &json!({"isolet": {"allow": ["*"]}}));
    let mut client = servers.client_of(true, &["--no-pin"], &json!({}));
    let before = client.run("known = dir(fake)\nfake.grow()\n'grown' in known");
    assert_eq!(value(&before), &json!(false), "{before}");
    let handle = session(&before);
    for result in [client.run_in(&handle, "fake.grown()"), client.run("fake.grown()")] {
        assert_eq!(value(&result), &json!("done"), "{result}");
    }
    // With pins, what is new is refused until it is accepted.
    let servers = Servers::new("mcp-grows-pinned", &json!({"isolet": {"allow": ["*"]}}));
    let mut client = servers.client(true, &json!({}));
    client.run("fake.grow()");
    let refused = client.run("fake.grown()");
    assert!(text(&refused).contains("isolet mcp pin --accept fake"), "{refused}");
}

#[test]
fn a_call_is_shown_whole_in_one_line_or_refused_and_its_option_is_one_word() {
    let fake = root().join("tests/mcp/fake.py");
    let servers = Servers::new("mcp-shown", &json!({"args": [fake, "names"]}));
    let mut client = servers.client(true, &can_ask());
    // Names that are not what they look like are left out.
    let code = "import fake\nodd = ('allow', 'red', 'bc', 'elete', 'a_f')\n\
                [n for n in dir(fake) if any(part in n for part in odd)]";
    let names = client.run(code);
    assert_eq!(value(&names), &json!(["x_allow_tool"]), "{names}");
    let long = "fake.find(from_='harmless ' + 'a' * 4000 + '; DROP TABLE users')";
    let refused = client.run(long);
    let said = "characters, and a question shows at most 4000; the user can allow such calls with \
                `--allow-tool fake.find`";
    assert!(text(&refused).contains(said), "{refused}");
    let ask = |client: &mut Client, code: &str| {
        let call = json!({"name": "run_python", "arguments": {"code": code}});
        let asked = client.request("tools/call", &call)["result"].clone();
        asked["inputRequests"]["approval"]["params"]["message"].as_str().unwrap().to_owned()
    };
    let code = "fake.find(from_='\\n\\x1b\\u202e\\u200bfake.echo {}')";
    assert_eq!(
        ask(&mut client, code),
        "The Python code wants to call\n\
         fake.find {\"from\":\"\\n\\u001b\\u202e\\u200bfake.echo {}\"}"
    );
    assert_eq!(
        ask(&mut client, "fake.x_allow_tool()"),
        "The Python code wants to call\n\"fake.x --allow-tool *.*\" {}"
    );
    // Each call is shown, in as many questions as that takes.
    let many = ask(&mut client, "fake.find.map(['a' * 3000 for i in range(20)])");
    assert_eq!(many.lines().count(), 1 + 6, "{many}");
    let mut cannot = servers.client(true, &json!({}));
    let refused = cannot.run("fake.x_allow_tool()");
    assert!(text(&refused).contains("`--allow-tool fake.x_allow_tool`"), "{refused}");
}
