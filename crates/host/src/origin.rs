//! Requests to origins, over persistent connections.

use crate::clock::Clock;
use crate::content::Content;
use crate::dial::Dialler;
use crate::interim::{Early, Taker};
use crate::progress::{Progress, Watched};
use crate::screened::{Screened, Signs, refusal};
use crate::tls::Tls;
use http::{Request, Response, StatusCode, Version, header};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use node::driver::{HEAD_MAX, Made, OriginPool, READ_MAX};
use node::{Binding, Exit, Fetch, FetchError, frame};
use std::cell::RefCell;
use std::error::Error as _;
use std::io;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

/// The longest pause in a request's content.
const CONTENT_TIMEOUT: Duration = Duration::from_secs(60);

/// An origin that cannot be dialled for this long may be out of reach: a client that could have something stale in place of its
/// answer waits no longer.
pub const SILENT: Duration = Duration::from_secs(2);

/// Idle connections to origins, kept for further requests.
#[derive(Clone)]
pub struct Pool {
    dialler: Dialler,
    tls: Option<Tls>,
    idle: Rc<RefCell<OriginPool<Connection>>>,
    clock: Clock,
    /// The size of a connection's buffer, in bytes.
    buffer: usize,
}

struct Connection {
    sender: http1::SendRequest<Watched<Content>>,
    signs: Arc<Signs>,
    made: Made,
}

/// A response, and its connection.
pub struct Answer {
    /// The head, with the content still to be read.
    pub response: Response<Incoming>,
    connection: Connection,
}

impl Pool {
    /// An empty pool. Without `tls`, fetches that need it fail.
    #[must_use]
    pub fn new(dialler: Dialler, tls: Option<Tls>) -> Self {
        let (idle, clock) = (Rc::default(), Clock::start());
        Self { dialler, tls, idle, clock, buffer: READ_MAX }
    }

    /// A pool whose connections have buffers of this many bytes (default: 64 KiB, at least 8 KiB). What is read at one time is
    /// shorter than two of them.
    #[must_use]
    pub fn with_buffers(self, bytes: usize) -> Self {
        Self { buffer: bytes, ..self }
    }

    /// A pool for another tenant, of at most this many idle connections: no request of one follows that of another.
    #[must_use]
    pub fn apart(&self, room: usize) -> Self {
        Self { idle: Rc::new(RefCell::new(OriginPool::with_room(room))), ..self.clone() }
    }

    /// The dialler that makes its connections.
    #[must_use]
    pub fn dialler(&self) -> &Dialler {
        &self.dialler
    }

    /// Sends a request, and waits for the head of the response. What is to be told before goes to `early`.
    pub async fn ask(
        &self,
        fetch: &Fetch,
        mut content: Content,
        early: Option<Taker>,
    ) -> Result<Answer, FetchError> {
        let has_content = !content.is_none();
        let kept = self.take(fetch, has_content);
        if let Some(kept) = kept {
            let sent = send(kept, fetch, content, early.clone());
            match self.watched(fetch, has_content, early.as_ref(), sent).await {
                Ok((response, connection)) => return Ok(Answer { response, connection }),
                // The origin had closed the connection before it saw the request: try on a new one.
                Err(Failed::Stale) if !has_content && fetch.method.is_idempotent() => {
                    content = Content::None;
                }
                Err(Failed::Stale) => return Err(FetchError::Truncated),
                Err(Failed::For(error)) => return Err(error),
            }
        }
        let connection = self.connect(fetch, early.as_ref()).await?;
        match send(connection, fetch, content, early).await {
            Ok((response, connection)) => Ok(Answer { response, connection }),
            Err(Failed::Stale) => Err(FetchError::Truncated),
            Err(Failed::For(error)) => Err(error),
        }
    }

