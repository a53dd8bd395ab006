//! Pacing on a line of routers: neighbours are found, measured, paced and forgotten.

use std::time::Duration;

use link::pace::{Config, Follow, Overhead};

use crate::common::{Hop, Line, at, datagram, ip};

/// About 802.11b at 11 Mbit/s: 2 ms for 1500 bytes.
const HOP: Hop = Hop { bytes_per_second: 1_375_000.0, overhead_bytes: 1200.0 };
const NODES: usize = 7;
const INTERLAY: [usize; 3] = [0, 3, 6];

/// A packet of 1500 bytes from one end to the other, each `gap` seconds.
fn traffic(line: &mut Line, from: f64, to: f64, gap: f64) {
    let packets = ((to - from) / gap) as usize;
    for packet in 0..packets {
        line.run(at(from + packet as f64 * gap));
        line.send(0, datagram(0, 0, NODES - 1, 1500));
    }
    line.run(at(to));
}

/// Rates from probes alone, as in the paper, which are sent often.
fn by_probes() -> Config {
    let probe_interval = Duration::from_millis(250);
    Config { follow: None, probe_interval, ..Config::default() }
}

fn line(config: Config) -> Line {
    Line::new(NODES, &INTERLAY, config, HOP)
}

/// The rate that `of` has measured to `to`.
fn rate(line: &Line, of: usize, to: usize) -> Option<f64> {
    line.pace(of).neighbours().find(|it| it.node == ip(to))?.rate
}

#[test]
fn on_a_free_path_the_rate_is_what_the_hops_take() {
    for overhead in [Overhead::Each, Overhead::Probe] {
        let config = Config { overhead, ..by_probes() };
        let mut line = line(config);
        line.answers = true;
        // 93 ms is no multiple of the probes' interval, so that few probes meet a packet.
        traffic(&mut line, 0.0, 60.0, 0.093);
        let (probe, gamma) = (f64::from(config.probe_bytes), f64::from(config.overhead_bytes));
        let half = 3.0 * HOP.time(config.probe_bytes.into()).as_secs_f64();
        let expected = match overhead {
            Overhead::Each => (probe + gamma) / half,
            Overhead::Probe => (probe + 3.0 * gamma) / half,
        };
        for (of, to) in [(0, 3), (3, 6), (3, 0), (6, 3)] {
            let measured = rate(&line, of, to).expect("it is measured");
            assert!((0.75..1.01).contains(&(measured / expected)), "{of} to {to}: {measured}");
            assert!(line.pace(of).neighbours().all(|it| it.hops == 3));
            // A packet as long as the probe is followed after the time of its way, if γ counts for both.
            let gap = line.pace(of).gap(ip(to), config.probe_bytes.into()).expect("it is paced");
            let is_way = (0.99 * half..1.4 * half).contains(&gap.as_secs_f64());
            assert!(is_way || overhead == Overhead::Probe, "{gap:?}");
        }
    }
}

#[test]
fn neighbours_are_the_next_interlay_nodes_only() {
    let mut line = line(Config::wine());
    line.answers = true;
    traffic(&mut line, 0.0, 5.0, 0.02);
    for (of, neighbours) in [(0, vec![ip(3)]), (3, vec![ip(0), ip(6)]), (6, vec![ip(3)])] {
        let mut found: Vec<_> = line.pace(of).neighbours().map(|it| it.node).collect();
        found.sort();
        assert_eq!(found, neighbours);
    }
}

#[test]
fn one_packet_is_under_way_between_neighbours() {
    // Unpaced, the line is a pipe: each of its first three hops has a packet.
    let mut plain = Line::new(NODES, &[], Config::default(), HOP);
    let mut paced = line(by_probes());
    for line in [&mut plain, &mut paced] {
        line.watched = (0, 3);
        traffic(line, 0.0, 10.0, 0.0021);
    }
    let (from, to) = (at(4.0), at(10.0));
    assert!(plain.mean_under_way(from, to) > 2.5, "{}", plain.mean_under_way(from, to));
    let mean = paced.mean_under_way(from, to);
    assert!((0.7..1.15).contains(&mean), "{mean}");
}

#[test]
fn a_rate_that_follows_keeps_as_many_under_way_as_it_is_told_to() {
    for answers in [false, true] {
        let mut before = 0.0;
        for (base, each_hop) in [(0.5, 0.5), (1.0, 0.5), (1.0, 1.0)] {
            let follow = Config::default().follow.expect("it follows");
            let follow = Follow { under_way: base, under_way_each_hop: each_hop, ..follow };
            let mut line = line(Config { follow: Some(follow), ..Config::default() });
            (line.watched, line.answers) = ((0, 3), answers);
            traffic(&mut line, 0.0, 30.0, 0.0021);
            let mean = line.mean_under_way(at(15.0), at(30.0));
            // What leaves while the news of others is on its way back counts as under way too.
            let most = base + 3.0 * each_hop;
            assert!((0.4 * most..most + 0.2).contains(&mean), "{mean} instead of {most}");
            assert!(mean > before, "{mean} after {before}");
            before = mean;
        }
    }
}

