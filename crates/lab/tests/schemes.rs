//! The source of clients' bytes under each scheme, with real daemons that ask each other over the air.

use std::fs;

use serde_json::{Value, json};

use crate::lab::{World, can_run, missing, skipped};

const BYTES: f64 = 100_000.0;

/// A chain of three hops. The client at its end requests a file twice, then a client on the route requests it. For
/// another file, the client on the route is first.
const CHAIN: [&str; 12] = [
    "run",
    "chain",
    "--set",
    "hops=3",
    "--set",
    "bytes=100000",
    "--set",
    "files=2",
    "--set",
    "requests=3 3 2 2:2 3:2",
    "--json",
    "-",
];

#[track_caller]
fn run(world: &World, args: &[&str]) -> Value {
    let result = world.run(args).expect(0).json();
    let transfers = result["transfers"].as_array().expect("a list");
    assert!(transfers.iter().all(|it| it["sha256_ok"] == true), "{result:#}");
    result
}

fn sources(result: &Value) -> Vec<&str> {
    let transfers = result["transfers"].as_array().expect("a list");
    transfers.iter().map(|it| it["source"].as_str().unwrap_or("none")).collect()
}

/// How many times the files crossed the uplink, and how many times the first hop.
fn crossings(result: &Value) -> (f64, f64) {
    let of = |field: &str| result["gateway"][field].as_f64().expect("a number") / BYTES;
    (of("bytes_from_origin"), of("bytes_over_air"))
}

#[track_caller]
fn has_share(result: &Value, source: &str, share: f64) {
    let told = result["share_by_source"][source].as_f64().unwrap_or(0.0);
    assert!((told - share).abs() < 1e-9, "{source}: {told} instead of {share}");
}

/// Clients of other routers come to the gateway over the air, and are intercepted there.
#[test]
fn without_a_cache_what_repeats_crosses_the_uplink_once_and_the_air_each_time() {
    if !can_run("without_a_cache_what_repeats_crosses_the_uplink_once_and_the_air_each_time") {
        return;
    }
    let world = World::new();
    for scheme in ["default", "ph-thcp"] {
        let bypass = ["--scheme", scheme, "--set", "far=pair", "--set", "http=bypass"];
        let result = run(&world, &[&CHAIN[..], &bypass].concat());
        assert_eq!(sources(&result), ["origin"; 5]);
        let (uplink, air) = crossings(&result);
        assert!((2.0..2.2).contains(&uplink) && air > 5.0, "{scheme}: {uplink} {air}");
        let pair = &result["gateway"]["pair"];
        assert_eq!((&pair["tcp_flows"], &pair["requests"]), (&json!(5), &json!(0)), "{pair}");
    }
}

#[test]
fn with_thcp_access_routers_keep_and_relays_do_not() {
    if !can_run("with_thcp_access_routers_keep_and_relays_do_not") {
        return;
    }
    let world = World::new();
    let result = run(&world, &[&CHAIN[..], &["--scheme", "thcp"]].concat());
    assert_eq!(sources(&result), ["origin", "local", "gateway", "origin", "gateway"]);
    let (uplink, air) = crossings(&result);
    assert!((2.0..2.3).contains(&uplink) && (4.0..6.0).contains(&air), "{result:#}");
    has_share(&result, "local", 0.2);
    has_share(&result, "gateway", 0.4);
    world.nothing_is_left();
}

#[test]
fn with_ph_thcp_every_hop_keeps() {
    if !can_run("with_ph_thcp_every_hop_keeps") {
        return;
    }
    let world = World::new();
    let result = run(&world, &[&CHAIN[..], &["--scheme", "ph-thcp"]].concat());
    assert_eq!(sources(&result), ["origin", "local", "ph-local", "origin", "remote"]);
    let (uplink, air) = crossings(&result);
    assert!((2.0..2.3).contains(&uplink) && (2.0..3.0).contains(&air), "{result:#}");
    for source in ["local", "ph-local", "remote"] {
        has_share(&result, source, 0.2);
    }
    let hops: Vec<_> =
        result["transfers"].as_array().expect("a list").iter().map(|it| &it["hops"]).collect();
    assert_eq!(hops, [3, 3, 2, 2, 3]);
    world.nothing_is_left();
}

