//! TLS, with the certificate authorities of Mozilla's programme, which are compiled in, and those
//! that the owner names.
//!
//! The system's list is not read, because a guest's trust must not depend on the machine.

use std::sync::{Arc, LazyLock};

use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::error::{NetError, NetErrorKind};
use super::rules::Host;
use super::target::CheckedTarget;

static ROOTS: LazyLock<Arc<RootCertStore>> =
    LazyLock::new(|| Arc::new(RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() }));

/// The TLS configuration of one session. Sessions share no tickets.
#[derive(Clone)]
pub(super) struct Tls(Option<Arc<ClientConfig>>);

impl Tls {
    /// Trusts these certificate authorities, too.
    pub(super) fn trusting(authorities: &[CertificateDer<'static>]) -> Self {
        if authorities.is_empty() {
            return Self::with_roots(Arc::clone(&ROOTS));
        }
        let mut roots = RootCertStore::clone(&ROOTS);
        roots.add_parsable_certificates(authorities.iter().cloned());
        Self::with_roots(Arc::new(roots))
    }

    fn with_roots(roots: Arc<RootCertStore>) -> Self {
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions();
        let config = builder.map(|builder| {
            let mut config = builder.with_root_certificates(roots).with_no_client_auth();
            config.alpn_protocols = vec![b"http/1.1".to_vec()];
            Arc::new(config)
        });
        Self(config.ok())
    }

    /// Opens a TLS connection to a server, whose certificate must be for the canonical host.
    pub(super) async fn connect(
        &self,
        target: &CheckedTarget,
        stream: TcpStream,
    ) -> Result<TlsStream<TcpStream>, NetError> {
        let name = match target.host() {
            Host::Address(address) => Ok(ServerName::from(*address)),
            Host::Name(name) => ServerName::try_from(name.clone()),
        };
        let name = name.map_err(|_| {
            NetError::invalid(format!("no certificate can be for the name `{}`", target.host()))
        })?;
        let config = self.0.clone();
        let config = config.ok_or_else(|| NetError::connection("the host has no TLS"))?;
        let connector = tokio_rustls::TlsConnector::from(config);
        connector.connect(name, stream).await.map_err(|error| {
            let server = target.server();
            match NetError::from_io(&error, &server) {
                NetError { kind: NetErrorKind::Connection, .. } => {
                    NetError::connection(format!("TLS with {server} failed: {error}"))
                }
                NetError { kind: NetErrorKind::Cut, .. } => {
                    NetError::new(NetErrorKind::Reset, format!("{server} broke the connection off"))
                }
                known => known,
            }
        })
    }
}
