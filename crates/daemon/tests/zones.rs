//! The router's firewall stays in force: a zone reaches no destination through the daemon that it may not reach
//! directly. Four namespaces, both address families:
//!
//! ```text
//!   guest 10.1.0.2, fd01::2 ── lan0 router wan0 ── 198.51.100.2, 2001:db8:1::2, 10.2.0.2, fd02::2 wan
//!                                    in0
//!                                     └── 10.3.0.2, fd03::2, 2001:db8:3::2 inside
//! ```
//!
//! The firewall forwards guest → wan and connections that inside opens, and drops the rest.

use std::net::TcpListener;

use crate::world::network::{self, CLIENT, ORIGIN, there};
use crate::world::{Curl, Hearsay, Place, Reply, Script, World, row, sh, wait_until};

const GUEST: Place = CLIENT;
const WAN: Place = ORIGIN;
const INSIDE: Place = Place::In("inside");

const SECRET: &str = "of the LAN alone";
const PUBLIC: &str = "for everybody";

/// The addresses of the page inside; the last is a global address.
const INNER: [&str; 3] = ["10.3.0.2", "[fd03::2]", "[2001:db8:3::2]"];
/// Public addresses of the page outside, and private ones.
const OUTER: [&str; 2] = ["198.51.100.2", "[2001:db8:1::2]"];
const OUTER_PRIVATE: [&str; 2] = ["10.2.0.2", "[fd02::2]"];

