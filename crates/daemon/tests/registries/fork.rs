//! A mesh with two access routers, each with a client:
//!
//! ```text
//!   client ── lan0 r1 wl0 ── wl0 r2 wl1 ── wl0 r3 wan0 ── origin: the registries
//!  second ── lan0 a2 wl0 ── wl2 ┘
//! ```

use serde_json::Value;

use super::{Registries, run};
use crate::world::network::CLIENT;
use crate::world::{Hearsay, Place, World, row, sh, tool, wait_until};

const SECOND: Place = Place::In("second");

/// Where the mirrors of the access routers listen.
const MIRRORS: [(Place, &str); 2] = [(CLIENT, "10.1.0.1:3142"), (SECOND, "10.5.0.1:3142")];

/// The mesh, with its daemons and the registries. Fields are dropped in this order.
pub struct Fork {
    routers: Vec<Hearsay>,
    registries: Registries,
    _worlds: Vec<World>,
}

/// What a client's run cost.
#[derive(Debug)]
pub struct Cost {
    /// Bytes of responses with files that never change, by the registries' log.
    pub files: u64,
    /// Bytes of all responses, by the registries' log.
    pub all: u64,
    /// Bytes that entered by the gateway's uplink, by its interface.
    pub uplink: u64,
}

impl Fork {
    /// Builds the mesh inside a network of `network::inside`, and waits until each router has a route.
    pub fn start() -> Self {
        row::build();
        sh("for name in a2 second; do ip netns add $name; ip -n $name link set lo up; done
            ip netns exec a2 sysctl -qw net.ipv4.ip_forward=1
            ip -n r2 link add wl2 type veth peer name wl0 netns a2
            ip -n a2 link add lan0 type veth peer name eth0 netns second
            for end in 'r2 wl2 10.77.0.2/32' 'a2 wl0 10.77.0.4/32' 'a2 lan0 10.5.0.1/24' 'second eth0 10.5.0.2/24'; do
                set -- $end
                ip -n $1 addr add $3 dev $2
                ip -n $1 link set $2 up
            done
            ip -n second route add default via 10.5.0.1
            ip -n a2 route add 10.77.0.2 dev wl0
            ip -n a2 route add default via 10.77.0.2 dev wl0
            ip -n r2 route add 10.77.0.4 dev wl2
            ip -n r2 route add 10.5.0.0/24 via 10.77.0.4
            ip -n r3 route add 10.77.0.4 via 10.77.0.2
            ip -n r3 route add 10.5.0.0/24 via 10.77.0.2");
        let mut worlds = vec![World::new()];
        let registries = Registries::start(&worlds[0], &[]);
        let mut routers = Vec::new();
        for (name, mirror) in [("r3", None), ("r2", None), ("r1", Some(0)), ("a2", Some(1))] {
            worlds.push(World::new());
            let mirror = mirror.map(|at: usize| MIRRORS[at].1);
            routers.push(router(worlds.last().expect("one"), name, mirror, &registries));
        }
        for router in &routers {
            wait_until("a route", || router.status()["route"]["up"] == true);
        }
        Self { routers, registries, _worlds: worlds }
    }

    /// Runs a package manager on one of the two clients, 0 or 1, which must get the right files; returns what it cost.
    #[track_caller]
    pub fn cost_of(&self, client: &str, at: usize) -> Cost {
        let (place, mirror) = MIRRORS[at];
        let before = (self.registries.sent().len(), uplink_bytes());
        let got = run(client, place, &[("MIRROR", &format!("http://{mirror}"))]);
        let logs = || self.routers.iter().map(Hearsay::log).collect::<Vec<_>>().join("\n");
        let got = got.unwrap_or_else(|said| panic!("{client} {at}: {said}\n{}", logs()));
        assert_eq!(got, self.registries.wanted(client), "{client} {at}");
        for router in &self.routers {
            wait_until("the transfers to end", || router.number("/report/fetches") == 0);
        }
        let uplink = uplink_bytes() - before.1;
        let all = self.registries.sent()[before.0..].iter().map(|it| it.bytes).sum();
        Cost { files: self.registries.file_bytes_since(before.0), all, uplink }
    }
}

fn router(world: &World, name: &str, mirror: Option<&str>, registries: &Registries) -> Hearsay {
    let mirror = mirror.map(|at| format!("[mirror]\nlisten = [\"{at}\"]\n")).unwrap_or_default();
    let text = format!(
        "name = \"{name}\"\nlisten = [\"127.0.0.1:0\"]\n{mirror}\
         [mesh]\ninterfaces = [\"wl0\", \"wl1\", \"wl2\"]\n"
    );
    let config = world.write("hearsay.toml", text.as_bytes()).display().to_string();
    let trust = format!("SSL_CERT_FILE={}", registries.ca().display());
    let ip = tool("ip").display().to_string();
    let there = [ip.as_str(), "netns", "exec", name, "env", &trust];
    let before = if name == "r1" { &there[4..] } else { &there[..] };
    Hearsay::start_under(world, before, &["--config", &config, "--log", "debug"])
}

/// Bytes that have entered by the gateway's uplink, with their Ethernet, IP and TCP headers.
fn uplink_bytes() -> u64 {
    let text = sh("ip -n r3 -s -j link show dev wan0");
    let links: Value = serde_json::from_str(&text).expect("JSON");
    links[0]["stats64"]["rx"]["bytes"].as_u64().expect("a number")
}
