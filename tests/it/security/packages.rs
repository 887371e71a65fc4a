//! Part H of the threat table: packages, which only the host fetches.

use isolet::{ErrorKind, Permissions, Value};

use crate::util::{Scratch, builder, eval, exec, raised, session, wheel};

fn offline(scratch: &Scratch) -> Permissions {
    Permissions::none()
        .wheels(scratch.path())
        .package_cache(scratch.path().join("cache"))
        .offline_packages()
}

/// A wheel of the owner can be imported, and the guest sees nothing else of the host.
#[tokio::test]
async fn a_wheel_of_a_given_directory_is_imported() {
    let scratch = Scratch::new("wheels");
    wheel(scratch.path(), "greeting", "1.5", "def hello(): return 'hi'");
    let permissions = offline(&scratch).allow_package("greeting>=1").unwrap();
    let mut session = builder().permissions(permissions).build().unwrap().session().await.unwrap();
    let code = "import greeting, importlib.metadata as m\ngreeting.hello(), m.version('greeting'), greeting.__file__";
    let seen = eval(&mut session, code).await;
    let expected = "['hi', '1.5', '/lib/python3.14/site-packages/greeting.py']";
    assert_eq!(seen.to_string(), expected);
    let exception = raised(&mut session, "open(greeting.__file__, 'w')").await;
    assert_eq!(exception.type_name, "PermissionError");
}

/// H1: a wheel that was changed in the cache after it was recorded is not used.
#[tokio::test]
async fn a_changed_wheel_is_refused() {
    let scratch = Scratch::new("changed-wheel");
    let wheels = scratch.path().join("wheels");
    std::fs::create_dir(&wheels).unwrap();
    wheel(&wheels, "greeting", "1.0", "GOOD = True");
    let permissions = || {
        let cache = scratch.path().join("cache");
        Permissions::none().wheels(&wheels).package_cache(cache).offline_packages()
    };
    let sandbox = |permissions| builder().permissions(permissions).build().unwrap();
    let mut before = sandbox(permissions()).session().await.unwrap();
    let loaded = before.load_packages(["greeting"]).await.unwrap();
    assert_eq!((loaded.len(), loaded[0].name.as_str()), (1, "greeting"));
    let sha256 = &loaded[0].sha256;
    let kept = scratch.path().join("cache/wheels").join(sha256).join(&loaded[0].file_name);
    let whole = std::fs::read(&kept).unwrap();
    let mut bytes = whole.clone();
    let at = bytes.windows(4).position(|window| window == b"GOOD").unwrap();
    bytes[at] ^= 1;
    std::fs::write(&kept, &bytes).unwrap();
    let mut after = sandbox(permissions()).session().await.unwrap();
    let error = after.load_packages(["greeting"]).await.unwrap_err();
    assert!(error.to_string().contains(sha256.as_str()), "{error}");
    assert!(error.session_survives());
    raised(&mut after, "import greeting").await;
    // The changed wheel was removed, so the next attempt uses the owner's again.
    let mut again = sandbox(permissions()).session().await.unwrap();
    again.load_packages(["greeting"]).await.unwrap();
    assert_eq!(eval(&mut again, "import greeting\ngreeting.GOOD").await, Value::Bool(true));
    assert_eq!(std::fs::read(&kept).unwrap(), whole);
}

/// H2: a requirement names a package; it cannot be an option, a path or a URL.
#[tokio::test]
async fn a_requirement_cannot_be_an_option_or_an_address() {
    let mut session = session().await;
    for text in [
        "--index-url=http://evil.test",
        "-r x",
        "./x",
        "/etc/passwd",
        "x @ file:///etc/passwd",
        "git+https://evil.test/x",
        "x; os_name == 'posix' --hash",
        "",
        "x y",
        "x\n--pre",
    ] {
        let error = session.load_packages([text]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Packages, "{text:?}");
        assert!(error.session_survives());
        assert!(Permissions::none().allow_package(text).is_err(), "{text:?}");
    }
}

