//! Clients: their connections, requests and responses.

use crate::places::{Order, Place};
use crate::shares::ACCEPT_PAUSE;
use crate::shell::{End, Port, Shell, wake};
use crate::turned_away::{NO_ROOM, RETRY_AFTER_SECONDS, turn_away};
use bytes::{Bytes, BytesMut};
use host::client::Client;
use host::dial::is_own;
use host::listen::{First, Gate, first_bytes, settle};
use host::screened::{Screened, Signs};
use host::splice::splice;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use node::driver::Network;
use node::driver::admission::Refused;
use node::{Dial, Entrance, ExchangeId, FetchError, Head, Input, Refusal};
use rustix::process::{Resource, getrlimit, setrlimit};
use std::cell::RefCell;
use std::convert::Infallible;
use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_local;

/// Connections of clients at one time, for the sake of descriptors; memory may admit fewer.
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
pub async fn accept(shell: Shell, listener: TcpListener, door: Door) {
    let own_port = listener.local_addr().map_or(0, |address| address.port());
    let mut gate = match Gate::new(listener) {
        Ok(gate) => gate,
        Err(error) => return tracing::error!(%error, "a port cannot be used: restart the daemon"),
    };
    let doorway = Doorway { shell, door, own_port };
    loop {
        match gate.accept().await {
            Ok((stream, client)) => {
                if !doorway.admit(stream, client) {
                    doorway.keep_away(&mut gate).await;
                }
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a client");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Where clients come in by one port.
struct Doorway {
    shell: Shell,
    door: Door,
    own_port: u16,
}

impl Doorway {
    /// Takes a client in, or answers that there is no room; whether the next one may come.
    fn admit(&self, stream: TcpStream, client: SocketAddr) -> bool {
        let network = network(&stream, client);
        match self.shell.places().arrive(network) {
            Ok(place) => self.receive(stream, client, place),
            Err(Refused::Share) => {
                tracing::debug!(%client, "it has its share of all connections: refused");
            }
            Err(Refused::Full) => match self.door {
                Door::Explicit => turn_away(self.shell.places(), stream),
                Door::Transparent => {
                    self.receive(stream, client, self.shell.places().take(network));
                    return false;
                }
            },
        }
        true
    }

    /// Lets new connections go straight to their origins until there is room. Those that wait to be accepted
    /// are taken in: the kernel has told their clients that they are connected.
    async fn keep_away(&self, gate: &mut Gate) {
        tracing::info!("no room for more clients: new connections go past");
        while let Some((stream, client)) = gate.accept_waiting() {
            let place = self.shell.places().take(network(&stream, client));
            self.receive(stream, client, place);
        }
        if let Err(error) = gate.close() {
            return tracing::warn!(%error, "cannot stop listening");
        }
        self.shell.places().room().await;
        while let Err(error) = gate.open() {
            tracing::warn!(%error, "cannot listen again: another program may have the port");
            tokio::time::sleep(ACCEPT_PAUSE).await;
        }
        tracing::info!("there is room for clients again");
    }

    fn receive(&self, stream: TcpStream, client: SocketAddr, place: Rc<Place>) {
        settle(&stream);
        let stream = Client::new(stream, place.meter());
        let (shell, client, own_port) = (self.shell.clone(), client.ip(), self.own_port);
        match self.door {
            Door::Explicit => spawn_local(async move {
                let entrance = Entrance::Explicit;
                converse(shell, stream, BytesMut::new(), client, entrance, place).await;
            }),
            Door::Transparent => spawn_local(intercepted(shell, stream, client, own_port, place)),
        };
    }
}

/// Whom a client's connection counts for; `None`: this machine.
fn network(stream: &TcpStream, client: SocketAddr) -> Option<Network> {
    let here = stream.local_addr().map(|address| address.ip());
    let is_here = is_at_home(client.ip(), here);
    (!is_here).then(|| Network::of(client.ip()))
}

/// Whether a client is on this machine: who dials an address of its own machine does so from that address.
fn is_at_home(client: IpAddr, here: std::io::Result<IpAddr>) -> bool {
    let near = client.to_canonical();
    near.is_loopback() || here.is_ok_and(|here| here.to_canonical() == near)
}

/// A client that meant to dial somebody else.
async fn intercepted(
    shell: Shell,
    mut stream: Client,
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
    let first = tokio::select! {
        first = first_bytes(&mut stream) => first,
        _ = poll_fn(|cx| place.poll_told(cx)) => return,
    };
    match first {
        First::Http(first) => {
            converse(shell, stream, first, client, Entrance::Intercepted(dialled), place).await;
        }
        First::Other(first) => {
            place.tunnel();
            tokio::select! {
                () = relay(shell, stream, &first, client, dialled) => {}
                () = place.closed() => {}
            }
        }
        First::Gone => {}
    }
}

/// What is not HTTP crosses untouched.
async fn relay(
    shell: Shell,
    mut stream: Client,
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
    stream: Client,
    first: BytesMut,
    client: IpAddr,
    entrance: Entrance,
    place: Rc<Place>,
) {
    let at_home = is_at_home(client, stream.local_addr().map(|address| address.ip()));
    let behind_uplink = entrance == Entrance::Explicit
        && !at_home
        && shell.pool().dialler().egress().is_behind_uplink(client);
    let caller = Caller { client, at_home, behind_uplink, entrance };
    let screened = Screened::client(stream, first, place.meter());
    let signs = screened.signs();
    let server = Rc::clone(&place);
    let service = service_fn(move |request| {
        let turn = Turn::begin(&signs, &server);
        let (shell, refused, place) = (shell.clone(), signs.refused(), Rc::clone(&server));
        async move {
            Ok::<_, Infallible>(match (refused, turn.window()) {
                (Some(refusal), _) => refuse(shell, refusal, client, turn),
                (None, Some(window)) => serve(shell, request, caller, turn, window, place).await,
                (None, None) => decline(shell, entrance, turn, &place).await,
            })
        }
    });
    let mut served = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_PATIENCE)
            .max_buf_size(64 * 1024)
            .serve_connection(TokioIo::new(screened), service)
            .with_upgrades()
    );
    let ended = poll_fn(|cx| {
        match place.poll_told(cx) {
            Poll::Ready(Order::Close) => return Poll::Ready(Ok(())),
            Poll::Ready(Order::Finish) if place.is_idle() => return Poll::Ready(Ok(())),
            Poll::Ready(Order::Finish) => served.as_mut().graceful_shutdown(),
            Poll::Pending => {}
        }
        place.meter().awake();
        let ended = served.as_mut().poll(cx);
        place.look();
        ended
    });
    if let Err(error) = ended.await {
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
    window: u64,
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
    let mut content = Content { shell, id, port, left: None, owed: 0, window, _turn: turn };
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
    let text = Bytes::from(format!("{refusal}\n"));
    say(shell, refusal.status(), HeaderMap::new(), text, turn)
}

/// There is no room for one more request on an open connection. Who asks a proxy is told so. Who meant to ask
/// an origin is left: it asks anew, as HTTP bids it (RFC 9112 §9.3.1), and its new connection goes past us.
async fn decline(shell: Shell, entrance: Entrance, turn: Turn, place: &Place) -> Response<Content> {
    if entrance != Entrance::Explicit {
        place.close();
        return std::future::pending().await;
    }
    shell.places().count_refused();
    let mut headers = HeaderMap::new();
    headers.insert(header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER_SECONDS));
    say(shell, StatusCode::SERVICE_UNAVAILABLE, headers, Bytes::from_static(NO_ROOM), turn)
}

/// Answers without the engine, and ends the connection.
fn say(
    shell: Shell,
    status: StatusCode,
    mut headers: HeaderMap,
    text: Bytes,
    turn: Turn,
) -> Response<Content> {
    let (id, port) = shell.open();
    let left = Some(text.len() as u64);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    port.borrow_mut().queue.push_back(text);
    port.borrow_mut().end = Some(End::Complete);
    let head = Head { status, headers, length: left };
    let window = turn.window().unwrap_or(0);
    respond(head, Content { shell, id, port, left, owed: 0, window, _turn: turn }, Wish::Answer)
}

/// A request's turn on its connection: the next one is not looked at before it is over.
struct Turn {
    signs: Arc<Signs>,
    place: Rc<Place>,
    window: Option<u64>,
}

impl Turn {
    fn begin(signs: &Arc<Signs>, place: &Rc<Place>) -> Self {
        signs.busy.store(true, Ordering::Relaxed);
        Self { signs: Arc::clone(signs), place: Rc::clone(place), window: place.begin() }
    }

    /// How many bytes of the answer may be on their way; `None`: there is no room for one.
    fn window(&self) -> Option<u64> {
        self.window
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.place.end();
        self.signs.end_turn();
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
    /// Bytes that may be on their way.
    window: u64,
    /// Held until the response is over.
    _turn: Turn,
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
        if self.owed > 0 && (all || self.owed >= self.window / 2) {
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
    if let (Ok(mut origin), Some((upgrade, place))) = (dialled, upgrade)
        && let Ok(near) = upgrade.await
    {
        join(&shell, &mut TokioIo::new(near), &mut origin, &place).await;
    }
}

/// Joins a client's connection that is no longer HTTP and one to an origin, until both have ended or its place
/// is needed.
pub async fn join<A, B>(shell: &Shell, near: &mut A, far: &mut B, place: &Place)
where
    A: AsyncRead + AsyncWrite + Unpin,
    B: AsyncRead + AsyncWrite + Unpin,
{
    place.tunnel();
    let passed = tokio::select! {
        passed = splice(near, far, &[]) => passed,
        () = place.closed() => return,
    };
    if let Ok((there, back)) = passed {
        shell.relayed().set(shell.relayed().get() + there + back);
    }
}
