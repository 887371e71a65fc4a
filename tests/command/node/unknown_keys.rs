//! An unknown key is refused wherever a body or a message has objects with fields. The bodies are
//! those of `/openapi.json` and the messages those of `docs/`, so that none is forgotten.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::Node;
use isolet_test_support::{Scratch, root};

/// A key that is near none.
const STRANGE: &str = "qqqq";

/// What a client of a node or of a pipe sends that may have unknown keys: the file, the type,
/// and why. All but the first is of other services' protocols; `docs/reference/dialects.md`
/// says so to their users.
const LENIENT: [(&str, &str, &str); 39] = [
    ("stdio/messages.rs", "AnyHello", "another version of the protocol may have other keys"),
    ("dify.rs", "RunRequest", "the client asks for rights, which are the node's to give"),
    ("e2b/connect.rs", "FileSystemRequest", E2B),
    ("e2b/contexts.rs", "ContextRequest", E2B),
    ("e2b/control.rs", "SandboxRequest", E2B),
    ("e2b/control.rs", "AutoResume", E2B),
    ("e2b/control.rs", "SandboxChange", E2B),
    ("e2b/execute.rs", "CellRequest", E2B),
    ("e2b/processes.rs", "StartRequest", E2B),
    ("e2b/processes.rs", "ProcessConfig", E2B),
    ("e2b/processes.rs", "SelectRequest", E2B),
    ("e2b/processes.rs", "ProcessSelector", E2B),
    ("e2b/processes.rs", "ProcessInput", E2B),
    ("e2b/snapshots.rs", "SnapshotRequest", E2B),
    ("librechat/exec.rs", "ExecRequest", LIBRECHAT),
    ("librechat/programmatic.rs", "ProgrammaticRequest", LIBRECHAT),
    ("librechat/programmatic.rs", "ToolDefinition", LIBRECHAT),
    ("librechat/programmatic.rs", "ToolResult", LIBRECHAT),
    ("librechat/workspace.rs", "FileRef", LIBRECHAT),
    ("jupyter/kernels.rs", "Status", JUPYTER),
    ("jupyter/message.rs", "Id", JUPYTER),
    ("jupyter/mod.rs", "StartRequest", JUPYTER),
    ("nemo_skills.rs", "ExecuteRequest", "the client sends options of languages and tracebacks"),
    ("openenv/coding.rs", "ResetRequest", OPENENV),
    ("openenv/mod.rs", "StepRequest", OPENENV),
    ("openenv/repl.rs", "ResetRequest", OPENENV),
    ("opensandbox/code.rs", "CodeRequest", OPENSANDBOX),
    ("opensandbox/code.rs", "ContextRequest", OPENSANDBOX),
    ("opensandbox/commands.rs", "CommandRequest", OPENSANDBOX),
    ("opensandbox/files.rs", "FileMetadata", OPENSANDBOX),
    ("opensandbox/files.rs", "Rename", OPENSANDBOX),
    ("opensandbox/files.rs", "Replacement", OPENSANDBOX),
    ("opensandbox/lifecycle.rs", "NetworkPolicy", OPENSANDBOX),
    ("opensandbox/lifecycle.rs", "NetworkRule", OPENSANDBOX),
    ("opensandbox/lifecycle.rs", "RenewRequest", OPENSANDBOX),
    ("opensandbox/lifecycle.rs", "SandboxRequest", OPENSANDBOX),
    ("ragflow.rs", "RunRequest", "RAGFlow ignores what it does not know"),
    ("sandbox_fusion.rs", "RunCodeRequest", FUSION),
    ("sandbox_fusion.rs", "RunJupyterRequest", FUSION),
];
const E2B: &str = "clients send more with each version, and E2B ignores what it does not know";
const LIBRECHAT: &str = "clients send whose a file is and more, and LibreChat's service ignores it";
const JUPYTER: &str = "messages have more keys with each version, and gateways send variables";
const OPENENV: &str = "OpenEnv's own requests have whatever keys an environment gives a meaning to";
const OPENSANDBOX: &str = "clients send images, owners and modes, which have no meaning here";
const FUSION: &str = "clients send options of compilers, and SandboxFusion ignores unknown ones";