    /// Waits for what a request on a kept connection gives. Its origin may be out of reach since the last one: after half of
    /// the time that makes it silent it is dialled, to see whether it is. If it cannot be dialled, there will be no answer.
    async fn watched<T>(
        &self,
        fetch: &Fetch,
        has_content: bool,
        early: Option<&Taker>,
        sent: impl Future<Output = Result<T, Failed>>,
    ) -> Result<T, Failed> {
        let mut sent = std::pin::pin!(sent);
        let Some(early) = early.filter(|_| !has_content) else { return sent.await };
        if let Ok(done) = timeout(SILENT / 2, sent.as_mut()).await {
            return done;
        }
        let mut dial = std::pin::pin!(self.dialler.dial(&fetch.dial, fetch.client, fetch.caller));
        let dialled = tokio::select! {
            done = sent.as_mut() => return done,
            dialled = timeout(SILENT / 2, dial.as_mut()) => dialled,
        };
        let dialled = match dialled {
            Ok(dialled) => dialled,
            Err(_) => {
                let _ = early.try_send(Early::Silent);
                tokio::select! {
                    done = sent.as_mut() => return done,
                    dialled = dial => dialled,
                }
            }
        };
        match dialled {
            Err(error @ (FetchError::TimedOut | FetchError::Unreachable)) => {
                Err(Failed::For(error))
            }
            // It is reached, or that cannot be told.
            Ok(_) | Err(_) => sent.await,
        }
    }

    async fn connect(
        &self,
        fetch: &Fetch,
        early: Option<&Taker>,
    ) -> Result<Connection, FetchError> {
        let tls = match (fetch.tls, &self.tls) {
            (false, _) => None,
            (true, Some(tls)) => Some(tls),
            (true, None) => return Err(FetchError::NoTls),
        };
        let made = self.idle.borrow().made(fetch);
        let mut dial = std::pin::pin!(self.dialler.dial(&fetch.dial, fetch.client, fetch.caller));
        let stream = match timeout(SILENT, dial.as_mut()).await {
            Ok(dialled) => dialled?,
            Err(_) => {
                early.into_iter().for_each(|early| _ = early.try_send(Early::Silent));
                dial.await?
            }
        };
        match tls {
            None => self.open(stream, made).await,
            Some(tls) => self.open(tls.connect(&fetch.dial, stream).await?, made).await,
        }
    }

    /// Begins to speak HTTP on a connection.
    async fn open<S>(&self, stream: S, made: Made) -> Result<Connection, FetchError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let screened = Screened::origin(stream);
        let signs = screened.signs();
        let (sender, driver) = http1::Builder::new()
            // By default hyper begins with a smaller buffer, and enlarges it step by step.
            .max_buf_size(self.buffer)
            .handshake(TokioIo::new(screened))
            .await
            .map_err(|_| FetchError::Truncated)?;
        // The task ends when the sender is dropped or the origin closes; requests see the errors
        // themselves.
        tokio::task::spawn_local(async move {
            if let Err(error) = driver.with_upgrades().await {
                tracing::debug!(%error, "a connection to an origin ended");
            }
        });
        Ok(Connection { sender, signs, made })
    }

    /// Keeps the connection of a response whose content has ended.
    pub async fn keep(&self, mut connection: Connected) {
        // If it is not ready, the origin is closing it, or the content was not read to its end.
        let ready = timeout(Duration::from_secs(1), connection.0.sender.ready()).await;
        if matches!(ready, Ok(Ok(()))) {
            self.put(connection.0);
        }
    }

    /// A client's connection has ended: drops those that were bound to it.
    pub fn release(&self, binding: Binding) {
        drop(self.idle.borrow_mut().release(binding));
    }

    /// Drops all connections: their destinations may now be forbidden, or cut off.
    pub fn clear(&self) {
        self.idle.borrow_mut().retain(|_| false);
    }

    /// Updates the route to the gateway, and drops connections that the change has cut off.
    pub fn follow(&self, routes: &Exit) {
        drop(self.idle.borrow_mut().follow(routes));
    }

    fn take(&self, fetch: &Fetch, has_content: bool) -> Option<Connection> {
        let mut idle = self.idle.borrow_mut();
        drop(idle.expire(self.clock.now()));
        while let Some(kept) = idle.take(fetch, has_content) {
            if kept.sender.is_ready() {
                return Some(kept);
            }
        }
        None
    }

    fn put(&self, connection: Connection) {
        let (mut idle, now) = (self.idle.borrow_mut(), self.clock.now());
        drop(idle.expire(now));
        idle.retain(|kept| !kept.sender.is_closed());
        drop(idle.put(now, connection.made.clone(), connection));
    }
}

/// A connection whose response has been read.
pub struct Connected(Connection);

