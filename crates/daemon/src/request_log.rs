//! The log of requests: a line for each request of a client, once its response has ended.
//!
//! *What this is:* [`RequestLog`], which the loop holds, and [`Line`], a request under way, which is logged when it is
//! dropped. *Who calls it:* `clients.rs`. *What it never does:* touch a disk on the loop's thread, or hold up a request:
//! lines go to a thread (`writer.rs`), and those that it cannot take are counted. *Where to start:* [`Line`], then
//! `format.rs`. Switched off, it takes one look at a flag a request.

mod file;
mod format;
mod writer;

use std::cell::{Cell, OnceCell, RefCell};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant, SystemTime};

use http::uri::{Authority, Scheme, Uri};
use http::{HeaderMap, HeaderName, Method, Request as HttpRequest, StatusCode, header};
use node::{Entrance, Head, Refusal};

use crate::config::{Config, Format, Naming, Requests};
use crate::entropy;
use crate::status;
pub use file::{LogFile, prepare};
use format::{How, Request};
use writer::{Message, Settings, Shared};

/// For how long the end of the daemon waits for the disk to take the last lines.
const FINISH_MAX: Duration = Duration::from_secs(2);

/// What the key of hashed addresses is derived for (BLAKE3's `derive_key`).
const CONTEXT: &str = "hearsay 2026-11-29 addresses of clients in the log of requests";

/// A handle to the log.
#[derive(Clone, Default)]
pub struct RequestLog(Rc<Inner>);

#[derive(Default)]
struct Inner {
    is_on: Cell<bool>,
    /// Whether lines name programs and referring pages.
    names_agents: Cell<bool>,
    /// The router's name in `Cache-Status`.
    name: OnceCell<String>,
    /// The key with which addresses are hashed, if they are.
    key: OnceCell<[u8; 32]>,
    /// To the thread, once the log was on.
    writer: RefCell<Option<Sender<Message>>>,
    shared: Shared,
    held: RefCell<Option<Requests>>,
}

impl RequestLog {
    /// Logs by these settings, to a file that is open already, if any is: it was opened with rights that are gone.
    pub fn begin(&self, config: &Config, opened: Option<std::io::Result<LogFile>>) {
        let secret = config.mesh.key.as_ref().map(|_| config.mesh.object_secret());
        let key = secret.map_or_else(entropy::bytes, |it| blake3::derive_key(CONTEXT, &it));
        let inner = &*self.0;
        inner.name.get_or_init(|| config.name.clone());
        inner.key.get_or_init(|| key);
        self.apply(&config.requests, opened);
    }

    /// Logs by these settings from now on. The file is opened again: another program may have renamed it.
    pub fn hold(&self, requests: &Requests) {
        self.apply(requests, None);
    }

    fn apply(&self, requests: &Requests, opened: Option<std::io::Result<LogFile>>) {
        let inner = &*self.0;
        let settings = requests.file.clone().map(|path| Settings {
            path,
            format: requests.format,
            key: inner.key.get().copied().filter(|_| requests.clients == Naming::Hash),
            size_max: requests.size_bytes,
            keep: requests.keep,
        });
        inner.is_on.set(settings.is_some());
        inner.names_agents.set(requests.format == Format::Combined);
        inner.held.replace(Some(requests.clone()));
        let mut writer = inner.writer.borrow_mut();
        if settings.is_none() && writer.is_none() {
            return;
        }
        let to = writer.get_or_insert_with(|| {
            let (to, from) = channel();
            writer::start(from, inner.shared.clone());
            to
        });
        // It fails only if the thread could not be started, which was said.
        let _ = to.send(Message::Use(settings, opened));
    }

    /// Begins the line of a request, which may be one that was refused because it cannot be read; `None` if requests are
    /// not logged.
    pub fn line<B>(
        &self,
        head: &HttpRequest<B>,
        refused: Option<Refusal>,
        (client, entrance): (IpAddr, Entrance),
    ) -> Option<Rc<Line>> {
        if !self.0.is_on.get() {
            return None;
        }
        let asked = match refused {
            Some(_) => {
                // As squid writes it. What we have is a stand-in for the request.
                let method = Method::from_bytes(b"NONE").unwrap_or_default();
                Request::new(client, method, "error:invalid-request".to_owned())
            }
            None => self.asked(head, client, entrance),
        };
        Some(Line::new(self, asked))
    }

    fn asked<B>(&self, head: &HttpRequest<B>, client: IpAddr, entrance: Entrance) -> Request {
        let with = self.0.names_agents.get();
        let field = |name: HeaderName| text(head.headers(), &name).filter(|_| with);
        let mut asked = Request::new(client, head.method().clone(), asked_for(head, entrance));
        asked.version = head.version();
        (asked.referer, asked.agent) = (field(header::REFERER), field(header::USER_AGENT));
        asked
    }

    /// What the status shows; `None` if requests are not logged.
    pub fn status(&self) -> Option<status::RequestLog> {
        let file = self.0.held.borrow().as_ref()?.file.clone()?;
        let (lines, dropped_lines, error) = self.0.shared.counts();
        Some(status::RequestLog { file, error, lines, dropped_lines })
    }

    /// Waits until the disk has taken the last lines, but not for long.
    pub fn finish(&self) {
        let (done, told) = channel();
        let writer = self.0.writer.borrow();
        if writer.as_ref().is_some_and(|it| it.send(Message::Finish(done)).is_ok()) {
            let _ = told.recv_timeout(FINISH_MAX);
        }
    }