#[test]
fn a_rate_that_follows_falls_to_that_of_a_slow_hop_and_rises_again() {
    let mut line = line(Config::default());
    line.answers = true;
    let gap = |line: &Line| {
        let gap = line.pace(0).gap(ip(3), 1500).expect("it is paced");
        gap.as_secs_f64() / line.hop.time(1500).as_secs_f64()
    };
    let (fast, slow) = (HOP.bytes_per_second, HOP.bytes_per_second / 4.0);
    for (from, rate) in [(0.0, fast), (20.0, slow), (40.0, fast)] {
        line.hop.bytes_per_second = rate;
        traffic(&mut line, from, from + 20.0, 0.0021);
        // A packet for each hop at once would be 1, and one on all three 3. ACKs take their time too.
        assert!((1.0..3.5).contains(&gap(&line)), "{}", gap(&line));
    }
}

#[test]
fn traffic_one_way_is_paced_because_the_next_node_claims_it() {
    let mut line = line(Config::wine());
    traffic(&mut line, 0.0, 3.0, 0.004);
    for (node, next) in [(0, 3), (3, 6)] {
        let counters = line.pace(node).counters();
        assert!(rate(&line, node, next).is_some());
        assert!(counters.claims_taken > 0, "{counters:?}");
        assert_eq!(counters.claims_refused, 0);
        assert!(counters.paced > 100, "{counters:?}");
    }
    // The last one has nobody to pace, and the others none behind them.
    assert_eq!(line.pace(6).counters().paced, 0);
}

#[test]
fn all_packets_arrive_in_order_or_are_counted() {
    let mut line = line(Config::default());
    traffic(&mut line, 0.0, 4.0, 0.003);
    line.run(at(60.0));
    let numbers: Vec<_> = line.arrived.iter().map(|(_, it)| it).collect();
    let numbers: Vec<_> = numbers
        .into_iter()
        .filter(|it| matches!(it.header.kind, link::Kind::Other))
        .map(|it| it.number)
        .collect();
    assert!(numbers.is_sorted());
    let lost: u64 = INTERLAY
        .iter()
        .map(|node| line.pace(*node).counters())
        .map(|it| it.dropped + it.dropped_active)
        .sum();
    assert_eq!(numbers.len() as u64 + lost, 1333);
}

#[test]
fn when_traffic_ceases_so_do_probes_and_all_is_forgotten() {
    let mut line = line(Config::default());
    line.answers = true;
    traffic(&mut line, 0.0, 5.0, 0.02);
    assert!(INTERLAY.iter().all(|node| line.pace(*node).neighbours().count() > 0));
    line.run(at(20.0));
    let messages = line.messages;
    assert!(INTERLAY.iter().all(|node| line.pace(*node).neighbours().count() == 0));
    line.run(at(60.0));
    assert_eq!(line.messages, messages);
    assert!(line.layers.iter().all(|layer| layer.poll_timeout().is_none()));
}

#[test]
fn unanswered_probes_end_pacing_and_what_waits_goes() {
    let mut line = line(by_probes());
    line.answers = true;
    traffic(&mut line, 0.0, 4.0, 0.004);
    assert!(line.pace(0).neighbours().any(|it| it.waiting > 0));
    line.mute = Some(3);
    traffic(&mut line, 4.0, 7.0, 0.004);
    let of = line.pace(0);
    assert_eq!(of.counters().neighbours_silent, 1);
    assert!(of.neighbours().all(|it| it.rate.is_none() && it.waiting == 0));
    // It answers again, and after a while it is asked again.
    line.mute = None;
    traffic(&mut line, 7.0, 18.0, 0.02);
    assert!(rate(&line, 0, 3).is_some());
}

#[test]
fn a_slow_path_is_followed() {
    let mut line = line(by_probes());
    line.answers = true;
    traffic(&mut line, 0.0, 20.0, 0.093);
    let fast = rate(&line, 0, 3).expect("it is measured");
    line.hop.bytes_per_second /= 4.0;
    traffic(&mut line, 20.0, 60.0, 0.093);
    let slow = rate(&line, 0, 3).expect("it is measured");
    assert!((3.0..5.0).contains(&(fast / slow)), "{fast} {slow}");
}

#[test]
fn a_run_is_repeated_to_the_bit() {
    let run = || {
        let mut line = line(Config::default());
        line.answers = true;
        traffic(&mut line, 0.0, 3.0, 0.003);
        let arrived: Vec<_> = line.arrived.iter().map(|(node, it)| (*node, it.number)).collect();
        (arrived, line.pace(0).counters())
    };
    assert_eq!(run(), run());
    assert!(Duration::ZERO < run().1.held_max);
}
