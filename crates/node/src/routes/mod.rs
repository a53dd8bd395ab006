//! The route to the gateway, as far as it is known, and the neighbours on it that do not answer.

mod table;

pub use table::{Exit, Interface, Path, Paths, Route, RouteSource, RouteTable, Uplink};

use crate::hasher::Map;
use crate::ways::Ways;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::time::Duration;
use wire::peer::{Cost, Reach};
use wire::{Instant, NodeId, PublicKey};

/// A neighbour without a daemon is skipped for this long.
const WITHOUT_FOR: Duration = Duration::from_secs(30);
/// A next hop or gateway that did not answer is dialled again after this long …
const REDIAL_MIN: Duration = Duration::from_secs(1);
/// … and then after twice the last wait, up to this.
const MEET_EVERY: Duration = Duration::from_secs(30);
/// The log mentions that a node refuses us at most once in this time.
const REFUSED_EVERY: Duration = Duration::from_secs(3600);
/// The most addresses without a daemon, or that refused us, that are remembered; a full set is cleared.
const WITHOUT_MAX: usize = 256;

/// The cost of a hop, where only hops are known: babeld's on a wireless link without losses.
const COST_OF_HOP: u32 = 256;
/// A greater number of hops to the gateway is none: no request goes so far.
const HOPS_MAX: u32 = wire::peer::Get::VISITED_MAX as u32;

/// What a next hop has announced of the gateway. Nothing proves it.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    /// The next hop's address.
    pub by: IpAddr,
    /// The gateway's address.
    pub gateway: IpAddr,
    /// The number of hops from the next hop to the gateway.
    pub hops: Option<u32>,
    /// The gateway's identity.
    pub key: Option<PublicKey>,
}

/// The service; see the module.
#[derive(Clone, Debug, Default)]
pub struct Routes {
    table: RouteTable,
    /// The last route out of the mesh that was not [`Exit::Nowhere`].
    led: Exit,
    /// When the route out of the mesh last changed, if it ever did. Connections through the old exit
    /// may be dead without notice.
    pub led_elsewhere: Option<Instant>,
    /// When to check that the next hop and the gateway are connected.
    pub meet_at: Option<Instant>,
    /// The last wait before such a dial was repeated; zero after a success.
    meet_wait: Duration,
    /// Addresses without a daemon, and until when they are skipped.
    without: Map<IpAddr, Instant>,
    /// What a next hop announced last of the gateway. It stays known after the next hop's connection is lost.
    told: Option<Told>,
    /// Nodes that have refused us, and when the log last said so.
    refused: Map<IpAddr, Instant>,
}

impl Routes {
    /// Sets the table of routes.
    pub fn set(&mut self, now: Instant, table: RouteTable) {
        if table.exit != Exit::Nowhere {
            let moved = self.led.leads_elsewhere_than(&table.exit);
            self.led_elsewhere = if moved { Some(now) } else { self.led_elsewhere };
            self.led.clone_from(&table.exit);
        }
        self.table = table;
    }

    /// The next hop has announced the gateway.
    pub fn learn(&mut self, told: Told) {
        self.told = Some(told);
    }

    /// What the present next hop announced last of the gateway.
    fn told(&self) -> Option<Told> {
        let next = self.route()?.next_hop;
        self.told.filter(|told| told.by == next)
    }

    /// The number of hops to the gateway, as far as the table or the next hop tells; zero if this node is the
    /// gateway.
    pub fn hops(&self) -> Option<u32> {
        if self.is_gateway() {
            return Some(0);
        }
        // While routes change, two nodes may be each other's next hop: each counts on from the other, up to the
        // limit. The table comes first, so that neither begins anew from what it knows itself.
        let told = || self.told().and_then(|told| told.hops?.checked_add(1));
        let counted = || told().filter(|hops| *hops <= HOPS_MAX);
        self.route().and_then(|route| route.hops).or_else(counted)
    }

    /// The gateway's identity, as far as the next hop tells.
    pub fn gateway_key(&self) -> Option<PublicKey> {
        self.told().and_then(|told| told.key)
    }

    /// The identity of the last gateway that a next hop told, though there may be no way to it now.
    pub fn last_gateway_key(&self) -> Option<PublicKey> {
        self.told.and_then(|told| told.key)
    }

    /// The address by which the mesh knows this node, if it is known; without a route, the last one.
    pub fn own_address(&self) -> Option<IpAddr> {
        self.table.exit.own_address().or(self.led.own_address())
    }

    /// Whether this node is the gateway.
    pub fn is_gateway(&self) -> bool {
        self.table.exit.is_gateway()
    }

