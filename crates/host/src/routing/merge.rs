//! One route out of what the kernel, babeld and the configuration say.
//!
//! The kernel decides where packets go, so its way counts. babeld adds what it costs and who is at
//! its end, and may object: a way that babeld made counts only while babeld stands by it.

use std::net::IpAddr;

use node::{Interface, Route, RouteSource, RouteTable, Uplink};

use super::babeld::Table;
use super::kernel::{Fib, Way};

/// `RTPROT_BABEL`: a route of the kernel's that babeld put there.
const BABEL: u8 = 42;

/// The route that holds. `target` is the gateway as configured, and what the [`Fib`] was made for.
pub fn merge(
    mesh: &[String],
    target: Option<IpAddr>,
    fib: &Fib,
    babeld: Option<&Table>,
) -> RouteTable {
    match fib.way() {
        None => RouteTable::Nowhere,
        Some(Way::Here) => RouteTable::Gateway(Uplink {
            address: target,
            interface: None,
            source: RouteSource::Config,
        }),
        Some(Way::Out { via, interface, protocol, is_ipv4 }) => {
            let is_mesh = mesh.contains(&interface.name);
            // On the link, the gateway itself is the next hop; the rest of the world never is.
            match (is_mesh, via.or(target)) {
                (true, Some(next_hop)) => {
                    let judge = babeld.filter(|_| protocol == BABEL);
                    through_mesh(next_hop, interface, target, judge, is_ipv4)
                }
                (false, _) if target.is_none() => uplink(interface, babeld),
                _ => RouteTable::Nowhere,
            }
        }
    }
}

fn uplink(interface: Interface, babeld: Option<&Table>) -> RouteTable {
    let address = babeld.and_then(Table::own_address);
    let source = address.map_or(RouteSource::Kernel, |_| RouteSource::Babeld);
    RouteTable::Gateway(Uplink { address, interface: Some(interface), source })
}

/// The way over a neighbour, if `judge`, where there is one, knows it too.
fn through_mesh(
    next_hop: IpAddr,
    interface: Interface,
    target: Option<IpAddr>,
    judge: Option<&Table>,
    is_ipv4: bool,
) -> RouteTable {
    let known = judge.map(|judge| judge.way(target, is_ipv4));
    let known = match known {
        Some(Some(known)) if known.interface == interface.name => Some(known),
        Some(_) => return RouteTable::Nowhere,
        None => None,
    };
    let source = match (&known, target) {
        (Some(_), _) => RouteSource::Babeld,
        (None, Some(_)) => RouteSource::Config,
        (None, None) => RouteSource::Kernel,
    };
    let metric = known.as_ref().map(|known| known.metric);
    let gateway = target.or(known.and_then(|known| known.gateway));
    let hops = (gateway == Some(next_hop)).then_some(1);
    RouteTable::Mesh(Route { next_hop, interface, gateway, metric, hops, source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routing::babeld::table;
    use crate::routing::kernel::{links, route};

    fn mesh() -> Vec<String> {
        vec!["wl0".into(), "wl1".into()]
    }

    /// What the kernel of `recorded.txt` has, with interface 1 named `wl0` there.
    fn over(interface: u32, via: &str) -> Fib {
        let mut fib = links();
        fib.add_route(route("0.0.0.0/0", via, interface), None);
        fib
    }

    #[test]
    fn without_babeld_the_kernel_alone_counts() {
        let route = merge(&mesh(), None, &over(1, "10.77.0.4"), None);
        let route = route.route().expect("a route");
        assert_eq!(
            (route.next_hop, route.interface.name.as_str()),
            ("10.77.0.4".parse().unwrap(), "wl0")
        );
        assert_eq!((route.gateway, route.metric, route.source), (None, None, RouteSource::Kernel));
    }

    #[test]
    fn a_way_out_by_another_interface_makes_a_gateway() {
        let route = merge(&mesh(), None, &over(2, "10.3.0.2"), Some(&table("")));
        let uplink = Uplink {
            address: "10.77.0.2".parse().ok(),
            interface: Some(Interface { name: "wan0".into(), index: 2 }),
            source: RouteSource::Babeld,
        };
        assert_eq!(route, RouteTable::Gateway(uplink));
        assert_eq!(merge(&mesh(), None, &links(), None), RouteTable::Nowhere);
        // Without a neighbour to give packets to, an interface of the mesh leads nowhere.
        assert_eq!(merge(&mesh(), None, &over(1, ""), None), RouteTable::Nowhere);
    }

    #[test]
    fn babeld_must_stand_by_the_ways_it_made() {
        // It recorded a default route by wl1, and the kernel's goes by wl0.
        let fib = over(1, "10.77.0.3");
        assert_eq!(merge(&mesh(), None, &fib, Some(&table(""))), RouteTable::Nowhere);
        let by_wl0 = "change route 555ed44dc070 prefix 0.0.0.0/0 from 0.0.0.0/0 installed yes \
            id 40:d3:c5:cd:65:31:90:49 metric 392 via fe80::b06a:20ff:fe45:cf3e if wl0";
        let route = merge(&mesh(), None, &fib, Some(&table(by_wl0)));
        let route = route.route().expect("a route");
        assert_eq!((route.gateway, route.metric), ("10.77.0.3".parse().ok(), Some(392)));
        assert_eq!((route.hops, route.source), (Some(1), RouteSource::Babeld));
    }

    #[test]
    fn a_configured_gateway_counts_more_than_the_default_route() {
        let target = "10.77.0.8".parse().ok();
        let mut fib = links();
        fib.add_route(route("0.0.0.0/0", "10.3.0.2", 2), target);
        assert_eq!(merge(&mesh(), target, &fib, None), RouteTable::Nowhere);
        fib.add_route(route("10.77.0.8/32", "", 1), target);
        let route = merge(&mesh(), target, &fib, None);
        let route = route.route().expect("a route");
        assert_eq!((Some(route.next_hop), route.gateway, route.hops), (target, target, Some(1)));
        assert_eq!(route.source, RouteSource::Config);
    }
}
