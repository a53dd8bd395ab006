//! The control socket, the daemon's side: HTTP/1.1 on a Unix socket.
//!
//! | path | answer |
//! |---|---|
//! | `GET /status` | [`Status`] as JSON |
//! | `GET /peers` | a JSON list of [`PeerLine`] |
//! | `GET /metrics` | both as Prometheus' text |
//! | `GET /ledger?since=SECONDS` | `LedgerPage` as JSON; without `since`, of all time |
//! | `GET /cache?limit=N` | a JSON list of [`ObjectLine`] |
//! | `DELETE /cache?url=U`, or `host=H&class=C&older=SECONDS`, with `dry-run=1` if it is only counted | `PurgeLine` as JSON |
//! | `GET /manifest?url=U&page=P` | [`ManifestPage`] as JSON, or 404 |
//! | `GET /published` | a JSON list of `PublishedLine` |
//! | `POST /put`, with the file | `PutLine` as JSON, once the file is durable |
//! | `DELETE /put?name=N` | `PutLine` as JSON, once the file is withdrawn |
//!
//! *Who calls it:* `run.rs`, with the [`Observed`] of `observe.rs`; `far.rs` with answers of its own (`far/observe.rs`). The client's side is `ask.rs`. A TCP
//! port can serve the metrics too, but nothing else. *What it never does:* change anything, except by
//! publishing and withdrawing files, and by removing what is stored. *Limits:* [`CONNECTIONS_MAX`]
//! connections at once, with one request each. A connection is cut after [`CONNECTION_SECONDS_MAX`],
//! unless it uploads a file or removes objects.

use std::cell::Cell;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{
    DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::ledger::LedgerPage;
use crate::metrics;
use crate::publish::{self, Publishes};
use crate::purge::{Filter, Purges};
use crate::query;
use crate::status::{PeerLine, Status};

/// Connections served at once; more wait in the kernel's queue.
pub const CONNECTIONS_MAX: usize = 16;

/// A connection is cut after this many seconds, unless it uploads a file or removes objects.
pub const CONNECTION_SECONDS_MAX: u64 = 30;

/// How many objects are listed if the request gives no limit.
const LIMIT_DEFAULT: usize = 50;
/// How many objects are listed at most.
const LIMIT_MAX: usize = 10_000;

/// How long to wait when the machine is out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// What a running daemon shows. All calls are on the loop's thread, so nothing needs to be `Send`.
pub trait Observed {
    /// The daemon's status.
    fn status(&self) -> Status;

    /// The connected peers, in the order of their identities.
    fn peers(&self) -> Vec<PeerLine>;

    /// The ledger of the last `seconds`; `None`: of all time.
    fn ledger(&self, seconds: Option<u64>) -> LedgerPage;

    /// At most `limit` stored objects, the most recently fetched or validated first.
    async fn objects(&self, limit: usize) -> Vec<ObjectLine>;

    /// A page of the manifest that is stored for a URL; the first page is 0. `None` if nothing is
    /// stored that a plain GET would select.
    async fn manifest(&self, url: &str, page: u64) -> Option<ManifestPage>;
}

/// A stored object, in a list of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectLine {
    /// The object's URL.
    pub url: String,
    /// Content bytes.
    pub length: u64,
    /// Seconds since it was fetched or validated (RFC 9111 §4.2.3).
    pub age_seconds: u64,
    /// Seconds until the object is stale, by its origin and its content class; if negative, seconds since then. 0 also
    /// if it must be validated before each use.
    pub fresh_seconds: i64,
}

/// Some of an object's units: those of one segment of its manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestPage {
    /// The id of the stored record. If it differs between pages, the object changed in between.
    pub record: String,
    /// `ETag` of that version.
    pub etag: Option<String>,
    /// `Last-Modified` of that version.
    pub last_modified: Option<String>,
    /// Content bytes of the whole object.
    pub length: u64,
    /// This page's units, in order.
    pub units: Vec<UnitLine>,
    /// The number of the next page; `None` on the last.
    pub next_page: Option<u64>,
}

/// A unit of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitLine {
    /// The unit's name, in hexadecimal.
    pub name: String,
    /// The unit's length in bytes.
    pub length: u32,
    /// The key that the unit was sealed with, in hexadecimal, if any. The name is then that of the
    /// sealed bytes.
    #[serde(default)]
    pub key: Option<String>,
}

