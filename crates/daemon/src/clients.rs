//! Clients: their connections, requests and responses.

use crate::places::{ACCEPT_PAUSE, Place, Places};
use crate::shell::{End, Port, Shell, wake};
use bytes::{Bytes, BytesMut};
use host::dial::is_own;
use host::listen::{First, first_bytes, settle};
use host::screened::{Screened, Signs};
use host::splice::splice;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use node::{Dial, Entrance, ExchangeId, FetchError, Head, Input, Refusal};
use rustix::process::{Resource, getrlimit, setrlimit};
use std::cell::RefCell;
use std::convert::Infallible;
use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_local;

/// Connections of clients at one time; more wait in the kernel.
const CONNECTIONS_MAX: usize = 2048;
/// Descriptors for everything else: peers, the store, the control socket, idle connections to origins.
const DESCRIPTORS_KEPT: u64 = crate::links::DESCRIPTORS + 256;
/// A client has so long for the head of its next request.
const HEAD_PATIENCE: Duration = Duration::from_secs(60);

/// Which port a client came in by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// The explicit proxy's.
    Explicit,
    /// The one that TPROXY rules point to.
    Transparent,
}

/// How many clients the descriptors suffice for, after asking for as many as we are allowed: a client
/// that is being served needs one for itself and one for its origin.
pub fn connections_max() -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    let wanted = 2 * CONNECTIONS_MAX as u64 + DESCRIPTORS_KEPT;
    let raised = limit.maximum.map_or(wanted, |most| most.min(wanted));
    if limit.current.is_some_and(|current| current < raised) {
        limit.current = Some(raised);
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            tracing::warn!(%error, "cannot have more descriptors: fewer clients at one time");
        }
    }
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(wanted);
    let clients = descriptors.saturating_sub(DESCRIPTORS_KEPT) / 2;
    usize::try_from(clients).unwrap_or(CONNECTIONS_MAX).clamp(16, CONNECTIONS_MAX)
}

