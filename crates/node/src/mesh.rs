//! What a node has because of its mesh: services, lent by the context, and what joins them.
//!
//! *Sources:* MeshCache §3; docs/protocol.md.

use crate::holders::Holders;
use crate::identity::node_id;
use crate::input::{ExchangeId, MeshConfig};
use crate::peers::Peers;
use crate::routes::{RouteTable, Routes};
use std::net::{IpAddr, SocketAddr};
use wire::peer::{Gateway, Hello};
use wire::{Instant, NodeId, Oid, PublicKey, Selection};

/// Messages that wait because peers take them slowly have one part in so many of the memory.
const BACKLOGS_SHARE: u64 = 8;

/// See the module.
pub struct Mesh {
    pub config: MeshConfig,
    pub peers: Peers,
    pub routes: Routes,
    /// Who leads to which published object.
    pub holders: Holders,
    name: String,
    profile: u8,
    exchanges: u64,
}

impl Mesh {
    /// A node without peers or routes yet, and with a part of this much memory.
    pub fn new(
        config: MeshConfig,
        name: String,
        profile: u8,
        seed: [u8; 32],
        memory_bytes: u64,
    ) -> Self {
        let hello = Hello { name: name.clone(), profile, gateway: Gateway::Unknown };
        let mut peers = Peers::new(&config, hello, seed);
        peers.limit_backlogs(usize::try_from(memory_bytes / BACKLOGS_SHARE).unwrap_or(usize::MAX));
        let (routes, holders) = (Routes::default(), Holders::default());
        Self { config, peers, routes, holders, name, profile, exchanges: 0 }
    }

    /// Takes in the way to the gateway, and tells the peers what follows from it.
    pub fn set_routes(&mut self, now: Instant, table: RouteTable) {
        self.routes.set(now, table);
        self.introduce(now);
    }

    /// What the next hop says of the gateway may be news to us, and so to the other peers.
    pub fn introduce(&mut self, now: Instant) {
        if let Some((next_hop, gateway)) = self.told() {
            self.routes.learn(next_hop, gateway);
        }
        let gateway = self.routes.gateway();
        if let Some(next_hop) = self.routes.ways().next_hop {
            self.peers.keep_place_for([next_hop].into_iter().chain(gateway));
        }
        let gateway = match gateway {
            _ if self.routes.is_gateway() => Gateway::Here,
            gateway => gateway.map_or(Gateway::Unknown, Gateway::At),
        };
        let hello = Hello { name: self.name.clone(), profile: self.profile, gateway };
        self.peers.introduce(now, hello);
        self.holders.changed = true;
    }

    /// The next hop, and what it says of the gateway, if it is there.
    fn told(&self) -> Option<(IpAddr, IpAddr)> {
        let next_hop = self.routes.route()?.next_hop;
        match self.peers.hello(self.peers.at(next_hop)?)?.gateway {
            Gateway::Unknown => None,
            Gateway::Here => Some((next_hop, next_hop)),
            Gateway::At(address) => Some((next_hop, address)),
        }
    }

    /// Gets to know those who will be asked, before they are: a first request then costs no handshakes.
    pub fn meet(&mut self, now: Instant) {
        let ways = self.routes.ways();
        let gateway = ways.gateway.filter(|_| !self.per_hop());
        self.routes.met(now);
        for address in [ways.next_hop, gateway].into_iter().flatten() {
            if self.peers.at(address).is_none() && !self.routes.is_passed_over(now, address) {
                let socket = self.socket(address);
                self.peers.dial(now, socket);
            }
        }
    }

    /// The port for peers at an address.
    pub fn socket(&self, address: IpAddr) -> SocketAddr {
        self.routes.socket(address, self.config.port)
    }

    /// Whether each hop is to look, keep and forward what is asked from here.
    pub fn per_hop(&self) -> bool {
        self.config.selection == Selection::PhThcp
    }

    /// Numbers a request of a peer among the driver's, which count up from below.
    pub fn draw_exchange(&mut self) -> ExchangeId {
        self.exchanges += 1;
        ExchangeId::from_peer(self.exchanges)
    }

    /// Whether anybody but an origin could be asked for what is missing of an object.
    pub fn has_sources(&self, named: Option<Oid>) -> bool {
        named.is_some_and(|name| self.holders.has(&name)) || self.routes.route().is_some()
    }

    /// Whether a signer of records is to be believed; the signature was checked already.
    pub fn believes(&self, signer: &PublicKey) -> bool {
        self.config.gateways.is_empty() || self.config.gateways.contains(signer)
    }

    /// Whether a peer is to be believed in what nobody has signed.
    pub fn believes_unsigned(&self, peer: NodeId) -> bool {
        let gateways = &self.config.gateways;
        gateways.is_empty() || gateways.iter().any(|key| node_id(key) == peer)
    }
}