/// Why the control socket could not be opened; nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// A daemon answers on that path.
    #[error(
        "another hearsay is running: it answers at {0}. Stop it, or give this one its own --control PATH"
    )]
    Taken(PathBuf),
    /// The path exists and is not a socket.
    #[error("{0} is there and is no socket: remove it, or choose another --control PATH")]
    NotASocket(PathBuf),
    /// The file system refused.
    #[error(
        "the control socket {path} cannot be made: {error}. Choose another --control PATH, or run as root"
    )]
    Io {
        /// The socket.
        path: PathBuf,
        /// The kernel's error.
        error: io::Error,
    },
}

/// The open control socket; its file is removed when this is dropped.
#[derive(Debug)]
pub struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
    /// Device and number of the socket's file.
    inode: Option<(u64, u64)>,
}

impl ControlSocket {
    /// Opens the socket. The socket of a dead daemon is replaced; that of a running daemon is an error.
    pub fn open(path: &Path) -> Result<Self, ControlError> {
        let failed = |error| ControlError::Io { path: path.to_owned(), error };
        if let Some(dir) = path.parent() {
            std::fs::DirBuilder::new().recursive(true).mode(0o755).create(dir).map_err(failed)?;
        }
        make_way(path)?;
        let listener = UnixListener::bind(path).map_err(failed)?;
        let socket = Self { listener, path: path.to_owned(), inode: inode(path) };
        let mode = std::fs::Permissions::from_mode(0o660);
        std::fs::set_permissions(path, mode).map_err(failed)?;
        Ok(socket)
    }

    /// Answers requests until the future is dropped. Needs a `LocalSet`.
    pub async fn serve<O: Answers + 'static>(self, observed: Rc<O>) {
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        loop {
            let place = take(&places).await;
            match self.listener.accept().await {
                Ok((stream, _)) => converse(stream, Rc::clone(&observed), Scope::All, place),
                Err(error) => pause(&error).await,
            }
        }
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        // The file may be gone already, and another daemon's or a user's in its place. If ours stays, the next daemon
        // replaces it.
        if inode(&self.path) == self.inode {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn inode(path: &Path) -> Option<(u64, u64)> {
    std::fs::symlink_metadata(path).ok().map(|there| (there.dev(), there.ino()))
}

/// Answers `GET /metrics` on a TCP port. Needs a `LocalSet`.
pub async fn serve_metrics<O: Answers + 'static>(listener: TcpListener, observed: Rc<O>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let place = take(&places).await;
        match listener.accept().await {
            Ok((stream, _)) => converse(stream, Rc::clone(&observed), Scope::Metrics, place),
            Err(error) => pause(&error).await,
        }
    }
}

/// The requests that a listener answers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All of them.
    All,
    /// Metrics only: they name no URL and no client.
    Metrics,
}

/// Removes a socket on which no process listens any more.
fn make_way(path: &Path) -> Result<(), ControlError> {
    let Ok(there) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !there.file_type().is_socket() {
        return Err(ControlError::NotASocket(path.to_owned()));
    }
    match std::os::unix::net::UnixStream::connect(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => std::fs::remove_file(path)
            .map_err(|error| ControlError::Io { path: path.to_owned(), error }),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            Err(ControlError::Io { path: path.to_owned(), error })
        }
        // A daemon answers, or is too busy to.
        _ => Err(ControlError::Taken(path.to_owned())),
    }
}

/// Whether a daemon listens on a socket, also one that this user may not ask.
pub fn is_open(path: &Path) -> bool {
    match std::os::unix::net::UnixStream::connect(path) {
        Ok(_) => true,
        Err(error) => error.kind() == ErrorKind::PermissionDenied && path.exists(),
    }
}

async fn take(places: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    Arc::clone(places).acquire_owned().await.expect("nobody closes it")
}

async fn pause(error: &io::Error) {
    tracing::warn!("the control socket cannot accept: {error}");
    tokio::time::sleep(ACCEPT_PAUSE).await;
}

/// Serves one connection in a task of its own.
fn converse<S, O>(stream: S, observed: Rc<O>, scope: Scope, place: OwnedSemaphorePermit)
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
    O: Answers + 'static,
{
    tokio::task::spawn_local(async move {
        let changes = Cell::new(false);
        let service = service_fn(|request: Request<Incoming>| {
            changes.set(request.method() != Method::GET);
            let observed = Rc::clone(&observed);
            async move { Ok::<_, std::convert::Infallible>(observed.answer(scope, request).await) }
        });
        let connection = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .keep_alive(false)
            .serve_connection(TokioIo::new(stream), service);
        let limit = Duration::from_secs(CONNECTION_SECONDS_MAX);
        tokio::pin!(connection);
        // Errors are ignored: the client has gone, or is too slow. An upload may take any time, and so may a removal.
        while tokio::time::timeout(limit, &mut connection).await.is_err() && changes.get() {}
        drop(place);
    });
}

