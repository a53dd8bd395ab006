//! The engine's events in the daemon's log: under the router's name, and only at the levels that include them.

use serde_json::Value;

use crate::world::{Hearsay, Nginx, World, noise};

/// Downloads a file twice through a router with this log level, and returns the router's log.
fn log_of(level: &str) -> String {
    let world = World::new();
    let nginx = Nginx::start(&world, "");
    nginx.put("file", &noise(1, 100_000));
    let config = world.write("hearsay.toml", b"name = \"router-7\"\nlisten = [\"127.0.0.1:0\"]\n");
    let config = config.display().to_string();
    let mut hearsay = Hearsay::start_with(&world, &["--config", &config, "--log", level]);
    hearsay.get(&nginx.url("file")).expect(200);
    hearsay.wait_until_durable();
    hearsay.get(&nginx.url("file")).expect(200).expect_hit();
    hearsay.terminate();
    hearsay.log()
}

/// The events in a log.
fn events(log: &str) -> Vec<Value> {
    let lines = log.lines().filter(|line| line.contains("router-7"));
    let events = lines.filter_map(|line| line.get(line.find('{')?..=line.rfind('}')?));
    events.map(|text| serde_json::from_str(text).expect("an event is JSON")).collect()
}

#[test]
fn each_step_is_logged_under_the_routers_name() {
    let log = log_of("debug");
    let events = events(&log);
    let place = |kind: &str| events.iter().position(|event| event["event"] == kind);
    let steps = ["request", "miss", "source", "head", "transfer", "transfer_ends", "hit"];
    let places = steps.map(|kind| place(kind).unwrap_or_else(|| panic!("no {kind} in: {log}")));
    assert!(places.is_sorted(), "{log}");
    assert!(events[0]["url"].as_str().is_some_and(|url| url.ends_with("/file")), "{log}");
    assert_eq!(place("timer"), None, "timers are for `trace`");
}

#[test]
fn timers_are_logged_at_trace_and_nothing_of_it_at_info() {
    let log = log_of("trace");
    assert!(log.contains("sleeps") && log.contains("timer=Sync"), "{log}");
    assert!(!log_of("info").contains("router-7"));
}
