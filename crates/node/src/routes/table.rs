//! The route to the gateway, as a snapshot. The driver passes a new one whenever the route changes.

use std::net::IpAddr;

/// The route of this node's packets to destinations outside the mesh.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RouteTable {
    /// There is no usable route, or routing is off.
    #[default]
    Nowhere,
    /// The route leads out of the mesh here: this node is the gateway.
    Gateway(Uplink),
    /// The route leads to another node of the mesh.
    Mesh(Route),
}

/// The gateway's route out of the mesh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uplink {
    /// The address by which the mesh knows this node, if it is known.
    pub address: Option<IpAddr>,
    /// The interface that leads out; `None` if only the configuration makes this node the gateway.
    pub interface: Option<Interface>,
    /// The source of this information.
    pub source: RouteSource,
}

/// The route through the mesh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The neighbour that forwards packets to the gateway. A link-local address has the scope of `interface`.
    pub next_hop: IpAddr,
    /// The interface towards the next hop.
    pub interface: Interface,
    /// The gateway's address, if it is known.
    pub gateway: Option<IpAddr>,
    /// The metric of the whole route in the routing protocol's own unit, if it is known; less is better.
    pub metric: Option<u32>,
    /// The number of hops to the gateway, if it is known; one for a neighbour of the gateway.
    pub hops: Option<u32>,
    /// The address by which the mesh knows this node, if it is known.
    pub address: Option<IpAddr>,
    /// The source of this information.
    pub source: RouteSource,
}

/// A network interface of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The interface's name.
    pub name: String,
    /// The kernel's interface index: the scope of link-local addresses.
    pub index: u32,
}

/// The source of most information about a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteSource {
    /// The kernel's routing table alone.
    Kernel,
    /// babeld, in agreement with the kernel.
    Babeld,
    /// The configuration, which names the gateway; the route is the kernel's.
    Config,
}

impl RouteTable {
    /// Whether this node is the gateway.
    #[must_use]
    pub fn is_gateway(&self) -> bool {
        matches!(self, Self::Gateway(_))
    }

    /// Whether this table and a newer one leave the mesh at different, known exits.
    pub(crate) fn leads_elsewhere_than(&self, now: &Self) -> bool {
        match (self, now) {
            (Self::Nowhere, _) | (_, Self::Nowhere) => false,
            (Self::Gateway(before), Self::Gateway(now)) => before.interface != now.interface,
            (Self::Mesh(before), Self::Mesh(now)) => {
                before.gateway.zip(now.gateway).is_some_and(|(before, now)| before != now)
            }
            _ => true,
        }
    }

    /// The route through the mesh; `None` if there is none, or if this node is the gateway.
    #[must_use]
    pub fn route(&self) -> Option<&Route> {
        match self {
            Self::Mesh(route) => Some(route),
            _ => None,
        }
    }

    /// The gateway's address, if it is known; the gateway may be this node.
    #[must_use]
    pub fn gateway(&self) -> Option<IpAddr> {
        match self {
            Self::Nowhere => None,
            Self::Gateway(uplink) => uplink.address,
            Self::Mesh(route) => route.gateway,
        }
    }

    /// The address by which the mesh knows this node, if it is known.
    #[must_use]
    pub fn own_address(&self) -> Option<IpAddr> {
        match self {
            Self::Nowhere => None,
            Self::Gateway(uplink) => uplink.address,
            Self::Mesh(route) => route.address,
        }
    }

    /// The source of the route; `None` if there is no route.
    #[must_use]
    pub fn source(&self) -> Option<RouteSource> {
        match self {
            Self::Nowhere => None,
            Self::Gateway(uplink) => Some(uplink.source),
            Self::Mesh(route) => Some(route.source),
        }
    }
}

impl RouteSource {
    /// A short name, for people and programs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Babeld => "babeld",
            Self::Config => "config",
        }
    }
}
