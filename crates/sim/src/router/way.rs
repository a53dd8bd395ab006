//! A router's routes.

use std::net::IpAddr;

use node::{Exit, Interface, Path, Paths, Route, RouteSource, RouteTable, Uplink};

use crate::scenario::HOP;
use crate::world::{Routes, address};

/// The metric of a hop without losses, as babeld has it on wireless links.
const METRIC_OF_HOP: u64 = 256;
/// The kernel's index of a station's interface to the air.
const AIR: u32 = 3;

/// The routes of a station's router, as the daemon would read them from the kernel and babeld. `all`: with the paths
/// to all other routers.
pub fn table(routes: &mut Routes, station: usize, gateway: usize, all: bool) -> RouteTable {
    let others = (0..routes.stations()).filter(|other| all && *other != station);
    let paths: Paths = others.filter_map(|to| Some((ip(to), path(routes, station, to)?))).collect();
    RouteTable { exit: exit(routes, station, gateway), paths, stopped: None }
}

fn exit(routes: &mut Routes, station: usize, gateway: usize) -> Exit {
    let interface = |name: &str, index| Interface { name: name.to_owned(), index };
    if station == gateway {
        return Exit::Gateway(Uplink {
            address: Some(ip(gateway)),
            interface: Some(interface("eth0", 2)),
            source: RouteSource::Kernel,
        });
    }
    let Some(path) = path(routes, station, gateway) else { return Exit::Nowhere };
    Exit::Mesh(Route {
        next_hop: path.next_hop,
        interface: interface("wl0", path.interface),
        gateway: Some(ip(gateway)),
        metric: path.metric,
        hops: path.hops,
        address: Some(ip(station)),
        source: RouteSource::Config,
    })
}

fn path(routes: &mut Routes, from: usize, to: usize) -> Option<Path> {
    let path = routes.path(from, to)?;
    Some(Path {
        next_hop: ip(path.next_hop),
        interface: AIR,
        metric: u32::try_from(path.cost * METRIC_OF_HOP / HOP).ok(),
        hops: Some(path.hops),
    })
}

fn ip(station: usize) -> IpAddr {
    IpAddr::V4(address(station))
}
