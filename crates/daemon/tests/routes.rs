//! The route to the gateway in the daemon's status, while a real kernel and real babelds change it.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::world::network;
use crate::world::{Hearsay, Place, Process, World, sh, skipped, tool, wait_for, wait_until};

/// Three routers in a row, the third with an uplink:
///
/// ```text
///   r1 wl0 ── wl0 r2 wl1 ── wl0 r3 wan0 ── up
///   10.77.0.1   10.77.0.2   10.77.0.3
/// ```
fn build_row() {
    sh("for router in 1 2 3; do
            ip netns add r$router
            ip -n r$router link set lo up
            ip netns exec r$router sysctl -qw net.ipv4.ip_forward=1 \
                net.ipv6.conf.default.accept_dad=0 net.ipv6.conf.default.router_solicitations=0
        done
        ip netns add up
        ip -n r1 link add wl0 type veth peer name wl0 netns r2
        ip -n r2 link add wl1 type veth peer name wl0 netns r3
        ip -n r3 link add wan0 type veth peer name eth0 netns up
        for end in 'r1 wl0 1' 'r2 wl0 2' 'r2 wl1 2' 'r3 wl0 3'; do
            set -- $end
            ip -n $1 addr add 10.77.0.$3/32 dev $2
            ip -n $1 link set $2 up
        done
        ip -n up link set eth0 up
        ip -n r3 addr add 10.3.0.1/24 dev wan0
        ip -n r3 link set wan0 up
        ip -n r3 route add default via 10.3.0.2 proto static");
}

/// babeld on a router of the row; it makes the routes.
fn babeld(router: &'static str, interfaces: &[&str]) -> Process {
    let mut command = Place::In(router).command(tool("babeld"));
    // No configuration file of this machine.
    command.args(["-c", "/dev/null", "-h", "0.5", "-H", "0.5", "-g", "33123"]);
    command.args(["-I", "", "-S", &format!("/run/{router}.babeld-state")]);
    for interface in interfaces {
        command.args(["-C", &format!("interface {interface} type wireless update-interval 1")]);
    }
    command.args(["-C", "redistribute ip 0.0.0.0/0 le 0 metric 128"]);
    command.args(["-C", "redistribute local ip 10.77.0.0/16 ge 32"]);
    command.args(["-C", "redistribute local deny"]).args(interfaces);
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
    Process(child.expect("babeld starts"))
}

fn hearsay(world: &World, router: &str) -> Hearsay {
    let ip = tool("ip").display().to_string();
    Hearsay::start_under(
        world,
        &[&ip, "netns", "exec", router],
        &["--mesh", "wl0", "--mesh", "wl1"],
    )
}

/// Waits until the daemon's route has all of these fields.
#[track_caller]
fn wait_for_route(hearsay: &Hearsay, what: &str, fields: &Value) {
    let mut last = Value::Null;
    let fields = fields.as_object().expect("fields");
    let holds = || {
        last = hearsay.status()["route"].clone();
        fields.iter().all(|(name, value)| last[name] == *value).then_some(())
    };
    let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| wait_for(what, holds)));
    assert!(found.is_ok(), "{what}: {last}, and not {fields:?}: {}", hearsay.log());
}

fn page(hearsay: &Hearsay) -> String {
    String::from_utf8_lossy(&hearsay.command(&["status"]).stdout).into_owned()
}

