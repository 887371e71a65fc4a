//! Part D of the threat table: the network, as a guest tries to use it and as servers see it.

use std::io::Read;
use std::net::{IpAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use isolet::{ErrorKind, Permissions, Session, Value};

use crate::util::{builder, eval, exec, raised, session};
use isolet_test_support::server::{Response, Server};

const REFUSAL: &str = "is not allowed; allow-net does not cover it";

async fn with(permissions: Permissions) -> Session {
    builder().permissions(permissions).build().unwrap().session().await.unwrap()
}

fn allowing(rules: &[&str]) -> Permissions {
    rules.iter().fold(Permissions::none(), |all, rule| all.allow_net(rule).unwrap())
}

/// Returns code that requests a URL, in every way that a guest has.
fn attempts(url: &str, host: &str, port: u16) -> Vec<String> {
    vec![
        format!("import urllib.request; urllib.request.urlopen({url:?})"),
        format!("from js import fetch; await fetch({url:?})"),
        format!("from pyodide.http import pyfetch; await pyfetch({url:?})"),
        format!("from pyodide.http import open_url; open_url({url:?})"),
        format!(
            "import http.client; http.client.HTTPConnection({host:?}, {port}).request('GET', '/')"
        ),
        format!("import socket; socket.create_connection(({host:?}, {port}))"),
        format!("import socket; socket.socket().connect(({host:?}, {port}))"),
        format!("import js; await js.fetch(js.Request.new({url:?}))"),
    ]
}

async fn refused(session: &mut Session, code: &str) {
    let exception = raised(session, code).await;
    let text = format!("{}: {}", exception.type_name, exception.message);
    assert!(text.contains("PermissionError") && text.contains(REFUSAL), "{code}: {text}");
}

/// D1: an allowed name cannot be used if any address behind it is not public.
#[tokio::test]
async fn a_name_that_resolves_to_a_private_address_is_refused() {
    let canary = Server::with_text("secret");
    let local: IpAddr = "127.0.0.1".parse().unwrap();
    let public: IpAddr = "93.184.216.34".parse().unwrap();
    for addresses in [vec![local], vec![public, local], vec!["::ffff:127.0.0.1".parse().unwrap()]] {
        let permissions = allowing(&["api.example.com", "*.example.com"])
            .resolve("api.example.com", addresses.clone())
            .unwrap()
            .resolve("a.example.com", addresses)
            .unwrap();
        let mut session = with(permissions).await;
        for host in ["api.example.com", "a.example.com"] {
            let url = format!("http://{host}:{}/", canary.port());
            refused(
                &mut session,
                &format!("import urllib.request; urllib.request.urlopen({url:?})"),
            )
            .await;
        }
    }
    assert_eq!(canary.connections(), 0);
}

/// D1: a rule for the address makes the name usable, and the server sees the name.
#[tokio::test]
async fn a_name_may_lead_to_an_address_that_a_rule_covers() {
    let server = Server::with_text("inside");
    let permissions = allowing(&["internal.example.com", "127.0.0.0/8"])
        .resolve("internal.example.com", ["127.0.0.1".parse().unwrap()])
        .unwrap();
    let mut session = with(permissions).await;
    let url = format!("http://internal.example.com:{}/x", server.port());
    let code = format!("import urllib.request\nurllib.request.urlopen({url:?}).read().decode()");
    assert_eq!(eval(&mut session, code).await, Value::from("inside"));
    let host = format!("internal.example.com:{}", server.port());
    assert_eq!(server.requests()[0].header("host"), Some(host.as_str()));
}

/// D2, D3: a guest without permission cannot reach loopback, in any spelling.
#[tokio::test]
async fn every_spelling_of_loopback_is_refused() {
    let canary = Server::with_text("secret");
    let mut session = with(allowing(&["api.example.com", "93.184.216.0/24"])).await;
    for host in [
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "127.1",
        "0x7f.1",
        "127.0.0.1.",
        "0.0.0.0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "１２７.０.０.１",
        "localhost",
        "LOCALHOST.",
        "foo.localhost",
    ] {
        let url = format!("http://{host}:{}/", canary.port());
        refused(&mut session, &format!("from js import fetch; await fetch({url:?})")).await;
    }
    assert_eq!(canary.connections(), 0);
}

/// D4: every hop of a redirect is decided separately.
#[tokio::test]
async fn a_redirect_does_not_lead_to_what_is_denied() {
    let canary = Server::with_text("secret");
    let target = canary.url("/stolen");
    let server = Server::start(move |request| match request.path.as_str() {
        "/loop" => Response::redirect(302, "/loop"),
        "/file" => Response::redirect(302, "file:///etc/passwd"),
        _ => Response::redirect(302, target.clone()),
    });
    let mut session = with(allowing(&[&server.rule()])).await;
    let url = server.url("/");
    for code in [
        format!("from js import fetch; await fetch({url:?})"),
        format!("from pyodide.http import pyfetch; await pyfetch({url:?})"),
        format!("import urllib.request; urllib.request.urlopen({url:?})"),
    ] {
        refused(&mut session, &code).await;
    }
    assert_eq!(canary.connections(), 0);
    let before = server.requests().len();
    let code = format!("from js import fetch; await fetch({:?})", server.url("/loop"));
    raised(&mut session, code).await;
    assert_eq!(server.requests().len() - before, 11, "the first request and ten redirects");
    raised(&mut session, format!("from js import fetch; await fetch({:?})", server.url("/file")))
        .await;
}

/// D5: an injected header goes only to its origin; the guest can neither see nor replace it.
#[tokio::test]
async fn an_injected_header_stays_with_its_origin() {
    const SECRET: &str = "Bearer canary-71c2";
    let other = Server::with_text("other");
    let target = other.url("/landed");
    let server = Server::start(move |request| match request.path.as_str() {
        "/away" => Response::redirect(307, target.clone()),
        _ => Response::text("here"),
    });
    let permissions = allowing(&[&server.rule(), &other.rule()])
        .inject_header(&server.url(""), "Authorization", SECRET)
        .unwrap();
    assert!(!format!("{permissions:?}").contains("canary"), "{permissions:?}");
    let mut session = with(permissions).await;
    let code = format!(
        "import urllib.request as u, os, js\n\
         request = u.Request({:?}, headers={{'Authorization': 'mine'}})\n\
         response = u.urlopen(request)\n\
         str([response.headers.items(), request.header_items(), dict(os.environ), response.read()])",
        server.url("/direct")
    );
    let seen = eval(&mut session, code).await;
    assert!(!seen.as_str().unwrap().contains("canary"), "{seen}");
    assert_eq!(server.requests()[0].header("authorization"), Some(SECRET));
    let code = format!(
        "import js\nr = await js.fetch({:?}, js.eval(\"({{headers: {{Authorization: 'mine', Cookie: 'c=1'}}}})\"))\nr.url",
        server.url("/away")
    );
    assert_eq!(eval(&mut session, code).await, Value::from(other.url("/landed")));
    let landed = &other.requests()[0];
    assert_eq!((landed.header("authorization"), landed.header("cookie")), (None, None));
}

/// D6: names are compared label by label, in their canonical form.
#[tokio::test]
async fn a_name_that_only_looks_allowed_is_refused() {
    let local = ["127.0.0.1".parse().unwrap()];
    let canary = Server::with_text("secret");
    let port = canary.port();
    let mut permissions = allowing(&[&format!("api.example.com:{port}"), "127.0.0.0/8:8080"]);
    for name in
        ["xapi.example.com", "api.example.com.evil.test", "evil.test", "xn--pi-7kc.example.com"]
    {
        permissions = permissions.resolve(name, local).unwrap();
    }
    let mut session = with(permissions).await;
    for host in [
        "xapi.example.com",
        "api.example.com.evil.test",
        "api.example.com@evil.test",
        "evil.test\\@api.example.com",
        "evil.test#@api.example.com",
        "аpi.example.com",
        "api%2eexample.com.evil.test",
        "example.com",
    ] {
        let url = format!("http://{host}:{port}/");
        raised(&mut session, format!("from js import fetch; await fetch({url:?})")).await;
    }
    assert_eq!(canary.connections(), 0);
}

/// D7: an invalid rule is an error when it is given, and never permits anything.
#[test]
fn an_odd_rule_is_an_error_and_opens_nothing() {
    for rule in [
        "",
        " ",
        "*",
        "*.com",
        "a.com,b.com",
        "http://a.com",
        "a.com/path",
        "user@a.com",
        "a b.com",
        "a..com",
        "a.com:",
        "a.com:0",
        "a.com:99999",
        "a.com:x",
        "1.2.3",
        "[::1",
        "10.0.0.0/33",
        "fe80::1%eth0",
        "%61.com",
    ] {
        let error = Permissions::none().allow_net(rule).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{rule:?}");
        // Denying a whole top-level domain is valid.
        assert_eq!(Permissions::none().deny_net(rule).is_ok(), rule == "*.com", "{rule:?}");
    }
}

/// D8: every way to the network that a guest has ends in the same denial, and no server sees a
/// request.
#[tokio::test]
async fn every_client_is_refused_alike() {
    let canary = Server::with_text("secret");
    let url = canary.url("/");
    let port = canary.port();
    let mut denied = session().await;
    for code in attempts(&url, "127.0.0.1", port) {
        refused(&mut denied, &code).await;
    }
    let mut other_port = with(allowing(&["127.0.0.1:8080", "example.com"])).await;
    for code in attempts(&url, "127.0.0.1", port) {
        refused(&mut other_port, &code).await;
    }
    let mut overruled =
        with(allowing(&[&canary.rule(), "localhost"]).deny_net("127.0.0.0/8").unwrap()).await;
    for code in attempts(&url, "127.0.0.1", port) {
        refused(&mut overruled, &code).await;
    }
    assert_eq!(canary.connections(), 0);
}

/// D8: protocols other than HTTP have no way out, not even to an allowed server. It may see a
/// connection, but nothing is sent.
#[tokio::test]
async fn other_protocols_have_no_way_out() {
    let (port, received) = listener();
    let mut session = with(allowing(&[&format!("127.0.0.1:{port}")])).await;
    for code in [
        format!(
            "import socket; s = socket.create_connection(('127.0.0.1', {port})); s.sendall(b'\\0\\1')"
        ),
        format!("import smtplib; smtplib.SMTP('127.0.0.1', {port}, timeout=5)"),
        format!("import ftplib; ftplib.FTP().connect('127.0.0.1', {port}, timeout=5)"),
        format!(
            "import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {port}))"
        ),
        format!("import asyncio; await asyncio.open_connection('127.0.0.1', {port})"),
        format!("import js; js.WebSocket.new('ws://127.0.0.1:{port}/')"),
        format!("import js; js.EventSource.new('http://127.0.0.1:{port}/')"),
        "import js; js.XMLHttpRequest.new()".to_owned(),
        format!("from js import fetch; await fetch('ws://127.0.0.1:{port}/')"),
        format!("from js import fetch; await fetch('ftp://127.0.0.1:{port}/')"),
        "from js import fetch; await fetch('data:text/plain,x')".to_owned(),
        "from js import fetch; await fetch('file:///etc/passwd')".to_owned(),
    ] {
        raised(&mut session, code).await;
    }
    drop(session);
    assert_eq!(received.load(Ordering::Acquire), 0);
}

/// Returns the port of a server that says nothing, and how many bytes it has received.
fn listener() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let received = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&received);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let count = Arc::clone(&count);
            std::thread::spawn(move || {
                while let Ok(bytes @ 1..) = stream.read(&mut [0; 1024]) {
                    count.fetch_add(bytes, Ordering::AcqRel);
                }
            });
        }
    });
    (port, received)
}

