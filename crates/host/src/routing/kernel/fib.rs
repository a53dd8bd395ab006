//! The kernel's links and routes, and the routes that packets to the gateway and to other routers
//! take.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use super::hosts::{HostRoute, Hosts};
use super::message::{Hop, LOCAL, Link, Route, UNICAST};

/// The tables that are used: the main one and, for this machine's own addresses, the local one.
pub const TABLE_MAIN: u32 = 254;
pub const TABLE_LOCAL: u32 = 255;
/// The most routes to the target that are kept.
const ROUTES_MAX: usize = 256;
/// The most links that are kept.
pub const LINKS_MAX: usize = 4096;

/// Which routes are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The host to which the best route is kept; `None`: the best default route.
    pub target: Option<IpAddr>,
    /// The names of interfaces over which routes to hosts are kept.
    pub mesh: Vec<String>,
}

/// A snapshot: one listing of the links and one of the routes. Links are added first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fib {
    wanted: Arc<Wanted>,
    links: BTreeMap<u32, Link>,
    routes: Vec<Route>,
    /// Indices of interfaces with a default route, in any table.
    defaults: BTreeSet<u32>,
    hosts: Hosts,
}

/// Where the kernel sends packets for the gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BestRoute {
    /// The gateway's address is this machine's own.
    Here,
    /// Out by an interface, to a next hop or, without one, to the gateway itself.
    Out { via: Option<IpAddr>, interface: node::Interface, protocol: u8, is_ipv4: bool },
}

impl Fib {
    /// A snapshot without links and routes.
    pub fn new(wanted: Wanted) -> Self {
        Self { wanted: Arc::new(wanted), ..Self::default() }
    }

    /// A snapshot for the same routes, without links and routes.
    pub fn emptied(&self) -> Self {
        Self { wanted: Arc::clone(&self.wanted), ..Self::default() }
    }

    /// Which routes are kept.
    pub fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    /// Adds a link.
    pub fn add_link(&mut self, link: Link) {
        if self.links.len() < LINKS_MAX {
            self.links.insert(link.index, link);
        }
    }

    /// Adds a route if it leads to the target or to a host; a default route also marks its
    /// interfaces.
    pub fn add_route(&mut self, route: Route) {
        let target = self.wanted.target;
        if route.kind == UNICAST && route.to.bits() == 0 && self.defaults.len() < LINKS_MAX {
            self.defaults.extend(route.hops.iter().map(|hop| hop.interface));
        }
        let counts = route.table == TABLE_MAIN || (route.table == TABLE_LOCAL && target.is_some());
        if !route.is_for_all {
            return;
        }
        if !self.wanted.mesh.is_empty() {
            let is_over_mesh = self.is_over_mesh(&route);
            self.hosts.add(&route, is_over_mesh);
        }
        if counts && self.leads_to_target(&route) && self.routes.len() < ROUTES_MAX {
            self.routes.push(route);
        }
    }

    /// Whether a route leads to the target.
    pub fn leads_to_target(&self, route: &Route) -> bool {
        route.to.leads_to(self.wanted.target)
    }

    /// Whether a change of this route may change the routes to hosts over interfaces of the mesh.
    pub fn concerns_hosts(&self, route: &Route) -> bool {
        let host = route.to.host().filter(|_| route.table == TABLE_MAIN);
        host.is_some_and(|host| self.is_over_mesh(route) || self.hosts.has_over_mesh(host))
    }

    /// The kernel's choice for each host to which it has a route of its own; `None` if packets to it
    /// do not leave over an interface of the mesh.
    pub fn hosts(&self) -> BTreeMap<IpAddr, Option<HostRoute>> {
        let best = self.hosts.best(|route| route.kind != UNICAST || self.live(route).is_some());
        best.into_iter().map(|(host, route)| (host, self.over_mesh(host, route))).collect()
    }

