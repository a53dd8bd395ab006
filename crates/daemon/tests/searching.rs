//! Searches by broadcast: real daemons in a ring find a copy beside the way to the gateway, and bear floods.
//!
//! ```text
//!   client ── lan0 r1 wl0 ── wl0 r2 wl1 ── wl0 r3 wan0 ── origin
//!                  wl1 ────── wl0 r4 wl1 ── wl1
//!   visitor ─────────────── lan0
//! ```
//!
//! The gateway `r3` is two hops from `r1` and one from `r4`. Each router knows its next hops from the kernel alone.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde_json::Value;
use wire::Hint;
use wire::peer::{Call, Envelope, Locate, Search};

use crate::world::network::{self, CLIENT, ORIGIN, there};
use crate::world::{Curl, Hearsay, Nginx, Place, Reply, World};
use crate::world::{assert_same, noise, row, sh, tool, wait_until};

const VISITOR: Place = Place::In("visitor");
const ROUTERS: [&str; 4] = ["r1", "r2", "r3", "r4"];
/// A busy machine may need more than the usual 25 ms.
const SEARCH_TIMEOUT: &str = "500ms";
const KEY: &str = "key = \"the key of this mesh\"";

fn build() {
    row::build();
    sh("ip netns add r4; ip netns add visitor
        for space in r4 visitor; do ip -n $space link set lo up; done
        ip netns exec r4 sysctl -qw net.ipv4.ip_forward=1
        ip link add wl1 type veth peer name wl0 netns r4
        ip -n r4 link add wl1 type veth peer name wl1 netns r3
        ip -n r4 link add lan0 type veth peer name eth0 netns visitor
        ip addr add 10.77.0.1/32 dev wl1; ip link set wl1 up
        for end in 'r4 wl0 10.77.0.4/32' 'r4 wl1 10.77.0.4/32' 'r3 wl1 10.77.0.3/32' \\
                'r4 lan0 10.4.0.1/24' 'visitor eth0 10.4.0.2/24'; do
            set -- $end
            ip -n $1 addr add $3 dev $2
            ip -n $1 link set $2 up
        done
        ip route add 10.77.0.4 dev wl1
        ip -n r4 route add 10.77.0.1 dev wl0
        ip -n r4 route add 10.77.0.3 dev wl1
        ip -n r4 route add default via 10.77.0.3 dev wl1
        ip -n r3 route add 10.77.0.4 dev wl1
        ip -n r3 route add 10.4.0.0/24 via 10.77.0.4
        ip -n visitor route add default via 10.4.0.1");
}

/// A ring of daemons; `r1` and `r4` intercept their clients.
struct Ring {
    routers: [Hearsay; 4],
    nginx: Nginx,
    _worlds: [World; 5],
}

impl Ring {
    /// Starts the daemons, and waits until `r1` knows the gateway and how far it is. `locate` is how
    /// requests get to the router that was found.
    fn start(scheme: &str, key: &str, locate: &str) -> Self {
        let worlds = [(); 5].map(|()| World::new());
        let nginx = Nginx::start_in(&worlds[4], ORIGIN, "");
        let start = |at: usize| {
            let name = ROUTERS[at];
            let intercepts = if at == 0 || at == 3 { "interfaces = [\"lan0\"]" } else { "" };
            let text = format!(
                "name = \"{name}\"\nlisten = [\"127.0.0.1:0\"]\n[intercept]\n{intercepts}\n\
                 [mesh]\ninterfaces = [\"wl0\", \"wl1\"]\nscheme = \"{scheme}\"\n{key}\n\
                 [experiment]\nlocate = \"{locate}\"\nsearch-timeout = \"{SEARCH_TIMEOUT}\""
            );
            let config = worlds[at].write("hearsay.toml", text.as_bytes()).display().to_string();
            let args = ["--config", &config, "--log", "debug"];
            match at {
                0 => Hearsay::start_with(&worlds[at], &args),
                _ => {
                    let ip = tool("ip").display().to_string();
                    Hearsay::start_under(&worlds[at], &[&ip, "netns", "exec", name], &args)
                }
            }
        };
        // The gateway first: who finds no daemon at its next hop waits before it dials again.
        let gateway = start(2);
        let [second, fourth, first] = [1, 3, 0].map(start);
        let routers = [first, second, gateway, fourth];
        for router in &routers {
            let can_hear =
                || router.log().matches("searches of other routers can be heard").count();
            wait_until("a socket on both interfaces", || can_hear() == 2);
        }
        let next = |router: &Hearsay, hops: u64| {
            let output = router.command(&["peers", "--json"]).stdout;
            let peers: Value = serde_json::from_slice(&output).expect("JSON");
            let peers = peers.as_array().expect("a list");
            peers.iter().any(|it| it["hops"] == hops && it["gateway_key"].is_string())
        };
        wait_until("the way of r1", || next(&routers[0], 1));
        wait_until("the way of r4", || next(&routers[3], 0));
        Self { routers, nginx, _worlds: worlds }
    }

    /// The visitor's router gets a file of this name; nobody else keeps it but the gateway.
    fn bring(&self, name: &str, file: &[u8]) {
        self.nginx.put(name, file);
        let url = format!("http://origin.test/{name}");
        assert_same(&get(VISITOR, &url).expect(200).body, file);
    }

    /// A number in the report of a router, by its place in the ring.
    fn report(&self, router: usize, field: &str) -> u64 {
        self.routers[router - 1].number(&format!("/report/{field}"))
    }
}

/// What each node that handled a response says of itself: its name and its first word.
fn servers(reply: &Reply) -> Vec<String> {
    let all = reply.fields.iter().filter(|(name, _)| name == "cache-status");
    let words = all.map(|(_, value)| value.splitn(3, "; ").take(2).collect::<Vec<_>>().join("; "));
    words.collect()
}

fn get(place: Place, url: &str) -> Reply {
    Curl::new(place, url).args(&["-4"]).run()
}

/// The client's bytes come from the neighbour on the other branch.
fn finds_the_copy(scheme: &str, key: &str, locate: &str) {
    let ring = Ring::start(scheme, key, locate);
    let file = noise(1, 300_000);
    ring.bring("file", &file);
    let sent_by_gateway = ring.report(3, "peer_units_out_bytes");
    let reply = get(CLIENT, "http://origin.test/file").expect(200);
    assert_same(&reply.body, &file);
    assert_eq!(servers(&reply), ["r4; hit", "r1; fwd=uri-miss"], "{reply:?}");
    assert_eq!(ring.report(4, "peer_units_out_bytes"), 300_000);
    assert_eq!(ring.report(3, "peer_units_out_bytes"), sent_by_gateway);
    assert_eq!(ring.nginx.count("/file"), 1, "{:?}", ring.nginx.asked());
    let of = |field| ring.report(1, field);
    assert_eq!((of("searches"), of("searches_located"), of("searches_in_vain")), (1, 1, 0));
    // Both interfaces carried the search, and the neighbour answered.
    let datagrams = |field| ring.routers[0].number(&format!("/datagrams/{field}"));
    assert!(datagrams("sent") >= 2 && datagrams("received") >= 1);
    assert_eq!(datagrams("send_errors"), 0);
    let status = ring.routers[0].status();
    assert_eq!(status["datagrams"]["dropped"], serde_json::json!({}));
}

#[test]
fn a_copy_on_another_branch_is_found() {
    network::inside("a_copy_on_another_branch_is_found", || {
        build();
        finds_the_copy("ph-bcp", "", "ours");
    });
}

#[test]
fn with_a_key_a_copy_on_another_branch_is_found() {
    network::inside("with_a_key_a_copy_on_another_branch_is_found", || {
        build();
        finds_the_copy("ph-bcp", KEY, "ours");
    });
}

#[test]
fn end_to_end_a_copy_on_another_branch_is_found() {
    network::inside("end_to_end_a_copy_on_another_branch_is_found", || {
        build();
        finds_the_copy("bcp", KEY, "ours");
    });
}

#[test]
fn as_published_a_copy_on_another_branch_is_found() {
    network::inside("as_published_a_copy_on_another_branch_is_found", || {
        build();
        finds_the_copy("ph-bcp", "", "paper");
    });
}

/// By default nobody searches while there is a way to the gateway. Cut off from it, a client still gets what another branch
/// holds fresh.
#[test]
fn cut_off_from_the_gateway_a_copy_on_another_branch_is_found() {
    network::inside("cut_off_from_the_gateway_a_copy_on_another_branch_is_found", || {
        build();
        let ring = Ring::start("auto", KEY, "ours");
        let file = noise(1, 300_000);
        ring.bring("file", &file);
        // With its interface, a router loses its default route.
        sh("ip -n r2 link set wl1 down; ip -n r4 link set wl1 down; ip route del default");
        for router in [0, 3] {
            let is_cut_off = || ring.routers[router].status()["route"]["up"] == false;
            wait_until("the routes to be gone", is_cut_off);
        }
        assert_eq!(ring.report(1, "searches"), 0);
        // By the explicit proxy: the kernel refuses what no route leads on, before it can be intercepted.
        let reply = ring.routers[0].get("http://origin.test/file").expect(200);
        assert_same(&reply.body, &file);
        assert_eq!(servers(&reply), ["r4; hit", "r1; fwd=uri-miss"], "{reply:?}");
        let of = |field| ring.report(1, field);
        assert_eq!((of("searches"), of("searches_located"), of("searches_in_vain")), (1, 1, 0));
        assert_eq!(ring.nginx.count("/file"), 1, "{:?}", ring.nginx.asked());
    });
}

#[test]
fn the_port_is_open_only_where_the_scheme_searches() {
    let bind = |port: u16| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port));
    let taken = bind(0).expect("a free port");
    let port = taken.local_addr().expect("its address").port();
    let daemon = |world: &World, scheme: &str| {
        let text = format!(
            "listen = [\"127.0.0.1:0\"]\n[mesh]\ninterfaces = [\"lo\"]\nport = {port}\nscheme = \"{scheme}\""
        );
        let config = world.write("hearsay.toml", text.as_bytes()).display().to_string();
        Hearsay::start_with(world, &["--config", &config])
    };
    let world = World::new();
    let searching = daemon(&world, "bcp");
    let next_step =
        format!("stop the program that has UDP port {port}, or choose another [mesh] port");
    wait_until("the next step", || searching.log().contains(&next_step));
    drop(taken);
    wait_until("the socket", || searching.log().contains("searches of other routers can be heard"));
    assert_eq!(searching.log().matches(&next_step).count(), 1, "{}", searching.log());
    assert_eq!(searching.number("/datagrams/received"), 0);
    assert!(bind(port).is_err());
    drop(searching);

    let world = World::new();
    let other = daemon(&world, "ph-thcp");
    wait_until("the port for peers", || other.log().contains("peers can connect"));
    assert!(other.status()["datagrams"].is_null());
    assert!(bind(port).is_ok());
}

