//! Complete runs: the transfers, and the reports about them.

use std::fs;

use serde_json::Value;

use crate::lab::{Ended, Kept, Run, World, can_run, missing, skipped};

const BYTES: u64 = 100_000;

/// A chain of two hops whose client requests the same file twice.
const TWO_ROUNDS: [&str; 10] = [
    "run",
    "chain",
    "--set",
    "hops=2",
    "--set",
    "bytes=100000",
    "--set",
    "rounds=2",
    "--seed",
    "7",
];

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<_> =
        value.as_object().expect("an object").keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

fn transfers(result: &Value) -> &[Value] {
    result["transfers"].as_array().expect("a list")
}

fn clients(result: &Value) -> Vec<&str> {
    transfers(result).iter().map(|it| it["client"].as_str().expect("a name")).collect()
}

/// The source of each transfer's bytes; each has one.
#[track_caller]
fn sources(result: &Value) -> Vec<&str> {
    let sources = transfers(result).iter().map(|it| {
        let sources = keys(&it["bytes_by_source"]);
        assert_eq!(sources.len(), 1, "{it}");
        assert_eq!(it["bytes_by_source"][sources[0]], it["bytes"], "{it}");
        assert_eq!(it["source"], sources[0], "{it}");
        sources[0]
    });
    sources.collect()
}

#[track_caller]
fn number(value: &Value, pointer: &str) -> f64 {
    value.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("{pointer}: {value}"))
}

/// Checks names and units of a result's members, and properties of any result.
#[track_caller]
fn check(result: &Value, bytes: u64) {
    let all = "began_unix_s gateway mode provenance radio scenario schema scheme seed share_by_source \
               transfers valid wall_seconds";
    assert_eq!(keys(result).join(" "), all);
    assert_eq!(keys(&result["gateway"]).join(" "), "bytes_from_origin bytes_over_air units_cut");
    let radio = "airtime_seconds control_frames data_frames late_ms_p99 packets_per_file \
                 receiver reception routing_packets";
    assert_eq!(keys(&result["radio"]).join(" "), radio);
    assert_eq!(result["mode"], "lab");
    let late = number(result, "/radio/late_ms_p99");
    assert!(late >= 0.0 && result["valid"].is_boolean(), "{result}");
    for transfer in transfers(result) {
        let all = "bytes bytes_by_source client hops kbps seconds sha256_ok source ttfb_s url";
        assert_eq!(keys(transfer).join(" "), all);
        assert_eq!(transfer["sha256_ok"], true, "{transfer}");
        assert_eq!(transfer["bytes"], bytes, "{transfer}");
        assert!(transfer["url"].as_str().is_some_and(|it| it.starts_with("http://")));
        let seconds = number(transfer, "/seconds");
        // What this router has stored does not cross the air.
        let least = if transfer["source"] == "local" { 0.000_01 } else { 0.001 };
        assert!((least..seconds).contains(&number(transfer, "/ttfb_s")), "{transfer}");
        let kbps = bytes as f64 * 8.0 / seconds / 1000.0;
        assert!((number(transfer, "/kbps") / kbps - 1.0).abs() < 0.01, "{transfer}");
    }
    let packets = number(result, "/radio/packets_per_file") * transfers(result).len() as f64;
    assert!(packets > 0.0 && number(result, "/radio/data_frames") >= packets - 0.5, "{result}");
    let (data, control) = (number(result, "/radio/data_frames"), "/radio/control_frames");
    assert!((1.0..=data).contains(&number(result, control)), "{result}");
}

/// Two rounds over two hops without losses.
fn two_rounds(world: &World, scheme: &str) -> (Value, Ended) {
    let ended = world.run(&[&TWO_ROUNDS[..], &["--scheme", scheme, "--json", "-"]].concat());
    let ended = ended.expect(0);
    let result = ended.json();
    check(&result, BYTES);
    assert_eq!(result["scenario"], "chain");
    assert_eq!(result["scheme"], scheme);
    assert_eq!(result["seed"], 7);
    assert_eq!(clients(&result), ["2", "2"]);
    // Both transfers go over the air twice, in packets of 1500 bytes at most. All stations hear each other's
    // carrier, so at most one sends at a time.
    let payload = 2.0 * BYTES as f64;
    assert!((payload..1.5 * payload).contains(&number(&result, "/gateway/bytes_over_air")));
    assert!(number(&result, "/radio/packets_per_file") > 2.0 * BYTES as f64 / 1500.0, "{result}");
    let (air, wall) = (number(&result, "/radio/airtime_seconds"), number(&result, "/wall_seconds"));
    let at_11_mbps = 2.0 * payload * 8.0 / 11e6;
    assert!(at_11_mbps < air && air < wall && wall < ended.took.as_secs_f64(), "{result}");
    (result, ended)
}

