//! The listeners that a reload opens and closes: of the mirror, and of metrics.

use crate::clients::{self, ListenerKind};
use crate::config::Config;
use crate::control;
use crate::driver::Driver;
use crate::observe::Observer;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, spawn_local};

/// What a listener is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum For {
    /// Clients of the mirror.
    Mirror,
    /// Prometheus.
    Metrics,
}

/// Open listeners, each with the task that accepts there.
#[derive(Default)]
pub struct Doors(BTreeMap<(For, SocketAddr), JoinHandle<()>>);

impl Doors {
    /// Accepts on a listener that is open. `address` is the setting.
    pub fn open(
        &mut self,
        (what, address): (For, SocketAddr),
        listener: TcpListener,
        driver: &Driver,
        observer: &Rc<Observer>,
    ) {
        let accepting = match what {
            For::Mirror => {
                spawn_local(clients::accept(driver.clone(), listener, ListenerKind::Mirror))
            }
            For::Metrics => spawn_local(control::serve_metrics(listener, Rc::clone(observer))),
        };
        self.0.insert((what, address), accepting);
    }

    /// Opens and closes listeners as the settings say. Open connections go on. What cannot be opened is said, and left
    /// out of the settings that hold, so that the next reload tries again.
    pub async fn change(&mut self, held: &mut Config, driver: &Driver, observer: &Rc<Observer>) {
        let wanted = wanted(held);
        // First, because a new address may take an old one's port.
        let unwanted: Vec<_> = self.0.keys().filter(|it| !wanted.contains(it)).copied().collect();
        for accepting in unwanted.iter().filter_map(|it| self.0.remove(it)).collect::<Vec<_>>() {
            end(accepting).await;
        }
        for door in wanted {
            if self.0.contains_key(&door) {
                continue;
            }
            if let Some(listener) = listen(door.0.setting(), door.1) {
                self.open(door, listener, driver, observer);
            }
        }
        held.mirror.listen.retain(|it| self.0.contains_key(&(For::Mirror, *it)));
        held.metrics = held.metrics.filter(|it| self.0.contains_key(&(For::Metrics, *it)));
    }

    /// Accepts no more clients of the mirror. Metrics are shown to the end.
    pub fn close(&self) {
        let mirrors = self.0.iter().filter(|((what, _), _)| *what == For::Mirror);
        mirrors.for_each(|(_, accepting)| accepting.abort());
    }
}

impl For {
    fn setting(self) -> &'static str {
        match self {
            Self::Mirror => "[mirror] listen",
            Self::Metrics => "[metrics] listen",
        }
    }
}

fn wanted(config: &Config) -> Vec<(For, SocketAddr)> {
    let mirror = config.mirror.listen.iter().map(|it| (For::Mirror, *it));
    mirror.chain(config.metrics.map(|it| (For::Metrics, it))).collect()
}

/// Opens the listener of a setting; that it cannot be opened is said.
pub fn listen(setting: &str, address: SocketAddr) -> Option<TcpListener> {
    let opened = host::listen::explicit(address);
    opened
        .inspect_err(|error| tracing::error!("{setting}: cannot listen on {address}: {error}"))
        .ok()
}

/// Ends a task that accepts; its listener is closed afterwards.
pub async fn end(accepting: JoinHandle<()>) {
    accepting.abort();
    // It was cancelled, which is no news.
    let _ = accepting.await;
}
