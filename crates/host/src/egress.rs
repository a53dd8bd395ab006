//! Which of this machine's interfaces lead out of the site, and where the kernel's routes lead.
//!
//! An interface leads out if it has a default route, in any table and of either family, or if the
//! operator names it. What [`node::Access`] permits depends on it, and so do the rules that bring
//! clients here ([`crate::intercept`]).

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use node::{Caller, Leads, is_local};
use tokio::sync::watch;

use crate::routing::{Forward, Kernel, forward};

/// What is known of the interfaces; `None` until the kernel has said.
type Outward = Option<Interfaces>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Interfaces {
    /// Those that lead out now, by their numbers.
    now: BTreeMap<u32, String>,
    /// Numbers of those that have led out at any time: behind them are others' sites, also while the uplink is
    /// down.
    ever: BTreeSet<u32>,
}

/// Says where routes lead, as of now.
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

/// The kernel has this long to list its links and routes.
const FIRST_LIST: Duration = Duration::from_millis(500);

/// Follows from now on which interfaces lead out; `named` do in any case, and behind those of the `mesh`
/// there is no uplink but other nodes. If the kernel does not list its routes soon, none leads out until
/// it has.
///
/// # Errors
/// If the kernel cannot be asked.
pub async fn follow(named: Vec<String>, mesh: &[String]) -> io::Result<Egress> {
    let (outward, receiver) = watch::channel(None);
    let mut egress = Egress { outward: receiver, mesh: mesh.into() };
    tokio::spawn(Follower { kernel: Kernel::open(None)?, named, outward }.run());
    let _ = tokio::time::timeout(FIRST_LIST, egress.changed()).await;
    Ok(egress)
}

/// Whether there is an interface of this name.
#[must_use]
pub fn is_there(interface: &str) -> bool {
    let socket =
        rustix::net::socket(rustix::net::AddressFamily::UNIX, rustix::net::SocketType::DGRAM, None);
    socket.is_ok_and(|socket| rustix::net::netdevice::name_to_index(&socket, interface).is_ok())
}

impl Follower {
    /// Tells each change, for ever.
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
    /// Waits until other interfaces lead out than when this was last asked.
    pub async fn changed(&mut self) {
        if self.outward.changed().await.is_err() {
            std::future::pending().await
        }
    }

    /// The names of the interfaces that lead out, in the order of their numbers.
    #[must_use]
    pub fn interfaces(&self) -> Vec<String> {
        let outward = self.outward.borrow();
        outward.iter().flat_map(|known| known.now.values()).cloned().collect()
    }

    /// Where routes lead when this is dialled for a client or a peer. What an intercepted client would have
    /// dialled itself must lead out by its own route, which rules may tell from ours, and by ours, which it
    /// takes.
    #[must_use]
    pub fn leads_for(&self, caller: Caller, client: IpAddr, to: IpAddr) -> Leads {
        match (caller, self.leads(to, None)) {
            (Caller::Intercepted, Leads::Out) => self.leads(to, Some(client)),
            // Over the mesh peers reach each other without us.
            (Caller::Peer, Leads::Out) if is_local(to) && self.is_by_mesh(to) => Leads::Elsewhere,
            (_, led) => led,
        }
    }

    /// Whether an address is behind an uplink: an interface that leads out or once did, and not to the mesh.
    /// While it cannot be told, it is.
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
            // Where it cannot be told, it may be ourselves.
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

    /// A client's packets come in by the interface that leads back to it.
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