/// D11: the server sees the host of the URL, whatever headers the guest sets.
#[tokio::test]
async fn headers_that_belong_to_the_host_cannot_be_forged() {
    let server = Server::with_text("ok");
    let mut session = with(allowing(&[&server.rule()])).await;
    let url = server.url("/");
    for (name, value) in [
        ("Host", "evil.test"),
        ("Transfer-Encoding", "chunked"),
        ("Content-Length", "5"),
        ("Upgrade", "websocket"),
        ("Proxy-Authorization", "x"),
        ("X-Split", "a\\r\\nHost: evil.test"),
    ] {
        let code = format!(
            "import js\nawait js.fetch({url:?}, js.eval(\"({{headers: {{'{name}': '{value}'}}}})\"))"
        );
        // The header is either refused or omitted.
        drop(session.run(code).await.unwrap());
    }
    for request in server.requests() {
        assert_eq!(request.header("host"), Some(server.rule().as_str()));
        for name in ["transfer-encoding", "upgrade", "proxy-authorization", "x-split"] {
            assert_eq!(request.header(name), None, "{request:?}");
        }
    }
    let smuggled = format!(
        "import socket\ns = socket.create_connection(('127.0.0.1', {}))\n\
         s.sendall(b'GET / HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\nGET /second HTTP/1.1\\r\\n\\r\\n')\n\
         s.recv(1)",
        server.port()
    );
    raised(&mut session, smuggled).await;
    assert!(server.requests().iter().all(|request| request.path == "/"));
}

