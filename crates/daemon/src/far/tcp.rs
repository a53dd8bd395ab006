//! One TCP connection with a server, for a gateway's client.

use super::gateway::Gateway;
use crate::pair::tcp::{Engine, Inbox, WAITING_MAX, converse};
use bytes::Bytes;
use host::dial::Dialler;
use host::parting::abort_after_all;
use node::uplink::FarInput;
use node::{Caller, Dial, FetchError, FetchId, OriginInput};
use std::cell::Cell;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use tokio::sync::Notify;

/// What the engine has told the connection's task.
#[derive(Default)]
pub struct Server {
    pub inbox: Inbox,
    /// How much more of the server's bytes it takes.
    granted: Cell<u64>,
    opened: Notify,
}

impl Server {
    /// The engine takes this many more bytes.
    pub fn allow(&self, bytes: u64) {
        self.granted.set(self.granted.get().saturating_add(bytes));
        self.opened.notify_one();
    }
}

/// Dials, and carries the connection until it ends.
pub async fn run(
    gateway: Gateway,
    dialler: Dialler,
    id: FetchId,
    (to, client): (SocketAddr, IpAddr),
    server: Rc<Server>,
) {
    let dial = Dial::Address(to);
    let end = End { gateway: &gateway, id, server: &server };
    let dialled = async {
        let place = gateway.place()?;
        gateway.turn().await;
        Ok((dialler.dial(&dial, client, Caller::Gateway).await?, place))
    };
    // A client that leaves gives up its place, however long the server lets others wait.
    match server.inbox.unless_cut(dialled).await.unwrap_or(Err(FetchError::Truncated)) {
        Ok((stream, _place)) => {
            gateway.accept_content(id, WAITING_MAX);
            let (stream, is_whole) = converse(stream, &server.inbox, &end).await;
            if !is_whole {
                abort_after_all(&stream).await;
            }
        }
        Err(error) => end.ended(Err(error)),
    }
    gateway.fetched(id);
}

struct End<'a> {
    gateway: &'a Gateway,
    id: FetchId,
    server: &'a Server,
}

impl Engine for End<'_> {
    async fn room(&self) -> Option<u64> {
        loop {
            let granted = self.server.granted.get();
            if granted > 0 {
                return Some(granted);
            }
            self.server.opened.notified().await;
        }
    }

    async fn heard(&self, bytes: Bytes) {
        self.gateway.turn().await;
        let left = self.server.granted.get().saturating_sub(bytes.len() as u64);
        self.server.granted.set(left);
        self.gateway.feed(FarInput::Origin(OriginInput::Body(self.id, bytes)));
    }

    fn ended(&self, result: Result<(), FetchError>) {
        self.gateway.feed(FarInput::Origin(OriginInput::End(self.id, result)));
    }

    fn took(&self, bytes: u64) {
        self.gateway.accept_content(self.id, bytes);
    }
}
