//! The HTTP client: its trust, its proxies, and the reasons of its failures.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::client::proxy::matcher::Matcher;
use reqwest::{Client, Response, header};
use rustls::client::WebPkiServerVerifier;
use rustls::crypto::ring;
use rustls::{CertificateError, ClientConfig, RootCertStore};
use tokio::time::Instant;

use super::authorities::Authorities;
use super::{Help, Obstacle};
use crate::error::plain;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// How long the server may be silent, even in the middle of a file.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(30);

/// Makes the client.
///
/// It trusts the authorities of Mozilla's programme, which are compiled in, those of the system or
/// of `SSL_CERT_FILE`, and the given ones. It uses the proxies that the environment names.
pub(super) fn client(authorities: &Authorities) -> Result<Client, String> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    // A certificate that cannot be used is one that nothing is trusted for.
    for authorities in [&Authorities::of_system(), authorities] {
        roots.add_parsable_certificates(authorities.certificates().cloned());
    }
    let provider = Arc::new(ring::default_provider());
    let no_tls = |error: &dyn fmt::Display| format!("this program has no TLS: {error}");
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    let verifier = verifier.build().map_err(|error| no_tls(&error))?;
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| no_tls(&error))?
        .with_webpki_verifier(verifier)
        .with_no_client_auth();
    Client::builder()
        .tls_backend_preconfigured(tls)
        .user_agent(concat!("isolet/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(SILENCE_TIMEOUT)
        .build()
        .map_err(|error| no_tls(&error))
}

/// Requests a file, or its bytes from `start` on. `tag` is the `ETag` of the bytes before.
///
/// The client follows up to ten redirects and decodes nothing.
pub(super) async fn get(
    client: &Client,
    url: &str,
    start: u64,
    tag: Option<&str>,
    deadline: Instant,
) -> Result<Response, Obstacle> {
    let left = deadline.saturating_duration_since(Instant::now());
    let mut request = client.get(url).timeout(left).header(header::ACCEPT_ENCODING, "identity");
    if start > 0 {
        request = request.header(header::RANGE, format!("bytes={start}-"));
        if let Some(tag) = tag {
            request = request.header(header::IF_RANGE, tag);
        }
    }
    request.send().await.map_err(|error| obstacle(&error, url))
}

/// Returns the name of the proxy that requests of this URL go through.
pub(super) fn proxy(url: &str) -> Option<String> {
    let proxy = Matcher::from_env().intercept(&url.parse().ok()?)?;
    proxy.uri().authority().map(|authority| authority.as_str().to_owned())
}

/// Returns why a request failed.
pub(super) fn obstacle(error: &reqwest::Error, url: &str) -> Obstacle {
    let mut is_final = error.is_builder() || error.is_redirect();
    let mut help = None;
    let mut reason = words(error);
    if let Some(invalid) = certificate_error(error) {
        is_final = true;
        help = Some(Help::Authority);
        if *invalid == CertificateError::UnknownIssuer {
            "the authority of its certificate is not trusted here".clone_into(&mut reason);
        }
    } else if error.is_connect() || error.is_timeout() {
        match proxy(url) {
            Some(proxy) => reason = format!("{reason}, through the proxy `{proxy}`"),
            None => help = Some(Help::Proxy),
        }
    }
    Obstacle { reason, help, is_final, wait: None }
}

/// Returns the reason in words, as part of a sentence.
fn words(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "no answer in time".to_owned();
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    let text = match cause.downcast_ref::<io::Error>() {
        Some(error) => plain(error),
        None => cause.to_string(),
    };
    // The standard library has no kind for this error and appends the C library's text.
    if text.starts_with("failed to lookup address") {
        return "the host name cannot be resolved".to_owned();
    }
    text
}

/// Returns what is wrong with the server's certificate, if that is the reason.
fn certificate_error(error: &reqwest::Error) -> Option<&CertificateError> {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(rustls::Error::InvalidCertificate(invalid)) = error.downcast_ref() {
            return Some(invalid);
        }
        // An I/O error is not the source of what it carries.
        let carried = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        cause = carried.map(|inner| inner as _).or_else(|| error.source());
    }
    None
}
