//! Tests of what clients of a node learn of its machine: no path, whatever fails.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc;

use serde_json::{Value, json};

use super::{Node, collected};
use isolet_test_support::{LONGEST, Scratch, command};

/// A part of each path, host and name that only the operator knows.
const CANARY: &str = "canary-5e1f";

/// A node whose lines on standard error are kept.
fn start(scratch: &Path) -> (Node, mpsc::Receiver<String>) {
    let text = |name: &str| scratch.join(name).into_os_string().into_string().unwrap();
    let config = format!(
        "[policy]\nwheels = [{0:?}]\n[[policy.mounts]]\nhost = {1:?}\nguest = \"/m\"\n\
         [ceiling]\npackages = [\"*\"]\n[store]\ndirectory = {2:?}\n",
        text("wheels"),
        text("mounted"),
        text("store")
    );
    std::fs::write(scratch.join("node.toml"), config).unwrap();
    let config = scratch.join("node.toml");
    let arguments =
        ["serve", "--listen", "127.0.0.1:0", "--die-with-parent", "--config"].map(Into::into);
    let arguments = arguments.into_iter().chain([config.into_os_string()]);
    let mut child = command(arguments)
        .env("HOME", scratch.join("home"))
        .env("TMPDIR", scratch.join("temporary"))
        .env("PIP_INDEX_URL", format!("http://{CANARY}.invalid:9/simple"))
        .env("PIP_RETRIES", "0")
        .env("SECRET", CANARY)
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let place = lines.find_map(|line| {
        line.split_once(" listening at http://").map(|(_, place)| place.to_owned())
    });
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || lines.for_each(|line| drop(sender.send(line))));
    (Node { child: Some(child), place: place.unwrap() }, receiver)
}

/// Waits until the operator is told something of a path.
fn is_told(operator: &mpsc::Receiver<String>, path: &Path) {
    let path = path.to_str().unwrap();
    while !operator.recv_timeout(LONGEST).unwrap().contains(path) {}
}

/// Sends requests that fail, whose answers must not have the canary.
async fn all_fail(node: &Node, requests: &[(&str, Value)]) {
    for (request, body) in requests {
        let response = node.send(request, &[], body).await;
        let (status, headers) = (response.status(), format!("{:?}", response.headers()));
        let text = String::from_utf8(collected(response).await.to_vec()).unwrap();
        let has_failed = status.as_u16() >= 400 || text.contains("cannot") || text.contains("rror");
        assert!(has_failed, "{request} {body}: {status} {text}");
        let has_path = [CANARY, "node.toml"].iter().any(|part| text.contains(part));
        assert!(!has_path && !headers.contains(CANARY), "{request} {body}: {status} {text}");
    }
}

#[tokio::test]
async fn no_answer_has_a_path_a_host_or_a_name_of_the_machine() {
    let scratch = Scratch::new(&format!("{CANARY} odd 'name'"));
    let at = |name: &str| scratch.path().join(name);
    for directory in ["wheels", "mounted", "store", "home", "temporary"] {
        std::fs::create_dir(at(directory)).unwrap();
    }
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(at("store"), mode).unwrap();
    let (node, operator) = start(scratch.path());
    let id = node.session(&json!({})).await;
    let of = |what: &str| format!("POST /v1/sessions/{id}/{what}");

    std::fs::remove_dir_all(at("store")).unwrap();
    let nothing = json!({});
    all_fail(
        &node,
        &[
            (&of("pause"), nothing.clone()),
            (&of("snapshots"), nothing.clone()),
            (&of("fork"), nothing.clone()),
        ],
    )
    .await;
    is_told(&operator, &at("store"));

    // An index that cannot be reached, then a directory of wheels that is gone.
    let packages = json!({"code": "1", "policy": {"packages": ["no-such-package"]}});
    all_fail(&node, &[("POST /v1/run", packages)]).await;
    std::fs::remove_dir(at("wheels")).unwrap();
    let packages = json!({"code": "1", "policy": {"packages": ["another-such-package"]}});
    all_fail(&node, &[("POST /v1/run", packages)]).await;

    std::fs::remove_dir(at("mounted")).unwrap();
    let code = json!({"code": "1"});
    all_fail(
        &node,
        &[
            ("POST /v1/sessions", nothing.clone()),
            ("POST /v1/run", code.clone()),
            ("POST /v1/batch", code.clone()),
            ("POST /sandboxes", json!({"templateID": "base"})),
            ("POST /run_code", json!({"code": "1", "language": "python"})),
            ("POST /run_jupyter", json!({"cells": ["1"], "kernel": "python3"})),
            ("POST /execute", json!({"generated_code": "1", "language": "ipython", "timeout": 5})),
            ("POST /openenv/coding/reset", nothing.clone()),
            ("POST /openenv/coding/step", json!({"action": code})),
        ],
    )
    .await;
    is_told(&operator, &at("mounted"));
}
