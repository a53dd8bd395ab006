//! Combines the kernel's routes, babeld's and the configuration into one route.
//!
//! The kernel decides where packets go, so its route is used. babeld adds the metric and the
//! gateway's address. It also has a veto: a route that babeld installed counts only while babeld
//! still reports it.

use std::net::IpAddr;

use node::{Exit, Interface, Route, RouteSource, Uplink};

use super::babeld::Table;
use super::kernel::{BestRoute, Fib};

/// `RTPROT_BABEL`: the protocol number of routes that babeld installed.
const BABEL: u8 = 42;

/// The current route. `target` is the configured gateway, for which the [`Fib`] was made.
pub fn merge(mesh: &[String], target: Option<IpAddr>, fib: &Fib, babeld: Option<&Table>) -> Exit {
    match fib.best_route() {
        None => Exit::Nowhere,
        // The configured gateway address is this machine's own.
        Some(BestRoute::Here) => {
            Exit::Gateway(Uplink { address: target, interface: None, source: RouteSource::Config })
        }
        Some(BestRoute::Out { via, interface, protocol, is_ipv4 }) => {
            let is_mesh = mesh.contains(&interface.name);
            // If the gateway is on the link, it is the next hop. A default route without a next hop
            // is unusable in a mesh.
            match (is_mesh, via.or(target)) {
                (true, Some(next_hop)) => {
                    let judge = babeld.filter(|_| protocol == BABEL);
                    let address = babeld.and_then(Table::own_address);
                    through_mesh(next_hop, interface, (target, address), judge, is_ipv4)
                }
                // A default route that leaves the mesh makes this node a gateway.
                (false, _) if target.is_none() => uplink(interface, babeld),
                _ => Exit::Nowhere,
            }
        }
    }
}

fn uplink(interface: Interface, babeld: Option<&Table>) -> Exit {
    let address = babeld.and_then(Table::own_address);
    let source = address.map_or(RouteSource::Kernel, |_| RouteSource::Babeld);
    Exit::Gateway(Uplink { address, interface: Some(interface), source })
}

/// The route by a neighbour, if `judge`, when given, reports it too. `address` is this node's own.
fn through_mesh(
    next_hop: IpAddr,
    interface: Interface,
    (target, address): (Option<IpAddr>, Option<IpAddr>),
    judge: Option<&Table>,
    is_ipv4: bool,
) -> Exit {
    let known = judge.map(|judge| judge.route_to(target, is_ipv4));
    let known = match known {
        Some(Some(known)) if known.interface == interface.name => Some(known),
        // babeld no longer reports the route, or reports another: the kernel's is outdated.
        Some(_) => return Exit::Nowhere,
        None => None,
    };
    let source = match (&known, target) {
        (Some(_), _) => RouteSource::Babeld,
        (None, Some(_)) => RouteSource::Config,
        (None, None) => RouteSource::Kernel,
    };
    let metric = known.as_ref().map(|known| known.metric);
    let gateway = target.or(known.and_then(|known| known.gateway));
    // Other hop counts are unknown here.
    let hops = (gateway == Some(next_hop)).then_some(1);
    Exit::Mesh(Route { next_hop, interface, gateway, metric, hops, address, source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routing::babeld::table;
    use crate::routing::kernel::{links, route};

    fn mesh() -> Vec<String> {
        vec!["wl0".into(), "wl1".into()]
    }

    /// The state of the kernel in `recorded.txt`; here interface 1 has the name `wl0`.
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
    fn a_default_route_by_another_interface_makes_a_gateway() {
        let route = merge(&mesh(), None, &over(2, "10.3.0.2"), Some(&table("")));
        let uplink = Uplink {
            address: "10.77.0.2".parse().ok(),
            interface: Some(Interface { name: "wan0".into(), index: 2 }),
            source: RouteSource::Babeld,
        };
        assert_eq!(route, Exit::Gateway(uplink));
        assert_eq!(merge(&mesh(), None, &links(), None), Exit::Nowhere);
        // Without a next hop, a route by an interface of the mesh is unusable.
        assert_eq!(merge(&mesh(), None, &over(1, ""), None), Exit::Nowhere);
    }

    #[test]
    fn babeld_must_still_report_the_routes_it_installed() {
        // babeld's recorded default route is by wl1, the kernel's is by wl0.
        let fib = over(1, "10.77.0.3");
        assert_eq!(merge(&mesh(), None, &fib, Some(&table(""))), Exit::Nowhere);
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
        assert_eq!(merge(&mesh(), target, &fib, None), Exit::Nowhere);
        fib.add_route(route("10.77.0.8/32", "", 1), target);
        let route = merge(&mesh(), target, &fib, None);
        let route = route.route().expect("a route");
        assert_eq!((Some(route.next_hop), route.gateway, route.hops), (target, target, Some(1)));
        assert_eq!(route.source, RouteSource::Config);
    }
}
