//! TLS: the server's certificate, which can be replaced while the server runs.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;

/// The certificate with which connections begin.
pub struct Tls(RwLock<Arc<ServerConfig>>);

impl Tls {
    /// Reads a certificate, with those that have signed it, and its key, all in PEM.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be read, or the key is another certificate's.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self> {
        Ok(Self(RwLock::new(config(certificate, key)?)))
    }

    /// Replaces the certificate, for connections from here on.
    ///
    /// # Errors
    ///
    /// Fails as [`read`](Self::read). The old certificate stays.
    pub fn replace(&self, certificate: &Path, key: &Path) -> Result<()> {
        let config = config(certificate, key)?;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = config;
        Ok(())
    }

    /// Begins a connection. `None` if the client speaks no TLS, or has broken off.
    pub(super) async fn begin<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
    ) -> Option<TlsStream<S>> {
        let config = Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner));
        TlsAcceptor::from(config).accept(stream).await.ok()
    }
}

fn config(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>> {
    let shown = certificate.display();
    let certificates = CertificateDer::pem_file_iter(certificate);
    let certificates = certificates.and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates =
        certificates.with_context(|| format!("cannot read the certificate `{shown}`"))?;
    ensure!(!certificates.is_empty(), "`{shown}` has no certificate in PEM");
    let read = PrivateKeyDer::from_pem_file(key);
    let key = read.with_context(|| format!("cannot read the key `{}`", key.display()))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(certificates, key));
    let mut config = config.with_context(|| format!("cannot use the certificate `{shown}`"))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