#[test]
fn babeld_tells_who_the_gateway_is() {
    const TEST: &str = "babeld_tells_who_the_gateway_is";
    if let Some(why) = missing(&["babeld"]) {
        return skipped(TEST, &why);
    }
    if !can_run(TEST) {
        return;
    }
    let world = World::new();
    let chain = [&CHAIN[..], &["--set", "routing=babel"]].concat();
    for (scheme, expected) in [
        ("thcp", ["origin", "local", "gateway", "origin", "gateway"]),
        ("ph-thcp", ["origin", "local", "ph-local", "origin", "remote"]),
    ] {
        let result = run(&world, &[&chain[..], &["--scheme", scheme]].concat());
        assert_eq!(sources(&result), expected, "{scheme}");
    }
    world.nothing_is_left();
}

#[test]
fn clients_that_ask_at_one_time_share_what_comes() {
    if !can_run("clients_that_ask_at_one_time_share_what_comes") {
        return;
    }
    let world = World::new();
    let args = ["run", "emulab8", "--set", "bytes=100000", "--set", "stagger_s=0.05"];
    let args = [&args[..], &["--scheme", "ph-thcp", "--json", "-"]].concat();
    let result = run(&world, &args);
    assert!((1.0..1.3).contains(&crossings(&result).0), "{result:#}");
    // Four routers are next to the gateway, and none downloads the file twice.
    let sources = sources(&result);
    let beyond = sources.iter().filter(|it| matches!(**it, "gateway" | "origin")).count();
    assert!(sources.len() == 7 && beyond <= 4, "{sources:?}");
    world.nothing_is_left();
}

/// A ring: `far` is two hops from the gateway, and so is `beside`, a neighbour on the other branch.
const RING: &str = "gateway = 'gate'\nbytes = 100_000\nreceivers = ['beside', 'far']\n\
    range_m = 110\ncarrier_sense_m = 250\n\
    [routers]\ngate = [0, 0]\nleft = [-80, 60]\nfar = [-50, 150]\n\
    beside = [50, 150]\nright = [80, 60]\n";

#[test]
fn with_ph_bcp_a_neighbour_on_another_branch_is_asked() {
    if !can_run("with_ph_bcp_a_neighbour_on_another_branch_is_asked") {
        return;
    }
    let world = World::new();
    fs::write(world.path("ring.toml"), RING).expect("it can be written");
    let ring = ["run", "./ring.toml", "--json", "-", "--set"];
    // A busy machine may need more than the usual 25 ms.
    let patient = [&ring[..], &["search_timeout_ms=500", "--scheme"]].concat();
    for more in [&["ph-bcp"][..], &["bcp"], &["ph-bcp", "--set", "locate=paper"]] {
        let result = run(&world, &[&patient[..], more].concat());
        assert_eq!(sources(&result), ["origin", "remote"], "{more:?}");
        let (uplink, air) = crossings(&result);
        // The second copy does not come from the gateway.
        assert!((1.0..1.2).contains(&uplink) && (1.0..1.5).contains(&air), "{more:?} {result:#}");
    }
    // Along the way it would.
    let along = ["search_timeout_ms=adaptive", "--scheme", "ph-thcp"];
    let result = run(&world, &[&ring[..], &along].concat());
    assert_eq!(sources(&result), ["origin", "gateway"]);
    world.nothing_is_left();
}

/// Router 5 is two hops from 3, which has the file, and three from the gateway. Router 4 is between the two.
#[test]
fn with_hints_and_hashes_what_is_two_hops_away_is_asked() {
    if !can_run("with_hints_and_hashes_what_is_two_hops_away_is_asked") {
        return;
    }
    let world = World::new();
    let ring = ["run", "ring8", "--set", "files=4", "--set", "bytes=100000", "--json", "-"];
    let hinted = run(&world, &[&ring[..], &["--scheme", "ph-hints"]].concat());
    // The first file finds routers that have not told how far others are.
    let asked = &sources(&hinted)[9..];
    assert_eq!(asked, ["origin", "remote", "ph-local"], "{hinted:#}");
    let (uplink, air) = crossings(&hinted);
    assert!((4.0..4.8).contains(&uplink) && (4.0..7.0).contains(&air), "{hinted:#}");
    let hashed = run(&world, &[&ring[..], &["--scheme", "ph-ghcp"]].concat());
    assert!(sources(&hashed).contains(&"remote"), "{hashed:#}");
    world.nothing_is_left();
}