/// The schemas of a description.
struct Schemas<'a>(&'a Map<String, Value>);

/// A body with an unknown key, and what the refusal says of it.
struct Case {
    body: Value,
    said: String,
}

impl Case {
    fn within(self, sample: &Value, field: &str, wrap: impl Fn(Value) -> Value) -> Self {
        let mut body = sample.clone();
        body[field] = wrap(self.body);
        Self { body, said: self.said }
    }
}

impl<'a> Schemas<'a> {
    /// Returns what a schema refers to, or its part that is not null, and the name of that.
    fn resolved(&self, schema: &'a Value) -> (Option<&'a str>, &'a Value) {
        if let Some(reference) = schema["$ref"].as_str() {
            let name = reference.strip_prefix("#/components/schemas/").unwrap();
            return (Some(name), &self.0[name]);
        }
        match schema["oneOf"].as_array() {
            Some(parts) => self.resolved(parts.iter().find(|part| part["type"] != "null").unwrap()),
            None => (None, schema),
        }
    }

    /// Returns the least value that has such a schema.
    fn sample(&self, schema: &'a Value) -> Value {
        let schema = self.resolved(schema).1;
        if let Some(values) = schema["enum"].as_array() {
            return values[0].clone();
        }
        match schema["type"].as_str() {
            Some("string") => json!("x"),
            Some("integer" | "number") => json!(1),
            Some("array") => json!([]),
            Some("object") => {
                let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
                let field = |name: &Value| {
                    let name = name.as_str().unwrap();
                    (name.to_owned(), self.sample(&schema["properties"][name]))
                };
                Value::Object(required.iter().map(field).collect())
            }
            _ => Value::Null,
        }
    }

    /// Returns bodies with an unknown key in each of the objects that a schema has. `inside` has
    /// the schemas that this one is a part of.
    fn cases(&self, schema: &'a Value, inside: &[&'a str]) -> Vec<Case> {
        let (name, schema) = self.resolved(schema);
        let Some(properties) = schema["properties"].as_object() else { return Vec::new() };
        assert_eq!(schema["additionalProperties"], false, "{name:?} takes every key");
        if name.is_some_and(|name| inside.contains(&name)) {
            return Vec::new();
        }
        let inside: Vec<_> = inside.iter().copied().chain(name).collect();
        let sample = self.sample(schema);
        let with = |key: String, said: String| {
            let mut body = sample.clone();
            body[key] = json!(1);
            Case { body, said }
        };
        let mut cases = vec![with(STRANGE.to_owned(), format!("unknown field `{STRANGE}`"))];
        for (field, schema) in properties {
            let misspelt = format!("{field}z");
            let said = format!("unknown field `{misspelt}` (did you mean `{field}`?)");
            cases.push(with(misspelt, said));
            let items = &self.resolved(schema).1["items"];
            let nested = self.cases(schema, &inside).into_iter();
            cases.extend(nested.map(|case| case.within(&sample, field, |body| body)));
            if items.is_object() {
                let nested = self.cases(items, &inside).into_iter();
                cases.extend(nested.map(|case| case.within(&sample, field, |body| json!([body]))));
            }
        }
        cases
    }
}

fn check(request: &str, case: &Case, status: u16, problem: &Value) {
    let detail = problem["detail"].as_str().unwrap_or_default();
    let is_refused = matches!(status, 400 | 422) && problem["code"] == "invalid";
    assert!(is_refused && detail.contains(&case.said), "{request} {}: {problem}", case.body);
}

