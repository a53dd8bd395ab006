//! The mesh: who the peers are, whom to ask, and what is on its way.
//!
//! *What this is:* the state that a node has because of its mesh, and the small engines that own parts
//! of it. *Who calls it:* `node`, whose files `reach`, `follow`, `want` and `supply` join it to requests
//! and chunks. *Where to start:* `source/select.rs` for whom is asked, `peers/mod.rs` for how peers talk.
//! *Sources:* MeshCache §3, §4.2.1, §4.3.1; Ditto §4.2; docs/protocol.md.

use crate::hasher::Map;
use crate::holders::Holders;
use crate::input::{ExchangeId, MeshConfig};
use crate::peers::{self, Peers};
use crate::routes::RouteTable;
use crate::ways::Ways;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use wire::peer::{Gateway, Hello, Request};
use wire::{Instant, NodeId, PublicKey, Selection};

/// A neighbour without a daemon is passed over for so long.
const WITHOUT_FOR: Duration = Duration::from_secs(30);
/// Whoever will be asked and is not there is looked for again after so long …
const MEET_SOON: Duration = Duration::from_secs(1);
/// … and after twice as long each time, up to this.
const MEET_EVERY: Duration = Duration::from_secs(30);
/// That somebody refuses us is told once in so long.
const REFUSED_EVERY: Duration = Duration::from_secs(3600);
/// Neighbours without daemons that are remembered, at most; the set is then begun anew.
const WITHOUT_MAX: usize = 256;
/// And messages that wait because peers take them slowly.
const BACKLOGS_SHARE: u64 = 8;