/// How many of a transfer's bytes were overheard, in complete and in incomplete units.
fn overheard(transfer: &Value) -> f64 {
    let of = |source: &str| transfer["bytes_by_source"][source].as_f64().unwrap_or(0.0);
    of("overheard") + of("repaired")
}

#[test]
fn with_ditto_who_was_in_range_has_it_already() {
    if !can_run("with_ditto_who_was_in_range_has_it_already") {
        return;
    }
    let world = World::new();
    // Both receive all frames of the gateway.
    let text = "gateway = 'middle'\nbytes = 300_000\nreceivers = ['left', 'right']\n\
        range_m = 100\ncarrier_sense_m = 220\n\
        [routers]\nleft = [-90, 0]\nmiddle = [0, 0]\nright = [90, 0]\n";
    fs::write(world.path("mine.toml"), text).expect("it can be written");
    let result = run(&world, &["run", "./mine.toml", "--scheme", "ditto", "--json", "-"]);
    let transfers = result["transfers"].as_array().expect("a list");
    assert_eq!(overheard(&transfers[0]), 0.0, "{result:#}");
    // All but one or two units, and the list of units: no second copy goes over the air.
    assert!(overheard(&transfers[1]) > 0.9 * 300_000.0, "{result:#}");
    let of = |field: &str| result["gateway"][field].as_f64().expect("a number") / 300_000.0;
    assert!(of("bytes_from_origin") < 1.2 && of("bytes_over_air") < 1.4, "{result:#}");
    world.nothing_is_left();
}

#[test]
fn with_ditto_what_was_lost_in_part_is_mended() {
    if !can_run("with_ditto_what_was_lost_in_part_is_mended") {
        return;
    }
    let world = World::new();
    let args = ["run", "emulab8", "--set", "bytes=200000", "--scheme", "ditto", "--json", "-"];
    let result = run(&world, &args);
    let transfers = result["transfers"].as_array().expect("a list");
    for transfer in transfers {
        let sources = transfer["bytes_by_source"].as_object().expect("an object");
        let all: f64 = sources.values().filter_map(Value::as_f64).sum();
        assert_eq!(all, transfer["bytes"].as_f64().expect("a number"), "{transfer:#}");
    }
    // Router 5 receives the gateway's frames well, and asks fifth: it has overheard most of the file.
    let fifth = transfers.iter().find(|it| it["client"] == "5").expect("router 5");
    assert!(overheard(fifth) > 0.5 * 200_000.0, "{result:#}");
    let repaired = transfers.iter().filter_map(|it| it["bytes_by_source"]["repaired"].as_f64());
    assert!(repaired.sum::<f64>() > 0.0, "{result:#}");
    world.nothing_is_left();
}

/// One key configures daemons exactly as the paper describes, without our additions.
#[test]
fn with_ditto_as_published_nothing_is_mended() {
    if !can_run("with_ditto_as_published_nothing_is_mended") {
        return;
    }
    let world = World::new();
    let keys = ["--set", "bytes=200000", "--set", "paper=ditto", "--json", "-"];
    let result = run(&world, &[&["run", "emulab8"], &keys[..]].concat());
    assert_eq!(result["scheme"], "ditto");
    let transfers = result["transfers"].as_array().expect("a list");
    let of = |source: &str| {
        let bytes = transfers.iter().filter_map(|it| it["bytes_by_source"][source].as_f64());
        bytes.sum::<f64>()
    };
    assert!(of("overheard") > 0.0 && of("repaired") == 0.0, "{result:#}");
    world.nothing_is_left();
}

#[test]
fn with_ditto_what_was_lost_in_part_may_be_dropped() {
    if !can_run("with_ditto_what_was_lost_in_part_may_be_dropped") {
        return;
    }
    let world = World::new();
    let keys = ["--set", "bytes=200000", "--set", "halves=dropped", "--set", "streams=alone"];
    let args = [&["run", "emulab8", "--scheme", "ditto", "--json", "-"], &keys[..]].concat();
    let result = run(&world, &args);
    let transfers = result["transfers"].as_array().expect("a list");
    let of = |source: &str| {
        let bytes = transfers.iter().filter_map(|it| it["bytes_by_source"][source].as_f64());
        bytes.sum::<f64>()
    };
    assert!(of("overheard") > 0.0 && of("repaired") == 0.0, "{result:#}");
    world.nothing_is_left();
}