/// Takes clients in; never returns.
pub async fn accept(shell: Shell, listener: TcpListener, door: Door, places: Rc<Places>) {
    let own_port = listener.local_addr().map_or(0, |address| address.port());
    loop {
        let vacant = places.wait().await;
        match listener.accept().await {
            Ok((stream, client)) => {
                let Some(place) = places.take(vacant, client.ip()) else {
                    tracing::debug!(%client, "it has its share of all connections: refused");
                    continue;
                };
                settle(&stream);
                spawn_local(receive(shell.clone(), stream, client.ip(), door, own_port, place));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a client");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn receive(
    shell: Shell,
    stream: TcpStream,
    client: IpAddr,
    door: Door,
    own_port: u16,
    place: Rc<Place>,
) {
    match door {
        Door::Explicit => {
            converse(shell, stream, BytesMut::new(), client, Entrance::Explicit, place).await;
        }
        Door::Transparent => intercepted(shell, stream, client, own_port, place).await,
    }
}

/// A client that meant to dial somebody else.
async fn intercepted(
    shell: Shell,
    mut stream: TcpStream,
    client: IpAddr,
    own_port: u16,
    place: Rc<Place>,
) {
    let Ok(dialled) = stream.local_addr() else { return };
    if dialled.port() == own_port && is_own(dialled.ip().to_canonical()) != Some(false) {
        // It meant us, and no rule brought it here: we would dial ourselves, again and again.
        tracing::debug!(%client, "it dialled the transparent port itself: refused");
        return;
    }
    match first_bytes(&mut stream).await {
        First::Http(first) => {
            converse(shell, stream, first, client, Entrance::Intercepted(dialled), place).await;
        }
        // The place is kept until it ends.
        First::Other(first) => relay(shell, stream, &first, client, dialled).await,
        First::Gone => {}
    }
}

/// What is not HTTP crosses untouched.
async fn relay(
    shell: Shell,
    mut stream: TcpStream,
    first: &[u8],
    client: IpAddr,
    dialled: SocketAddr,
) {
    let dialler = shell.pool().dialler();
    if let Ok(mut origin) =
        dialler.dial(&Dial::Address(dialled), client, node::Caller::Intercepted).await
        && let Ok((there, back)) = splice(&mut stream, &mut origin, first).await
    {
        shell.relayed().set(shell.relayed().get() + there + back);
    }
}

/// Serves one connection, request after request.
async fn converse(
    shell: Shell,
    stream: TcpStream,
    first: BytesMut,
    client: IpAddr,
    entrance: Entrance,
    place: Rc<Place>,
) {
    let here = stream.local_addr().map(|address| address.ip().to_canonical());
    let near = client.to_canonical();
    // Who dials an address of its own machine does so from that address.
    let at_home = near.is_loopback() || here.is_ok_and(|here| here == near);
    let behind_uplink = entrance == Entrance::Explicit
        && !at_home
        && shell.pool().dialler().egress().is_behind_uplink(client);
    let caller = Caller { client, at_home, behind_uplink, entrance };
    let screened = Screened::client(stream, first);
    let signs = screened.signs();
    let service = service_fn(move |request| {
        let turn = Turn::begin(&signs);
        let (shell, refused, place) = (shell.clone(), signs.refused(), Rc::clone(&place));
        async move {
            Ok::<_, Infallible>(match refused {
                Some(refusal) => refuse(shell, refusal, client, turn),
                None => serve(shell, request, caller, turn, place).await,
            })
        }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_PATIENCE)
        .max_buf_size(64 * 1024)
        .serve_connection(TokioIo::new(screened), service)
        .with_upgrades()
        .await;
    if let Err(error) = served {
        tracing::debug!(%client, %error, "a client's connection ended");
    }
}

/// Who asks on a connection.
#[derive(Clone, Copy)]
struct Caller {
    client: IpAddr,
    /// On this machine.
    at_home: bool,
    behind_uplink: bool,
    entrance: Entrance,
}

async fn serve(
    shell: Shell,
    mut request: Request<Incoming>,
    Caller { client, at_home, behind_uplink, entrance }: Caller,
    turn: Turn,
    place: Rc<Place>,
) -> Response<Content> {
    let (id, port) = shell.open();
    let wish = Wish::of(&request);
    if wish != Wish::Answer {
        port.borrow_mut().upgrade = Some((hyper::upgrade::on(&mut request), place));
    }
    let (head, content) = request.into_parts();
    let has_body = !content.is_end_stream();
    port.borrow_mut().content = Some(content).filter(|_| has_body);
    let request = node::Request {
        method: head.method,
        uri: head.uri,
        version: head.version,
        headers: head.headers,
        has_body,
        client,
        at_home,
        behind_uplink,
        entrance,
    };
    shell.feed(Input::Request(id, Box::new(request)));
    // Whoever breaks off from here on leaves through this value.
    let mut content = Content { shell, id, port, left: None, owed: 0, turn };
    let window = content.shell.window();
    content.shell.feed(Input::Credit(id, window));
    let head = poll_fn(|cx| content.poll_head(cx)).await;
    content.left = head.length;
    respond(head, content, wish)
}

/// What a request is to make of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    /// Nothing: it wants an answer.
    Answer,
    /// A tunnel.
    Tunnel,
    /// Another protocol, if the origin knows it.
    Upgrade,
}

impl Wish {
    fn of<B>(request: &Request<B>) -> Self {
        if request.method() == Method::CONNECT {
            Self::Tunnel
        } else if request.headers().contains_key(header::UPGRADE) {
            Self::Upgrade
        } else {
            Self::Answer
        }
    }

    /// Whether such an answer leaves the connection to HTTP, though what follows was not screened.
    fn leaves_unscreened(self, status: StatusCode) -> bool {
        match self {
            Self::Answer => false,
            Self::Tunnel => !status.is_success(),
            Self::Upgrade => status != StatusCode::SWITCHING_PROTOCOLS,
        }
    }
}

fn respond(head: Head, content: Content, wish: Wish) -> Response<Content> {
    content.turn.answer();
    let mut response = Response::new(content);
    *response.status_mut() = head.status;
    *response.headers_mut() = head.headers;
    if wish.leaves_unscreened(head.status) {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Answers a request that was refused before it was parsed, and ends the connection.
fn refuse(shell: Shell, refusal: Refusal, client: IpAddr, turn: Turn) -> Response<Content> {
    tracing::info!(%client, "refused a request: {refusal}");
    let (id, port) = shell.open();
    let text = Bytes::from(format!("{refusal}\n"));
    let left = Some(text.len() as u64);
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    port.borrow_mut().queue.push_back(text);
    port.borrow_mut().end = Some(End::Complete);
    let head = Head { status: refusal.status(), headers, length: left };
    respond(head, Content { shell, id, port, left, owed: 0, turn }, Wish::Answer)
}

/// A request's turn on its connection: the next one is not looked at before it is over.
struct Turn(Arc<Signs>);

impl Turn {
    fn begin(signs: &Arc<Signs>) -> Self {
        signs.answering.store(false, Ordering::Relaxed);
        signs.busy.store(true, Ordering::Relaxed);
        Self(Arc::clone(signs))
    }

    fn answer(&self) {
        self.0.answering.store(true, Ordering::Relaxed);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.end_turn();
    }
}

/// A response's content, as the engine leaves it.
pub struct Content {
    shell: Shell,
    id: ExchangeId,
    port: Rc<RefCell<Port>>,
    /// Bytes still to come, where that is known.
    left: Option<u64>,
    /// Bytes taken for which no credit has been given yet.
    owed: u64,
    turn: Turn,
}

/// The response cannot be completed; the connection is closed, so that the client knows.
#[derive(Debug, thiserror::Error)]
#[error("the response was broken off")]
pub struct Broken;

impl Content {
    fn poll_head(&self, cx: &mut Context<'_>) -> Poll<Head> {
        let mut port = self.port.borrow_mut();
        match port.head.take() {
            Some(head) => Poll::Ready(head),
            None if port.end.is_some() => Poll::Ready(nothing()),
            None => {
                port.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Gives back what was taken, in larger portions.
    fn settle(&mut self, all: bool) {
        if self.owed > 0 && (all || self.owed >= self.shell.window() / 2) {
            let owed = std::mem::take(&mut self.owed);
            self.shell.feed(Input::Credit(self.id, owed));
        }
    }
}

/// The engine never ends an exchange without a head; should it, the client is told so.
fn nothing() -> Head {
    Head { status: StatusCode::BAD_GATEWAY, headers: HeaderMap::new(), length: Some(0) }
}

impl Body for Content {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let this = self.get_mut();
        loop {
            let (bytes, end) = {
                let mut port = this.port.borrow_mut();
                (port.queue.pop_front(), port.end)
            };
            if let Some(bytes) = bytes {
                this.owed += bytes.len() as u64;
                this.left = this.left.map(|left| left.saturating_sub(bytes.len() as u64));
                this.settle(false);
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            match end {
                Some(End::Complete) => return Poll::Ready(None),
                Some(End::Broken) => return Poll::Ready(Some(Err(Broken))),
                None if this.owed > 0 => this.settle(true),
                None => {
                    this.port.borrow_mut().waker = Some(cx.waker().clone());
                    return Poll::Pending;
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        let port = self.port.borrow();
        port.queue.is_empty() && port.end == Some(End::Complete)
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

impl Drop for Content {
    fn drop(&mut self) {
        self.shell.close(self.id);
    }
}

/// Dials for a `CONNECT`, answers it, and joins the two connections.
pub async fn tunnel(
    shell: Shell,
    port: Rc<RefCell<Port>>,
    dial: Dial,
    client: IpAddr,
    caller: node::Caller,
) {
    let dialled = shell.pool().dialler().dial(&dial, client, caller).await;
    let status = match &dialled {
        Ok(_) => StatusCode::OK,
        Err(FetchError::Forbidden(_)) => StatusCode::FORBIDDEN,
        Err(FetchError::TimedOut) => StatusCode::GATEWAY_TIMEOUT,
        Err(_) => StatusCode::BAD_GATEWAY,
    };
    let upgrade = {
        let mut port = port.borrow_mut();
        port.head = Some(Head { status, headers: HeaderMap::new(), length: Some(0) });
        port.end = Some(End::Complete);
        port.upgrade.take()
    };
    wake(&port);
    if let (Ok(mut origin), Some((upgrade, _place))) = (dialled, upgrade)
        && let Ok(near) = upgrade.await
        && let Ok((there, back)) = splice(&mut TokioIo::new(near), &mut origin, &[]).await
    {
        shell.relayed().set(shell.relayed().get() + there + back);
    }
}