#[tokio::test]
async fn every_body_of_a_route_with_an_unknown_key_is_refused_by_the_name_of_the_key() {
    let scratch = Scratch::new("node-keys");
    let config = format!("[store]\ndirectory = {:?}", scratch.path().join("store"));
    let node = Node::configured(&scratch, &config);
    let description: Value = serde_json::from_str(&node.text("GET /openapi.json").await).unwrap();
    let schemas = Schemas(description["components"]["schemas"].as_object().unwrap());
    let id = node.session(&json!({})).await;
    let (mut objects, mut others) = (0, 0);
    for (path, methods) in description["paths"].as_object().unwrap() {
        let path = path.replace("{id}", &id).replace("{call}", "1").replace(['{', '}'], "");
        for (method, operation) in methods.as_object().unwrap() {
            let request = format!("{} {path}", method.to_uppercase());
            let Some(content) = operation["requestBody"]["content"].as_object() else {
                // A body that has no fields has no unknown ones either.
                if method == "post" {
                    let said = format!("unknown field `{STRANGE}`");
                    let case = Case { body: json!({(STRANGE): 1}), said };
                    let (status, problem) = node.ask(&request, &case.body).await;
                    check(&request, &case, status, &problem);
                    others += 1;
                }
                continue;
            };
            for (kind, content) in content {
                match kind.as_str() {
                    "application/json" => {
                        for case in schemas.cases(&content["schema"], &[]) {
                            let (status, problem) = node.ask(&request, &case.body).await;
                            check(&request, &case, status, &problem);
                            objects += 1;
                        }
                    }
                    // A line is a request of one run, with an id.
                    "application/x-ndjson" => {
                        for case in schemas.cases(&schemas.0["RunOnceRequest"], &[]) {
                            let mut line = case.body.clone();
                            line["id"] = json!(7);
                            let (status, answer) = node.ask(&request, &line).await;
                            assert_eq!((status, &answer["id"]), (200, &json!(7)), "{answer}");
                            check(&request, &case, 422, &answer["problem"]);
                            objects += 1;
                        }
                    }
                    "application/octet-stream" => {}
                    other => panic!("{request}: how has {other} an unknown key?"),
                }
            }
        }
    }
    assert!(objects > 100 && others >= 3, "{objects} {others}");
    // What was refused has done nothing.
    assert_eq!(node.ask("GET /v1/snapshots", &Value::Null).await.1, json!({"snapshots": []}));
    assert_eq!(node.run(&id, "6 * 7").await.1["value"], 42);
}

/// Returns the least message of a kind that a client may send, without its `type`.
fn message(kind: &str) -> Value {
    match kind {
        "run" => json!({"code": "1"}),
        "get" | "delete" => json!({"name": "x"}),
        "set" => json!({"variables": {}}),
        "tool_result" => json!({"call_id": 1}),
        "session" | "variables" | "reset" | "interrupt" => json!({}),
        other => panic!("what has a `{other}`?"),
    }
}

#[tokio::test]
async fn every_message_of_a_websocket_with_an_unknown_key_is_refused_by_the_name_of_the_key() {
    let node = Node::start(&[]);
    let id = node.session(&json!({})).await;
    let mut attached =
        super::websocket::Client::connect(&node, &format!("/v1/sessions/{id}/ws")).await;
    let (_, table) = include_str!("../../../docs/reference/http-api.md")
        .split_once("| the client sends |")
        .unwrap();
    let rows =
        table.lines().take_while(|line| line.starts_with('|') || line.contains("last answer"));
    let kinds: Vec<_> = rows.filter_map(|row| row.strip_prefix("| `{\"type\": \"")).collect();
    assert_eq!(kinds.len(), 9);
    for row in kinds {
        let (kind, _) = row.split_once('"').unwrap();
        let mut sent = message(kind);
        sent["type"] = json!(kind);
        sent[STRANGE] = json!(1);
        let answer = if kind == "session" {
            super::websocket::Client::connect(&node, "/v1/ws").await.ask(&sent).await
        } else {
            attached.ask(&sent).await
        };
        let detail = answer["problem"]["detail"].as_str().unwrap_or_default();
        assert!(detail.contains(&format!("unknown field `{STRANGE}`")), "{kind}: {answer}");
    }
    let answer = attached.ask(&json!({"type": "tool_result", "call_id": 1, "errr": {}})).await;
    let detail = answer["problem"]["detail"].as_str().unwrap();
    assert!(detail.contains("unknown field `errr` (did you mean `error`?)"), "{detail}");
}

