//! Combines the kernel's routes, babeld's and the configuration into one table.
//!
//! The kernel decides where packets go, so its routes are used, and their metrics where these differ: olsrd and
//! others tell distances by them. babeld adds its own metrics and the gateway's address. It also has a veto: a route that babeld installed counts only while babeld
//! still reports it. A babeld that has stopped has no veto: what it reported last still describes the
//! kernel's routes that agree with it, and for the others the kernel alone counts.

use std::collections::BTreeMap;
use std::net::IpAddr;

use node::{Exit, Interface, Path, Paths, Route, RouteSource, RouteTable, Uplink};

use super::babeld::{Announced, KnownPath};
use super::kernel::{BestRoute, Fib, HostRoute};
use super::net::can_be_router;

/// `RTPROT_BABEL`: the protocol number of routes that babeld installed.
pub const BABEL: u8 = 42;

/// The current table. `exit` is what [`exit`] returned for the same snapshots.
pub fn merge(exit: Exit, fib: &Fib, babeld: Option<Announced<'_>>) -> RouteTable {
    let paths = paths(&exit, fib, babeld);
    let is_babelds = || {
        let known = babeld.map(|it| it.table.hosts()).unwrap_or_default();
        let routes = fib.hosts().into_iter().filter_map(|(host, route)| Some((host, route?)));
        let mut metrics = routes.map(|(host, route)| metric_of(&route, known.get(&host)));
        exit.source() == Some(RouteSource::Babeld) || metrics.any(|metric| metric.is_some())
    };
    let stopped = babeld.and_then(|it| it.stopped).filter(|_| is_babelds());
    RouteTable { exit, paths, stopped }
}

/// The current route to the gateway.
pub fn exit(fib: &Fib, babeld: Option<Announced<'_>>) -> Exit {
    let target = fib.wanted().target;
    let address = babeld.and_then(|it| it.table.own_address(|own| fib.is_own(own)));
    match fib.best_route() {
        None => Exit::Nowhere,
        // The configured gateway address is this machine's own.
        Some(BestRoute::Here) => {
            Exit::Gateway(Uplink { address: target, interface: None, source: RouteSource::Config })
        }
        Some(BestRoute::Out { via, interface, protocol, is_ipv4 }) => {
            let is_mesh = fib.wanted().mesh.contains(&interface.name);
            // If the gateway is on the link, it is the next hop. A default route without a next hop
            // is unusable in a mesh.
            match (is_mesh, via.or(target)) {
                // An address that was another's when the route was made.
                (true, Some(next_hop)) if fib.is_own(next_hop) => Exit::Nowhere,
                (true, Some(next_hop)) => {
                    let judge = babeld.filter(|_| protocol == BABEL);
                    through_mesh(next_hop, interface, (target, address), judge, is_ipv4)
                }
                // A default route that leaves the mesh makes this node a gateway.
                (false, _) if target.is_none() => uplink(interface, address),
                _ => Exit::Nowhere,
            }
        }
    }
}

/// The current paths to other routers: to each host with a route of its own over the mesh, and to
/// the gateway. What else is on the link cannot be listed.
fn paths(exit: &Exit, fib: &Fib, babeld: Option<Announced<'_>>) -> Paths {
    let (hosts, known) = (fib.hosts(), babeld.map(|it| (it.table.hosts(), it.has_veto())));
    let tells = [false, true].map(|is_ipv4| metrics_tell(&hosts, is_ipv4));
    // A route of its own to the gateway counts more than the one out of the mesh.
    let gateway = exit.route().and_then(|route| {
        let gateway = route.gateway.filter(|it| !hosts.contains_key(it))?;
        let (next_hop, interface) = (route.next_hop, route.interface.index);
        Some((gateway, Path { next_hop, interface, metric: route.metric, hops: route.hops }))
    });
    let others = hosts.into_iter().filter_map(|(host, route)| {
        let route = route.filter(|it| !fib.is_own(it.next_hop))?;
        Some((host, path(host, route, known.as_ref(), tells[usize::from(host.is_ipv4())])?))
    });
    let is_router = |(host, _): &(IpAddr, Path)| can_be_router(*host) && !fib.is_own(*host);
    // The gateway comes first, for the case that there are too many.
    gateway.into_iter().chain(others).filter(is_router).collect()
}