    /// The route through the mesh; `None` if there is none, or if this node is the gateway.
    pub fn route(&self) -> Option<&Route> {
        self.table.exit.route()
    }

    /// The gateway's address: from the table, else the one that the next hop announced last.
    pub fn gateway(&self) -> Option<IpAddr> {
        self.table.exit.gateway().or(self.told().map(|told| told.gateway))
    }

    /// The path to a router; the gateway is one. Of that, the next hop may have told more than the routing layer knows.
    pub fn path_to(&self, router: IpAddr) -> Option<Path> {
        let known = self.table.paths.to(router);
        let Some(route) = self.route().filter(|_| self.gateway() == Some(router)) else {
            return known;
        };
        let path = known.unwrap_or(Path {
            next_hop: route.next_hop,
            interface: route.interface.index,
            metric: None,
            hops: None,
        });
        let (metric, hops) = (path.metric.or(route.metric), path.hops.or(self.hops()));
        Some(Path { metric, hops, ..path })
    }

    /// What it costs to ask a router. A search that took this many hops to it counts where no path is known.
    pub fn cost(&self, router: IpAddr, located: Option<u8>) -> Option<u32> {
        let path = self.path_to(router);
        let hops = path.and_then(|path| path.hops).or(located.map(u32::from));
        // Metrics count if they can be compared with the gateway's.
        let gateway = self.gateway().and_then(|gateway| self.path_to(gateway));
        let are_known = gateway.is_none_or(|path| path.metric.is_some());
        let metric = path.and_then(|path| path.metric).filter(|_| are_known);
        metric.or(hops.map(|hops| hops.saturating_mul(COST_OF_HOP)))
    }

    /// What it costs to ask a router, if that is no more than to ask the gateway.
    pub fn cost_within_gateway(&self, router: IpAddr) -> Option<u32> {
        let most = self.gateway().and_then(|gateway| self.cost(gateway, None));
        self.cost(router, None).filter(|cost| most.is_none_or(|most| *cost <= most))
    }

    /// How far other routers are from this one, for those who may name some to it; `None` on the gateway, and where
    /// this node's address or its distance to the gateway is unknown.
    pub fn reach(&self, id: NodeId) -> Option<Reach> {
        let (address, gateway) = self.own_address().zip(self.gateway())?;
        let most = self.cost(gateway, None).filter(|_| !self.is_gateway())?;
        let others = self.table.paths.iter().filter(|(router, _)| *router != gateway);
        let cost = |router| self.cost(router, None).filter(|cost| *cost <= most);
        let mut paths: Vec<_> =
            others.filter_map(|(router, _)| Some(Cost { router, cost: cost(router)? })).collect();
        paths.sort_unstable_by_key(|it| (it.cost, it.router));
        paths.truncate(Reach::PATHS_MAX);
        Some(Reach { id, address, gateway: most, paths })
    }

    /// The nodes to which a request can be sent now.
    pub fn ways(&self) -> Ways {
        Ways { next_hop: self.route().map(|route| route.next_hop), gateway: self.gateway() }
    }

    /// The socket address of a port. A link-local address gets the scope of the interface towards it.
    pub fn socket(&self, address: IpAddr, port: u16) -> SocketAddr {
        match (address, self.route()) {
            (IpAddr::V6(v6), Some(route)) if v6.is_unicast_link_local() => {
                let mut paths = self.table.paths.iter();
                let path = paths.find(|(_, path)| path.next_hop == address);
                let interface = path.map_or(route.interface.index, |(_, path)| path.interface);
                SocketAddrV6::new(v6, port, 0, interface).into()
            }
            _ => (address, port).into(),
        }
    }

    /// The next hop and the gateway were checked. Schedules the next check, if there is a route.
    pub fn met(&mut self, now: Instant) {
        self.meet_at = self.route().map(|_| now + MEET_EVERY);
    }

    /// A next hop or gateway did not answer: the next check comes sooner.
    pub fn missed(&mut self, now: Instant) {
        self.meet_wait = (self.meet_wait * 2).clamp(REDIAL_MIN, MEET_EVERY);
        self.meet_at = self.meet_at.map(|at| at.min(now + self.meet_wait));
    }

    /// A peer at this address has connected.
    pub fn found(&mut self, address: IpAddr) {
        self.without.remove(&address.to_canonical());
        self.meet_wait = Duration::ZERO;
    }

    /// No daemon answers at this address: it is skipped for a while.
    pub fn pass_over(&mut self, now: Instant, address: IpAddr) {
        if self.without.len() >= WITHOUT_MAX {
            self.without.clear();
        }
        self.without.insert(address.to_canonical(), now + WITHOUT_FOR);
    }

