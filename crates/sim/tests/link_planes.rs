//! Link planes in whole runs: what they pace and recover arrives, also over routers that have none.

use std::fs;
use std::time::Duration;

use sim::scenario::Scenario;
use sim::world::flows::{Endpoint, endpoints};
use sim::world::{self, World};
use wire::Instant;

/// A gateway in the middle of a square, and a relay in each of its quarters. Router w is always in range of one of
/// them, and walks from one to the next.
const RELAYS: &str = "gateway = 'g'\ntraffic = 'flows'\nmovers = ['w']\nmobility = 'waypoint'\n\
    walk_m = 700\nspeed_min_m_s = 40\nspeed_max_m_s = 40\npause_s = 0\n\
    [routers]\ng = [350, 350]\nne = [525, 175]\nnw = [175, 175]\nse = [525, 525]\nsw = [175, 525]\n\
    w = [40, 40]\n";

fn settings(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

/// A chain of this many hops with listed flows.
fn chain(hops: &str, pairs: &[(&str, &str)]) -> Scenario {
    let pairs = [&[("traffic", "flows"), ("hops", hops)], pairs].concat();
    Scenario::load("chain", &settings(&pairs)).unwrap_or_else(|error| panic!("{error}"))
}

fn relays(test: &str, pairs: &[(&str, &str)]) -> Scenario {
    let path = format!("{}/planes-{test}.toml", env!("CARGO_TARGET_TMPDIR"));
    fs::write(&path, RELAYS).unwrap();
    Scenario::load(&path, &settings(pairs)).unwrap_or_else(|error| panic!("{error}"))
}

fn world_of(scenario: &Scenario) -> World<Endpoint> {
    let flows = world::flows_of(scenario);
    let programs = endpoints(scenario.routers.len(), &flows, 1);
    world::world(scenario, 1, programs)
}

fn seconds(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

#[test]
fn a_chain_with_each_engine_delivers_a_flow_whole() {
    let (paced, recovered) = (("pace", "on"), ("recover", "on"));
    for engines in [&[paced][..], &[recovered], &[paced, recovered]] {
        let more = [("between", "0:6:tcp:0:15"), ("seconds", "60"), ("loss_above_mac", "0.01")];
        let outcome = world::run(&chain("6", &[&more, engines].concat()), 1, None).unwrap();
        let [flow] = &outcome.flows[..] else { panic!("{outcome:?}") };
        // The source has closed: all that it sent was acknowledged, and all that was acknowledged has arrived once.
        assert_eq!((outcome.failed.len(), flow.tcp.unwrap().acked_bytes), (0, flow.bytes));
        assert!(flow.bytes > 100_000, "{engines:?}: {outcome:?}");
        let plane = outcome.link_plane.expect("there are link planes");
        assert_eq!(plane.held > 0, engines.contains(&paced), "{engines:?}: {plane:?}");
        assert_eq!(plane.resent > 0, engines.contains(&recovered), "{engines:?}: {plane:?}");
    }
}

#[test]
fn messages_reach_their_addressee_over_plain_routers() {
    let keys = [("between", "0:6"), ("seconds", "20"), ("pace", "on"), ("interlay", "0 3 6")];
    let mut world = world_of(&chain("6", &keys));
    world.run(seconds(20));
    let counters: Vec<_> = world.link_planes().collect();
    assert_eq!(counters.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [0, 3, 6]);
    for (at, counters) in counters {
        let pace = counters.pace;
        assert!(pace.neighbours_found > 0 && pace.probes_answered > 0, "{at}: {pace:?}");
    }
}

#[test]
fn who_is_named_alone_has_an_engine() {
    let keys = [("between", "0:4"), ("pace", "wine"), ("recover", "inpcm"), ("recover_at", "1 4")];
    let world = world_of(&chain("4", &[&keys[..], &[("interlay", "4 0")]].concat()));
    let with: Vec<_> = world.link_planes().map(|(at, _)| at).collect();
    assert_eq!(with, [0, 1, 4]);
}

/// Relays differ: all have engines, or none; two have both, and two have nothing.
#[test]
fn a_flow_goes_on_when_its_route_moves_to_routers_without_engines() {
    for (test, recover_at, interlay) in [
        ("everywhere", "", ""),
        ("ends", "g w", "g w"),
        ("halves", "g ne se", "g ne se w"),
        ("crossed", "nw sw", "g ne se w"),
    ] {
        let named = [("recover_at", recover_at), ("interlay", interlay)];
        let keys = [("between", "g:w w:g"), ("seconds", "80"), ("pace", "on"), ("recover", "on")];
        let scenario = relays(test, &[&keys[..], &named].concat());
        let mut world = world_of(&scenario);
        let mut had = [0, 0];
        for until in (10..=80).step_by(10) {
            world.run(seconds(until));
            let sinks = world.programs().flat_map(Endpoint::sinks);
            let mut now = [0, 0];
            sinks.for_each(|it| now[it.number] = it.bytes);
            for (before, now) in had.iter().zip(now) {
                // Two hops carry over a Mbit/s; a connection may back off after a route breaks, but not for long.
                assert!(now - before > 50_000, "{test}: {before} {now} bytes at {until} s");
            }
            had = now;
        }
    }
}
