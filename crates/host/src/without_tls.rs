//! What `tls.rs` is in a program that was built without TLS: nothing can be made, so fetches that need it fail.

use crate::traffic::Metered;
use node::{Dial, FetchError};
use std::convert::Infallible;
use std::path::Path;

/// What is needed to speak TLS to origins; it cannot exist.
#[derive(Clone)]
pub struct Tls(Infallible);

/// Why TLS cannot be spoken.
#[derive(Debug, thiserror::Error)]
#[error("this program was built without TLS: take one that was built with it")]
pub struct TlsError;

impl Tls {
    /// # Errors
    /// Always.
    pub fn new(_extra: Option<&Path>) -> Result<Self, TlsError> {
        Err(TlsError)
    }

    /// Nothing.
    pub fn of_system() -> Option<Self> {
        None
    }

    /// # Errors
    /// Never called: there is none to call it on.
    pub async fn greet(&self, _host: &str, _stream: tokio::net::TcpStream) -> Result<(), String> {
        match self.0 {}
    }

    pub(crate) async fn connect(
        &self,
        _to: &Dial,
        _stream: Metered,
    ) -> Result<Metered, FetchError> {
        match self.0 {}
    }
}