#[test]
fn a_flood_costs_neither_memory_nor_service() {
    network::inside("a_flood_costs_neither_memory_nor_service", || {
        build();
        // Without a key anybody can write what routers read.
        let ring = Ring::start("ph-bcp", "", "ours");
        let first = &ring.routers[0];
        ring.bring("before", &noise(1, 50_000));
        assert_same(&get(CLIENT, "http://origin.test/before").body, &noise(1, 50_000));
        let (rss, began) = (first.number("/rss_bytes"), Instant::now());
        let before = ring.report(1, "locates_passed_on");
        let is_over = AtomicBool::new(false);
        let sent = std::thread::scope(|scope| {
            let flood = scope.spawn(|| there(Place::In("r4"), || flood(&is_over)));
            for number in 0..5 {
                let (name, file) = (format!("during{number}"), noise(number, 50_000));
                ring.nginx.put(&name, &file);
                let reply = get(CLIENT, &format!("http://origin.test/{name}"));
                assert_same(&reply.expect(200).body, &file);
            }
            wait_until("a flood", || first.status()["datagrams"]["dropped"]["flood"].is_u64());
            is_over.store(true, Ordering::Relaxed);
            flood.join().expect("it sends all of it")
        });
        let grown = first.number("/rss_bytes").saturating_sub(rss);
        assert!(grown < 8 << 20, "{grown} bytes for {sent} datagrams");
        assert!(first.number("/datagrams/dropped/too-long") > 0);
        let read = first.number("/datagrams/received");
        let passed_on = u128::from(ring.report(1, "locates_passed_on") - before);
        let took = began.elapsed().as_millis();
        // By each interface at most 1000 a second, and 250 at once.
        assert!(u128::from(read) <= 2 * (took + 250), "{read} of {sent} in {took} ms");
        // Locates of others take a twentieth of the air, 1.5 ms each, and 250 ms of it at once.
        assert!((1..=took / 30 + 167).contains(&passed_on), "{passed_on} in {took} ms");
        assert!(ring.report(1, "datagrams_refused") > 0, "garbage is counted");
        // Afterwards searches find what is there, as before.
        let mut number = 0;
        wait_until("a search that finds", || {
            number += 1;
            let name = format!("after{number}");
            ring.bring(&name, &noise(9, 20_000));
            let reply = get(CLIENT, &format!("http://origin.test/{name}")).expect(200);
            servers(&reply).first().is_some_and(|it| it == "r4; hit")
        });
    });
}

