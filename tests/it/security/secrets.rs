//! Secrets that a guest uses and does not see: what servers get, and what the guest can find.

use isolet::{Permissions, Secret, Session, Value};
use isolet_test_support::server::{Request, Response, Server};

use crate::util::{Scratch, builder, eval};

const SECRET: &str = "sk-canary-3f9a61c07b";

/// A server that repeats the headers, the path and the body of a request.
fn echo() -> Server {
    Server::start(|request| {
        let Request { path, headers, body, .. } = request;
        Response::text(&format!("{path} {headers:?} {}", String::from_utf8_lossy(body)))
    })
}

fn permissions(server: &Server, value: &str) -> Permissions {
    let secret = Secret::new(value).host(server.url(""));
    Permissions::none().allow_net(&server.rule()).unwrap().secret("API_KEY", secret).unwrap()
}

async fn session(permissions: Permissions) -> Session {
    builder().permissions(permissions).build().unwrap().session().await.unwrap()
}

/// Returns code that sends the variable with a request, in every way that a guest has.
fn requests(url: &str) -> Vec<String> {
    let server = url.trim_start_matches("http://").split('/').next().unwrap();
    let fetch = format!("({url:?}, headers={{'x-key': key}})");
    [
        "import urllib.request as u\nu.urlopen(u.Request(URL, headers={'x-key': key})).read().decode()",
        "import http.client\nc = http.client.HTTPConnection(SERVER)\n\
         c.request('GET', '/', headers={'X-Key': key})\nc.getresponse().read().decode()",
        "from pyodide.http import pyfetch\nawait (await pyfetch FETCH).text()",
        "import js, pyodide.ffi\nr = await js.fetch(URL, headers=pyodide.ffi.to_js([['x-key', key]]))\n\
         await r.text()",
        "import socket\ns = socket.create_connection(SERVER.split(':'))\n\
         s.sendall(f'GET / HTTP/1.1\\r\\nHost: {SERVER}\\r\\nX-Key: {key}\\r\\n\\r\\n'.encode())\n\
         b''.join(iter(lambda: s.recv(4096), b'')).decode()",
        "import subprocess\n\
         subprocess.run(['curl', '-s', '-H', f'x-key: {key}', URL], capture_output=True, text=True).stdout",
    ]
    .map(|code| {
        let code = code.replace("FETCH", &fetch);
        format!("import os\nURL, SERVER = {url:?}, {server:?}\nkey = os.environ['API_KEY']\n{code}")
    })
    .into()
}

/// Looks for the secret in all memory of the interpreter, without having it: its letters come as
/// other numbers.
const SEARCH: &str = "
import pyodide_js
from pyodide.code import run_js
find = run_js('''(module, code) => {
    const memory = module.HEAPU8, start = code.split(',').map(c => c ^ 1);
    for (let at = memory.indexOf(start[0]); at >= 0; at = memory.indexOf(start[0], at + 1)) {
        if (start.every((c, i) => memory[at + i] === c)) return true;
    }
    return false;
}''')
find(pyodide_js._module, CODE)
";

/// C4: every client of the guest sends the secret to its host, and none gets it.
#[tokio::test]
async fn a_guest_uses_a_secret_that_is_nowhere_in_its_memory() {
    let server = echo();
    let mut session = session(permissions(&server, SECRET)).await;
    let placeholder = eval(&mut session, "import os; os.environ['API_KEY']").await;
    let placeholder = placeholder.as_str().unwrap().to_owned();
    assert!(placeholder.starts_with("ISOLET_SECRET_API_KEY_"), "{placeholder}");
    for (nth, code) in requests(&server.url("/")).into_iter().enumerate() {
        let answer = eval(&mut session, code.clone()).await;
        let answer = answer.as_str().unwrap();
        assert!(answer.contains(&placeholder) && !answer.contains("canary"), "{code}: {answer}");
        let seen = server.requests();
        assert_eq!((seen.len(), seen[nth].header("x-key")), (nth + 1, Some(SECRET)), "{code}");
    }
    let code: Vec<_> = SECRET.bytes().map(|c| (c ^ 1).to_string()).collect();
    let code = format!("{:?}", code.join(","));
    let search = SEARCH.replace("CODE", &code);
    assert_eq!(eval(&mut session, search.clone()).await, Value::Bool(false));
    // The search finds what is there.
    let there = format!("there = bytes(int(c) ^ 1 for c in {code}.split(','))\n{search}");
    assert_eq!(eval(&mut session, there).await, Value::Bool(true));
}

/// C4: a saved session and a journal have the placeholder, and go on with the secret of the day.
#[tokio::test]
async fn what_is_saved_or_recorded_has_no_secret_and_goes_on_with_another() {
    let server = echo();
    let code = &requests(&server.url("/"))[0];
    let scratch = Scratch::new("secrets-saved");
    let (saved, recorded) = (scratch.path().join("saved"), scratch.path().join("journal"));
    let sandbox = |value| builder().permissions(permissions(&server, value)).build().unwrap();
    let mut session = sandbox(SECRET).record(recorded.clone()).await.unwrap();
    eval(&mut session, &**code).await;
    drop(session);
    let mut session = sandbox(SECRET).session().await.unwrap();
    eval(&mut session, &**code).await;
    session.save(&saved).await.unwrap();
    drop(session);
    for file in [&saved, &recorded] {
        let bytes = std::fs::read(file).unwrap();
        assert!(!bytes.windows(9).any(|window| window == b"sk-canary"), "{}", file.display());
    }
    let mut session = sandbox("sk-rotated-0123").restore(&saved).await.unwrap();
    eval(&mut session, "u.urlopen(u.Request(URL, headers={'x-key': key})).read()").await;
    let seen: Vec<_> = server.requests();
    let keys: Vec<_> = seen.iter().map(|request| request.header("x-key").unwrap()).collect();
    assert_eq!(keys, [SECRET, SECRET, "sk-rotated-0123"]);
}
