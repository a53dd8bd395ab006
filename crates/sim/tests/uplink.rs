//! The uplink: rates of its directions, losses and queues; and clients behind the gateway itself.

use node::uplink::PairReport;
use sim::result::RunResult;
use sim::result::source::ServedBy;
use sim::router::mesh::Mesh;
use sim::router::run::{Options, Watchers, run};
use sim::scenario::Scenario;
use wire::Scheme;

fn scenario(name: &str, settings: &[(&str, &str)]) -> Scenario {
    let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    Scenario::load(name, &settings.iter().map(own).collect::<Vec<_>>()).unwrap()
}

fn go(name: &str, settings: &[(&str, &str)], scheme: Scheme, seed: u64) -> RunResult {
    let scenario = scenario(name, settings);
    let result = run(&scenario, scheme, seed, Options::default(), Watchers::default(), |_| {});
    let result = result.unwrap();
    check(&result);
    result
}

/// All files have arrived, and are right.
fn check(result: &RunResult) {
    for transfer in &result.transfers {
        assert!(transfer.error.is_none() && transfer.sha256_ok, "{}: {transfer:?}", result.scheme);
    }
}

fn seconds(settings: &[(&str, &str)]) -> f64 {
    let settings = [&[("bytes", "200_000")], settings].concat();
    go("uplink", &settings, Scheme::EndToEnd, 1).transfers[0].seconds
}

fn sources(result: &RunResult) -> Vec<ServedBy> {
    result.transfers.iter().map(|it| it.source.unwrap()).collect()
}

#[test]
fn a_client_of_the_gateway_gets_files_over_the_uplink_alone() {
    use ServedBy::{Gateway, Origin};
    for scheme in Scheme::ALL {
        let settings = [("bytes", "100_000"), ("rounds", "2")];
        let result = go("uplink", &settings, scheme, 1);
        let second = if scheme == Scheme::EndToEnd { Origin } else { Gateway };
        assert_eq!(sources(&result), [Origin, second], "{scheme}");
        assert!(result.transfers.iter().all(|it| it.hops == 0));
        assert_eq!((result.radio.data_frames, result.gateway.bytes_over_air), (0, 0));
        // 100 kB at 512 kbit/s take 1.56 s; headers and three round trips are the rest.
        let first = &result.transfers[0];
        assert!((1.56..2.6).contains(&first.seconds), "{scheme}: {first:?}");
    }
}

/// What the gateway's client has asked for is there for others, and the other way round.
#[test]
fn clients_of_the_gateway_and_of_others_share_its_store() {
    use ServedBy::{Gateway, Origin};
    let requests = "0:1 2:1 2:2 0:2 0:2";
    let settings = [("hops", "2"), ("bytes", "60_000"), ("files", "2"), ("requests", requests)];
    for scheme in [Scheme::Default, Scheme::Thcp, Scheme::PhThcp, Scheme::Ditto] {
        let result = go("chain", &settings, scheme, 1);
        assert_eq!(sources(&result), [Origin, Gateway, Origin, Gateway, Gateway], "{scheme}");
        let hops: Vec<_> = result.transfers.iter().map(|it| it.hops).collect();
        assert_eq!(hops, [0, 2, 2, 0, 0]);
        let sums = |number: usize| result.transfers[number].bytes_by_source.values().sum::<u64>();
        assert!((0..5).all(|it| sums(it) == 60_000), "{result:?}");
        assert_eq!(result.transfers[3].bytes_by_source["gateway"], 60_000, "{result:?}");
    }
}

#[test]
fn readers_may_be_behind_the_gateway() {
    let settings = [
        ("nodes", "4"),
        ("area_m", "200"),
        ("gateway", "1"),
        ("receivers", "1 2"),
        ("seconds", "60"),
        ("think_mean_s", "10"),
    ];
    let result = go("meshcache-s1", &settings, Scheme::PhThcp, 1);
    for client in ["1", "2"] {
        assert!(result.transfers.iter().any(|it| it.client == client), "{client}");
    }
}

