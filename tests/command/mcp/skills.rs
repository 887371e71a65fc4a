//! Skills of `isolet mcp`.

use serde_json::{Value, json};

use super::client::{Client, session, text};
use isolet_test_support::root;

fn client() -> Client {
    let skills = root().join("tests/skills").display().to_string();
    let inputs = format!("{skills}/inputs:/inputs");
    Client::modern(&["--skills", &skills, "--mount", &inputs])
}

#[test]
fn skills_are_listed_by_name_and_description_and_their_texts_are_read_on_demand() {
    let mut client = client();
    let tools = client.request("tools/list", &json!({}))["result"]["tools"].clone();
    let tool = tools.as_array().unwrap().iter().find(|tool| tool["name"] == "run_skill").unwrap();
    let description = tool["description"].as_str().unwrap();
    for skill in ["- changelog: Builds release notes", "- pdf: ", "- xlsx: "] {
        assert!(description.contains(skill), "{skill}: {description}");
    }
    assert!(!description.contains("## "), "no instructions: {description}");
    let mut read = |arguments: Value| client.call("run_skill", &arguments);
    let instructions = read(json!({"skill": "invoice"}));
    assert_eq!(instructions["isError"], false);
    for part in ["# ", "Scripts (`script`): scripts/make_invoice.py", "references/fields.md"] {
        assert!(text(&instructions).contains(part), "{part}: {instructions}");
    }
    assert!(text(&read(json!({"skill": "invoice", "file": "references/fields.md"}))).len() > 100);
    for (arguments, reason) in [
        (json!({}), "needs `skill`"),
        (json!({"skill": "nosuch"}), "there is no skill `nosuch`; there are archive-checksums"),
        (json!({"skill": "invoice", "file": "../pdf/SKILL.md"}), "there is no file"),
        (json!({"skill": "invoice", "script": "x.py"}), "has no script `x.py`; it has scripts/"),
    ] {
        let refused = read(arguments);
        assert_eq!(refused["isError"], true);
        assert!(text(&refused).contains(reason), "{reason}: {refused}");
    }
}

#[test]
fn scripts_run_in_a_session_whose_files_python_sees() {
    let mut client = client();
    let ran = client.call(
        "run_skill",
        &json!({
            "skill": "changelog", "script": "release_notes.sh",
            "arguments": "/inputs/commits.txt 1.4.2 notes.md 2>&1",
        }),
    );
    assert_eq!(ran["isError"], false, "{ran}");
    let handle = session(&ran);
    let written = client.run_in(&handle, "import os; sorted(os.listdir())");
    assert!(text(&written).contains("notes.md"), "{written}");
    let failed = client.call(
        "run_skill",
        &json!({
            "skill": "text-statistics", "script": "scripts/text_stats.py",
            "arguments": "--nosuch", "session": handle,
        }),
    );
    assert_eq!(failed["structuredContent"]["status"], "error");
    assert!(text(&failed).contains("exit status: 2"), "{failed}");
}
