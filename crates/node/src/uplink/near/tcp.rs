//! Clients' TCP connections that go by the pair: which may, and how their two directions end.

use super::flows::Flow;
use super::{Near, NearOutput};
use crate::access::is_local;
use crate::input::FetchError;
use crate::uplink::messages::Message;
use crate::uplink::tcp::{Dialled, Kind};
use crate::uplink::{FLOWS_MAX, FlowId, TcpId, url_of_server};
use std::net::{IpAddr, SocketAddr};
use wire::Instant;

/// Which directions of a connection have not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpFlow {
    /// Both.
    Open,
    /// The client has said all.
    Receiving,
    /// The server has said all.
    Sending,
}

impl Near {
    /// Whether it takes TCP connections now: the far end answers, and there is room.
    pub fn takes_tcp(&self) -> bool {
        // A flow whose two sides have ended may still have to cross.
        let has_room = self.flows.has_room_for_tcp() && self.pair.sender.len() < FLOWS_MAX;
        self.is_up() && has_room && !self.pair.is_crowded()
    }

    /// Whether this client's TCP connection to this address may go by the pair now. Counts it if not.
    pub fn may_dial(&mut self, to: SocketAddr, client: IpAddr) -> bool {
        let reaches = self.reach().is_some_and(|reach| reach.covers(to.ip()));
        let has_room = self.takes_tcp() && self.flows.has_room(client);
        let may = reaches && has_room && !is_local(to.ip());
        self.pair.report.tcp_flows_past += u64::from(!may);
        may
    }

    pub(super) fn dial(&mut self, now: Instant, id: TcpId, to: SocketAddr, client: IpAddr) {
        self.pair.report.tcp_flows += 1;
        let id = FlowId::Tcp(id);
        self.flows.insert(id, client, Flow::Tcp(TcpFlow::Open));
        let client = self.client(client);
        let number = id.number();
        self.pair.receiver.open_tcp(number);
        self.pair.sender.open(now, number, client, Kind::TCP, url_of_server(to));
        self.pair.expect(now, Message::Dial(number, Dialled { to, client }));
    }

    /// The client has said all, or has broken the connection off.
    pub(super) fn client_end(&mut self, id: TcpId, result: Result<(), FetchError>) {
        let id = FlowId::Tcp(id);
        let Some(Flow::Tcp(flow)) = self.flows.get_mut(id) else { return };
        if let Err(why) = result {
            self.flows.remove(id);
            // In its order: what the client said last is for the server.
            self.pair.receiver.forget(id.number());
            return self.pair.sender.abort(id.number(), why);
        }
        match flow {
            TcpFlow::Open | TcpFlow::Receiving => *flow = TcpFlow::Receiving,
            TcpFlow::Sending => _ = self.flows.remove(id),
        }
        self.pair.sender.finish(id.number(), Ok(()));
    }

    /// The server takes no more of what a client says.
    pub(super) fn unheard(&mut self, id: FlowId) {
        let (FlowId::Tcp(tcp), Some(Flow::Tcp(flow))) = (id, self.flows.get_mut(id)) else {
            return;
        };
        match flow {
            // How it ends is still to come.
            TcpFlow::Open | TcpFlow::Receiving => *flow = TcpFlow::Receiving,
            TcpFlow::Sending => {
                self.flows.remove(id);
                self.outputs.push_back(NearOutput::TcpEnd(tcp, Err(FetchError::Unsent)));
            }
        }
    }

    /// The server has said all, or has refused or reset the connection.
    pub(super) fn server_end(&mut self, tcp: TcpId, result: Result<(), FetchError>) {
        let id = FlowId::Tcp(tcp);
        let Some(Flow::Tcp(flow)) = self.flows.get_mut(id) else { return };
        match result {
            Ok(()) if *flow == TcpFlow::Open => *flow = TcpFlow::Sending,
            Ok(()) => _ = self.flows.remove(id),
            Err(why) => {
                self.flows.remove(id);
                self.pair.sender.cancel(id.number());
                // The driver makes the connection itself, if it can.
                self.pair.report.tcp_flows_past += u64::from(why == FetchError::NoRoom);
            }
        }
        self.outputs.push_back(NearOutput::TcpEnd(tcp, result));
    }
}
