//! The way to the gateway: who the next hop is, and who the gateway, as it changes.
//!
//! *What this is:* `kernel.rs` follows the kernel's routing table by netlink, `babeld.rs` the routing
//! daemon by its local socket, `fixed.rs` is what the configuration says, and `merge.rs` makes one
//! [`RouteTable`] of them. *Who calls it:* the daemon opens a [`Routing`], runs it, and looks at the
//! receiver. *What it never does:* change a route, or look at something again and again to see
//! whether it has changed. *Where to start:* `merge.rs`.

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

/// Where babeld's local socket is unless told otherwise; it listens on loopback alone.
pub const BABELD_DEFAULT: SocketAddr = SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), 33123);

/// Changes come in bursts: after the first of them, so long until they are told.
const SETTLE: Duration = Duration::from_millis(25);

/// What to follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The mesh's interfaces; a default route by any other leads out of the mesh.
    pub interfaces: Vec<String>,
    /// Where babeld's local socket is.
    pub babeld: SocketAddr,
    /// The gateway; `None`: where the default route leads.
    pub gateway: Option<Gateway>,
}

/// Follows the way to the gateway.
#[derive(Debug)]
pub struct Routing {
    settings: Settings,
    kernel: Kernel,
    babeld: Babeld,
    routes: watch::Sender<RouteTable>,
}

impl Routing {
    /// Begins to listen. The receiver has [`RouteTable::Nowhere`] until [`Routing::run`] knows more.
    /// Needs a tokio runtime.
    pub fn open(settings: Settings) -> io::Result<(Self, watch::Receiver<RouteTable>)> {
        let kernel = Kernel::open(settings.gateway.map(Gateway::address))?;
        let babeld = Babeld::new(settings.babeld);
        let (routes, receiver) = watch::channel(RouteTable::default());
        Ok((Self { settings, kernel, babeld, routes }, receiver))
    }

    /// Tells each change, for ever.
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
        let table = merge::merge(mesh, target, self.kernel.fib(), self.babeld.table());
        self.routes.send_if_modified(|told| {
            let is_new = *told != table;
            if is_new {
                tracing::debug!(route = ?table, "the way to the gateway has changed");
                *told = table;
            }
            is_new
        });
    }
}
