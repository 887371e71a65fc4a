//! Tests that without permissions a guest sees nothing of the host.
//!
//! Passing tests show that the obvious ways out of Python and JavaScript are closed. They show
//! nothing about bugs in V8.

use isolet::{Limits, Permissions, Value};

use crate::util::{Scratch, builder, eval, exec, raised, sandbox, session};

const CANARY: &str = "canary-5f1d0c9e";

#[tokio::test]
async fn the_environment_is_home_and_what_was_given() {
    let mut plain = session().await;
    let code = "import os\ndict(os.environ)";
    let home = || (Value::from("HOME"), Value::from("/home/user"));
    assert_eq!(eval(&mut plain, code).await, Value::Dict(vec![home()]));
    let permissions = Permissions::none().env("A", "1").env("B", "é=").env("A", "2");
    let sandbox = builder().permissions(permissions).build().unwrap();
    let mut given = sandbox.session().await.unwrap();
    let environ = eval(&mut given, code).await;
    assert_eq!(environ.get("A"), Some(&Value::from("2")));
    assert_eq!(environ.get("B"), Some(&Value::from("é=")));
    assert!(matches!(environ, Value::Dict(items) if items.len() == 3));
    let own = "os.getenv('B'), os.path.expanduser('~'), os.getcwd()";
    assert_eq!(eval(&mut given, own).await, Value::from(vec!["é=", "/home/user", "/home/user"]));
}

#[tokio::test]
async fn the_file_system_is_the_guests_own() {
    let mut session = session().await;
    let root = eval(&mut session, "import os\nsorted(os.listdir('/'))").await;
    assert_eq!(root, Value::from(vec!["dev", "home", "lib", "mnt", "proc", "root", "tmp"]));
    let proc = eval(&mut session, "sorted(os.listdir('/proc')), os.listdir('/proc/self')").await;
    assert_eq!(proc.as_list().unwrap()[0], Value::from(vec!["self"]));
    for dir in ["/home/user", "/mnt", "/root", "/tmp"] {
        let entries = eval(&mut session, format!("os.listdir({dir:?})")).await;
        assert_eq!(entries, Value::List(Vec::new()), "{dir}");
    }
}

#[tokio::test]
async fn files_of_the_host_are_out_of_reach() {
    let scratch = Scratch::new("canary");
    let path = scratch.file("canary.txt", CANARY);
    let mut session = session().await;
    for path in
        [path.as_str(), "/etc/passwd", "/proc/self/environ", "/proc/self/maps", "/proc/cpuinfo"]
    {
        let exception = raised(&mut session, format!("open({path:?}, 'rb').read()")).await;
        assert_eq!(exception.type_name, "FileNotFoundError", "{path}");
    }
    let code = format!(
        "import os\nos.makedirs({0:?}, exist_ok=True)\nopen({1:?}, 'w').write('guest')",
        scratch.path().display().to_string(),
        path
    );
    exec(&mut session, code).await;
    assert_eq!(std::fs::read_to_string(&path).unwrap(), CANARY);
}

#[tokio::test]
async fn there_is_no_network() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let attempts = [
        format!("import socket; socket.create_connection(('127.0.0.1', {port}), timeout=5)"),
        format!("import socket; socket.socket().connect(('localhost', {port}))"),
        format!("import urllib.request; urllib.request.urlopen('http://127.0.0.1:{port}/')"),
        format!(
            "import http.client; http.client.HTTPConnection('127.0.0.1', {port}).request('GET', '/')"
        ),
        format!("import asyncio; await asyncio.open_connection('127.0.0.1', {port})"),
        format!(
            "import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {port}))"
        ),
        "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); s.accept()"
            .to_owned(),
        format!("from pyodide.http import pyfetch; await pyfetch('http://127.0.0.1:{port}/')"),
        format!("from pyodide.http import open_url; open_url('http://127.0.0.1:{port}/')"),
        format!("from js import fetch; await fetch('http://127.0.0.1:{port}/')"),
        "from js import XMLHttpRequest".to_owned(),
        "from js import WebSocket".to_owned(),
        "import pyodide_js; await pyodide_js.loadPackage('micropip')".to_owned(),
    ];
    let limits = Limits::default().max_run_time(std::time::Duration::from_secs(10));
    for attempt in attempts {
        let mut session = sandbox(limits.clone()).session().await.unwrap();
        raised(&mut session, attempt).await;
    }
    listener.set_nonblocking(true).unwrap();
    let nobody = listener.accept().unwrap_err();
    assert_eq!(nobody.kind(), std::io::ErrorKind::WouldBlock);
}

