//! The daemon's part in a mesh: the engine's settings, the route to the gateway, the listeners for
//! peers, the datagrams of searches.

use crate::config::{Config, Mesh};
use crate::driver::Driver;
use crate::identity::Identity;
use crate::observe::Observer;
use crate::status::sealing;
use host::datagrams::{Datagrams, Receiver, source_towards};
use host::peers::PeerListener;
use host::routing::Routing;
use node::{Exit, Input, RouteTable};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::{AbortHandle, spawn_local};

/// The engine's settings for its mesh; `None` without a mesh. `memory_bytes` is the budget of
/// partly overheard chunks; `None` if nothing is overheard.
pub fn engine_config(
    config: &Config,
    identity: Option<&Identity>,
    memory_bytes: Option<usize>,
) -> Option<node::MeshConfig> {
    let mesh = &config.mesh;
    mesh.routing()?;
    Some(node::MeshConfig {
        selection: mesh.selection,
        search: config.experiment.search,
        squares: config.experiment.squares.clone(),
        identity: identity?.seed,
        key: mesh.key.as_ref().map(|key| key.for_peers()),
        gateways: mesh.gateways.clone(),
        port: mesh.port,
        overhear: memory_bytes.map(|bytes| node::Listening {
            memory_bytes: bytes,
            options: config.experiment.overhear,
        }),
    })
}

/// How long to wait for the first route table. The wait is limited, because a node may have no route.
const FIRST_ROUTES: Duration = Duration::from_millis(500);

/// Follows the route to the gateway, if there is a mesh; returns when the first table is known.
pub async fn follow_routes(config: &Config, driver: &Driver, observer: &Observer) {
    let Some(settings) = config.mesh.routing() else { return };
    match Routing::open(settings) {
        Ok((routing, routes)) => {
            spawn_local(routing.run());
            spawn_local(tell_routes(driver.clone(), routes.clone()));
            let mut first = routes.clone();
            observer.follows(Ok(routes));
            // A request that arrives before the first table would bypass the mesh.
            let _ = tokio::time::timeout(FIRST_ROUTES, first.changed()).await;
        }
        Err(error) => {
            tracing::warn!(%error, "cannot read the routes: running without the mesh");
            observer.follows(Err(error.to_string()));
        }
    }
}

async fn tell_routes(driver: Driver, mut routes: watch::Receiver<RouteTable>) {
    loop {
        let table = with_own_address(routes.borrow_and_update().clone());
        driver.pool().follow(&table.exit);
        driver.feed(Input::Routes(table));
        if routes.changed().await.is_err() {
            return;
        }
    }
}

/// Adds this router's address in the mesh where no routing daemon tells it: the one from which the kernel would send to
/// the gateway.
fn with_own_address(mut table: RouteTable) -> RouteTable {
    if let Exit::Mesh(route) = &mut table.exit {
        let towards = route.gateway.unwrap_or(route.next_hop);
        route.address = route.address.or_else(|| source_towards(towards));
    }
    table
}

/// Logs whether chunks are sealed. Without a mesh it logs nothing, because no radio can hear chunks.
pub fn say_sealing(config: &Config) {
    let has_key = config.mesh.key.is_some();
    if config.mesh.interfaces.is_empty() {
        return;
    }
    let line = sealing(has_key);
    if has_key { tracing::info!("sealing is {line}") } else { tracing::warn!("sealing is {line}") }
}

/// Accepts peers' connections on each of the mesh's interfaces. Returns the handles of the accept
/// loops, with which the caller can stop them.
pub fn accept_peers(config: &Config, driver: &Driver) -> Vec<AbortHandle> {
    let accept = |interface: &String| {
        let helper = driver.helper().clone();
        let unbind = move |connection: &TcpStream| {
            if let Err(error) = helper.unbind(connection) {
                tracing::debug!(%error, "a peer's connection ends with its route");
            }
        };
        let port = PeerListener::new(interface.clone(), config.mesh.port).unbinding(unbind);
        spawn_local(driver.links().clone().accept(port, driver.clone())).abort_handle()
    };
    config.mesh.interfaces.iter().map(accept).collect()
}

/// Datagrams on each of the mesh's interfaces. Under a scheme that sends none the port stays closed.
pub fn datagrams(config: &Config) -> Option<(Datagrams, Vec<Receiver>)> {
    let Mesh { interfaces, selection, port, .. } = &config.mesh;
    let needs_them = !interfaces.is_empty() && selection.searches(config.mesh.key.is_some());
    needs_them.then(|| Datagrams::new(interfaces, *port))
}

/// Gives the engine what arrives. Returns the handles of the tasks, with which the caller can stop them.
pub fn receive(receivers: Vec<Receiver>, driver: &Driver) -> Vec<AbortHandle> {
    let receive = |receiver: Receiver| {
        let driver = driver.clone();
        let tell = move |from, bytes| driver.feed(Input::Datagram(from, bytes));
        spawn_local(receiver.run(tell)).abort_handle()
    };
    receivers.into_iter().map(receive).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use node::{Interface, Route, RouteSource};
    use std::net::IpAddr;

    #[test]
    fn a_router_without_babeld_knows_its_address_by_its_route() {
        let of = |gateway: Option<IpAddr>, address: Option<IpAddr>| {
            let interface = Interface { name: "lo".into(), index: 1 };
            let next_hop = [127, 0, 0, 8].into();
            let (metric, hops, source) = (None, None, RouteSource::Config);
            let route = Route { next_hop, interface, gateway, metric, hops, address, source };
            with_own_address(Exit::Mesh(route).into()).exit.own_address()
        };
        let (here, told) = (IpAddr::from([127, 0, 0, 1]), IpAddr::from([10, 77, 0, 7]));
        assert_eq!(of(None, Some(told)), Some(told));
        assert_eq!(
            (of(None, None), of(Some([127, 0, 0, 9].into()), None)),
            (Some(here), Some(here))
        );
        assert_eq!(with_own_address(RouteTable::default()), RouteTable::default());
    }
}