#[test]
fn each_direction_has_its_rate() {
    let usual = seconds(&[]);
    // 200 kB at 512 kbit/s.
    assert!((3.1..4.5).contains(&usual), "{usual}");
    assert!(seconds(&[("uplink_mbps", "1.024")]) < 0.7 * usual);
    // Acknowledgements are small, so 32 kbit/s are as good as 128. At 4 kbit/s, 70 of 40 bytes take 5.6 s.
    assert!(seconds(&[("uplink_up_mbps", "0.032")]) < 1.1 * usual);
    assert!(seconds(&[("uplink_up_mbps", "0.004")]) > 5.0);
    // 0 is the rate of the other direction.
    assert_eq!(seconds(&[("uplink_up_mbps", "0")]), seconds(&[("uplink_up_mbps", "0.512")]));
}

#[test]
fn losses_and_short_queues_slow_transfers_down() {
    let usual = seconds(&[]);
    assert!(seconds(&[("uplink_loss", "0.05")]) > 1.3 * usual);
    assert!(seconds(&[("uplink_queue", "5")]) > 1.05 * usual);
}

#[test]
fn losses_follow_from_the_seed() {
    let settings = [("bytes", "100_000"), ("uplink_loss", "0.05"), ("rounds", "2")];
    let of = |seed| go("uplink", &settings, Scheme::PhThcp, seed);
    assert_eq!(of(1), of(1));
    assert_ne!(of(1).transfers[0].seconds, of(2).transfers[0].seconds);
}

/// A probability that loses no packet of the run draws for each of them, and changes nothing.
#[test]
fn losses_are_drawn_apart_from_all_else() {
    let with = |loss| {
        let settings = [("hops", "2"), ("bytes", "60_000"), ("loss", "0.4"), ("uplink_loss", loss)];
        go("chain", &settings, Scheme::PhThcp, 1)
    };
    assert_eq!(with("0"), with("1e-9"));
}

/// A run with this many versions of a file; a tenth of each differs from the version before.
fn versions(files: &str, settings: &[(&str, &str)]) -> RunResult {
    let usual = [("bytes", "300_000"), ("files", files), ("changed", "0.1"), ("far", "pair")];
    go("uplink", &[&usual[..], settings].concat(), Scheme::Default, 1)
}

/// The bytes that crossed the uplink, both ways.
fn crossed(result: &RunResult) -> u64 {
    result.gateway.bytes_from_origin + result.gateway.bytes_to_origin.unwrap_or(0)
}

#[test]
fn a_new_version_crosses_as_little_by_a_far_end() {
    let [one, two, three] = ["1", "2", "3"].map(|files| versions(files, &[]));
    assert!((300_000..320_000).contains(&crossed(&one)), "{one:?}");
    // The new bytes are 30 kB, in pieces of 64.
    for (more, fewer) in [(&two, &one), (&three, &two)] {
        let cost = crossed(more) - crossed(fewer);
        assert!((30_000..45_000).contains(&cost), "{cost}");
    }
    let seconds: Vec<_> = three.transfers.iter().map(|it| it.seconds).collect();
    assert!(seconds[1] < 0.3 * seconds[0] && seconds[2] < 0.3 * seconds[0], "{seconds:?}");
    // Nothing else is as good, and the first is no slower than without a far end.
    let direct = versions("2", &[("far", "none")]);
    assert_eq!(direct.gateway.bytes_to_origin, None);
    assert!(direct.gateway.bytes_from_origin > 600_000);
    assert!(seconds[0] < direct.transfers[0].seconds, "{seconds:?}");
    // Of what has crossed before, little more than its name crosses.
    let [again, once_more] = ["2", "3"].map(|files| versions(files, &[("changed", "0")]));
    let cost = crossed(&once_more) - crossed(&again);
    assert!(cost < 5_000, "{cost}");
}