/// D13: a body counts with its decompressed size, and a bomb is stopped at the run's budget.
#[tokio::test]
async fn a_compressed_bomb_is_stopped_at_the_budget() {
    let script = "import gzip, sys; sys.stdout.buffer.write(gzip.compress(bytes(300 << 20), 1))";
    let python = std::process::Command::new("python3").args(["-c", script]).output().unwrap();
    let bomb = python.stdout;
    assert!((100_000..10_000_000).contains(&bomb.len()), "{}", bomb.len());
    let server = Server::start(move |_| {
        Response(200, vec![("Content-Encoding", "gzip".to_owned())], bomb.clone())
    });
    let mut session = with(allowing(&[&server.rule()])).await;
    let code = format!(
        "from js import fetch\nreader = (await fetch({:?})).body.getReader()\nread = 0\n\
         try:\n    while not (piece := await reader.read()).done: read += piece.value.length\n\
         except Exception as e: stopped = str(e)\nread, stopped",
        server.url("/")
    );
    let seen = eval(&mut session, code).await;
    let [read, stopped] = seen.as_list().unwrap() else { panic!("{seen}") };
    assert!((200 << 20..=256 << 20).contains(&read.as_i64().unwrap()), "{seen}");
    assert!(stopped.as_str().unwrap().contains("limit 268435456"), "{seen}");
    assert_eq!(eval(&mut session, "1 + 1").await, Value::Int(2));
}

