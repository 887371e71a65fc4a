//! Tests that the answers of a node are those that its description, `/openapi.json`, says.

use std::collections::{BTreeMap, BTreeSet};

use isolet_test_support::Scratch;
use serde_json::{Value, json};

use super::{EVENTS, Events, Node, collected};

/// The description of a node.
struct Description(Value);

impl Description {
    /// Checks the answer to a request for a path of the description.
    fn check(&self, operation: &str, status: u16, answer: &Value) {
        let (method, path) = operation.split_once(' ').unwrap();
        let responses = &self.0["paths"][path][method.to_lowercase()]["responses"];
        let class = format!("{}XX", status / 100);
        let found = responses.get(status.to_string()).or_else(|| responses.get(&class));
        let content = &found.unwrap_or_else(|| panic!("{operation}: {status}"))["content"];
        let kind = if status < 400 { "application/json" } else { "application/problem+json" };
        let wrong = self.wrong(&content[kind]["schema"], answer, operation);
        assert!(wrong.is_empty(), "{wrong:#?}\n{answer:#}");
    }

    fn resolved<'a>(&'a self, schema: &'a Value) -> &'a Value {
        let Some(name) = schema.get("$ref") else { return schema };
        let name = name.as_str().unwrap().strip_prefix("#/components/schemas/").unwrap();
        self.0["components"]["schemas"].get(name).unwrap_or_else(|| panic!("no schema {name}"))
    }

    /// Returns the properties of an object, and which are required.
    fn properties<'a>(
        &'a self,
        schema: &'a Value,
    ) -> (BTreeMap<&'a str, &'a Value>, BTreeSet<&'a str>) {
        let schema = self.resolved(schema);
        let (mut all, mut required) = (BTreeMap::new(), BTreeSet::new());
        for part in schema["allOf"].as_array().into_iter().flatten() {
            let (its, needed) = self.properties(part);
            all.extend(its);
            required.extend(needed);
        }
        let own = schema["properties"].as_object().into_iter().flatten();
        all.extend(own.map(|(name, schema)| (name.as_str(), schema)));
        required
            .extend(schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str));
        (all, required)
    }

    /// Returns what about an answer is not as a schema says.
    fn wrong(&self, schema: &Value, answer: &Value, at: &str) -> Vec<String> {
        assert!(schema.is_object(), "{at} has no schema");
        let schema = self.resolved(schema);
        let says = ["type", "oneOf", "allOf", "enum"];
        if !says.iter().any(|name| schema.get(name).is_some()) {
            // Any value is one.
            return Vec::new();
        }
        if let Some(choices) = schema["oneOf"].as_array() {
            let fits = choices.iter().filter(|one| self.wrong(one, answer, at).is_empty()).count();
            return if fits == 1 { Vec::new() } else { vec![format!("{at} fits {fits} choices")] };
        }
        let kind = match answer {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(number) if number.is_f64() => "number",
            Value::Number(_) => "integer",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        let kinds: Vec<_> = match &schema["type"] {
            Value::Null => Vec::new(),
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
            one => one.as_str().into_iter().collect(),
        };
        let is_a_number = kind == "integer" && kinds.contains(&"number");
        if !kinds.is_empty() && !kinds.contains(&kind) && !is_a_number {
            return vec![format!("{at} is {kind}, and has to be {kinds:?}")];
        }
        if let Some(values) = schema["enum"].as_array().filter(|values| !values.contains(answer)) {
            return vec![format!("{at} is {answer}, and has to be one of {values:?}")];
        }
        let mut wrong = Vec::new();
        for item in answer.as_array().into_iter().flatten() {
            wrong.extend(self.wrong(&schema["items"], item, &format!("{at}[]")));
        }
        let (properties, required) = self.properties(schema);
        let Some(fields) = answer.as_object().filter(|_| !properties.is_empty()) else {
            return wrong;
        };
        let missing = required.into_iter().filter(|name| !fields.contains_key(*name));
        wrong.extend(missing.map(|name| format!("{at} has no `{name}`")));
        for (name, field) in fields {
            match properties.get(name.as_str()) {
                Some(schema) => {
                    wrong.extend(self.wrong(schema, field, &format!("{at}.{name}")));
                }
                None => wrong.push(format!("`{at}.{name}` is not described")),
            }
        }
        wrong
    }
}

