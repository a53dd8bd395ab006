//! The routes, neighbours and prefixes that babeld has reported.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::line::{Key, Line, Neighbour, Route, RouterId, Thing};
use crate::routing::net::Net;

/// The most items of each kind; further ones are ignored until others are removed.
const THINGS_MAX: usize = 4096;

/// Routes, neighbours, and the prefixes that this router itself announces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    routes: BTreeMap<u64, Route>,
    neighbours: BTreeMap<u64, Neighbour>,
    exported: BTreeSet<Net>,
}

/// babeld's knowledge of the path to a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownPath<'a> {
    /// The metric of the whole path, if it is possible.
    pub metric: Option<u32>,
    /// The outgoing interface.
    pub interface: &'a str,
}

/// babeld's knowledge of the route to the gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// The metric of the whole route, if it is possible.
    pub metric: Option<u32>,
    /// The outgoing interface.
    pub interface: String,
    /// The address of the router that announces the route.
    pub gateway: Option<IpAddr>,
}

impl Table {
    /// Applies a line.
    pub fn apply(&mut self, line: Line) {
        match line {
            Line::Is(Thing::Route(key, route)) => put(&mut self.routes, key, route),
            Line::Is(Thing::Neighbour(key, neighbour)) => put(&mut self.neighbours, key, neighbour),
            Line::Is(Thing::Exported(net)) => {
                if self.exported.len() < THINGS_MAX {
                    self.exported.insert(net);
                }
            }
            Line::Gone(Key::Route(key)) => drop(self.routes.remove(&key)),
            Line::Gone(Key::Neighbour(key)) => drop(self.neighbours.remove(&key)),
            Line::Gone(Key::Exported(net)) => drop(self.exported.remove(&net)),
            Line::Greeting(_) | Line::Ok | Line::Refused | Line::Other => {}
        }
    }

    /// The installed route to a host, or for `None` the default route, if it is usable: its metric
    /// is finite, and both this router and the neighbour receive each other.
    pub fn route_to(&self, target: Option<IpAddr>, is_ipv4: bool) -> Option<Known> {
        let fits =
            |it: &&Route| it.is_installed && it.to.is_ipv4() == is_ipv4 && it.to.leads_to(target);
        let route = self.routes.values().filter(fits).max_by_key(|route| route.to.bits())?;
        if !route.is_finite() || !self.is_bidirectional(route) {
            return None;
        }
        let (metric, interface) = (route.metric, route.interface.clone());
        Some(Known { metric, interface, gateway: self.address_of(route.id, is_ipv4) })
    }

    /// The installed routes to single hosts that are usable: their metrics are finite, and both this
    /// router and the neighbour receive each other.
    pub fn hosts<'a>(&'a self) -> BTreeMap<IpAddr, KnownPath<'a>> {
        let neighbours = self.neighbours.values().filter(|it| it.is_bidirectional());
        let neighbours: BTreeSet<_> =
            neighbours.map(|it| (it.address, it.interface.as_str())).collect();
        let usable = |it: &Route| {
            it.is_installed
                && it.is_finite()
                && neighbours.contains(&(it.via, it.interface.as_str()))
        };
        let path = |it: &'a Route| {
            Some((it.to.host()?, KnownPath { metric: it.metric, interface: &it.interface }))
        };
        self.routes.values().filter(|it| usable(it)).filter_map(path).collect()
    }

    /// The address of this router that it announces, among those for which `is_own` holds: routers
    /// also announce addresses of others.
    pub fn own_address(&self, is_own: impl Fn(IpAddr) -> bool) -> Option<IpAddr> {
        // IPv4 before IPv6, then the lowest.
        self.exported.iter().filter_map(Net::host).find(|it| is_own(*it))
    }

    /// The address of a router: the host address that it announces, the lowest if there are
    /// several.
    fn address_of(&self, id: RouterId, is_ipv4: bool) -> Option<IpAddr> {
        let routes = self.routes.values().filter(|it| it.id == id && it.is_finite());
        routes.filter_map(|it| it.to.host()).filter(|it| it.is_ipv4() == is_ipv4).min()
    }

    fn is_bidirectional(&self, route: &Route) -> bool {
        self.neighbours.values().any(|it| {
            it.address == route.via && it.interface == route.interface && it.is_bidirectional()
        })
    }
}

fn put<T>(things: &mut BTreeMap<u64, T>, key: u64, thing: T) {
    if things.len() < THINGS_MAX || things.contains_key(&key) {
        things.insert(key, thing);
    }
}

#[cfg(test)]
pub mod tests {
    use super::super::line::parse;
    use super::*;

