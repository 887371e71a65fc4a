//! What isolet itself requests, from servers of MCP, language models and collectors of traces:
//! through the proxies of the environment, and from servers of private authorities that it names.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::endpoint::{Endpoint, certificates, read_head};
use crate::mcp::client::{Client, text};
use isolet_test_support::{Ran, Scratch, command, ended, root};

/// What an endpoint answers as a language model.
const COMPLETION: &str = r#"{"choices": [{"message": {"content": "an answer"}}]}"#;

/// What an error says of an authority that is not trusted.
const UNTRUSTED: &str = "the authority of its certificate is not trusted here; if this network has \
                         its own certificate authority, name its file with the variable \
                         `SSL_CERT_FILE`";

/// A proxy of HTTP and SOCKS 5 that takes every name for this machine.
struct Proxy {
    address: String,
    /// Where its clients wanted to go.
    targets: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let targets = Arc::<Mutex<Vec<String>>>::default();
        let seen = Arc::clone(&targets);
        thread::spawn(move || {
            for client in listener.incoming() {
                let (client, seen) = (client.unwrap(), Arc::clone(&seen));
                thread::spawn(move || {
                    let asked = asked(&client).unwrap();
                    seen.lock().unwrap_or_else(PoisonError::into_inner).push(asked.target.clone());
                    serve(client, &asked).unwrap();
                });
            }
        });
        Self { address, targets }
    }

    fn targets(&self) -> Vec<String> {
        self.targets.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What a client asks a proxy for.
struct Asked {
    /// NAME:PORT
    target: String,
    /// What the client wants to hear once the connection is there.
    reply: Vec<u8>,
    /// What the server has to get first.
    head: Vec<u8>,
}

fn asked(mut client: &TcpStream) -> io::Result<Asked> {
    let mut first = [0];
    client.peek(&mut first)?;
    if first == [5] {
        return asked_by_socks(client);
    }
    let head = read_head(&mut client).ok_or(io::ErrorKind::UnexpectedEof)?;
    let text = String::from_utf8_lossy(&head).into_owned();
    let mut words = text.split(' ');
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    if method == "CONNECT" {
        let reply = b"HTTP/1.1 200 Connected\r\n\r\n".to_vec();
        return Ok(Asked { target: target.to_owned(), reply, head: Vec::new() });
    }
    let target = target.strip_prefix("http://").unwrap().split('/').next().unwrap();
    Ok(Asked { target: target.to_owned(), reply: Vec::new(), head })
}

/// RFC 1928, with names and without a password.
fn asked_by_socks(mut client: &TcpStream) -> io::Result<Asked> {
    let mut hello = [0; 2];
    client.read_exact(&mut hello)?;
    client.read_exact(&mut vec![0; hello[1].into()])?;
    client.write_all(&[5, 0])?;
    let mut request = [0; 5];
    client.read_exact(&mut request)?;
    assert_eq!(request[..4], [5, 1, 0, 3], "a connection to a name");
    let mut name = vec![0; request[4].into()];
    client.read_exact(&mut name)?;
    let mut port = [0; 2];
    client.read_exact(&mut port)?;
    let target = format!("{}:{}", String::from_utf8(name).unwrap(), u16::from_be_bytes(port));
    Ok(Asked { target, reply: vec![5, 0, 0, 1, 0, 0, 0, 0, 0, 0], head: Vec::new() })
}

/// Connects a client to its server until one of them ends it.
fn serve(mut client: TcpStream, asked: &Asked) -> io::Result<()> {
    let port = asked.target.rsplit(':').next().unwrap().parse::<u16>().unwrap();
    let mut server = TcpStream::connect(("127.0.0.1", port))?;
    client.write_all(&asked.reply)?;
    server.write_all(&asked.head)?;
    let (mut from, mut to) = (client.try_clone()?, server.try_clone()?);
    let up = thread::spawn(move || {
        let _ = io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
    let _ = io::copy(&mut server, &mut client);
    let _ = client.shutdown(Shutdown::Both);
    up.join().unwrap();
    Ok(())
}

/// `tests/mcp/fake.py` over HTTP, with TLS if there is a directory of certificates.
struct Fake {
    process: Child,
    port: String,
}

impl Fake {
    fn start(certificates: Option<&Path>) -> Self {
        let mut command = Command::new("python3");
        command.arg(root().join("tests/mcp/fake.py")).args(["http", "modern"]);
        command.args(certificates.map(|dir| format!("tls={}", dir.display())));
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self { process, port: port.trim().to_owned() }
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// Returns the command with these variables, and without those that the tests have.
fn with_environment(args: &[&str], variables: &[(&str, &str)]) -> Command {
    let mut command = command(args);
    for name in
        ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"]
    {
        command.env_remove(name).env_remove(name.to_ascii_lowercase());
    }
    command.envs(variables.iter().copied());
    command
}

/// Asks a server of MCP for its tools.
fn check(scratch: &Scratch, url: &str, variables: &[(&str, &str)]) -> Ran {
    let server = format!("fake={url}");
    let mut command = with_environment(&["mcp", "check", "--server", &server], variables);
    command.env("XDG_DATA_HOME", scratch.path().join("data"));
    command.env("XDG_CACHE_HOME", scratch.path().join("cache"));
    command.output().unwrap().into()
}

/// Asks a language model from Python. Returns the answer, or the exception.
fn ask(url: &str, variables: &[(&str, &str)]) -> String {
    let command = with_environment(&["mcp", "--llm", url], variables);
    let mut client = Client::of(command, true, &json!({}));
    text(&client.run("llm_query('a question')")).to_owned()
}

#[test]
fn servers_of_mcp_are_reached_through_the_proxies_of_the_environment() {
    let scratch = Scratch::new("mcp-proxies");
    certificates(scratch.path());
    let ca = scratch.path().join("ca.pem");
    let ca = ca.to_str().unwrap();
    for (variable, kind, has_tls) in [
        ("HTTP_PROXY", "http", false),
        ("https_proxy", "http", true),
        ("ALL_PROXY", "socks5h", true),
    ] {
        let fake = Fake::start(has_tls.then_some(scratch.path()));
        let (proxy, port) = (Proxy::start(), &fake.port);
        let (scheme, address) =
            (if has_tls { "https" } else { "http" }, format!("{kind}://{}", proxy.address));
        let variables = [(variable, address.as_str()), ("SSL_CERT_FILE", ca)];
        let url = format!("{scheme}://mcp.example.test:{port}/mcp");
        let ran = check(&scratch, &url, &variables);
        assert_eq!(ran.code, Some(0), "{variable}: {ran:?}");
        let targets = proxy.targets();
        let expected = format!("mcp.example.test:{port}");
        assert!(targets.contains(&expected), "{variable}: {targets:?}");
        // And directly where the environment says so.
        let url = format!("{scheme}://127.0.0.1:{port}/mcp");
        let direct = [&variables[..], &[("NO_PROXY", "127.0.0.1")]].concat();
        let ran = check(&scratch, &url, &direct);
        assert_eq!((ran.code, proxy.targets()), (Some(0), targets), "{variable}: {ran:?}");
    }
}

#[test]
fn a_language_model_is_reached_through_the_proxies_of_the_environment() {
    let scratch = Scratch::new("llm-proxies");
    certificates(scratch.path());
    let ca = scratch.path().join("ca.pem");
    let ca = ca.to_str().unwrap();
    for (variable, model, scheme) in [
        ("http_proxy", Endpoint::plain(COMPLETION), "http"),
        ("HTTPS_PROXY", Endpoint::with_tls(scratch.path(), COMPLETION), "https"),
    ] {
        let proxy = Proxy::start();
        let (at, port) =
            (format!("http://{}", proxy.address), &model.address["127.0.0.1:".len()..]);
        let variables = [(variable, at.as_str()), ("SSL_CERT_FILE", ca)];
        let said = ask(&format!("{scheme}://llm.example.test:{port}/v1"), &variables);
        assert!(said.contains("an answer"), "{variable}: {said}");
        let expected = [format!("llm.example.test:{port}")];
        assert_eq!(proxy.targets(), expected, "{variable}");
        let direct = [&variables[..], &[("NO_PROXY", "127.0.0.0/8")]].concat();
        let said = ask(&format!("{scheme}://{}/v1", model.address), &direct);
        assert!(said.contains("an answer"), "{variable}: {said}");
        assert_eq!(proxy.targets(), expected, "{variable}");
    }
}

#[test]
fn a_proxy_that_does_not_answer_is_named_without_its_password() {
    let scratch = Scratch::new("mcp-no-proxy");
    let proxy = [("ALL_PROXY", "http://me:sesame@127.0.0.1:9")];
    let ran = check(&scratch, "http://mcp.example.test/mcp", &proxy);
    let said = ran.stdout + &ran.stderr;
    assert!(said.contains("connection refused, through the proxy `127.0.0.1:9`"), "{said}");
    assert!(said.contains("`NO_PROXY`") && !said.contains("sesame"), "{said}");
}

#[test]
fn a_server_of_mcp_is_trusted_if_the_environment_names_its_authority() {
    let scratch = Scratch::new("mcp-authority");
    certificates(scratch.path());
    let fake = Fake::start(Some(scratch.path()));
    let url = format!("https://127.0.0.1:{}/mcp", fake.port);
    let ran = check(&scratch, &url, &[]);
    let said = ran.stdout + &ran.stderr;
    assert!(ran.code != Some(0) && said.contains(UNTRUSTED), "{said}");
    let ca = scratch.path().join("ca.pem");
    let ran = check(&scratch, &url, &[("SSL_CERT_FILE", ca.to_str().unwrap())]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn a_language_model_is_trusted_if_the_environment_names_its_authority() {
    let scratch = Scratch::new("llm-authority");
    certificates(scratch.path());
    let model = Endpoint::with_tls(scratch.path(), COMPLETION);
    let url = format!("https://{}/v1", model.address);
    let said = ask(&url, &[]);
    assert!(said.contains(UNTRUSTED), "{said}");
    let ca = scratch.path().join("ca.pem");
    let said = ask(&url, &[("SSL_CERT_FILE", ca.to_str().unwrap())]);
    assert!(said.contains("an answer"), "{said}");
}

/// Starts a node that sends traces, has it run code, and ends it. Returns what it said.
fn traced(variables: &[(&str, &str)]) -> String {
    let args = ["serve", "--listen", "127.0.0.1:0", "--die-with-parent"];
    let mut node = with_environment(&args, variables);
    let mut node = node.stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(node.stderr.take().unwrap());
    let mut said = String::new();
    stderr.read_line(&mut said).unwrap();
    let place = said.trim().rsplit("http://").next().unwrap().to_owned();
    let mut client = TcpStream::connect(&place).unwrap();
    let body = r#"{"code": "1"}"#;
    let head = format!("POST /v1/run HTTP/1.1\r\nhost: {place}\r\nconnection: close\r\n");
    let length = body.len();
    let more = format!("content-type: application/json\r\ncontent-length: {length}\r\n\r\n");
    client.write_all(format!("{head}{more}{body}").as_bytes()).unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    kill_process(Pid::from_child(&node), Signal::TERM).unwrap();
    stderr.read_to_string(&mut said).unwrap();
    ended(node);
    said
}

#[test]
fn traces_are_sent_to_a_collector_whose_authority_the_environment_names() {
    let scratch = Scratch::new("otlp-authority");
    certificates(scratch.path());
    let collector = Endpoint::with_tls(scratch.path(), "");
    let endpoint = format!("https://{}", collector.address);
    let to = ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str());
    let said = traced(&[to]);
    let expected = format!("isolet: traces do not reach `{endpoint}/v1/traces`: {UNTRUSTED}");
    assert!(said.contains(&expected), "{said}");
    let ca = scratch.path().join("ca.pem");
    let said = traced(&[to, ("SSL_CERT_FILE", ca.to_str().unwrap())]);
    assert!(!said.contains("traces"), "{said}");
    let request = collector.next();
    assert!(request.starts_with(b"POST /v1/traces HTTP/1.1\r\n"));
}

#[test]
fn traces_are_sent_through_the_proxies_of_the_environment() {
    let (collector, proxy) = (Endpoint::plain(""), Proxy::start());
    let port = &collector.address["127.0.0.1:".len()..];
    let endpoint = format!("http://otlp.example.test:{port}");
    let at = format!("http://{}", proxy.address);
    let said = traced(&[("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint), ("HTTP_PROXY", &at)]);
    assert!(!said.contains("traces"), "{said}");
    assert!(String::from_utf8_lossy(&collector.next()).contains("/v1/traces HTTP/1.1\r\n"));
    assert_eq!(proxy.targets(), [format!("otlp.example.test:{port}")]);
}
