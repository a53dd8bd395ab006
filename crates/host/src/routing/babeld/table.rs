//! The routes, neighbours and prefixes that babeld has reported.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::line::{INFINITY, Key, Line, Neighbour, Route, RouterId, Thing};
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

/// babeld's knowledge of the route to the gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// The metric of the whole route.
    pub metric: u32,
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
        if route.metric >= INFINITY || !self.is_bidirectional(route) {
            return None;
        }
        let (metric, interface) = (route.metric, route.interface.clone());
        Some(Known { metric, interface, gateway: self.address_of(route.id, is_ipv4) })
    }

    /// The address of this router, if it announces one.
    pub fn own_address(&self) -> Option<IpAddr> {
        // IPv4 before IPv6, then the lowest.
        self.exported.iter().find_map(Net::host)
    }

    /// The address of a router: the host address that it announces, the lowest if there are
    /// several.
    fn address_of(&self, id: RouterId, is_ipv4: bool) -> Option<IpAddr> {
        let routes = self.routes.values().filter(|it| it.id == id && it.metric < INFINITY);
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
        let known = Known { metric: 392, interface: "wl1".into(), gateway };
        assert_eq!(table("").route_to(None, true), Some(known));
        assert_eq!(table("").route_to(None, false), None);
        assert_eq!(table("").own_address(), "10.77.0.2".parse().ok());
        // Towards the other end there is only a host route.
        let known = table("").route_to("10.77.0.1".parse().ok(), true).unwrap();
        assert_eq!((known.metric, known.interface.as_str()), (264, "wl0"));
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
