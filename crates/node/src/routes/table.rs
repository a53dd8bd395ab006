//! The routes of this node, as a snapshot. The driver passes a new one whenever they change.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use wire::Date;

/// What the routing layer knows: MeshCache's cross-layer API (§7). Links that work in one direction only are in no
/// route.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteTable {
    /// The route out of the mesh, to the best gateway.
    pub exit: Exit,
    /// The paths to other routers.
    pub paths: Paths,
    /// Since when the routing program has not answered whose last routes these are; `None` if it answers, or if
    /// none of these routes are its.
    pub stopped: Option<Date>,
}

/// The paths to other routers, by their addresses in the mesh: at most [`Paths::COUNT_MAX`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paths(Arc<BTreeMap<IpAddr, Path>>);

/// A path through the mesh to a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// The neighbour that forwards packets to the router, or the router itself.
    pub next_hop: IpAddr,
    /// The kernel's index of the interface towards the next hop: the scope of a link-local address.
    pub interface: u32,
    /// The metric of the whole path in the routing protocol's own unit, if it is known; less is better.
    pub metric: Option<u32>,
    /// The number of hops, if it is known; one for a neighbour.
    pub hops: Option<u32>,
}

/// The route of this node's packets to destinations outside the mesh.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Exit {
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

impl Paths {
    /// The most paths that are kept; each takes about 100 bytes.
    pub const COUNT_MAX: usize = 1024;

    /// The path to a router.
    #[must_use]
    pub fn to(&self, router: IpAddr) -> Option<Path> {
        self.0.get(&router).copied()
    }

    /// All paths, in the order of the routers' addresses.
    pub fn iter(&self) -> impl Iterator<Item = (IpAddr, Path)> {
        self.0.iter().map(|(router, path)| (*router, *path))
    }

    /// The number of routers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no path is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The first [`Paths::COUNT_MAX`] of these; of two to the same router the last.
impl FromIterator<(IpAddr, Path)> for Paths {
    fn from_iter<T: IntoIterator<Item = (IpAddr, Path)>>(paths: T) -> Self {
        Self(Arc::new(paths.into_iter().take(Self::COUNT_MAX).collect()))
    }
}

/// Only the route out of the mesh is known.
impl From<Exit> for RouteTable {
    fn from(exit: Exit) -> Self {
        Self { exit, ..Self::default() }
    }
}

impl Exit {
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
