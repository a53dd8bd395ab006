//! The route to the gateway and the paths to other routers, as they change.
//!
//! *What this is:* `kernel.rs` follows the kernel's routing table by netlink, `babeld.rs` follows
//! the routing daemon by its local socket, `fixed.rs` has the configured gateway, and `merge.rs`
//! combines them into one [`RouteTable`]. `below.rs` knows meshes that forward below IP. *Who calls it:* the daemon opens a [`Routing`], runs it,
//! and watches the receiver. *What it never does:* change a route, or poll for changes. *Where to
//! start:* `merge.rs`.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use node::RouteTable;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

mod babeld;
mod below;
pub mod checks;
mod fixed;
mod kernel;
mod merge;
mod net;

use babeld::Babeld;
pub use below::{BelowIp, below_ip, consequence};
pub use fixed::{Gateway, GatewayError};
pub use kernel::{Device, devices};
pub(crate) use kernel::{
    Forward, Kernel, Wanted, addresses, all_addresses, forward, forward_marked,
};

/// The default address of babeld's local socket, which listens only on loopback.
pub const BABELD_DEFAULT: SocketAddr = SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), 33123);

/// Changes come in bursts: the delay between the first of them and the publication.
const SETTLE: Duration = Duration::from_millis(25);
/// Metrics change with each hello of a neighbour: the interval between publications of changed paths,
/// unless the route to the gateway has changed too.
const PATHS_EVERY: Duration = Duration::from_secs(1);

/// The delay from a change until the log says which interfaces forward below IP: they are set up step by
/// step.
const BELOW_IP_AFTER: Duration = Duration::from_secs(5);

/// Settings of the routing sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The mesh's interfaces; a default route by any other interface leads out of the mesh.
    pub interfaces: Vec<String>,
    /// The address of babeld's local socket.
    pub babeld: SocketAddr,
    /// The gateway; `None`: the router at the end of the default route.
    pub gateway: Option<Gateway>,
}

/// Follows the routes.
#[derive(Debug)]
pub struct Routing {
    kernel: Kernel,
    babeld: Babeld,
    routes: watch::Sender<RouteTable>,
    /// When paths may be published again.
    paths_at: Instant,
    /// The interfaces that forward below IP, as the log has said.
    said: BTreeMap<String, BelowIp>,
}

impl Routing {
    /// Starts to listen. The receiver holds an empty table until [`Routing::run`] knows more. Needs a tokio runtime.
    pub fn open(settings: Settings) -> io::Result<(Self, watch::Receiver<RouteTable>)> {
        let target = settings.gateway.map(Gateway::address);
        let kernel = Kernel::open(Wanted { target, mesh: settings.interfaces })?;
        let babeld = Babeld::new(settings.babeld);
        let (routes, receiver) = watch::channel(RouteTable::default());
        Ok((
            Self { kernel, babeld, routes, paths_at: Instant::now(), said: BTreeMap::new() },
            receiver,
        ))
    }

    /// Publishes each change; never returns.
    pub async fn run(mut self) {
        let mut due: Option<Instant> = None;
        let mut look: Option<Instant> = None;
        loop {
            tokio::select! {
                () = self.kernel.changed() => {
                    self.babeld.look_again();
                    look.get_or_insert_with(|| Instant::now() + BELOW_IP_AFTER);
                }
                () = self.babeld.changed() => {}
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    due = self.publish();
                    continue;
                }
                () = sleep_until(look.unwrap_or_else(Instant::now)), if look.is_some() => {
                    look = None;
                    self.say_below_ip();
                    continue;
                }
            }
            let soon = Instant::now() + SETTLE;
            due = Some(due.map_or(soon, |at| at.min(soon)));
        }
    }

    /// Says once for each interface that it forwards below IP.
    fn say_below_ip(&mut self) {
        for (name, by) in below_ip(&self.kernel.fib().wanted().mesh) {
            if self.said.insert(name.clone(), by) != Some(by) {
                tracing::info!("{}", consequence(&name, by.as_str()));
            }
        }
    }

    /// Publishes what has changed; returns when to publish the paths, if it is too early for them.
    fn publish(&mut self) -> Option<Instant> {
        let fib = self.kernel.fib();
        if !fib.has_routes_of(merge::BABEL) {
            self.babeld.forget();
        }
        let babeld = self.babeld.announced();
        let exit = merge::exit(fib, babeld);
        let now = Instant::now();
        if now < self.paths_at && self.routes.borrow().exit == exit {
            return Some(self.paths_at);
        }
        self.paths_at = now + PATHS_EVERY;
        let table = merge::merge(exit, fib, babeld);
        self.routes.send_if_modified(|told| {
            let is_new = *told != table;
            if is_new {
                tracing::debug!(route = ?table, "the routes have changed");
                *told = table;
            }
            is_new
        });
        None
    }
}
