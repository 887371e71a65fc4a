//! A server of HTTP on this machine that gives each request the same answer, with or without TLS,
//! and a private authority for its certificate.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, mpsc};
use std::thread;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

use isolet_test_support::LONGEST;

/// The end of a request's head.
const END: &[u8] = b"\r\n\r\n";

/// Makes a private authority (`ca.pem`), and the certificate of a server of it (`server.pem`,
/// `key.pem`): for 127.0.0.1, and for the names of `example.test`.
pub(crate) fn certificates(dir: &Path) {
    let make = |subject: &str, key: &str, out: &str, more: &[&str]| {
        let mut command = Command::new("openssl");
        command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]);
        command.args(["-nodes", "-days", "2", "-subj", subject, "-keyout", key, "-out", out]);
        let output = command.args(more).current_dir(dir).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    make("/CN=a private authority", "ca.key", "ca.pem", &[]);
    let names = "subjectAltName=IP:127.0.0.1,DNS:*.example.test";
    let leaf = "basicConstraints=critical,CA:FALSE";
    let signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-addext", names, "-addext", leaf];
    make("/CN=server", "key.pem", "server.pem", &signed);
}

/// A server, which ends with the tests.
pub(crate) struct Endpoint {
    /// Its address, `127.0.0.1:PORT`.
    pub(crate) address: String,
    requests: mpsc::Receiver<Vec<u8>>,
}

impl Endpoint {
    pub(crate) fn plain(body: &'static str) -> Self {
        Self::start(body, |stream| Box::new(stream))
    }

    /// Starts a server with the certificate in a directory of [`certificates`].
    pub(crate) fn with_tls(dir: &Path, body: &'static str) -> Self {
        let pem = |name: &str| std::fs::read(dir.join(name)).unwrap();
        let certificate = CertificateDer::from_pem_slice(&pem("server.pem")).unwrap();
        let key = PrivateKeyDer::from_pem_slice(&pem("key.pem")).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        let config = Arc::new(config);
        Self::start(body, move |stream| {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            Box::new(StreamOwned::new(connection, stream))
        })
    }

    fn start(
        body: &'static str,
        accept: impl Fn(TcpStream) -> Box<dyn Connection> + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (sender, requests) = mpsc::channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = accept(stream.unwrap());
                // A client that does not trust the server hangs up.
                let Some(request) = read_request(&mut *stream) else { continue };
                let _ = sender.send(request);
                let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: \
                            application/json\r\n";
                let answer = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
                stream.write_all(answer.as_bytes()).unwrap();
                stream.end();
            }
        });
        Self { address, requests }
    }

    /// Returns the next request, its head and body.
    pub(crate) fn next(&self) -> Vec<u8> {
        self.requests.recv_timeout(LONGEST).unwrap()
    }
}

trait Connection: Read + Write {
    fn end(&mut self) {}
}

impl Connection for TcpStream {}

impl Connection for StreamOwned<ServerConnection, TcpStream> {
    fn end(&mut self) {
        self.conn.send_close_notify();
        self.flush().unwrap();
    }
}

/// Reads a request; `None` if the client hangs up before it has sent one.
fn read_request(stream: &mut dyn Connection) -> Option<Vec<u8>> {
    let mut request = read_head(stream)?;
    let head = String::from_utf8_lossy(&request).to_lowercase();
    let length = head.split("content-length: ").nth(1);
    let length = length.map_or(0, |rest| rest.lines().next().unwrap().parse().unwrap());
    let start = request.len();
    request.resize(start + length, 0);
    stream.read_exact(&mut request[start..]).ok()?;
    Some(request)
}

/// Reads the head of a request, byte by byte so that nothing of the body is read with it.
pub(crate) fn read_head(stream: &mut (impl Read + ?Sized)) -> Option<Vec<u8>> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(END) {
        stream.read_exact(&mut byte).ok()?;
        head.extend_from_slice(&byte);
    }
    Some(head)
}
