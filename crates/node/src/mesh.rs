//! Services that a node has because it is in a mesh, and what connects them.
//!
//! *Sources:* MeshCache §3; docs/protocol.md.

use crate::copies::Copies;
use crate::holders::Holders;
use crate::http::Record;
use crate::identity::node_id;
use crate::input::{Config, ExchangeId, MeshConfig};
use crate::named;
use crate::peers::Peers;
use crate::refusals::Refusals;
use crate::request::Ask;
use crate::routes::{RouteTable, Routes, Told};
use crate::stock::{Stock, name_of};
use classes::Verdict;
use std::net::{IpAddr, SocketAddr};
use wire::peer::{Capability, Gateway, Hello};
use wire::{ChunkId, Date, Hint, Instant, NodeId, ObjectKey, Oid, PublicKey};

/// Messages waiting for slow peers take at most the memory divided by this.
const BACKLOGS_SHARE: u64 = 8;

/// The services; see the module.
pub struct Mesh {
    pub config: MeshConfig,
    pub peers: Peers,
    pub routes: Routes,
    /// Announcements of published objects.
    pub holders: Holders,
    /// What is stored here.
    pub stock: Stock,
    /// What other routers have stored.
    pub copies: Copies,
    /// Nodes that refused us of late, or that we refused.
    pub refusals: Refusals,
    /// The key of the short names of published objects.
    hint_key: [u8; 32],
    name: String,
    profile: u8,
    exchanges: u64,
}

impl Mesh {
    /// A node of this configuration, without peers and routes; the seed is for the peers' chance.
    pub fn new(config: MeshConfig, node: &Config, seed: [u8; 32]) -> Self {
        let (name, profile) = (node.name.clone(), node.profile.id);
        let memory_bytes = node.memory_bytes;
        let hello = Hello { name: name.clone(), profile, ..Hello::default() };
        let mut peers = Peers::new(&config, hello, seed);
        peers.limit_backlogs(usize::try_from(memory_bytes / BACKLOGS_SHARE).unwrap_or(usize::MAX));
        let (routes, holders) = (Routes::default(), Holders::default());
        let (stock, copies) = (Stock::default(), Copies::default());
        let hint_key = named::hint_key(&node.secret);
        Self {
            config,
            peers,
            routes,
            holders,
            stock,
            copies,
            refusals: Refusals::default(),
            hint_key,
            name,
            profile,
            exchanges: 0,
        }
    }

    /// Sets the routes, and tells the peers what follows from them.
    pub fn set_routes(&mut self, now: Instant, table: RouteTable) {
        self.routes.set(now, table);
        self.introduce(now);
    }

    /// The next hop may have told a new gateway: updates ours, and tells the other peers.
    pub fn introduce(&mut self, now: Instant) {
        if let Some(told) = self.told() {
            self.routes.learn(told);
        }
        let gateway = self.routes.gateway();
        if let Some(next_hop) = self.routes.ways().next_hop {
            self.peers.keep_place_for([next_hop].into_iter().chain(gateway));
        }
        let (gateway, gateway_key) = match gateway {
            _ if self.routes.is_gateway() => (Gateway::Here, Some(self.peers.own_key())),
            gateway => (gateway.map_or(Gateway::Unknown, Gateway::At), self.routes.gateway_key()),
        };
        let hello = Hello {
            name: self.name.clone(),
            profile: self.profile,
            gateway,
            capabilities: Capability::ALL.to_vec(),
            address: self.routes.own_address(),
            hops: self.routes.hops(),
            gateway_key,
        };
        self.peers.introduce(now, hello);
        self.holders.changed = true;
        if self.config.selection.tells_of_copies() {
            self.copies.set_own(now, self.routes.reach(self.peers.own_id()));
        }
    }

    /// What the next hop tells us of the gateway, if it is connected.
    fn told(&self) -> Option<Told> {
        let by = self.routes.route()?.next_hop;
        let hello = self.peers.hello(self.peers.at(by)?)?;
        let gateway = match hello.gateway {
            Gateway::Unknown => return None,
            Gateway::Here => by,
            Gateway::At(address) => address,
        };
        Some(Told { by, gateway, hops: hello.hops, key: hello.gateway_key })
    }

    /// The short name of a published object.
    pub fn hint(&self, name: &Oid) -> Hint {
        named::hint(name, &self.hint_key)
    }