/// D15: loading packages gives the guest no access to the network.
#[tokio::test]
async fn loading_packages_opens_no_network() {
    let canary = isolet_test_support::server::Server::with_text("secret");
    let scratch = Scratch::new("load-net");
    let code = format!("import urllib.request\nurllib.request.urlopen({:?})", canary.url("/"));
    wheel(scratch.path(), "greeting", "1.0", &code);
    let mut session =
        builder().permissions(offline(&scratch)).build().unwrap().session().await.unwrap();
    session.load_packages(["greeting"]).await.unwrap();
    let exception = raised(&mut session, "import greeting").await;
    assert_eq!(exception.type_name, "PermissionError");
    raised(&mut session, code).await;
    assert_eq!(canary.connections(), 0);
}

/// HTTP clients from the index reach allowed servers and are refused others, without `await`.
#[tokio::test]
async fn clients_of_the_index_use_the_hosts_network() {
    let server = isolet_test_support::server::Server::start(|request| {
        let mut body = request.method.clone().into_bytes();
        body.extend_from_slice(&request.body);
        isolet_test_support::server::Response(200, vec![("Set-Cookie", "a=1".to_owned())], body)
    });
    let canary = isolet_test_support::server::Server::with_text("secret");
    let permissions = Permissions::none()
        .allow_net(&server.rule())
        .and_then(|permissions| permissions.allow_package("requests"))
        .and_then(|permissions| permissions.allow_package("httpx"))
        .and_then(|permissions| permissions.allow_package("httpx2"))
        .unwrap();
    let limits = isolet::Limits::default().max_run_time(std::time::Duration::from_mins(3));
    let sandbox = builder().permissions(permissions).limits(limits).build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    let (url, denied) = (server.url("/"), canary.url("/"));
    exec(&mut session, "import requests, httpx, httpx2, urllib3").await;
    for (code, expected) in [
        (format!("requests.get({url:?}).text"), "GET"),
        (
            format!(
                "requests.post({url:?}, data=b'x' * 3_000_000, stream=True).headers['content-length']"
            ),
            "3000004",
        ),
        (format!("requests.post({url:?}, data=iter([b'in ', b'pieces'])).text"), "POSTin pieces"),
        (format!("s = requests.Session(); s.get({url:?}); s.cookies['a']"), "1"),
        (format!("httpx.get({url:?}).text"), "GET"),
        (format!("httpx.post({url:?}, json=[1]).text"), "POST[1]"),
        (
            format!("with httpx.stream('GET', {url:?}) as r: text = ''.join(r.iter_text())\ntext"),
            "GET",
        ),
        (format!("httpx2.post({url:?}, json=[1]).text"), "POST[1]"),
        (format!("httpx2.post({url:?}, content=iter([b'in ', b'pieces'])).text"), "POSTin pieces"),
        (
            format!("with httpx2.stream('GET', {url:?}) as r: text = ''.join(r.iter_text())\ntext"),
            "GET",
        ),
        (
            format!(
                "async def f():\n    async with httpx2.AsyncClient() as c: return (await c.post({url:?}, content=b'a')).text\nimport asyncio; asyncio.run(f())"
            ),
            "POSTa",
        ),
        (format!("urllib3.PoolManager().request('PUT', {url:?}, body=b'p').data.decode()"), "PUTp"),
        (
            format!(
                "async def f():\n    async with httpx.AsyncClient() as c: return (await c.post({url:?}, content=b'a')).text\nimport asyncio; asyncio.run(f())"
            ),
            "POSTa",
        ),
    ] {
        assert_eq!(eval(&mut session, code.as_str()).await, Value::from(expected), "{code}");
    }
    for code in [
        format!("requests.get({denied:?})"),
        format!("httpx.get({denied:?})"),
        format!("httpx2.get({denied:?})"),
        format!("httpx2.post({denied:?}, json=[1])"),
        format!("urllib3.PoolManager().request('GET', {denied:?}, retries=False)"),
        format!(
            "async def f():\n    async with httpx.AsyncClient() as c: await c.get({denied:?})\nasyncio.run(f())"
        ),
    ] {
        let exception = raised(&mut session, code.as_str()).await;
        assert!(
            exception.message.contains("is not allowed; allow-net does not cover it"),
            "{exception}"
        );
    }
    assert_eq!(canary.connections(), 0);
}

