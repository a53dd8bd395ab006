//! Clients' TCP connections, other than of HTTP, that go by the pair.

use super::{Feed, Uplink};
use crate::pair::tcp::{Engine, Inbox, WAITING_MAX, converse};
use bytes::{Bytes, BytesMut};
use host::client::Client;
use host::parting::abort_after_all;
use node::FetchError;
use node::uplink::{FlowId, NearInput, TcpId};
use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

/// What a client has said is kept for its server up to this many bytes, in case the far end has no room.
const SAID_MAX: usize = 16 * 1024;

/// A connection that the far end is making.
pub struct Dialled<D: Feed> {
    uplink: Uplink,
    driver: D,
    id: TcpId,
    inbox: Rc<Inbox>,
    /// What the client has said, until its server answers, or it is too much to keep.
    said: RefCell<Option<BytesMut>>,
}

/// What became of a client's connection.
pub enum Carried {
    /// It has ended.
    Whole,
    /// The far end had no room for it, and has not dialled: it goes on past the pair, with what the client has said.
    Past(Client, BytesMut),
}

impl Uplink {
    /// Has the far end dial for a client, at once; `None` if this connection cannot go by the pair.
    pub fn dial<D: Feed>(&self, driver: D, to: SocketAddr, client: IpAddr) -> Option<Dialled<D>> {
        let to = SocketAddr::new(to.ip().to_canonical(), to.port());
        let (id, inbox) = {
            let state = &mut *self.0.state.borrow_mut();
            if !state.near.may_dial(to, client) {
                return None;
            }
            state.dialled += 1;
            let (id, inbox) = (TcpId(state.dialled), Rc::<Inbox>::default());
            state.tcp.insert(id, Rc::clone(&inbox));
            (id, inbox)
        };
        driver.uplink(NearInput::Dial(id, to, client));
        driver.uplink(NearInput::GrantTcp(id, WAITING_MAX));
        Some(Dialled {
            uplink: self.clone(),
            driver,
            id,
            inbox,
            said: RefCell::new(Some(BytesMut::new())),
        })
    }
}

impl<D: Feed> Dialled<D> {
    /// Carries the client's bytes, until both sides have said all, or the connection is broken off.
    pub async fn carry(self, client: Client) -> Carried {
        let (client, is_whole) = converse(client, &self.inbox, &self).await;
        if is_whole {
            return Carried::Whole;
        }
        let is_past = self.inbox.result() == Some(Err(FetchError::NoRoom));
        if let Some(said) = self.said.take().filter(|_| is_past) {
            return Carried::Past(client, said);
        }
        abort_after_all(&client).await;
        Carried::Whole
    }
}

/// A connection that is given up is not wanted at the far end, either.
impl<D: Feed> Drop for Dialled<D> {
    fn drop(&mut self) {
        let is_open = {
            let state = &mut *self.uplink.0.state.borrow_mut();
            state.tcp.remove(&self.id);
            state.near.carries(FlowId::Tcp(self.id))
        };
        if is_open {
            self.ended(Err(FetchError::Truncated));
        }
    }
}

impl<D: Feed> Engine for Dialled<D> {
    async fn room(&self) -> Option<u64> {
        self.uplink.room(FlowId::Tcp(self.id)).await
    }

    async fn heard(&self, bytes: Bytes) {
        self.driver.relayed().passed.go_there(bytes.len() as u64);
        let mut said = self.said.borrow_mut();
        if let Some(kept) = &mut *said {
            kept.extend_from_slice(&bytes);
        }
        if said.as_ref().is_some_and(|kept| kept.len() > SAID_MAX) {
            *said = None;
        }
        drop(said);
        self.driver.uplink(NearInput::Content(FlowId::Tcp(self.id), bytes));
    }

    fn ended(&self, result: Result<(), FetchError>) {
        self.driver.uplink(NearInput::ContentEnd(FlowId::Tcp(self.id), result));
    }

    fn took(&self, bytes: u64) {
        self.driver.relayed().come_back(bytes, self.inbox.taken(bytes));
        *self.said.borrow_mut() = None;
        self.driver.uplink(NearInput::GrantTcp(self.id, bytes));
    }
}
