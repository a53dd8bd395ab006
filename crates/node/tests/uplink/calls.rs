//! TCP connections that go by a pair to which anything may happen: what each side hears is what the other has said.

use crate::net::{CLIENT, Net};
use node::uplink::TcpId;
use node::{FetchError, FetchId};
use std::net::SocketAddr;

/// Each server has a port of its own, from this on.
const PORTS: u16 = 10_000;

/// How a side ends.
pub type End = Result<(), FetchError>;

/// A connection: what both sides say, and how they end, if they have.
#[derive(Debug)]
pub struct Call {
    client: TcpId,
    port: u16,
    asks: Vec<u8>,
    answers: Vec<u8>,
    client_end: Option<End>,
    server_end: Option<End>,
    is_served: bool,
    /// The near end that had it was started again.
    is_orphan: bool,
}

/// All connections.
#[derive(Debug, Default)]
pub struct Calls(Vec<Call>);

impl Calls {
    /// A client dials, if it may, and says this; its server is to answer so.
    pub fn dial(&mut self, net: &mut Net, asks: &[u8], answers: &[u8]) {
        let port = PORTS + self.0.len() as u16;
        let to: SocketAddr = ([198, 51, 100, 7], port).into();
        if !net.near.may_dial(to, CLIENT) {
            return;
        }
        let client = net.dial(&to.to_string());
        self.0.push(Call {
            client,
            port,
            asks: asks.to_vec(),
            answers: answers.to_vec(),
            client_end: None,
            server_end: None,
            is_served: false,
            is_orphan: false,
        });
        net.client_says(client, asks);
    }

    /// Servers that were dialled say what they have to say.
    pub fn serve(&mut self, net: &mut Net) {
        for call in self.0.iter_mut().filter(|call| !call.is_served) {
            if let Some(server) = call.server(net) {
                call.is_served = true;
                net.server_says(server, &call.answers);
            }
        }
    }

    /// One of the newest ends at its client.
    pub fn end_client(&mut self, net: &mut Net, which: usize, end: End) {
        if let Some(call) = self.0.iter_mut().rev().nth(which) {
            call.end_client(net, end);
        }
    }

    /// One of the newest ends at its server, once that has said all.
    pub fn end_server(&mut self, net: &mut Net, which: usize, end: End) {
        if let Some(call) = self.0.iter_mut().rev().nth(which) {
            call.end_server(net, end);
        }
    }

    /// The near end was started again: its clients are nobody's.
    pub fn orphan(&mut self) {
        self.0.iter_mut().for_each(|call| call.is_orphan = true);
    }

    /// Both sides of all end.
    pub fn end_all(&mut self, net: &mut Net) {
        for call in &mut self.0 {
            call.end_client(net, Ok(()));
            call.end_server(net, Ok(()));
        }
    }

    /// What was heard is a part of what was said, and all of it if it has ended well.
    pub fn check(&self, net: &Net) {
        for call in &self.0 {
            let client = &net.clients[&call.client];
            let of = |said: &[u8], end: Option<End>, side: &crate::net::Side| {
                assert!(said.starts_with(&side.heard), "wrong bytes: {}", call.port);
                if side.end == Some(Ok(())) {
                    assert_eq!((said.len(), end), (side.heard.len(), Some(Ok(()))), "it was cut");
                }
            };
            of(&call.answers, call.server_end, client);
            if let Some(server) = call.server(net) {
                of(&call.asks, call.client_end, &net.servers[&server]);
            }
        }
    }

    /// All have ended at both sides.
    pub fn check_ends(&self, net: &Net) {
        for call in &self.0 {
            let broke = |end: Option<End>| matches!(end, Some(Err(_)));
            let has_client = net.clients[&call.client].end.is_some();
            assert!(has_client || broke(call.client_end) || call.is_orphan, "a client: {call:?}");
            let server = call.server(net).map(|id| net.servers[&id].end.is_some());
            assert!(server != Some(false) || broke(call.server_end), "a server: {call:?}");
        }
    }
}

impl Call {
    /// Its server's side, while the far end that dialled it runs.
    fn server(&self, net: &Net) -> Option<FetchId> {
        net.dialled.iter().find(|(_, to)| to.port() == self.port).map(|(id, _)| *id)
    }

    fn end_client(&mut self, net: &mut Net, end: End) {
        if self.client_end.is_none() && !self.is_orphan {
            self.client_end = Some(end);
            net.client_ends(self.client, end);
        }
    }

    fn end_server(&mut self, net: &mut Net, end: End) {
        if let (Some(server), true, None) = (self.server(net), self.is_served, self.server_end) {
            self.server_end = Some(end);
            net.server_ends(server, end);
        }
    }
}