/// What a node has because of its mesh.
pub struct Mesh {
    pub config: MeshConfig,
    pub peers: Peers,
    pub routes: RouteTable,
    /// The way that was known last.
    led: RouteTable,
    /// When the way out of the mesh became another, if it ever did: connections through the old one may be
    /// dead and not say so.
    pub led_elsewhere: Option<Instant>,
    /// Requests of peers.
    pub supplied: BTreeMap<(NodeId, Request), ExchangeId>,
    /// Who leads to which published object.
    pub holders: Holders,
    /// When to look whether those are there who will be asked.
    pub meet_at: Option<Instant>,
    /// For how long they were left alone the last time that they were not.
    meet_wait: Duration,
    /// Where no daemon answers, until when that is believed.
    without: Map<IpAddr, Instant>,
    /// A next hop, and the gateway that it last told of: known still when it is gone.
    told: Option<(IpAddr, IpAddr)>,
    /// Who has refused us, and when that was told last.
    refused: Map<IpAddr, Instant>,
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
        Self {
            peers,
            config,
            routes: RouteTable::Nowhere,
            led: RouteTable::Nowhere,
            led_elsewhere: None,
            supplied: BTreeMap::new(),
            holders: Holders::default(),
            meet_at: None,
            meet_wait: Duration::ZERO,
            without: Map::default(),
            told: None,
            refused: Map::default(),
            name,
            profile,
            exchanges: 0,
        }
    }

    /// Takes in the way to the gateway, and tells the peers what follows from it.
    pub fn set_routes(&mut self, now: Instant, routes: RouteTable) {
        if routes != RouteTable::Nowhere {
            let moved = self.led.leads_elsewhere_than(&routes);
            self.led_elsewhere = if moved { Some(now) } else { self.led_elsewhere };
            self.led.clone_from(&routes);
        }
        self.routes = routes;
        self.told = self.tells().or(self.told);
        if let Some(next_hop) = self.ways().next_hop {
            let gateway = self.gateway();
            self.peers.keep_place_for([next_hop].into_iter().chain(gateway));
        }
        let gateway = match &self.routes {
            RouteTable::Gateway(_) => Gateway::Here,
            _ => self.gateway().map_or(Gateway::Unknown, Gateway::At),
        };
        let hello = Hello { name: self.name.clone(), profile: self.profile, gateway };
        self.peers.introduce(now, hello);
        self.holders.changed = true;
    }

    /// The gateway's address: as the routes have it, else as the next hop says, or said.
    fn gateway(&self) -> Option<IpAddr> {
        let next = self.routes.route().map(|route| route.next_hop);
        let told = self.told.filter(|(by, _)| Some(*by) == next);
        self.routes.gateway().or(told.map(|(_, gateway)| gateway))
    }

    /// What the next hop says of the gateway, if it is there.
    fn tells(&self) -> Option<(IpAddr, IpAddr)> {
        let next = self.routes.route()?.next_hop;
        match self.peers.hello(self.peers.at(next)?)?.gateway {
            Gateway::Unknown => None,
            Gateway::Here => Some((next, next)),
            Gateway::At(address) => Some((next, address)),
        }
    }

    /// Whom a request can be asked now, by its route.
    pub fn ways(&self) -> Ways {
        Ways { next_hop: self.routes.route().map(|route| route.next_hop), gateway: self.gateway() }
    }

    /// Gets to know those who will be asked, before they are: a first request then costs no handshakes.
    pub fn meet(&mut self, now: Instant) {
        let ways = self.ways();
        let gateway = ways.gateway.filter(|_| !self.per_hop());
        self.meet_at = ways.next_hop.map(|_| now + MEET_EVERY);
        for address in [ways.next_hop, gateway].into_iter().flatten() {
            if self.peers.at(address).is_none() && !self.is_passed_over(now, address) {
                let socket = self.socket(address);
                self.peers.dial(now, socket);
            }
        }
    }

    /// Whether each hop is to look, keep and forward what is asked from here.
    pub fn per_hop(&self) -> bool {
        self.config.selection == Selection::PhThcp
    }

    /// The port for peers at an address.
    pub fn socket(&self, address: IpAddr) -> SocketAddr {
        let port = self.config.port;
        match (address, self.routes.route()) {
            (IpAddr::V6(v6), Some(route)) if v6.is_unicast_link_local() => {
                std::net::SocketAddrV6::new(v6, port, 0, route.interface.index).into()
            }
            _ => (address, port).into(),
        }
    }

    /// All requests of a peer.
    pub fn supplied_to(&self, peer: NodeId) -> impl Iterator<Item = ExchangeId> {
        let all = (peer, Request(0))..=(peer, Request(u32::MAX));
        self.supplied.range(all).map(|(_, id)| *id)
    }

    /// Numbers a request of a peer among the driver's, which count up from below.
    pub fn draw_exchange(&mut self) -> ExchangeId {
        self.exchanges += 1;
        ExchangeId(1 << 63 | self.exchanges)
    }

    /// Nobody answers there: it is passed over for a while.
    pub fn pass_over(&mut self, now: Instant, address: IpAddr) {
        if self.without.len() >= WITHOUT_MAX {
            self.without.clear();
        }
        self.without.insert(address.to_canonical(), now + WITHOUT_FOR);
    }

    /// Whether an address is passed over.
    pub fn is_passed_over(&self, now: Instant, address: IpAddr) -> bool {
        self.without.get(&address.to_canonical()).is_some_and(|until| now < *until)
    }

    /// A peer was met at this address after all.
    pub fn found(&mut self, address: IpAddr) {
        self.without.remove(&address.to_canonical());
        self.meet_wait = Duration::ZERO;
    }

    /// Whether it is worth a line that somebody refuses us: once in a while is enough.
    pub fn is_news(&mut self, now: Instant, address: IpAddr) -> bool {
        if self.refused.len() >= WITHOUT_MAX {
            self.refused.clear();
        }
        let address = address.to_canonical();
        let news = self.refused.get(&address).is_none_or(|at| now - *at > REFUSED_EVERY);
        if news {
            self.refused.insert(address, now);
        }
        news
    }

    /// Somebody who was to be met is not there.
    pub fn missed(&mut self, now: Instant) {
        self.meet_wait = (self.meet_wait * 2).clamp(MEET_SOON, MEET_EVERY);
        self.meet_at = self.meet_at.map(|at| at.min(now + self.meet_wait));
    }

    /// Whether a signer of records is to be believed; the signature was checked already.
    pub fn believes(&self, signer: &PublicKey) -> bool {
        self.config.gateways.is_empty() || self.config.gateways.contains(signer)
    }

    /// Whether a peer is to be believed in what nobody has signed.
    pub fn believes_unsigned(&self, peer: NodeId) -> bool {
        let gateways = &self.config.gateways;
        gateways.is_empty() || gateways.iter().any(|key| peers::node_id(key) == peer)
    }
}