/// What answers the requests of a control socket, and of a port of metrics.
pub trait Answers {
    /// The answer to a request.
    async fn answer(&self, scope: Scope, request: Request<Incoming>) -> Response<Full<Bytes>>;
}

impl<O: Observed + Publishes + Purges> Answers for O {
    async fn answer(&self, scope: Scope, request: Request<Incoming>) -> Response<Full<Bytes>> {
        answer(self, scope, request).await
    }
}

async fn answer<O: Observed + Publishes + Purges>(
    observed: &O,
    scope: Scope,
    request: Request<Incoming>,
) -> Response<Full<Bytes>> {
    if request.uri().path() == "/put" && scope == Scope::All {
        let query = request.uri().query().unwrap_or("").to_owned();
        return match *request.method() {
            Method::POST => publish::put(observed, request).await,
            Method::DELETE => publish::withdraw(observed, &query).await,
            _ => refuse(StatusCode::METHOD_NOT_ALLOWED, "only POST and DELETE"),
        };
    }
    let query = request.uri().query().unwrap_or("");
    if (request.method(), request.uri().path(), scope) == (&Method::DELETE, "/cache", Scope::All) {
        return purge(observed, query).await;
    }
    if request.method() != Method::GET {
        return refuse(StatusCode::METHOD_NOT_ALLOWED, "only GET");
    }
    match (request.uri().path(), scope) {
        ("/metrics", _) => {
            let text = metrics::render(&observed.status(), &observed.peers());
            page(metrics::CONTENT_TYPE, text)
        }
        ("/status", Scope::All) => json(&observed.status()),
        ("/peers", Scope::All) => json(&observed.peers()),
        ("/ledger", Scope::All) => json(&observed.ledger(query::number(query, "since"))),
        ("/cache", Scope::All) => {
            let limit = query::number(query, "limit").map_or(LIMIT_DEFAULT, |it| it as usize);
            json(&observed.objects(limit.min(LIMIT_MAX)).await)
        }
        ("/published", Scope::All) => publish::list(observed),
        ("/manifest", Scope::All) => manifest(observed, query).await,
        _ => refuse(StatusCode::NOT_FOUND, "no such page"),
    }
}

async fn purge<O: Purges>(observed: &O, query: &str) -> Response<Full<Bytes>> {
    let dry_run = query::number(query, "dry-run") == Some(1);
    match Filter::read(query) {
        Ok(filter) => match observed.purge(filter, dry_run).await {
            Ok(line) => json(&line),
            Err(why) => refuse(StatusCode::CONFLICT, &why),
        },
        Err(why) => refuse(StatusCode::BAD_REQUEST, &why),
    }
}

async fn manifest<O: Observed>(observed: &O, query: &str) -> Response<Full<Bytes>> {
    let Some(url) = query::text(query, "url") else {
        return refuse(StatusCode::BAD_REQUEST, "the query lacks url=…");
    };
    match observed.manifest(&url, query::number(query, "page").unwrap_or(0)).await {
        Some(found) => json(&found),
        None => refuse(StatusCode::NOT_FOUND, "nothing is stored for this URL"),
    }
}

