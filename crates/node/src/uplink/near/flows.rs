//! What the pair carries, and how much of the room a client may take.
//!
//! *Source:* dynamic thresholds (Choudhury, Hahne 1998), as in `driver::room`: a client may have as many flows as are free.

use super::Request;
use super::tcp::TcpFlow;
use crate::driver::shares::Shares;
use crate::input::FetchId;
use crate::uplink::{FLOWS_MAX, FlowId};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// TCP connections at most: they may last for days, and requests need flows, too.
const TCP_MAX: usize = FLOWS_MAX * 3 / 4;

/// What a client has asked for.
pub enum Flow {
    Fetch(Request),
    Tcp(TcpFlow),
}

/// All flows.
#[derive(Default)]
pub struct Flows {
    all: BTreeMap<FlowId, (IpAddr, Flow)>,
    tcp: usize,
    clients: Shares<IpAddr>,
}

impl Flows {
    /// Whether there is room for one more of this client's.
    pub fn has_room(&self, client: IpAddr) -> bool {
        self.clients.of(&client.to_canonical()) < FLOWS_MAX - self.all.len()
    }

    /// Whether there is room for one more TCP connection.
    pub fn has_room_for_tcp(&self) -> bool {
        self.tcp < TCP_MAX && self.all.len() < FLOWS_MAX
    }

    pub fn insert(&mut self, id: FlowId, client: IpAddr, flow: Flow) {
        self.remove(id);
        let client = client.to_canonical();
        self.tcp += usize::from(matches!(flow, Flow::Tcp(_)));
        self.clients.add(client);
        self.all.insert(id, (client, flow));
    }

    pub fn remove(&mut self, id: FlowId) -> Option<Flow> {
        let (client, flow) = self.all.remove(&id)?;
        self.tcp -= usize::from(matches!(flow, Flow::Tcp(_)));
        self.clients.release(&client);
        Some(flow)
    }

    /// Removes all, from the oldest on.
    pub fn take(&mut self) -> impl Iterator<Item = (FlowId, Flow)> {
        std::mem::take(self).all.into_iter().map(|(id, (_, flow))| (id, flow))
    }

    pub fn get_mut(&mut self, id: FlowId) -> Option<&mut Flow> {
        self.all.get_mut(&id).map(|(_, flow)| flow)
    }

    /// The requests that have no head yet, from the oldest on.
    pub fn unanswered(&self) -> impl Iterator<Item = FetchId> {
        self.all.iter().filter_map(|(id, (_, flow))| match (id, flow) {
            (FlowId::Fetch(id), Flow::Fetch(it)) if it.fetch.is_some() => Some(*id),
            _ => None,
        })
    }

    pub fn has(&self, id: FlowId) -> bool {
        self.all.contains_key(&id)
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uplink::TcpId;

    const GREEDY: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
    const MODEST: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));

    #[test]
    fn a_client_leaves_the_others_half() {
        let (mut flows, mut number) = (Flows::default(), 0);
        while flows.has_room(GREEDY) {
            number += 1;
            flows.insert(FlowId::Tcp(TcpId(number)), GREEDY, Flow::Tcp(TcpFlow::Open));
        }
        assert_eq!((flows.len(), number), (FLOWS_MAX / 2, 512));
        assert!(flows.has_room(MODEST) && flows.has_room_for_tcp());
        let mapped = "::ffff:10.0.0.1".parse().unwrap();
        assert!(!flows.has_room(mapped), "it is the same client");
        flows.remove(FlowId::Tcp(TcpId(1)));
        assert!(flows.has_room(GREEDY));
    }

    #[test]
    fn tcp_leaves_a_quarter_to_requests() {
        let mut flows = Flows::default();
        let client = |number: u64| IpAddr::from([10, 1, (number / 256) as u8, number as u8]);
        for number in 0..768 {
            assert!(flows.has_room_for_tcp() && flows.has_room(client(number)));
            flows.insert(FlowId::Tcp(TcpId(number)), client(number), Flow::Tcp(TcpFlow::Open));
        }
        assert!(!flows.has_room_for_tcp() && flows.has_room(client(800)));
        assert_eq!(flows.take().count(), 768);
        assert!(flows.has_room_for_tcp() && flows.clients.is_empty());
    }
}
