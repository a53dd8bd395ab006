//! A connection whose incoming bytes are checked before any parser sees them.

use crate::interim::Interims;
use bytes::{Buf, BufMut, BytesMut};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use node::driver::HEAD_READ_MAX;
use node::driver::admission::Meter;
use node::{Refusal, Screen, Verdict};
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};

/// The most bytes of further requests that are kept while one is answered. A client that sends more
/// gets this one response, and must repeat the other requests (RFC 9112 §9.3.2).
const AHEAD_MAX: usize = 32 * 1024;

/// Wraps a connection. A client's head that is refused is replaced by a stand-in request, to be
/// answered with the error ([`Signs::refused`]). Everything else that is refused ends the
/// connection, with an error that carries a [`Refusal`].
#[derive(Debug)]
pub struct Screened<S> {
    stream: S,
    screen: Screen,
    signs: Arc<Signs>,
    /// Bytes that were read but not passed on yet.
    held: BytesMut,
    /// The number of these bytes that may be passed on.
    cleared: usize,
    /// The other side has closed its sending direction.
    ended: bool,
    /// The current request is the last to be read: it was refused, or more data followed it than is
    /// kept.
    is_last: bool,
    /// Counts a client's connection. `None`: the connection is to an origin, and this side sends no
    /// responses.
    meter: Option<Arc<Meter>>,
}

/// State shared by the wrapper and the user of the connection.
#[derive(Debug, Default)]
pub struct Signs {
    /// The next response is to a HEAD request.
    pub to_head: AtomicBool,
    /// A request is being answered. The next one waits, and a client that closes the connection has
    /// left.
    pub busy: AtomicBool,
    /// Interim responses for the client.
    pub interims: Interims,
    /// If set, the current request is a stand-in for one that was refused for this reason.
    refused: Mutex<Option<Refusal>>,
    /// The task that waits until the next request may be read.
    waiting: Mutex<Option<Waker>>,
}

impl Signs {
    /// The refusal with which the current request must be answered, if any.
    pub fn refused(&self) -> Option<Refusal> {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The current request has been answered: the next one may be read.
    pub fn end_turn(&self) {
        self.busy.store(false, Ordering::Relaxed);
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waiting) = waiting {
            waiting.wake();
        }
    }

    fn wait_for_turn(&self, cx: &Context<'_>) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        *waiting = Some(cx.waker().clone());
    }
}

/// Replaces a refused request, so that the error is sent as its response, in order.
const STAND_IN: &[u8] = b"GET / HTTP/1.1\r\nHost: refused\r\n\r\n";

impl<S> Screened<S> {
    /// Checks a client's connection; `first` has already been read from it.
    pub fn client(stream: S, first: BytesMut, meter: Arc<Meter>) -> Self {
        Self::new(stream, Screen::requests(), first, Some(meter))
    }

    /// Checks a connection to an origin.
    pub fn origin(stream: S) -> Self {
        Self::new(stream, Screen::responses(), BytesMut::new(), None)
    }

    fn new(stream: S, screen: Screen, held: BytesMut, meter: Option<Arc<Meter>>) -> Self {
        let (signs, is_last) = (Arc::default(), false);
        Self { stream, screen, signs, held, cleared: 0, ended: false, is_last, meter }
    }

    /// The shared state, for use after the wrapper was handed over.
    pub fn signs(&self) -> Arc<Signs> {
        Arc::clone(&self.signs)
    }

    /// The connection, and the bytes that were read from it but not passed on.
    pub fn into_parts(self) -> (S, BytesMut) {
        (self.stream, self.held)
    }

    /// The connection of an upgrade, and what was read from it since; the upgrade itself if it is none of these.
    ///
    /// # Errors
    /// If it is another kind of connection.
    pub fn upgraded(upgraded: Upgraded) -> Result<(S, Vec<u8>), Upgraded>
    where
        S: AsyncRead + AsyncWrite + Unpin + 'static,
    {
        let parts = upgraded.downcast::<TokioIo<Self>>()?;
        let (stream, unread) = parts.io.into_inner().into_parts();
        Ok((stream, [&parts.read_buf[..], &unread[..]].concat()))
    }

    fn give(&mut self, out: &mut ReadBuf<'_>) {
        let count = self.cleared.min(out.remaining());
        out.put_slice(&self.held[..count]);
        self.held.advance(count);
        self.cleared -= count;
    }
}

/// The refusal that caused an error, if any.
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