/// A flood has at least this many datagrams.
const FLOOD_MIN: u64 = 200_000;

/// Sends garbage, and searches of routers that do not exist, as fast as it can, until it is over. Returns how many.
fn flood(is_over: &AtomicBool) -> u64 {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a port");
    let to = SocketAddr::from(([10, 77, 0, 1], 3131));
    let garbage = noise(7, 1_400);
    let mut sent = 0_u64;
    while !is_over.load(Ordering::Relaxed) || sent < FLOOD_MIN {
        let bytes = noise(sent, 24);
        let (name, boot) = (Hint(part(&bytes)), u64::from_be_bytes(part(&bytes[8..])));
        let origin = <[u8; 4]>::try_from(&bytes[16..20]).expect("four").into();
        let search = Search { boot, sequence: sent as u32 };
        let locate = Locate { origin, search, name, ttl: 255, hops: 1 };
        let mut forged = Vec::new();
        Envelope::Open.write(&mut forged);
        forged.extend(Call::Locate(locate).encode());
        let length = usize::from(bytes[20]) * usize::from(bytes[21]) % garbage.len();
        for datagram in [&forged[..], &garbage[..length % 129], &garbage[..length]] {
            // A full queue is no reason to stop.
            sent += u64::from(socket.send_to(datagram, to).is_ok());
        }
    }
    sent
}

fn part(bytes: &[u8]) -> [u8; 8] {
    bytes[..8].try_into().expect("eight")
}
