//! A router that overhears two others: real daemons on a bridge that floods every frame.
//!
//! ```text
//!   client ── lan0 r1 wl0 ──┐
//!                 r2 wl0 ───┼── br0, which floods
//!   client2 ─ lan0 r3 wl0 ──┘
//!                 r3 ear0 ──┘
//!   origin ── wan0 r2
//! ```
//!
//! r1 gets a file from r2, the gateway. r3 overhears it on `ear0`, and then serves its own client.

use crate::world::network::{self, CLIENT, ORIGIN};
use crate::world::{Curl, Hearsay, Nginx, Place, World, assert_same, noise, sh, tool, wait_until};

const BYTES: usize = 3_000_000;

/// Builds the network: r2 and r3 in namespaces of their own, and a client each for r1 and r3.
fn build() {
    sh("ip link del wan0; ip link del lan0
        ip link add br0 type bridge ageing_time 0; ip link set br0 up
        for router in 'r1 1 client' 'r2 2 origin' 'r3 3 client2'; do
            set -- $router
            ip netns add $1
            ip netns list | grep -qw $3 || ip netns add $3
            ip -n $1 link set lo up; ip -n $3 link set lo up
            ip netns exec $1 sysctl -qw net.ipv4.ip_forward=1
            ip link add to-$1 type veth peer name wl0 netns $1
            ip link set to-$1 master br0; ip link set to-$1 up
            ip -n $1 addr add 10.77.0.$2/24 dev wl0; ip -n $1 link set wl0 up
            ip -n $1 link add lan0 type veth peer name eth0 netns $3
            ip -n $1 addr add 10.$((10 + $2)).0.1/24 dev lan0; ip -n $1 link set lan0 up
            ip -n $3 addr add 10.$((10 + $2)).0.2/24 dev eth0; ip -n $3 link set eth0 up
            ip -n $3 route add default via 10.$((10 + $2)).0.1
        done
        ip -n r1 route add default via 10.77.0.2
        ip -n r3 route add default via 10.77.0.2
        ip -n r2 route add default via 10.12.0.2 dev lan0
        ip -n r2 route add 10.11.0.0/24 via 10.77.0.1
        ip -n r2 route add 10.13.0.0/24 via 10.77.0.3
        ip link add to-ear type veth peer name ear0 netns r3
        ip link set to-ear master br0; ip link set to-ear up
        ip -n r3 link set ear0 up
        printf '%s\\n' '127.0.0.1 localhost' '10.12.0.2 origin.test' >/run/hosts");
}

fn router(world: &World, name: &str, more: &[&str]) -> Hearsay {
    let text = format!("name = \"{name}\"\nlisten = [\"127.0.0.1:0\"]\n");
    let config = world.write("hearsay.toml", text.as_bytes()).display().to_string();
    let ip = tool("ip").display().to_string();
    let args = ["--config", &config, "--mesh", "wl0", "--log", "debug"];
    Hearsay::start_under(world, &[&ip, "netns", "exec", name], &[&args[..], more].concat())
}

#[test]
fn what_was_overheard_is_not_sent_again() {
    network::inside("what_was_overheard_is_not_sent_again", || {
        build();
        let [near, middle, third, origin] = [(); 4].map(|()| World::new());
        let nginx = Nginx::start_in(&origin, ORIGIN, "");
        let gateway = router(&middle, "r2", &[]);
        let first = router(&near, "r1", &["--intercept", "lan0"]);
        // The disk may be slow. A sixteenth of this memory is for units that wait for it: enough for the whole file.
        let hears = ["--intercept", "lan0", "--overhear", "ear0", "--memory", "64MiB"];
        let ear = router(&third, "r3", &hears);
        for router in [&first, &ear] {
            wait_until("a route", || router.status()["route"]["up"] == true);
        }
        assert_eq!(ear.status()["overhear"]["link"], "ethernet", "{}", ear.log());
        assert!(ear.log().contains("overhearing"), "{}", ear.log());
        assert!(first.status()["overhear"].is_null());

        let file = noise(1, BYTES);
        nginx.put("file", &file);
        let url = "http://origin.test/file";
        // As slow as a radio: r3 need not capture at the speed of memory.
        let rate = ["--limit-rate", "3M"];
        assert_same(&Curl::new(CLIENT, url).args(&rate).run().expect(200).body, &file);
        wait_until("what was heard to be stored", || {
            let heard = ear.status()["report"]["overheard"].take();
            heard["units"].as_u64() > Some(0) && heard["waiting_bytes"] == 0
        });
        let heard = ear.number("/report/overheard/bytes");
        assert!(heard > BYTES as u64 * 9 / 10, "{}", ear.status());

        let sent = gateway.number("/report/peer_units_out_bytes");
        let client = Place::In("client2");
        assert_same(&Curl::new(client, url).run().expect(200).body, &file);
        let sent = gateway.number("/report/peer_units_out_bytes") - sent;
        assert!(sent < BYTES as u64 / 10, "{sent} bytes of units were sent again");
        let overheard = ear.number("/report/served_overheard_bytes")
            + ear.number("/report/served_repaired_bytes");
        assert!(overheard > BYTES as u64 * 9 / 10, "{}", ear.status());
        assert_eq!(nginx.count("/file"), 1, "{:?}", nginx.asked());
        assert_eq!(ear.number("/overhear/dropped_frames"), 0);

        let page = String::from_utf8_lossy(&ear.command(&["status"]).stdout).into_owned();
        assert!(page.contains("overhear     ear0 (ethernet), "), "{page}");
    });
}

#[test]
fn an_ear_that_is_not_there_holds_nobody_up() {
    network::inside("an_ear_that_is_not_there_holds_nobody_up", || {
        let world = World::new();
        let hearsay = Hearsay::start_with(&world, &["--mesh", "wan0", "--overhear", "mon0"]);
        let note = || hearsay.status()["overhear"]["note"].as_str().unwrap_or_default().to_owned();
        assert!(note().contains("no interface mon0 yet"), "{}", hearsay.status());
        sh("ip link add mon0 type veth peer name mon1");
        wait_until("it is down", || note().contains("`ip link set mon0 up`"));
        sh("ip link set mon0 up");
        wait_until("it is heard", || hearsay.status()["overhear"]["works"] == true);
    });
}

#[test]
fn without_a_mesh_there_is_nothing_to_overhear() {
    let world = World::new();
    let (status, said) = Hearsay::try_start(&world, &["--overhear", "mon0"]);
    assert_eq!(status.code(), Some(2), "{said}");
    assert!(said.contains("give [mesh] `interfaces`, or `run --mesh IFACE`"), "{said}");
}
