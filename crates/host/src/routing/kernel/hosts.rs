//! The kernel's routes to single hosts, and this machine's own addresses.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::fib::{TABLE_LOCAL, TABLE_MAIN};
use super::message::{LOCAL, Route};

/// The most routes over interfaces of the mesh that are kept: two for each path.
const OVER_MESH_MAX: usize = 2 * node::Paths::COUNT_MAX;
/// The most other routes to hosts that are kept. They matter only if they hide one over the mesh.
const OTHERS_MAX: usize = 1024;
/// The most own addresses that are kept.
const OWN_MAX: usize = 1024;

/// The route of packets to a host, over an interface of the mesh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRoute {
    /// The neighbour that forwards them, or the host itself.
    pub next_hop: IpAddr,
    /// The outgoing interface.
    pub interface: node::Interface,
    /// The protocol that installed the route (`RTPROT_…`).
    pub protocol: u8,
    /// Its metric.
    pub priority: u32,
}

/// Routes to hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts {
    over_mesh: Vec<Route>,
    /// Over other interfaces, or of other types.
    others: Vec<Route>,
    own: BTreeSet<IpAddr>,
}

impl Hosts {
    /// Adds a route, if it leads to one host.
    pub fn add(&mut self, route: &Route, is_over_mesh: bool) {
        let Some(host) = route.to.host() else { return };
        match route.table {
            TABLE_LOCAL if route.kind == LOCAL && self.own.len() < OWN_MAX => {
                self.own.insert(host);
            }
            TABLE_MAIN if is_over_mesh && self.over_mesh.len() < OVER_MESH_MAX => {
                self.over_mesh.push(route.clone());
            }
            TABLE_MAIN if !is_over_mesh && self.others.len() < OTHERS_MAX => {
                self.others.push(route.clone());
            }
            _ => {}
        }
    }

    /// For each host the route that the kernel uses: the lowest metric of those that are usable. A
    /// route of another type than unicast (such as unreachable) is always usable.
    pub fn best(&self, works: impl Fn(&Route) -> bool) -> BTreeMap<IpAddr, &Route> {
        let mut best = BTreeMap::<IpAddr, &Route>::new();
        for route in self.over_mesh.iter().chain(&self.others) {
            let Some(host) = route.to.host().filter(|_| works(route)) else { continue };
            let known = best.entry(host).or_insert(route);
            if route.priority < known.priority {
                *known = route;
            }
        }
        best
    }

    /// The routes over interfaces of the mesh.
    pub fn over_mesh(&self) -> impl Iterator<Item = &Route> {
        self.over_mesh.iter()
    }

    /// Whether there is a route to a host over an interface of the mesh.
    pub fn has_over_mesh(&self, host: IpAddr) -> bool {
        self.over_mesh.iter().any(|route| route.to.host() == Some(host))
    }

    /// Whether an address is this machine's own.
    pub fn is_own(&self, address: IpAddr) -> bool {
        self.own.contains(&address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routing::kernel::route;

    fn numbered(number: u32) -> Route {
        route(&format!("{}/32", std::net::Ipv4Addr::from(0x0a00_0000 + number)), "", 1)
    }

    #[test]
    fn it_does_not_grow_without_bound_and_other_routes_take_no_place_from_the_mesh() {
        let mut hosts = Hosts::default();
        for number in 0..5000 {
            hosts.add(&numbered(number), false);
        }
        for number in 5000..10_000 {
            hosts.add(&numbered(number), true);
            hosts.add(&Route { table: TABLE_LOCAL, kind: LOCAL, ..numbered(number) }, false);
        }
        assert_eq!(hosts.best(|_| true).len(), OVER_MESH_MAX + OTHERS_MAX);
        assert_eq!(hosts.own.len(), OWN_MAX);
        assert!(hosts.has_over_mesh("10.0.19.136".parse().unwrap()), "the 5000th address");
    }
}
