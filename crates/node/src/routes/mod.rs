//! The way to the gateway, as far as it is known, and who on it does not answer.

mod table;

pub use table::{Interface, Route, RouteSource, RouteTable, Uplink};

use crate::hasher::Map;
use crate::ways::Ways;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::time::Duration;
use wire::Instant;

/// A neighbour without a daemon is passed over for so long.
const WITHOUT_FOR: Duration = Duration::from_secs(30);
/// Whoever will be asked and is not there is looked for again after so long …
const REDIAL_MIN: Duration = Duration::from_secs(1);
/// … and after twice as long each time, up to this.
const MEET_EVERY: Duration = Duration::from_secs(30);
/// That somebody refuses us is told once in so long.
const REFUSED_EVERY: Duration = Duration::from_secs(3600);
/// Neighbours without daemons that are remembered, at most; the set is then begun anew.
const WITHOUT_MAX: usize = 256;

/// See the module.
#[derive(Debug, Default)]
pub struct Routes {
    table: RouteTable,
    /// The way that was known last.
    led: RouteTable,
    /// When the way out of the mesh became another, if it ever did: connections through the old one may be
    /// dead and not say so.
    pub led_elsewhere: Option<Instant>,
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
}

impl Routes {
    /// Takes in the way to the gateway.
    pub fn set(&mut self, now: Instant, table: RouteTable) {
        if table != RouteTable::Nowhere {
            let moved = self.led.leads_elsewhere_than(&table);
            self.led_elsewhere = if moved { Some(now) } else { self.led_elsewhere };
            self.led.clone_from(&table);
        }
        self.table = table;
    }

    /// The next hop tells of the gateway.
    pub fn learn(&mut self, next_hop: IpAddr, gateway: IpAddr) {
        self.told = Some((next_hop, gateway));
    }

    /// Whether this node is the gateway.
    pub fn is_gateway(&self) -> bool {
        self.table.is_gateway()
    }

    /// The way through the mesh, where this node has one and needs one.
    pub fn route(&self) -> Option<&Route> {
        self.table.route()
    }

    /// The gateway's address: as the routes have it, else as the next hop says, or said.
    pub fn gateway(&self) -> Option<IpAddr> {
        let next = self.route().map(|route| route.next_hop);
        let told = self.told.filter(|(by, _)| Some(*by) == next);
        self.table.gateway().or(told.map(|(_, gateway)| gateway))
    }

    /// Whom a request can be asked now.
    pub fn ways(&self) -> Ways {
        Ways { next_hop: self.route().map(|route| route.next_hop), gateway: self.gateway() }
    }

    /// A port at an address, which may be one of the interface towards the next hop alone.
    pub fn socket(&self, address: IpAddr, port: u16) -> SocketAddr {
        match (address, self.route()) {
            (IpAddr::V6(v6), Some(route)) if v6.is_unicast_link_local() => {
                SocketAddrV6::new(v6, port, 0, route.interface.index).into()
            }
            _ => (address, port).into(),
        }
    }

    /// It was looked whether those are there who will be asked: once more later, if there is a way.
    pub fn met(&mut self, now: Instant) {
        self.meet_at = self.route().map(|_| now + MEET_EVERY);
    }

    /// Somebody who was to be met is not there.
    pub fn missed(&mut self, now: Instant) {
        self.meet_wait = (self.meet_wait * 2).clamp(REDIAL_MIN, MEET_EVERY);
        self.meet_at = self.meet_at.map(|at| at.min(now + self.meet_wait));
    }

    /// A peer was met at this address after all.
    pub fn found(&mut self, address: IpAddr) {
        self.without.remove(&address.to_canonical());
        self.meet_wait = Duration::ZERO;
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
}
