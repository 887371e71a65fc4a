//! Tests of the headers that the host adds.

use hyper::header::HeaderMap;
use url::Url;

use super::super::{NetPolicy, Origin};

#[test]
fn injected_headers_belong_to_one_origin_and_stay_out_of_debug() {
    let mut policy = NetPolicy::default();
    policy.inject_header("https://api.example.com", "Authorization", "Bearer canary").unwrap();
    policy.inject_header("https://API.example.com.:443", "X-Key", "canary").unwrap();
    let injected = |url: &str| {
        let mut headers = HeaderMap::new();
        headers.insert("authorization", "guest".parse().unwrap());
        policy.inject(&Origin::of(&Url::parse(url).unwrap()).unwrap(), &mut headers);
        headers
    };
    let headers = injected("https://api.example.com/path");
    assert_eq!(headers.get_all("authorization").iter().collect::<Vec<_>>(), ["Bearer canary"]);
    assert_eq!(headers.get("x-key").unwrap(), "canary");
    let others = [
        "http://api.example.com/",
        "https://api.example.com:8443/",
        "https://example.com/",
        "https://xapi.example.com/",
        "https://api.example.com.evil.test/",
        "https://evil.test/api.example.com",
    ];
    for url in others {
        assert_eq!(injected(url).iter().map(|(_, v)| v).collect::<Vec<_>>(), ["guest"], "{url}");
    }
    let debug = format!("{policy:?} {headers:?}");
    assert!(!debug.contains("canary"), "{debug}");
}

#[test]
fn headers_that_could_not_be_sent_are_refused_without_their_value() {
    let origins = [
        "",
        "api.example.com",
        "https://",
        "https://a.example/",
        "https://a.example/x",
        "https:a.example",
        "https:/a.example",
        "https:///a.example",
        "https://u@a.example",
        "https://a.example?x",
        "https://a.example#x",
        "ftp://a.example",
        "https://a.example\\x",
        " https://a.example",
        "https://a.example:99999",
        "https://*.example.com:0x",
        "https://a%2eexample",
    ];
    for origin in origins {
        NetPolicy::default().inject_header(origin, "x-key", "canary").expect_err(origin);
    }
    for name in
        ["", "a b", "a\n", "Host", "content-length", "Transfer-Encoding", "Proxy-Authorization"]
    {
        NetPolicy::default().inject_header("https://a.example", name, "canary").expect_err(name);
    }
    let error =
        NetPolicy::default().inject_header("https://a.example", "x", "canary\r\ny: z").unwrap_err();
    assert!(!format!("{error} {error:?}").contains("canary"));
}