pub fn json<T: Serialize>(value: &T) -> Response<Full<Bytes>> {
    match serde_json::to_string(value) {
        Ok(text) => page("application/json", text),
        Err(error) => refuse(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

pub fn refuse(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    let mut response = page("text/plain; charset=utf-8", format!("{text}\n"));
    *response.status_mut() = status;
    response
}

/// An answer of this media type.
pub fn page(kind: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
pub(crate) mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;
    use tokio::task::LocalSet;

    use node::PutError;
    use wire::Oid;

    use super::*;
    use crate::ask;
    use crate::exit::Exit;
    use crate::publish::PublishedLine;
    use crate::purge::PurgeLine;
    use crate::target::tests::Pipe;

    /// A daemon with prepared answers.
    #[derive(Default)]
    pub(crate) struct Puppet {
        pub(crate) status: Status,
        pub(crate) peers: Vec<PeerLine>,
        pub(crate) objects: Vec<ObjectLine>,
        pub(crate) pages: Vec<ManifestPage>,
    }

    impl Observed for Puppet {
        fn status(&self) -> Status {
            self.status.clone()
        }

        fn peers(&self) -> Vec<PeerLine> {
            self.peers.clone()
        }

        fn ledger(&self, seconds: Option<u64>) -> LedgerPage {
            LedgerPage { from: seconds.unwrap_or(0), ..LedgerPage::default() }
        }

        async fn objects(&self, limit: usize) -> Vec<ObjectLine> {
            self.objects.iter().take(limit).cloned().collect()
        }

        async fn manifest(&self, url: &str, page: u64) -> Option<ManifestPage> {
            assert!(url.starts_with("http://"), "{url}");
            self.pages.get(page as usize).cloned()
        }
    }

    impl Publishes for Puppet {
        async fn put(&self, length: u64, _: Incoming) -> Result<Oid, PutError> {
            Err(PutError::TooLarge(length / 2))
        }

        async fn withdraw(&self, name: Oid) -> Result<Oid, PutError> {
            Ok(name)
        }

        fn published(&self) -> Result<Vec<PublishedLine>, PutError> {
            Ok(Vec::new())
        }
    }

    impl Purges for Puppet {
        async fn purge(&self, _: Filter, dry_run: bool) -> Result<PurgeLine, String> {
            Ok(PurgeLine { objects: self.objects.len() as u64, bytes: 7, dry_run })
        }
    }

    pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        LocalSet::new().block_on(&runtime, test)
    }

    #[test]
    fn status_and_objects_come_through_the_socket() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/control.sock");
        let status = crate::status::tests::busy();
        let line = |url: &str| ObjectLine { url: url.into(), ..ObjectLine::default() };
        let objects = vec![line("http://a/"), line("http://b/")];
        run(async {
            let socket = ControlSocket::open(&path).unwrap();
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o660);
            let peers = vec![crate::status::tests::peer("r2", 1)];
            let (status_, peers_) = (status.clone(), peers.clone());
            let puppet = Puppet { status: status_, peers: peers_, objects, pages: Vec::new() };
            let served = tokio::task::spawn_local(socket.serve(Rc::new(puppet)));
            let paths = [path.clone()];
            assert_eq!(ask::status(&paths).await.unwrap(), status);
            assert_eq!(ask::peers(&paths).await.unwrap(), peers);
            assert_eq!(ask::objects(&paths, 1).await.unwrap().len(), 1);
            assert_eq!(ask::ledger(&paths, Some(7)).await.unwrap().from, 7);
            assert_eq!(ask::ledger(&paths, None).await.unwrap().from, 0);
            assert_eq!(ask::manifest_page(&paths, "http://x/?a=b&c", 0).await.unwrap(), None);
            assert!(matches!(ControlSocket::open(&path), Err(ControlError::Taken(_))));
            served.abort();
            let _ = served.await;
            assert!(!path.exists());
            let failure = ask::status(&paths).await.unwrap_err();
            assert_eq!(failure.exit, Exit::Unreachable);
            assert!(failure.message.contains("is `hearsay run` running?"), "{failure}");
        });
    }

    #[test]
    fn a_dead_daemons_socket_is_replaced_and_other_files_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let (dead, file) = (path("dead"), path("file"));
        drop(std::os::unix::net::UnixListener::bind(&dead).unwrap());
        std::fs::write(&file, "precious").unwrap();
        std::os::unix::fs::symlink("file", path("link")).unwrap();
        std::os::unix::fs::symlink("nothing", path("dangling")).unwrap();
        let pipe = Pipe::make(&path("pipe"));
        run(async {
            assert!(ControlSocket::open(&dead).is_ok());
            for name in ["file", "link", "dangling", "pipe", ""] {
                let opened = ControlSocket::open(&path(name));
                assert!(matches!(opened, Err(ControlError::NotASocket(_))), "{name:?}");
            }
        });
        assert_eq!(std::fs::read(&file).unwrap(), b"precious");
        assert!(path("link").is_symlink() && path("dangling").is_symlink() && pipe.is_there());
    }

    #[test]
    fn what_took_the_sockets_place_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control.sock");
        run(async {
            for replace in [
                |path: &Path| std::fs::write(path, "precious").unwrap(),
                |path: &Path| drop(std::os::unix::net::UnixListener::bind(path).unwrap()),
            ] {
                let socket = ControlSocket::open(&path).unwrap();
                std::fs::rename(&path, dir.path().join("aside")).unwrap();
                replace(&path);
                drop(socket);
                assert!(path.exists());
                std::fs::remove_file(&path).unwrap();
            }
            drop(ControlSocket::open(&path).unwrap());
            assert!(!path.exists());
        });
    }

    #[test]
    fn the_metrics_port_shows_metrics_and_nothing_else() {
        run(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            tokio::task::spawn_local(serve_metrics(listener, Rc::new(Puppet::default())));
            for (path, status) in
                [("/metrics", "200 OK"), ("/status", "404 Not Found"), ("/peers", "404 Not Found")]
            {
                let mut stream = TcpStream::connect(address).await.unwrap();
                let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
                stream.write_all(request.as_bytes()).await.unwrap();
                let mut answer = String::new();
                stream.read_to_string(&mut answer).await.unwrap();
                assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
            }
        });
    }
}
