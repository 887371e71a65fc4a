//! The page of displays, an MCP App: for clients that show such pages, and for no others.

use serde_json::{Value, json};

use super::client::{Client, session};
use isolet_test_support::Scratch;

const PAGE: &str = "ui://isolet/displays.html";
const FORMAT: &str = "text/html;profile=mcp-app";

const CODE: &str = r#"
chart = {"type": "line", "title": "t", "elements": [{"label": "a", "points": [[0, 1], [1, 2]]}]}
display({"application/vnd.isolet.chart.v1+json": chart, "text/plain": "a chart"}, raw=True)
png = b"\x89PNG\r\n\x1a\n"
display({"image/png": png, "application/vnd.isolet.chart.v1+json": chart}, raw=True)
display({"application/vnd.isolet.table.v1+json": {"n": [1, 2]}, "text/plain": "a table"}, raw=True)
display({"image/png": png}, raw=True)
display({"text/html": "<script>1</script>", "text/plain": "a page"}, raw=True)
1 + 1
"#;

/// A client that shows such pages, or does not.
fn client(scratch: &Scratch, is_modern: bool, shows: bool) -> Client {
    let settings = json!({"io.modelcontextprotocol/ui": {"mimeTypes": [FORMAT]}});
    let capabilities = if shows { json!({"extensions": settings}) } else { json!({}) };
    Client::with(&[], scratch.path().to_str().unwrap(), is_modern, &capabilities)
}

fn listed(client: &mut Client, what: &str) -> Value {
    client.request(&format!("{what}/list"), &json!({}))["result"][what].clone()
}

/// Returns a result without what differs from run to run.
fn comparable(result: &Value) -> Value {
    let mut result = result.clone();
    result["structuredContent"]["ms"] = 0.into();
    let handle = session(&result);
    serde_json::from_str(&result.to_string().replace(&handle, "HANDLE")).unwrap()
}

#[test]
fn a_client_that_shows_pages_gets_the_data_of_displays_besides_what_others_get() {
    let scratch = Scratch::new("mcp-apps");
    for is_modern in [false, true] {
        let mut plain = client(&scratch, is_modern, false);
        let mut shows = client(&scratch, is_modern, true);
        let mut tools = listed(&mut shows, "tools");
        assert_eq!(tools[1]["_meta"]["ui"], json!({"resourceUri": PAGE}), "{tools}");
        tools[1]["_meta"].as_object_mut().unwrap().remove("ui");
        assert_eq!(tools, listed(&mut plain, "tools"));
        assert_eq!(listed(&mut plain, "resources"), json!([]));
        assert_eq!(listed(&mut shows, "resources")[0]["mimeType"], FORMAT);

        let mut result = shows.run(CODE);
        let data = result.as_object_mut().unwrap().remove("_meta").unwrap();
        let chart = json!({
            "type": "line", "title": "t",
            "elements": [{"label": "a", "points": [[0, 1], [1, 2]]}],
        });
        let entries = json!([
            {"chart": chart}, {"chart": chart, "image": 0}, {"table": {"n": [1, 2]}}, {"image": 1},
        ]);
        assert_eq!(data["isolet/displays"], json!({"entries": entries, "left_out": 0}));
        let other = plain.run(CODE);
        assert!(other.get("_meta").is_none(), "{other}");
        assert_eq!(comparable(&result), comparable(&other));
    }
}

#[test]
fn the_page_is_the_same_for_every_guest_and_asks_for_no_address() {
    let scratch = Scratch::new("mcp-apps-page");
    let mut client = client(&scratch, true, true);
    let read = |client: &mut Client| {
        let answer = client.request("resources/read", &json!({"uri": PAGE}));
        answer["result"]["contents"][0].clone()
    };
    let page = read(&mut client);
    assert_eq!((&page["uri"], &page["mimeType"]), (&json!(PAGE), &json!(FORMAT)));
    let none = json!([]);
    let csp = json!({
        "connectDomains": none, "resourceDomains": none, "frameDomains": none,
        "baseUriDomains": none,
    });
    assert_eq!(page["_meta"]["ui"]["csp"], csp);
    let text = page["text"].as_str().unwrap();
    assert!(text.contains("Content-Security-Policy") && text.contains("default-src 'none'"));
    client.run(CODE);
    assert_eq!(read(&mut client), page);
}

#[test]
fn data_that_is_too_large_for_a_page_is_counted() {
    let scratch = Scratch::new("mcp-apps-large");
    let mut client = client(&scratch, true, true);
    let code = "table = {'application/vnd.isolet.table.v1+json': {'n': ['x' * 600_000]}}\n\
                chart = {'application/vnd.isolet.chart.v1+json': '{\"n\": 1e999}'}\n\
                deep = {'application/vnd.isolet.chart.v1+json': '[' * 100_000}\n\
                for each in [table, chart, deep, table]: display(each, raw=True)";
    let result = client.run(code);
    let data = &result["_meta"]["isolet/displays"];
    assert_eq!(data["entries"].as_array().map(Vec::len), Some(1), "{}", result["isError"]);
    assert_eq!(data["left_out"], 1);
}
