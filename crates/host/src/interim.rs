//! Interim responses (RFC 9110 §15.2) on their way from an origin to a client. hyper's server cannot send any, so they
//! are written beside it, where it has sent all of one response and nothing of the next.

use http::{HeaderMap, StatusCode};
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;
use tokio::sync::mpsc::Sender;

/// The most bytes of them that wait for a client to read.
const WAITING_MAX: usize = 8 * 1024;

/// What may be told of a request before the head of its response.
#[derive(Debug)]
pub enum Early {
    /// An interim response.
    Interim(StatusCode, HeaderMap),
    /// Nothing has come for so long that the origin may be out of reach.
    Silent,
}

/// Takes what comes early. That for which it has no room is dropped, as any interim response may be ignored (§15.2).
pub type Taker = Sender<Early>;

/// Interim responses that wait to be written on a client's connection.
#[derive(Debug, Default)]
pub struct Interims {
    waiting: Mutex<Vec<u8>>,
    /// Something waits. So that a write without interim responses takes no lock.
    is_waiting: AtomicBool,
    /// hyper has written a part of a response and may still have the rest of it.
    is_amid: AtomicBool,
}

impl Interims {
    /// Has an interim response written before anything else. It is dropped if an earlier response is not sent
    /// completely, or if too much waits already.
    pub fn send(&self, status: StatusCode, headers: &HeaderMap) {
        let bytes = encode(status, headers);
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_amid.load(Ordering::Relaxed) || waiting.len() + bytes.len() > WAITING_MAX {
            return tracing::debug!(%status, "an interim response was dropped");
        }
        waiting.extend(bytes);
        self.is_waiting.store(true, Ordering::Relaxed);
    }

    /// Whether some of them are not written yet.
    pub fn is_waiting(&self) -> bool {
        self.is_waiting.load(Ordering::Relaxed)
    }

    /// Writes those that wait, before hyper writes or flushes.
    pub fn poll_write<S: AsyncWrite + Unpin>(
        &self,
        cx: &mut Context<'_>,
        stream: &mut S,
    ) -> Poll<io::Result<()>> {
        if !self.is_waiting() {
            return Poll::Ready(Ok(()));
        }
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        while !waiting.is_empty() {
            let count = ready!(Pin::new(&mut *stream).poll_write(cx, &waiting))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            waiting.drain(..count);
        }
        self.is_waiting.store(false, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }

    /// hyper writes.
    pub fn begin(&self) {
        self.is_amid.store(true, Ordering::Relaxed);
    }

    /// hyper has flushed: it does so only when it has written all that it had.
    pub fn end(&self) {
        self.is_amid.store(false, Ordering::Relaxed);
    }
}

fn encode(status: StatusCode, headers: &HeaderMap) -> Vec<u8> {
    let reason = status.canonical_reason().unwrap_or_default();
    let mut bytes = format!("HTTP/1.1 {} {reason}\r\n", status.as_u16()).into_bytes();
    for (name, value) in headers {
        bytes.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    bytes.extend(b"\r\n");
    bytes
}
