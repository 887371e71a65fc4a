//! Certificate authorities that a user names in addition to those that are trusted anyway.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use base64::prelude::{BASE64_STANDARD, Engine};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls_native_certs::ErrorKind;

use crate::Error;
use crate::error::plain;

/// The maximum size of a file of certificates, in bytes.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// The length of a line of a certificate in PEM form.
const LINE: usize = 64;

/// Certificates of authorities. By default there are none.
#[derive(Debug, Clone, Default)]
pub struct Authorities {
    certificates: Vec<CertificateDer<'static>>,
    pem: String,
}

impl Authorities {
    /// Returns those that the system trusts, or those of the variables `SSL_CERT_FILE` and
    /// `SSL_CERT_DIR`. What cannot be read is left out.
    #[must_use]
    pub fn of_system() -> Self {
        let certificates = rustls_native_certs::load_native_certs().certs;
        let lines = |der: &[u8]| {
            let text = BASE64_STANDARD.encode(der);
            let mut pem = String::from("-----BEGIN CERTIFICATE-----\n");
            for (at, letter) in text.char_indices() {
                if at > 0 && at % LINE == 0 {
                    pem.push('\n');
                }
                pem.push(letter);
            }
            pem + "\n-----END CERTIFICATE-----\n"
        };
        let pem = certificates.iter().map(|certificate| lines(certificate)).collect();
        Self { certificates, pem }
    }

    /// Adds the certificates of a PEM file.
    ///
    /// # Errors
    ///
    /// [`Error::Authorities`] if the file cannot be read, is larger than 4 MiB, or does not consist
    /// of certificates of authorities.
    pub fn add_file(&mut self, path: &Path) -> Result<(), Error> {
        let wrong = |reason| Error::Authorities { path: path.to_owned(), reason };
        let bytes = read(path).map_err(wrong)?;
        self.add_pem(&bytes).map_err(wrong)
    }

    /// Adds the certificates of a PEM text.
    ///
    /// # Errors
    ///
    /// What is wrong with the text, as part of a sentence.
    pub fn add_pem(&mut self, pem: &[u8]) -> Result<(), String> {
        let before = self.certificates.len();
        for (index, certificate) in CertificateDer::pem_slice_iter(pem).enumerate() {
            let number = index + 1;
            let certificate =
                certificate.map_err(|error| format!("certificate {number} is broken: {error}"))?;
            let is_usable = RootCertStore::empty().add(certificate.clone());
            is_usable.map_err(|error| format!("certificate {number} is of no use: {error}"))?;
            self.certificates.push(certificate);
        }
        if self.certificates.len() == before {
            return Err("it has no certificate in PEM form (`BEGIN CERTIFICATE`)".to_owned());
        }
        self.pem.push_str(&String::from_utf8_lossy(pem));
        self.pem.push('\n');
        Ok(())
    }

    /// Returns `true` if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.certificates.is_empty()
    }

    /// Returns the texts that were added, one after the other.
    #[must_use]
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// Returns the certificates in DER form.
    pub fn der(&self) -> impl Iterator<Item = &[u8]> {
        self.certificates.iter().map(AsRef::as_ref)
    }

    pub(super) fn certificates(&self) -> impl Iterator<Item = &CertificateDer<'static>> {
        self.certificates.iter()
    }
}

/// Returns what is wrong with the first file or directory of the system's certificates, or of those
/// of the variables, that cannot be read.
pub(super) fn unreadable() -> Option<String> {
    let error = rustls_native_certs::load_native_certs().errors.into_iter().next()?;
    Some(match &error.kind {
        ErrorKind::Io { inner, path } => {
            format!("`{}` cannot be read: {}", path.display(), plain(inner))
        }
        _ => error.to_string(),
    })
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    // Opening a FIFO would wait.
    let is_file = path.metadata().map_err(|error| plain(&error))?.is_file();
    if !is_file {
        return Err("it is not a regular file".to_owned());
    }
    let file = File::open(path).map_err(|error| plain(&error))?;
    let read = file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| plain(&error))?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(format!("it has more than {MAX_FILE_BYTES} bytes"));
    }
    Ok(bytes)
}
