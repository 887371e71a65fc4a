//! Tests of TLS: certificates must be for the canonical host and from a trusted authority.

use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::process::Command;
use std::sync::Arc;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::super::tls::Tls;
use super::super::{NetErrorKind, NetLimits};
use super::guest::{Guest, allowing, denied, get, with_headers};
use super::server::{Seen, Server, ok, read_head, redirect};

/// Makes a self-signed certificate for these names, and its key.
fn certificate(names: &str) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
    let output = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"])
        .args(["-days", "2", "-subj", "/CN=test", "-keyout", "-", "-out", "-"])
        .args(["-addext", &format!("subjectAltName={names}")])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .output()
        .expect("the openssl command");
    let pem = output.stdout;
    (CertificateDer::from_pem_slice(&pem).unwrap(), PrivateKeyDer::from_pem_slice(&pem).unwrap())
}

/// Starts a server that speaks TLS and sends this answer. Returns the server and a client
/// configuration that trusts it.
fn tls_server(
    names: &str,
    respond: impl Fn(&Seen, Option<&str>) -> String + Send + Sync + 'static,
) -> (Server, Tls) {
    let (certificate, key) = certificate(names);
    let tls = Tls::trusting(std::slice::from_ref(&certificate));
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let config = Arc::new(config);
    let server = Server::raw("127.0.0.1:0", move |_, stream: TcpStream| {
        let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
        let mut reader = BufReader::new(StreamOwned::new(connection, stream));
        while let Some(seen) = read_head(&mut reader) {
            let stream = reader.get_mut();
            let response = respond(&seen, stream.conn.server_name());
            stream.write_all(response.as_bytes()).unwrap();
        }
    });
    (server, tls)
}

fn echo(seen: &Seen, name: Option<&str>) -> String {
    ok(&format!("{} {}", name.unwrap_or("none"), seen.header("host").unwrap_or("none")))
}

#[test]
fn a_certificate_that_signs_itself_is_refused() {
    let (server, _) = tls_server("DNS:a.test,IP:127.0.0.1", echo);
    let guest = Guest::of(&server, &["a.test"]);
    for host in ["a.test", "127.0.0.1"] {
        let error = guest.get(&format!("https://{host}:{}/", server.port())).unwrap_err();
        assert_eq!(error.kind, NetErrorKind::Connection);
        let start = format!("TLS with {host}:{} failed: ", server.port());
        assert!(error.message.starts_with(&start), "{error}");
        assert!(error.message.contains("UnknownIssuer"), "{error}");
    }
}

#[test]
fn a_certificate_has_to_be_for_the_canonical_host() {
    let (server, tls) = tls_server("DNS:a.test,IP:127.0.0.1", echo);
    let guest = Guest::with(allowing(&[&server], &["a.test", "b.test"]), NetLimits::default(), tls);
    let port = server.port();
    for (host, name) in [("A.TEST.", "a.test"), ("a.test", "a.test"), ("2130706433", "none")] {
        let whole = guest.get(&format!("https://{host}:{port}/")).expect(host);
        let shown = if name == "none" { "127.0.0.1" } else { name };
        assert_eq!(whole.body, format!("{name} {shown}:{port}").as_bytes());
    }
    let error = guest.get(&format!("https://b.test:{port}/")).unwrap_err();
    assert_eq!(error.kind, NetErrorKind::Connection);
    assert!(error.message.contains("not valid for name"), "{error}");
}

#[test]
fn a_host_header_does_not_choose_the_name_of_tls() {
    let (server, tls) = tls_server("DNS:a.test", echo);
    let guest = Guest::with(allowing(&[&server], &["a.test", "b.test"]), NetLimits::default(), tls);
    let request = get(&format!("https://a.test:{}/", server.port()));
    let host = format!("b.test:{}", server.port());
    guest.fetch(with_headers(request, &[("Host", &host)])).unwrap_err();
    assert_eq!(server.connections(), 0);
}

#[test]
fn a_redirect_from_https_to_http_is_not_followed() {
    let canary = Server::canary();
    let location = canary.named("a.test", "/");
    let (server, tls) = tls_server("DNS:a.test", move |_, _| redirect(302, &location));
    let policy = allowing(&[&server, &canary], &["a.test"]);
    let guest = Guest::with(policy, NetLimits::default(), tls);
    let error = guest.get(&format!("https://a.test:{}/", server.port())).unwrap_err();
    assert_eq!(error.message, denied(&format!("a.test:{}", canary.port())));
    assert_eq!(canary.connections(), 0);
    assert_eq!(guest.events()[1].reason, "it is a redirect from https to http");
    // On its own, the canary is allowed.
    guest.get(&canary.named("a.test", "/")).unwrap();
}

#[test]
fn a_server_that_does_not_speak_tls_is_an_error() {
    let server = Server::fixed(ok("plain"));
    let guest = Guest::of(&server, &["a.test"]);
    let error = guest.get(&format!("https://a.test:{}/", server.port())).unwrap_err();
    assert!(
        matches!(
            error.kind,
            NetErrorKind::Connection | NetErrorKind::Reset | NetErrorKind::Timeout
        ),
        "{error}"
    );
}