    fn write(&self, request: Box<Request>) {
        if let Some(writer) = &*self.0.writer.borrow()
            && self.0.shared.admit(request.weight())
        {
            let _ = writer.send(Message::Line(request));
        }
    }
}

/// A request under way. It is logged when this is dropped: all that the client gets has been sent then, or the client has
/// left.
pub struct Line {
    log: RequestLog,
    began: Instant,
    /// Until this is dropped.
    request: RefCell<Option<Box<Request>>>,
}

impl Line {
    fn new(log: &RequestLog, asked: Request) -> Rc<Self> {
        let request = RefCell::new(Some(Box::new(asked)));
        Rc::new(Self { log: log.clone(), began: Instant::now(), request })
    }

    fn note(&self, what: impl FnOnce(&mut Request)) {
        self.request.borrow_mut().as_deref_mut().map(what);
    }

    /// The request stands for one for this URL.
    pub fn stands_for(&self, uri: &Uri) {
        self.note(|request| request.url = bare(uri));
    }

    /// The response has begun. `is_tunnel`: a tunnel follows.
    pub fn answered(&self, head: &Head, is_tunnel: bool) {
        let name = self.log.0.name.get().map_or("", String::as_str);
        self.note(|request| {
            request.status = head.status.as_u16();
            request.kind = text(&head.headers, &header::CONTENT_TYPE);
            request.how = match is_tunnel {
                true => How::Tunnel,
                false => How::of(head.status, &head.headers, name),
            };
            // To these, nothing more is to come.
            let is_bare = matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
            request.is_whole |= request.method == Method::HEAD || is_bare;
        });
    }

    /// The client's connection was joined with one to the origin, whose response we cannot read.
    pub fn relayed(&self) {
        self.note(|request| request.how = How::Relayed);
    }

    /// The client was given this many more bytes of content.
    pub fn gave(&self, bytes: u64) {
        self.note(|request| request.bytes += bytes);
    }

    /// The client was given all of it.
    pub fn finish(&self) {
        self.note(|request| request.is_whole = true);
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Some(mut request) = self.request.take() {
            request.ended = SystemTime::now();
            request.took = self.began.elapsed();
            self.log.write(request);
        }
    }
}

/// The URL that a client asks for: whole, as for a proxy, without a user's name and password.
fn asked_for<B>(head: &HttpRequest<B>, entrance: Entrance) -> String {
    let uri = head.uri();
    if uri.authority().is_some() {
        return bare(uri);
    }
    let named = head.headers().get(header::HOST);
    let named = named.and_then(|host| Authority::try_from(host.as_bytes()).ok());
    let dialled = match entrance {
        Entrance::Intercepted(dialled) => Some(dialled.to_string()),
        Entrance::Explicit | Entrance::Mirror => None,
    };
    let host = named.map(|it| without_user(it.as_str()).to_owned()).or(dialled);
    host.map_or_else(|| uri.to_string(), |host| format!("http://{host}{uri}"))
}

fn bare(uri: &Uri) -> String {
    let (Some(scheme), Some(authority)) = (uri.scheme().map(Scheme::as_str), uri.authority())
    else {
        // Of `CONNECT`: a host and a port.
        return without_user(&uri.to_string()).to_owned();
    };
    let path = uri.path_and_query().map_or("", |path| path.as_str());
    format!("{scheme}://{}{path}", without_user(authority.as_str()))
}

fn without_user(authority: &str) -> &str {
    authority.rsplit_once('@').map_or(authority, |(_, host)| host)
}

/// A copy of a field: the field itself would hold the whole buffer in memory that the head was read into.
fn text(headers: &HeaderMap, name: &HeaderName) -> Option<Box<[u8]>> {
    headers.get(name).map(|value| value.as_bytes().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(uri: &str, host: Option<&str>, entrance: Entrance) -> String {
        let request = HttpRequest::builder().uri(uri);
        let request = host.into_iter().fold(request, |it, host| it.header("host", host));
        asked_for(&request.body(()).unwrap(), entrance)
    }

    #[test]
    fn urls_are_whole_and_without_passwords() {
        let dialled = Entrance::Intercepted("192.0.2.7:80".parse().unwrap());
        for (uri, host, entrance, expected) in [
            ("http://h.test/a?b=c", None, Entrance::Explicit, "http://h.test/a?b=c"),
            ("http://me:secret@h.test/a", None, Entrance::Explicit, "http://h.test/a"),
            ("h.test:443", None, Entrance::Explicit, "h.test:443"),
            ("/a?b", Some("h.test"), dialled, "http://h.test/a?b"),
            ("/a", Some("me:secret@h.test"), dialled, "http://h.test/a"),
            ("/a", None, dialled, "http://192.0.2.7:80/a"),
            ("/a", Some("not a host"), dialled, "http://192.0.2.7:80/a"),
            ("/a", None, Entrance::Mirror, "/a"),
        ] {
            assert_eq!(url(uri, host, entrance), expected);
        }
    }

    #[test]
    fn nothing_is_noted_while_it_is_off() {
        let log = RequestLog::default();
        let head = HttpRequest::new(());
        let from = (IpAddr::from([192, 0, 2, 1]), Entrance::Explicit);
        assert!(log.line(&head, None, from).is_none() && log.status().is_none());
        assert!(log.0.writer.borrow().is_none(), "no thread is started for nothing");
    }
}
