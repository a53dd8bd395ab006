//! The namespaces of a run and their connections:
//!
//! ```text
//!   client-7 eth0 ── lan0 router-7 wl0 ~~ the air ~~ wl0 router-8 wan0 ── uplink ── eth0 origin
//!                           mon0                       mon0
//! ```
//!
//! With a far end, `far` is at the end of the uplink, with interfaces `eth0` and `wan0`, and a veth joins it to
//! the origin.
//!
//! All of it is inside a mount, process and network namespace of the run's own. No name can clash with one
//! outside, and the kernel removes everything when the run's process ends.

use std::fs;
use std::io;
use std::path::Path;

use rustix::mount::{MountFlags, mount, mount_bind};
use sim::scenario::{Congestion, FarEnd, Routing, Scenario};
use sim::world::Routes;

use super::address;
use super::air::Ports;
use super::namespace::{ip, sysctl, within};
use super::tap::{Kind, Tap};

/// The folder of all files that programs write during a run: in memory, and visible to the run only.
pub const WORKSPACE: &str = "/run/lab";

/// Settings without a routing daemon: IPv6 would announce itself, and only data should be on the air.
const WITHOUT_IPV6: [&str; 1] = ["net.ipv6.conf.default.disable_ipv6=1"];

/// Settings with babeld, which uses IPv6. Duplicate address detection would delay each address by a second.
const WITH_IPV6: [&str; 3] = [
    "net.ipv6.conf.default.accept_dad=0",
    "net.ipv6.conf.default.dad_transmits=0",
    "net.ipv6.conf.default.router_solicitations=0",
];

/// Settings of every namespace. Routers of a mesh send packets on the interface that they came from.
const SETTINGS: [&str; 9] = [
    // A new namespace has the machine's TCP buffers; these are Linux's defaults.
    "net.ipv4.tcp_rmem=4096 131072 6291456",
    "net.ipv4.tcp_wmem=4096 16384 4194304",
    // Chains can have more hops than the usual TTL of 64.
    "net.ipv4.ip_default_ttl=255",
    "net.ipv4.ip_forward=1",
    "net.ipv4.conf.all.send_redirects=0",
    "net.ipv4.conf.default.send_redirects=0",
    "net.ipv4.conf.all.accept_redirects=0",
    "net.ipv4.conf.default.accept_redirects=0",
    "net.ipv4.conf.default.rp_filter=0",
];

/// Settings of a router's mesh interface. ARP requests are broadcast and so not retransmitted on the air; ARP
/// must not give up after three losses.
const MESH_SETTINGS: [&str; 2] =
    ["net.ipv4.neigh.wl0.mcast_solicit=20", "net.ipv4.neigh.wl0.retrans_time_ms=100"];

