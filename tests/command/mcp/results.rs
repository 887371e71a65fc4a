//! What clients get: tools, results, resources, progress.

use serde_json::{Value, json};

use super::client::{Client, session, text};

#[test]
fn both_generations_of_clients_get_the_same_tools_in_the_same_order() {
    let list = |client: &mut Client| client.request("tools/list", &json!({}))["result"].clone();
    let mut legacy = Client::start(&[]);
    let mut modern = Client::modern(&[]);
    let tools = list(&mut legacy)["tools"].clone();
    let names: Vec<&Value> = tools.as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["close_session", "run_python"]);
    assert_eq!(list(&mut legacy)["tools"], tools);
    let modern = list(&mut modern);
    assert_eq!(modern["tools"], tools);
    assert!(modern["ttlMs"].is_u64() && modern["cacheScope"] == "private", "{modern}");
    assert!(tools[1]["outputSchema"]["properties"]["status"].is_object());
}

#[test]
fn code_is_read_as_a_cell_of_ipython() {
    let mut client = Client::modern(&[]);
    let result = client.run("    %env A=1\n    x = %pwd\n    return x");
    assert_eq!(result["structuredContent"]["value"], "/home/user", "{result}");
    assert_eq!(result["structuredContent"]["stdout"], "env: A=1\n");
    let result = client.run("!pip install rich\n6 * 7");
    assert!(text(&result).contains("rich cannot be installed by code"), "{result}");
    assert_eq!(result["structuredContent"]["value"], 42);
    let result = client.run("%foo");
    assert_eq!(result["isError"], true);
    let said = "%foo\nUsageError: Line magic function `%foo` not found.";
    assert!(text(&result).contains(said), "{result}");
}

#[test]
fn a_result_says_everything_as_text_and_as_structured_content() {
    let mut client = Client::modern(&[]);
    let code =
        "import sys\nprint('out')\nprint('err', file=sys.stderr)\n{'a': [1, None], 'b': 'x'}";
    let result = client.run(code);
    assert_eq!(result["isError"], false);
    let content = &result["structuredContent"];
    let handle = session(&result);
    assert_eq!(
        text(&result),
        format!("out\n{{'a': [1, None], 'b': 'x'}}\nstderr:\nerr\nsession: {handle}")
    );
    assert_eq!(content["status"], "ok");
    assert_eq!(content["value"], json!({"a": [1, null], "b": "x"}));
    assert_eq!(content["repr"], "{'a': [1, None], 'b': 'x'}");
    assert_eq!((&content["stdout"], &content["stderr"]), (&json!("out\n"), &json!("err\n")));
    // A value that JSON cannot say has its repr.
    let result = client.run("class A:\n  def __repr__(self): return '<A>'\nA()");
    let content = &result["structuredContent"];
    assert_eq!((&content["value"], &content["repr"]), (&Value::Null, &json!("<A>")));
    assert!(text(&result).starts_with("<A>\n"), "{result}");
    let result = client.run("return 7");
    assert_eq!(result["structuredContent"]["value"], 7);
    assert!(text(&client.run("")).starts_with("The code ran and has no output.\n"));
}

#[test]
fn what_goes_wrong_in_the_code_is_an_error_of_the_tool_with_its_traceback() {
    let mut client = Client::start(&[]);
    let result = client.run("def f():\n    raise KeyError('gone')\nprint('before')\nf()");
    assert_eq!(result["isError"], true);
    let content = &result["structuredContent"];
    assert_eq!((&content["status"], &content["stdout"]), (&json!("error"), &json!("before\n")));
    assert_eq!(content["error"]["type"], "KeyError");
    assert_eq!(content["error"]["message"], "'gone'");
    let shown = text(&result);
    assert!(shown.contains("line 2, in f") && shown.contains("KeyError: 'gone'"), "{shown}");
    // The session goes on.
    let handle = session(&result);
    assert_eq!(client.run_in(&handle, "f.__name__")["structuredContent"]["value"], "f");
    let result = client.run("x = (1\nprint('never')");
    let error = &result["structuredContent"]["error"];
    assert_eq!(error["type"], "SyntaxError");
    assert!(error["traceback"].as_str().unwrap().contains("x = (1\n        ^"), "{error}");
    let result = client.run("import sys; sys.exit('bye')");
    assert_eq!(
        (&result["isError"], &result["structuredContent"]["status"]),
        (&json!(true), &json!("error"))
    );
    assert!(text(&result).contains("bye"), "{result}");
    assert_eq!(client.run("import sys; sys.exit()")["isError"], false);
}

#[test]
fn wrong_calls_are_errors_that_a_model_can_read() {
    let mut client = Client::start(&[]);
    let mut refused = |tool: &str, arguments: Value| {
        let result = client.call(tool, &arguments);
        assert_eq!(result["isError"], true, "{result}");
        text(&result).to_owned()
    };
    assert_eq!(refused("run_python", json!({})), "run_python needs `code`, the code to run");
    let other_case = refused("run_python", json!({"Code": "1"}));
    assert!(
        other_case.contains("needs `code`") && other_case.ends_with(": `Code`"),
        "{other_case}"
    );
    assert_eq!(
        refused("run_python", json!({"code": 1})),
        "`code` of run_python is 1, and has to be a string"
    );
    assert_eq!(
        refused("run_python", json!({"code": "1", "timeout": -1})),
        "`timeout` of run_python is -1, and has to be a number of seconds above 0"
    );
    let answer = client.request("tools/call", &json!({"name": "other", "arguments": {}}));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    // The server goes on.
    assert_eq!(client.run("1 + 1")["structuredContent"]["value"], 2);
}

