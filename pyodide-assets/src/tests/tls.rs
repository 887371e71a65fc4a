//! Tests of servers' certificates: trusted if a file or the environment names their authority.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::sync::Arc;
use std::thread;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::transfer::download_elsewhere;
use super::*;
use crate::{Authorities, DownloadError, Downloader, Help, Wanted};

const NAME: &str = "pyodide-lock.json";

fn openssl(dir: &Path, arguments: &[&str]) {
    let output = Command::new("openssl").args(arguments).current_dir(dir).output();
    let output = output.expect("the openssl command");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Makes a private authority (`ca.pem`) and the certificate of a server (`server.pem`, `key.pem`).
fn certificates(dir: &Path) {
    const KEY: [&str; 5] = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
    let days = ["-days", "2"];
    let make = |arguments: &[&str]| {
        openssl(dir, &[&["req", "-x509"], &KEY[..], &days, arguments].concat());
    };
    make(&["-subj", "/CN=a private authority", "-keyout", "ca.key", "-out", "ca.pem"]);
    make(&[
        "-subj",
        "/CN=server",
        "-keyout",
        "key.pem",
        "-out",
        "server.pem",
        "-CA",
        "ca.pem",
        "-CAkey",
        "ca.key",
        "-addext",
        "subjectAltName=IP:127.0.0.1",
        "-addext",
        "basicConstraints=critical,CA:FALSE",
    ]);
}

/// Starts a server that answers `connections` connections with the file. Returns its source.
fn server(dir: &Path, connections: usize) -> (String, thread::JoinHandle<()>) {
    let pem = |name: &str| fs::read(dir.join(name)).unwrap();
    let certificate = CertificateDer::from_pem_slice(&pem("server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_slice(&pem("key.pem")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let source = format!("https://{}/{{file}}", listener.local_addr().unwrap());
    let thread = thread::spawn(move || {
        for stream in listener.incoming().take(connections) {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(connection, stream.unwrap());
            // A client that does not trust the server hangs up.
            if stream.read(&mut [0; 4096]).is_ok_and(|count| count > 0) {
                let body = content(NAME);
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
                stream.write_all(head.as_bytes()).unwrap();
                stream.write_all(&body).unwrap();
            }
        }
    });
    (source, thread)
}

fn download(source: &str, authorities: Authorities, dir: &Path) -> Result<(), DownloadError> {
    let wanted = [Wanted::new(NAME, Digest::of(&content(NAME)), 1 << 20)];
    Downloader::new([source]).authorities(authorities).download(&wanted, dir, &mut Silent)
}

#[test]
fn a_private_authority_is_trusted_only_if_it_is_named() {
    let (dir, into) = (TestDir::new(), TestDir::new());
    certificates(&dir);
    let (source, thread) = server(&dir, 2);
    match download(&source, Authorities::default(), &into).unwrap_err() {
        DownloadError::Remote { reason, help, .. } => {
            let url = source.replace("{file}", NAME);
            let expected = format!("`{url}`: the authority of its certificate is not trusted here");
            assert_eq!((reason, help), (expected, Some(Help::Authority)));
        }
        error @ DownloadError::Local(_) => panic!("{error}"),
    }
    let mut authorities = Authorities::default();
    authorities.add_file(&dir.join("ca.pem")).unwrap();
    download(&source, authorities, &into).unwrap();
    assert!(fs::read(into.join(NAME)).unwrap() == content(NAME));
    thread.join().unwrap();
}

#[test]
fn the_authorities_of_the_environment_are_trusted() {
    let dir = TestDir::new();
    certificates(&dir);
    let (source, thread) = server(&dir, 3);
    let path = dir.join("ca.pem").to_str().unwrap().to_owned();
    // The other process wants another file, and gets to its bytes only if it trusts the server.
    let said = download_elsewhere(&source, &[("SSL_CERT_FILE", &path)]).unwrap_err();
    assert!(said.contains("the file has the wrong sha256"), "{said}");
    let untrusted = "the authority of its certificate is not trusted here";
    let said = download_elsewhere(&source, &[]).unwrap_err();
    assert!(said.contains(untrusted) && !said.contains("cannot be read"), "{said}");
    // A file that is named wrong is said to be.
    let said = download_elsewhere(&source, &[("SSL_CERT_FILE", "/no/such/ca.pem")]).unwrap_err();
    let unread = "`/no/such/ca.pem` cannot be read: no such file or directory";
    assert!(said.contains(&format!("{untrusted}, and {unread}")), "{said}");
    thread.join().unwrap();
}

#[track_caller]
fn refused(bytes: &[u8], reason: &str) {
    let dir = TestDir::new();
    let path = dir.join("ca.pem");
    fs::write(&path, bytes).unwrap();
    assert_eq!(
        Authorities::default().add_file(&path).unwrap_err().to_string(),
        format!("the certificate authorities in `{}` cannot be used: {reason}", path.display())
    );
}

#[test]
fn a_file_without_certificates_is_refused() {
    let none = "it has no certificate in PEM form (`BEGIN CERTIFICATE`)";
    refused(b"", none);
    refused(b"\x30\x82\x01", none);
    refused(b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", none);
    refused(
        b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        "certificate 1 is of no use: invalid peer certificate: BadEncoding",
    );
    refused(&vec![b'\n'; (4 << 20) + 1], "it has more than 4194304 bytes");
    let missing = Authorities::default().add_file(Path::new("/no/such/ca.pem")).unwrap_err();
    assert!(missing.to_string().ends_with("cannot be used: no such file or directory"));
}