impl<S: AsyncRead + Unpin> AsyncRead for Screened<S> {
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
            // Content goes directly into the caller's buffer.
            if this.held.is_empty() && this.screen.unseen() > 0 {
                return this.read_through(cx, out);
            }
            // The next request must wait until the current one is answered.
            if this.screen.is_between() && this.signs.busy.load(Ordering::Relaxed) {
                return this.watch(cx);
            }
            this.screen.expect(this.signs.to_head.load(Ordering::Relaxed));
            match this.screen.judge(&this.held) {
                Verdict::Pass(count) => this.clear(count),
                Verdict::Refuse(refusal) => this.refuse(refusal)?,
                Verdict::More if this.ended || this.is_last => return Poll::Ready(Ok(())),
                Verdict::More => {
                    this.note_head();
                    this.ended = ready!(this.wait_for_more(cx))? == 0;
                }
            }
        }
    }
}

impl<S: AsyncRead + Unpin> Screened<S> {
    /// While a request is being answered, nothing more is passed on, but the client may leave. A
    /// client that closes its sending direction counts as gone: simple clients that still want to
    /// read do the same, but cannot be distinguished.
    fn watch(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.signs.wait_for_turn(cx);
        while !self.ended {
            self.ended = ready!(self.read_more(cx))? == 0;
            self.is_last |= self.held.len() > AHEAD_MAX;
            if self.is_last {
                self.held.clear();
            }
        }
        Poll::Ready(Ok(()))
    }

    fn clear(&mut self, count: usize) {
        self.cleared = count;
        if let Some(meter) = &self.meter {
            meter.holds(false);
        }
    }

    fn note_head(&self) {
        if let Some(meter) = &self.meter {
            meter.holds(self.screen.is_between() && !self.held.is_empty());
        }
    }

    fn wait_for_more(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let ready = self.read_more(cx);
        self.note_waiting(ready.is_pending());
        ready
    }

    /// Tells the meter whether the daemon waits for the client's content.
    fn note_waiting(&self, is_pending: bool) {
        if is_pending && let Some(meter) = &self.meter {
            meter.waits();
        }
    }

    fn read_more(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.held.reserve(HEAD_READ_MAX);
        read_behind(&mut self.stream, cx, &mut self.held)
    }

    /// A refused head is answered in order, and everything after it is ignored. Within content no
    /// response is possible, so the connection ends.
    fn refuse(&mut self, refusal: Refusal) -> io::Result<()> {
        if !self.screen.is_between() || self.meter.is_none() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, refusal));
        }
        *self.signs.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(refusal);
        self.held = BytesMut::from(STAND_IN);
        self.cleared = STAND_IN.len();
        self.is_last = true;
        Ok(())
    }

    /// Content need not be checked, so it is not copied either.
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
        self.note_waiting(ready.is_pending());
        ready
    }
}

/// Reads further bytes after those that are held.
fn read_behind<S: AsyncRead + Unpin>(
    stream: &mut S,
    cx: &mut Context<'_>,
    held: &mut BytesMut,
) -> Poll<io::Result<usize>> {
    let mut part = held.limit(HEAD_READ_MAX);
    // Into uninitialised memory, which saves zeroing it.
    pin!(stream.read_buf(&mut part)).poll(cx)
}