#[test]
fn long_output_is_cut_and_a_resource_has_all_of_it() {
    let mut client = Client::modern(&["--result-chars", "300"]);
    let result = client.run("for i in range(1000): print(i)");
    let content = &result["structuredContent"];
    let stdout = content["stdout"].as_str().unwrap();
    assert!(stdout.starts_with("0\n1\n") && stdout.ends_with("998\n999\n"), "{stdout}");
    assert!(stdout.contains("[... 3590 characters left out; isolet://"), "{stdout}");
    let link = &result["content"][1];
    assert_eq!(link["type"], "resource_link", "{result}");
    assert_eq!(content["truncated"]["stdout"], link["uri"]);
    let read = client.request("resources/read", &json!({"uri": link["uri"]}));
    let whole = (0..1000).fold(String::new(), |text, i| text + &i.to_string() + "\n");
    assert_eq!(read["result"]["contents"][0]["text"], whole);
    let listed = client.request("resources/list", &json!({}))["result"]["resources"].clone();
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(listed[0]["uri"], link["uri"]);
    let missing = client.request("resources/read", &json!({"uri": "file:///etc/passwd"}));
    assert_eq!(missing["error"]["message"], "`file:///etc/passwd` is no resource");
    // A value too long for the result is its repr, cut.
    let result = client.run("list(range(1000))");
    let content = &result["structuredContent"];
    assert!(content["value"].is_null() && content["truncated"]["value"].is_string(), "{content}");
}

#[test]
fn pictures_are_images() {
    const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
    let mut client = Client::start(&[]);
    let code = format!(
        "import base64\ndisplay({{'image/png': base64.b64decode('{PIXEL}')}}, raw=True)\n\
         display({{'image/svg+xml': '<svg/>'}}, raw=True)\n\
         display({{'text/plain': 'plain'}}, raw=True)"
    );
    let result = client.run(&code);
    let content = result["content"].as_array().unwrap();
    assert!(text(&result).starts_with("plain\n"), "{result}");
    assert_eq!(content[1]["type"], "image");
    assert_eq!(
        (&content[1]["mimeType"], &content[1]["data"]),
        (&json!("image/png"), &json!(PIXEL))
    );
    assert_eq!(
        (&content[2]["type"], &content[2]["mimeType"]),
        (&json!("resource_link"), &json!("image/svg+xml"))
    );
    assert_eq!(result["structuredContent"]["images"], 1);
    let read = client.request("resources/read", &json!({"uri": content[2]["uri"]}));
    assert_eq!(read["result"]["contents"][0]["text"], "<svg/>");
}

#[test]
fn files_that_the_code_writes_are_named() {
    let mut client = Client::start(&[]);
    let result = client.run("open('table.csv', 'w').write('a,b')");
    assert_eq!(result["structuredContent"]["files"], json!(["/home/user/table.csv"]));
    assert!(text(&result).contains("files: /home/user/table.csv"), "{result}");
}

#[test]
fn the_options_of_run_are_those_of_the_server() {
    let mut client = Client::start(&["--env", "MODE=test"]);
    assert_eq!(client.run("import os; os.environ['MODE']")["structuredContent"]["value"], "test");
    let refused = client.run("import urllib.request as u; u.urlopen('http://example.com')");
    assert!(text(&refused).contains("allow-net does not cover it"), "{refused}");
    let tools = client.request("tools/list", &json!({}))["result"]["tools"].clone();
    let about = tools[1]["description"].as_str().unwrap();
    assert!(about.contains("no network and none of the user's files"), "{about}");
}

#[test]
fn a_model_is_told_that_packages_are_missing_and_whom_to_ask_for_them() {
    let mut client = Client::start(&[]);
    let tools = client.request("tools/list", &json!({}))["result"]["tools"].clone();
    let about = tools[1]["description"].as_str().unwrap();
    assert!(about.contains("pip does not work"), "{about}");
    for (module, says) in [
        ("sklearn", "ask the user to start `isolet mcp` with `--with scikit-learn`."),
        ("torch", "`torch` has no wheel for WebAssembly"),
        ("pip", "Code cannot install packages here"),
    ] {
        let result = client.run(&format!("import {module}"));
        assert!(text(&result).contains(says), "{result}");
    }
    let late = client.call("run_python", &json!({"code": "while True: pass", "timeout": 0.2}));
    assert!(text(&late).contains("the limit is 0.2 s (`timeout`)"), "{late}");
}

#[test]
fn what_is_on_standard_output_is_the_protocol_only() {
    let mut client = Client::start(&[]);
    client.send(&json!("no request"));
    let result = client.run("import os; os.write(1, b'raw'); os.write(2, b'raw'); print('{}')");
    assert_eq!(result["structuredContent"]["stdout"], "raw{}\n");
    assert!(client.end().success());
}