/// They use httpx2, whose own transport here would follow redirects by itself, has no timeouts, and
/// warns of what it cannot do.
#[tokio::test]
async fn clients_of_model_providers_work_and_say_nothing_of_their_transport() {
    let chat = r#"{"id":"1","object":"chat.completion","created":1,"model":"m","choices":
        [{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}]}"#;
    let message = r#"{"id":"1","type":"message","role":"assistant","model":"m","content":
        [{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":
        {"input_tokens":1,"output_tokens":1}}"#;
    let server = isolet_test_support::server::Server::start(move |request| {
        let json = vec![("Content-Type", "application/json".to_owned())];
        match request.path.as_str() {
            "/v1/chat/completions" => isolet_test_support::server::Response(200, json, chat.into()),
            "/v1/messages" => isolet_test_support::server::Response(200, json, message.into()),
            "/elsewhere" => isolet_test_support::server::Response(
                302,
                vec![("Location", "/v1/messages".to_owned())],
                vec![],
            ),
            _ => isolet_test_support::server::Response(
                401,
                json,
                br#"{"error":{"message":"no"}}"#.into(),
            ),
        }
    });
    let permissions = Permissions::none()
        .allow_net(&server.rule())
        .and_then(|permissions| permissions.allow_package("openai"))
        .and_then(|permissions| permissions.allow_package("anthropic"))
        .unwrap();
    let limits = isolet::Limits::default().max_run_time(std::time::Duration::from_mins(3));
    let sandbox = builder().permissions(permissions).limits(limits).build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    let url = server.url("");
    let code = format!(
        "
import anthropic, asyncio, httpx2, openai
said = [{{'role': 'user', 'content': 'x'}}]
def ask(url): return openai.OpenAI(base_url=url, api_key='k', max_retries=0).chat.completions
results = [ask({url:?} + '/v1').create(model='m', messages=said).choices[0].message.content]
async def later():
    client = openai.AsyncOpenAI(base_url={url:?} + '/v1', api_key='k', max_retries=0)
    return await client.chat.completions.create(model='m', messages=said)
results.append(asyncio.run(later()).choices[0].message.content)
client = anthropic.Anthropic(base_url={url:?}, api_key='k', max_retries=0)
results.append(client.messages.create(model='m', max_tokens=5, messages=said).content[0].text)
try:
    ask({url:?} + '/wrong').create(model='m', messages=said)
except openai.AuthenticationError as error:
    results.append(error.status_code)
results.append(httpx2.get({url:?} + '/elsewhere').status_code)
results"
    );
    let execution = session.run(code.as_str()).await.unwrap();
    let shown = execution.value().map(ToString::to_string).unwrap_or_default();
    assert_eq!(shown, "['hello', 'hello', 'hi', 401, 302]", "{execution:?}");
    assert_eq!(execution.stderr().to_string(), "");
}

/// H1: files from Pyodide's own server are compared with Pyodide's lock, and not stored if they
/// differ.
#[tokio::test]
async fn pyodides_packages_are_compared_with_its_lock() {
    let server = isolet_test_support::server::Server::with_text("not a wheel");
    let scratch = Scratch::new("pyodides-packages");
    let permissions = Permissions::none()
        .package_cache(scratch.path().join("cache"))
        .pyodide_packages(server.url("/full/{file}"));
    let mut session = builder().permissions(permissions).build().unwrap().session().await.unwrap();
    let error = session.load_packages(["numpy==2.4.6"]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Packages);
    assert!(
        error.to_string().contains("sha256") || error.to_string().contains("digest"),
        "{error}"
    );
    let asked = &server.requests()[0].path;
    let file = "/full/numpy-2.4.6-cp314-cp314-pyemscripten_2026_0_wasm32.whl";
    assert_eq!((server.requests().len(), asked.as_str()), (1, file));
    raised(&mut session, "import numpy").await;
}