#[test]
fn what_goes_to_standard_output_stands_there_alone() {
    const TEST: &str = "what_goes_to_standard_output_stands_there_alone";
    if !can_run(TEST) {
        return;
    }
    let world = World::new();
    // Of the test's own: /dev/stdout is the machine's.
    std::os::unix::fs::symlink("/proc/self/fd/1", world.path("stdout")).expect("a link");
    let args = ["run", "chain", "--set", "hops=1", "--set", "bytes=20000", "--json", "json"];
    let page = world.run(&[&args[..], &["--html", "stdout"]].concat()).expect(0).out;
    assert!(page.starts_with('<') && page.trim_end().ends_with('>'), "{page}");
    let capture = world.run(&[&args[..], &["--pcap", "1=stdout"]].concat()).expect(0).out;
    assert!(capture.len() > 20_000 && !capture.contains("sha256"), "{}", capture.len());
}

#[test]
fn losses_above_the_mac_are_counted_and_repaired_by_tcp() {
    if !can_run("losses_above_the_mac_are_counted_and_repaired_by_tcp") {
        return;
    }
    let world = World::new();
    let more = ["--set", "loss_above_mac=0.05", "--scheme", "end-to-end", "--json", "-"];
    let result = world.run(&[&TWO_ROUNDS[..], &more].concat()).expect(0).json();
    for transfer in transfers(&result) {
        assert_eq!((&transfer["sha256_ok"], &transfer["bytes"]), (&true.into(), &BYTES.into()));
    }
    let (lost, frames) =
        (number(&result, "/radio/lost_above_mac"), number(&result, "/radio/data_frames"));
    assert!(lost > 0.0 && lost < 0.15 * frames, "{result}");
    world.nothing_is_left();
}

#[test]
fn without_a_cache_every_transfer_comes_from_the_origin() {
    if !can_run("without_a_cache_every_transfer_comes_from_the_origin") {
        return;
    }
    let world = World::new();
    let (result, _) = two_rounds(&world, "end-to-end");
    assert_eq!(sources(&result), ["origin", "origin"]);
    let from_origin = number(&result, "/gateway/bytes_from_origin");
    assert!((2.0..2.6).contains(&(from_origin / BYTES as f64)), "{result}");
    world.nothing_is_left();
}

#[test]
fn a_gateway_that_caches_asks_the_origin_once() {
    if !can_run("a_gateway_that_caches_asks_the_origin_once") {
        return;
    }
    let world = World::new();
    let (result, ended) = two_rounds(&world, "default");
    assert_eq!(sources(&result), ["origin", "gateway"]);
    let from_origin = number(&result, "/gateway/bytes_from_origin");
    assert!((1.0..1.3).contains(&(from_origin / BYTES as f64)), "{result}");
    // Standard output is for the result; progress goes to standard error.
    assert!(ended.err.contains("transfers"), "{}", ended.err);
    world.nothing_is_left();
}

#[test]
fn a_person_is_shown_a_table_and_given_files() {
    if !can_run("a_person_is_shown_a_table_and_given_files") {
        return;
    }
    let world = World::new();
    let ended = world.run(&[&TWO_ROUNDS[..], &["--json", "r.json", "--html", "r.html"]].concat());
    let ended = ended.expect(0);
    for part in ["http://origin/", "gateway", "kbit/s", "sha256", "ok"] {
        assert!(ended.out.contains(part), "no {part} in: {}", ended.out);
    }
    assert!(!ended.out.contains('{') && !ended.out.contains("WRONG"), "{}", ended.out);
    let json = fs::read(world.path("r.json")).expect("the result");
    check(&serde_json::from_slice(&json).expect("JSON"), BYTES);
    let page = fs::read_to_string(world.path("r.html")).expect("the report");
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
    // The map and the distribution of throughput; the page loads nothing from elsewhere.
    assert!(page.matches("<svg").count() >= 2 && !page.contains("src=\"http"), "{page}");
    world.nothing_is_left();
}

#[test]
fn a_quiet_run_says_nothing() {
    if !can_run("a_quiet_run_says_nothing") {
        return;
    }
    let world = World::new();
    let small = ["run", "chain", "--set", "hops=1", "--set", "bytes=50000"];
    let ended = world.run(&[&small[..], &["--quiet", "--json", "r.json"]].concat()).expect(0);
    let json = fs::read(world.path("r.json")).expect("the result");
    let result: Value = serde_json::from_slice(&json).expect("JSON");
    check(&result, 50_000);
    assert_eq!(ended.out, "");
    // A run that does not count says so on standard error, even with --quiet.
    assert!(ended.err.is_empty() || result["valid"] == false, "{}", ended.err);
    assert_eq!(ended.err.contains("NOT VALID"), result["valid"] == false, "{}", ended.err);
}