impl<S: AsyncWrite + Unpin> Screened<S> {
    fn write_interims(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.signs.interims.poll_write(cx, &mut self.stream)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Screened<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.write_interims(cx))?;
        self.signs.interims.begin();
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.write_interims(cx))?;
        self.signs.interims.begin();
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.signs.interims.end();
        ready!(self.write_interims(cx))?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderValue, StatusCode, header};
    use tokio::io::{AsyncWriteExt, DuplexStream, duplex};

    const SOUND: &[u8] = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n\0\r\n:)";

    async fn client() -> (DuplexStream, Screened<DuplexStream>) {
        let (mut client, server) = duplex(1 << 16);
        let (first, rest) = SOUND.split_at(6);
        client.write_all(rest).await.unwrap();
        (client, Screened::client(server, BytesMut::from(first), Arc::default()))
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_bad_head_becomes_a_stand_in_and_nothing_follows() {
        let (mut client, mut server) = client().await;
        client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\nGET ").await.unwrap();
        let mut passed = Vec::new();
        server.read_to_end(&mut passed).await.unwrap();
        assert_eq!(passed, [SOUND, STAND_IN].concat());
        assert_eq!(server.signs().refused(), Some(Refusal::Host));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn bad_content_ends_the_connection() {
        let (mut client, mut server) = client().await;
        let bad = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n";
        client.write_all(bad).await.unwrap();
        let error = server.read_to_end(&mut Vec::new()).await.unwrap_err();
        assert_eq!(refusal(&error), Some(Refusal::Chunk));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn the_next_request_waits_for_its_turn() {
        let (mut client, mut server) = client().await;
        server.read_exact(&mut vec![0; SOUND.len()]).await.unwrap();
        server.signs().busy.store(true, Ordering::Relaxed);
        client.write_all(SOUND).await.unwrap();
        let next = tokio::time::timeout(std::time::Duration::ZERO, server.read_u8()).await;
        assert!(next.is_err(), "it was passed on at once");
        server.signs().busy.store(false, Ordering::Relaxed);
        server.read_exact(&mut vec![0; SOUND.len()]).await.unwrap();
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn the_end_of_a_turn_wakes_the_waiter_for_the_next() {
        let (mut client, mut server) = client().await;
        server.read_exact(&mut vec![0; SOUND.len()]).await.unwrap();
        let signs = server.signs();
        signs.busy.store(true, Ordering::Relaxed);
        client.write_all(SOUND).await.unwrap();
        let end = async {
            tokio::task::yield_now().await;
            signs.end_turn();
        };
        let mut next = vec![0; SOUND.len()];
        let both = async { tokio::join!(server.read_exact(&mut next), end) };
        tokio::time::timeout(std::time::Duration::from_secs(5), both).await.unwrap().0.unwrap();
    }

    const HINTS: &[u8] = b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";

    fn send_hints(signs: &Signs) {
        let link = HeaderValue::from_static("</a>");
        signs.interims.send(StatusCode::EARLY_HINTS, &[(header::LINK, link)].into_iter().collect());
    }

    #[tokio::test(flavor = "current_thread")]
    async fn an_interim_response_comes_before_the_next_bytes_and_within_none() {
        let (mut client, mut server) = client().await;
        let signs = server.signs();
        server.write_all(b"one").await.unwrap();
        // More of the same response may follow.
        send_hints(&signs);
        server.write_all(b"two").await.unwrap();
        server.flush().await.unwrap();
        send_hints(&signs);
        assert!(signs.interims.is_waiting());
        server.flush().await.unwrap();
        assert!(!signs.interims.is_waiting(), "a flush sends it");
        send_hints(&signs);
        server.write_all(b"three").await.unwrap();
        drop(server);
        let mut got = Vec::new();
        client.read_to_end(&mut got).await.unwrap();
        assert_eq!(
            got.escape_ascii().to_string(),
            [b"onetwo", HINTS, HINTS, b"three"].concat().escape_ascii().to_string()
        );
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_client_that_does_not_read_is_sent_few_interim_responses() {
        let (client, server) = duplex(16);
        let mut server = Screened::client(server, BytesMut::new(), Arc::default());
        let signs = server.signs();
        for _ in 0..10_000 {
            send_hints(&signs);
        }
        let write = tokio::time::timeout(std::time::Duration::ZERO, server.write_all(b"x")).await;
        assert!(write.is_err(), "it was written amid an interim response");
        let mut client = client;
        let mut got = Vec::new();
        let (rest, _) = tokio::join!(
            async {
                server.write_all(b"x").await.unwrap();
                drop(server);
            },
            client.read_to_end(&mut got)
        );
        let () = rest;
        let hints = got.strip_suffix(b"x").unwrap();
        assert!(hints.len() <= 8 * 1024 && hints.len() > 7 * 1024, "{} bytes", hints.len());
        assert!(hints.chunks(HINTS.len()).all(|hint| hint == HINTS), "one is cut");
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn a_client_that_ends_has_left_whatever_it_sent_before() {
        for ahead in [0, 1, 3 * AHEAD_MAX] {
            let (mut client, mut server) = client().await;
            server.read_exact(&mut vec![0; SOUND.len()]).await.unwrap();
            server.signs().busy.store(true, Ordering::Relaxed);
            let next = tokio::time::timeout(std::time::Duration::ZERO, server.read_u8()).await;
            assert!(next.is_err(), "{ahead}: it has left before it did");
            let send = async {
                client.write_all(&vec![b'a'; ahead]).await.unwrap();
                drop(client);
            };
            let left = async { tokio::join!(server.read_u8(), send).0 };
            let left = tokio::time::timeout(std::time::Duration::from_secs(5), left).await;
            let error = left.expect("it has left").unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{ahead}");
            assert!(server.held.len() <= AHEAD_MAX + HEAD_READ_MAX, "{ahead}: all of it is kept");
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn who_sends_too_much_ahead_gets_one_answer() {
        let (mut client, mut server) = client().await;
        server.read_exact(&mut vec![0; SOUND.len()]).await.unwrap();
        let signs = server.signs();
        signs.busy.store(true, Ordering::Relaxed);
        client.write_all(&SOUND.repeat(AHEAD_MAX / SOUND.len() + 200)).await.unwrap();
        let next = tokio::time::timeout(std::time::Duration::ZERO, server.read_u8()).await;
        assert!(next.is_err(), "it was passed on at once");
        signs.end_turn();
        let mut rest = Vec::new();
        server.read_to_end(&mut rest).await.unwrap();
        assert!(rest.is_empty(), "{} bytes", rest.len());
    }
}
