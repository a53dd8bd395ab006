//! The engines over the simulated mesh: under each scheme the right bytes come from the expected source.

use std::time::Duration;

use sim::result::RunResult;
use sim::result::source::ServedBy;
use sim::router::StoreSize;
use sim::router::run::{Options, Watchers, run};
use sim::scenario::Scenario;
use wire::Scheme;

fn scenario(name: &str, settings: &[(&str, &str)]) -> Scenario {
    let settings: Vec<_> =
        settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Scenario::load(name, &settings).unwrap()
}

fn go(scenario: &Scenario, scheme: Scheme, seed: u64) -> RunResult {
    run(scenario, scheme, seed, Options::default(), Watchers::default(), |_| {}).unwrap()
}

/// All requested files have arrived, and are right.
fn check(result: &RunResult, transfers: usize) {
    assert_eq!(result.transfers.len(), transfers);
    for transfer in &result.transfers {
        assert!(transfer.error.is_none() && transfer.sha256_ok, "{}: {transfer:?}", result.scheme);
    }
    assert_eq!((result.mode.as_str(), result.valid), ("sim", true));
}

fn sources(result: &RunResult) -> Vec<ServedBy> {
    result.transfers.iter().map(|it| it.source.unwrap()).collect()
}

/// Routers 0 (the gateway) to 3. The client of 3 requests a file twice, then that of 2; then those of 1 and 3
/// request another file.
const CHAIN: [(&str, &str); 4] =
    [("hops", "3"), ("bytes", "60_000"), ("files", "2"), ("requests", "3:1 3:1 2:1 1:2 3:2")];

#[test]
fn each_scheme_brings_the_right_bytes_from_where_they_are() {
    use ServedBy::{Gateway, Local, Origin, PhLocal, Remote};
    for (scheme, expected) in [
        (Scheme::EndToEnd, [Origin; 5]),
        (Scheme::Default, [Origin, Gateway, Gateway, Origin, Gateway]),
        (Scheme::Thcp, [Origin, Local, Gateway, Origin, Gateway]),
        (Scheme::PhThcp, [Origin, Local, PhLocal, Origin, Remote]),
    ] {
        let result = go(&scenario("chain", &CHAIN), scheme, 1);
        check(&result, 5);
        assert_eq!(sources(&result), expected, "{scheme}");
        assert!(result.radio.data_frames > 0 && result.radio.packets_per_file > 0.0);
        let uncached = result.transfers.iter().filter(|it| it.source == Some(Origin)).count();
        let least = uncached as u64 * 60_000;
        let carried = result.gateway.bytes_from_origin;
        assert!((least..least + 20_000).contains(&carried), "{scheme}: {carried} over the uplink");
    }
}

#[test]
fn a_second_ask_is_answered_at_once() {
    let result = go(&scenario("chain", &CHAIN), Scheme::PhThcp, 1);
    let [first, second, ..] = &result.transfers[..] else { panic!() };
    assert!(second.seconds < first.seconds / 100.0, "{first:?} {second:?}");
    assert!(second.ttfb_s <= second.seconds && first.ttfb_s > 0.0);
}

#[test]
fn one_seed_is_one_run() {
    let scenario = scenario("chain", &[&CHAIN[..], &[("loss", "0.3")]].concat());
    let first = go(&scenario, Scheme::PhThcp, 3);
    assert_eq!(first, go(&scenario, Scheme::PhThcp, 3));
    assert_ne!(first, go(&scenario, Scheme::PhThcp, 4));
}

/// Every router requests each of two files twice, in random order. In the lab, with real daemons and Linux's
/// TCP, the gateway sends 13.38, 6.77 and 3.66 MB over the air and receives 0.42 MB over the uplink, and half
/// of the transfers under ph-thcp are served by the client's own router (docs/notebook/2026-11-21.md, means of five
/// seeds).
#[test]
fn the_gateway_sends_what_it_sends_in_the_lab() {
    let settings = [("bytes", "200_000"), ("files", "2"), ("rounds", "2"), ("order", "random")];
    let scenario = scenario("emulab8", &settings);
    let results =
        [Scheme::Default, Scheme::Thcp, Scheme::PhThcp].map(|scheme| go(&scenario, scheme, 1));
    results.iter().for_each(|result| check(result, 28));
    let sent = results.each_ref().map(|result| result.gateway.bytes_over_air as f64 / 1e6);
    assert!(sent.is_sorted_by(|more, less| more > less), "{sent:?}");
    for (sent, lab) in sent.into_iter().zip([13.38, 6.77, 3.66]) {
        assert!((sent / lab - 1.0).abs() < 0.1, "{sent} MB, {lab} in the lab");
    }
    for result in &results {
        let uplink = result.gateway.bytes_from_origin as f64 / 1e6;
        assert!((uplink / 0.42 - 1.0).abs() < 0.05, "{}: {uplink} MB", result.scheme);
    }
    assert_eq!(results[2].share_by_source[&ServedBy::Local], 0.5);
}

#[test]
fn clients_may_ask_at_the_same_time() {
    let settings = [("bytes", "20_000"), ("stagger_s", "0.02"), ("loss", "0.3")];
    for scheme in Scheme::ALL {
        check(&go(&scenario("map21", &settings), scheme, 2), 21);
    }
}

/// Six files, one after the other and then again. A store for half of them has evicted each before it is
/// requested again; a store for all has all.
#[test]
fn a_small_store_lets_go_of_what_was_asked_for_longest_ago() {
    let settings = [("hops", "1"), ("bytes", "100_000"), ("files", "6"), ("rounds", "2")];
    let scenario = scenario("chain", &settings);
    for (content_bytes, expected) in [(300_000, ServedBy::Origin), (900_000, ServedBy::Local)] {
        let store = StoreSize::lru(content_bytes);
        let options = Options { store, memory_bytes: 1 << 20, ..Options::default() };
        let result =
            run(&scenario, Scheme::PhThcp, 1, options, Watchers::default(), |_| {}).unwrap();
        check(&result, 12);
        assert_eq!(sources(&result)[6..], [expected; 6], "{content_bytes}");
    }
}

/// No frame arrives; each transfer ends when its client gives up, as in the lab.
#[test]
fn a_partition_is_told_transfer_by_transfer() {
    // At the end of the range every frame is lost.
    let place = [("spacing_m", "250"), ("loss", "1.0")];
    let settings = [&place[..], &[("hops", "2"), ("bytes", "1000"), ("requests", "2 2")]].concat();
    let scenario = scenario("chain", &settings);
    for scheme in Scheme::ALL {
        let result = go(&scenario, scheme, 1);
        assert_eq!(result.transfers.len(), 2, "{scheme}");
        for transfer in &result.transfers {
            assert!(transfer.error.is_some() && !transfer.sha256_ok, "{scheme}: {transfer:?}");
            let timeout = Duration::from_secs(61).as_secs_f64();
            assert!(transfer.seconds <= timeout, "{scheme}: {transfer:?}");
        }
        assert!(result.share_by_source.is_empty());
    }
}
