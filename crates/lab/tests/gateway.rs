//! Clients behind the gateway itself, and its uplink, with real daemons.

use serde_json::Value;

use crate::lab::{Kept, World, can_run};

fn each<'a>(result: &'a Value, name: &str) -> Vec<&'a Value> {
    result["transfers"].as_array().expect("a list").iter().map(|it| &it[name]).collect()
}

#[track_caller]
fn run(world: &World, args: &[&str]) -> Value {
    let result = world.run(&[&["run"], args, &["--json", "-"]].concat()).expect(0).json();
    assert!(each(&result, "sha256_ok").iter().all(|it| **it == true), "{result:#}");
    result
}

#[test]
fn one_router_serves_its_own_client_over_a_thin_uplink() {
    if !can_run("one_router_serves_its_own_client_over_a_thin_uplink") {
        return;
    }
    let world = World::new();
    for (scheme, second) in [("end-to-end", "origin"), ("default", "gateway"), ("ditto", "gateway")]
    {
        let args = ["uplink", "--scheme", scheme, "--set", "bytes=50000", "--set", "rounds=2"];
        let result = run(&world, &args);
        assert_eq!(each(&result, "source"), ["origin", second], "{scheme}: {result:#}");
        assert_eq!(each(&result, "hops"), [0, 0], "{result:#}");
        // 50 kB at 512 kbit/s take 0.78 s.
        assert!(each(&result, "seconds")[0].as_f64() > Some(0.78), "{result:#}");
        assert_eq!(result["gateway"]["bytes_over_air"], 0, "{result:#}");
    }
    world.nothing_is_left();
}

#[test]
fn clients_of_the_gateway_and_of_others_share_its_store() {
    if !can_run("clients_of_the_gateway_and_of_others_share_its_store") {
        return;
    }
    let world = World::new();
    let keys = ["--set", "hops=1", "--set", "bytes=50000", "--set", "files=2"];
    let chain = [&["chain", "--set", "requests=0:1 1:1 1:2 0:2"], &keys[..]].concat();
    for scheme in ["default", "ph-thcp"] {
        let result = run(&world, &[&chain[..], &["--scheme", scheme]].concat());
        let expected = ["origin", "gateway", "origin", "gateway"];
        assert_eq!(each(&result, "source"), expected, "{scheme}: {result:#}");
        assert_eq!(each(&result, "hops"), [0, 1, 1, 0], "{result:#}");
    }
    world.nothing_is_left();
}

/// The number of segments that the origin's kernel has sent again, and whether the run says that it was late.
#[track_caller]
fn sent_again(loss: &str) -> (u64, bool) {
    let world = World::new();
    let loss = format!("uplink_loss={loss}");
    let args = ["run", "uplink", "--set", "bytes=100000", "--set", "uplink_mbps=4", "--set", &loss];
    let mesh = Kept::start(&world, &args);
    let text = mesh.say("origin", &["cat", "/proc/net/snmp"]);
    let is_late = mesh.end().expect(0).is_late();
    world.nothing_is_left();
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let (names, values) = (lines.next().expect("names"), lines.next().expect("values"));
    let mut fields = names.split(' ').zip(values.split(' '));
    let found = fields.find(|(name, _)| *name == "RetransSegs");
    (found.and_then(|(_, value)| value.parse().ok()).expect("a number"), is_late)
}

#[test]
fn the_uplink_loses_packets_if_it_is_told_to() {
    if !can_run("the_uplink_loses_packets_if_it_is_told_to") {
        return;
    }
    // What is late is sent again, too.
    let (without_loss, is_late) = sent_again("0");
    assert!(without_loss == 0 || is_late, "{without_loss}");
    // Some 70 segments: without a loss among them only once in a thousand runs.
    assert!(sent_again("0.1").0 > 0);
}
