//! The HTTP client of what isolet itself requests: whom it trusts, which proxies it uses, and why a
//! request failed. The requests of guests are none of these.

mod authorities;

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::client::proxy::matcher::Matcher;
use reqwest::ClientBuilder;
use rustls::client::WebPkiServerVerifier;
use rustls::crypto::ring;
use rustls::{CertificateError, ClientConfig, RootCertStore};

pub use self::authorities::Authorities;
use crate::error::plain;

/// How long connecting may take, through a proxy and with TLS.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// Why a request failed, and what might help.
#[derive(Debug)]
#[non_exhaustive]
pub struct Failure {
    /// The reason in words, as part of a sentence. It has neither the URL nor a password in it.
    pub reason: String,
    /// What might help.
    pub help: Option<Help>,
    /// A second request would end in the same way.
    pub is_final: bool,
}

/// What might help against a failure. Its text is part of a sentence for a user of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Help {
    /// To trust another certificate authority.
    Authority,
    /// To name a proxy.
    Proxy,
    /// To reach the server without the proxy.
    NoProxy,
}

impl Help {
    fn in_environment(self) -> &'static str {
        match self {
            Self::Authority => {
                "if this network has its own certificate authority, name its file with the \
                 variable `SSL_CERT_FILE`"
            }
            Self::Proxy => {
                "if this network needs a proxy, name it with the variable `HTTPS_PROXY`, or \
                 `HTTP_PROXY` for `http://`"
            }
            Self::NoProxy => {
                "if this server is reached without the proxy, name its host in the variable \
                 `NO_PROXY`"
            }
        }
    }
}

impl fmt::Display for Help {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Authority => {
                "if this network has its own certificate authority, name its file with \
                 `--ca-file` or the variable `SSL_CERT_FILE`"
            }
            Self::Proxy | Self::NoProxy => self.in_environment(),
        })
    }
}

/// Returns what builds a client.
///
/// It trusts the authorities of Mozilla's programme, which are compiled in, those of the system or
/// of the variables `SSL_CERT_FILE` and `SSL_CERT_DIR`, and the given ones. It uses the proxies
/// that the environment names. It has no time limit but that of connecting.
///
/// # Errors
///
/// Why this program has no TLS, as part of a sentence.
pub fn client(authorities: &Authorities) -> Result<ClientBuilder, String> {
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
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .user_agent(concat!("isolet/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT);
    Ok(client)
}

/// Returns the name of the proxy that requests of this URL go through.
fn proxy(url: &str) -> Option<String> {
    let proxy = Matcher::from_env().intercept(&url.parse().ok()?)?;
    proxy.uri().authority().map(|authority| authority.as_str().to_owned())
}

impl Failure {
    /// Returns why a request of this URL failed.
    #[must_use]
    pub fn of(error: &reqwest::Error, url: &str) -> Self {
        let mut is_final = error.is_builder() || error.is_redirect();
        let mut help = None;
        let mut reason = words(error);
        if let Some(invalid) = certificate_error(error) {
            is_final = true;
            help = Some(Help::Authority);
            if *invalid == CertificateError::UnknownIssuer {
                "the authority of its certificate is not trusted here".clone_into(&mut reason);
                // Perhaps one that the user has named.
                if let Some(unreadable) = authorities::unreadable() {
                    reason = format!("{reason}, and {unreadable}");
                }
            }
        } else if error.is_connect() || error.is_timeout() {
            match proxy(url) {
                Some(proxy) => {
                    help = Some(Help::NoProxy);
                    reason = format!("{reason}, through the proxy `{proxy}`");
                }
                // A server of this machine needs none.
                None => help = (!is_local(url)).then_some(Help::Proxy),
            }
        }
        Self { reason, help, is_final }
    }

    /// Returns reason and help, as part of a sentence for a user who has no option for either: only
    /// variables of the environment help.
    #[must_use]
    pub fn in_environment(&self) -> String {
        match self.help {
            Some(help) => format!("{}; {}", self.reason, help.in_environment()),
            None => self.reason.clone(),
        }
    }
}

fn is_local(url: &str) -> bool {
    let url = reqwest::Url::parse(url).ok();
    let host = url.as_ref().and_then(reqwest::Url::host_str).unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
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