/// The zones, and a page on two ports inside and outside.
fn zones() -> [Script; 4] {
    sh("ip netns add inside
        ip link add in0 type veth peer name eth0 netns inside
        ip addr add 10.3.0.1/24 dev in0; ip addr add fd03::1/64 dev in0 nodad
        ip addr add 2001:db8:3::1/64 dev in0 nodad; ip link set in0 up
        ip -n inside link set lo up; ip -n inside link set eth0 up
        ip -n inside addr add 10.3.0.2/24 dev eth0; ip -n inside addr add fd03::2/64 dev eth0 nodad
        ip -n inside addr add 2001:db8:3::2/64 dev eth0 nodad
        ip -n inside route add default via 10.3.0.1; ip -n inside route add default via fd03::1
        ip addr add 198.51.100.1/24 dev wan0; ip addr add 2001:db8:1::1/64 dev wan0 nodad
        ip -n origin addr add 198.51.100.2/24 dev eth0
        ip -n origin addr add 2001:db8:1::2/64 dev eth0 nodad
        printf '%s\\n' '10.3.0.2 inner.test' 'fd03::2 inner.test' '198.51.100.2 outer.test' >>/etc/hosts
        nft add table inet zones
        nft add chain inet zones forward '{ type filter hook forward priority 0; policy drop; }'
        nft add rule inet zones forward ct state established,related accept
        nft add rule inet zones forward iifname lan0 oifname wan0 accept
        nft add rule inet zones forward iifname in0 accept");
    let pages = |place, text| [80, 8080].map(|port| page(place, port, text));
    let ([a, b], [c, d]) = (pages(INSIDE, SECRET), pages(WAN, PUBLIC));
    [a, b, c, d]
}

fn page(place: Place, port: u16, text: &'static str) -> Script {
    let listener = there(place, || TcpListener::bind(("::", port))).expect("the port is free");
    Script::on(listener, move |visit| {
        if visit.head().is_some() {
            visit.send(format!(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=99\r\nContent-Length: {}\r\n\r\n{text}",
                text.len()
            ));
        }
    })
}

fn start(world: &World, config: &str, args: &[&str]) -> Hearsay {
    let path = world.write("hearsay.toml", config.as_bytes()).display().to_string();
    Hearsay::start_with(world, &[&["--config", &path], args].concat())
}

const OPEN: &str = "listen = [\"0.0.0.0:3128\", \"[::]:3128\"]\n";
const BY_4: &str = "http://10.1.0.1:3128";
const BY_6: &str = "http://[fd01::1]:3128";

fn by_proxy(place: Place, proxy: &str, url: &str, args: &[&str]) -> Reply {
    Curl::new(place, url).args(&["-x", proxy, "--connect-timeout", "2"]).args(args).run()
}

/// That a reply is a refusal of ours, and has nothing of the LAN.
#[track_caller]
fn refused(reply: &Reply) {
    assert_eq!(reply.status, 403, "{reply:?}");
    assert!(!reply.text().contains(SECRET), "{reply:?}");
}

/// That a tunnel is refused.
#[track_caller]
fn no_tunnel(place: Place, proxy: &str, url: &str) {
    let reply = by_proxy(place, proxy, url, &["-p"]);
    assert!(reply.exit != 0 && reply.body.is_empty(), "{url}: {reply:?}");
}

#[test]
fn an_intercepted_client_reaches_what_the_firewall_lets_it_and_nothing_else() {
    network::inside(
        "an_intercepted_client_reaches_what_the_firewall_lets_it_and_nothing_else",
        || {
            let world = World::new();
            let pages = zones();
            let direct = |host: &str| {
                let url = format!("http://{host}/");
                Curl::new(GUEST, &url).args(&["--connect-timeout", "1"]).run()
            };
            INNER.iter().for_each(|host| assert_ne!(direct(host).exit, 0, "the firewall is open"));
            let hearsay = start(&world, "listen = []\n", &["--intercept", "lan0"]);
            for host in OUTER.into_iter().chain(OUTER_PRIVATE) {
                let reply = direct(host).expect(200);
                assert!(reply.text() == PUBLIC && !reply.field("via").is_empty(), "{reply:?}");
            }
            for host in INNER {
                let reply = direct(host);
                assert!(reply.exit != 0 && reply.status == 0, "{host}: {reply:?}");
            }
            // An IPv6 address that NAT64 translates to an address inside.
            sh("ip -6 route add 64:ff9b::/96 via fd02::2");
            assert_eq!(direct("[64:ff9b::10.3.0.2]").status, 0);
            // A routing rule sends all of a guest's packets out; it does not apply to the daemon's own packets.
            sh("ip rule add priority 1000 from 10.1.0.0/24 lookup 100
                ip route add default via 10.2.0.2 table 100");
            let reply = direct("10.3.0.2");
            assert!(!reply.text().contains(SECRET), "led inside by our own route: {reply:?}");
            assert_eq!(direct(OUTER[0]).expect(200).text(), PUBLIC);
            assert!(pages[0].heads().is_empty(), "{:?}", pages[0].heads());
            assert_eq!(hearsay.status()["intercept"]["out"], serde_json::json!(["wan0"]));
        },
    );
}

#[test]
fn what_is_intercepted_follows_the_default_route() {
    network::inside("what_is_intercepted_follows_the_default_route", || {
        let world = World::new();
        let _pages = zones();
        sh("ip route del default; ip -6 route del default");
        let hearsay = start(&world, "listen = []\n", &["--intercept", "lan0"]);
        let url = format!("http://{}/", OUTER[0]);
        let via = || Curl::new(GUEST, &url).run().expect(200).field("via").to_owned();
        assert_eq!(via(), "", "it was intercepted though nothing leads out");
        let note = hearsay.status()["intercept"]["note"].to_string();
        assert!(note.contains("[access] out"), "{note}");
        sh("ip route add default via 10.2.0.2");
        wait_until("the rules to follow the route", || !via().is_empty());
        sh("ip route del default");
        wait_until("the rules to follow the route back", || via().is_empty());
        drop(hearsay);
        let named = "listen = []\n[access]\nout = [\"wan0\"]\n";
        let _hearsay = start(&world, named, &["--intercept", "lan0"]);
        assert!(!via().is_empty(), "what is named does not lead out");
    });
}

#[test]
fn a_client_of_the_proxy_reaches_no_other_zone() {
    network::inside("a_client_of_the_proxy_reaches_no_other_zone", || {
        let world = World::new();
        let pages = zones();
        let _hearsay = start(&world, OPEN, &[]);
        for proxy in [BY_4, BY_6] {
            let ask = |url: &str| by_proxy(GUEST, proxy, url, &[]);
            let inner = ["inner.test", "[64:ff9b::10.3.0.2]", "[::10.3.0.2]", "[::ffff:10.3.0.2]"];
            for host in INNER.into_iter().chain(inner).chain(OUTER_PRIVATE) {
                refused(&ask(&format!("http://{host}/")));
                no_tunnel(GUEST, proxy, &format!("http://{host}:443/"));
            }
            for host in OUTER.into_iter().chain(["outer.test"]) {
                assert_eq!(ask(&format!("http://{host}/")).expect(200).text(), PUBLIC);
                let port = ask(&format!("http://{host}:8080/"));
                refused(&port);
                assert!(port.text().contains("[access] ports"), "{port:?}");
                no_tunnel(GUEST, proxy, &format!("http://{host}:80/"));
            }
        }
        assert!(pages[0].heads().is_empty() && pages[1].heads().is_empty(), "led inside");
        // A client on the router could dial this destination itself.
        let home = Curl::by_proxy(([127, 0, 0, 1], 3128).into(), "http://10.3.0.2:8080/").run();
        assert_eq!(home.expect(200).text(), SECRET);
        let tunnel = Curl::by_proxy(([127, 0, 0, 1], 3128).into(), "http://10.3.0.2:8080/");
        assert_eq!(tunnel.args(&["-p"]).run().expect(200).text(), SECRET);
        // Its stored response is not served to other clients.
        refused(&by_proxy(GUEST, BY_4, "http://10.3.0.2:8080/", &[]));
    });
}

#[test]
fn what_the_router_fetches_itself_is_for_its_clients_if_they_could_get_it() {
    network::inside(
        "what_the_router_fetches_itself_is_for_its_clients_if_they_could_get_it",
        || {
            let world = World::new();
            let pages = zones();
            let hearsay = start(&world, OPEN, &[]);
            let home = |url: &str| Curl::by_proxy(([127, 0, 0, 1], 3128).into(), url).run();
            assert_eq!(home("http://outer.test/").expect(200).text(), PUBLIC);
            hearsay.wait_until_durable();
            assert_eq!(
                by_proxy(GUEST, BY_4, "http://outer.test/", &[]).expect_hit().text(),
                PUBLIC
            );
            assert_eq!(pages[2].heads().len(), 1);
            // A response that only the router may fetch is served only to it, also when its URL has a host name.
            for url in ["http://inner.test/", "http://10.3.0.2/", "http://10.3.0.2:8080/"] {
                assert_eq!(home(url).expect(200).text(), SECRET);
                hearsay.wait_until_durable();
                assert_eq!(home(url).expect_hit().text(), SECRET);
                refused(&by_proxy(GUEST, BY_4, url, &[]));
            }
        },
    );
}

#[test]
fn the_operator_can_permit_private_destinations_and_ports() {
    network::inside("the_operator_can_permit_private_destinations_and_ports", || {
        let world = World::new();
        let _pages = zones();
        let config =
            format!("{OPEN}[access]\nprivate = [\"10.3.0.0/24\", \"fd03::/64\"]\nports = [8080]\n");
        let _hearsay = start(&world, &config, &[]);
        for url in ["http://10.3.0.2/", "http://[fd03::2]:8080/", "http://inner.test/"] {
            assert_eq!(by_proxy(GUEST, BY_4, url, &[]).expect(200).text(), SECRET);
        }
        let tunnel = by_proxy(GUEST, BY_4, "http://10.3.0.2:8080/", &["-p"]);
        assert_eq!(tunnel.expect(200).text(), SECRET);
        refused(&by_proxy(GUEST, BY_4, "http://[2001:db8:3::2]/", &[]));
        refused(&by_proxy(GUEST, BY_4, "http://10.2.0.2/", &[]));
        no_tunnel(GUEST, BY_4, "http://10.3.0.2:80/");
    });
}

#[test]
fn a_private_address_behind_the_uplink_is_no_local_client() {
    network::inside("a_private_address_behind_the_uplink_is_no_local_client", || {
        let world = World::new();
        let pages = zones();
        let hearsay = start(&world, OPEN, &[]);
        for proxy in ["http://10.2.0.1:3128", "http://[fd02::1]:3128"] {
            for host in INNER.into_iter().chain(OUTER) {
                let reply = by_proxy(WAN, proxy, &format!("http://{host}/"), &[]);
                refused(&reply);
                assert!(reply.text().contains("local clients only"), "{reply:?}");
            }
            no_tunnel(WAN, proxy, "http://198.51.100.2:443/");
        }
        // The same holds while there is no default route.
        sh("ip route del default; ip -6 route del default");
        wait_until("nothing to lead out", || {
            hearsay.status()["intercept"]["out"] == serde_json::json!([])
        });
        refused(&by_proxy(WAN, "http://10.2.0.1:3128", "http://10.3.0.2/", &[]));
        sh("ip route add default via 10.2.0.2; ip route add default via fd02::2");
        assert!(pages.iter().all(|page| page.heads().is_empty()));
        drop(hearsay);
        let allow = format!("{OPEN}allow = [\"10.2.0.0/24\"]\n");
        let _hearsay = start(&world, &allow, &[]);
        let url = format!("http://{}/", OUTER[0]);
        let reply = by_proxy(WAN, "http://10.2.0.1:3128", &url, &[]);
        assert_eq!(reply.expect(200).text(), PUBLIC);
    });
}

#[test]
fn an_interface_that_is_not_there_is_refused_at_the_start() {
    let world = World::new();
    let config = world.write("conf", b"[access]\nout = [\"nosuch0\"]\n").display().to_string();
    let (status, said) = Hearsay::try_start(&world, &["--config", &config]);
    assert_eq!(status.code(), Some(2), "{said}");
    assert!(said.contains("this machine has no interface \"nosuch0\""), "{said}");
    assert!(!world.path("store").exists(), "half a start");
}

/// A row of three routers, as in `peers.rs`; the gateway has a LAN of its own.
fn row_with_a_lan() {
    row::build();
    sh("ip netns add inside
            ip -n r3 link add in0 type veth peer name eth0 netns inside
            ip -n r3 addr add 10.3.0.1/24 dev in0; ip -n r3 link set in0 up
            ip -n inside link set lo up; ip -n inside link set eth0 up
            ip -n inside addr add 10.3.0.2/24 dev eth0; ip -n inside route add default via 10.3.0.1
            ip -n r3 addr add 198.51.100.1/24 dev wan0
            ip -n origin addr add 198.51.100.2/24 dev eth0
            printf '%s\\n' '10.3.0.2 inner.test' '198.51.100.2 outer.test' >>/etc/hosts
            ip netns exec r3 nft add table inet zones
            ip netns exec r3 nft add chain inet zones forward '{ type filter hook forward priority 0; policy drop; }'
            ip netns exec r3 nft add rule inet zones forward ct state established accept
            ip netns exec r3 nft add rule inet zones forward oifname wan0 accept");
}

#[test]
fn what_explicit_clients_alone_may_reach_is_given_to_no_peer() {
    network::inside("what_explicit_clients_alone_may_reach_is_given_to_no_peer", || {
        row_with_a_lan();
        let inner = page(INSIDE, 80, SECRET);
        let _outer = page(WAN, 80, PUBLIC);
        let worlds = [World::new(), World::new(), World::new()];
        let [first, _second] =
            [(0, "r1"), (1, "r2")].map(|(at, name)| row::router(&worlds[at], name, ""));
        let permitting = "[access]\nprivate = [\"10.3.0.0/24\"]\n";
        let gateway = row::proxy(&worlds[2], "r3", "10.3.0.1:3128", permitting);
        wait_until("a route", || first.status()["route"]["up"] == true);
        let get = |url: &str| Curl::new(GUEST, url).args(&["--max-time", "8"]).run();
        for host in ["inner.test", "10.3.0.2"] {
            let url = format!("http://{host}/");
            let inside = || by_proxy(INSIDE, "http://10.3.0.1:3128", &url, &[]);
            assert_eq!(inside().expect(200).text(), SECRET);
            gateway.wait_until_durable();
            assert_eq!(inside().expect_hit().text(), SECRET);
            let reply = get(&url);
            assert!(!reply.text().contains(SECRET), "a peer was given it: {reply:?}");
        }
        assert!(gateway.number("/report/asks_in") >= 2);
        assert_eq!(inner.heads().len(), 2);
        assert_eq!(get("http://outer.test/").expect(200).text(), PUBLIC);
    });
}

#[test]
fn what_a_peer_asks_for_leaves_by_the_gateways_uplink_or_not_at_all() {
    network::inside("what_a_peer_asks_for_leaves_by_the_gateways_uplink_or_not_at_all", || {
        row_with_a_lan();
        let inner = page(INSIDE, 80, SECRET);
        let _outer = [page(WAN, 80, PUBLIC), page(WAN, 8080, PUBLIC)];
        let worlds = [World::new(), World::new(), World::new()];
        let [first, _second, gateway] =
            [(0, "r1"), (1, "r2"), (2, "r3")].map(|(at, name)| row::router(&worlds[at], name, ""));
        wait_until("a route", || first.status()["route"]["up"] == true);
        let get = |url: &str| Curl::new(GUEST, url).args(&["--max-time", "8"]).run();
        let reply = get("http://outer.test/").expect(200);
        assert!(
            format!("{reply:?}").contains("cache-status: r3;"),
            "not by the gateway: {reply:?}"
        );
        let reply = get("http://inner.test/");
        assert!(!reply.text().contains(SECRET), "led into the gateway's LAN: {reply:?}");
        assert!(inner.heads().is_empty(), "{:?}", inner.heads());
        assert!(gateway.number("/report/asks_in") >= 1);
        drop(gateway);
        let _gateway = row::router(&worlds[2], "r3", "direct = [\"10.3.0.0/24\"]\n");
        wait_until("the gateway to lead to what is direct", || {
            get("http://inner.test/").text().contains(SECRET)
        });
    });
}
