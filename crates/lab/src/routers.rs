//! What runs on the routers: babeld, where it makes the routes, and one `hearsay` each.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use sim::scenario::Scenario;

use crate::address;
use crate::child::{Background, wait_for};
use crate::cli::Scheme;
use crate::namespace::within;
use crate::network::WORKSPACE;

/// How long routes may take to appear, with the slowest hellos and many losses.
const ROUTES_PATIENCE: Duration = Duration::from_secs(60);

/// How long one attempt to reach the origin may take.
const CONNECT_PATIENCE: Duration = Duration::from_secs(1);

/// How long the daemons may take to start, all of them on a slow machine.
const DAEMONS_PATIENCE: Duration = Duration::from_secs(60);

/// Starts babeld on every router.
pub fn start_babeld(scenario: &Scenario, babeld: &Path) -> io::Result<Vec<Background>> {
    (0..scenario.routers.len())
        .map(|router| {
            let namespace = address::router(scenario, router);
            let file = |kind: &str| PathBuf::from(WORKSPACE).join(format!("{namespace}.{kind}"));
            let mut command = Command::new(babeld);
            command
                // Not the machine's own configuration.
                .args(["-c", "/dev/null", "-h", "0.5", "-H", "0.5", "-I"])
                .arg(file("babeld-pid"))
                .arg("-S")
                .arg(file("babeld-state"))
                .args(["-g", "33123"])
                .args(["-C", "interface wl0 type wireless update-interval 1"])
                // The client's network and, at the gateway, the way out. Nothing else of the kernel's.
                .args(["-C", &format!("redistribute ip {} eq 24", address::lan_net(router))])
                .args(["-C", "redistribute ip 0.0.0.0/0 le 0 metric 128"])
                .args(["-C", "redistribute local ip 10.77.0.0/16 ge 32"])
                .args(["-C", "redistribute local deny"]);
            Background::start(&namespace, &format!("{namespace}.babeld"), command.arg("wl0"))
        })
        .collect()
}

/// Waits until every router has a way out and the gateway a way to every client, and then until
/// every client reaches the origin; `reached` is told each.
pub fn wait_for_routes(
    scenario: &Scenario,
    babelds: &mut [Background],
    mut reached: impl FnMut(),
) -> io::Result<()> {
    let connected = |router: &usize| !scenario.path(*router).is_empty();
    for router in (0..scenario.routers.len()).filter(connected) {
        let what = format!("router {} has its routes", scenario.routers[router].name);
        wait_for(&what, ROUTES_PATIENCE, babelds, || has_routes(scenario, router))?;
    }
    // All at once: most of the time goes by in waiting for ARP, which the first packets need.
    let mut waiting: Vec<_> = scenario.receivers.clone();
    wait_for("every client reaches the origin", ROUTES_PATIENCE, babelds, || {
        let reaches = std::thread::scope(|scope| {
            let reach = |receiver| scope.spawn(move || reaches_origin(scenario, receiver));
            let attempts: Vec<_> = waiting.iter().map(|it| reach(*it)).collect();
            let ends = attempts.into_iter().map(|it| it.join().expect("nobody panics"));
            ends.collect::<io::Result<Vec<_>>>()
        })?;
        reaches.iter().filter(|it| **it).for_each(|_| reached());
        let mut reaches = reaches.into_iter();
        waiting.retain(|_| reaches.next() == Some(false));
        Ok(waiting.is_empty())
    })
}

fn reaches_origin(scenario: &Scenario, receiver: usize) -> io::Result<bool> {
    let origin = SocketAddr::from((address::ORIGIN_ADDRESS, 80));
    within(&address::client(scenario, receiver), || {
        TcpStream::connect_timeout(&origin, CONNECT_PATIENCE).is_ok()
    })
}

fn has_routes(scenario: &Scenario, router: usize) -> io::Result<bool> {
    let table = kernel_routes(scenario, router)?;
    let known: Vec<_> = table.lines().filter_map(destination).collect();
    Ok(if router == scenario.gateway {
        let has = |receiver: &usize| known.contains(&address::lan_net_address(*receiver));
        scenario.receivers.iter().all(has)
    } else {
        known.contains(&Ipv4Addr::UNSPECIFIED)
    })
}

fn kernel_routes(scenario: &Scenario, router: usize) -> io::Result<String> {
    within(&address::router(scenario, router), || {
        fs::read_to_string("/proc/thread-self/net/route")
    })?
}

/// The second field of a line of the kernel's table: an address, as a number in its byte order.
fn destination(line: &str) -> Option<Ipv4Addr> {
    number(line.split_whitespace().nth(1)?)
}

fn number(word: &str) -> Option<Ipv4Addr> {
    u32::from_str_radix(word, 16).ok().map(|it| Ipv4Addr::from(it.to_ne_bytes()))
}

/// Where a router sends what is for the origin, as its kernel has it.
pub fn next_hop(scenario: &Scenario, router: usize) -> io::Result<Option<usize>> {
    let table = kernel_routes(scenario, router)?;
    let default = table.lines().find(|line| destination(line) == Some(Ipv4Addr::UNSPECIFIED));
    let over = default.and_then(|line| number(line.split_whitespace().nth(2)?));
    Ok((0..scenario.routers.len()).find(|it| over == Some(address::mesh(*it))))
}

/// Starts `hearsay` on every router; the scheme says whose interfaces it intercepts.
pub fn start_hearsay(
    scenario: &Scenario,
    scheme: Scheme,
    hearsay: &Path,
) -> io::Result<Vec<Background>> {
    (0..scenario.routers.len())
        .map(|router| {
            let namespace = address::router(scenario, router);
            let name = format!("{namespace}.hearsay");
            let mut command = Command::new(hearsay);
            command
                // Not the machine's own configuration.
                .args(["run", "--config", "/dev/null"])
                .args(["--listen", "127.0.0.1:3128", "--store-size", "1GiB", "--mesh", "wl0"])
                .arg("--store")
                .arg(PathBuf::from(WORKSPACE).join(format!("{namespace}.store")))
                .arg("--control")
                .arg(control(scenario, router))
                .args(scheme.intercepted(scenario, router).map(|it| format!("--intercept={it}")));
            Background::start(&namespace, &name, &mut command)
        })
        .collect()
}

/// Waits until all daemons answer; `ready` is told each.
pub fn wait_for_hearsay(
    scenario: &Scenario,
    hearsay: &Path,
    daemons: &mut [Background],
    mut ready: impl FnMut(),
) -> io::Result<()> {
    for router in 0..scenario.routers.len() {
        let what = format!("hearsay on router {} answers", scenario.routers[router].name);
        wait_for(&what, DAEMONS_PATIENCE, daemons, || {
            let mut status = Command::new(hearsay);
            status.args(["status", "--json", "--control"]).arg(control(scenario, router));
            Ok(status.output()?.status.success())
        })?;
        ready();
    }
    Ok(())
}

/// The control socket of a router's daemon.
pub fn control(scenario: &Scenario, router: usize) -> PathBuf {
    PathBuf::from(WORKSPACE).join(format!("{}.control", address::router(scenario, router)))
}
