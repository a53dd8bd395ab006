//! The route to the gateway: the next hop and the gateway's address, as they change.
//!
//! *What this is:* `kernel.rs` follows the kernel's routing table by netlink, `babeld.rs` follows
//! the routing daemon by its local socket, `fixed.rs` has the configured gateway, and `merge.rs`
//! combines them into one [`RouteTable`]. *Who calls it:* the daemon opens a [`Routing`], runs it,
//! and watches the receiver. *What it never does:* change a route, or poll for changes. *Where to
//! start:* `merge.rs`.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use node::RouteTable;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

mod babeld;
pub mod checks;
mod fixed;
mod kernel;
mod merge;
mod net;

use babeld::Babeld;
pub use fixed::{Gateway, GatewayError};
pub(crate) use kernel::{Forward, Kernel, addresses, all_addresses, forward};

/// The default address of babeld's local socket, which listens only on loopback.
pub const BABELD_DEFAULT: SocketAddr = SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), 33123);

/// Changes come in bursts: the delay between the first of them and the publication.
const SETTLE: Duration = Duration::from_millis(25);

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

/// Follows the route to the gateway.
#[derive(Debug)]
pub struct Routing {
    settings: Settings,
    kernel: Kernel,
    babeld: Babeld,
    routes: watch::Sender<RouteTable>,
}

impl Routing {
    /// Starts to listen. The receiver holds [`RouteTable::Nowhere`] until [`Routing::run`] knows
    /// more. Needs a tokio runtime.
    pub fn open(settings: Settings) -> io::Result<(Self, watch::Receiver<RouteTable>)> {
        let kernel = Kernel::open(settings.gateway.map(Gateway::address))?;
        let babeld = Babeld::new(settings.babeld);
        let (routes, receiver) = watch::channel(RouteTable::default());
        Ok((Self { settings, kernel, babeld, routes }, receiver))
    }

    /// Publishes each change; never returns.
    pub async fn run(mut self) {
        let mut due: Option<Instant> = None;
        loop {
            tokio::select! {
                () = self.kernel.changed() => self.babeld.look_again(),
                () = self.babeld.changed() => {}
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    due = None;
                    self.publish();
                    continue;
                }
            }
            due.get_or_insert_with(|| Instant::now() + SETTLE);
        }
    }

    fn publish(&self) {
        let target = self.settings.gateway.map(Gateway::address);
        let mesh = &self.settings.interfaces;
        let exit = merge::merge(mesh, target, self.kernel.fib(), self.babeld.table());
        let table = RouteTable::from(exit);
        self.routes.send_if_modified(|told| {
            let is_new = *told != table;
            if is_new {
                tracing::debug!(route = ?table, "the route to the gateway has changed");
                *told = table;
            }
            is_new
        });
    }
}