#[test]
fn a_far_end_serves_a_mesh_and_a_lossy_uplink() {
    let settings = [("hops", "2"), ("bytes", "60_000"), ("files", "2"), ("changed", "0.1")];
    for scheme in Scheme::ALL {
        let settings = [&settings[..], &[("far", "pair"), ("uplink_loss", "0.02")]].concat();
        let result = go("chain", &settings, scheme, 1);
        let (least, most) = match scheme {
            // No router intercepts, so all goes straight to the origin.
            Scheme::EndToEnd => (120_000, 150_000),
            _ => (60_000, 80_000),
        };
        assert!((least..most).contains(&result.gateway.bytes_from_origin), "{scheme} {result:?}");
    }
    let again = || versions("2", &[("uplink_loss", "0.02")]);
    assert_eq!(again(), again());
}

/// Clients at the gateway and behind it get files that repeat, over a pair that works as Wanax has it.
#[test]
fn a_published_scheme_carries_files_and_what_repeats_as_names() {
    let bytes = |settings: &[(&str, &str)]| {
        let base = [("far", "pair"), ("bytes", "300_000"), ("files", "2")];
        let settings = [&base[..], settings].concat();
        let result = go("uplink", &settings, Scheme::Default, 1);
        result.transfers.iter().map(|it| it.seconds).collect::<Vec<_>>()
    };
    let ours = bytes(&[("changed", "0.02")]);
    for (scheme, degree) in [("mrc", "2"), ("mrc-large", "4"), ("src", "0")] {
        let seconds = bytes(&[("uplink", scheme), ("degree", degree), ("changed", "0.02")]);
        // 300 kB take 4.7 s at 512 kbit/s, and the second file is nearly the first again.
        assert!((4.7..7.0).contains(&seconds[0]), "{scheme}: {seconds:?}");
        assert!(seconds[1] < seconds[0] * 0.8, "{scheme}: {seconds:?}");
        assert_ne!(seconds, ours, "{scheme}: as if it were not set");
    }
}

/// A run without a cache, once the far end answers or from the first moment on; and what the near end has counted.
fn bypass(settings: &[(&str, &str)], scheme: Scheme, meets: bool) -> (RunResult, PairReport) {
    let base = [("far", "pair"), ("hops", "2"), ("bytes", "60_000"), ("files", "2")];
    let base = [&base[..], &[("requests", "0:1 2:1 1:2 2:2"), ("changed", "0.02")]].concat();
    let scenario = scenario("chain", &[&base[..], settings].concat());
    let mut mesh = Mesh::build(&scenario, scheme, 1, Options::default()).unwrap();
    if meets {
        mesh.meet(scheme);
    }
    let result = mesh.play(scheme, 1, &mut |_| {});
    check(&result);
    let pair = result.gateway.pair.unwrap();
    (result, pair)
}

#[test]
fn without_a_cache_requests_cross_the_pair_as_tcp_connections() {
    for scheme in [Scheme::Default, Scheme::Thcp, Scheme::PhThcp, Scheme::Ditto] {
        for setting in [("http", "bypass"), ("paper", "wanax")] {
            let (result, pair) = bypass(&[setting], scheme, true);
            assert_eq!(sources(&result), [ServedBy::Origin; 4], "{scheme} {setting:?}");
            assert_eq!((pair.tcp_flows, pair.requests, pair.tcp_flows_past), (4, 0, 0));
            // One file, a fiftieth of another, and little for what repeats.
            let crossed = result.gateway.bytes_from_origin;
            assert!((60_000..85_000).contains(&crossed), "{scheme} {setting:?}: {crossed}");
        }
    }
}

#[test]
fn as_published_names_cross_for_what_repeats() {
    let [ours, paper] = [("http", "bypass"), ("paper", "wanax")]
        .map(|setting| bypass(&[setting], Scheme::Default, true).1);
    assert_eq!((ours.chunk_entries, paper.chunk_entries > 200), (0, true), "{paper:?}");
}

#[test]
fn before_the_far_end_answers_requests_pass_it_by() {
    // The first request is on its way before the pair is up.
    let (result, pair) = bypass(&[("http", "bypass")], Scheme::Default, false);
    assert_eq!(sources(&result), [ServedBy::Origin; 4]);
    assert_eq!((pair.tcp_flows, pair.tcp_flows_past), (3, 0));
}
