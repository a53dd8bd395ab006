//! Links that change: routers that move away or from relay to relay, and links that are cut.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use sim::router::mesh::{Member, Mesh};
use sim::router::run::{Options, Watchers, run};
use sim::scenario::Scenario;
use sim::world::flows::{Endpoint, Flow, Kind, endpoints};
use sim::world::{self, World, address};
use wire::{Instant, Scheme};

/// The gateway and a router 100 m from it.
const TWO: &str = "gateway = 'g'\n[routers]\ng = [0, 0]\na = [100, 0]\n";
/// The router moves straight to a random place in a large square, at 50 m/s.
const AWAY: [(&str, &str); 5] = [
    ("mobility", "waypoint"),
    ("walk_m", "100_000"),
    ("speed_min_m_s", "50"),
    ("speed_max_m_s", "50"),
    ("seconds", "20"),
];
/// The gateway in the middle of a square, and four relays: w is always in range of one of them, and at most
/// two hops from the gateway.
const RELAYS: &str = "gateway = 'g'\nreceivers = ['w']\nmovers = ['w']\nmobility = 'waypoint'\n\
    walk_m = 700\nspeed_min_m_s = 80\nspeed_max_m_s = 80\npause_s = 0\n\
    [routers]\ng = [350, 350]\nne = [525, 175]\nnw = [175, 175]\nse = [525, 525]\nsw = [175, 525]\n\
    w = [40, 40]\n";
const GATEWAY: usize = 0;
const WALKER: usize = 5;

fn load(test: &str, text: &str, settings: &[(&str, &str)]) -> Scenario {
    let path = format!("{}/moving-{test}.toml", env!("CARGO_TARGET_TMPDIR"));
    fs::write(&path, text).unwrap();
    let settings: Vec<_> =
        settings.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    Scenario::load(&path, &settings).unwrap_or_else(|error| panic!("{error}"))
}