    /// The output of babeld 1.12.1 on the middle one of three routers in a row; the third is the
    /// gateway.
    const RECORDED: &str = include_str!("recorded.txt");

    /// The table after all recorded lines and further ones.
    pub fn table(more: &str) -> Table {
        let mut table = Table::default();
        for line in RECORDED.lines().chain(more.lines()) {
            table.apply(parse(line).unwrap());
        }
        table
    }

    const NEIGHBOUR: &str = "neighbour 555ed44d9760 address fe80::30f3:2dff:fe7e:ec1e if wl1";
    const DEFAULT: &str = "route 555ed44dc070 prefix 0.0.0.0/0 from 0.0.0.0/0 installed yes \
        id 40:d3:c5:cd:65:31:90:49";

    #[test]
    fn the_gateway_is_the_host_that_shares_the_default_routes_router_id() {
        let gateway = "10.77.0.3".parse().ok();
        let known = Known { metric: Some(392), interface: "wl1".into(), gateway };
        assert_eq!(table("").route_to(None, true), Some(known));
        assert_eq!(table("").route_to(None, false), None);
        assert_eq!(table("").own_address(|_| true), "10.77.0.2".parse().ok());
        // Towards the other end there is only a host route.
        let known = table("").route_to("10.77.0.1".parse().ok(), true).unwrap();
        assert_eq!((known.metric, known.interface.as_str()), (Some(264), "wl0"));
    }

    #[test]
    fn installed_routes_to_hosts_are_paths() {
        let paths = |more: &str| {
            let table = table(more);
            let paths = table.hosts().into_iter();
            paths
                .map(|(host, it)| format!("{host} {:?} {}", it.metric, it.interface))
                .collect::<Vec<_>>()
        };
        let [near, far] = ["10.77.0.1 Some(264) wl0", "10.77.0.3 Some(264) wl1"];
        assert_eq!(paths(""), [near, far]);
        // A router that does not hear us, a metric of infinity, and one that nobody can have.
        let deaf = format!("change {NEIGHBOUR} reach ff80 rxcost 256 txcost 65535");
        assert_eq!(paths(&deaf), [near]);
        let other = "prefix 10.77.0.3/32 from 0.0.0.0/0 installed yes id 40:d3:c5:cd:65:31:90:49";
        let metric = |metric| {
            format!(
                "change route 555ed44da0c0 {other} metric {metric} via fe80::30f3:2dff:fe7e:ec1e if wl1"
            )
        };
        assert_eq!(paths(&metric(65535)), [near]);
        assert_eq!(paths(&metric(0)), [near, "10.77.0.3 None wl1"]);
    }

    #[test]
    fn only_an_address_of_this_machine_can_be_its_own() {
        let other = "add xroute 10.77.0.1/32-0.0.0.0/0 prefix 10.77.0.1/32 from 0.0.0.0/0 metric 0";
        let (table, own) = (table(other), "10.77.0.2".parse().unwrap());
        assert_eq!(table.own_address(|it| it == own), Some(own));
        assert_eq!(table.own_address(|_| false), None);
    }

    #[test]
    fn a_neighbour_that_does_not_hear_us_is_no_next_hop() {
        for costs in ["rxcost 256 txcost 65535", "rxcost 65535 txcost 256"] {
            let line = format!("change {NEIGHBOUR} reach ff80 ureach 0000 {costs}");
            assert_eq!(table(&line).route_to(None, true), None, "{line}");
        }
        let silent = format!("change {NEIGHBOUR} reach 0000 ureach 0000 rxcost 256 txcost 256");
        assert_eq!(table(&silent).route_to(None, true), None);
        assert_eq!(table(&format!("flush {NEIGHBOUR}")).route_to(None, true), None);
    }

    #[test]
    fn a_route_that_was_taken_back_is_none() {
        let infinite = format!(
            "change {DEFAULT} metric 65535 refmetric 65535 via fe80::30f3:2dff:fe7e:ec1e if wl1"
        );
        assert_eq!(table(&infinite).route_to(None, true), None);
        assert_eq!(table(&format!("flush {DEFAULT}")).route_to(None, true), None);
    }

    #[test]
    fn it_does_not_grow_without_bound() {
        let mut table = table("");
        for number in 0..2 * THINGS_MAX {
            table.apply(
                parse(
                    &format!("add {NEIGHBOUR} reach 1 rxcost 1 txcost 1")
                        .replace("555ed44d9760", &format!("{number:x}")),
                )
                .unwrap(),
            );
        }
        assert_eq!(table.neighbours.len(), THINGS_MAX);
    }
}
