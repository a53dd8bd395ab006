//! Clients: their connections, requests and responses.

mod bound;
mod joined;
mod response_body;

use bound::Bound;
use joined::{carry, dial_past, join, relay};
pub use joined::{join_upgraded, tunnel};
use response_body::{Pipelined, ResponseBody};

use crate::connections::{ACCEPT_PAUSE, Permit};
use crate::descriptors;
use crate::driver::{Driver, Past};
use crate::mirror::{self, Translation, Upstream};
use crate::turned_away::{RETRY_AFTER_SECONDS, turn_away};
use bytes::{Bytes, BytesMut};
use host::client::Client;
use host::dial::is_own;
use host::listen::{First, Gate, first_bytes, settle};
use host::screened::{Screened, Signs};
use host::traffic::With;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use node::driver::admission::{CONNECTIONS_MAX, Refused};
use node::driver::{ClientWindow, Network};
use node::{Binding, ClientInput, Entrance, Head, Input, Refusal};
use std::cell::Cell;
use std::convert::Infallible;
use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_local;

/// File descriptors that are not for clients: peers, the store, the control socket, idle
/// connections to origins.
const DESCRIPTORS_KEPT: u64 = crate::links::DESCRIPTORS + 256;
/// How long a client may take to send the head of its next request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);

/// The kind of listener that accepted a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenerKind {
    /// The explicit proxy's listener.
    Explicit,
    /// The listener that the TPROXY rules point to.
    Transparent,
    /// The mirror's listener.
    Mirror,
}

/// Raises the limit of file descriptors as far as allowed, and returns how many clients they
/// suffice for. A client that is being served needs one descriptor for itself and one for its
/// origin.
pub fn connections_max() -> usize {
    let wanted = 2 * CONNECTIONS_MAX as u64 + DESCRIPTORS_KEPT;
    let descriptors = descriptors::raise(wanted);
    let clients = descriptors.saturating_sub(DESCRIPTORS_KEPT) / 2;
    usize::try_from(clients).unwrap_or(CONNECTIONS_MAX).clamp(16, CONNECTIONS_MAX)
}