/// Returns the structs with named fields that serde reads, of a file of Rust, which do not refuse
/// unknown keys.
fn lenient(text: &str) -> Vec<&str> {
    let code = text.split("#[cfg(test)]").next().unwrap();
    let read = code.split("#[derive(").skip(1).filter_map(|item| {
        let (traits, rest) = item.split_once(")]")?;
        let (attributes, rest) = rest.split_once("struct ")?;
        let name = rest.split(|c: char| !c.is_alphanumeric()).next()?;
        // A route's path has the names of the route.
        let is_read = traits.contains("Deserialize") && !traits.contains("IntoParams");
        let is_a_struct = !attributes.contains('{');
        let has_fields = rest[name.len()..].trim_start().starts_with('{');
        // With a flattened field, serde takes unknown keys whatever the attributes say.
        let is_strict = attributes.contains("deny_unknown_fields")
            && !rest.split("\n}").next()?.contains("serde(flatten)");
        (is_read && is_a_struct && has_fields && !is_strict).then_some(name)
    });
    read.collect()
}

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn what_clients_send_refuses_unknown_keys_but_for_the_protocols_that_need_them() {
    let http = root().join("crates/isolet-serve/src/http");
    let mut files = Vec::new();
    sources(&root().join("crates/isolet-serve/src"), &mut files);
    sources(&root().join("crates/isolet-service/src"), &mut files);
    let mut found = Vec::new();
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        let name =
            file.strip_prefix(&http).or(file.strip_prefix(root().join("crates/isolet-serve/src")));
        let name = name.unwrap_or(file).to_str().unwrap().to_owned();
        found.extend(lenient(&text).into_iter().map(|one| (name.clone(), one.to_owned())));
    }
    found.sort();
    let mut listed: Vec<_> =
        LENIENT.iter().map(|(file, name, _)| ((*file).to_owned(), (*name).to_owned())).collect();
    listed.sort();
    assert_eq!(found, listed, "structs that take unknown keys, and those of the list");
}

#[tokio::test]
async fn clients_of_other_services_may_send_keys_that_have_no_meaning_here() {
    let node = Node::start(&[]);
    let (status, sandbox) = node.ask("POST /sandboxes", &json!({(STRANGE): 1})).await;
    assert_eq!(status, 201, "{sandbox}");
    let id = sandbox["sandboxID"].as_str().unwrap();
    let cell = json!({"code": "1", "language": "python", "lang": "py", "generated_code": "1", "cells": ["1"],
                      "action": {"code": "1"}, (STRANGE): 1});
    let (status, sandbox) = node.ask("POST /v1/sandboxes", &json!({(STRANGE): 1})).await;
    assert_eq!(status, 202, "{sandbox}");
    let other = sandbox["id"].as_str().unwrap();
    for request in [
        &format!("POST /opensandbox/{other}/code"),
        "POST /librechat/exec",
        "POST /run_code",
        "POST /run_jupyter",
        "POST /execute",
        "POST /openenv/coding/reset",
        "POST /openenv/repl/reset",
        "POST /openenv/coding/step",
        &format!("POST /sandboxes/{id}/timeout"),
        &format!("POST /sandboxes/{id}/connect"),
    ] {
        let (status, answer) = node.ask(request, &cell).await;
        assert!(matches!(status, 200..=299), "{request}: {status} {answer}");
    }
    // The action is OpenEnv's, which takes no more than it has.
    let step = json!({"action": {"code": "1", (STRANGE): 1}});
    let (status, problem) = node.ask("POST /openenv/coding/step", &step).await;
    assert_eq!(status, 422);
    assert!(problem["detail"].as_str().unwrap().contains(STRANGE), "{problem}");
}
