//! A connection whose every incoming byte is screened before anybody parses it.

use bytes::{Buf, BytesMut};
use node::{Refusal, Screen, Verdict};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How much of a head is read at once, in bytes; content does not pass this way.
const READ_BYTES: usize = 4096;

/// Wraps a connection; what is refused ends it with an error that carries a [`Refusal`].
#[derive(Debug)]
pub struct Screened<S> {
    stream: S,
    screen: Screen,
    signs: Arc<Signs>,
    /// Read, but not given on yet.
    held: BytesMut,
    /// How much of what is held may be given on.
    cleared: usize,
}

/// What whoever uses the connection and the wrapper tell each other.
#[derive(Debug, Default)]
pub struct Signs {
    /// The next response answers a HEAD.
    pub to_head: AtomicBool,
    /// A response is being written: nothing may be said between.
    pub busy: AtomicBool,
}

impl<S> Screened<S> {
    /// Screens a connection from its beginning; `first` has been read from it already.
    pub fn new(stream: S, screen: Screen, first: BytesMut) -> Self {
        Self { stream, screen, signs: Arc::default(), held: first, cleared: 0 }
    }

    /// What to tell the wrapper once it is in somebody else's hands.
    pub fn signs(&self) -> Arc<Signs> {
        Arc::clone(&self.signs)
    }

    fn give(&mut self, out: &mut ReadBuf<'_>) {
        let count = self.cleared.min(out.remaining());
        out.put_slice(&self.held[..count]);
        self.held.advance(count);
        self.cleared -= count;
    }
}

/// The refusal that ended a connection, if one did.
pub fn refusal(error: &(dyn std::error::Error + 'static)) -> Option<Refusal> {
    let mut error = Some(error);
    while let Some(cause) = error {
        if let Some(io) = cause.downcast_ref::<io::Error>()
            && let Some(refusal) = io.get_ref().and_then(|inner| inner.downcast_ref::<Refusal>())
        {
            return Some(*refusal);
        }
        error = cause.source();
    }
    None
}

impl<S: AsyncRead + AsyncWrite + Unpin> Screened<S> {
    /// Tells the client, as far as its socket takes it at once, and ends the connection.
    fn refuse(&mut self, cx: &mut Context<'_>, refusal: Refusal) -> io::Error {
        if !self.signs.busy.load(Ordering::Relaxed) {
            let status = refusal.status();
            let text = format!(
                "HTTP/1.1 {} {}\r\nConnection: close\r\nContent-Type: text/plain\r\n\
                 Content-Length: {}\r\n\r\n{refusal}\n",
                status.as_u16(),
                status.canonical_reason().unwrap_or_default(),
                refusal.to_string().len() + 1,
            );
            // The connection ends in any case: what cannot be written at once is not worth a wait.
            let _ = Pin::new(&mut self.stream).poll_write(cx, text.as_bytes());
        }
        io::Error::new(io::ErrorKind::InvalidData, refusal)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Screened<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            if this.cleared > 0 {
                this.give(out);
                return Poll::Ready(Ok(()));
            }
            if this.held.is_empty() && this.screen.unseen() > 0 {
                return this.read_through(cx, out);
            }
            this.screen.expect(this.signs.to_head.load(Ordering::Relaxed));
            match this.screen.judge(&this.held) {
                Verdict::Pass(count) => this.cleared = count,
                Verdict::Refuse(refusal) => return Poll::Ready(Err(this.refuse(cx, refusal))),
                Verdict::More => {
                    this.held.reserve(READ_BYTES);
                    let read = read_behind(&mut this.stream, cx, &mut this.held);
                    if ready!(read)? == 0 {
                        return Poll::Ready(Ok(()));
                    }
                }
            }
        }
    }
}

impl<S: AsyncRead + Unpin> Screened<S> {
    /// Content is not looked at, so it is not copied either.
    fn read_through(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let most = usize::try_from(self.screen.unseen()).unwrap_or(usize::MAX);
        let before = out.filled().len();
        let ready = if most >= out.remaining() {
            Pin::new(&mut self.stream).poll_read(cx, out)
        } else {
            let mut part = ReadBuf::new(out.initialize_unfilled_to(most));
            let ready = Pin::new(&mut self.stream).poll_read(cx, &mut part);
            let count = part.filled().len();
            out.advance(count);
            ready
        };
        self.screen.skip((out.filled().len() - before) as u64);
        ready
    }
}

/// Reads some bytes behind those that are held.
fn read_behind<S: AsyncRead + Unpin>(
    stream: &mut S,
    cx: &mut Context<'_>,
    held: &mut BytesMut,
) -> Poll<io::Result<usize>> {
    let start = held.len();
    held.resize(start + READ_BYTES, 0);
    let mut part = ReadBuf::new(&mut held[start..]);
    let ready = Pin::new(stream).poll_read(cx, &mut part);
    let count = part.filled().len();
    held.truncate(start + count);
    ready.map(|ready| ready.map(|()| count))
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Screened<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    #[tokio::test(flavor = "current_thread")]
    async fn sound_bytes_pass_and_others_end_the_connection() {
        let (mut client, server) = duplex(1 << 16);
        let mut server = Screened::new(server, Screen::requests(), BytesMut::from(&b"POST /"[..]));
        let sound = b" HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n\0\r\n:)";
        client.write_all(sound).await.unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n").await.unwrap();
        let mut passed = Vec::new();
        let error = server.read_to_end(&mut passed).await.unwrap_err();
        assert_eq!(passed, [b"POST /", &sound[..]].concat());
        assert_eq!(refusal(&error), Some(Refusal::Host));
        drop(server);
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{answer}");
        assert!(answer.ends_with("there must be exactly one Host\n"), "{answer}");
    }
}