impl Answer {
    /// Splits it into the response and the connection, which goes to [`Pool::keep`] when the
    /// content has ended.
    pub fn split(self) -> (Response<Incoming>, Connected) {
        (self.response, Connected(self.connection))
    }
}

enum Failed {
    /// The connection was closed before the request went out.
    Stale,
    For(FetchError),
}

async fn send(
    mut connection: Connection,
    fetch: &Fetch,
    content: Content,
    early: Option<Taker>,
) -> Result<(Response<Incoming>, Connection), Failed> {
    connection.signs.to_head.store(fetch.method == http::Method::HEAD, Ordering::Relaxed);
    connection.made.asks(fetch, !content.is_none());
    let (mut content, progress) = Watched::new(content);
    let wanted = expects(fetch).then(|| Mutex::new(Some(content.hold())));
    let mut request = request(fetch, content).ok_or(Failed::For(FetchError::Malformed))?;
    if wanted.is_some() || early.is_some() {
        hyper::ext::on_informational(&mut request, move |response| {
            if response.status() == StatusCode::CONTINUE {
                // hyper's server sends it to a client that expects it, once the content is read.
                let wanted = wanted.as_ref().and_then(|it| it.lock().ok()?.take());
                wanted.into_iter().for_each(|it| _ = it.send(()));
            } else if let Some(early) = &early {
                let (status, headers) = (response.status(), response.headers().clone());
                let _ = early.try_send(Early::Interim(status, headers));
            }
        });
    }
    let sent = connection.sender.send_request(request);
    match within_timeout(sent, &progress).await {
        Some(Ok(response)) => {
            connection.made.answers(response.headers());
            Ok((response, connection))
        }
        // The origin received part of the request at most, and never its end.
        Some(Err(_)) if progress.is_broken() => Err(Failed::For(FetchError::Unsent)),
        Some(Err(error)) => Err(failure(&error)),
        None => Err(Failed::For(FetchError::TimedOut)),
    }
}

/// Whether a request's content is to wait for a 100 (Continue) (RFC 9110 §10.1.1).
fn expects(fetch: &Fetch) -> bool {
    let value = fetch.headers.get(header::EXPECT);
    value.is_some_and(|it| it.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}

/// Waits for a response: for each pause of the content, then for the origin to answer.
async fn within_timeout<F: Future>(answer: F, progress: &Progress) -> Option<F::Output> {
    let deadline = || {
        let timeout = if progress.is_done() { HEAD_MAX } else { CONTENT_TIMEOUT };
        progress.last() + timeout
    };
    let mut answer = std::pin::pin!(answer);
    loop {
        let until = deadline();
        match tokio::time::timeout_at(until, answer.as_mut()).await {
            Ok(answer) => return Some(answer),
            Err(_) if deadline() <= until => return None,
            // The content has made progress meanwhile.
            Err(_) => {}
        }
    }
}

/// Translates hyper's error.
fn failure(error: &hyper::Error) -> Failed {
    if error.is_canceled() || error.is_closed() {
        Failed::Stale
    } else if error.is_parse() || refusal(error).is_some() {
        Failed::For(FetchError::Malformed)
    } else if error.is_incomplete_message() || is_cut(error) {
        Failed::Stale
    } else {
        Failed::For(FetchError::Truncated)
    }
}

/// Whether the origin closed a TLS connection without announcing the end, as many do.
fn is_cut(error: &hyper::Error) -> bool {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::UnexpectedEof)
}

/// The meaning of an error within a response's content.
pub fn broken(error: &hyper::Error) -> FetchError {
    if error.is_parse() || refusal(error).is_some() {
        FetchError::Malformed
    } else {
        FetchError::Truncated
    }
}

fn request(fetch: &Fetch, content: Watched<Content>) -> Option<Request<Watched<Content>>> {
    let has_content = !content.is_end_stream();
    let mut request = Request::new(content);
    *request.method_mut() = fetch.method.clone();
    *request.uri_mut() = fetch.path.parse().ok()?;
    *request.version_mut() = Version::HTTP_11;
    *request.headers_mut() = fetch.headers.clone();
    // hyper trusts the fields, whatever content there is.
    frame(request.headers_mut(), has_content);
    Some(request)
}

