//! The built-in scenarios, and files of a user's own.

use std::path::Path;
use std::time::Duration;

use sim::scenario::{Routing, Scenario, Traffic};
use sim::world::Routes;

const ALL: [&str; 13] = [
    "chain",
    "emulab8",
    "map21",
    "bulk",
    "mesh50",
    "meshcache-s1",
    "meshcache-s2",
    "meshcache-s3",
    "uplink",
    "ring8",
    "wine-chain",
    "wine-cross",
    "inpcm-grid",
];

fn load(name: &str) -> Scenario {
    Scenario::load(name, &[]).unwrap_or_else(|error| panic!("{error}"))
}

fn index(scenario: &Scenario, name: &str) -> usize {
    scenario.routers.iter().position(|it| it.name == name).unwrap()
}

fn hops(scenario: &Scenario, name: &str) -> usize {
    scenario.hops(index(scenario, name))
}

/// The route to a router as the papers write it.
fn route(scenario: &Scenario, name: &str) -> String {
    let path = scenario.path(index(scenario, name));
    path.iter().map(|it| scenario.routers[*it].name.as_str()).collect::<Vec<_>>().join(" ")
}

/// Lengths of the links on routes, as shares of the range.
fn shares(scenario: &Scenario) -> Vec<f64> {
    let mut shares = Vec::new();
    for receiver in &scenario.receivers {
        for hop in scenario.path(*receiver).windows(2) {
            let (a, b) = (&scenario.routers[hop[0]], &scenario.routers[hop[1]]);
            shares.push((a.x_m - b.x_m).hypot(a.y_m - b.y_m) / scenario.range_m);
        }
    }
    shares
}

#[test]
fn every_built_in_scenario_loads_with_routes_over_good_links() {
    assert_eq!(Scenario::built_in().collect::<Vec<_>>(), ALL);
    for name in Scenario::built_in() {
        let scenario = load(name);
        assert_eq!(scenario.name, name);
        assert_eq!(scenario.routing, Routing::Static);
        assert!(!scenario.description.is_empty());
        let bytes = match (name, scenario.traffic) {
            ("ring8", _) => 300_000,
            (_, Traffic::Fetches) => 51_200,
            _ => 1_000_000,
        };
        assert_eq!(scenario.workload.bytes, bytes);
        // Scenarios with random places have no places to check, and those of WINE and InPCM have long links.
        let is_random = name == "mesh50" || name.starts_with("meshcache");
        let has_long_links = name.starts_with("wine") || name == "inpcm-grid";
        let share_max = if is_random || has_long_links { 1.0 } else { 0.92 };
        assert!(shares(&scenario).iter().all(|share| *share <= share_max), "{name}");
    }
}

/// A scenario that is not built in could not be found by name.
#[test]
fn every_file_among_the_scenarios_is_built_in() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../scenarios");
    for file in folder.read_dir().unwrap() {
        let path = file.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        assert!(Scenario::built_in().any(|it| it == name), "{name}");
        let from_file = Scenario::load(path.to_str().unwrap(), &[]).unwrap();
        assert_eq!(format!("{from_file:?}"), format!("{:?}", load(&name)));
    }
}

#[test]
fn the_chain_has_as_many_hops_as_it_is_told() {
    let chain = load("chain");
    assert_eq!((chain.routers.len(), chain.hops(4)), (5, 4));
    assert_eq!(chain.receivers, [4]);
    let chain = Scenario::load("chain", &[("hops".into(), "7".into())]).unwrap();
    assert_eq!((route(&chain, "7"), chain.receivers), ("0 1 2 3 4 5 6 7".into(), vec![7]));
}

#[test]
fn the_ring_has_copies_nearer_than_the_gateway_and_not_on_the_way() {
    let ring = load("ring8");
    assert_eq!((route(&ring, "3"), route(&ring, "5")), ("0 1 2 3".into(), "0 7 6 5".into()));
    assert_eq!(hops(&ring, "4"), 4);
    let mut routes = Routes::of(&ring);
    let path = routes.path(index(&ring, "5"), index(&ring, "3"));
    assert_eq!(path.map(|path| (path.hops, path.next_hop)), Some((2, index(&ring, "4"))));
}