    /// Whether an address is skipped.
    pub fn is_passed_over(&self, now: Instant, address: IpAddr) -> bool {
        self.without.get(&address.to_canonical()).is_some_and(|until| now < *until)
    }

    /// Whether the log should mention that a node at this address refuses us: at most once an hour.
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

#[cfg(test)]
mod tests {
    use super::*;

    const HOP: IpAddr = router(2);
    const GATEWAY: IpAddr = router(1);

    const fn router(number: u8) -> IpAddr {
        IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, number))
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// Routes of a router that reaches the gateway by one next hop, with its number of hops to the gateway if the table knows it.
    fn behind_a_hop(hops: Option<u32>) -> Routes {
        let path = |hops| Path { next_hop: HOP, interface: 3, metric: None, hops: Some(hops) };
        let exit = Exit::Mesh(Route {
            next_hop: HOP,
            interface: Interface { name: "wl0".into(), index: 3 },
            gateway: Some(GATEWAY),
            metric: None,
            hops,
            address: Some(router(9)),
            source: RouteSource::Config,
        });
        let paths = [(router(3), path(3)), (router(4), path(4))].into_iter().collect();
        let mut routes = Routes::default();
        routes.set(at(0), RouteTable { exit, paths, stopped: None });
        routes
    }

    #[test]
    fn an_address_without_a_daemon_is_skipped_for_half_a_minute_or_until_it_is_found() {
        let mut routes = Routes::default();
        routes.pass_over(at(5), "::ffff:10.0.0.2".parse().unwrap());
        assert!(routes.is_passed_over(at(34), HOP) && !routes.is_passed_over(at(35), HOP));
        assert!(!routes.is_passed_over(at(5), router(3)));
        routes.found(HOP);
        assert!(!routes.is_passed_over(at(5), HOP));
    }

    #[test]
    fn a_full_set_of_256_addresses_is_cleared() {
        let mut routes = Routes::default();
        let address = |number: u32| IpAddr::from(number.to_be_bytes());
        let is_news = |routes: &mut Routes, number| routes.is_news(at(1), address(number));
        for number in 0..256 {
            routes.pass_over(at(0), address(number));
            assert!(is_news(&mut routes, number));
        }
        assert!((0..256).all(|number| routes.is_passed_over(at(1), address(number))));
        routes.pass_over(at(0), address(256));
        let skipped = (0..257).filter(|number| routes.is_passed_over(at(1), address(*number)));
        assert_eq!(skipped.collect::<Vec<_>>(), [256]);
        // What the log has said is forgotten, too, once the set is full: it says it again.
        assert!(is_news(&mut routes, 0) && is_news(&mut routes, 256));
        assert!(!is_news(&mut routes, 0));
    }

    #[test]
    fn a_refusal_is_news_once_an_hour() {
        let mut routes = Routes::default();
        assert!(routes.is_news(at(10), HOP) && routes.is_news(at(10), GATEWAY));
        assert!(!routes.is_news(at(10 + 3599), HOP));
        assert!(routes.is_news(at(10 + 3601), HOP) && !routes.is_news(at(10 + 3602), HOP));
    }

    #[test]
    fn a_distance_that_no_request_goes_is_none() {
        let hops = |of_next_hop| {
            let mut routes = behind_a_hop(None);
            let told = Told { by: HOP, gateway: GATEWAY, hops: Some(of_next_hop), key: None };
            routes.learn(told);
            routes.hops()
        };
        assert_eq!((hops(HOPS_MAX - 1), hops(HOPS_MAX)), (Some(HOPS_MAX), None));
        assert_eq!(hops(u32::MAX), None);
        assert_eq!(behind_a_hop(Some(7)).hops(), Some(7));
    }

    #[test]
    fn a_router_as_far_as_the_gateway_may_be_asked_and_a_farther_one_not() {
        let routes = behind_a_hop(Some(3));
        let cost = |number| routes.cost_within_gateway(router(number));
        assert_eq!((cost(3), cost(4)), (Some(3 * COST_OF_HOP), None));
        let reach = routes.reach(NodeId([1; 16])).expect("it knows how far it is");
        assert_eq!(reach.paths, [Cost { router: router(3), cost: 3 * COST_OF_HOP }]);
    }

    #[test]
    fn a_next_hop_that_does_not_answer_is_dialled_after_twice_the_last_wait() {
        let mut routes = behind_a_hop(Some(3));
        let mut waits = Vec::new();
        for _ in 0..7 {
            routes.met(at(100));
            routes.missed(at(100));
            waits.push((routes.meet_at.expect("there is a route") - at(100)).as_secs());
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30]);
        routes.found(HOP);
        routes.missed(at(100));
        assert_eq!(routes.meet_at, Some(at(101)));
    }
}