/// D14: sessions share nothing of their exchanges, and nothing is cached for the guest.
#[tokio::test]
async fn sessions_share_no_cookies_and_no_cache() {
    let server = Server::start(|request| {
        let cookie = request.header("cookie").unwrap_or("none").to_owned();
        let headers = vec![
            ("Set-Cookie", "id=canary".to_owned()),
            ("Cache-Control", "max-age=3600".to_owned()),
        ];
        Response(200, headers, cookie.into_bytes())
    });
    let sandbox = builder().permissions(allowing(&[&server.rule()])).build().unwrap();
    let code = format!("from js import fetch\nawait (await fetch({:?})).text()", server.url("/"));
    let mut one = sandbox.session().await.unwrap();
    let mut two = sandbox.session().await.unwrap();
    for session in [&mut one, &mut two] {
        for _ in 0..2 {
            assert_eq!(eval(session, code.as_str()).await, Value::from("none"));
        }
    }
    assert_eq!(server.requests().len(), 4);
}

/// D-rows, the positive case: allowed requests work, synchronously, in both directions.
#[tokio::test]
async fn an_allowed_server_is_reached_by_every_client() {
    let server = Server::start(|request| {
        let mut body = format!("{} ", request.method).into_bytes();
        body.extend_from_slice(&request.body);
        Response(200, vec![("X-Seen", request.path.clone())], body)
    });
    let mut session = with(allowing(&[&server.rule()])).await;
    let url = server.url("/a?b=c");
    let port = server.port();
    for (code, expected) in [
        (format!("import urllib.request as u\nu.urlopen({url:?}).read()"), "GET "),
        (format!("u.urlopen({url:?}, data=b'posted').read()"), "POST posted"),
        (
            format!(
                "import http.client\nc = http.client.HTTPConnection('127.0.0.1', {port}, timeout=30)\n\
                 c.request('PUT', '/a?b=c', body=iter([b'in ', b'pieces']), encode_chunked=True, \
                 headers={{'Transfer-Encoding': 'chunked'}})\nc.getresponse().read()"
            ),
            "PUT in pieces",
        ),
        (
            format!(
                "from js import fetch\n(await (await fetch({url:?})).bytes()).to_py().tobytes()"
            ),
            "GET ",
        ),
        (
            format!(
                "from pyodide.http import pyfetch\nawait (await pyfetch({url:?}, method='POST', body='x')).bytes()"
            ),
            "POST x",
        ),
        (format!("from pyodide.http import open_url\nopen_url({url:?}).read().encode()"), "GET "),
    ] {
        let value = eval(&mut session, code.as_str()).await;
        assert_eq!(value, Value::Bytes(expected.into()), "{code}");
    }
    assert!(server.requests().iter().all(|request| request.path == "/a?b=c"));
    let big = exec(&mut session, format!(
        "body = bytes(range(256)) * 20000\nr = u.urlopen({url:?}, data=body)\nassert r.read() == b'POST ' + body"
    )).await;
    assert!(big.session_alive());
}

