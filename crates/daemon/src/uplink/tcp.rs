//! Clients' TCP connections, other than of HTTP, that go by the pair.

use super::{Feed, Uplink};
use crate::pair::tcp::{Engine, Inbox, WAITING_MAX, converse};
use bytes::Bytes;
use host::client::Client;
use host::parting::abort;
use node::FetchError;
use node::uplink::{FlowId, NearInput, TcpId};
use std::cell::Cell;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

/// A connection that the far end is making.
pub struct Dialled<D: Feed> {
    uplink: Uplink,
    driver: D,
    id: TcpId,
    inbox: Rc<Inbox>,
    /// Bytes in both directions.
    passed: Cell<u64>,
}

impl Uplink {
    /// Has the far end dial for a client, at once; `None` if this connection cannot go by the pair.
    pub fn dial<D: Feed>(&self, driver: D, to: SocketAddr, client: IpAddr) -> Option<Dialled<D>> {
        let to = SocketAddr::new(to.ip().to_canonical(), to.port());
        let (id, inbox) = {
            let state = &mut *self.0.state.borrow_mut();
            if !state.near.may_dial(to) {
                return None;
            }
            state.dialled += 1;
            let (id, inbox) = (TcpId(state.dialled), Rc::<Inbox>::default());
            state.tcp.insert(id, Rc::clone(&inbox));
            (id, inbox)
        };
        driver.uplink(NearInput::Dial(id, to, client));
        driver.uplink(NearInput::GrantTcp(id, WAITING_MAX));
        Some(Dialled { uplink: self.clone(), driver, id, inbox, passed: Cell::new(0) })
    }
}

impl<D: Feed> Dialled<D> {
    /// Carries the client's bytes, until both sides have said all, or the connection is broken off. Returns how many
    /// passed.
    pub async fn carry(self, client: Client) -> u64 {
        let (client, is_whole) = converse(client, &self.inbox, &self).await;
        if !is_whole {
            abort(&client);
        }
        self.passed.get()
    }

    fn pass(&self, bytes: u64) {
        self.passed.set(self.passed.get() + bytes);
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

    fn heard(&self, bytes: Bytes) {
        self.pass(bytes.len() as u64);
        self.driver.uplink(NearInput::Content(FlowId::Tcp(self.id), bytes));
    }

    fn ended(&self, result: Result<(), FetchError>) {
        self.driver.uplink(NearInput::ContentEnd(FlowId::Tcp(self.id), result));
    }

    fn took(&self, bytes: u64) {
        self.pass(bytes);
        self.driver.uplink(NearInput::GrantTcp(self.id, bytes));
    }
}
