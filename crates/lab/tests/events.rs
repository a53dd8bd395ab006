//! `hearsay-lab sim --events`: the engines' events follow their schema, a repetition gives the same, and other
//! output does not change.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::lab::World;
use crate::lab::provenance::{assert_origin, lasting};
use crate::lab::schema::{assert_valid, wrong_as};

/// A short run over three hops.
const SHORT: [&str; 8] =
    ["sim", "chain", "--set", "hops=3", "--set", "bytes=200000", "--set", "rounds=2"];

fn lines(world: &World, file: &str) -> Vec<Value> {
    let text = fs::read_to_string(world.path(file)).expect("the file of events");
    let lines = text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON"));
    lines.collect()
}

#[test]
fn each_line_is_an_event_as_the_schema_says() {
    for scheme in ["ph-thcp", "ditto", "default"] {
        let world = World::new();
        let more = ["--scheme", scheme, "--quiet", "--events", "e.jsonl"];
        world.run(&[&SHORT[..], &more].concat()).expect(0);
        let lines = lines(&world, "e.jsonl");
        let (head, events) = lines.split_first().expect("a first line");
        assert_valid(head);
        assert_eq!(head["schema"], "hearsay/events/1");
        assert_eq!(head["provenance"]["schemes"], serde_json::json!([scheme]));
        assert_origin(&head["provenance"], "hearsay-lab sim chain");
        for event in events {
            let wrong = wrong_as(event, "event", "events", "1");
            assert!(wrong.is_empty(), "{event}: {wrong:?}");
        }
        let times: Vec<_> = events.iter().map(|event| event["at_ns"].as_u64()).collect();
        assert!(times.is_sorted(), "time goes back");
        let kinds: BTreeSet<_> = events.iter().filter_map(|it| it["event"].as_str()).collect();
        for kind in ["request", "miss", "hit", "source", "head", "transfer", "request_ends"] {
            assert!(kinds.contains(kind), "{scheme}: no {kind} in {kinds:?}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_events_and_they_change_nothing_else() {
    let world = World::new();
    let run = |more: &[&str]| {
        lasting(
            &world
                .run(
                    &[&SHORT[..], &["--scheme", "ph-thcp", "--json", "-", "--quiet"], more]
                        .concat(),
                )
                .expect(0)
                .out,
        )
    };
    let alone = run(&[]);
    assert_eq!(run(&["--events", "a.jsonl"]), alone);
    assert_eq!(run(&["--events", "b.jsonl"]), alone);
    let events = |file| lines(&world, file).split_off(1);
    assert!(events("a.jsonl").len() > 30, "{}", events("a.jsonl").len());
    assert!(events("a.jsonl") == events("b.jsonl"));
    run(&["--events", "c.jsonl", "--seed", "2"]);
    assert!(events("c.jsonl") != events("a.jsonl"));
}

#[test]
fn the_schema_has_all_that_can_be_stale() {
    let schema = include_str!("../../../docs/schema/events-1.json");
    let schema: Value = serde_json::from_str(schema).expect("a schema is JSON");
    let what = serde_json::json!(node::Stale::ALL.map(node::Stale::name));
    assert_eq!(schema["$defs"]["event"]["properties"]["what"]["enum"], what);
}

#[test]
fn what_one_file_cannot_hold_is_refused() {
    let world = World::new();
    let refused = |args: &[&str], parts: &[&str]| {
        world.run(args).expect_refusal(parts);
        assert!(!world.path("e.jsonl").exists());
    };
    let events = ["--events", "e.jsonl"];
    let several = [&SHORT[..], &["--seeds", "3"], &events].concat();
    refused(&several, &["--events", "--seeds", "--seed"]);
    refused(&[&["sim", "bulk"], &events[..]].concat(), &["--events", "traffic", "no router"]);
    refused(&[&SHORT[..], &events, &["--json", "e.jsonl"]].concat(), &["two options name it"]);
    refused(&[&SHORT[..], &["--events", "-"]].concat(), &["./-"]);
}
