//! The control socket, the client's side, for `status`, `peers`, `cache`, `get`, `put` and `intercept`; and for `far
//! status`, which asks a far end.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Body;
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;
use wire::Oid;

use crate::control::{ManifestPage, ObjectLine};
use crate::exit::Failure;
use crate::ledger::LedgerPage;
use crate::publish::{PublishedLine, PutLine};
use crate::purge::PurgeLine;
use crate::query;
use crate::status::{FarStatus, PeerLine, Status};

/// How long a daemon may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(20);

/// The command that runs the daemon.
const DAEMON: &str = "run";

/// The size of an answer, at most, in bytes.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// The daemon's status.
pub async fn status(paths: &[PathBuf]) -> Result<Status, Failure> {
    ask(paths, "/status").await?.ok_or_else(|| strange("it has no /status"))
}

/// A far end's status.
pub async fn far_status(paths: &[PathBuf]) -> Result<FarStatus, Failure> {
    ask_of("far", paths, "/far").await?.ok_or_else(|| strange("it has no /far"))
}

/// The connected peers.
pub async fn peers(paths: &[PathBuf]) -> Result<Vec<PeerLine>, Failure> {
    ask(paths, "/peers").await?.ok_or_else(|| strange("it has no /peers"))
}

/// The ledger of the last `seconds`; `None`: of all time.
pub async fn ledger(paths: &[PathBuf], seconds: Option<u64>) -> Result<LedgerPage, Failure> {
    let since = seconds.map_or(String::new(), |seconds| format!("?since={seconds}"));
    let page = ask(paths, &format!("/ledger{since}")).await?;
    page.ok_or_else(|| strange("it has no /ledger"))
}

/// At most `limit` stored objects.
pub async fn objects(paths: &[PathBuf], limit: usize) -> Result<Vec<ObjectLine>, Failure> {
    let target = format!("/cache?limit={limit}");
    ask(paths, &target).await?.ok_or_else(|| strange("it has no /cache"))
}

/// A page of the manifest for a URL, if something is stored for it.
pub async fn manifest_page(
    paths: &[PathBuf],
    url: &str,
    page: u64,
) -> Result<Option<ManifestPage>, Failure> {
    ask(paths, &format!("/manifest?url={}&page={page}", query::encode(url))).await
}

/// The objects that are published on this node.
pub async fn published(paths: &[PathBuf]) -> Result<Vec<PublishedLine>, Failure> {
    ask(paths, "/published").await?.ok_or_else(|| strange("it has no /published"))
}

/// Removes the stored objects that a query chooses.
pub async fn purge(paths: &[PathBuf], query: &str) -> Result<PurgeLine, Failure> {
    let request = Request::delete(format!("/cache?{query}")).body(Empty::<Bytes>::new());
    change(paths, request.map_err(Failure::failed)?).await
}

/// Withdraws a published object.
pub async fn withdraw(paths: &[PathBuf], name: &Oid) -> Result<PutLine, Failure> {
    let request = Request::delete(format!("/put?name={name}")).body(Empty::<Bytes>::new());
    change(paths, request.map_err(Failure::failed)?).await
}

/// Publishes a file of this length; returns once the file is durable.
pub async fn put<B>(paths: &[PathBuf], file: B, length: u64) -> Result<PutLine, Failure>
where
    B: Body<Data = Bytes> + Unpin + 'static,
    B::Error: Into<AnyError>,
{
    let request = Request::post("/put").header("content-length", length).body(file);
    change(paths, request.map_err(Failure::failed)?).await
}

/// Sends a request that changes something, and waits for its answer without a time limit.
async fn change<T, B>(paths: &[PathBuf], request: Request<B>) -> Result<T, Failure>
where
    T: DeserializeOwned,
    B: Body<Data = Bytes> + Unpin + 'static,
    B::Error: Into<AnyError>,
{
    let (stream, path) = connect(DAEMON, paths).await?;
    let broken =
        |error| Failure::unreachable(format!("hearsay at {} broke off: {error}", path.display()));
    match exchange(stream, request).await.map_err(broken)? {
        (StatusCode::OK, body) => {
            serde_json::from_slice(&body).map_err(|error| strange(&error.to_string()))
        }
        (_, why) => Err(Failure::failed(String::from_utf8_lossy(&why).trim())),
    }
}

/// Asks the first socket on which a daemon listens. `None`: the daemon answered 404.
async fn ask<T: DeserializeOwned>(paths: &[PathBuf], target: &str) -> Result<Option<T>, Failure> {
    ask_of(DAEMON, paths, target).await
}

/// The same of what this command of ours runs.
async fn ask_of<T: DeserializeOwned>(
    command: &str,
    paths: &[PathBuf],
    target: &str,
) -> Result<Option<T>, Failure> {
    let (stream, path) = connect(command, paths).await?;
    let request = Request::get(target).body(Empty::<Bytes>::new()).map_err(Failure::failed)?;
    let answer = tokio::time::timeout(ANSWER_MAX, exchange(stream, request)).await;
    let (status, body) = answer
        .map_err(|_| {
            let seconds = ANSWER_MAX.as_secs();
            Failure::unreachable(format!(
                "hearsay at {} did not answer within {seconds} s",
                path.display()
            ))
        })?
        .map_err(|error| {
            Failure::unreachable(format!("hearsay at {} broke off: {error}", path.display()))
        })?;
    match status {
        StatusCode::OK => {
            serde_json::from_slice(&body).map(Some).map_err(|error| strange(&error.to_string()))
        }
        StatusCode::NOT_FOUND => Ok(None),
        StatusCode::SERVICE_UNAVAILABLE => {
            Err(Failure::failed(String::from_utf8_lossy(&body).trim()))
        }
        other => Err(strange(&format!("{other}: {}", String::from_utf8_lossy(&body).trim()))),
    }
}

/// The failure if the answer is unexpected: the daemon may be of another version.
fn strange(what: &str) -> Failure {
    Failure::failed(format!(
        "hearsay sent an unexpected answer ({what}): is it of the same version as this command?"
    ))
}

async fn connect<'a>(
    command: &str,
    paths: &'a [PathBuf],
) -> Result<(UnixStream, &'a Path), Failure> {
    let mut refused = None;
    for path in paths {
        match UnixStream::connect(path).await {
            Ok(stream) => return Ok((stream, path)),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => refused = Some(path),
            Err(_) => {}
        }
    }
    if let Some(path) = refused {
        return Err(Failure::unreachable(format!(
            "{} is there, but you may not use it: ask as root, or as a member of its group",
            path.display()
        )));
    }
    let paths: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
    Err(Failure::unreachable(format!(
        "no hearsay answers at {}: is `hearsay {command}` running? (--control PATH)",
        paths.join(" or ")
    )))
}

type AnyError = Box<dyn std::error::Error + Send + Sync>;

async fn exchange<B>(
    stream: UnixStream,
    mut request: Request<B>,
) -> Result<(StatusCode, Bytes), AnyError>
where
    B: Body<Data = Bytes> + Unpin + 'static,
    B::Error: Into<AnyError>,
{
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    request.headers_mut().insert("host", http::HeaderValue::from_static("hearsay"));
    let answer = async {
        let response = sender.send_request(request).await?;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await?;
        Ok((status, body.to_bytes()))
    };
    tokio::pin!(connection);
    // The connection may end before the answer is read to its end. The answer is then awaited alone.
    tokio::pin!(answer);
    tokio::select! {
        answer = &mut answer => answer,
        ended = &mut connection => {
            ended?;
            answer.await
        }
    }
}
