//! The kernel's links and routes, and the route that packets to the gateway take.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::message::{Hop, LOCAL, Link, Route, UNICAST};

/// The tables that are used: the main one and, for this machine's own addresses, the local one.
const TABLE_MAIN: u32 = 254;
const TABLE_LOCAL: u32 = 255;
/// The most routes to the target that are kept.
const ROUTES_MAX: usize = 256;
/// The most links that are kept.
const LINKS_MAX: usize = 4096;

/// A snapshot: one listing of the links and one of the routes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fib {
    links: BTreeMap<u32, Link>,
    routes: Vec<Route>,
    /// Indices of interfaces with a default route, in any table.
    defaults: BTreeSet<u32>,
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
    /// Adds a link.
    pub fn add_link(&mut self, link: Link) {
        if self.links.len() < LINKS_MAX {
            self.links.insert(link.index, link);
        }
    }

    /// Adds a route if it leads to the target; a default route also marks its interfaces.
    pub fn add_route(&mut self, route: Route, target: Option<IpAddr>) {
        if route.kind == UNICAST && route.to.bits() == 0 && self.defaults.len() < LINKS_MAX {
            self.defaults.extend(route.hops.iter().map(|hop| hop.interface));
        }
        let counts = route.table == TABLE_MAIN || (route.table == TABLE_LOCAL && target.is_some());
        if counts && route.is_for_all && route.to.leads_to(target) && self.routes.len() < ROUTES_MAX
        {
            self.routes.push(route);
        }
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

    /// Interfaces 1 (`wl0`) and 2 (`wan0`), both working.
    pub fn links() -> Fib {
        let mut fib = Fib::default();
        for (index, name) in [(1, "wl0"), (2, "wan0")] {
            fib.add_link(Link { index, name: name.into(), works: (true, true) });
        }
        fib
    }

    pub fn route(to: &str, via: &str, interface: u32) -> Route {
        let hop = Hop { via: via.parse().ok(), interface, is_dead: false };
        let to = to.parse().unwrap();
        let (table, protocol, kind, priority) = (TABLE_MAIN, 42, UNICAST, 0);
        Route { to, table, protocol, kind, priority, is_for_all: true, hops: vec![hop] }
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
        fib.add_route(Route { priority: 100, ..route("0.0.0.0/0", "10.0.0.1", 2) }, None);
        fib.add_route(route("::/0", "fe80::1", 2), None);
        fib.add_route(route("10.77.0.2/32", "10.77.0.9", 1), None);
        fib.add_route(Route { table: 100, ..route("0.0.0.0/0", "10.9.0.1", 1) }, None);
        assert_eq!(via(&fib).as_deref(), Some("10.0.0.1 wan0"));
        fib.add_route(route("0.0.0.0/0", "10.77.0.2", 1), None);
        assert_eq!(via(&fib).as_deref(), Some("10.77.0.2 wl0"));
        fib.add_link(Link { index: 1, name: "wl0".into(), works: (true, false) });
        assert_eq!(via(&fib).as_deref(), Some("10.0.0.1 wan0"));
        fib.add_link(Link { index: 2, name: "wan0".into(), works: (false, false) });
        assert_eq!(via(&fib), None);
    }

    #[test]
    fn a_named_gateway_is_reached_by_its_longest_prefix() {
        let target = "10.77.0.8".parse().ok();
        let mut fib = links();
        fib.add_route(route("0.0.0.0/0", "10.0.0.1", 2), target);
        fib.add_route(route("10.77.0.0/16", "10.77.0.3", 1), target);
        fib.add_route(route("10.77.0.9/32", "10.77.0.9", 1), target);
        assert_eq!(via(&fib).as_deref(), Some("10.77.0.3 wl0"));
        let unreachable = Route { kind: 7, hops: vec![], ..route("10.77.0.8/32", "", 0) };
        let mut without = fib.clone();
        without.add_route(unreachable, target);
        assert_eq!(via(&without), None);
        fib.add_route(route("10.77.0.8/32", "", 1), target);
        assert_eq!(via(&fib).as_deref(), Some("- wl0"));
        fib.add_route(
            Route { table: TABLE_LOCAL, kind: LOCAL, ..route("10.77.0.8/32", "", 1) },
            target,
        );
        assert_eq!(via(&fib).as_deref(), Some("here"));
    }

    #[test]
    fn interfaces_with_a_default_route_in_any_table_lead_out_and_so_do_those_that_are_named() {
        let mut fib = links();
        let out = |fib: &Fib, named: &[&str]| {
            let named: Vec<String> = named.iter().map(ToString::to_string).collect();
            fib.outward(&named).into_values().collect::<Vec<_>>()
        };
        fib.add_route(route("10.0.0.0/8", "", 1), None);
        fib.add_route(Route { kind: 7, ..route("0.0.0.0/0", "", 1) }, None);
        let own_table = Route { table: 3130, kind: LOCAL, ..route("0.0.0.0/0", "", 1) };
        fib.add_route(own_table, None);
        assert!(out(&fib, &[]).is_empty());
        // OpenWrt makes IPv6 default routes like this one, for packets from certain sources only.
        fib.add_route(Route { is_for_all: false, ..route("::/0", "fe80::1", 2) }, None);
        assert_eq!((out(&fib, &[]), fib.best_route()), (vec!["wan0".to_owned()], None));
        fib.add_route(Route { table: 100, ..route("::/0", "fe80::1", 1) }, None);
        assert_eq!(out(&fib, &[]), ["wl0", "wan0"]);
        assert_eq!(out(&fib, &["wl0", "nosuch"]), ["wl0", "wan0"]);
    }

    #[test]
    fn a_route_that_leads_nowhere_is_not_used() {
        let mut fib = links();
        fib.add_route(Route { kind: 7, ..route("0.0.0.0/0", "", 1) }, None);
        assert_eq!(via(&fib), None);
        fib.add_route(route("::/0", "fe80::1", 1), None);
        assert_eq!(via(&fib).as_deref(), Some("fe80::1 wl0"));
    }
}
