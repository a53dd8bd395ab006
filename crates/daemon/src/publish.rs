//! Publishing, the daemon's side. A file arrives on the control socket as the body of `POST /put`. It is
//! fed to the engine like an origin's content, no faster than the engine grants.
//!
//! *Who calls it:* `control.rs`; the client's side is `put.rs`. *What it never does:* open a file, or
//! hold more than a piece of one.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use node::{ClientInput, ExchangeId, Input, PutError};
use serde::{Deserialize, Serialize};
use tokio::task::spawn_local;
use wire::Oid;

use crate::control::{json, refuse};
use crate::driver::{Driver, Outbox};
use crate::query;

/// The error if the list of published files cannot be read, and what to do.
pub const UNLISTED: &str = "the list of what is published here cannot be read, in the store's file \
    `catalogue`: start hearsay again; if that does not help, stop it, move that file away, and put again \
    what is to be published";

/// Publishes files, withdraws and lists them.
pub trait Publishes {
    /// Publishes content that has to be of this length; returns its OID once it is durable.
    async fn put(&self, length: u64, content: Incoming) -> Result<Oid, PutError>;

    /// Withdraws a published object.
    async fn withdraw(&self, name: Oid) -> Result<Oid, PutError>;

    /// The objects that are published on this node, in the order of their OIDs.
    fn published(&self) -> Result<Vec<PublishedLine>, PutError>;
}

/// An object that is published on this node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedLine {
    /// The object's OID, in hexadecimal.
    pub oid: String,
    /// The object's length in bytes.
    pub bytes: u64,
    /// When the object was published, in seconds since 1970 by this machine's clock.
    pub since: u64,
    /// Whether all of the object is stored on this node, so that other nodes can get it.
    pub whole: bool,
    /// Whether the object was sealed under another mesh key, so that it cannot be served.
    #[serde(default)]
    pub foreign: bool,
}

/// The answer after an object was published or withdrawn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PutLine {
    /// The object's OID, in hexadecimal.
    pub oid: String,
}

/// Answers `POST /put`.
pub async fn put<P: Publishes>(publisher: &P, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let content = request.into_body();
    let Some(length) = content.size_hint().exact() else {
        return refuse(StatusCode::LENGTH_REQUIRED, "the request lacks Content-Length");
    };
    answer(publisher.put(length, content).await)
}

/// Answers `DELETE /put?name=…`.
pub async fn withdraw<P: Publishes>(publisher: &P, query: &str) -> Response<Full<Bytes>> {
    let name = query::text(query, "name").and_then(|name| name.parse().ok());
    match name {
        Some(name) => answer(publisher.withdraw(name).await),
        None => refuse(StatusCode::BAD_REQUEST, "the query lacks a valid name=…"),
    }
}

/// Answers `GET /published`.
pub fn list<P: Publishes>(publisher: &P) -> Response<Full<Bytes>> {
    match publisher.published() {
        Ok(lines) => json(&lines),
        Err(error) => refused(error),
    }
}

fn answer(result: Result<Oid, PutError>) -> Response<Full<Bytes>> {
    match result {
        Ok(name) => json(&PutLine { oid: name.to_string() }),
        Err(error) => refused(error),
    }
}

fn refused(error: PutError) -> Response<Full<Bytes>> {
    let (status, why) = reason(error);
    refuse(status, &why)
}

fn reason(error: PutError) -> (StatusCode, String) {
    use crate::term::bytes;
    let more =
        "remove a published file (`hearsay put --list`, `--remove OID`) or give the store more";
    match error {
        PutError::TooLarge(bytes_max) => {
            let most = bytes(bytes_max);
            let why = format!("the store takes no object of more than {most}: give it more room");
            (StatusCode::PAYLOAD_TOO_LARGE, why)
        }
        PutError::TooLong(bytes_max) => {
            let most = bytes(bytes_max);
            let why = format!(
                "a name certifies no more than {most} for certain, however large the store is: split the file"
            );
            (StatusCode::PAYLOAD_TOO_LARGE, why)
        }
        PutError::Full(bytes_max) => {
            let most = bytes(bytes_max);
            let why = format!("of this store {most} at most can be published: {more}");
            (StatusCode::INSUFFICIENT_STORAGE, why)
        }
        PutError::TooMany(most) => {
            let why = format!(
                "{most} objects are published here already: remove one (`hearsay put --remove OID`)"
            );
            (StatusCode::INSUFFICIENT_STORAGE, why)
        }
        PutError::Store => {
            let why = "the store could not take it, or not all of it: see `hearsay status`";
            (StatusCode::SERVICE_UNAVAILABLE, why.to_owned())
        }
        PutError::Unlisted => (StatusCode::SERVICE_UNAVAILABLE, UNLISTED.to_owned()),
        PutError::Broken => {
            (StatusCode::BAD_REQUEST, "it did not come with its announced length".to_owned())
        }
        PutError::Unknown => {
            (StatusCode::NOT_FOUND, "nothing of this name is published here".to_owned())
        }
    }
}

impl Publishes for Driver {
    async fn put(&self, length: u64, content: Incoming) -> Result<Oid, PutError> {
        let visit = Visit::new(self);
        visit.port.borrow_mut().content = Some(content);
        self.feed(Input::Client(ClientInput::Put(visit.id, length)));
        let result = visit.result().await;
        // A client that is refused early still sends. Its content is read and dropped: if the
        // connection were cut, the client would lose the answer.
        if let Some(content) = visit.port.borrow_mut().content.take() {
            spawn_local(drain(content));
        }
        result
    }

    async fn withdraw(&self, name: Oid) -> Result<Oid, PutError> {
        let visit = Visit::new(self);
        self.feed(Input::Client(ClientInput::Withdraw(visit.id, name)));
        visit.result().await
    }

    fn published(&self) -> Result<Vec<PublishedLine>, PutError> {
        let line = |it: node::PublishedInfo| PublishedLine {
            oid: it.name.to_string(),
            bytes: it.bytes,
            since: it.since.as_unix(),
            whole: it.whole,
            foreign: it.foreign,
        };
        Ok(Driver::published(self)?.into_iter().map(line).collect())
    }
}

async fn drain(mut content: Incoming) {
    while let Some(Ok(_)) = content.frame().await {}
}

/// A caller that waits for the engine's result; the exchange is closed when this is dropped.
struct Visit<'a> {
    driver: &'a Driver,
    id: ExchangeId,
    port: Rc<RefCell<Outbox>>,
}

impl<'a> Visit<'a> {
    fn new(driver: &'a Driver) -> Self {
        let (id, port) = driver.open();
        Self { driver, id, port }
    }

    async fn result(&self) -> Result<Oid, PutError> {
        poll_fn(|cx| {
            let mut port = self.port.borrow_mut();
            match port.published.take() {
                Some(result) => Poll::Ready(result),
                None => {
                    port.waker = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        self.driver.close(self.id);
    }
}