    fn over_mesh(&self, host: IpAddr, route: &Route) -> Option<HostRoute> {
        let hop = (route.kind == UNICAST).then(|| self.live(route))??;
        let interface = self.mesh_interface(hop.interface)?;
        let next_hop = hop.via.unwrap_or(host);
        let Route { protocol, priority, .. } = *route;
        Some(HostRoute { next_hop, interface, protocol, priority })
    }

    /// Whether there are routes that a protocol installed, usable or not.
    pub fn has_routes_of(&self, protocol: u8) -> bool {
        let mut routes = self.routes.iter().chain(self.hosts.over_mesh());
        routes.any(|route| route.protocol == protocol)
    }

    /// Whether an address is this machine's own; known only if routes to hosts are kept.
    pub fn is_own(&self, address: IpAddr) -> bool {
        self.hosts.is_own(address)
    }

    fn is_over_mesh(&self, route: &Route) -> bool {
        route.kind == UNICAST
            && route.hops.iter().any(|hop| self.mesh_interface(hop.interface).is_some())
    }

    fn mesh_interface(&self, index: u32) -> Option<node::Interface> {
        let name = &self.links.get(&index)?.name;
        self.wanted.mesh.contains(name).then(|| node::Interface { name: name.clone(), index })
    }

    /// The interfaces that lead out: those with a default route, and those with these names.
    pub fn outward(&self, named: &[String]) -> BTreeMap<u32, String> {
        let leads_out =
            |link: &&Link| self.defaults.contains(&link.index) || named.contains(&link.name);
        self.links.values().filter(leads_out).map(|it| (it.index, it.name.clone())).collect()
    }

    /// Whether an identical link is known.
    pub fn knows(&self, link: &Link) -> bool {
        self.links.get(&link.index) == Some(link)
    }

    /// The route that packets take, chosen as the kernel does: the longest prefix, then the lowest
    /// metric. IPv4 comes before IPv6, because most clients use it.
    pub fn best_route(&self) -> Option<BestRoute> {
        self.best_route_of(true).or_else(|| self.best_route_of(false))
    }

    fn best_route_of(&self, is_ipv4: bool) -> Option<BestRoute> {
        let usable = |route: &&Route| {
            // A route of another type (such as unreachable) counts too; a unicast route without a
            // working link does not.
            route.to.is_ipv4() == is_ipv4 && (route.kind != UNICAST || self.live(route).is_some())
        };
        let best = self.routes.iter().filter(usable).min_by_key(|route| {
            (route.table != TABLE_LOCAL, u8::MAX - route.to.bits(), route.priority)
        })?;
        match best.kind {
            LOCAL => Some(BestRoute::Here),
            UNICAST => {
                let hop = self.live(best)?;
                let name = self.links.get(&hop.interface)?.name.clone();
                let interface = node::Interface { name, index: hop.interface };
                Some(BestRoute::Out { via: hop.via, interface, protocol: best.protocol, is_ipv4 })
            }
            _ => None,
        }
    }