/// Whether the metrics of the kernel's routes of one address family tell distances: each has one, and they differ.
/// babeld's are of another unit.
fn metrics_tell<'a>(hosts: &'a BTreeMap<IpAddr, Option<HostRoute>>, is_ipv4: bool) -> bool {
    let of_family = hosts.iter().filter(|(host, _)| host.is_ipv4() == is_ipv4);
    let routes: Vec<&'a HostRoute> = of_family.filter_map(|(_, route)| route.as_ref()).collect();
    routes.iter().all(|it| it.protocol != BABEL && it.priority > 0)
        && routes.windows(2).any(|pair| pair[0].priority != pair[1].priority)
}

/// babeld's metric of a route that it installed, if it reports the route.
fn metric_of(route: &HostRoute, known: Option<&KnownPath<'_>>) -> Option<u32> {
    let known = known.filter(|it| route.protocol == BABEL && it.interface == route.interface.name);
    known.and_then(|it| it.metric)
}

/// The path by the kernel's route, if `babeld`, when it installed the route and has a veto, reports it
/// too. `tells`: the kernel's metrics are distances.
fn path(
    host: IpAddr,
    route: HostRoute,
    babeld: Option<&(BTreeMap<IpAddr, KnownPath<'_>>, bool)>,
    tells: bool,
) -> Option<Path> {
    let metric = match babeld.filter(|_| route.protocol == BABEL) {
        Some((known, has_veto)) => {
            let known = known.get(&host);
            let reports = known.is_some_and(|it| it.interface == route.interface.name);
            if *has_veto && !reports {
                return None;
            }
            metric_of(&route, known)
        }
        None => tells.then_some(route.priority),
    };
    // Other hop counts are unknown here.
    let hops = (route.next_hop == host).then_some(1);
    Some(Path { next_hop: route.next_hop, interface: route.interface.index, metric, hops })
}

fn uplink(interface: Interface, address: Option<IpAddr>) -> Exit {
    let source = address.map_or(RouteSource::Kernel, |_| RouteSource::Babeld);
    Exit::Gateway(Uplink { address, interface: Some(interface), source })
}

/// The route by a neighbour, if `judge`, when given and with a veto, reports it too. `address` is this
/// node's own.
fn through_mesh(
    next_hop: IpAddr,
    interface: Interface,
    (target, address): (Option<IpAddr>, Option<IpAddr>),
    judge: Option<Announced<'_>>,
    is_ipv4: bool,
) -> Exit {
    let known = judge.and_then(|judge| judge.table.route_to(target, is_ipv4));
    let known = known.filter(|known| known.interface == interface.name);
    // babeld no longer reports the route, or reports another: the kernel's is outdated.
    if known.is_none() && judge.is_some_and(|judge| judge.has_veto()) {
        return Exit::Nowhere;
    }
    let source = match (&known, target) {
        (Some(_), _) => RouteSource::Babeld,
        (None, Some(_)) => RouteSource::Config,
        (None, None) => RouteSource::Kernel,
    };
    let metric = known.as_ref().and_then(|known| known.metric);
    let gateway = target.or(known.and_then(|known| known.gateway));
    // Other hop counts are unknown here.
    let hops = (gateway == Some(next_hop)).then_some(1);
    Exit::Mesh(Route { next_hop, interface, gateway, metric, hops, address, source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routing::babeld::{Table, table};
    use crate::routing::kernel::{KernelRoute as Row, Link, links, links_for, own, route};
    use proptest::prelude::*;
    use wire::Date;

    fn live(table: &Table) -> Option<Announced<'_>> {
        Some(Announced { table, stopped: None })
    }

    /// The state of the kernel in `recorded.txt`; here interface 1 has the name `wl0`.
    fn over(interface: u32, via: &str) -> Fib {
        let mut fib = links();
        fib.add_route(route("0.0.0.0/0", via, interface));
        fib.add_route(own("10.77.0.2/32"));
        fib
    }

    #[test]
    fn without_babeld_the_kernel_alone_counts() {
        let route = exit(&over(1, "10.77.0.4"), None);
        let route = route.route().expect("a route");
        assert_eq!(
            (route.next_hop, route.interface.name.as_str()),
            ("10.77.0.4".parse().unwrap(), "wl0")
        );
        assert_eq!((route.gateway, route.metric, route.source), (None, None, RouteSource::Kernel));
    }

    #[test]
    fn a_default_route_by_another_interface_makes_a_gateway() {
        let route = exit(&over(2, "10.3.0.2"), live(&table("")));
        let uplink = Uplink {
            address: "10.77.0.2".parse().ok(),
            interface: Some(Interface { name: "wan0".into(), index: 2 }),
            source: RouteSource::Babeld,
        };
        assert_eq!(route, Exit::Gateway(uplink));
        assert_eq!(exit(&links(), None), Exit::Nowhere);
        // Without a next hop, a route by an interface of the mesh is unusable.
        assert_eq!(exit(&over(1, ""), None), Exit::Nowhere);
    }

    #[test]
    fn babeld_must_still_report_the_routes_it_installed() {
        // babeld's recorded default route is by wl1, the kernel's is by wl0.
        let fib = over(1, "10.77.0.3");
        assert_eq!(exit(&fib, live(&table(""))), Exit::Nowhere);
        let by_wl0 = "change route 555ed44dc070 prefix 0.0.0.0/0 from 0.0.0.0/0 installed yes \
            id 40:d3:c5:cd:65:31:90:49 metric 392 via fe80::b06a:20ff:fe45:cf3e if wl0";
        let route = exit(&fib, live(&table(by_wl0)));
        let route = route.route().expect("a route");
        assert_eq!((route.gateway, route.metric), ("10.77.0.3".parse().ok(), Some(392)));
        assert_eq!((route.hops, route.source), (Some(1), RouteSource::Babeld));
    }

    #[test]
    fn a_configured_gateway_counts_more_than_the_default_route() {
        let target = "10.77.0.8".parse().ok();
        let mut fib = links_for(target);
        fib.add_route(route("0.0.0.0/0", "10.3.0.2", 2));
        assert_eq!(exit(&fib, None), Exit::Nowhere);
        fib.add_route(route("10.77.0.8/32", "", 1));
        let route = exit(&fib, None);
        let route = route.route().expect("a route");
        assert_eq!((Some(route.next_hop), route.gateway, route.hops), (target, target, Some(1)));
        assert_eq!(route.source, RouteSource::Config);
    }

    /// babeld's recorded route to a host, at its other neighbour, and the kernel's.
    fn with_path(via: &str) -> (Fib, String) {
        let mut fib = over(1, "10.77.0.1");
        fib.add_route(route("10.77.0.3/32", via, 1));
        let line = "change route 555ed44da0c0 prefix 10.77.0.3/32 from 0.0.0.0/0 installed yes \
            id 40:d3:c5:cd:65:31:90:49 metric 798 via fe80::b06a:20ff:fe45:cf3e if wl0";
        (fib, line.to_owned())
    }

    fn all(fib: &Fib, babeld: Option<Announced<'_>>) -> Vec<String> {
        let text = |(host, it): (IpAddr, Path)| {
            format!(
                "{host} over {} at {}: {:?} {:?}",
                it.next_hop, it.interface, it.metric, it.hops
            )
        };
        paths(&exit(fib, babeld), fib, babeld).iter().map(text).collect()
    }

    #[test]
    fn the_next_hop_is_the_kernels_and_the_metric_babelds() {
        let (fib, line) = with_path("10.77.0.1");
        let expected = ["10.77.0.3 over 10.77.0.1 at 1: Some(798) None"];
        assert_eq!(all(&fib, live(&table(&line))), expected);
        assert_eq!(all(&fib, None), ["10.77.0.3 over 10.77.0.1 at 1: None None"]);
        let (beside, line) = with_path("");
        let expected = ["10.77.0.3 over 10.77.0.3 at 1: Some(798) Some(1)"];
        assert_eq!(all(&beside, live(&table(&line))), expected);
        // babeld has installed the recorded route over wl1, so the kernel's is outdated.
        assert_eq!(all(&fib, live(&table(""))), [""; 0]);
        let not_installed = line.replace("installed yes", "installed no");
        assert_eq!(all(&fib, live(&table(&not_installed))), [""; 0]);
    }

    #[test]
    fn babeld_has_no_say_about_routes_of_others() {
        let mut fib = links();
        fib.add_route(Row { protocol: 4, ..route("10.77.0.3/32", "10.77.0.1", 1) });
        assert_eq!(all(&fib, live(&table(""))), ["10.77.0.3 over 10.77.0.1 at 1: None None"]);
    }

    #[test]
    fn the_kernels_metrics_are_distances_where_they_differ() {
        let mut fib = links();
        let route = |to, via, priority| Row { protocol: 4, priority, ..route(to, via, 1) };
        fib.add_route(route("10.77.0.3/32", "10.77.0.1", 2));
        let alike = ["10.77.0.3 over 10.77.0.1 at 1: None None"];
        assert_eq!(all(&fib, live(&table(""))), alike);
        // Those of IPv6 have another default.
        fib.add_route(route("fd00::3/128", "fe80::1", 1024));
        assert!(all(&fib, None).iter().all(|text| text.contains(": None ")));
        fib.add_route(route("10.77.0.1/32", "", 1));
        let differing = [
            "10.77.0.1 over 10.77.0.1 at 1: Some(1) Some(1)",
            "10.77.0.3 over 10.77.0.1 at 1: Some(2) None",
            "fd00::3 over fe80::1 at 1: None None",
        ];
        assert_eq!(all(&fib, None), differing);
        // babeld's are of another unit, and who has none cannot be compared.
        for other in [
            crate::routing::kernel::route("10.77.0.4/32", "10.77.0.1", 1),
            route("10.77.0.4/32", "10.77.0.1", 0),
        ] {
            let mut fib = fib.clone();
            fib.add_route(other);
            assert!(all(&fib, None).iter().all(|text| text.contains(": None ")));
        }
    }

    #[test]
    fn the_gateway_is_a_router_too() {
        let target = "10.77.0.8".parse().ok();
        let mut fib = links_for(target);
        fib.add_route(route("10.77.0.0/24", "10.77.0.4", 1));
        assert_eq!(all(&fib, None), ["10.77.0.8 over 10.77.0.4 at 1: None None"]);
        // Its own route decides, even one that says that it cannot be reached.
        let mut barred = links();
        barred.add_route(route("0.0.0.0/0", "10.77.0.4", 1));
        let by_wl0 = "change route 555ed44dc070 prefix 0.0.0.0/0 from 0.0.0.0/0 installed yes \
            id 40:d3:c5:cd:65:31:90:49 metric 392 via fe80::b06a:20ff:fe45:cf3e if wl0";
        let known = ["10.77.0.3 over 10.77.0.4 at 1: Some(392) None"];
        assert_eq!(all(&barred, live(&table(by_wl0))), known);
        barred.add_route(Row { kind: 7, hops: vec![], ..route("10.77.0.3/32", "", 0) });
        assert_eq!(all(&barred, live(&table(by_wl0))), [""; 0]);
    }

    #[test]
    fn what_cannot_be_another_router_is_none() {
        let mut fib = links();
        for none in ["127.0.0.9/32", "fe80::9/128", "224.0.0.9/32", "ff02::9/128", "169.254.9.9/32"]
        {
            fib.add_route(route(none, "", 1));
        }
        // Ourselves, as destination and as next hop.
        fib.add_route(own("10.77.0.2/32"));
        fib.add_route(route("10.77.0.2/32", "10.77.0.1", 1));
        fib.add_route(route("10.77.0.3/32", "10.77.0.2", 1));
        fib.add_route(route("10.77.0.4/32", "", 1));
        assert_eq!(all(&fib, None), ["10.77.0.4 over 10.77.0.4 at 1: None Some(1)"]);
        let mut to_us = over(1, "10.77.0.2");
        assert_eq!(exit(&to_us, None), Exit::Nowhere);
        to_us.add_route(route("::/0", "fe80::4", 1));
        assert_eq!(exit(&to_us, None), Exit::Nowhere, "packets of IPv4 still go to us");
    }

    #[test]
    fn too_many_routers_leave_room_for_the_gateway() {
        let target = "10.77.0.8".parse().ok();
        let mut fib = links_for(target);
        fib.add_route(route("10.77.0.0/24", "10.77.0.4", 1));
        for number in 0..2000u32 {
            let address = std::net::Ipv4Addr::from(0x0a00_0000 + number);
            fib.add_route(route(&format!("{address}/32"), "", 1));
        }
        let paths = paths(&exit(&fib, None), &fib, None);
        assert_eq!(paths.len(), Paths::COUNT_MAX);
        assert!(target.and_then(|it| paths.to(it)).is_some());
    }

    #[test]
    fn what_a_babeld_that_stopped_reported_last_counts_where_the_kernel_agrees() {
        let (mut fib, line) = with_path("10.77.0.1");
        let by_wl0 = "change route 555ed44dc070 prefix 0.0.0.0/0 from 0.0.0.0/0 installed yes \
            id 40:d3:c5:cd:65:31:90:49 metric 392 via fe80::b06a:20ff:fe45:cf3e if wl0";
        let stopped = Some(Date::from_unix(7));
        let with = |fib: &Fib, more: &str| {
            let table = table(more);
            let babeld = Some(Announced { table: &table, stopped });
            merge(exit(fib, babeld), fib, babeld)
        };
        let told = with(&fib, &format!("{by_wl0}\n{line}"));
        let route = told.exit.route().expect("a route");
        assert_eq!((route.metric, route.source), (Some(392), RouteSource::Babeld));
        assert_eq!(route.address, "10.77.0.2".parse().ok());
        let metric =
            |told: &RouteTable| told.paths.to("10.77.0.3".parse().unwrap()).map(|path| path.metric);
        assert_eq!((metric(&told), told.stopped), (Some(Some(798)), stopped));
        // The recorded routes are over wl1: nothing is known of those over wl0, but they are there.
        let told = with(&fib, "");
        let route = told.exit.route().expect("a route");
        assert_eq!((route.metric, route.source), (None, RouteSource::Kernel));
        assert_eq!((metric(&told), told.stopped), (Some(None), None));
        // One path is enough to say that babeld's last routes are used.
        assert_eq!(with(&fib, &line).stopped, stopped);
        fib = links();
        assert_eq!(with(&fib, &line), RouteTable::default());
    }

    const ADDRESSES: [&str; 7] = [
        "10.77.0.1",
        "10.77.0.2",
        "10.77.0.3",
        "10.77.0.4",
        "127.0.0.1",
        "224.0.0.5",
        "169.254.0.1",
    ];

    /// A kernel's route: to and over one of the addresses, or on the link; its interface, metric,
    /// protocol, and whether it leads anywhere.
    fn rows() -> impl Strategy<Value = Vec<Row>> {
        let address = || proptest::sample::select(&ADDRESSES[..]);
        let via = proptest::option::of(address()).prop_map(Option::unwrap_or_default);
        let is_default = proptest::bool::weighted(0.2);
        let parts = (address(), via, 1u32..4, 0u32..3, any::<bool>(), any::<bool>(), is_default);
        let row = parts.prop_map(|(to, via, interface, priority, is_babels, leads, is_default)| {
            let to = if is_default { "0.0.0.0/0".to_owned() } else { format!("{to}/32") };
            let (protocol, kind) = (if is_babels { BABEL } else { 4 }, if leads { 1 } else { 7 });
            Row { priority, protocol, kind, ..route(&to, via, interface) }
        });
        proptest::collection::vec(row, 0..12)
    }

    /// babeld's lines about routes, some of them lies.
    fn lines() -> impl Strategy<Value = String> {
        let to = proptest::sample::select(&ADDRESSES[..]);
        let metric = proptest::sample::select(&[0, 1, 256, 65535][..]);
        let line = (0u8..20, to, metric, any::<bool>()).prop_map(|(key, to, metric, at_wl0)| {
            let (via, name) = match at_wl0 {
                true => ("fe80::b06a:20ff:fe45:cf3e", "wl0"),
                false => ("fe80::30f3:2dff:fe7e:ec1e", "wl1"),
            };
            format!(
                "add route {key:x} prefix {to}/32 from 0.0.0.0/0 installed yes \
                 id 40:d3:c5:cd:65:31:90:49 metric {metric} via {via} if {name}\n"
            )
        });
        proptest::collection::vec(line, 0..12).prop_map(|lines| lines.concat())
    }

    proptest! {
        #[test]
        fn no_kernel_and_no_babeld_can_make_us_a_router_or_a_next_hop(
            rows in rows(), lines in lines(), has_stopped: bool, target: bool,
        ) {
            let target = target.then(|| "10.77.0.4".parse().unwrap());
            let mut fib = links_for(target);
            fib.add_link(Link { index: 3, name: "wl1".into(), works: (true, true), ..Link::default() });
            fib.add_route(own("10.77.0.2/32"));
            rows.iter().cloned().for_each(|row| fib.add_route(row));
            let table = table(&lines);
            let stopped = has_stopped.then(|| Date::from_unix(7));
            let babeld = Some(Announced { table: &table, stopped });
            let told = merge(exit(&fib, babeld), &fib, babeld);
            prop_assert!(told.stopped.is_none() || has_stopped);
            if let Some(route) = told.exit.route() {
                prop_assert!(!fib.is_own(route.next_hop) && route.interface.name != "wan0");
            }
            let gateway = told.exit.gateway();
            for (host, path) in told.paths.iter() {
                prop_assert!(can_be_router(host) && !fib.is_own(host), "{host}");
                prop_assert!(!fib.is_own(path.next_hop) && path.interface != 2, "{path:?}");
                prop_assert!(path.metric.is_none_or(|metric| (1..65535).contains(&metric)));
                prop_assert_eq!(path.hops.is_some(), path.next_hop == host);
                // A path is a route that the kernel has, or leads to the gateway.
                let is_it = |row: &Row| {
                    row.to.host() == Some(host) && row.kind == 1 && row.hops[0].interface == path.interface
                };
                prop_assert!(rows.iter().any(is_it) || gateway == Some(host), "{host}");
                let known = table.hosts().contains_key(&host);
                let is_others = |row: &Row| is_it(row) && row.protocol != BABEL;
                prop_assert!(has_stopped || known || gateway == Some(host) || rows.iter().any(is_others));
            }
        }
    }
}
