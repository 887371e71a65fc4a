//! Tests of `isolet serve --stdio`, by a client that speaks its protocol.

mod arguments;
mod ends;
mod journals;

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc;

use serde_json::{Value, json};

use isolet_test_support::{LONGEST, Scratch, command, ended};

/// A client, and the server at the other end of its pipes.
pub(crate) struct Client {
    server: Option<Child>,
    input: Option<ChildStdin>,
    messages: mpsc::Receiver<Value>,
}

impl Client {
    /// Starts a server and greets it.
    fn start() -> Self {
        Self::greeted(&[])
    }

    /// Starts a server with these options and greets it.
    pub(crate) fn greeted(options: &[&str]) -> Self {
        let mut client = Self::unknown(&[&["--wire", "json"], options].concat());
        client.send(&json!(["hello", 1, {"protocol": 1, "client": "test"}]));
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(client.next(), json!(["ok", 1, {"protocol": 1, "version": version}]));
        client
    }

    /// Starts a server.
    fn unknown(args: &[&str]) -> Self {
        let mut server = command(["serve", "--stdio"])
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = server.stdout.take().unwrap();
        let (sender, messages) = mpsc::channel();
        std::thread::spawn(move || {
            let mut head = [0; 4];
            while output.read_exact(&mut head).is_ok() {
                let mut frame = vec![0; u32::from_le_bytes(head) as usize];
                output.read_exact(&mut frame).unwrap();
                if sender.send(serde_json::from_slice(&frame).unwrap()).is_err() {
                    break;
                }
            }
        });
        Self { input: server.stdin.take(), server: Some(server), messages }
    }

    /// Starts a server with a sandbox and a session, both of the number 1.
    fn with_session(policy: &Value) -> Self {
        let mut client = Self::start();
        client.send(&json!(["sandbox", 2, 1, policy]));
        client.send(&json!(["session", 3, 1, 1]));
        assert_eq!(client.next(), json!(["ok", 2, {}]));
        let opened = client.next();
        assert_eq!((&opened[0], &opened[1]), (&json!("ok"), &json!(3)), "{opened}");
        client
    }

    fn send(&mut self, message: &Value) {
        self.send_bytes(message.to_string().as_bytes());
    }

    fn send_bytes(&mut self, body: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(&u32::try_from(body.len()).unwrap().to_le_bytes()).unwrap();
        input.write_all(body).unwrap();
    }

    /// Waits for the next message.
    fn next(&mut self) -> Value {
        self.messages.recv_timeout(LONGEST).unwrap()
    }

    /// Waits for a message that begins with these items.
    fn expect(&mut self, kind: &str, number: u64) -> Value {
        let message = self.next();
        assert_eq!((&message[0], &message[1]), (&json!(kind), &json!(number)), "{message}");
        message
    }

    /// Waits for the next message that is no output. Returns the output, too.
    fn next_after_output(&mut self) -> (String, Value) {
        let mut output = String::new();
        loop {
            let message = self.next();
            if message[0] != "output" {
                return (output, message);
            }
            output += message[3].as_str().unwrap();
        }
    }

    /// Waits for this many answers, and passes over output. Returns them by their numbers.
    fn answers(&mut self, count: usize) -> Vec<Value> {
        let mut answers: Vec<Value> = (0..count).map(|_| self.next_after_output().1).collect();
        answers.sort_by_key(|message| message[1].as_u64());
        answers
    }

    /// Sends a request and waits for its value.
    pub(crate) fn ask(&mut self, request: &Value) -> Value {
        self.send(request);
        self.expect("ok", request[1].as_u64().unwrap())[2].clone()
    }

    /// Sends a request and waits for its error.
    fn fails(&mut self, request: &Value) -> (String, String) {
        self.send(request);
        let error = self.expect("error", request[1].as_u64().unwrap())[2].clone();
        let text = |key: &str| error[key].as_str().unwrap().to_owned();
        (text("kind"), text("message"))
    }

