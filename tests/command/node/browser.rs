//! Tests of the console of a node in a real browser, by Chromium's protocol for developers: what a
//! person sees and can do with the keyboard, and that nothing of a guest runs in the page.
//!
//! Where there is no Chromium they say so, and show nothing.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::websocket::Client;
use super::{Node, key_hash};
use isolet_test_support::server::{Response, Server};
use isolet_test_support::{LONGEST, Scratch};

/// The names of the browser's program.
const PROGRAMS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// What a hostile guest displays. Each asks the server `~` for something, runs a script that does,
/// or marks the page, if it is let.
const HOSTILE: [&str; 19] = [
    "<img src=x onerror=\"new Image().src = '~/onerror'; top.marked = 1\">",
    "<img src=\"~/img\"><img srcset=\"~/srcset 2x\">",
    "<script src=\"~/script\"></script><script>new Image().src = '~/new'; top.marked = 1</script>",
    "<script type=\"module\">import '~/module'; top.marked = 1</script>",
    "<svg onload=\"new Image().src = '~/svg'; top.marked = 1\"><script>top.marked = 1</script></svg>",
    "<iframe srcdoc=\"<script>top.marked = 1; new Image().src = '~/nested'</script>\"></iframe>",
    "<iframe src=\"javascript:top.marked = 1\"></iframe><iframe src=\"~/frame\"></iframe>",
    "<a id=\"a\" href=\"javascript:top.marked = 1\" autofocus>a</a><a href=\"~/a\" ping=\"~/ping\">b</a>",
    "<style>@import '~/import'; body { background: url(~/css) }</style><p style=\"--a: url(~/b)\">",
    "<meta http-equiv=\"refresh\" content=\"0; url=~/refresh\">",
    "<meta http-equiv=\"Content-Security-Policy\" content=\"script-src *\"><script src=\"~/s\"></script>",
    "<link rel=\"stylesheet\" href=\"~/sheet\"><link rel=\"preload\" as=\"image\" href=\"~/preload\">",
    "<link rel=\"preconnect\" href=\"~\"><link\nrel=\"dns-prefetch\" href=\"~\"><base href=\"~/\">",
    "<object data=\"~/object\"></object><embed src=\"~/embed\"><video src=\"~/video\" autoplay></video>",
    "<form action=\"~/form\"><input autofocus onfocus=\"this.form.submit()\"></form>",
    "<math><mtext><img src=x onerror=\"top.marked = 1\"></mtext></math><frameset onload=\"top.marked=1\">",
    "</body></html><script>top.marked = 1</script><body onload=\"top.marked = 1\">",
    "<svg><image href=\"~/image\"/><use href=\"~/use#a\"/></svg><table background=\"~/table\">",
    "<script src=\"/console/canary.js\"></script><img src=\"/console/canary.png\">",
];

/// A browser with one page.
struct Browser {
    child: Child,
    client: Client,
    _profile: Scratch,
    page: String,
    last: u64,
    /// What the page has said to its console.
    said: Vec<String>,
}