    fn live<'a>(&self, route: &'a Route) -> Option<&'a Hop> {
        let works = |hop: &&Hop| {
            let link = self.links.get(&hop.interface);
            !hop.is_dead && link.is_some_and(|link| link.works == (true, true))
        };
        route.hops.iter().find(works)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Interfaces 1 (`wl0`) and 2 (`wan0`), both working; the second is not in the mesh.
    pub fn links() -> Fib {
        links_for(None)
    }

    /// The same, for the route to a host.
    pub fn links_for(target: Option<IpAddr>) -> Fib {
        let mut fib = Fib::new(Wanted { target, mesh: vec!["wl0".into(), "wl1".into()] });
        for (index, name) in [(1, "wl0"), (2, "wan0")] {
            fib.add_link(Link { index, name: name.into(), works: (true, true), ..Link::default() });
        }
        fib
    }

    pub fn route(to: &str, via: &str, interface: u32) -> Route {
        let hop = Hop { via: via.parse().ok(), interface, is_dead: false };
        let to = to.parse().unwrap();
        let (table, protocol, kind, priority) = (TABLE_MAIN, 42, UNICAST, 0);
        Route { to, table, protocol, kind, priority, is_for_all: true, hops: vec![hop] }
    }

    /// An address of this machine, in the local table.
    pub fn own(address: &str) -> Route {
        Route { table: TABLE_LOCAL, kind: LOCAL, ..route(address, "", 1) }
    }

    fn via(fib: &Fib) -> Option<String> {
        match fib.best_route()? {
            BestRoute::Out { via, interface, .. } => {
                Some(format!("{} {}", via.map_or("-".into(), |it| it.to_string()), interface.name))
            }
            BestRoute::Here => Some("here".into()),
        }
    }

    #[test]
    fn the_kernels_choice_is_ours() {
        let mut fib = links();
        fib.add_route(Route { priority: 100, ..route("0.0.0.0/0", "10.0.0.1", 2) });
        fib.add_route(route("::/0", "fe80::1", 2));
        fib.add_route(route("10.77.0.2/32", "10.77.0.9", 1));
        fib.add_route(Route { table: 100, ..route("0.0.0.0/0", "10.9.0.1", 1) });
        assert_eq!(via(&fib).as_deref(), Some("10.0.0.1 wan0"));
        fib.add_route(route("0.0.0.0/0", "10.77.0.2", 1));
        assert_eq!(via(&fib).as_deref(), Some("10.77.0.2 wl0"));
        fib.add_link(Link {
            index: 1,
            name: "wl0".into(),
            works: (true, false),
            ..Link::default()
        });
        assert_eq!(via(&fib).as_deref(), Some("10.0.0.1 wan0"));
        fib.add_link(Link {
            index: 2,
            name: "wan0".into(),
            works: (false, false),
            ..Link::default()
        });
        assert_eq!(via(&fib), None);
    }

    #[test]
    fn a_named_gateway_is_reached_by_its_longest_prefix() {
        let mut fib = links_for("10.77.0.8".parse().ok());
        fib.add_route(route("0.0.0.0/0", "10.0.0.1", 2));
        fib.add_route(route("10.77.0.0/16", "10.77.0.3", 1));
        fib.add_route(route("10.77.0.9/32", "10.77.0.9", 1));
        assert_eq!(via(&fib).as_deref(), Some("10.77.0.3 wl0"));
        let unreachable = Route { kind: 7, hops: vec![], ..route("10.77.0.8/32", "", 0) };
        let mut without = fib.clone();
        without.add_route(unreachable);
        assert_eq!(via(&without), None);
        fib.add_route(route("10.77.0.8/32", "", 1));
        assert_eq!(via(&fib).as_deref(), Some("- wl0"));
        fib.add_route(own("10.77.0.8/32"));
        assert_eq!(via(&fib).as_deref(), Some("here"));
    }

    #[test]
    fn interfaces_with_a_default_route_in_any_table_lead_out_and_so_do_those_that_are_named() {
        let mut fib = links();
        let out = |fib: &Fib, named: &[&str]| {
            let named: Vec<String> = named.iter().map(ToString::to_string).collect();
            fib.outward(&named).into_values().collect::<Vec<_>>()
        };
        fib.add_route(route("10.0.0.0/8", "", 1));
        fib.add_route(Route { kind: 7, ..route("0.0.0.0/0", "", 1) });
        let own_table = Route { table: 3130, kind: LOCAL, ..route("0.0.0.0/0", "", 1) };
        fib.add_route(own_table);
        assert!(out(&fib, &[]).is_empty());
        // OpenWrt makes IPv6 default routes like this one, for packets from certain sources only.
        fib.add_route(Route { is_for_all: false, ..route("::/0", "fe80::1", 2) });
        assert_eq!((out(&fib, &[]), fib.best_route()), (vec!["wan0".to_owned()], None));
        fib.add_route(Route { table: 100, ..route("::/0", "fe80::1", 1) });
        assert_eq!(out(&fib, &[]), ["wl0", "wan0"]);
        assert_eq!(out(&fib, &["wl0", "nosuch"]), ["wl0", "wan0"]);
    }

    #[test]
    fn a_route_that_leads_nowhere_is_not_used() {
        let mut fib = links();
        fib.add_route(Route { kind: 7, ..route("0.0.0.0/0", "", 1) });
        assert_eq!(via(&fib), None);
        fib.add_route(route("::/0", "fe80::1", 1));
        assert_eq!(via(&fib).as_deref(), Some("fe80::1 wl0"));
    }

    fn paths(fib: &Fib) -> Vec<String> {
        let text = |(host, route): (IpAddr, Option<HostRoute>)| match route {
            Some(it) => format!("{host} over {} {}", it.next_hop, it.interface.name),
            None => format!("{host} elsewhere"),
        };
        fib.hosts().into_iter().map(text).collect()
    }

    #[test]
    fn routes_to_hosts_over_the_mesh_are_kept_and_chosen_as_the_kernel_does() {
        let mut fib = links();
        fib.add_route(route("10.77.0.0/16", "10.77.0.1", 1));
        fib.add_route(route("10.77.0.2/32", "", 1));
        fib.add_route(Route { priority: 9, ..route("10.77.0.3/32", "10.77.0.4", 1) });
        fib.add_route(route("10.77.0.3/32", "10.77.0.2", 1));
        fib.add_route(route("fd77::3/128", "fe80::2", 1));
        // Not for all packets, or in a table of its own.
        fib.add_route(Route { table: 100, ..route("10.77.0.5/32", "", 1) });
        fib.add_route(Route { is_for_all: false, ..route("fd77::5/128", "fe80::2", 1) });
        assert_eq!(
            paths(&fib),
            [
                "10.77.0.2 over 10.77.0.2 wl0",
                "10.77.0.3 over 10.77.0.2 wl0",
                "fd77::3 over fe80::2 wl0"
            ]
        );
        // A better route leads elsewhere, or nowhere.
        fib.add_route(Route { priority: 8, ..route("10.77.0.6/32", "10.77.0.2", 1) });
        fib.add_route(Route { priority: 7, ..route("10.77.0.6/32", "10.3.0.2", 2) });
        fib.add_route(Route { priority: 8, ..route("10.77.0.7/32", "10.77.0.2", 1) });
        fib.add_route(Route { kind: 7, hops: vec![], ..route("10.77.0.7/32", "", 0) });
        assert_eq!(paths(&fib)[2..4], ["10.77.0.6 elsewhere", "10.77.0.7 elsewhere"]);
        // Without a carrier there is no path, and what was the second choice is the first.
        fib.add_link(Link {
            index: 1,
            name: "wl0".into(),
            works: (true, false),
            ..Link::default()
        });
        assert_eq!(paths(&fib), ["10.77.0.6 elsewhere", "10.77.0.7 elsewhere"]);
    }

    #[test]
    fn of_several_next_hops_the_first_that_works_is_used() {
        let mut fib = links();
        let hop = |via: &str, is_dead| Hop { via: via.parse().ok(), interface: 1, is_dead };
        let hops = vec![hop("10.77.0.4", true), hop("10.77.0.5", false), hop("10.77.0.6", false)];
        fib.add_route(Route { hops, ..route("10.77.0.3/32", "", 1) });
        assert_eq!(paths(&fib), ["10.77.0.3 over 10.77.0.5 wl0"]);
    }

    #[test]
    fn a_change_concerns_hosts_only_in_the_main_table_and_over_the_mesh() {
        let mut fib = links();
        fib.add_route(route("10.77.0.3/32", "10.77.0.2", 1));
        assert!(fib.concerns_hosts(&route("10.77.0.9/32", "", 1)));
        // The kernel's unreachable route names no interface of the mesh.
        assert!(fib.concerns_hosts(&Route {
            kind: 7,
            hops: vec![],
            ..route("10.77.0.3/32", "", 0)
        }));
        for other in
            [route("10.77.0.0/24", "", 1), route("10.77.0.9/32", "", 2), own("10.77.0.9/32")]
        {
            assert!(!fib.concerns_hosts(&other), "{other:?}");
        }
        assert!(!Fib::default().concerns_hosts(&route("10.77.0.9/32", "", 1)));
    }
}