    /// Ends the input and returns the exit status.
    pub(crate) fn end(mut self) -> Option<i32> {
        drop(self.input.take());
        ended(self.server.take().unwrap()).code()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Some(mut server) = self.server.take() {
            // It may have ended meanwhile.
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

#[test]
fn requests_are_sent_ahead_and_a_session_keeps_their_order() {
    let mut client = Client::start();
    client.send(&json!(["sandbox", 2, 1, {}]));
    client.send(&json!(["session", 3, 7, 1, {"x": 20}]));
    client.send(&json!(["set", 4, 7, {"y": [1, {"$bytes": "AAE="}, {"$float": "inf"}]}]));
    client.send(&json!(["run", 5, 7, "print('hi'); x + z", {"z": 22}]));
    client.expect("ok", 2);
    let isolation = client.expect("ok", 3)[2].clone();
    assert!(isolation["isolation"].is_string() && isolation["layers"].is_object(), "{isolation}");
    client.expect("ok", 4);
    let mut execution = client.expect("ok", 5)[2].clone();
    assert!(execution["usage"]["wall_time"].as_f64().unwrap() > 0.0);
    execution.as_object_mut().unwrap().remove("usage");
    let expected = json!({"status": "completed", "value": 42, "repr": "42", "stdout": "hi\n"});
    assert_eq!(execution, expected);
    let got = client.ask(&json!(["get", 6, 7, "y"]));
    assert_eq!(got, json!([[1, {"$bytes": "AAE="}, {"$float": "inf"}]]));
    assert_eq!(client.ask(&json!(["get", 6, 7, "missing"])), json!([]));
    assert_eq!(client.ask(&json!(["delete", 6, 7, "y"])), json!(true));
    let names = client.ask(&json!(["variables", 6, 7]));
    assert_eq!(names[0], json!({"name": "x", "type": "int", "repr": "20"}));
    assert_eq!(client.end(), Some(0));
}

#[test]
fn what_the_guest_does_is_in_the_execution() {
    let mut client = Client::with_session(&json!({}));
    let raised = client.ask(&json!(["run", 5, 1, "import sys; sys.stderr.write('e'); 1 / 0"]));
    assert_eq!((&raised["status"], &raised["stderr"]), (&json!("raised"), &json!("e")));
    assert_eq!(raised["exception"]["type"], "ZeroDivisionError");
    assert_eq!(raised["exception"]["args"], r#"["division by zero"]"#);
    let exited = client.ask(&json!(["run", 5, 1, "exit(3)"]));
    assert_eq!((&exited["status"], &exited["exit_code"]), (&json!("exited"), &json!(3)));
    let own = "class Own(SystemExit): pass\nraise Own('why')";
    let exit = &client.ask(&json!(["run", 5, 1, own]))["system_exit"];
    assert_eq!((&exit["type"], &exit["args"]), (&json!("Own"), &json!(r#"["why"]"#)));
    let late = client.ask(&json!(["run", 5, 1, "while True: pass", null, {"timeout": 0.1}]));
    assert_eq!(
        (&late["status"], &late["termination"]["kind"]),
        (&json!("terminated"), &json!("timeout"))
    );
    assert_eq!(late.get("session_alive"), None);
    let shown = "from IPython.display import HTML; display(HTML('<b>'))";
    let shown = client.ask(&json!(["run", 5, 1, shown]));
    assert_eq!(shown["displays"][0]["data"]["text/html"], "<b>");
    let read = json!(["run", 5, 1, "import sys; [input(), sys.argv[1:]]", null,
                      {"stdin": "line\n", "argv": ["a"], "name": "f.py"}]);
    assert_eq!(client.ask(&read)["value"], json!(["line", ["a"]]));
}

#[test]
fn tools_are_called_at_the_client() {
    let tools = json!([{"name": "search", "doc": "Searches.", "returns": {"type": "string"},
        "parameters": [{"name": "q", "schema": {"type": "string"}},
                       {"name": "rest", "optional": true},
                       {"name": "n", "schema": {"type": "integer"}, "default": 3,
                        "kind": "keyword_only"}]}]);
    let mut client = Client::with_session(&json!({"tools": tools}));
    let code = "import inspect; print(inspect.signature(search)); search('a')";
    client.send(&json!(["run", 5, 1, code, null, {"stream": true}]));
    let (output, call) = client.next_after_output();
    assert_eq!(output, "(q: str, rest=Ellipsis, *, n: int = 3) -> str\n");
    assert_eq!(call, json!(["call", call[1], 1, 5, "search", {"q": "a", "n": 3}, call[6]]));
    client.send(&json!(["answer", call[1], {"found": [1, null]}]));
    assert_eq!(client.expect("ok", 5)[2]["value"], json!({"found": [1, null]}));
    client.send(&json!(["run", 6, 1, "search('b')"]));
    let call = client.next();
    client.send(&json!(["fail", call[1], "KeyError", "nothing"]));
    let raised = client.expect("ok", 6)[2].clone();
    assert_eq!(raised["exception"]["type"], "KeyError");
    let mistaken = client.ask(&json!(["run", 7, 1, "search(1)"]));
    assert_eq!(mistaken["exception"]["type"], "TypeError");
}

#[test]
fn a_result_is_submitted_under_any_name() {
    let fields = json!([{"name": "answer", "schema": {"type": "integer"}}]);
    let mut client = Client::with_session(&json!({"submit": {"name": "final", "fields": fields}}));
    let submitted = client.ask(&json!(["run", 5, 1, "final(42); 1 / 0"]));
    assert_eq!(submitted["status"], "submitted");
    assert_eq!(submitted["value"], json!({"answer": 42}));
    client.ask(&json!(["submit", 6, 1, {"fields": [{"name": "text"}]}]));
    let submitted = client.ask(&json!(["run", 7, 1, "SUBMIT(text='done')"]));
    assert_eq!(submitted["value"], json!({"text": "done"}));
}

#[test]
fn tools_have_every_kind_of_parameter_and_two_styles() {
    let parameters = json!([{"name": "a", "kind": "positional_only"},
        {"name": "rest", "kind": "var_positional"}, {"name": "k", "kind": "keyword_only"},
        {"name": "more", "kind": "var_keyword"}]);
    let tools =
        json!([{"name": "f", "parameters": parameters}, {"name": "__g__", "style": "async"}]);
    let mut client = Client::with_session(&json!({"tools": tools}));
    client.send(&json!(["run", 5, 1, "f(1, 2, 3, k=4, x=5), await __g__()"]));
    let call = client.next();
    assert_eq!(call[5], json!({"a": 1, "rest": [2, 3], "k": 4, "more": {"x": 5}}));
    client.send(&json!(["answer", call[1], "first"]));
    let call = client.next();
    assert_eq!((&call[4], &call[5]), (&json!("__g__"), &json!({})));
    client.send(&json!(["answer", call[1], "second"]));
    let execution = client.expect("ok", 5)[2].clone();
    assert_eq!(execution["value"], json!(["first", "second"]));
    assert!(execution["usage"]["host_time"].as_f64().unwrap() > 0.0);
}

#[test]
fn calls_are_made_at_the_same_time_and_answered_in_any_order() {
    let mut client =
        Client::with_session(&json!({"tools": [{"name": "f", "parameters": [{"name": "x"}]}]}));
    client.send(&json!(["run", 5, 1, "f.map([1, 2, 3])"]));
    let calls: Vec<Value> = (0..3).map(|_| client.next()).collect();
    for call in calls.iter().rev() {
        let x = call[5]["x"].as_i64().unwrap();
        client.send(&json!(["answer", call[1], x * 10]));
    }
    assert_eq!(client.expect("ok", 5)[2]["value"], json!([10, 20, 30]));
    // While a call is under way, variables can be read and nothing else can be done.
    client.send(&json!(["run", 6, 1, "seen = 1; f(seen)"]));
    let call = client.next();
    assert_eq!(client.ask(&json!(["get", 7, 1, "seen"])), json!([1]));
    assert_eq!(client.fails(&json!(["run", 8, 1, "1"])).0, "busy");
    assert_eq!(client.fails(&json!(["fork", 8, 1, 2])).0, "busy");
    assert!(client.fails(&json!(["get", 8, 2, "seen"])).1.contains("there is no session 2"));
    client.send(&json!(["interrupt", 9, 1]));
    let mut told: Vec<Value> = (0..3).map(|_| client.next()).collect();
    told.sort_by_key(|message| message[0].as_str().unwrap().to_owned());
    assert_eq!(told[2], json!(["uncall", call[1]]));
    let run = told[..2].iter().find(|message| message[1] == 6).unwrap();
    assert_eq!(run[2]["termination"]["kind"], "interrupted");
    // An answer that nobody waits for changes nothing.
    client.send(&json!(["answer", call[1], 0]));
    assert_eq!(client.ask(&json!(["run", 10, 1, "seen"]))["value"], 1);
}

#[test]
fn output_is_streamed_in_order_and_characters_stay_whole() {
    let mut client = Client::with_session(&json!({}));
    let code = "import sys\n\
        for at in range(20_000): print('\u{e9}', at)\n\
        sys.stderr.write('warned\\n')\n\
        display('shown')\n\
        sys.stdout.buffer.write(b'\\xc3'); sys.stdout.flush()";
    client.send(&json!(["run", 5, 1, code, null, {"stream": true}]));
    let (mut stdout, mut stderr, mut messages) = (String::new(), String::new(), 0);
    let mut at_display = None;
    let execution = loop {
        let message = client.next();
        match message[0].as_str().unwrap() {
            "output" if message[2] == 1 => stdout += message[3].as_str().unwrap(),
            "output" => stderr += message[3].as_str().unwrap(),
            "display" => {
                assert_eq!(message[2]["data"]["text/plain"], "'shown'");
                at_display = Some((stdout.len(), stderr.len()));
            }
            _ => break message[2].clone(),
        }
        messages += 1;
    };
    let lines: Vec<String> = (0..20_000).map(|at| format!("\u{e9} {at}\n")).collect();
    let expected = lines.concat();
    assert_eq!(stdout, format!("{expected}\u{fffd}"));
    assert_eq!(at_display, Some((expected.len(), "warned\n".len())));
    assert_eq!(execution["stdout"], stdout);
    assert!(messages < 2000, "{messages} messages for {} bytes", stdout.len());
}

#[test]
fn a_cancelled_run_that_goes_on_ends_with_its_session() {
    let policy = json!({"limits": {"grace": 0.1, "run_time": 600}});
    let mut client = Client::with_session(&policy);
    let stubborn = "told = False\nwhile True:\n    try:\n        if not told: told = True; print(1)\n\
        \x20       while True: pass\n    except BaseException: pass";
    client.send(&json!(["run", 5, 1, stubborn, null, {"stream": true}]));
    client.expect("output", 5);
    client.send(&json!(["cancel", 6, 1]));
    let told = client.answers(2);
    assert_eq!(told[0][2]["session_alive"], json!(false), "{}", told[0]);
    assert_eq!(told[1], json!(["ok", 6, null]));
    assert_eq!(client.fails(&json!(["run", 7, 1, "1"])).0, "closed");
    client.ask(&json!(["reset", 8, 1]));
    assert_eq!(client.ask(&json!(["run", 9, 1, "2"]))["value"], 2);
    // One that gives way keeps its session.
    client
        .send(&json!(["run", 10, 1, "x = 1\nprint(x)\nwhile True: pass", null, {"stream": true}]));
    client.expect("output", 10);
    client.send(&json!(["cancel", 11, 1]));
    client.answers(2);
    assert_eq!(client.ask(&json!(["get", 12, 1, "x"])), json!([1]));
    client.send(&json!(["run", 13, 1, "print(1)\nwhile True: pass", null, {"stream": true}]));
    client.expect("output", 13);
    client.send(&json!(["close", 14, 1]));
    client.answers(2);
    assert_eq!(client.fails(&json!(["run", 15, 1, "1"])).0, "protocol");
}

#[test]
fn a_cell_returns_at_the_top_level_if_it_may() {
    let mut client = Client::with_session(&json!({}));
    let run = json!(["run", 5, 1, "if True: return 42\n1 / 0", null, {"allow_return": true}]);
    assert_eq!(client.ask(&run)["value"], 42);
    let refused = client.ask(&json!(["run", 6, 1, "return 42"]));
    assert_eq!(refused["exception"]["type"], "SyntaxError");
    let program = client.ask(&json!(["run", 7, 1, "42", null, {"program": true}]));
    assert_eq!((program.get("value"), program.get("repr")), (None, None));
}

#[test]
fn a_program_keeps_its_variables_if_it_is_to() {
    let mut client = Client::with_session(&json!({}));
    let code = "kept = 42";
    client.ask(&json!(["run", 5, 1, code, null, {"program": true}]));
    assert_eq!(client.ask(&json!(["get", 6, 1, "kept"])), json!([]));
    for (number, stream) in [(7, false), (10, true)] {
        let options = json!({"program": true, "keep_variables": true, "stream": stream});
        client.ask(&json!(["run", number, 1, code, null, options]));
        assert_eq!(client.ask(&json!(["get", number + 1, 1, "kept"])), json!([42]));
        client.ask(&json!(["run", number + 2, 1, "del kept"]));
    }
    // A cell keeps them anyway.
    client.ask(&json!(["run", 13, 1, code, null, {"keep_variables": true}]));
    assert_eq!(client.ask(&json!(["get", 14, 1, "kept"])), json!([42]));
}

#[test]
fn a_run_that_is_cancelled_before_its_turn_does_not_begin() {
    let mut client = Client::start();
    client.send(&json!(["sandbox", 2, 1, {}]));
    client.send(&json!(["session", 3, 1, 1]));
    client.send(&json!(["run", 4, 1, "begun = True\nwhile True: pass"]));
    client.send(&json!(["cancel", 5, 1]));
    let answers = client.answers(4);
    assert_eq!(answers[2][2]["termination"]["kind"], "interrupted", "{answers:?}");
    assert_eq!(client.ask(&json!(["run", 6, 1, "1"]))["value"], 1);
}

#[test]
fn a_run_that_follows_a_cancel_is_not_interrupted() {
    let mut client = Client::with_session(&json!({}));
    for number in (10..400).step_by(3) {
        assert_eq!(client.ask(&json!(["run", number, 1, "1"]))["value"], 1);
        client.send(&json!(["cancel", number + 1, 1]));
        client.send(&json!(["run", number + 2, 1, "n", {"n": number}]));
        let answers = client.answers(2);
        assert_eq!(answers[0], json!(["ok", number + 1, null]));
        assert_eq!(answers[1][2]["value"], number, "{}", answers[1]);
    }
}

#[test]
fn a_cancel_reaches_a_run_whose_inputs_are_just_being_set() {
    let mut client = Client::with_session(&json!({}));
    let large = "x".repeat(1 << 20);
    for number in (10..50).step_by(2) {
        client.send(&json!(["run", number, 1, "while True: pass", {"large": large}]));
        client.send(&json!(["cancel", number + 1, 1]));
        let answers = client.answers(2);
        assert_eq!(answers[0][2]["termination"]["kind"], "interrupted", "{}", answers[0]);
    }
    assert_eq!(client.ask(&json!(["run", 60, 1, "1"]))["value"], 1);
}

#[test]
fn an_interrupt_of_the_terminal_is_left_to_the_client() {
    let mut client = Client::with_session(&json!({}));
    let server = client.server.as_ref().unwrap().id();
    let signalled = std::process::Command::new("kill").args(["-INT", &server.to_string()]).status();
    assert!(signalled.unwrap().success());
    assert_eq!(client.ask(&json!(["run", 6, 1, "1"]))["value"], 1);
}

#[test]
fn sessions_run_at_the_same_time() {
    let mut client = Client::with_session(&json!({"tools": [{"name": "meet"}]}));
    for number in 2..9 {
        client.send(&json!(["session", 100 + number, number, 1]));
    }
    for _ in 2..9 {
        assert_eq!(client.next()[0], "ok");
    }
    for number in 1..9 {
        client.send(&json!(["run", 200 + number, number, "meet()"]));
    }
    let calls: Vec<Value> = (1..9).map(|_| client.next()).collect();
    for call in &calls {
        client.send(&json!(["answer", call[1], call[2]]));
    }
    for _ in 1..9 {
        let answer = client.next();
        assert_eq!(answer[2]["value"].as_u64().unwrap() + 200, answer[1].as_u64().unwrap());
    }
}

#[test]
fn policies_are_enforced_and_their_mistakes_are_named() {
    let scratch = Scratch::new("serve-policy");
    scratch.file("in.txt", "canary");
    let host = scratch.path().to_str().unwrap();
    let policy = json!({"mounts": [{"host": host, "guest": "/data"}], "env": {"A": "b"}, "audit": true,
                        "limits": {"tool_calls": 5}});
    let mut client = Client::with_session(&policy);
    let code = "import os; [open('/data/in.txt').read(), os.environ['A']]";
    client.send(&json!(["run", 5, 1, code]));
    let audit = client.next();
    assert_eq!((&audit[0], &audit[1], &audit[2]), (&json!("audit"), &json!(1), &json!(1)));
    assert_eq!((&audit[3]["access"], &audit[3]["path"]), (&json!("file"), &json!("/data/in.txt")));
    assert_eq!(client.expect("ok", 5)[2]["value"], json!(["canary", "b"]));
    for (policy, said) in [
        (json!({"allow_nte": []}), "unknown field `allow_nte` (did you mean `allow_net`?)"),
        (
            json!({"limits": {"run_tim": 1}}),
            "unknown field `run_tim` (did you mean `run_time`?), at ['limits']",
        ),
        (json!({"mounts": [{"gest": "/x"}]}), "`gest` (did you mean `guest`?), at ['mounts'][0]"),
        (
            json!({"tools": [{"nmae": "a"}]}),
            "unknown field `nmae` (did you mean `name`?), at ['tools'][0]",
        ),
        (
            json!({"tools": [{"name": "a", "parameters": [{"name": "b", "defalt": 1}]}]}),
            "`defalt` (did you mean `default`?), at ['tools'][0]['parameters'][0]",
        ),
        (json!({"submit": {"fields": [], "nam": 1}}), "`nam` (did you mean `name`?)"),
        (json!({"mounts": [{"host": "/nowhere-at-all", "guest": "/x"}]}), "/nowhere-at-all"),
        (json!({"limits": {"run_time": -1}}), "`limits.run_time` is -1"),
        (json!({"tools": [{"name": "no name"}]}), "`no name` cannot be a tool's name"),
        (json!({"isolation": "container"}), "container"),
        (json!(null), "the policy is invalid"),
    ] {
        let (kind, message) = client.fails(&json!(["sandbox", 6, 2, policy]));
        assert!(kind == "config" && message.contains(said), "{kind}: {message}");
    }
    // What follows a sandbox that cannot be made says why.
    client.send(&json!(["sandbox", 6, 2, {"require": ["no-layer"]}]));
    client.send(&json!(["session", 7, 2, 2]));
    let failed = [client.next(), client.next()];
    assert!(failed.iter().all(|message| message[0] == "error"), "{failed:?}");
}

#[test]
fn files_of_a_session_are_written_and_read() {
    let mut client = Client::with_session(&json!({}));
    client.ask(&json!(["put_file", 5, 1, "in.txt", {"$bytes": "aGk="}]));
    let made =
        client.ask(&json!(["run", 6, 1, "open('out.txt', 'w').write(open('in.txt').read() * 2)"]));
    assert_eq!(made["files"][0]["size"], 4);
    let path = made["files"][0]["path"].as_str().unwrap();
    assert_eq!(client.ask(&json!(["get_file", 7, 1, path])), json!({"$bytes": "aGloaQ=="}));
    let directory = path.rsplit_once('/').unwrap().0;
    let listed = client.ask(&json!(["list_files", 8, 1, directory]));
    let names: Vec<&str> =
        listed.as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"in.txt") && names.contains(&"out.txt"), "{names:?}");
    assert_eq!(client.ask(&json!(["remove_file", 9, 1, path])), json!(true));
    assert_eq!(client.ask(&json!(["get_file", 10, 1, path])), json!(null));
}

#[test]
fn what_is_no_request_is_an_error_and_what_is_no_message_is_the_end() {
    let mut client = Client::with_session(&json!({}));
    for (request, said) in [
        (json!(["fly", 5, 1]), "`fly`: there is no such operation"),
        (json!(["run", 5, 9, "1"]), "there is no session 9"),
        (json!(["session", 5, 2, 9]), "there is no sandbox 9"),
        (json!(["session", 5, 1, 1]), "there is a session 1 already"),
        (json!(["run", 5, 1]), "`run`: CODE is NoneType, and has to be a string"),
        (json!(["run", 5, 1, "1", [1]]), "`run`: INPUTS is list, and has to be a dict"),
        (json!(["run", 5, 1, "1", null, {"fast": true}]), "unknown field `fast`, expected one of"),
        (json!(["run", 5, 1, "1", null, {"tream": 1}]), "`tream` (did you mean `stream`?)"),
        (json!(["run", 5, 1, "1", null, null, 1]), "`run`: there is an argument too many"),
        (json!(["close", 5, 1, 1, 2]), "`close`: there are 2 arguments too many"),
        (json!(["interrupt", 5, 1, null]), "`interrupt`: there is an argument too many"),
        (json!(["sandbox", 5, 2, {}, 1]), "`sandbox`: there is an argument too many"),
        (
            json!(["hello", 5, {"protocol": 1, "clent": "x"}]),
            "unknown field `clent` (did you mean `client`?)",
        ),
        (json!(["set", 5, 1, {"no name": 1}]), "no name"),
    ] {
        let (kind, message) = client.fails(&request);
        assert!(message.contains(said), "{kind}: {message}");
    }
    assert_eq!(client.ask(&json!(["run", 6, 1, "1"]))["value"], 1);
    for garbage in [&b"{}"[..], b"[", b"[1, 2]", b"[\"run\"]", b"\xff"] {
        let mut client = Client::with_session(&json!({}));
        client.send_bytes(garbage);
        let fatal = client.next();
        assert_eq!(fatal[0], "fatal", "{fatal}");
        assert_eq!(client.end(), Some(2));
    }
    let mut client = Client::unknown(&[]);
    client.send(&json!(["sandbox", 2, 1, {}]));
    assert_eq!(client.next(), json!(["fatal", "the first message has to be `hello`"]));
}

#[test]
fn a_message_that_cannot_be_read_fails_by_its_number_and_ends_nothing_else() {
    let mut client = Client::with_session(&json!({"tools": [{"name": "search"}]}));
    client.ask(&json!(["run", 5, 1, "x = 1"]));
    let deep = format!("[\"set\", 6, 1, {{\"x\": {}{}}}]", "[".repeat(300), "]".repeat(300));
    for unreadable in [
        &br#"["run", 6, 1, "1", {"x": NaN}]"#[..],
        b"[\"run\", 6, 1, \"'\xff'\"]",
        deep.as_bytes(),
        br#"["run", 6, 1, "1", {"x": {"$bytes": "?"}}]"#,
    ] {
        client.send_bytes(unreadable);
        let error = client.expect("error", 6);
        assert_eq!(error[2]["kind"], "protocol");
        let message = error[2]["message"].as_str().unwrap();
        assert!(message.contains("the message cannot be read: "), "{message}");
    }
    client.send(&json!(["run", 7, 1, "try: search()\nexcept ValueError as e: x += 1\nx"]));
    let call = client.next();
    client.send_bytes(format!("[\"answer\", {}, NaN]", call[1]).as_bytes());
    assert_eq!(client.expect("ok", 7)[2]["value"], 2);
    // One that has more than an answer neither.
    client.send(&json!(["run", 8, 1, "try: search()\nexcept ValueError as e: x += 1\nx"]));
    let call = client.next();
    client.send(&json!(["answer", call[1], 1, 2]));
    assert_eq!(client.expect("ok", 8)[2]["value"], 3);
}

#[test]
fn versions_that_do_not_belong_together_are_both_named() {
    let mut client = Client::unknown(&[]);
    let (kind, message) = client.fails(&json!(["hello", 1, {"protocol": 99}]));
    assert_eq!(kind, "protocol");
    assert!(message.contains("version 99") && message.contains("version 1;"), "{message}");
    assert_eq!(client.end(), Some(0));
}
