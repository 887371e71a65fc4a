//! The files of sessions: read by clients as resources, and written by a tool.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::client::{Client, session, text};
use isolet_test_support::Scratch;

fn read(client: &mut Client, uri: &str) -> Value {
    client.request("resources/read", &json!({"uri": uri}))
}

fn listed(client: &mut Client) -> Vec<String> {
    let listed = client.request("resources/list", &json!({}))["result"]["resources"].clone();
    let all = listed.as_array().unwrap().iter();
    all.map(|resource| resource["uri"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn files_that_code_has_written_are_listed_and_read() {
    let mut client = Client::modern(&[]);
    let templates = client.request("resources/templates/list", &json!({}))["result"].clone();
    let template = &templates["resourceTemplates"][0]["uriTemplate"];
    assert_eq!(template, "isolet://{session}/files/{+path}", "{templates}");
    assert!(listed(&mut client).is_empty());
    let code = "import os\nos.makedirs('a b')\nopen('a b/t.csv', 'w').write('x,y\\n')\n\
                open('raw.png', 'wb').write(b'\\x89PNG\\xff')\n\
                open('page.html', 'w').write('<script>1</script>')";
    let result = client.run(code);
    let handle = session(&result);
    let address = |path: &str| format!("isolet://{handle}/files/home/user/{path}");
    let [csv, png, page] = ["a%20b/t.csv", "raw.png", "page.html"].map(address);
    assert_eq!(listed(&mut client), [csv.clone(), page.clone(), png.clone()]);
    let contents = |answer: Value| answer["result"]["contents"][0].clone();
    let table = contents(read(&mut client, &csv));
    assert_eq!(table, json!({"uri": csv, "mimeType": "text/csv", "text": "x,y\n"}));
    let picture = contents(read(&mut client, &png));
    let data = STANDARD.encode(b"\x89PNG\xff");
    assert_eq!(picture, json!({"uri": png, "mimeType": "image/png", "blob": data}));
    // What the guest has written is no page for a client.
    assert_eq!(contents(read(&mut client, &page))["mimeType"], "text/plain");
    // The file is read as it is now, after the code that runs.
    let begun = json!({"name": "run_python", "arguments": {"session": handle, "code":
        "import time; time.sleep(0.3); open('a b/t.csv', 'w').write('new')"}});
    let running = client.begin("tools/call", &begun);
    let reading = client.begin("resources/read", &json!({"uri": csv}));
    assert_eq!(client.answer(running)["result"]["isError"], false);
    assert_eq!(client.answer(reading)["result"]["contents"][0]["text"], "new");
}

#[test]
fn a_client_reads_what_the_guest_sees_and_no_file_of_the_host() {
    let scratch = Scratch::new("mcp-files");
    let canary = scratch.file("canary.txt", "of the host");
    let mounted = scratch.path().join("mounted");
    std::fs::create_dir(&mounted).unwrap();
    std::fs::write(mounted.join("in.txt"), "of the mount").unwrap();
    let mount = format!("{}:/data", mounted.display());
    let mut client = Client::modern(&["--mount", &mount]);
    let handle = session(&client.run("open('/home/user/x', 'w').write('1')"));
    let address = |path: &str| format!("isolet://{handle}/files{path}");
    let read = |client: &mut Client, path: &str| read(client, &address(path));
    let answer = read(&mut client, "/data/in.txt");
    assert_eq!(answer["result"]["contents"][0]["text"], "of the mount");
    for path in [&*canary, "/data/../..", &format!("/data/../{canary}"), "/home", "/none/x"] {
        let answer = read(&mut client, path);
        assert!(answer["error"]["code"].is_i64(), "{path}: {answer}");
        assert!(!answer.to_string().contains("of the host"), "{answer}");
    }
    // A link of the guest's leads nowhere else.
    client.run_in(&handle, &format!("import os; os.symlink({canary:?}, '/home/user/link')"));
    let answer = read(&mut client, "/home/user/link");
    assert!(answer["error"]["code"].is_i64(), "{answer}");
    let other = answer_of_unknown(&mut client);
    assert!(other.contains("no session"), "{other}");
    client.run_in(&handle, "open('/home/user/x', 'wb').truncate((16 << 20) + 1)");
    let answer = read(&mut client, "/home/user/x");
    let said = "the file `/home/user/x` has 16777217 bytes, the limit is 16777216";
    assert_eq!(answer["error"]["message"], said);
    // The session goes on.
    assert_eq!(client.run_in(&handle, "6 * 7")["structuredContent"]["value"], 42);
}

fn answer_of_unknown(client: &mut Client) -> String {
    let answer = read(client, "isolet://s_unknown/files/home/user/x");
    answer["error"]["message"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn the_tool_that_writes_files_is_there_if_it_is_asked_for() {
    let mut client = Client::modern(&[]);
    let tools = client.request("tools/list", &json!({})).to_string();
    assert!(!tools.contains("write_file"));
    let arguments = json!({"name": "write_file", "arguments": {"path": "x", "text": "y"}});
    assert!(client.request("tools/call", &arguments)["error"].is_object());

    let mut client = Client::modern(&["--uploads"]);
    let tools = client.request("tools/list", &json!({}))["result"]["tools"].clone();
    assert_eq!(tools[2]["name"], "write_file", "{tools}");
    let result = client.call("write_file", &json!({"path": "in/a.txt", "text": "é"}));
    let handle = result["structuredContent"]["session"].as_str().unwrap().to_owned();
    let path = "/home/user/in/a.txt";
    assert_eq!(result["structuredContent"], json!({"session": handle, "path": path, "bytes": 2}));
    assert_eq!(text(&result), format!("Wrote 2 bytes to {path}.\nsession: {handle}"));
    let link = &result["content"][1];
    assert_eq!(link["uri"], format!("isolet://{handle}/files{path}"), "{link}");
    let data = STANDARD.encode([0, 255]);
    let more = json!({"session": handle, "path": "/home/user/b", "data": data});
    assert_eq!(client.call("write_file", &more)["structuredContent"]["bytes"], 2);
    let seen = client.run_in(&handle, "[open('in/a.txt').read(), list(open('b', 'rb').read())]");
    assert_eq!(seen["structuredContent"]["value"], json!(["é", [0, 255]]));
    for (arguments, said) in [
        (json!({"text": "x"}), "write_file needs `path`"),
        (json!({"path": "x"}), "write_file needs `text` or `data`, what is in the file"),
        (json!({"path": "x", "text": "", "data": "YQ=="}), "has both `text` and `data`"),
        (json!({"path": "x", "data": "?"}), "`data` of write_file is no base64"),
        (json!({"path": "x", "text": "y", "session": "s_none"}), "no session"),
        (json!({"path": "/dev/null/x", "text": "y", "session": handle}), "could not write"),
    ] {
        let result = client.call("write_file", &arguments);
        assert!(result["isError"] == true && text(&result).contains(said), "{result}");
    }
    assert_eq!(client.run_in(&handle, "6 * 7")["structuredContent"]["value"], 42);
}
