//! Which of this machine's interfaces lead out of the site, and by which of them the kernel routes
//! packets.
//!
//! An interface leads out if it has a default route, in any routing table and of either family, or
//! if the operator names it. This decides what may be dialled ([`node::Access`]), and which
//! connections are intercepted ([`crate::intercept`]).

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use node::uplink::Reach;
use node::{Caller, Leads, is_local};
use tokio::sync::watch;

use crate::routing::{Forward, Kernel, Wanted, addresses, all_addresses, forward};

/// The interfaces; `None` until the kernel has listed them.
type Outward = Option<Interfaces>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Interfaces {
    /// The interfaces that lead out now, by index.
    now: BTreeMap<u32, String>,
    /// The indices of all interfaces that have ever led out. Networks behind them belong to others,
    /// even while the uplink is down.
    ever: BTreeSet<u32>,
}

/// Answers where packets are routed at this moment.
#[derive(Clone, Debug)]
pub struct Egress {
    outward: watch::Receiver<Outward>,
    mesh: Rc<[String]>,
}

/// Follows the kernel's links and routes.
struct Follower {
    kernel: Kernel,
    named: Vec<String>,
    outward: watch::Sender<Outward>,
}

/// How long to wait for the kernel's first list of links and routes.
const FIRST_LIST: Duration = Duration::from_millis(500);

/// Starts to follow which interfaces lead out. Those in `named` always do; interfaces in `mesh`
/// lead to other nodes, not to an uplink. If the kernel does not list its routes in time, no
/// interface leads out until it has.
///
/// # Errors
/// If the netlink socket cannot be opened.
pub async fn follow(named: Vec<String>, mesh: &[String]) -> io::Result<Egress> {
    let (outward, receiver) = watch::channel(None);
    let mut egress = Egress { outward: receiver, mesh: mesh.into() };
    tokio::spawn(Follower { kernel: Kernel::open(Wanted::default())?, named, outward }.run());
    let _ = tokio::time::timeout(FIRST_LIST, egress.changed()).await;
    Ok(egress)
}

/// Whether an interface of this name exists.
#[must_use]
pub fn is_there(interface: &str) -> bool {
    let socket =
        rustix::net::socket(rustix::net::AddressFamily::UNIX, rustix::net::SocketType::DGRAM, None);
    socket.is_ok_and(|socket| rustix::net::netdevice::name_to_index(&socket, interface).is_ok())
}

/// The addresses of an interface, even if it is down; none if it is not there.
#[must_use]
pub fn addresses_of(interface: &str) -> Vec<IpAddr> {
    let index = crate::peers::index(interface);
    index.and_then(addresses).unwrap_or_default()
}

/// This machine's addresses; first those of the interfaces with these names. Empty if the kernel does not list them.
#[must_use]
pub fn own_addresses(first: &[String]) -> Vec<IpAddr> {
    let indices = first.iter().filter_map(|name| crate::peers::index(name).ok());
    let of_them = indices.flat_map(|index| addresses(index).unwrap_or_default());
    of_them.chain(all_addresses().unwrap_or_default()).collect()
}

/// The families of addresses for which this machine has a default route, or one for addresses that nobody has.
#[must_use]
pub fn reach() -> Reach {
    let has_route = |nobody: IpAddr| matches!(forward(nobody, None), Ok(Forward::Out(_)));
    // Addresses for documentation (RFC 5737, RFC 3849): only a default route leads there. Nothing is sent.
    Reach {
        v4: has_route([192, 0, 2, 1].into()),
        v6: has_route([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1].into()),
    }
}

impl Follower {
    /// Publishes each change; never returns.
    async fn run(mut self) {
        loop {
            self.kernel.changed().await;
            let now = self.kernel.fib().outward(&self.named);
            self.outward.send_if_modified(|told| {
                let is_new = told.as_ref().is_none_or(|told| told.now != now);
                let told = told.get_or_insert_default();
                told.ever.extend(now.keys());
                told.now = now;
                is_new
            });
        }
    }
}

impl Egress {
    /// Waits until the set of interfaces that lead out changes.
    pub async fn changed(&mut self) {
        if self.outward.changed().await.is_err() {
            std::future::pending().await
        }
    }

    /// The names of the interfaces that lead out, ordered by index.
    #[must_use]
    pub fn interfaces(&self) -> Vec<String> {
        let outward = self.outward.borrow();
        outward.iter().flat_map(|known| known.now.values()).cloned().collect()
    }

    /// Whether this interface leads to other routers of the mesh.
    #[must_use]
    pub fn is_of_mesh(&self, interface: &str) -> bool {
        self.mesh.iter().any(|name| name == interface)
    }

    /// Where packets are routed if this address is dialled for a client or a peer. For an
    /// intercepted client, both the client's own route (which policy rules may distinguish from
    /// ours) and the daemon's route must lead out.
    #[must_use]
    pub fn leads_for(&self, caller: Caller, client: IpAddr, to: IpAddr) -> Leads {
        match (caller, self.leads(to, None)) {
            (Caller::Intercepted, Leads::Out) => self.leads(to, Some(client)),
            // Peers can reach addresses in the mesh without this node.
            (Caller::Peer, Leads::Out) if is_local(to) && self.is_by_mesh(to) => Leads::Elsewhere,
            (_, led) => led,
        }
    }

    /// Whether an address is behind an uplink: behind an interface that leads out or once did, and
    /// that is not in the mesh. Unknown counts as yes.
    #[must_use]
    pub fn is_behind_uplink(&self, address: IpAddr) -> bool {
        let Ok(Forward::Out(interface)) = forward(address.to_canonical(), None) else {
            return false;
        };
        match self.outward.borrow().as_ref() {
            Some(known) => {
                let name = known.now.get(&interface);
                let is_mesh = name.is_some_and(|name| self.mesh.contains(name));
                known.ever.contains(&interface) && !is_mesh
            }
            None => true,
        }
    }

    fn leads(&self, to: IpAddr, from: Option<IpAddr>) -> Leads {
        match self.forward(to.to_canonical(), from.map(|from| from.to_canonical())) {
            Ok(Forward::Out(interface)) if self.name_of(interface).is_some() => Leads::Out,
            Ok(Forward::Out(_)) => Leads::Elsewhere,
            Ok(Forward::Nowhere) => Leads::Nowhere,
            // If it is unknown, the address may be this machine's own.
            Ok(Forward::Here) | Err(_) => Leads::Here,
        }
    }

    fn is_by_mesh(&self, to: IpAddr) -> bool {
        let Ok(Forward::Out(interface)) = forward(to.to_canonical(), None) else { return false };
        self.name_of(interface).is_some_and(|name| self.mesh.contains(&name))
    }

    /// The name of an interface, if it leads out.
    fn name_of(&self, interface: u32) -> Option<String> {
        self.outward.borrow().as_ref()?.now.get(&interface).cloned()
    }

    /// Looks up the route of a client's packets, which arrive on the interface that leads back to
    /// the client.
    fn forward(&self, to: IpAddr, from: Option<IpAddr>) -> io::Result<Forward> {
        let Some(from) = from.filter(|from| from.is_ipv4() == to.is_ipv4()) else {
            return forward(to, None);
        };
        match forward(from, None)? {
            Forward::Out(interface) => forward(to, Some((from, interface))),
            Forward::Here => forward(to, None),
            Forward::Nowhere => Ok(Forward::Nowhere),
        }
    }
}