    /// The peers that announce an object of this name, in the order in which they should be asked.
    pub fn holders_of(&self, name: &Oid) -> Vec<NodeId> {
        self.holders.of(&self.hint(name))
    }

    /// The address at which others in the mesh reach a peer: the one that it tells, else the one that is seen here.
    pub fn mesh_address(&self, peer: NodeId) -> Option<IpAddr> {
        let told = self.peers.hello(peer)?.address;
        told.or(self.peers.address(peer)).map(|address| address.to_canonical())
    }

    /// Connects to the peers that will be asked, so that the first request costs no handshake.
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

    /// The socket address for peers at an address.
    pub fn socket(&self, address: IpAddr) -> SocketAddr {
        self.routes.socket(address, self.config.port)
    }

    /// Whether requests of this node ask each hop to look up, store and forward.
    pub fn per_hop(&self) -> bool {
        self.config.selection.is_per_hop()
    }

    /// An object is stored here, or fresh again: searches may find it. `first` is its first unit.
    pub fn stock_up(
        &mut self,
        key: &ObjectKey,
        record: &Record,
        first: Option<ChunkId>,
        (date, now): (Date, Instant),
    ) {
        // What others would not believe of this router is of no use to them.
        let signer = record.record_signature.as_ref().map(|it| it.signer);
        let is_signed = signer.is_some_and(|signer| self.believes_off_the_way(&signer));
        let name = name_of(key);
        let first = first.or_else(|| self.stock.first(&name));
        let is_complete = first.is_some() || record.length == 0;
        let is_shared = is_complete && (is_signed || self.routes.is_gateway());
        if is_shared && self.config.selection.leaves_the_way() {
            let (_, left) = record.age_and_freshness(&Verdict::default(), date);
            let fresh_until = Date::from_unix(date.as_unix().saturating_add_signed(left));
            self.stock.put(name, first, fresh_until);
            // Others may have been evicted for it.
            if self.config.selection.tells_of_copies() {
                self.copies.tell_soon(now);
            }
        }
    }

    /// A peer's request is answered with an object: the nodes that it has visited will store it.
    pub fn gives(&mut self, now: Instant, ask: &Ask) {
        let hops = &ask.peer_hops;
        if self.config.selection.tells_of_copies() && hops.per_hop && hops.towards.is_none() {
            let is_known = hops.forwarded || self.routes.is_gateway();
            self.copies.given(now, &hops.visited, name_of(&ask.key), is_known);
        }
    }

    /// Whether a peer tells of copies behind it. The next hop leads the other way.
    pub fn hears_copies_from(&self, peer: NodeId) -> bool {
        let next_hop = self.routes.route().and_then(|route| self.peers.at(route.next_hop));
        self.config.selection.tells_of_copies() && next_hop != Some(peer)
    }

    /// A number for a peer's request, from the upper half of the numbers; the driver uses the lower
    /// half.
    pub fn draw_exchange(&mut self) -> ExchangeId {
        self.exchanges += 1;
        ExchangeId::from_peer(self.exchanges)
    }

    /// Whether anyone but an origin could supply what is missing of an object.
    pub fn has_sources(&self, named: Option<Oid>) -> bool {
        named.is_some_and(|name| self.holders.has(&self.hint(&name)))
            || self.routes.route().is_some()
    }

    /// Whether a signer of records is trusted. The signature itself was checked before.
    pub fn believes(&self, signer: &PublicKey) -> bool {
        self.config.gateways.is_empty() || self.config.gateways.contains(signer)
    }

    /// Whether a signer of records is trusted, where the router that sends them is not on the way to the gateway: only
    /// the gateway (decision 0033).
    pub fn believes_off_the_way(&self, signer: &PublicKey) -> bool {
        match self.config.gateways.is_empty() {
            true if self.routes.is_gateway() => *signer == self.peers.own_key(),
            true if self.routes.route().is_none() => {
                self.routes.last_gateway_key() == Some(*signer)
            }
            true => self.routes.gateway_key() == Some(*signer),
            false => self.config.gateways.contains(signer),
        }
    }

    /// Whether a peer is trusted for data without a signature.
    pub fn believes_unsigned(&self, peer: NodeId) -> bool {
        let gateways = &self.config.gateways;
        gateways.is_empty() || gateways.iter().any(|key| node_id(key) == peer)
    }
}