/// Network errors are Python's own exceptions.
#[tokio::test]
async fn failures_of_the_network_are_pythons_own_exceptions() {
    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let quiet = silent.local_addr().unwrap().port();
    let mut session = with(allowing(&["127.0.0.1"])).await;
    let code = format!(
        "import urllib.request as u, urllib.error\ntry: u.urlopen('http://127.0.0.1:{closed}/')\n\
         except urllib.error.URLError as e: kind = type(e.reason).__name__\nkind"
    );
    assert_eq!(eval(&mut session, code).await, Value::from("ConnectionRefusedError"));
    let slow = format!("u.urlopen('http://127.0.0.1:{quiet}/', timeout=0.2)");
    let exception = raised(&mut session, slow).await;
    assert!(exception.message.contains("timed out"), "{exception}");
}

/// A7: a guest's replacements of JavaScript's own classes do not affect what is sent.
#[tokio::test]
async fn replaced_classes_have_no_part_in_a_request() {
    let server = Server::with_text("ok");
    let mut session = with(allowing(&[&server.rule()])).await;
    let code = format!(
        "
from pyodide.code import run_js
await run_js('''(async () => {{
  const bytes = new Uint8Array([112, 97, 121]);
  const view = new DataView(bytes.buffer, 1);
  const forged = new Uint8Array([114, 111, 98]);
  const TypedArray = Object.getPrototypeOf(forged.constructor);
  globalThis.Uint8Array = function () {{ return forged; }};
  ArrayBuffer.isView = () => false;
  TypedArray.prototype.slice = () => forged;
  ArrayBuffer.prototype.slice = () => forged.buffer;
  for (const body of [bytes, view, bytes.buffer])
    await fetch({:?}, {{ method: 'POST', body }});
}})()''')
",
        server.url("/")
    );
    exec(&mut session, code).await;
    let sent: Vec<_> = server.requests().into_iter().map(|request| request.body).collect();
    assert_eq!(sent, [&b"pay"[..], b"ay", b"pay"]);
}