impl Browser {
    /// Starts a browser; `None` if there is none.
    async fn start(test: &str) -> Option<Self> {
        let profile = Scratch::new(test);
        let started = PROGRAMS.iter().find_map(|program| {
            let mut command = Command::new(program);
            command
                .args(
                    "--headless --no-sandbox --disable-gpu --no-first-run --disable-sync"
                        .split(' '),
                )
                .args("--disable-background-networking --disable-component-update".split(' '))
                .args(["--disable-dev-shm-usage", "--remote-debugging-port=0", "about:blank"])
                .arg(format!("--user-data-dir={}", profile.path().display()))
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::piped());
            command.spawn().ok()
        });
        let Some(mut child) = started else {
            let what = "skipped: there is no Chromium, which `apt-get install chromium` brings";
            let _ = writeln!(std::io::stderr(), "{what}");
            return None;
        };
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = lines.find_map(|line| {
            let line = line.unwrap();
            line.split_once("DevTools listening on ws://").map(|(_, address)| address.to_owned())
        });
        std::thread::spawn(move || lines.for_each(drop));
        let address = address.unwrap();
        let (place, path) = address.split_once('/').unwrap();
        let host = [("host", place)];
        let client = Client::connect_to(place, &format!("/{path}"), &host).await;
        let said = Vec::new();
        let mut this =
            Self { child, client, _profile: profile, page: String::new(), last: 0, said };
        let made = this.call("Target.createTarget", json!({"url": "about:blank"})).await;
        let attach = json!({"targetId": made["targetId"], "flatten": true});
        let attached = this.call("Target.attachToTarget", attach).await;
        this.page = attached["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Log"] {
            this.call(&format!("{domain}.enable"), json!({})).await;
        }
        Some(this)
    }

    async fn call(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": params});
        if !self.page.is_empty() {
            message["sessionId"] = self.page.as_str().into();
        }
        self.client.send(&message).await;
        loop {
            let answer = self.client.next().await;
            match answer["method"].as_str() {
                Some("Runtime.exceptionThrown" | "Log.entryAdded" | "Runtime.consoleAPICalled") => {
                    self.said.push(answer["params"].to_string());
                }
                // It would wait for its answer.
                Some("Page.javascriptDialogOpening") => {
                    self.said.push(answer["params"].to_string());
                    self.last += 1;
                    let accept = json!({
                        "id": self.last, "method": "Page.handleJavaScriptDialog",
                        "params": {"accept": true}, "sessionId": self.page,
                    });
                    self.client.send(&accept).await;
                }
                _ if answer["id"] == self.last => {
                    assert!(answer.get("error").is_none(), "{method}: {answer}");
                    return answer["result"].clone();
                }
                _ => {}
            }
        }
    }

    async fn open(&mut self, url: &str) {
        self.call("Page.navigate", json!({"url": url})).await;
        self.until("document.readyState === 'complete'").await;
    }

    /// Returns the value of an expression in the page.
    async fn value(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.call("Runtime.evaluate", params).await;
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Waits until an expression is true in the page, which may not be there yet.
    async fn until(&mut self, expression: &str) {
        let expression = format!("(() => {{ try {{ return {expression} }} catch {{}} }})()");
        let waiting = async {
            while self.value(&expression).await != true {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let waited = tokio::time::timeout(LONGEST, waiting).await;
        assert!(waited.is_ok(), "{expression}");
    }

    async fn text(&mut self, selector: &str) -> String {
        let text = self.value(&format!("document.querySelector({selector:?}).innerText")).await;
        text.as_str().unwrap_or_default().to_owned()
    }

    /// Types a text at the focus, as pasted.
    async fn insert(&mut self, text: &str) {
        self.call("Input.insertText", json!({"text": text})).await;
    }

    /// Presses a key, with `Ctrl` if `modifiers` is 2.
    async fn press(&mut self, key: &str, code: u32, modifiers: u32) {
        let text = if key == "Enter" && modifiers == 0 { "\r" } else { "" };
        for kind in ["keyDown", "keyUp"] {
            let params = json!({
                "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code,
                "modifiers": modifiers, "text": if kind == "keyDown" { text } else { "" },
            });
            self.call("Input.dispatchKeyEvent", params).await;
        }
    }

    /// Runs code by the keyboard alone, and waits for its end.
    async fn run(&mut self, code: &str) -> String {
        self.begin(code).await;
        let is_over = "/^(Completed|Raised|Exited|Ended|Not run)/.test(\
                       document.getElementById('run-state').textContent) && \
                       !document.getElementById('run').disabled";
        self.until(is_over).await;
        self.text("#run-state").await
    }

    async fn begin(&mut self, code: &str) {
        self.value(
            "document.getElementById('code').focus(); document.getElementById('code').select()",
        )
        .await;
        self.insert(code).await;
        self.press("Enter", 13, 2).await;
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn a_person_runs_code_by_the_keyboard_and_sees_its_output_as_it_comes() {
    let Some(mut browser) = Browser::start("console-cell-browser").await else { return };
    let scratch = Scratch::new("console-cell");
    let key = key_hash("the key");
    let node = Node::configured(&scratch, &format!("[tenants.a]\nkeys = [{key:?}]"));
    browser.open(&format!("http://{}/", node.place)).await;
    browser.until("document.activeElement?.id === 'key'").await;
    assert_eq!(browser.text("#node-state").await, "The node needs a key");
    assert_eq!(browser.text("#facts").await, "");
    browser.insert("wrong").await;
    browser.press("Enter", 13, 0).await;
    browser.until("document.getElementById('node-state').textContent.includes('none of')").await;
    browser.value("document.getElementById('key').focus()").await;
    browser.insert("the key").await;
    browser.press("Enter", 13, 0).await;
    browser.until("document.getElementById('node-state').textContent === 'Ready'").await;
    assert!(browser.text("#facts").await.contains("process"));
    assert!(browser.value("localStorage.length + document.cookie.length").await == 0);

    // Output comes while the code runs, and the keyboard interrupts it.
    browser.begin("print('begun')\nwhile True: pass").await;
    browser.until("document.getElementById('output').textContent.includes('begun')").await;
    browser.until("document.querySelector('#sessions tr')?.dataset.state === 'running'").await;
    browser.press("Escape", 27, 0).await;
    browser.until("document.getElementById('run-state').textContent.startsWith('Ended by')").await;
    // Its session ends with the run.
    browser.until("document.getElementById('sessions').children.length === 0").await;

    let code = "import sys\nprint('to out')\nsys.stderr.write('10%\\r50%\\r90%\\n')\n\
                print('a\\x1b[31mb\\x07')\nopen('/tmp/f.txt', 'w').write('x')\n1 / 0";
    assert!(browser.run(code).await.starts_with("Raised ZeroDivisionError: "));
    let output = browser.text("#output").await;
    for part in ["to out", "90%", "ab\u{2407}", "Traceback", "division by zero", "/tmp/f.txt"] {
        assert!(output.contains(part), "{part}: {output}");
    }
    assert!(!output.contains("50%"), "{output}");

    // A kept session has its variables, and ends by its button.
    browser.value("document.getElementById('where').value = 'keep'").await;
    assert!(browser.run("x = 6").await.starts_with("Completed"));
    assert!(browser.run("x * 7").await.starts_with("Completed"));
    assert_eq!(browser.text("#output .value").await, "42");
    browser.until("document.getElementById('sessions').children.length === 1").await;
    browser.value("document.querySelector('.row-actions button:last-child').focus()").await;
    browser.press("Enter", 13, 0).await;
    browser.until("document.getElementById('sessions').children.length === 0").await;
    assert_eq!(browser.value("document.activeElement.id").await, "sessions-title");
    let picture = "import base64\n\
                   display({'image/png': base64.b64decode('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAA\
                   AAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='), \
                   'text/plain': 'a dot'}, raw=True)";
    browser.value("document.getElementById('where').value = 'once'").await;
    assert!(browser.run(picture).await.starts_with("Completed"));
    browser.until("document.querySelector('#output img')?.naturalWidth === 1").await;
    assert_eq!(browser.value("document.querySelector('#output img').alt").await, "a dot");
    // After a reload the tab still has the key, until the person has it forgotten.
    browser.open(&format!("http://{}/", node.place)).await;
    browser.until("document.getElementById('node-state').textContent === 'Ready'").await;
    browser.value("document.getElementById('key-forget').click()").await;
    browser
        .until("document.getElementById('node-state').textContent === 'The node needs a key'")
        .await;
    assert_eq!(browser.value("sessionStorage.length").await, 0);
}

#[tokio::test]
async fn nothing_of_a_guest_runs_in_the_page_or_asks_for_anything() {
    let Some(mut browser) = Browser::start("console-hostile-browser").await else { return };
    let node = Node::start(&[]);
    let other = Server::start(|request| match request.path.as_str() {
        "/control" => {
            let page = HOSTILE[..5].join("\n").replace('~', "");
            let head = vec![("Content-Type", "text/html".to_owned())];
            Response(200, head, format!("<!doctype html>{page}").into())
        }
        _ => Response(404, Vec::new(), Vec::new()),
    });
    let pages = HOSTILE.map(|page| page.replace('~', &other.url("")));
    browser.open(&format!("http://{}/", node.place)).await;
    browser.until("document.getElementById('node-state').textContent === 'Ready'").await;
    let svg = "<svg xmlns='http://www.w3.org/2000/svg' onload='top.marked = 1'>\
               <script>top.marked = 1</script><image href='~/svg'/></svg>";
    let svg = svg.replace('~', &other.url(""));
    let code = format!(
        "import sys\npages = {pages:?}\nsvg = {svg:?}\n\
         for page in pages:\n\
         \x20   print(page, '\\x1b]8;;javascript:top.marked=1\\x07a\\x1b[2J\\r')\n\
         \x20   sys.stderr.write(page)\n\
         \x20   display({{'text/html': page}}, raw=True)\n\
         for format in ['image/svg+xml', 'image/png', 'text/markdown', 'text/plain', pages[0],\n\
         \x20              'application/javascript', 'text/latex', 'application/json']:\n\
         \x20   display({{format: svg}}, raw=True)\n\
         display({{'image/png': b'\"><script>top.marked=1</script>', 'text/plain': pages[0]}}, \
         raw=True)\n\
         open('/tmp/<img src=x onerror=top.marked=1>', 'w').write('x')\n\
         class Odd(Exception): __qualname__ = __name__ = pages[0]\n\
         raise Odd(pages[0])"
    );
    let state = browser.run(&code).await;
    assert!(state.starts_with("Raised "), "{state}");
    // All frames are there, each with its inner one.
    let frames = pages.len();
    browser
        .until(&format!(
            "(frames => frames.length === {frames} && frames.every(\
             frame => frame.contentDocument?.querySelector('iframe')))\
             ([...document.querySelectorAll('#output iframe')])"
        ))
        .await;
    let output = browser.text("#output").await;
    assert!(output.contains("<img src=x onerror=") && output.contains("\u{241b}]8;;"), "{output}");
    // Of the guest's text, no element was made.
    let made = "[...document.querySelectorAll('#output *')].map(element => element.localName)\
                .filter(name => !['pre', 'img', 'iframe'].includes(name))";
    assert_eq!(browser.value(made).await, json!([]));
    let inner = "[...document.querySelectorAll('#output iframe')].every(frame => \
                 frame.sandbox.value === 'allow-same-origin' && frame.contentDocument\
                 .querySelector('iframe').sandbox.length === 0 && \
                 frame.contentDocument.querySelector('iframe').contentDocument === null)";
    assert_eq!(browser.value(inner).await, true);
    // Neither a later run of the page nor its scripts are touched.
    assert!(browser.run("6 * 7").await.starts_with("Completed"));
    assert_eq!(browser.text("#output .value").await, "42");
    assert_eq!(browser.value("typeof marked").await, "undefined");
    assert_eq!(browser.value("location.pathname").await, "/");
    assert_eq!(other.connections(), 0, "{:?}", other.requests());
    let dialogs = browser.said.iter().filter(|said| said.contains("\"hasBrowserHandler\"")).count();
    assert_eq!(dialogs, 0, "{:?}", browser.said);
    // The same in a plain page, to show that it does what it can.
    browser.open(&other.url("/control")).await;
    browser.until("window.marked === 1").await;
    let asked = async || {
        while !["/onerror", "/img", "/script", "/new"]
            .iter()
            .all(|path| other.requests().iter().any(|request| request.path == *path))
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(LONGEST, asked()).await.unwrap();
}

#[tokio::test]
async fn the_keyboard_reaches_everything_and_what_is_said_is_read_out() {
    let Some(mut browser) = Browser::start("console-keys-browser").await else { return };
    let node = Node::start(&[]);
    browser.open(&format!("http://{}/", node.place)).await;
    browser.until("document.getElementById('node-state').textContent === 'Ready'").await;
    let mut order = Vec::new();
    for _ in 0..11 {
        browser.press("Tab", 9, 0).await;
        let focused = "(focused => focused.id || focused.textContent)(document.activeElement)";
        order.push(browser.value(focused).await.as_str().unwrap().to_owned());
        // What has the focus is seen to have it.
        let outline = "getComputedStyle(document.activeElement).outlineStyle";
        assert_ne!(browser.value(outline).await, "none", "{order:?}");
    }
    assert_eq!(
        order,
        [
            "Skip to the code",
            "code",
            "run",
            "where",
            "Limits of a session",
            "curl",
            "copy",
            "OpenAPI",
            "Metrics",
            "Guide",
            "API reference",
        ]
    );
    // The link leads past the head of the page.
    browser.value("document.querySelector('.skip').focus()").await;
    browser.press("Enter", 13, 0).await;
    browser.until("document.activeElement.id === 'code'").await;
    for (selector, attribute, value) in [
        ("#node-state", "role", "status"),
        ("#run-state", "role", "status"),
        ("#output", "role", "log"),
        ("#output", "aria-live", "polite"),
        ("html", "lang", "en"),
    ] {
        let found = format!("document.querySelector({selector:?}).getAttribute({attribute:?})");
        assert_eq!(browser.value(&found).await, value, "{selector}");
    }
    let unnamed = "[...document.querySelectorAll('input, select, textarea')]\
                   .filter(field => field.labels.length === 0).length";
    assert_eq!(browser.value(unnamed).await, 0);
    // On a phone, nothing is wider than the screen.
    let phone = json!({"width": 360, "height": 800, "deviceScaleFactor": 1, "mobile": true});
    browser.call("Emulation.setDeviceMetricsOverride", phone).await;
    assert!(browser.run("print('x' * 1000)").await.starts_with("Completed"));
    assert_eq!(browser.value("document.documentElement.scrollWidth").await, 360);
}
