//! The way to the gateway as a plain snapshot: pushed in whole whenever it changes, never asked for.

use std::net::IpAddr;

/// Where what is not for the mesh itself goes from this node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RouteTable {
    /// Nowhere: there is no usable route, or routing is off.
    #[default]
    Nowhere,
    /// Out of the mesh: this node is the gateway.
    Gateway(Uplink),
    /// To another node of the mesh.
    Mesh(Route),
}

/// The gateway's way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uplink {
    /// The address by which the mesh knows this node, if that is known.
    pub address: Option<IpAddr>,
    /// The interface that leads out; `None` where the configuration alone makes this node the gateway.
    pub interface: Option<Interface>,
    /// Who says so.
    pub source: RouteSource,
}

/// The way through the mesh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The neighbour that takes what goes to the gateway. A link-local address is one of `interface`.
    pub next_hop: IpAddr,
    /// The interface behind which the next hop is.
    pub interface: Interface,
    /// The gateway's address, if it is known.
    pub gateway: Option<IpAddr>,
    /// The cost of the whole way in the routing protocol's own unit, less is better, if it is known.
    pub metric: Option<u32>,
    /// Hops to the gateway, if they are known; the gateway itself is one hop away from its neighbours.
    pub hops: Option<u32>,
    /// Who says so.
    pub source: RouteSource,
}

/// A network interface of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// The kernel's number for it: the scope of link-local addresses.
    pub index: u32,
}

/// Who said most of what is known about a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteSource {
    /// The kernel's routing table alone.
    Kernel,
    /// babeld, in agreement with the kernel.
    Babeld,
    /// The configuration names the gateway; the kernel knows the way.
    Config,
}

impl RouteTable {
    /// Whether this node is the gateway.
    #[must_use]
    pub fn is_gateway(&self) -> bool {
        matches!(self, Self::Gateway(_))
    }

    /// Whether another way out of the mesh was known before than now.
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

    /// The way through the mesh, where this node has one and needs one.
    #[must_use]
    pub fn route(&self) -> Option<&Route> {
        match self {
            Self::Mesh(route) => Some(route),
            _ => None,
        }
    }

    /// The gateway's address, whoever the gateway is, if it is known.
    #[must_use]
    pub fn gateway(&self) -> Option<IpAddr> {
        match self {
            Self::Nowhere => None,
            Self::Gateway(uplink) => uplink.address,
            Self::Mesh(route) => route.gateway,
        }
    }

    /// Who says so; `None` if nobody does.
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
    /// One word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Babeld => "babeld",
            Self::Config => "config",
        }
    }
}