#[test]
fn transfers_that_overlap_are_told_in_the_order_in_which_they_began() {
    if !can_run("transfers_that_overlap_are_told_in_the_order_in_which_they_began") {
        return;
    }
    let world = World::new();
    let ended = world.run(&[
        "run",
        "chain",
        "--set",
        "hops=3",
        "--set",
        "bytes=100000",
        "--set",
        "receivers=3 1 2",
        "--set",
        "stagger_s=0.05",
        "--set",
        "files=2",
        "--json",
        "-",
    ]);
    let result = ended.expect(0).json();
    check(&result, BYTES);
    let clients = clients(&result);
    assert_eq!(clients.len(), 6);
    // Clients nearer to the gateway finish sooner, but begin later.
    let mut first = clients.clone();
    first.dedup();
    assert!(first[0] == "3", "{clients:?}");
    let urls: Vec<_> = transfers(&result).iter().map(|it| it["url"].as_str()).collect();
    assert!(urls.iter().any(|url| *url != urls[0]), "two files have two names: {urls:?}");
    world.nothing_is_left();
}

#[test]
fn the_longest_chain_reaches_its_end() {
    if !can_run("the_longest_chain_reaches_its_end") {
        return;
    }
    let world = World::new();
    let args = ["run", "chain", "--set", "hops=64", "--set", "bytes=1000", "--json", "-"];
    let result = world.run(&[&args[..], &["--scheme", "end-to-end"]].concat()).expect(0).json();
    check(&result, 1000);
    world.nothing_is_left();
}

#[test]
fn tcp_does_not_depend_on_the_host() {
    if !can_run("tcp_does_not_depend_on_the_host") {
        return;
    }
    let world = World::new();
    let mesh = Kept::start(&world, &["run", "chain", "--set", "hops=1", "--set", "bytes=1000"]);
    for machine in ["router-0", "router-1", "client-1", "origin"] {
        let avoids = ["cat", "/proc/sys/net/ipv4/tcp_congestion_control"];
        assert_eq!(mesh.say(machine, &avoids), "reno\n", "{machine}");
    }
    mesh.end().expect(0);
    world.nothing_is_left();
}

#[test]
fn a_scenario_of_ones_own_is_run() {
    if !can_run("a_scenario_of_ones_own_is_run") {
        return;
    }
    let world = World::new();
    let text = "gateway = 'middle'\nbytes = 50_000\nfiles = 2\nrange_m = 100\n\
        carrier_sense_m = 220\n[routers]\nleft-1 = [-90, 0]\nmiddle = [0, 0]\nright_2 = [90, 0]\n";
    fs::write(world.path("mine.toml"), text).expect("it can be written");
    // The environment does not matter.
    let mut command = world.lab(&["run", "./mine.toml", "--json", "-"]);
    command.env("http_proxy", "http://192.0.2.1:1").env("ALL_PROXY", "http://192.0.2.1:1");
    let result = Run::start(command).end().expect(0).json();
    check(&result, 50_000);
    assert_eq!(result["scenario"], "mine");
    let mut clients = clients(&result);
    clients.sort_unstable();
    assert_eq!(clients, ["left-1", "left-1", "right_2", "right_2"]);
    assert_eq!(sources(&result).iter().filter(|it| **it == "origin").count(), 2);
    world.nothing_is_left();
}

#[test]
fn babeld_finds_the_routes_of_a_lossy_mesh() {
    const TEST: &str = "babeld_finds_the_routes_of_a_lossy_mesh";
    if let Some(why) = missing(&["babeld"]) {
        return skipped(TEST, &why);
    }
    if !can_run(TEST) {
        return;
    }
    let world = World::new();
    let ended = world.run(&[
        "run",
        "emulab8",
        "--set",
        "routing=babel",
        "--set",
        "bytes=50000",
        "--json",
        "-",
    ]);
    let ended = ended.expect(0);
    let result = ended.json();
    check(&result, 50_000);
    assert_eq!(clients(&result), ["1", "2", "3", "4", "5", "6", "7"]);
    assert_eq!(sources(&result)[..2], ["origin", "gateway"]);
    assert!(ended.err.contains("routes"), "{}", ended.err);
    world.nothing_is_left();
}

#[test]
fn two_runs_at_once_do_not_disturb_each_other() {
    if !can_run("two_runs_at_once_do_not_disturb_each_other") {
        return;
    }
    let world = World::new();
    let emulab8 = world.start(&["run", "emulab8", "--set", "bytes=50000", "--json", "-"]);
    let chain = world.start(&[&TWO_ROUNDS[..], &["--json", "-"]].concat());
    let again = world.start(&[&TWO_ROUNDS[..], &["--json", "-"]].concat());
    for run in [chain, again] {
        let result = run.end().expect(0).json();
        check(&result, BYTES);
        assert_eq!(result["scenario"], "chain");
        assert_eq!(sources(&result), ["origin", "local"]);
    }
    let result = emulab8.end().expect(0).json();
    check(&result, 50_000);
    assert_eq!(result["scenario"], "emulab8");
    assert_eq!(clients(&result), ["1", "2", "3", "4", "5", "6", "7"]);
    world.nothing_is_left();
}
