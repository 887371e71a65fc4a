//! Tests of what a node tells about itself and the sessions of a key.

use serde_json::{Value, json};

use super::{EVENTS, Events, Node, key_hash};
use isolet_test_support::Scratch;

/// The keys of two tenants.
pub(super) const A: [(&str, &str); 1] = [("x-api-key", "key of a")];
const B: [(&str, &str); 1] = [("x-api-key", "key of b")];

/// Starts a node with these tenants.
pub(super) fn with_keys(scratch: &Scratch, config: &str) -> Node {
    let (a, b) = (key_hash("key of a"), key_hash("key of b"));
    let tenants = format!("[tenants.a]\nkeys = [{a:?}]\n[tenants.b]\nkeys = [{b:?}]\n");
    Node::configured(scratch, &format!("{config}\n{tenants}"))
}

#[tokio::test]
async fn a_key_sees_what_its_own_sessions_do_and_nothing_of_others() {
    let scratch = Scratch::new("node-console-sessions");
    let node = with_keys(&scratch, "");
    let create = async |key| {
        let (_, session) = node.ask_as(key, "POST /v1/sessions", &json!({})).await;
        session["id"].as_str().unwrap().to_owned()
    };
    let (own, others) = (create(&A).await, create(&B).await);
    let listed = async |key| {
        let (status, answer) = node.ask_as(key, "GET /v1/sessions", &Value::Null).await;
        assert_eq!(status, 200);
        answer["sessions"].as_array().unwrap().clone()
    };
    let [session] = &listed(&A).await[..] else { panic!() };
    assert_eq!((&session["id"], &session["state"]), (&json!(own), &json!("idle")));
    assert_eq!((&session["peak_memory_bytes"], &session["run_time"]), (&json!(0), &json!(0.0)));
    assert_eq!(session["max_memory_bytes"], 1 << 30);
    assert_eq!(listed(&B).await[0]["id"], others);

    let body = json!({"code": "print('a')\nwhile True: pass"});
    let runs = format!("POST /v1/sessions/{own}/runs");
    let mut events = Events::of(node.send(&runs, &[A[0], EVENTS], &body).await);
    assert_eq!(events.next().await.unwrap()["text"], "a\n");
    assert_eq!(listed(&A).await[0]["state"], "running");
    let interrupt = format!("POST /v1/sessions/{own}/interrupt");
    assert_eq!(node.ask_as(&B, &interrupt, &Value::Null).await.0, 404);
    assert_eq!(node.ask_as(&A, &interrupt, &Value::Null).await.0, 204);
    while events.next().await.is_some() {}
    let session = &listed(&A).await[0];
    assert_eq!(session["state"], "idle");
    assert!(session["peak_memory_bytes"].as_u64().unwrap() > 1 << 20, "{session}");
    assert!(session["run_time"].as_f64().unwrap() > 0.0, "{session}");
    assert_eq!(node.ask_as(&B, &format!("DELETE /v1/sessions/{own}"), &Value::Null).await.0, 404);
    assert_eq!(node.ask_as(&A, &format!("DELETE /v1/sessions/{own}"), &Value::Null).await.0, 204);
    assert!(listed(&A).await.is_empty());
}

#[tokio::test]
async fn a_node_tells_what_it_allows_and_nothing_of_its_machine() {
    let scratch = Scratch::new("node-console-facts");
    let place = scratch.path().join("canary-of-the-host");
    std::fs::create_dir(&place).unwrap();
    let config = format!(
        "[policy]\nallow_net = [\"a.example\"]\nenv = {{ SHOWN = \"canary value\" }}\n\
         wheels = [{place:?}]\n\
         limits = {{ run_time = 7 }}\n[[policy.mounts]]\nhost = {place:?}\nguest = \"/m\"\n\
         [policy.secrets.TOKEN]\nvalue = \"canary secret\"\nhosts = [\"a.example\"]\n\
         [ceiling]\npackages = [\"numpy\"]\nlimits = {{ run_time = 9 }}\n"
    );
    let node = with_keys(&scratch, &config);
    let (status, facts) = node.ask_as(&A, "GET /v1/node", &Value::Null).await;
    assert_eq!(status, 200, "{facts}");
    assert!(!facts.to_string().contains("canary"), "{facts}");
    assert_eq!(facts["needs_key"], true);
    assert_eq!(facts["isolation"], "process");
    assert_eq!(facts["tenant"]["name"], "a");
    let most = facts["max_sessions"].as_u64().unwrap();
    assert_eq!(facts["tenant"]["max_sessions"], most / 2);
    let allowed = &facts["allowed"];
    assert_eq!(allowed["allow_net"], json!(["a.example"]));
    assert_eq!(allowed["mounts"], json!([{"guest": "/m", "mode": "ro"}]));
    assert_eq!((&allowed["env"], &allowed["secrets"]), (&json!(["SHOWN"]), &json!(["TOKEN"])));
    assert_eq!(allowed["limits"]["run_time"], 7.0);
    assert_eq!(facts["ceiling"]["packages"], json!(["numpy"]));
    assert_eq!(facts["ceiling"]["limits"]["run_time"], 9.0);
    let uptime = facts["uptime"].as_f64().unwrap();
    let (_, later) = node.ask_as(&A, "GET /v1/node", &Value::Null).await;
    assert!(later["uptime"].as_f64().unwrap() > uptime);
}
