//! The programs on routers: babeld, if it makes the routes, and `hearsay`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use node::uplink::PairReport;
use serde_json::Value;
use sim::router::mesh::square;
use sim::scenario::{FarEnd, Http, Intercepts, Routing, Scenario};
use wire::{Scheme, Selection};

use super::child::{Background, wait_for};
use super::namespace::within;
use super::network::WORKSPACE;
use super::{address, far};

/// How long routes may take to appear, with the slowest hellos and many losses.
const ROUTES_TIMEOUT: Duration = Duration::from_secs(60);

/// How long one attempt to reach the origin may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// How long the daemons may take to start, all of them on a slow machine.
const DAEMONS_TIMEOUT: Duration = Duration::from_secs(60);

/// Starts babeld on every router.
pub fn start_babeld(scenario: &Scenario, babeld: &Path) -> io::Result<Vec<Background>> {
    (0..scenario.routers.len())
        .map(|router| {
            let namespace = address::router(scenario, router);
            let file = |kind: &str| PathBuf::from(WORKSPACE).join(format!("{namespace}.{kind}"));
            let mut command = Command::new(babeld);
            command
                // Ignores the machine's own configuration.
                .args(["-c", "/dev/null", "-h", "0.5", "-H", "0.5", "-I"])
                .arg(file("babeld-pid"))
                .arg("-S")
                .arg(file("babeld-state"))
                .args(["-g", "33123"])
                .args(["-C", "interface wl0 type wireless update-interval 1"])
                // Announces the client's network and, at the gateway, the default route; no other route of
                // the kernel.
                .args(["-C", &format!("redistribute ip {} eq 24", address::lan_net(router))])
                .args(["-C", "redistribute ip 0.0.0.0/0 le 0 metric 128"])
                .args(["-C", "redistribute local ip 10.77.0.0/16 ge 32"])
                .args(["-C", "redistribute local deny"]);
            Background::start(&namespace, &format!("{namespace}.babeld"), command.arg("wl0"))
        })
        .collect()
}

/// Waits until every router has a default route, the gateway has a route to every client, and every client
/// reaches the origin. Calls `reached` for each client.
pub fn wait_for_routes(
    scenario: &Scenario,
    babelds: &mut [Background],
    mut reached: impl FnMut(),
) -> io::Result<()> {
    let connected = |router: &usize| !scenario.path(*router).is_empty();
    for router in (0..scenario.routers.len()).filter(connected) {
        let what = format!("router {} has its routes", scenario.routers[router].name);
        wait_for(&what, ROUTES_TIMEOUT, babelds, || has_routes(scenario, router))?;
    }
    // All clients at once: most of the time is spent on ARP, which the first packets need.
    let mut waiting: Vec<_> = scenario.receivers.clone();
    wait_for("every client reaches the origin", ROUTES_TIMEOUT, babelds, || {
        let reaches = std::thread::scope(|scope| {
            let reach = |receiver| scope.spawn(move || reaches_origin(scenario, receiver));
            let attempts: Vec<_> = waiting.iter().map(|it| reach(*it)).collect();
            let ends = attempts.into_iter().map(|it| it.join().expect("no thread panics"));
            ends.collect::<io::Result<Vec<_>>>()
        })?;
        reaches.iter().filter(|it| **it).for_each(|_| reached());
        let mut reaches = reaches.into_iter();
        waiting.retain(|_| reaches.next() == Some(false));
        Ok(waiting.is_empty())
    })
}

