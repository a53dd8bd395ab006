//! TLS towards origins: which certificates are trusted, and the handshake.
//!
//! *What this is:* one client configuration, shared by all connections, so that later ones resume the sessions
//! of earlier ones. *Who calls it:* `origin.rs`, for each connection that a fetch wants encrypted. *What it
//! never does:* continue in clear, or with an origin that it could not verify.

use crate::traffic::Metered;
use node::driver::DIAL_MAX;
use node::{Dial, FetchError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, Error, RootCertStore};

/// Where systems keep the certificates of the CAs that they trust: Debian, Alpine and OpenWrt; the
/// BSDs; Fedora.
const BUNDLES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/ssl/cert.pem", "/etc/pki/tls/certs/ca-bundle.crt"];
/// Names another such file, as for OpenSSL.
const BUNDLE_VARIABLE: &str = "SSL_CERT_FILE";
/// The most servers whose sessions are remembered, to be resumed.
const SESSIONS_MAX: usize = 256;

/// What is needed to speak TLS to origins. `None` in it: this machine trusts no CA.
#[derive(Clone)]
pub struct Tls(Arc<OnceLock<Option<TlsConnector>>>);

/// Why TLS cannot be spoken.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file of certificates cannot be read, or is not PEM.
    #[error("cannot read certificates from {}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: pem::Error,
    },
    /// A file contains no certificate that can be used.
    #[error("{} contains no certificate of a CA", .0.display())]
    Empty(PathBuf),
    /// No CA is trusted: the system has no list, and none was given.
    #[error(
        "this machine has no list of trusted CAs: install its package ca-certificates, or name a list by \
         {BUNDLE_VARIABLE}"
    )]
    NoRoots,
}

impl Tls {
    /// Trusts the CAs that the system trusts, and those in the PEM file `extra`.
    ///
    /// # Errors
    /// If a file of certificates cannot be used, or there is none.
    pub fn new(extra: Option<&Path>) -> Result<Self, TlsError> {
        let named = std::env::var_os(BUNDLE_VARIABLE).map(PathBuf::from);
        let standard = || BUNDLES.map(PathBuf::from).into_iter().find(|path| path.exists());
        Self::trusting(named.or_else(standard).as_deref().into_iter().chain(extra))
    }

    /// Trusts the CAs that the system trusts. They are read when they are first needed: many routers never fetch by TLS,
    /// and have little memory.
    pub fn of_system() -> Option<Self> {
        Some(Self(Arc::default()))
    }

    fn connector(&self) -> Option<&TlsConnector> {
        let read = || match Self::new(None) {
            Ok(tls) => tls.0.get().cloned().flatten(),
            Err(error) => {
                tracing::warn!("this router cannot fetch https itself: {error}");
                None
            }
        };
        self.0.get_or_init(read).as_ref()
    }

    /// Shakes hands with a host on a connection, and verifies it; nothing is asked of it. At most for [`DIAL_MAX`].
    ///
    /// # Errors
    /// If the host does not prove its name, or the connection breaks off: the reason in a sentence.
    pub async fn greet(&self, host: &str, stream: tokio::net::TcpStream) -> Result<(), String> {
        let connector = self.connector().ok_or_else(|| TlsError::NoRoots.to_string())?;
        let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
        match tokio::time::timeout(DIAL_MAX, connector.connect(name, stream)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("no answer in time".to_owned()),
        }
    }

    fn trusting<'a>(files: impl Iterator<Item = &'a Path>) -> Result<Self, TlsError> {
        let mut roots = RootCertStore::empty();
        for path in files {
            // Old lists contain certificates that no longer count as such; the others do.
            let (added, _) = roots.add_parsable_certificates(read(path)?);
            if added == 0 {
                return Err(TlsError::Empty(path.to_owned()));
            }
        }
        if roots.is_empty() {
            return Err(TlsError::NoRoots);
        }
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("it has ciphers for TLS 1.2 and 1.3")
            .with_root_certificates(roots)
            .with_no_client_auth();
        // The origin must not choose HTTP/2, which is not spoken here.
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config.resumption = Resumption::in_memory_sessions(SESSIONS_MAX);
        let connector = TlsConnector::from(Arc::new(config));
        Ok(Self(Arc::new(OnceLock::from(Some(connector)))))
    }

    /// Makes a connection a TLS connection with the host that was dialled.
    pub(crate) async fn connect(
        &self,
        to: &Dial,
        stream: Metered,
    ) -> Result<TlsStream<Metered>, FetchError> {
        // A name that no certificate can contain.
        let name = name(to).ok_or(FetchError::Untrusted)?;
        match tokio::time::timeout(
            DIAL_MAX,
            self.connector().ok_or(FetchError::NoTls)?.connect(name, stream),
        )
        .await
        {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => {
                tracing::debug!(%error, ?to, "a TLS handshake failed");
                Err(failure(&error))
            }
            Err(_) => Err(FetchError::TimedOut),
        }
    }
}

/// The certificates in a PEM file.
fn read(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    read.map_err(|error| TlsError::Unreadable { path: path.to_owned(), error })
}

/// The name that the certificate must contain.
fn name(to: &Dial) -> Option<ServerName<'static>> {
    match to {
        Dial::Name(host, _) => {
            // URIs have IPv6 addresses in brackets, certificates have not.
            let host = host.trim_start_matches('[').trim_end_matches(']');
            ServerName::try_from(host.to_owned()).ok()
        }
        Dial::Address(address) => Some(address.ip().to_canonical().into()),
    }
}

/// The meaning of a failed handshake.
fn failure(error: &io::Error) -> FetchError {
    match error.get_ref().and_then(|cause| cause.downcast_ref::<Error>()) {
        Some(Error::InvalidCertificate(_) | Error::NoCertificatesPresented) => {
            FetchError::Untrusted
        }
        Some(_) => FetchError::NotTls,
        None => FetchError::Truncated,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_read_for_what_was_dialled() {
        let of = |host: &str| name(&Dial::Name(host.into(), 443));
        assert_eq!(of("a.test"), ServerName::try_from("a.test").ok());
        assert_eq!(of("[2001:db8::1]"), ServerName::try_from("2001:db8::1").ok());
        assert_eq!(of("192.0.2.1"), name(&Dial::Address("[::ffff:192.0.2.1]:1".parse().unwrap())));
        assert_eq!(of("no name"), None);
    }

    #[test]
    fn without_certificates_there_is_no_tls() {
        let trusting = |path: &str| Tls::trusting([Path::new(path)].into_iter()).err();
        let this = concat!(env!("CARGO_MANIFEST_DIR"), "/src/tls.rs");
        assert!(matches!(trusting(this), Some(TlsError::Empty(_))));
        assert!(matches!(trusting("/nonexistent"), Some(TlsError::Unreadable { .. })));
        assert!(matches!(Tls::trusting([].into_iter()).err(), Some(TlsError::NoRoots)));
    }
}