fn seconds(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

#[test]
fn a_router_that_walks_away_is_named_with_what_it_lacks() {
    for (traffic, what) in [
        ("tcp", "flow 1 from g to a: it was cut off: at the end there was no route"),
        ("udp", "flow 1 from g to a: it was cut off: at the end there was no route"),
        ("fetches", "of a: nothing arrived for "),
    ] {
        let settings = [&AWAY[..], &[("traffic", traffic), ("think_s", "0.1")]].concat();
        let settings: Vec<_> =
            settings.into_iter().filter(|it| it.0 != "think_s" || traffic == "fetches").collect();
        let scenario = load(traffic, TWO, &settings);
        let outcome = world::run(&scenario, 1, None).unwrap();
        assert!(outcome.failed.len() == 1 && outcome.failed[0].contains(what), "{outcome:?}");
        assert!(outcome.goodput_kbps > 100.0, "some came before: {outcome:?}");
        let stays: Vec<_> = settings.into_iter().filter(|it| !it.0.contains('m')).collect();
        let outcome = world::run(&load(traffic, TWO, &stays), 1, None).unwrap();
        assert!(outcome.failed.is_empty(), "{outcome:?}");
    }
}

#[test]
fn a_file_for_a_router_that_walks_away_ends_with_an_error() {
    let away = &AWAY[..4];
    let scenario = load("file", TWO, &[away, &[("bytes", "20_000_000")]].concat());
    for scheme in [Scheme::EndToEnd, Scheme::PhThcp] {
        let result =
            run(&scenario, scheme, 1, Options::default(), Watchers::default(), |_| {}).unwrap();
        let [transfer] = &result.transfers[..] else { panic!("{result:?}") };
        assert!(transfer.error.is_some() && transfer.bytes > 0, "{scheme}: {transfer:?}");
    }
}

#[test]
fn a_flow_goes_on_over_other_relays() {
    let scenario = load("relays", RELAYS, &[("traffic", "tcp"), ("seconds", "60")]);
    let flow =
        Flow { from: GATEWAY, to: WALKER, starts: Instant::ZERO, ends: None, kind: Kind::Tcp };
    let programs = endpoints(scenario.routers.len(), &[flow], 1);
    let mut world: World<Endpoint> = world::world(&scenario, 1, programs);
    let (mut relays, mut got) = (BTreeSet::new(), 0);
    for ten in 1..=6 {
        for second in 0..10 {
            world.run(seconds((ten - 1) * 10 + second));
            relays.extend(world.routes().next_hop(WALKER, GATEWAY));
        }
        let bytes = world.program(WALKER).sinks()[0].bytes;
        assert!(bytes > got + 100_000, "{bytes} bytes after {ten} tens of seconds, {got} before");
        got = bytes;
    }
    relays.remove(&GATEWAY);
    assert!(relays.len() > 1, "{relays:?}");
    assert!(world.counters().reroutes >= relays.len() as u64);
}

#[test]
fn engines_are_told_their_new_way_and_files_go_on() {
    let settings = [("bytes", "5_000_000"), ("files", "4")];
    let scenario = load("files", RELAYS, &settings);
    for scheme in [Scheme::Thcp, Scheme::PhThcp] {
        let mut mesh = Mesh::build(&scenario, scheme, 1, Options::default()).unwrap();
        mesh.meet(scheme);
        let transfers = mesh.transfer(1, &mut |_| {});
        assert!(transfers.iter().all(|it| it.sha256_ok && it.error.is_none()), "{transfers:?}");
        assert!(mesh.world.counters().reroutes > 1, "{scheme}");
        let next_hop = mesh.world.routes().next_hop(WALKER, GATEWAY).unwrap();
        let asked = if scheme == Scheme::Thcp { GATEWAY } else { next_hop };
        let Member::Router(router) = mesh.world.program(WALKER) else { panic!() };
        assert!(router.knows(address(asked).into()), "{scheme}: {:?}", router.report());
    }
}

#[test]
fn a_cut_takes_effect_at_its_time_and_routes_go_round_it() {
    // Router d has two relays; the first is used.
    let diamond = "gateway = 'g'\nreceivers = ['d']\ntraffic = 'tcp'\nseconds = 9\n\
        [routers]\ng = [0, 0]\nb = [200, 10]\nc = [200, -10]\nd = [400, 0]\n";
    let last = |settings: &[(&str, &str)]| {
        let scenario = load("cuts", diamond, settings);
        let flow = Flow { from: 0, to: 3, starts: Instant::ZERO, ends: None, kind: Kind::Tcp };
        let mut world = world::world(&scenario, 1, endpoints(4, &[flow], 1));
        world.run(seconds(4));
        let early = world.routes().next_hop(0, 3);
        world.run(seconds(9));
        let bytes = world.program(3).sinks()[0].bytes;
        (early, world.routes().next_hop(0, 3), world.counters().reroutes, bytes)
    };
    let (early, late, reroutes, all) = last(&[]);
    assert_eq!((early, late, reroutes), (Some(1), Some(1), 0));
    // Cuts of a router and of each of its links. Routes are computed again at the next full second.
    for cut in ["b@4.5", "g:b@4.5", "d:b@4.5"] {
        let (early, late, reroutes, bytes) = last(&[("cuts", cut)]);
        assert_eq!((early, late, reroutes), (Some(1), Some(2), 1), "{cut}");
        assert!(bytes > all / 2 && bytes < all, "{cut}: {bytes} of {all}");
    }
    let (_, late, _, bytes) = last(&[("cuts", "b@4.5 c@4.5")]);
    assert!(late.is_none() && bytes > all / 4 && bytes < all * 6 / 10, "{bytes} of {all}");
}

#[test]
fn in_a_chain_that_is_cut_the_failed_are_named() {
    let settings: Vec<_> =
        [("hops", "4"), ("seconds", "20"), ("receivers", "1 4"), ("cuts", "2:3@5")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into();
    let scenario = Scenario::load("bulk", &settings).unwrap();
    let outcome = world::run(&scenario, 1, None).unwrap();
    let failed = ["flow 2 from 0 to 4: it was cut off: at the end there was no route"];
    assert_eq!(outcome.failed, failed);
    assert!(outcome.flow_kbps[0] > outcome.flow_kbps[1]);
}

#[test]
fn the_same_seed_gives_the_same_walks() {
    let settings =
        [("seconds", "5"), ("think_s", "0.1"), ("mobility", "waypoint"), ("pause_s", "0")];
    let settings = [&settings[..], &[("speed_min_m_s", "20"), ("speed_max_m_s", "30")]].concat();
    let settings: Vec<_> =
        settings.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let scenario = Scenario::load("mesh50", &settings).unwrap();
    let stays = Scenario::load("mesh50", &settings[..2]).unwrap();
    let go = |scenario: &Scenario, seed| world::run(scenario, seed, None).unwrap();
    let first = go(&scenario, 1);
    assert_eq!(first, go(&scenario, 1));
    assert_ne!(first.events, go(&scenario, 2).events);
    assert_ne!(first.events, go(&stays, 1).events);
    assert!(first.fetches.is_some_and(|it| it.count > 0));
}