#[tokio::test]
async fn every_answer_has_the_form_that_the_description_says() {
    let scratch = Scratch::new("node-description");
    let config = format!("[store]\ndirectory = {:?}", scratch.path().join("store"));
    let node = Node::configured(&scratch, &config);
    let description: Value = serde_json::from_str(&node.text("GET /openapi.json").await).unwrap();
    let description = Description(description);
    let id = node.session(&json!({"metadata": [1], "inputs": {"x": 1}})).await;
    let asked = async |operation: &str, body: Value| {
        let request = operation.replace("{id}", &id).replace("{name}", "x");
        let (status, answer) = node.ask(&request, &body).await;
        assert!(status < 300, "{operation}: {answer}");
        description.check(operation, status, &answer);
        answer
    };
    for (code, key) in [
        ("{'a': [1, b'b', float('inf')]}", "value"),
        ("object()", "value_error"),
        ("import sys; print(1); sys.stderr.write('a'); open('a', 'w').write('b'); a = 1", "files"),
        ("display('a'); 'a'", "displays"),
        ("try:\n 1 / 0\nexcept Exception as error:\n raise KeyError(1) from error", "exception"),
        ("raise SystemExit(3)", "system_exit"),
        ("print('x' * 2_000_000)", "truncated"),
        ("while True: pass", "termination"),
        ("import os; os._exit(4)", "session_alive"),
    ] {
        let policy = json!({"limits": {"run_time": 0.5}});
        let ran = asked("POST /v1/run", json!({"code": code, "policy": policy})).await;
        assert!(ran.get(key).is_some(), "{code}: {ran}");
    }
    asked("POST /v1/sessions", json!({})).await;
    for operation in [
        "GET /v1/sessions",
        "GET /v1/sessions/{id}",
        "POST /v1/sessions/{id}/renew",
        "GET /v1/sessions/{id}/variables",
        "GET /v1/sessions/{id}/variables/{name}",
        "POST /v1/sessions/{id}/snapshots",
        "GET /v1/snapshots",
        "GET /v1/node",
        "POST /v1/sessions/{id}/fork",
        "POST /v1/sessions/{id}/pause",
        "GET /v1/sessions/{id}",
        "POST /v1/sessions/{id}/resume",
        "POST /v1/sessions/{id}/reset",
    ] {
        let body = if operation.starts_with("GET") { Value::Null } else { json!({}) };
        asked(operation, body).await;
    }
    let (status, problem) = node.ask("GET /v1/sessions/none", &Value::Null).await;
    description.check("GET /v1/sessions/{id}", status, &problem);
}

#[tokio::test]
async fn displays_that_an_answer_has_no_room_for_are_left_out_and_counted() {
    const MOST: usize = 1 << 20;
    let scratch = Scratch::new("node-displays");
    let node = Node::configured(&scratch, &format!("max_answer = {MOST}"));
    // Displays go before output does.
    for (displays, line, fit) in [(20, "", 3), (0, "é", 0), (2, "x", 2), (9, "\\n", 0)] {
        let code = format!(
            "for _ in range({displays}): display({{'text/plain': '\\0' * 50_000}}, raw=True)\n\
             print('{line}' * 400_000)"
        );
        let response = node.send("POST /v1/run", &[], &json!({"code": code})).await;
        let answer = collected(response).await;
        assert!(answer.len() <= MOST + 500, "{displays} {line:?}: {}", answer.len());
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        let kept = answer["displays"].as_array().map_or(0, Vec::len);
        let dropped = answer["truncated"]["displays"].as_u64().unwrap_or_default();
        assert_eq!(kept + usize::try_from(dropped).unwrap(), displays, "{line:?}");
        assert_eq!(kept, fit, "of {displays}, {line:?}");
        for display in answer["displays"].as_array().into_iter().flatten() {
            assert_eq!(display["data"]["text/plain"].as_str().map(str::len), Some(50_000));
        }
    }
}

#[tokio::test]
async fn a_session_that_runs_code_is_named_by_its_id_to_who_wants_it_too() {
    let node = Node::start(&[]);
    let id = node.session(&json!({"policy": {"tools": [{"name": "ask"}]}})).await;
    let runs = format!("POST /v1/sessions/{id}/runs");
    let response = node.send(&runs, &[EVENTS], &json!({"code": "ask()"})).await;
    let mut events = Events::of(response);
    let call = events.next().await.unwrap();
    let (status, problem) = node.run(&id, "1").await;
    let detail = problem["detail"].as_str().unwrap();
    assert!(status == 409 && problem["code"] == "busy" && detail.contains(&id), "{problem}");
    let answer = format!("POST /v1/sessions/{id}/calls/{}", call["call_id"]);
    assert_eq!(node.ask(&answer, &json!({"value": 5})).await.0, 204);
    assert_eq!(events.next().await.unwrap()["execution"]["value"], 5);
}
