//! Tests of the console of a node by HTTP: who gets the page, what the page may do, and what its
//! requests tell.

use http_body_util::BodyExt;
use serde_json::{Value, json};

use super::facts::{A, with_keys};
use super::{Node, collected};
use isolet_test_support::Scratch;

/// The files of the console, with what their types begin with.
const FILES: [(&str, &str); 10] = [
    ("/", "text/html"),
    ("/console/frame.html", "text/html"),
    ("/console/console.css", "text/css"),
    ("/console/icon.svg", "image/svg+xml"),
    ("/console/main.js", "text/javascript"),
    ("/console/api.js", "text/javascript"),
    ("/console/cell.js", "text/javascript"),
    ("/console/output.js", "text/javascript"),
    ("/console/facts.js", "text/javascript"),
    ("/console/sessions.js", "text/javascript"),
];

#[tokio::test]
async fn the_page_needs_no_key_and_may_load_and_ask_only_what_is_of_the_node() {
    let scratch = Scratch::new("node-console-page");
    let node = with_keys(&scratch, "");
    for (path, kind) in FILES {
        let get = node.send(&format!("GET {path}"), &[], &Value::Null).await;
        assert_eq!(get.status(), 200, "{path}");
        let headers = get.headers().clone();
        let text = |name: &str| headers[name].to_str().unwrap().to_owned();
        assert!(text("content-type").starts_with(kind), "{path}");
        assert_eq!(text("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(text("referrer-policy"), "no-referrer", "{path}");
        assert_eq!(text("cross-origin-opener-policy"), "same-origin", "{path}");
        assert_eq!(text("cross-origin-resource-policy"), "same-origin", "{path}");
        assert_eq!(text("cache-control"), "no-cache", "{path}");
        let policy = text("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; "), "{path}: {policy}");
        let body = collected(get).await;

        let head = node.send(&format!("HEAD {path}"), &[], &Value::Null).await;
        assert_eq!(head.headers()["content-length"], body.len().to_string(), "{path}");
        assert!(head.into_body().collect().await.unwrap().to_bytes().is_empty(), "{path}");
        let known = [("if-none-match", &*text("etag"))];
        let same = node.send(&format!("GET {path}"), &known, &Value::Null).await;
        assert_eq!(same.status(), 304, "{path}");
        assert_eq!(same.headers()["content-security-policy"], policy, "{path}");
        assert!(collected(same).await.is_empty(), "{path}");
        let other = [("if-none-match", "\"0\"")];
        let answer = node.send(&format!("GET {path}"), &other, &Value::Null).await;
        assert_eq!(answer.status(), 200, "{path}");
        let (status, problem) = node.ask(&format!("POST {path}"), &json!({})).await;
        assert_eq!((status, &problem["code"]), (405, &json!("no_route")), "{path}");
    }
    let page = node.send("GET /", &[], &Value::Null).await;
    let policy = page.headers()["content-security-policy"].to_str().unwrap().to_owned();
    for part in [
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    ] {
        assert!(policy.split("; ").any(|its| its == part), "{part}: {policy}");
    }
    let more = ["-inline", "-eval", "http", "*", "blob:"];
    assert!(!more.iter().any(|word| policy.contains(word)), "{policy}");
    // Scripts of the frame around the guests' HTML would be of the page's origin.
    let frame = node.send("GET /console/frame.html", &[], &Value::Null).await;
    let policy = frame.headers()["content-security-policy"].to_str().unwrap();
    assert!(!policy.contains("script") && policy.ends_with("; sandbox allow-same-origin"));
}

#[tokio::test]
async fn what_is_no_part_of_the_console_needs_a_key_and_is_not_there() {
    let scratch = Scratch::new("node-console-paths");
    let node = with_keys(&scratch, "");
    for path in [
        "/console",
        "/console/",
        "/console/x",
        "//",
        "/index.html",
        "/console/../v1/node",
        "/console/main.js/",
        "/console/MAIN.js",
    ] {
        assert_eq!(node.ask(&format!("GET {path}"), &Value::Null).await.0, 401, "{path}");
        assert_eq!(node.ask_as(&A, &format!("GET {path}"), &Value::Null).await.0, 404, "{path}");
    }
    for path in ["/v1/node", "/v1/sessions"] {
        for headers in [&[][..], &[("authorization", "Bearer wrong")]] {
            let (status, problem) =
                node.ask_as(headers, &format!("GET {path}"), &Value::Null).await;
            assert_eq!((status, &problem["code"]), (401, &json!("unauthorized")), "{path}");
        }
    }
    // A sandbox with a name of its own is another origin.
    let of_a_sandbox = [("e2b-sandbox-id", "node-x")];
    assert_eq!(node.ask_as(&of_a_sandbox, "GET /", &Value::Null).await.0, 401);
    let known = [of_a_sandbox[0], A[0]];
    assert_eq!(node.ask_as(&known, "GET /", &Value::Null).await.0, 404);
}

#[tokio::test]
async fn a_node_without_a_console_has_none_of_its_files() {
    let scratch = Scratch::new("node-console-off");
    let by_option = Node::start(&["--no-console"]);
    let by_file = Node::configured(&scratch, "console = false");
    for node in [&by_option, &by_file] {
        for (path, _) in FILES {
            let (status, problem) = node.ask(&format!("GET {path}"), &Value::Null).await;
            assert_eq!((status, &problem["code"]), (404, &json!("no_route")), "{path}");
        }
        assert_eq!(node.ask("GET /v1/node", &Value::Null).await.0, 200);
    }
    let other = Scratch::new("node-console-off-keys");
    let with_keys = with_keys(&other, "console = false");
    assert_eq!(with_keys.ask("GET /", &Value::Null).await.0, 401);
}

#[tokio::test]
async fn pages_of_other_sites_get_neither_the_console_nor_the_api_of_a_node_without_keys() {
    let node = Node::start(&[]);
    for headers in [
        // As after a change of the name's address.
        [("host", "attacker.example"), ("origin", "http://attacker.example")],
        [("host", "localhost"), ("origin", "https://attacker.example")],
        [("host", "localhost"), ("origin", "null")],
        [("host", "localhost"), ("sec-fetch-site", "cross-site")],
    ] {
        for request in ["GET /", "GET /console/main.js", "GET /v1/node", "POST /v1/sessions"] {
            let (status, problem) = node.ask_as(&headers, request, &Value::Null).await;
            assert_eq!((status, &problem["code"]), (403, &json!("denied")), "{headers:?}");
        }
    }
    // Its own page.
    let origin = format!("http://{}", node.place);
    let own = [("host", &*node.place), ("origin", &origin), ("sec-fetch-site", "same-origin")];
    for request in ["GET /", "GET /v1/node", "POST /v1/run"] {
        let (status, _) = node.ask_as(&own, request, &json!({"code": "1"})).await;
        assert_eq!(status, 200, "{request}");
    }
}

#[tokio::test]
async fn what_a_guest_has_written_is_no_page_and_no_script_beside_the_console() {
    let node = Node::start(&[]);
    let id = node.session(&json!({})).await;
    let code =
        "for end in ['html', 'js', 'svg']: open('/tmp/a.' + end, 'w').write('top.marked = 1')";
    assert_eq!(node.run(&id, code).await.0, 200);
    let mut paths = vec!["/v1/node".to_owned(), "/no/such/route".to_owned()];
    for end in ["html", "js", "svg"] {
        paths.push(format!("/v1/sessions/{id}/files/tmp/a.{end}"));
        paths.push(format!("/opensandbox/{id}/files/download?path=/tmp/a.{end}"));
    }
    for path in paths {
        let answer = node.send(&format!("GET {path}"), &[], &Value::Null).await;
        let headers = answer.headers();
        assert_eq!(headers["x-content-type-options"], "nosniff", "{path}");
        let policy = headers["content-security-policy"].to_str().unwrap();
        assert_eq!(policy, "default-src 'none'; frame-ancestors 'none'; sandbox", "{path}");
        let kind = headers["content-type"].to_str().unwrap();
        assert!(!kind.contains("script") && !kind.contains("html"), "{path}: {kind}");
    }
}
