//! The uplink moves to another router while a client downloads: the download is delayed, and later requests
//! use the new route.

use std::fs;

use serde_json::Value;

use crate::lab::{Kept, World, can_run, missing, skipped, wait_until};

const BYTES: u64 = 1_000_000;

/// Routers in a row; the uplink moves from the router at one end to the one at the other. It is slower than
/// the air, so that the gateway is never far ahead of the client. Under babeld the daemons find the gateway's
/// address; with static routes the lab configures it.
const ROW: &str = "gateway = 'old'\nreceivers = ['near', 'far']\nrequests = 'far near'\n\
    bytes = 1_000_000\nuplink_mbps = 1.0\nrouting = 'babel'\nroutes = ['old near far new']\n\
    [routers]\nold = [0, 0]\nnear = [200, 0]\nfar = [400, 0]\nnew = [600, 0]\n";

/// Commands for `ip`, and their namespaces. babeld alone would take a quarter of a minute to change the
/// default routes, and it does not announce routes that are set like this.
const MOVE: [(&str, &str); 17] = [
    // Adds a second wire to the origin.
    ("origin", "link add eth1 type veth peer name wan0 netns router-new"),
    ("origin", "addr add 10.79.1.2/30 dev eth1"),
    ("origin", "link set eth1 up"),
    ("router-new", "addr add 10.79.1.1/30 dev wan0"),
    ("router-new", "link set wan0 up"),
    // The first wire goes, and its routes with it.
    ("router-old", "link set wan0 down"),
    ("origin", "link set eth0 down"),
    // The old gateway's connections to the origin used its address on the first wire. Packets for that
    // address now take this route.
    ("router-near", "route add 10.79.0.1 via 10.77.0.1 dev wl0 onlink"),
    ("router-far", "route add 10.79.0.1 via 10.77.0.2 dev wl0 onlink"),
    ("router-new", "route add 10.79.0.1 via 10.77.0.3 dev wl0 onlink"),
    ("origin", "route add 10.79.0.1 via 10.79.1.1"),
    ("origin", "route add 10.77.0.0/16 via 10.79.1.1"),
    ("origin", "route add 10.78.0.0/16 via 10.79.1.1"),
    // Reverses all default routes.
    ("router-new", "route replace default via 10.79.1.2"),
    ("router-far", "route replace default via 10.77.0.4 dev wl0 onlink"),
    ("router-near", "route replace default via 10.77.0.3 dev wl0 onlink"),
    ("router-old", "route replace default via 10.77.0.2 dev wl0 onlink"),
];

/// Moves the uplink, and waits until every daemon knows it.
#[track_caller]
fn move_the_uplink(mesh: &Kept) {
    for (namespace, command) in MOVE {
        let words: Vec<_> = ["ip"].into_iter().chain(command.split(' ')).collect();
        mesh.say(namespace, &words);
    }
    wait_for(mesh, "new", |it| it["route"]["is_gateway"] == true);
    for (router, next) in [("far", "10.77.0.4"), ("near", "10.77.0.3"), ("old", "10.77.0.2")] {
        wait_for(mesh, router, |it| it["route"]["next_hop"] == next);
    }
}

/// Waits until a router's status satisfies a condition.
#[track_caller]
fn wait_for(mesh: &Kept, router: &str, says: impl Fn(&Value) -> bool) {
    let otherwise = || format!("{router}: {:#?}", mesh.status(router));
    wait_until(otherwise, || mesh.status(router).is_some_and(|it| says(&it)));
}

/// A member of each transfer.
fn each<'a>(result: &'a Value, name: &str) -> Vec<&'a Value> {
    result["transfers"].as_array().expect("a list").iter().map(|it| &it[name]).collect()
}

/// `later` are the caches that a new request passes, from the origin's side.
fn costs_a_delay(test: &str, scheme: &str, later: &[&str]) {
    if let Some(why) = missing(&["babeld"]) {
        return skipped(test, &why);
    }
    if !can_run(test) {
        return;
    }
    let world = World::new();
    fs::write(world.path("row.toml"), ROW).expect("it can be written");
    let args = ["run", "./row.toml", "--scheme", scheme, "--json", "result.json"];
    let mut mesh = Kept::begin(&world, &args);
    wait_for(&mesh, "far", |it| {
        it["report"]["peer_units_in_bytes"].as_u64().is_some_and(|bytes| bytes > BYTES / 5)
    });
    move_the_uplink(&mesh);
    mesh.wait_for_result();
    let result = fs::read(world.path("result.json")).expect("it is written");
    let result: Value = serde_json::from_slice(&result).expect("it is JSON");
    // The client behind `near` asked after the other had the whole file.
    assert_eq!(each(&result, "client"), ["far", "near"], "{result:#}");
    assert_eq!(each(&result, "sha256_ok"), [true, true], "{result:#}");
    assert_eq!(each(&result, "hops"), [1, 2], "{result:#}");
    assert_eq!(result["transfers"][0]["source"], "origin", "{result:#}");
    // Bytes are counted on the first wire only; the rest arrived over the second.
    let before = result["gateway"]["bytes_from_origin"].as_u64().expect("a number");
    assert!((BYTES / 5..BYTES).contains(&before), "{result:#}");
    let more = mesh.publish("more.bin", 50_000);
    let got = mesh.get("near", "more.bin").expect(&more);
    let caches = got.caches();
    let names: Vec<_> = caches.iter().filter_map(|it| it.split(';').next()).collect();
    assert_eq!(names, later, "{}", got.head);
    mesh.end().expect(0);
    world.nothing_is_left();
}

#[test]
fn an_uplink_that_moves_costs_a_delay_hop_by_hop() {
    const TEST: &str = "an_uplink_that_moves_costs_a_delay_hop_by_hop";
    costs_a_delay(TEST, "ph-thcp", &["router-new", "router-far", "router-near"]);
}

#[test]
fn an_uplink_that_moves_costs_a_delay_end_to_end() {
    const TEST: &str = "an_uplink_that_moves_costs_a_delay_end_to_end";
    costs_a_delay(TEST, "thcp", &["router-new", "router-near"]);
}