/// Accepts clients; never returns.
pub async fn accept(driver: Driver, listener: TcpListener, kind: ListenerKind) {
    let own_port = listener.local_addr().map_or(0, |address| address.port());
    let mut gate = match Gate::new(listener) {
        Ok(gate) => gate,
        Err(error) => {
            return tracing::error!(%error, "cannot use a listening socket: restart the daemon");
        }
    };
    let acceptor = Acceptor { driver, kind, own_port };
    loop {
        match gate.accept().await {
            Ok((stream, client)) => {
                if !acceptor.admit(stream, client) {
                    acceptor.keep_away(&mut gate).await;
                }
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a client");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// What the accept loop of one port needs for each client.
struct Acceptor {
    driver: Driver,
    kind: ListenerKind,
    own_port: u16,
}

impl Acceptor {
    /// Serves a client, or refuses it for lack of room. `false`: the caller is to stop listening
    /// until there is room.
    fn admit(&self, stream: TcpStream, client: SocketAddr) -> bool {
        let network = network(&stream, client);
        let protocol = self.protocol(&stream);
        if protocol == Protocol::Any {
            // Its client could not try again elsewhere. When there are many, they are not intercepted any more.
            self.receive(stream, client, self.driver.limit().take(network), protocol);
            return true;
        }
        match self.driver.limit().arrive(network) {
            Ok(permit) => self.receive(stream, client, permit, protocol),
            Err(Refused::Share) => {
                tracing::debug!(%client, "refused: its network has its share of all connections");
                if self.kind != ListenerKind::Transparent {
                    self.turn_away(stream, Refused::Share);
                }
            }
            Err(Refused::Full) => match self.kind {
                ListenerKind::Explicit | ListenerKind::Mirror => {
                    self.driver.limit().count_refused();
                    self.turn_away(stream, Refused::Full);
                }
                ListenerKind::Transparent => {
                    self.receive(stream, client, self.driver.limit().take(network), protocol);
                    return false;
                }
            },
        }
        true
    }

    fn protocol(&self, stream: &TcpStream) -> Protocol {
        let is_flow = || stream.local_addr().is_ok_and(|to| self.driver.is_flow(to.port()));
        match self.kind == ListenerKind::Transparent && is_flow() {
            true => Protocol::Any,
            false => Protocol::Http,
        }
    }

    fn turn_away(&self, stream: TcpStream, why: Refused) {
        turn_away(stream, &self.driver.error_text(StatusCode::SERVICE_UNAVAILABLE, why));
    }

    /// Stops listening until there is room; meanwhile new connections bypass the daemon.
    /// Connections in the kernel's accept queue are served first: their clients are already
    /// connected.
    async fn keep_away(&self, gate: &mut Gate) {
        tracing::info!("no room for more clients: new connections bypass the daemon");
        while let Some((stream, client)) = gate.accept_waiting() {
            let permit = self.driver.limit().take(network(&stream, client));
            let protocol = self.protocol(&stream);
            self.receive(stream, client, permit, protocol);
        }
        if let Err(error) = gate.close() {
            return tracing::warn!(%error, "cannot stop listening");
        }
        self.driver.limit().room().await;
        while let Err(error) = gate.open() {
            tracing::warn!(%error, "cannot listen again: another program may have the port");
            tokio::time::sleep(ACCEPT_PAUSE).await;
        }
        tracing::info!("there is room for clients again");
    }

    fn receive(
        &self,
        stream: TcpStream,
        client: SocketAddr,
        permit: Rc<Permit>,
        protocol: Protocol,
    ) {
        if protocol == Protocol::Any {
            // At once: a connection that has no head yet may be closed to make room.
            permit.flow();
        }
        settle(&stream);
        let traffic = self.driver.pool().dialler().traffic();
        let stream = Client::new(traffic.meter(stream, With::Client), permit.meter());
        let (driver, client, own_port) = (self.driver.clone(), client.ip(), self.own_port);
        let entrance = match self.kind {
            ListenerKind::Explicit => Entrance::Explicit,
            ListenerKind::Mirror => Entrance::Mirror,
            ListenerKind::Transparent => {
                let Ok(dialled) = stream.local_addr() else { return };
                if is_dialled_itself(dialled, own_port) {
                    return tracing::debug!(%client, "refused: it dialled the transparent port itself");
                }
                match protocol {
                    Protocol::Any => spawn_local(carried(driver, stream, client, dialled, permit)),
                    Protocol::Http => {
                        spawn_local(intercepted(driver, stream, client, dialled, permit))
                    }
                };
                return;
            }
        };
        spawn_local(async move {
            converse(driver, stream, BytesMut::new(), client, entrance, permit).await;
        });
    }
}

/// The network whose share of connections the client counts towards; `None` if the client is on
/// this machine.
fn network(stream: &TcpStream, client: SocketAddr) -> Option<Network> {
    let here = stream.local_addr().map(|address| address.ip());
    let is_here = is_at_home(client.ip(), here);
    (!is_here).then(|| Network::of(client.ip()))
}

/// Whether a client is on this machine: the kernel then uses the dialled address as the source
/// address too.
fn is_at_home(client: IpAddr, here: std::io::Result<IpAddr>) -> bool {
    let near = client.to_canonical();
    near.is_loopback() || here.is_ok_and(|here| here.to_canonical() == near)
}

/// What an intercepted connection may speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Http,
    Any,
}

/// Whether the client dialled this listener itself, and no rule redirected the connection. To relay it would make the
/// daemon dial itself without end.
fn is_dialled_itself(dialled: SocketAddr, own_port: u16) -> bool {
    dialled.port() == own_port && is_own(dialled.ip().to_canonical()) != Some(false)
}

/// Serves a client whose connection was intercepted, on a port of any protocol.
async fn carried(
    driver: Driver,
    stream: Client,
    client: IpAddr,
    dialled: SocketAddr,
    permit: Rc<Permit>,
) {
    tokio::select! {
        () = carry(driver, stream, client, dialled) => {}
        () = permit.closed() => {}
    }
}

/// Serves a client whose connection to an origin was intercepted, on a port of HTTP.
async fn intercepted(
    driver: Driver,
    mut stream: Client,
    client: IpAddr,
    dialled: SocketAddr,
    permit: Rc<Permit>,
) {
    let first = tokio::select! {
        first = first_bytes(&mut stream) => first,
        () = permit.closed() => return,
    };
    match first {
        First::Http(first) => {
            converse(driver, stream, first, client, Entrance::Intercepted(dialled), permit).await;
        }
        First::Other(first) => {
            permit.tunnel();
            tokio::select! {
                () = relay(driver, stream, &first, client, dialled) => {}
                () = permit.closed() => {}
            }
        }
        First::Gone => {}
    }
}

/// Serves one connection, request after request.
async fn converse(
    driver: Driver,
    stream: Client,
    first: BytesMut,
    client: IpAddr,
    entrance: Entrance,
    permit: Rc<Permit>,
) {
    let at_home = is_at_home(client, stream.local_addr().map(|address| address.ip()));
    let behind_uplink = !matches!(entrance, Entrance::Intercepted(_))
        && !at_home
        && driver.pool().dialler().egress().is_behind_uplink(client);
    let screened = Screened::client(stream, first, permit.meter());
    let (signs, interims) = (screened.signs(), screened.signs());
    let (exit, server) = (Rc::<Exit>::default(), Rc::clone(&permit));
    let (way_out, relayed, bound) = (Rc::clone(&exit), driver.clone(), Bound::new(&driver));
    let service = service_fn(move |request: Request<Incoming>| {
        let (driver, refused, permit) = (driver.clone(), signs.refused(), Rc::clone(&server));
        let line = driver.requests().line(&request, refused, (client, entrance));
        let pipelined = Pipelined::begin(&signs, &server, line);
        let (exit, binding) = (Rc::clone(&way_out), bound.see(request.headers()));
        exit.requests.set(exit.requests.get() + 1);
        let caller = Caller { client, at_home, behind_uplink, entrance, binding };
        async move {
            Ok::<_, Infallible>(match (refused, pipelined.window()) {
                (Some(refusal), _) => refuse(driver, refusal, client, pipelined),
                (None, Some(window)) => {
                    match serve(driver, request, caller, pipelined, window, permit).await {
                        Answer::Response(response) => response,
                        Answer::Past(past) => exit.leave(past).await,
                    }
                }
                (None, None) => decline(driver, entrance, pipelined, &permit).await,
            })
        }
    });
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(64 * 1024)
        .serve_connection(TokioIo::new(screened), service)
        .with_upgrades();
    let ended = poll_fn(|cx| {
        if permit.poll_closed(cx).is_ready() {
            return Poll::Ready(Ended::Served(Ok(())));
        }
        permit.meter().awake();
        let mut polled = Pin::new(&mut connection).poll(cx);
        // Only after the poll, which has read what the client sent before the stop: such a request
        // is still answered.
        if polled.is_pending() && permit.is_finishing() && !permit.meter().has_head() {
            Pin::new(&mut connection).graceful_shutdown();
            polled = Pin::new(&mut connection).poll(cx);
        }
        permit.look();
        match polled {
            Poll::Ready(served) => Poll::Ready(Ended::Served(served)),
            Poll::Pending => {
                exit.past.take().map_or(Poll::Pending, |past| Poll::Ready(Ended::Past(past)))
            }
        }
    });
    match ended.await {
        Ended::Past(Past { mut origin, first, held }) if exit.is_clear(&interims) => {
            if let Some(parts) = connection.into_parts() {
                let (mut near, unread) = parts.io.into_inner().into_parts();
                let first = [&first[..], &parts.read_buf[..], &unread[..]].concat();
                join(&relayed, &mut near, &mut origin, (&first, &[]), &held).await;
            }
        }
        // Bytes of an earlier response may still be unsent, so the connection is closed instead of
        // joined. The client repeats its request on a new connection (RFC 9112 §9.3.1).
        Ended::Past(_) => {
            tracing::debug!(%client, "cannot parse a response: closing the connection, so that the client repeats its request");
        }
        Ended::Served(Err(error)) => {
            tracing::debug!(%client, %error, "a client's connection ended")
        }
        Ended::Served(Ok(())) => {}
    }
}

/// How HTTP ended on a connection.
enum Ended {
    Served(hyper::Result<()>),
    /// The connection is to be joined with one to an origin.
    Past(Past),
}

/// How a connection leaves HTTP without a response.
#[derive(Default)]
struct Exit {
    /// Requests on the connection so far.
    requests: Cell<u64>,
    /// The connection to join it with.
    past: Cell<Option<Past>>,
}

impl Exit {
    /// Whether the client has got all that was sent to it. An interim response may be written in part.
    fn is_clear(&self, signs: &Signs) -> bool {
        self.requests.get() == 1 && !signs.interims.is_waiting()
    }

    /// Hands over the origin's connection. Never returns: the caller drops this future together
    /// with the HTTP connection.
    async fn leave(&self, past: Past) -> Response<ResponseBody> {
        self.past.set(Some(past));
        std::future::pending().await
    }
}

/// The outcome of a request.
enum Answer {
    Response(Response<ResponseBody>),
    /// The client is joined with the origin, which answers it directly.
    Past(Past),
}

/// The client of a connection, and how it reached us.
#[derive(Clone, Copy)]
struct Caller {
    client: IpAddr,
    /// The client is on this machine.
    at_home: bool,
    behind_uplink: bool,
    entrance: Entrance,
    binding: Option<Binding>,
}

async fn serve(
    driver: Driver,
    mut request: Request<Incoming>,
    Caller { client, at_home, behind_uplink, entrance, binding }: Caller,
    pipelined: Pipelined,
    window: u64,
    permit: Rc<Permit>,
) -> Answer {
    let upgrade_kind = UpgradeKind::of(&request);
    let mut upstream = Upstream::default();
    if entrance == Entrance::Mirror {
        let (mut head, content) = request.into_parts();
        match mirror::translate(&driver.reach(), &mut head) {
            // Before anything is asked for that would have to be unpacked.
            Translation::Upstream(translated) if translated.rewrites() && !permit.rewrite() => {
                return Answer::Response(decline(driver, entrance, pipelined, &permit).await);
            }
            Translation::Upstream(translated) => {
                pipelined.line().into_iter().for_each(|line| line.stands_for(&head.uri));
                upstream = translated;
            }
            Translation::Answer(status, kind, text) => {
                return Answer::Response(answer(driver, status, kind, text.into(), pipelined));
            }
        }
        request = Request::from_parts(head, content);
    }
    let (id, outbox) = driver.open();
    if upgrade_kind != UpgradeKind::Answer {
        outbox.borrow_mut().upgrade = Some((hyper::upgrade::on(&mut request), pipelined.held()));
    }
    outbox.borrow_mut().signs = Some(pipelined.signs());
    let (head, content) = request.into_parts();
    let has_body = !content.is_end_stream();
    outbox.borrow_mut().content = Some(content).filter(|_| has_body);
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
        expected: upstream.expected,
        binding,
    };
    driver.feed(Input::Client(ClientInput::Request(id, Box::new(request))));
    // From here on, if the client goes, the drop of this value tells the engine.
    let mut content = ResponseBody {
        driver,
        id,
        outbox,
        left: None,
        rewriting: None,
        window: ClientWindow::new(window),
        pipelined,
    };
    content.driver.feed(Input::Client(ClientInput::Credit(id, window)));
    match poll_fn(|cx| content.poll_head(cx)).await {
        Ok(mut head) => {
            upstream.lead_back(&mut head.headers);
            content.rewriting = upstream.rewriting(head.status, &mut head.headers);
            content.left = head.length.filter(|_| content.rewriting.is_none());
            Answer::Response(respond(head, content, upgrade_kind))
        }
        Err(fetch) => match dial_past(&content.driver, &fetch, content.pipelined.held()).await {
            Ok(past) => Answer::Past(past),
            Err(error) => {
                let (head, text) = content.driver.dialled_in_vain(error);
                content.left = head.length;
                content.outbox.borrow_mut().leave_all(text);
                Answer::Response(respond(head, content, upgrade_kind))
            }
        },
    }
}

/// What the request asks to turn its connection into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UpgradeKind {
    /// Nothing: a plain request for a response.
    Answer,
    /// A tunnel (`CONNECT`).
    Tunnel,
    /// Another protocol (`Upgrade`), if the origin agrees.
    Upgrade,
}

impl UpgradeKind {
    fn of<B>(request: &Request<B>) -> Self {
        if request.method() == Method::CONNECT {
            Self::Tunnel
        } else if request.headers().contains_key(header::UPGRADE) {
            Self::Upgrade
        } else {
            Self::Answer
        }
    }

    /// Whether the connection stays HTTP after a request to leave it was refused. The bytes after
    /// such a request were not screened, so the connection must close.
    fn leaves_unscreened(self, status: StatusCode) -> bool {
        match self {
            Self::Answer => false,
            Self::Tunnel => !status.is_success(),
            Self::Upgrade => status != StatusCode::SWITCHING_PROTOCOLS,
        }
    }
}

fn respond(head: Head, content: ResponseBody, upgrade_kind: UpgradeKind) -> Response<ResponseBody> {
    let is_tunnel = upgrade_kind == UpgradeKind::Tunnel && head.status.is_success();
    content.pipelined.line().into_iter().for_each(|line| line.answered(&head, is_tunnel));
    let mut response = Response::new(content);
    *response.status_mut() = head.status;
    *response.headers_mut() = head.headers;
    if upgrade_kind.leaves_unscreened(head.status) {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Answers a request that was refused before it was parsed, and ends the connection.
fn refuse(
    driver: Driver,
    refusal: Refusal,
    client: IpAddr,
    pipelined: Pipelined,
) -> Response<ResponseBody> {
    tracing::info!(%client, "refused a request: {refusal}");
    let text = driver.error_text(refusal.status(), refusal);
    say(driver, refusal.status(), HeaderMap::new(), text, pipelined)
}

/// Refuses a request on an open connection for lack of room. A client of the explicit proxy gets a
/// 503. An intercepted connection is closed: the client repeats its request (RFC 9112 §9.3.1), and
/// its new connection bypasses the daemon.
async fn decline(
    driver: Driver,
    entrance: Entrance,
    pipelined: Pipelined,
    permit: &Permit,
) -> Response<ResponseBody> {
    if let Entrance::Intercepted(_) = entrance {
        permit.close();
        return std::future::pending().await;
    }
    driver.limit().count_refused();
    let mut headers = HeaderMap::new();
    headers.insert(header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER_SECONDS));
    let status = StatusCode::SERVICE_UNAVAILABLE;
    let text = driver.error_text(status, Refused::Full);
    say(driver, status, headers, text, pipelined)
}

/// Answers without the engine, and ends the connection.
fn say(
    driver: Driver,
    status: StatusCode,
    headers: HeaderMap,
    text: Bytes,
    pipelined: Pipelined,
) -> Response<ResponseBody> {
    let mut response = answer(driver, status, "text/plain", text, pipelined);
    response.headers_mut().extend(headers);
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Answers without the engine.
fn answer(
    driver: Driver,
    status: StatusCode,
    kind: &'static str,
    text: Bytes,
    pipelined: Pipelined,
) -> Response<ResponseBody> {
    let (id, outbox) = driver.open();
    let left = Some(text.len() as u64);
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    outbox.borrow_mut().leave_all(text);
    let head = Head { status, headers, length: left };
    // The engine has no such exchange, so it gets no credit.
    let window = ClientWindow::default();
    respond(
        head,
        ResponseBody { driver, id, outbox, left, rewriting: None, window, pipelined },
        UpgradeKind::Answer,
    )
}