/// Mounts a /run and an /etc/hosts of the run's own. Call it once, inside the run's mount namespace.
pub fn make_private_places(scenario: &Scenario) -> io::Result<()> {
    mount("tmpfs", "/run", "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, None)?;
    fs::create_dir_all(WORKSPACE)?;
    let hosts = Path::new(WORKSPACE).join("hosts");
    fs::write(&hosts, hosts_text(scenario))?;
    mount_bind(&hosts, "/etc/hosts")?;
    Ok(())
}

fn hosts_text(scenario: &Scenario) -> String {
    let local = "127.0.0.1 localhost";
    let origin = format!("{} {}", address::origin(scenario), address::ORIGIN);
    match scenario.far {
        FarEnd::None => format!("{local}\n{origin}\n"),
        FarEnd::Pair => {
            let far = format!("{} {}", address::OUTER_ADDRESS, address::FAR);
            format!("{local}\n{origin} {}\n{far}\n", scenario.far.origin_name())
        }
    }
}

/// Builds all namespaces and interfaces; calls `built` after each namespace.
pub fn build(scenario: &Scenario, mut built: impl FnMut()) -> io::Result<Ports> {
    let routers = 0..scenario.routers.len();
    let mut names: Vec<_> = routers.clone().map(|it| address::router(scenario, it)).collect();
    names.extend(scenario.receivers.iter().map(|it| address::client(scenario, *it)));
    names.extend(outside(scenario).iter().map(|it| (*it).to_owned()));
    ip(None, &names.iter().map(|name| format!("netns add {name}")).collect::<Vec<_>>())?;
    let ipv6 = ipv6_settings(scenario.routing);
    for name in &names {
        within(name, || {
            sysctl(&SETTINGS)?;
            sysctl(ipv6)?;
            avoid_congestion(scenario.congestion)
        })??;
    }
    let mut wires: Vec<_> = scenario.receivers.iter().map(|it| wire(scenario, *it)).collect();
    if scenario.far == FarEnd::Pair {
        let (far, origin) = (address::FAR, address::ORIGIN);
        wires.push(format!("link add wan0 netns {far} type veth peer name eth0 netns {origin}"));
    }
    ip(None, &wires)?;
    let mut mesh = Vec::new();
    let mut monitor = Vec::new();
    for router in routers {
        // A TAP device must be made inside its namespace: it stays there, and its other end is ours.
        let (wl0, mon0) = within(&address::router(scenario, router), || {
            let taps = (Tap::new("wl0", Kind::Ethernet)?, Tap::new("mon0", Kind::Monitor)?);
            sysctl(&MESH_SETTINGS)?;
            Ok::<_, io::Error>(taps)
        })??;
        mesh.push(wl0);
        monitor.push(mon0);
    }
    let tap = |namespace: &str, name| within(namespace, || Tap::new(name, Kind::Ethernet))?;
    let gateway = address::router(scenario, scenario.gateway);
    let uplink = [tap(&gateway, "wan0")?, tap(outside(scenario)[0], "eth0")?];
    for router in 0..scenario.routers.len() {
        ip(Some(&address::router(scenario, router)), &router_commands(scenario, router))?;
        built();
    }
    for receiver in &scenario.receivers {
        ip(Some(&address::client(scenario, *receiver)), &client_commands(*receiver))?;
        built();
    }
    for place in outside(scenario) {
        let commands = match *place {
            address::FAR => far_commands(scenario),
            _ => origin_commands(scenario),
        };
        ip(Some(place), &commands)?;
        built();
    }
    Ok(Ports { mesh, monitor, uplink })
}

/// The namespaces beyond the uplink, from its end on.
fn outside(scenario: &Scenario) -> &'static [&'static str] {
    match scenario.far {
        FarEnd::None => &[address::ORIGIN],
        FarEnd::Pair => &[address::FAR, address::ORIGIN],
    }
}

fn ipv6_settings(routing: Routing) -> &'static [&'static str] {
    match routing {
        Routing::Babel => &WITH_IPV6,
        Routing::Static if Path::new("/proc/sys/net/ipv6").exists() => &WITHOUT_IPV6,
        Routing::Static => &[],
    }
}

/// Sets the congestion control. A new namespace has the machine's, on which results must not depend. In
/// namespaces the kernel allows others than Reno only if they are its default, or the administrator permits
/// them.
fn avoid_congestion(congestion: Congestion) -> io::Result<()> {
    let name = congestion.name();
    sysctl(&[&format!("net.ipv4.tcp_congestion_control={name}")]).map_err(|error| {
        let text = format!(
            "the kernel allows no TCP {name} in namespaces ({error}): leave `congestion` out, or, as root, \
             sysctl -w net.ipv4.tcp_allowed_congestion_control='reno {name}'"
        );
        io::Error::new(error.kind(), text)
    })
}

/// Number of namespaces that [`build`] builds.
pub fn size(scenario: &Scenario) -> usize {
    scenario.routers.len() + scenario.receivers.len() + outside(scenario).len()
}

fn wire(scenario: &Scenario, router: usize) -> String {
    let (router, client) = (address::router(scenario, router), address::client(scenario, router));
    format!("link add lan0 netns {router} type veth peer name eth0 netns {client}")
}