#[test]
fn the_route_follows_babeld() {
    if !tool("babeld").exists() {
        return skipped("the_route_follows_babeld", "babeld is not installed");
    }
    network::inside("the_route_follows_babeld", || {
        build_row();
        let worlds = [World::new(), World::new(), World::new()];
        let [far, middle, gateway] = ["r1", "r2", "r3"];
        let far = hearsay(&worlds[0], far);
        wait_for_route(&far, "no route before there is a mesh", &json!({ "up": false }));
        let mut babelds =
            [babeld("r1", &["wl0"]), babeld("r2", &["wl0", "wl1"]), babeld("r3", &["wl0"])];
        let middle = hearsay(&worlds[1], middle);
        let gateway = hearsay(&worlds[2], gateway);

        let told = json!({
            "up": true, "is_gateway": false, "gateway": "10.77.0.3", "next_hop": "10.77.0.2",
            "interface": "wl0", "hops": null, "source": "babeld", "error": null, "routers": 2,
            "babeld_silent_seconds": null, "below_ip": [],
        });
        wait_for_route(&far, "the route", &told);
        wait_until("a page with the route", || {
            page(&far).contains("gateway 10.77.0.3 over 10.77.0.2 (wl0), metric ")
        });
        let neighbour = json!({ "gateway": "10.77.0.3", "next_hop": "10.77.0.3", "hops": 1 });
        wait_for_route(&middle, "the route beside the gateway", &neighbour);
        let own = json!({
            "is_gateway": true, "gateway": "10.77.0.3", "next_hop": null, "interface": "wan0",
        });
        wait_for_route(&gateway, "the gateway", &own);
        assert!(page(&gateway).contains("this is the gateway (wan0)"), "{}", page(&gateway));

        // babeld is killed and withdraws nothing: its routes stay in the kernel, and still count.
        babelds[0].kill();
        let silent = || far.status()["route"]["babeld_silent_seconds"].as_u64();
        wait_until("what babeld said last", || silent().is_some());
        let last = json!({ "next_hop": "10.77.0.2", "source": "babeld", "routers": 2 });
        wait_for_route(&far, "what babeld said last", &last);
        assert!(page(&far).contains("babeld has not answered for "), "{}", page(&far));
        babelds[0] = babeld("r1", &["wl0"]);
        wait_for_route(&far, "babeld again", &told);

        // The gateway leaves and comes back.
        babelds[2].signal("TERM");
        wait_for_route(&far, "no route without a gateway", &json!({ "up": false }));
        assert!(page(&far).contains("no route"), "{}", page(&far));
        babelds[2].kill();
        babelds[2] = babeld("r3", &["wl0"]);
        wait_for_route(&far, "the gateway again", &told);

        sh("ip -n r2 link set wl0 down");
        wait_for_route(&far, "no route without a carrier", &json!({ "up": false }));
    });
}

#[test]
fn the_route_follows_the_kernel() {
    network::inside("the_route_follows_the_kernel", || {
        let world = World::new();
        sh("ip route del default; ip -6 route del default");
        let hearsay = Hearsay::start_with(&world, &["--mesh", "lan0"]);
        wait_for_route(&hearsay, "no route", &json!({ "up": false, "interfaces": ["lan0"] }));
        sh("ip route add default via 10.1.0.2");
        let over = json!({ "next_hop": "10.1.0.2", "interface": "lan0", "source": "kernel" });
        wait_for_route(&hearsay, "a next hop", &over);
        sh("ip route add default via 10.2.0.2 metric 7; ip route del default via 10.1.0.2");
        wait_for_route(
            &hearsay,
            "the gateway",
            &json!({ "is_gateway": true, "interface": "wan0" }),
        );
        sh("ip route replace default via 10.1.0.2 metric 3");
        wait_for_route(&hearsay, "the better one", &over);
        // The kernel sends no message for IPv4 routes that it removes with a link.
        sh("ip link set lan0 down; ip route del default via 10.2.0.2");
        wait_for_route(&hearsay, "no route without a link", &json!({ "up": false }));
        sh(
            "ip link set lan0 up; ip -6 route replace default via fd01::2 || ip -6 route add default via fe80::2 dev lan0",
        );
        let over = json!({ "next_hop": "fe80::2", "interface": "lan0", "is_gateway": false });
        wait_for_route(&hearsay, "a next hop of IPv6", &over);
    });
}

#[test]
fn a_gateway_that_is_configured_is_found_by_its_address() {
    network::inside("a_gateway_that_is_configured_is_found_by_its_address", || {
        let world = World::new();
        let text =
            "listen = [\"127.0.0.1:0\"]\n[mesh]\ninterfaces = [\"lan0\"]\ngateway = \"10.9.0.8\"";
        let config = world.write("hearsay.toml", text.as_bytes()).display().to_string();
        // The default route does not lead to the configured gateway, and does not count.
        let hearsay = Hearsay::start_with(&world, &["--config", &config]);
        wait_for_route(&hearsay, "no way to it", &json!({ "up": false }));
        sh("ip route add 10.9.0.0/24 via 10.1.0.2");
        let over = json!({
            "gateway": "10.9.0.8", "next_hop": "10.1.0.2", "source": "config", "hops": null,
        });
        wait_for_route(&hearsay, "a next hop", &over);
        sh("ip route add 10.9.0.8 dev lan0");
        let beside = json!({ "gateway": "10.9.0.8", "next_hop": "10.9.0.8", "hops": 1 });
        wait_for_route(&hearsay, "the gateway on the link", &beside);
        sh("ip addr add 10.9.0.8/32 dev lo");
        let own = json!({ "is_gateway": true, "gateway": "10.9.0.8", "interface": null });
        wait_for_route(&hearsay, "that we are the gateway", &own);
        sh("ip addr del 10.9.0.8/32 dev lo");
        wait_for_route(&hearsay, "the gateway on the link again", &beside);
    });
}
