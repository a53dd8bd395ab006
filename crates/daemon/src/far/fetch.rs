//! One request to an origin, for a gateway: its answer goes to the engine as fast as that grants.

use super::gateway::Gateway;
use crate::body_credit::BodyCredit;
use bytes::Bytes;
use host::content::{Content as Body, Supplied, Unsent};
use host::origin::Pool;
use http::StatusCode;
use http_body_util::channel::{Channel, Sender};
use node::uplink::FarInput;
use node::{Fetch, FetchError, FetchId, OriginInput};
use std::rc::Rc;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Content of a request that may wait here, in bytes; the engine sends no more.
const WAITING_MAX: u64 = 64 * 1024;
/// Pieces between the reader and the connection with the origin.
const PIECES: usize = 4;

/// Takes the content of a request from the engine.
pub struct Content(UnboundedSender<Piece>);

/// The next bytes, or (`None`) the end.
type Piece = Result<Option<Bytes>, FetchError>;

/// Gives it to the origin's connection.
pub struct Pump {
    pieces: UnboundedReceiver<Piece>,
    to: Feeder,
    body: Supplied,
}

/// Content that ends when it is whole, and breaks off otherwise: also if the request is dropped. Else an origin would take
/// a part of chunked content for all of it.
struct Feeder(Option<Sender<Bytes, Unsent>>);

impl Feeder {
    async fn send(&mut self, bytes: Bytes) -> bool {
        match &mut self.0 {
            Some(sender) => sender.send_data(bytes).await.is_ok(),
            None => false,
        }
    }

    fn end(mut self) {
        self.0 = None;
    }
}

impl Drop for Feeder {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(|sender| sender.abort(Unsent));
    }
}

impl Content {
    /// Both ends.
    pub fn new() -> (Self, Pump) {
        let (sender, pieces) = unbounded_channel();
        let (to, body) = Channel::new(PIECES);
        (Self(sender), Pump { pieces, to: Feeder(Some(to)), body })
    }

    /// The next bytes.
    pub fn send(&self, bytes: Bytes) {
        // The request may have ended already.
        let _ = self.0.send(Ok(Some(bytes)));
    }

    /// The end. After an error the origin must see that content is missing.
    pub fn end(self, result: Result<(), FetchError>) {
        let _ = self.0.send(result.map(|()| None));
    }
}

/// Sends a request, and feeds the answer to the gateway's engine.
pub async fn run(
    gateway: Gateway,
    pool: Pool,
    id: FetchId,
    request: Fetch,
    content: Option<Pump>,
    credit: Rc<BodyCredit>,
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
    mut pieces: UnboundedReceiver<Piece>,
    mut to: Feeder,
) {
    gateway.accept_content(id, WAITING_MAX);
    while let Some(piece) = pieces.recv().await {
        match piece {
            Ok(Some(bytes)) => {
                let length = bytes.len() as u64;
                if !to.send(bytes).await {
                    return;
                }
                gateway.accept_content(id, length);
            }
            Ok(None) => return to.end(),
            Err(_) => return,
        }
    }
}

async fn ask(
    gateway: &Gateway,
    pool: &Pool,
    id: FetchId,
    request: &Fetch,
    content: Body,
    credit: &BodyCredit,
) -> Result<(), FetchError> {
    let _place = gateway.place()?;
    gateway.turn().await;
    let answer = pool.ask(request, content, None).await?;
    let (response, connection) = answer.split();
    let (head, mut content) = response.into_parts();
    if head.status == StatusCode::SWITCHING_PROTOCOLS {
        return Err(FetchError::Malformed);
    }
    gateway.feed(FarInput::Origin(OriginInput::Head(id, head.status, head.headers)));
    let feed = async |bytes| {
        gateway.turn().await;
        gateway.feed(FarInput::Origin(OriginInput::Body(id, bytes)));
    };
    credit.read(gateway.clock(), &mut content, feed).await?;
    drop(content);
    pool.keep(connection).await;
    Ok(())
}