fn router_commands(scenario: &Scenario, router: usize) -> Vec<String> {
    let mut commands = vec![
        "link set lo up".to_owned(),
        format!("link set wl0 address {}", address::mac_text(address::mac(router))),
        "link set wl0 up".to_owned(),
        "link set mon0 up".to_owned(),
        format!("addr add {}/32 dev wl0", address::mesh(router)),
    ];
    if scenario.receivers.contains(&router) {
        commands.push("link set lan0 up".to_owned());
        commands.push(format!("addr add {}/24 dev lan0", address::lan(router)));
    }
    if router == scenario.gateway {
        commands.push("link set wan0 up".to_owned());
        commands.push(format!("addr add {}/30 dev wan0", address::UPLINK_ADDRESS));
        commands.push(format!("route add default via {} proto static", address::OUTER_ADDRESS));
    }
    if scenario.routing == Routing::Static {
        commands.extend(static_routes(scenario, router));
    }
    commands
}

/// Static routes to all other routers, and the MAC addresses of neighbours: without a routing daemon only
/// data should be on the air.
fn static_routes(scenario: &Scenario, router: usize) -> Vec<String> {
    let mut commands = Vec::new();
    let mut routes = Routes::of(scenario);
    let mut neighbours = vec![false; scenario.routers.len()];
    for other in 0..scenario.routers.len() {
        let Some(hop) = routes.next_hop(router, other) else { continue };
        if !std::mem::replace(&mut neighbours[hop], true) {
            let mac = address::mac_text(address::mac(hop));
            commands.push(format!(
                "neigh replace {} lladdr {mac} dev wl0 nud permanent",
                address::mesh(hop)
            ));
        }
        let over = format!("via {} dev wl0 onlink", address::mesh(hop));
        let metric = routes.path(router, other).map_or(0, |path| path.cost);
        commands.push(format!("route add {}/32 {over} metric {metric}", address::mesh(other)));
        if scenario.receivers.contains(&other) {
            commands.push(format!("route add {} {over}", address::lan_net(other)));
        }
        if other == scenario.gateway {
            commands.push(format!("route add default {over}"));
        }
    }
    commands
}

fn client_commands(router: usize) -> Vec<String> {
    vec![
        "link set lo up".to_owned(),
        "link set eth0 up".to_owned(),
        format!("addr add {}/24 dev eth0", address::lan_client(router)),
        format!("route add default via {}", address::lan(router)),
    ]
}

/// The far end forwards, too. Its default route leads to the origin: the daemon dials where that leads.
fn far_commands(scenario: &Scenario) -> Vec<String> {
    let mut commands = vec![
        "link set lo up".to_owned(),
        "link set eth0 up".to_owned(),
        format!("addr add {}/30 dev eth0", address::OUTER_ADDRESS),
        "link set wan0 up".to_owned(),
        format!("addr add {}/30 dev wan0", address::FAR_ADDRESS),
        format!("route add default via {}", address::origin(scenario)),
    ];
    for net in [address::MESH_NET, address::CLIENTS_NET] {
        commands.push(format!("route add {net} via {}", address::UPLINK_ADDRESS));
    }
    commands
}

fn origin_commands(scenario: &Scenario) -> Vec<String> {
    let mut commands = vec![
        "link set lo up".to_owned(),
        "link set eth0 up".to_owned(),
        format!("addr add {}/30 dev eth0", address::origin(scenario)),
    ];
    let (over, nets): (_, &[_]) = match scenario.far {
        FarEnd::None => (address::UPLINK_ADDRESS, &[address::MESH_NET, address::CLIENTS_NET]),
        FarEnd::Pair => {
            let nets = &[address::MESH_NET, address::CLIENTS_NET, address::UPLINK_NET];
            (address::FAR_ADDRESS, nets)
        }
    };
    commands.extend(nets.iter().map(|net| format!("route add {net} via {over}")));
    commands
}