fn reaches_origin(scenario: &Scenario, receiver: usize) -> io::Result<bool> {
    let origin = SocketAddr::from((address::origin(scenario), 80));
    within(&address::client(scenario, receiver), || {
        TcpStream::connect_timeout(&origin, CONNECT_TIMEOUT).is_ok()
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

/// The second field of a line of the kernel's table: an address in hexadecimal, in its byte order.
fn destination(line: &str) -> Option<Ipv4Addr> {
    number(line.split_whitespace().nth(1)?)
}

fn number(word: &str) -> Option<Ipv4Addr> {
    u32::from_str_radix(word, 16).ok().map(|it| Ipv4Addr::from(it.to_ne_bytes()))
}

/// The next hop from a router to the origin, from its kernel's table.
pub fn next_hop(scenario: &Scenario, router: usize) -> io::Result<Option<usize>> {
    let table = kernel_routes(scenario, router)?;
    let default = table.lines().find(|line| destination(line) == Some(Ipv4Addr::UNSPECIFIED));
    let over = default.and_then(|line| number(line.split_whitespace().nth(2)?));
    Ok((0..scenario.routers.len()).find(|it| over == Some(address::mesh(*it))))
}

/// Number of hops from a router to the gateway, from the kernels' tables.
pub fn hops(scenario: &Scenario, router: usize) -> io::Result<usize> {
    let mut hops = 0;
    let mut at = router;
    // While routes change there may be a loop, so the search ends after as many hops as there are routers.
    while hops < scenario.routers.len()
        && let Some(next) = next_hop(scenario, at)?
    {
        (at, hops) = (next, hops + 1);
    }
    Ok(hops)
}

/// The hops between the gateway and the receivers, from the kernels' current tables: pairs of routers, the
/// one nearer to the gateway first.
pub fn routes(scenario: &Scenario) -> io::Result<Vec<(usize, usize)>> {
    let mut hops = Vec::new();
    for receiver in &scenario.receivers {
        let mut router = *receiver;
        while let Some(next) = next_hop(scenario, router)? {
            // An earlier path had this hop, or there is a loop.
            if hops.contains(&(next, router)) {
                break;
            }
            hops.push((next, router));
            router = next;
        }
    }
    Ok(hops)
}

/// Starts `hearsay` on every router, and waits until all are ready. The scheme decides whose interfaces they
/// intercept, and whether they have peers. Calls `ready` for each router.
///
/// Daemons start from the gateway outwards: a daemon that finds no peer at its next hop waits before it tries
/// again.
pub fn start_hearsay(
    scenario: &Scenario,
    scheme: Scheme,
    hearsay: &Path,
    mut ready: impl FnMut(),
) -> io::Result<Vec<Background>> {
    let mut rings = BTreeMap::<_, Vec<_>>::new();
    for router in 0..scenario.routers.len() {
        // A router without a route is in the last ring.
        let is_alone = scenario.path(router).is_empty();
        let ring = if scheme.selection().is_some() {
            (is_alone, scenario.hops(router))
        } else {
            (false, 0)
        };
        rings.entry(ring).or_default().push(router);
    }
    let mut daemons = Vec::new();
    for ring in rings.into_values() {
        for router in &ring {
            daemons.push(start_one(scenario, scheme, hearsay, *router)?);
        }
        // All daemons of a ring start at once; the next ring starts when these are ready.
        for router in ring {
            let what = format!("hearsay on router {} is ready", scenario.routers[router].name);
            wait_for(&what, DAEMONS_TIMEOUT, &mut daemons, || {
                is_ready(scenario, scheme, hearsay, router)
            })?;
            ready();
        }
    }
    Ok(daemons)
}

fn start_one(
    scenario: &Scenario,
    scheme: Scheme,
    hearsay: &Path,
    router: usize,
) -> io::Result<Background> {
    let namespace = address::router(scenario, router);
    let file = |kind: &str| PathBuf::from(WORKSPACE).join(format!("{namespace}.{kind}"));
    let mut text = configuration(scenario, scheme, router);
    if scenario.far == FarEnd::Pair && router == scenario.gateway {
        text += &far::for_gateway(hearsay)?;
    }
    fs::write(file("toml"), text)?;
    let mut command = Command::new(hearsay);
    command
        .args(["run", "--listen", "127.0.0.1:3128", "--store-size", "1GiB", "--config"])
        .arg(file("toml"))
        .arg("--store")
        .arg(store(scenario, router))
        .arg("--control")
        .arg(control(scenario, router))
        .args(intercepted(scenario, scheme, router).iter().map(|it| format!("--intercept={it}")));
    if let Some(selection) = scheme.selection() {
        command.args(["--mesh", "wl0", "--scheme", selection.name()]);
    }
    if scheme.overhears() {
        command.arg("--overhear=mon0");
    }
    Background::start(&namespace, &format!("{namespace}.hearsay"), &mut command)
}

/// The interfaces on which a router's daemon intercepts.
fn intercepted(scenario: &Scenario, scheme: Scheme, router: usize) -> Vec<&'static str> {
    let Intercepts { mesh, clients } = scenario.intercepts(scheme, router);
    [(mesh, "wl0"), (clients, "lan0")].into_iter().filter(|it| it.0).map(|it| it.1).collect()
}

/// The daemon's configuration beyond its command line: its name in `Cache-Status`, settings that differ from
/// the defaults, and the gateway's address if no routing daemon gives it.
fn configuration(scenario: &Scenario, scheme: Scheme, router: usize) -> String {
    let mut text = format!("name = \"{}\"\n", address::router(scenario, router));
    // Written only if a setting differs, so that versions without this table can be run.
    let varied = scenario.variant.varied().into_iter();
    let mut experiment: Vec<_> =
        varied.map(|(key, value)| format!("{key} = \"{value}\"\n")).collect();
    // The far end follows the gateway.
    let published = scenario.published.filter(|_| router == scenario.gateway);
    experiment.extend(published.map(|it| {
        let degree = it.degree().map_or(String::new(), |degree| format!("degree = {degree}\n"));
        format!("uplink = \"{}\"\n{degree}smallest = {}\n", it.kind().name(), it.smallest())
    }));
    if scenario.http == Http::Bypass && router == scenario.gateway {
        experiment.push("http = \"bypass\"\n".to_owned());
    }
    if scheme.selection().is_some_and(Selection::hashes) {
        let square = |(number, it)| {
            let [column, row] = square(it);
            format!("\"{} {column} {row}\"", address::mesh(number))
        };
        let squares: Vec<_> = scenario.routers.iter().enumerate().map(square).collect();
        experiment.push(format!("squares = [{}]\n", squares.join(", ")));
    }
    if !experiment.is_empty() {
        text += "[experiment]\n";
        text += &experiment.concat();
    }
    let is_told = scenario.routing == Routing::Static && router != scenario.gateway;
    if scheme.selection().is_some() && is_told {
        text += &format!("[mesh]\ngateway = \"{}\"\n", address::mesh(scenario.gateway));
    }
    text
}

/// The answer of a router's daemon to a command, if it answers.
pub fn ask(
    scenario: &Scenario,
    hearsay: &Path,
    router: usize,
    what: &str,
) -> io::Result<Option<Value>> {
    let mut command = Command::new(hearsay);
    command.args([what, "--json", "--control"]).arg(control(scenario, router));
    Ok(serde_json::from_slice(&command.output()?.stdout).ok())
}

/// Bytes that the gateway's daemon has given to clients and peers, if it answers.
pub fn given_by_gateway(scenario: &Scenario, hearsay: &Path) -> Option<u64> {
    let status = ask(scenario, hearsay, scenario.gateway, "status").ok()??;
    let given = [
        "served_local_bytes",
        "served_origin_bytes",
        "peer_units_out_bytes",
        "relayed_opaque_bytes",
    ];
    given.into_iter().map(|it| status["report"][it].as_u64()).sum()
}

/// What the gateway's daemon has counted.
pub struct Counted {
    /// Units that it has cut from the origin's responses.
    pub units_cut: u64,
    /// What its end of the pair has counted, if the uplink has a far end.
    pub pair: Option<PairReport>,
}

/// Asks the gateway's daemon what it has counted.
pub fn counted(scenario: &Scenario, hearsay: &Path) -> io::Result<Counted> {
    let ask = |what: &str| ask(scenario, hearsay, scenario.gateway, what);
    let units_cut = ask("status")?.and_then(|it| it["report"]["units_cut"].as_u64());
    let units_cut = units_cut.ok_or_else(|| {
        io::Error::other("the gateway's daemon does not report how many units it has cut")
    })?;
    let pair = match scenario.far {
        FarEnd::None => None,
        FarEnd::Pair => ask("uplink")?,
    };
    let pair = pair.map(|it| serde_json::from_value(it["counts"].clone())).transpose()?;
    Ok(Counted { units_cut, pair })
}

/// Whether a daemon answers, listens if it should overhear and, if it has peers, knows the route to the
/// gateway and is connected to the peer that it will ask. A gateway is connected to its far end, too.
fn is_ready(
    scenario: &Scenario,
    scheme: Scheme,
    hearsay: &Path,
    router: usize,
) -> io::Result<bool> {
    let ask = |what: &str| ask(scenario, hearsay, router, what);
    let Some(status) = ask("status")? else { return Ok(false) };
    if scheme.overhears() && status["overhear"]["works"] != true {
        return Ok(false);
    }
    if router == scenario.gateway && scenario.far == FarEnd::Pair {
        // Only then connections are intercepted for it.
        let reaches = status["intercept"]["flows"]["reach"]["v4"] == true;
        let may_bypass = scenario.http == Http::Cached || reaches;
        return Ok(may_bypass && ask("uplink")?.is_some_and(|it| it["state"] == "up"));
    }
    if router == scenario.gateway || scenario.path(router).is_empty() {
        return Ok(true);
    }
    let asked = match scheme.selection() {
        None => return Ok(true),
        Some(selection) if selection.is_per_hop() => "next_hop",
        Some(_) => "gateway",
    };
    let asked = &status["route"][asked];
    let peers = ask("peers")?.unwrap_or_default();
    let is_there = |peer: &Value| peer["address"] == *asked;
    Ok(asked.is_string() && peers.as_array().is_some_and(|peers| peers.iter().any(is_there)))
}

/// The store of a router's daemon.
pub fn store(scenario: &Scenario, router: usize) -> PathBuf {
    PathBuf::from(WORKSPACE).join(format!("{}.store", address::router(scenario, router)))
}

/// The control socket of a router's daemon.
pub fn control(scenario: &Scenario, router: usize) -> PathBuf {
    PathBuf::from(WORKSPACE).join(format!("{}.control", address::router(scenario, router)))
}
