//! One request to an origin, for a gateway: its answer goes to the engine as fast as that grants.

use super::gateway::{Credit, Gateway};
use bytes::Bytes;
use host::content::{Content as Body, Supplied, Unsent};
use host::origin::{Pool, broken};
use http::StatusCode;
use http_body_util::channel::{Channel, Sender};
use hyper::body::{Body as _, Incoming};
use node::uplink::FarInput;
use node::{Fetch, FetchError, FetchId, OriginInput};
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Content of a request that may wait here, in bytes; the engine sends no more.
const WAITING_MAX: u64 = 64 * 1024;
/// Pieces between the reader and the connection with the origin.
const PIECES: usize = 4;

/// Takes the content of a request from the engine.
pub struct Content(UnboundedSender<Result<Bytes, FetchError>>);

/// Gives it to the origin's connection.
pub struct Pump {
    pieces: UnboundedReceiver<Result<Bytes, FetchError>>,
    to: Sender<Bytes, Unsent>,
    body: Supplied,
}

impl Content {
    /// Both ends.
    pub fn new() -> (Self, Pump) {
        let (sender, pieces) = unbounded_channel();
        let (to, body) = Channel::new(PIECES);
        (Self(sender), Pump { pieces, to, body })
    }

    /// The next bytes.
    pub fn send(&self, bytes: Bytes) {
        // The request may have ended already.
        let _ = self.0.send(Ok(bytes));
    }

    /// The end. After an error the origin must see that content is missing.
    pub fn end(self, result: Result<(), FetchError>) {
        if let Err(error) = result {
            let _ = self.0.send(Err(error));
        }
    }
}

/// Sends a request, and feeds the answer to the gateway's engine.
pub async fn run(
    gateway: Gateway,
    pool: Pool,
    id: FetchId,
    request: Fetch,
    content: Option<Pump>,
    credit: Rc<Credit>,
) {
    let result = match content {
        None => ask(&gateway, &pool, id, &request, Body::None, &credit).await,
        Some(Pump { pieces, to, body }) => {
            let answer = ask(&gateway, &pool, id, &request, Body::Supplied(body), &credit);
            tokio::pin!(answer);
            // The answer may end before the content does.
            tokio::select! {
                result = &mut answer => result,
                () = pump(&gateway, id, pieces, to) => answer.await,
            }
        }
    };
    gateway.feed(FarInput::Origin(OriginInput::End(id, result)));
    gateway.fetched(id);
}

async fn pump(
    gateway: &Gateway,
    id: FetchId,
    mut pieces: UnboundedReceiver<Result<Bytes, FetchError>>,
    mut to: Sender<Bytes, Unsent>,
) {
    gateway.accept_content(id, WAITING_MAX);
    while let Some(piece) = pieces.recv().await {
        match piece {
            Ok(bytes) => {
                let length = bytes.len() as u64;
                if to.send_data(bytes).await.is_err() {
                    return;
                }
                gateway.accept_content(id, length);
            }
            Err(error) => return to.abort(error.into()),
        }
    }
}

async fn ask(
    gateway: &Gateway,
    pool: &Pool,
    id: FetchId,
    request: &Fetch,
    content: Body,
    credit: &Credit,
) -> Result<(), FetchError> {
    let answer = pool.ask(request, content).await?;
    let (response, connection) = answer.split();
    let (head, mut content) = response.into_parts();
    if head.status == StatusCode::SWITCHING_PROTOCOLS {
        return Err(FetchError::Malformed);
    }
    gateway.feed(FarInput::Origin(OriginInput::Head(id, head.status, head.headers)));
    read(gateway, id, &mut content, credit).await?;
    drop(content);
    pool.keep(connection).await;
    Ok(())
}

async fn read(
    gateway: &Gateway,
    id: FetchId,
    content: &mut Incoming,
    credit: &Credit,
) -> Result<(), FetchError> {
    let clock = gateway.clock();
    loop {
        while !credit.grants.get().is_open() && !content.is_end_stream() {
            credit.opened.notified().await;
        }
        let frame = poll_fn(|cx| Pin::new(&mut *content).poll_frame(cx));
        let frame = tokio::select! {
            biased;
            frame = frame => frame,
            () = clock.wait_until(credit.grants.get().poll_timeout()) => {
                return Err(FetchError::TimedOut);
            }
        };
        match frame {
            None => return Ok(()),
            Some(Err(error)) => return Err(broken(&error)),
            // Trailers are dropped.
            Some(Ok(frame)) => {
                if let Ok(bytes) = frame.into_data() {
                    let mut grants = credit.grants.get();
                    grants.took(clock.now(), bytes.len());
                    credit.grants.set(grants);
                    gateway.feed(FarInput::Origin(OriginInput::Body(id, bytes)));
                }
            }
        }
    }
}
