//! The uplink gets another address, or another uplink takes over, while clients are served.

use std::net::TcpListener;

use crate::world::network::{self, CLIENT, ORIGIN, there};
use crate::world::{Curl, Hearsay, Script, World, assert_same, noise, sh, wait_until};

const LENGTH: usize = 400_000;

/// An origin that sends half of `/long` and then nothing more, and all else at once; it knows ranges.
fn origin(body: Vec<u8>) -> Script {
    let listener = there(ORIGIN, || TcpListener::bind("[::]:80")).expect("port 80 is free");
    Script::on(listener, move |visit| {
        while let Some(head) = visit.head() {
            let head = head.to_ascii_lowercase();
            let from = head.split_once("range: bytes=").and_then(|(_, it)| it.split_once('-'));
            let from = from.and_then(|(from, _)| from.parse::<usize>().ok());
            let (status, rest) = match from {
                Some(from) => (
                    format!(
                        "206 Partial Content\r\nContent-Range: bytes {from}-{}/{LENGTH}",
                        LENGTH - 1
                    ),
                    &body[from..],
                ),
                None => ("200 OK".to_owned(), &body[..]),
            };
            visit.send(format!(
                "HTTP/1.1 {status}\r\nETag: \"v\"\r\nCache-Control: max-age=60\r\nContent-Length: {}\r\n\r\n",
                rest.len()
            ));
            if head.starts_with("get /long") && from.is_none() {
                visit.send(&rest[..LENGTH / 2]);
                visit.wait_for_end();
            } else {
                visit.send(rest);
            }
        }
    })
}

/// A client downloads, the uplink changes meanwhile, and another client asks: both get all bytes.
fn served_through(change: &str, host: &str) {
    let body = noise(1, LENGTH);
    let origin = origin(body.clone());
    let world = World::new();
    let hearsay = Hearsay::start_with(&world, &["--intercept", "lan0"]);
    let get = |path: &str| {
        Curl::new(CLIENT, &format!("http://{host}/{path}")).args(&["--max-time", "25"])
    };
    // Its connection is kept.
    assert_same(&get("first").run().expect(200).body, &body);
    let long = get("long").start();
    wait_until("half of it", || long.received() > LENGTH as u64 / 3);
    sh(change);
    assert_same(&get("second").run().expect(200).body, &body);
    assert_same(&long.wait().expect(200).body, &body);
    let resumed = origin.heads().iter().any(|it| it.to_ascii_lowercase().contains("range: bytes="));
    assert!(resumed, "{:?}", origin.heads());
    drop(hearsay);
}

#[test]
fn another_address_of_the_uplink_holds_nobody_up() {
    network::inside("another_address_of_the_uplink_holds_nobody_up", || {
        sh("sysctl -qw net.ipv4.conf.wan0.promote_secondaries=1");
        served_through(
            "ip addr add 10.2.0.9/24 dev wan0; ip addr del 10.2.0.1/24 dev wan0
             ip route replace default via 10.2.0.2",
            "10.2.0.2",
        );
    });
}

/// A second uplink, by which the origin has the address 198.51.100.7, too.
fn second_uplink() {
    sh("ip link add wan1 type veth peer name eth1 netns origin
        ip addr add 10.4.0.1/24 dev wan1; ip link set wan1 up
        ip -n origin addr add 10.4.0.2/24 dev eth1; ip -n origin link set eth1 up
        ip -n origin addr add 198.51.100.7/32 dev lo
        ip route replace default via 10.2.0.2 metric 100; ip route del default metric 0
        ip route add default via 10.4.0.2 metric 200");
}

#[test]
fn a_second_uplink_takes_over() {
    network::inside("a_second_uplink_takes_over", || {
        second_uplink();
        served_through("ip link set wan0 down", "198.51.100.7");
    });
}

#[test]
fn clients_are_served_over_several_uplinks_at_once() {
    network::inside("clients_are_served_over_several_uplinks_at_once", || {
        second_uplink();
        sh("ip route del default metric 100; ip route del default metric 200
            ip route add default nexthop via 10.2.0.2 dev wan0 nexthop via 10.4.0.2 dev wan1");
        let _origin = origin(noise(2, LENGTH));
        let world = World::new();
        let hearsay = Hearsay::start_with(&world, &["--intercept", "lan0"]);
        for number in 0..8 {
            let url = format!("http://198.51.100.7/{number}");
            let reply = Curl::new(CLIENT, &url).args(&["--max-time", "20"]).run().expect(200);
            assert!(!reply.field("via").is_empty(), "{reply:?}");
        }
        assert_eq!(hearsay.status()["intercept"]["out"], serde_json::json!(["wan0", "wan1"]));
    });
}