#[tokio::test]
async fn there_are_no_processes() {
    let mut session = session().await;
    let attempts = [
        "import subprocess; subprocess.run(['git'])",
        "import os; os.fork()",
        "import os; os.execv('/bin/true', ['true'])",
        "import multiprocessing; multiprocessing.Process(target=print).start()",
        "import concurrent.futures as c; c.ProcessPoolExecutor().submit(print).result()",
        "from js import Worker",
    ];
    for attempt in attempts {
        raised(&mut session, attempt).await;
    }
    // Commands are code of the guest, which does not see the host's files.
    let canary = std::env::temp_dir().join(format!("isolet-canary-{}", std::process::id()));
    std::fs::write(&canary, "canary").unwrap();
    let code = format!("import os; os.popen('cat {} 2>&1').read()", canary.display());
    let printed = eval(&mut session, code).await;
    std::fs::remove_file(&canary).unwrap();
    let printed = printed.as_str().unwrap();
    assert!(printed.ends_with("No such file or directory\n"), "{printed}");
    assert_ne!(
        eval(&mut session, "os.getpid()").await.as_i64(),
        Some(i64::from(std::process::id()))
    );
}

#[tokio::test]
async fn javascript_has_no_way_to_the_host() {
    let mut session = session().await;
    exec(&mut session, "from pyodide.code import run_js").await;
    for name in ["Deno", "__bootstrap", "process", "require", "Bun", "Worker", "importScripts"] {
        let kind = eval(&mut session, format!("run_js('typeof {name}')")).await;
        assert_eq!(kind, Value::from("undefined"), "{name}");
    }
    for module in [
        "node:fs",
        "ext:core/mod.js",
        "ext:core/ops",
        "ext:isolet/session.js",
        "file:///etc/passwd",
        "data:text/javascript,1",
        "./x.js",
    ] {
        raised(&mut session, format!("await run_js('import({module:?})')")).await;
    }
}

#[tokio::test]
async fn a_fetch_is_refused_and_no_server_sees_it() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let mut session = session().await;
    session.set("url", format!("http://user:secret@{address}/path?q")).await.unwrap();
    let refusal =
        format!("network access to {address} is not allowed; allow-net does not cover it");
    for code in [
        "import js; await js.fetch(url)",
        "from pyodide.http import pyfetch; await pyfetch(url)",
        "import js; await js.fetch(js.Request.new(url))",
    ] {
        let exception = raised(&mut session, code).await;
        assert!(exception.message.contains(&refusal), "{code}: {exception}");
    }
    server.set_nonblocking(true).unwrap();
    let nobody = server.accept().unwrap_err();
    assert_eq!(nobody.kind(), std::io::ErrorKind::WouldBlock);
}

#[tokio::test]
async fn the_clock_is_the_hosts_and_in_utc() {
    let mut session = session().await;
    let code = "import time, datetime\n[time.tzname[0], datetime.datetime.now().astimezone().utcoffset().seconds]";
    let value = eval(&mut session, code).await;
    assert_eq!(value.as_list().unwrap()[1], Value::Int(0));
    let before = std::time::SystemTime::now();
    let seconds = eval(&mut session, "time.time()").await.as_f64().unwrap();
    let guest = std::time::UNIX_EPOCH + std::time::Duration::from_secs_f64(seconds + 0.01);
    assert!(
        guest >= before
            && guest <= std::time::SystemTime::now() + std::time::Duration::from_secs(1)
    );
}
