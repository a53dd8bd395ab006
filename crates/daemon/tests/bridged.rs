//! Clients behind a bridge whose frames pass the firewall's rules for IP, as br_netfilter makes them: Docker and libvirt
//! load it.
//!
//! ```text
//!   client eth0 ── lan0 ─ br-lan router wan0 ── origin
//! ```

use std::net::TcpListener;

use crate::world::network::{self, CLIENT, ORIGIN, there};
use crate::world::{
    Curl, Hearsay, Nginx, Place, Reply, Script, World, assert_same, noise, sh, skipped, wait_until,
};

/// Makes lan0 a port of the bridge br-lan, which takes its addresses. `false`: this kernel has no br_netfilter.
pub fn bridge(test: &str) -> bool {
    sh("ip link add br-lan type bridge
        ip addr flush dev lan0; ip link set lan0 master br-lan; ip link set br-lan up
        ip addr add 10.1.0.1/24 dev br-lan; ip addr add fd01::1/64 dev br-lan nodad");
    let is_there = std::path::Path::new("/proc/sys/net/bridge/bridge-nf-call-iptables").exists();
    if !is_there {
        skipped(test, "this kernel has no br_netfilter: `modprobe br_netfilter`");
    }
    is_there
}

/// Has frames pass the firewall, or not.
pub fn filter(is_on: bool) {
    let value = u8::from(is_on);
    sh(&format!(
        "sysctl -qw net.bridge.bridge-nf-call-iptables={value} net.bridge.bridge-nf-call-ip6tables={value}"
    ));
}

fn get(family: &str) -> Reply {
    let curl = Curl::new(CLIENT, "http://origin.test/file");
    curl.args(&[family, "--max-time", "20"]).run()
}

#[test]
fn clients_behind_a_bridge_that_filters_are_served() {
    const TEST: &str = "clients_behind_a_bridge_that_filters_are_served";
    network::inside(TEST, || {
        if !bridge(TEST) {
            return;
        }
        filter(true);
        let world = World::new();
        let nginx = Nginx::start_in(&world, ORIGIN, "");
        let file = noise(1, 300_000);
        nginx.put("file", &file);
        let hearsay = Hearsay::start_with(&world, &["--intercept", "br-lan"]);
        for family in ["-4", "-6"] {
            assert_same(&get(family).expect(200).body, &file);
            assert_same(&get(family).expect_hit().body, &file);
        }
        assert_eq!(nginx.count("/file"), 1, "{:?}", nginx.asked());
        let check = hearsay.command(&["intercept", "check"]);
        assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));

        // The doctor looks through such a bridge, too: it finds that the kernel leaves our chain out.
        let tried = || {
            let output = hearsay.command(&["doctor", "--json"]);
            let page: serde_json::Value =
                serde_json::from_slice(&output.stdout).expect("the doctor's page");
            let checks = page["checks"].as_array().expect("a list").clone();
            let of = |name: &str| checks.iter().find(|it| it["check"] == name).cloned();
            ["ipv4", "ipv6"].map(|name| of(name).expect("a check")["verdict"].clone())
        };
        assert_eq!(tried(), ["fine", "fine"]);
        sh("nft flush chain inet hearsay bridged");
        assert_eq!(tried(), ["broken", "broken"]);
        // Clients go on without us.
        assert!(get("-4").expect(200).field("via").is_empty());
        let left = sh("ip -br link; ip netns list; nft list table inet hearsay");
        assert!(!left.contains("hsdoc") && !left.contains("hearsay-doctor"), "{left}");

        // A daemon that is dead is in nobody's way.
        drop(hearsay);
        assert!(get("-6").expect(200).field("via").is_empty());
    });
}

#[test]
fn what_stays_on_the_bridge_is_not_counted_as_forwarded() {
    const TEST: &str = "what_stays_on_the_bridge_is_not_counted_as_forwarded";
    network::inside(TEST, || {
        if !bridge(TEST) {
            return;
        }
        filter(true);
        sh("ip netns add beside
            ip link add lan1 type veth peer name eth0 netns beside
            ip link set lan1 master br-lan up
            ip -n beside addr add 10.1.0.3/24 dev eth0; ip -n beside link set eth0 up");
        let world = World::new();
        let nginx = Nginx::start_in(&world, ORIGIN, "");
        nginx.put("file", b"hello");
        let listener = there(Place::In("beside"), || TcpListener::bind("10.1.0.3:8080"));
        let _beside = Script::on(listener.expect("a free port"), |visit| {
            if visit.head().is_some() {
                visit.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
            }
        });
        let _hearsay = Hearsay::start_with(&world, &["--intercept", "br-lan"]);
        let is_counted = |url: &str| {
            assert_eq!(Curl::new(CLIENT, url).run().expect(200).text(), "hello");
            let listing = sh("nft list counters table inet hearsay");
            listing.lines().any(|it| it.contains("bytes") && !it.contains("bytes 0"))
        };
        assert!(!is_counted("http://10.1.0.3:8080/"));
        assert!(is_counted("http://10.2.0.2:8080/file"));
    });
}

#[test]
fn a_bridge_that_begins_or_ceases_to_filter_is_noticed() {
    const TEST: &str = "a_bridge_that_begins_or_ceases_to_filter_is_noticed";
    network::inside(TEST, || {
        if !bridge(TEST) {
            return;
        }
        filter(false);
        let world = World::new();
        let nginx = Nginx::start_in(&world, ORIGIN, "");
        nginx.put("file", b"hello");
        let hearsay = Hearsay::start_with(&world, &["--intercept", "br-lan"]);
        let is_served = || {
            ["-4", "-6"]
                .map(get)
                .iter()
                .all(|it| it.text() == "hello" && !it.field("via").is_empty())
        };
        assert!(is_served());
        filter(true);
        wait_until("the daemon to notice it", is_served);
        filter(false);
        // From the first moment on: what we do not see goes on without us.
        assert_eq!(["-4", "-6"].map(|it| get(it).expect(200).text()), ["hello", "hello"]);
        wait_until("the daemon to notice that it is over", is_served);
        // For one family, and for one bridge alone.
        sh("ip link set br-lan type bridge nf_call_ip6tables 1");
        wait_until("the daemon to notice the bridge's own setting", is_served);
        assert!(hearsay.log().contains("br_netfilter"), "{}", hearsay.log());
    });
}
