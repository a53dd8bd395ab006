//! Routers in a row that serve each other: real daemons, a real kernel between them, a client that
//! knows of nothing.

mod world;

use std::net::TcpListener;
use std::time::Duration;

use serde_json::Value;
use world::network::{self, CLIENT, ORIGIN, there};
use world::{Curl, Hearsay, Nginx, Reply, Script, World, assert_same, noise, sh, tool, wait_until};

/// Three routers in a row, the third with a way out; the first is where the test runs.
///
/// ```text
///   client ── lan0 r1 wl0 ── wl0 r2 wl1 ── wl0 r3 wan0 ── origin
///               10.77.0.1     10.77.0.2     10.77.0.3
/// ```
fn build_row() {
    sh("ip link del wan0
        for router in r2 r3; do
            ip netns add $router
            ip -n $router link set lo up
            ip netns exec $router sysctl -qw net.ipv4.ip_forward=1
        done
        ip link add wl0 type veth peer name wl0 netns r2
        ip -n r2 link add wl1 type veth peer name wl0 netns r3
        ip -n r3 link add wan0 type veth peer name eth0 netns origin
        ip addr add 10.77.0.1/32 dev wl0; ip link set wl0 up
        for end in 'r2 wl0 10.77.0.2/32' 'r2 wl1 10.77.0.2/32' 'r3 wl0 10.77.0.3/32' \\
                'r3 wan0 10.2.0.1/24' 'origin eth0 10.2.0.2/24'; do
            set -- $end
            ip -n $1 addr add $3 dev $2
            ip -n $1 link set $2 up
        done
        ip route add 10.77.0.2 dev wl0
        ip route add default via 10.77.0.2 dev wl0
        ip -n r2 route add 10.77.0.1 dev wl0
        ip -n r2 route add 10.77.0.3 dev wl1
        ip -n r2 route add 10.1.0.0/24 via 10.77.0.1
        ip -n r2 route add default via 10.77.0.3 dev wl1
        ip -n r3 route add 10.77.0.2 dev wl0
        ip -n r3 route add 10.77.0.1 via 10.77.0.2
        ip -n r3 route add 10.1.0.0/24 via 10.77.0.2
        ip -n r3 route add default via 10.2.0.2 dev wan0
        ip -n origin route add default via 10.2.0.1");
}

/// The daemon on a router of the row, `mesh` being more of its table `[mesh]`.
fn router(world: &World, name: &str, mesh: &str) -> Hearsay {
    let text = format!(
        "name = \"{name}\"\nlisten = [\"127.0.0.1:0\"]\n\
         [mesh]\ninterfaces = [\"wl0\", \"wl1\"]\n{mesh}"
    );
    let config = world.write("hearsay.toml", text.as_bytes()).display().to_string();
    let args = ["--config", &config, "--log", "debug"];
    if name == "r1" {
        return Hearsay::start_with(world, &[&args[..], &["--intercept", "lan0"]].concat());
    }
    let ip = tool("ip").display().to_string();
    Hearsay::start_under(world, &[&ip, "netns", "exec", name], &args)
}

fn get(url: &str) -> Reply {
    Curl::new(CLIENT, url).args(&["-4"]).run()
}

/// What a router says of its peers.
fn peers(hearsay: &Hearsay) -> Value {
    let output = hearsay.command(&["peers", "--json"]);
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn names(hearsay: &Hearsay) -> Vec<String> {
    let peers = peers(hearsay);
    let names = peers.as_array().expect("a list").iter().map(|peer| peer["name"].to_string());
    names.map(|name| name.trim_matches('"').to_owned()).collect()
}

/// A row of daemons, up to where each knows its way.
fn start(worlds: &[World; 3], mesh: &str) -> [Hearsay; 3] {
    let names = ["r1", "r2", "r3"];
    let routers = [0, 1, 2].map(|at| router(&worlds[at], names[at], mesh));
    for router in &routers {
        wait_until("a route", || router.status()["route"]["up"] == true);
    }
    routers
}

#[test]
fn what_a_router_on_the_way_holds_is_not_fetched_again() {
    network::inside("what_a_router_on_the_way_holds_is_not_fetched_again", || {
        build_row();
        let worlds = [World::new(), World::new(), World::new()];
        let origin = World::new();
        let nginx = Nginx::start_in(&origin, ORIGIN, "");
        let [first, second, gateway] = start(&worlds, "");
        let file = noise(1, 3_000_000);
        nginx.put("file", &file);
        let url = "http://origin.test/file";
        assert_same(&get(url).expect(200).body, &file);
        assert_eq!(nginx.count("/file"), 1, "{:?}", nginx.asked());
        assert_eq!(names(&first), ["r2"], "{}", first.log());
        assert_eq!(names(&gateway), ["r2"]);
        assert_eq!(names(&second).len(), 2);
        assert_eq!(gateway.number("/report/origin_bytes"), 3_000_000);
        assert_eq!(first.number("/report/peer_units_in_bytes"), 3_000_000);
        assert_same(&get(url).expect_hit().body, &file);

        // The first router forgets everything; the second does not.
        let sent = gateway.number("/report/peer_units_out_bytes");
        drop(first);
        let empty = World::new();
        let first = router(&empty, "r1", "");
        wait_until("a route", || first.status()["route"]["up"] == true);
        assert_same(&get(url).expect(200).body, &file);
        assert_eq!(first.number("/report/peer_units_in_bytes"), 3_000_000);
        // What comes after the last is known may count as held here.
        assert!(first.number("/report/served_peer_bytes") > 2_500_000, "{}", first.status());
        assert_eq!(gateway.number("/report/peer_units_out_bytes"), sent);
        assert_eq!(nginx.count("/file"), 1, "{:?}", nginx.asked());

        let page = String::from_utf8_lossy(&first.command(&["status"]).stdout).into_owned();
        assert!(page.contains("2.9 MiB  r2 "), "{page}");
        let table = String::from_utf8_lossy(&first.command(&["peers"]).stdout).into_owned();
        assert!(table.contains("r2    10.77.0.2"), "{table}");
    });
}

#[test]
fn with_thcp_the_gateway_is_asked_end_to_end() {
    network::inside("with_thcp_the_gateway_is_asked_end_to_end", || {
        build_row();
        let worlds = [World::new(), World::new(), World::new()];
        let origin = World::new();
        let nginx = Nginx::start_in(&origin, ORIGIN, "");
        let [first, second, gateway] = start(&worlds, "scheme = \"thcp\"\ngateway = \"10.77.0.3\"");
        nginx.put("file", &noise(2, 1_000_000));
        assert_same(&get("http://origin.test/file").expect(200).body, &noise(2, 1_000_000));
        assert_eq!(names(&first), ["r3"]);
        assert_eq!(gateway.number("/report/peer_units_out_bytes"), 1_000_000);
        assert_eq!(second.number("/report/peers"), 0, "{}", peers(&second));
    });
}

#[test]
fn a_router_with_another_key_is_no_peer_and_traffic_goes_on() {
    network::inside("a_router_with_another_key_is_no_peer_and_traffic_goes_on", || {
        build_row();
        let [near, middle, far, origin] = [(); 4].map(|()| World::new());
        let nginx = Nginx::start_in(&origin, ORIGIN, "");
        let first = router(&near, "r1", "key = \"the key of this mesh\"");
        let second = router(&middle, "r2", "key = \"the key of another mesh\"");
        let key = far.write("key", b"the key of this mesh\n").display().to_string();
        let third = router(&far, "r3", &format!("key-file = \"{key}\""));
        wait_until("a route", || first.status()["route"]["up"] == true);
        nginx.put("file", &noise(3, 300_000));
        assert_same(&get("http://origin.test/file").expect(200).body, &noise(3, 300_000));
        assert_eq!(names(&second), [] as [&str; 0]);
        // Nobody is told what a mesh with a key has.
        assert_eq!(first.status()["report"]["recent"], serde_json::json!([]));
        assert!(first.log().contains("refuses us"), "{}", first.log());
        drop(third);
    });
}

#[test]
fn without_a_daemon_on_the_way_the_origin_is_asked() {
    network::inside("without_a_daemon_on_the_way_the_origin_is_asked", || {
        build_row();
        let [world, origin] = [World::new(), World::new()];
        let nginx = Nginx::start_in(&origin, ORIGIN, "");
        let first = router(&world, "r1", "");
        wait_until("a route", || first.status()["route"]["up"] == true);
        nginx.put("file", b"hello");
        assert_eq!(get("http://origin.test/file").expect(200).text(), "hello");
        assert_eq!(first.number("/report/origin_bytes"), 5);
        let output = first.command(&["peers"]).stdout;
        let said = String::from_utf8_lossy(&output);
        assert!(said.contains("no peers yet: 10.77.0.2 is the next hop"), "{said}");
    });
}

#[test]
fn a_router_that_dies_on_the_way_costs_no_bytes() {
    network::inside("a_router_that_dies_on_the_way_costs_no_bytes", || {
        build_row();
        let worlds = [World::new(), World::new(), World::new()];
        // Small and regular portions: the origin is slow, but does not pause.
        let listener = there(ORIGIN, || TcpListener::bind("0.0.0.0:80")).expect("port 80 is free");
        let origin = Script::on(listener, |visit| {
            if visit.head().is_some() {
                let head = "HTTP/1.1 200 OK\r\ncontent-length: 4000000\r\n\
                            cache-control: max-age=60\r\n\r\n";
                visit.send(head);
                let portions = noise(4, 4_000_000);
                for portion in portions.chunks(16_000) {
                    std::thread::sleep(Duration::from_millis(8));
                    visit.send(portion);
                }
            }
        });
        let [first, mut second, _gateway] = start(&worlds, "gateway = \"10.77.0.3\"");
        let client = Curl::new(CLIENT, "http://origin.test/slow").args(&["-4"]).start();
        wait_until("half of it", || client.received() > 2_000_000);
        second.kill();
        let reply = client.wait();
        assert_same(&reply.expect(200).body, &noise(4, 4_000_000));
        assert!(first.number("/report/resumes") > 0, "{}", first.status());
        assert_eq!(names(&first), ["r3"]);
        assert_eq!(origin.heads().len(), 1);
    });
}
