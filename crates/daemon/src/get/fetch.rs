//! One request through an explicit proxy: a GET in absolute form (RFC 9112 §3.2.2).

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, HOST, IF_RANGE, RANGE, USER_AGENT};
use http::{Request, Response, Uri};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::exit::Failure;

/// How long to wait for the connection to the proxy, which is on this machine or near.
const CONNECT_MAX: Duration = Duration::from_secs(10);

/// How long to wait for the next bytes. Uplinks of meshes stall for tens of seconds and recover.
const SILENCE_MAX: Duration = Duration::from_secs(90);

/// Of the text of an error, at least this much is read.
const TEXT_MAX: usize = 1024;

/// Sends the request, and returns the head of the response.
pub async fn ask(
    proxy: SocketAddr,
    url: &Uri,
    resume: Option<(u64, &str)>,
) -> Result<Response<Incoming>, Failure> {
    let request = request(url, resume).map_err(Failure::usage)?;
    let stream = connect(proxy).await?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(lost)?;
    // An error of the connection also ends the body, where it is reported.
    tokio::spawn(connection);
    timeout(SILENCE_MAX, sender.send_request(request)).await.map_err(|_| silent())?.map_err(lost)
}

/// The next bytes of a body; `None` at its end.
pub async fn next(body: &mut Incoming) -> Result<Option<Bytes>, Failure> {
    loop {
        let frame = timeout(SILENCE_MAX, body.frame()).await.map_err(|_| silent())?;
        match frame.transpose().map_err(lost)? {
            None => return Ok(None),
            Some(frame) => {
                if let Ok(bytes) = frame.into_data() {
                    return Ok(Some(bytes));
                }
            }
        }
    }
}

/// The first line of a short text, without the name that stands before it.
pub async fn first_line(mut body: Incoming) -> Option<String> {
    let mut text = Vec::new();
    while let Ok(Some(bytes)) = next(&mut body).await
        && text.len() < TEXT_MAX
    {
        text.extend_from_slice(&bytes);
    }
    let text = String::from_utf8(text).ok()?;
    let line = text.lines().next()?;
    let (_, line) = line.split_once(": ").unwrap_or(("", line));
    (!line.is_empty()).then(|| line.to_owned())
}

fn request(url: &Uri, resume: Option<(u64, &str)>) -> http::Result<Request<Empty<Bytes>>> {
    let host = url.authority().map_or("", |authority| authority.as_str());
    let mut request = Request::get(url)
        .header(HOST, host)
        .header(USER_AGENT, concat!("hearsay/", env!("CARGO_PKG_VERSION")))
        .header(ACCEPT, "*/*")
        // The file itself, not a compressed form: ranges and digests apply to the form that is
        // sent.
        .header(ACCEPT_ENCODING, "identity");
    if let Some((from, validator)) = resume {
        request = request.header(RANGE, format!("bytes={from}-")).header(IF_RANGE, validator);
    }
    request.body(Empty::new())
}

async fn connect(proxy: SocketAddr) -> Result<TcpStream, Failure> {
    let refused = |why: &dyn std::fmt::Display| {
        let advice = "is `hearsay run` listening there? (--proxy ADDR:PORT)";
        Failure::unreachable(format!("no proxy answers at {proxy} ({why}): {advice}"))
    };
    match timeout(CONNECT_MAX, TcpStream::connect(proxy)).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => Err(refused(&error)),
        Err(_) => Err(refused(&"no answer in time")),
    }
}

fn silent() -> Failure {
    Failure::failed(format!("the proxy sent nothing for {} s", SILENCE_MAX.as_secs()))
}

fn lost(error: hyper::Error) -> Failure {
    if error.is_incomplete_message() {
        return Failure::failed("the connection was cut");
    }
    let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
    Failure::failed(format!("the connection was lost: {error}{}", cause.unwrap_or_default()))
}