/// WINE, section 5.
#[test]
fn wines_chain_has_flows_that_begin_one_after_the_other() {
    let scenario = load("wine-chain");
    assert_eq!((scenario.routers.len(), scenario.receivers.as_slice()), (9, &[8][..]));
    assert_eq!(hops(&scenario, "8"), 8);
    for (number, flow) in scenario.flows.iter().enumerate() {
        let starts = Duration::from_secs(20 * number as u64);
        let ends = Some(starts + Duration::from_secs(100));
        assert_eq!((flow.from, flow.to, flow.starts, flow.ends), (0, 8, starts, ends));
    }
    let last = scenario.flows.last().and_then(|it| it.ends);
    assert_eq!(last, Some(scenario.load.lasts));
}

/// WINE, figure 5.3.
#[test]
fn wines_cross_is_two_chains_with_a_router_in_common() {
    let scenario = load("wine-cross");
    assert_eq!(scenario.routers.len(), 17);
    let mut routes = Routes::of(&scenario);
    let ways = [["w0", "w8"], ["n0", "n8"]].map(|ends| ends.map(|name| index(&scenario, name)));
    let flows: Vec<_> = scenario.flows.iter().map(|it| [it.from, it.to]).collect();
    assert_eq!(flows, ways);
    for [from, to] in ways {
        let next = |at: &usize| routes.next_hop(*at, to).filter(|_| *at != to);
        let way: Vec<_> = std::iter::successors(Some(from), next).collect();
        assert_eq!((way.len(), way[4]), (9, index(&scenario, "c")));
    }
}

/// Ditto, section 6.4.1.
#[test]
fn emulab_is_as_the_paper_says() {
    let scenario = load("emulab8");
    let names: Vec<_> =
        scenario.receivers.iter().map(|it| scenario.routers[*it].name.as_str()).collect();
    assert_eq!(names, ["1", "2", "3", "4", "5", "6", "7"]);
    assert_eq!(scenario.routers[scenario.gateway].name, "8");
    assert_eq!((route(&scenario, "2"), route(&scenario, "3")), ("8 4 2".into(), "8 4 3".into()));
    assert_eq!(hops(&scenario, "4"), 1);
    let far = scenario.receivers.iter().filter(|it| scenario.hops(**it) == 2).count();
    assert!(far >= 3, "{far}");
    assert!(scenario.receivers.iter().all(|it| scenario.hops(*it) <= 2));
}

/// Ditto, figure 10.
#[test]
fn map_has_the_routes_of_the_paper() {
    let scenario = load("map21");
    assert_eq!(scenario.routers.len(), 22);
    assert_eq!(scenario.receivers.len(), 21);
    for expected in [
        "11 30 13 1",
        "11 37 2",
        "11 30 3",
        "11 37 4",
        "11 5",
        "11 30 29 7",
        "11 30 13",
        "11 14",
        "11 22 15",
        "11 30 13 16",
        "11 30 28 18",
        "11 37 4 19",
        "11 22",
        "11 30 13 1 25",
        "11 34 27",
        "11 30 28",
        "11 30 29",
        "11 30",
        "11 34",
        "11 37",
        "11 30 13 16 38",
    ] {
        assert_eq!(route(&scenario, expected.split(' ').next_back().unwrap()), expected);
    }
    // Section 6.2.
    for near in ["14", "30", "34", "5", "37", "22"] {
        assert_eq!(hops(&scenario, near), 1, "{near}");
    }
}

#[test]
fn what_is_not_there_is_told_with_what_is() {
    let complaint = |name: &str| Scenario::load(name, &[]).unwrap_err().to_string();
    assert_eq!(
        complaint("emulab9"),
        "emulab9: unknown scenario: did you mean `emulab8`? (a file of yours needs a path, like \
         ./mine.toml)"
    );
    assert!(complaint("").contains("known here: chain, emulab8, map21"));
    assert!(complaint("/nowhere/x.toml").starts_with("/nowhere/x.toml: cannot be read: "));
    assert!(complaint("x.toml").starts_with("x.toml: cannot be read: "));
}

#[test]
fn a_file_of_the_users_is_called_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("two-rooms.toml");
    std::fs::write(&path, "hops = 1\n").unwrap();
    assert_eq!(Scenario::load(path.to_str().unwrap(), &[]).unwrap().name, "two-rooms");
    std::fs::write(&path, [0xff, 0xfe]).unwrap();
    let complaint = Scenario::load(path.to_str().unwrap(), &[]).unwrap_err().to_string();
    assert!(complaint.contains("two-rooms.toml: cannot be read: "), "{complaint}");
}
