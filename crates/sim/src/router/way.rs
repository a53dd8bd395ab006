//! A router's routes to the gateway.

use std::iter;
use std::net::IpAddr;

use node::{Interface, Route, RouteSource, RouteTable, Uplink};

use crate::world::{Routes, address};

/// The routes of a station's router, as the daemon would read them from the kernel.
pub fn table(routes: &mut Routes, station: usize, gateway: usize) -> RouteTable {
    let interface = |name: &str, index| Interface { name: name.to_owned(), index };
    let address = |station| IpAddr::V4(address(station));
    if station == gateway {
        return RouteTable::Gateway(Uplink {
            address: Some(address(gateway)),
            interface: Some(interface("eth0", 2)),
            source: RouteSource::Kernel,
        });
    }
    let hops = iter::successors(Some(station), |at| routes.next_hop(*at, gateway)).skip(1);
    let hops: Vec<_> = hops.collect();
    let Some(next_hop) = hops.first() else { return RouteTable::Nowhere };
    RouteTable::Mesh(Route {
        next_hop: address(*next_hop),
        interface: interface("wl0", 3),
        gateway: Some(address(gateway)),
        metric: None,
        hops: u32::try_from(hops.len()).ok(),
        address: Some(address(station)),
        source: RouteSource::Config,
    })
}