/// The bytes of a request's head, for a connection that is only relayed.
pub fn head_bytes(fetch: &Fetch) -> Vec<u8> {
    node::head_bytes(&fetch.method, &fetch.path, &fetch.headers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::Traffic;
    use bytes::Bytes;
    use http_body_util::{BodyExt as _, Full};
    use node::{Caller, Dial, Interface, RouteSource, Uplink};
    use std::cell::Cell;
    use std::net::SocketAddr;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    /// An origin that answers all requests, and keeps all connections open.
    async fn origin() -> (SocketAddr, Rc<Cell<usize>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, made) = (listener.local_addr().unwrap(), Rc::<Cell<usize>>::default());
        let count = Rc::clone(&made);
        tokio::task::spawn_local(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                count.set(count.get() + 1);
                tokio::task::spawn_local(async move {
                    let mut head = Vec::new();
                    while let Ok(byte) = stream.read_u8().await {
                        head.push(byte);
                        if head.ends_with(b"\r\n\r\n") {
                            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx";
                            stream.write_all(answer).await.unwrap();
                        }
                    }
                });
            }
        });
        (address, made)
    }

    fn asked(address: SocketAddr) -> Fetch {
        Fetch {
            dial: Dial::Address(address),
            tls: false,
            client: address.ip(),
            caller: Caller::ThisMachine,
            method: http::Method::GET,
            path: "/".into(),
            headers: http::HeaderMap::new(),
            exchange: None,
            binding: None,
        }
    }

    async fn pool() -> Pool {
        let egress = crate::egress::follow(Vec::new(), &[]).await.unwrap();
        Pool::new(Dialler::new(node::Access::default(), egress, Traffic::default()), None)
    }

    #[tokio::test(flavor = "current_thread")]
    async fn no_piece_of_an_answer_is_as_long_as_two_buffers() {
        let all = async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let fetch = asked(listener.local_addr().unwrap());
            tokio::task::spawn_local(async move {
                let (mut stream, _) = listener.accept().await.unwrap();
                let head = b"HTTP/1.1 200 OK\r\ncontent-length: 300000\r\n\r\n";
                stream.write_all(head).await.unwrap();
                stream.write_all(&[0; 300_000]).await.unwrap();
                std::future::pending::<()>().await
            });
            let pool = pool().await.with_buffers(9000);
            let answer = pool.ask(&fetch, Content::None, None).await.unwrap();
            let mut body = answer.split().0.into_body();
            let mut longest = 0;
            while let Some(frame) = body.frame().await {
                longest = longest.max(frame.unwrap().into_data().unwrap().len());
            }
            assert!((9000..18_000).contains(&longest), "{longest}");
        };
        tokio::task::LocalSet::new().run_until(all).await;
    }

    fn out_by(interface: &str) -> Exit {
        let interface = Some(Interface { name: interface.into(), index: 1 });
        Exit::Gateway(Uplink { address: None, interface, source: RouteSource::Kernel })
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_connection_by_a_former_way_out_serves_no_more() {
        let all = async {
            let (address, made) = origin().await;
            let (fetch, pool) = (asked(address), pool().await);
            for (interface, connections) in [("wan0", 1), ("wan0", 1), ("wan1", 2), ("wan1", 2)] {
                pool.follow(&out_by(interface));
                let answer = pool.ask(&fetch, Content::None, None).await.unwrap();
                let (response, connection) = answer.split();
                response.into_body().collect().await.unwrap();
                pool.keep(connection).await;
                assert_eq!(made.get(), connections, "by {interface}");
            }
        };
        tokio::task::LocalSet::new().run_until(all).await;
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn an_origin_may_think_longer_than_a_request_may_pause() {
        let begun = tokio::time::Instant::now();
        let (content, progress) = Watched::new(Full::new(Bytes::from("abc")));
        assert_eq!(within_timeout(std::future::pending::<()>(), &progress).await, None);
        assert_eq!(begun.elapsed().as_secs(), CONTENT_TIMEOUT.as_secs());
        // From here on all content has been sent.
        drop(content);
        assert_eq!(within_timeout(std::future::pending::<()>(), &progress).await, None);
        let both = CONTENT_TIMEOUT + HEAD_MAX;
        assert_eq!(begun.elapsed().as_secs(), both.as_secs());
    }
}
