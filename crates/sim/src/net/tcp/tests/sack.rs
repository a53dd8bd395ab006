//! Selective acknowledgements: what a receiver reports, and how a sender recovers by it (RFC 2018, 2883, 6675).

use super::*;
use crate::net::Sack;
use crate::net::tcp::{End, Recovery, State};
use proptest::prelude::*;

fn sack() -> Config {
    Config { recovery: Recovery::Sack, ..round() }
}

/// The blocks that a side has reported since `since`, as offsets, by the time of their segment in ms.
fn reported(pair: &Pair, from: usize, since: Instant) -> Vec<(u64, Vec<(u32, u32)>)> {
    let first = if from == CLIENT { SERVER_ISS } else { CLIENT_ISS } + 1;
    let sent = pair.sent.iter().filter(|it| it.from == from && it.at >= since);
    let offsets = |blocks: &Sack| {
        blocks
            .blocks()
            .iter()
            .map(|it| (it.0.wrapping_sub(first), it.1.wrapping_sub(first)))
            .collect()
    };
    sent.filter(|it| !it.segment.sack.blocks().is_empty())
        .map(|it| (ms(it.at - since), offsets(&it.segment.sack)))
        .collect()
}

#[test]
fn several_losses_of_a_window_are_repaired_within_a_round_trip() {
    let (mut pair, start) = twenty_of_which_are_lost(sack(), &[0, 3, 7]);
    pair.write(CLIENT, data(100_000));
    pair.run_for(100 * MS);
    // The first two reports let a new segment out each. The third starts the recovery with ten segments. When
    // it begins, 18 are in flight and the first once more; then each report frees one, and so do the losses of
    // 3 and 7 once enough behind them is reported. From the tenth report after it on, each lets one out.
    assert_eq!(numbers(&pair, start, 100), [20, 21, 0, 3, 7, 22, 23, 24, 25, 26]);
    assert_eq!(
        (pair.client.congestion_window(), pair.client.slow_start_threshold()),
        (10_000, 10_000)
    );
    pair.run_for(100 * MS);
    // Every one of those ten is acknowledged or reported, and lets one out.
    assert_eq!(numbers(&pair, start, 200), (27..37).collect::<Vec<_>>());
    let counters = pair.client.counters();
    assert_eq!((counters.recoveries, counters.retransmitted, counters.timeouts), (1, 3, 0));
    // All of the first 27 are acknowledged. The recovery is over, and the window grows again.
    assert_eq!(counters.acknowledged, 27_000);
    assert!((10_001..11_000).contains(&pair.client.congestion_window()));
    pair.run_for(5000 * MS);
    assert!(pair.got[SERVER] == data(100_000));
    assert_eq!(pair.client.counters().retransmitted, 3);
    assert_eq!((counters.dsacks, pair.client.counters().dsacks), (0, 0));
}

#[test]
fn one_report_of_more_than_two_segments_starts_a_recovery() {
    let (mut pair, start) = twenty_of_which_are_lost(sack(), &[0]);
    pair.write(CLIENT, data(100_000));
    // The reports of 1 and 2 are lost; that of 3 reports all three.
    let mut acknowledgements = 0;
    pair.lose(move |sent| {
        acknowledgements += u32::from(sent.from == SERVER);
        sent.from == SERVER && acknowledgements <= 2
    });
    pair.run_for(100 * MS);
    assert_eq!(numbers(&pair, start, 100)[0], 0);
    assert_eq!(pair.client.counters().recoveries, 1);
}

#[test]
fn a_lost_end_is_rescued_without_a_timeout() {
    let (mut pair, start) = twenty_of_which_are_lost(sack(), &[0, 18, 19]);
    pair.write(CLIENT, data(20_000));
    pair.run_for(150 * MS);
    assert_eq!(numbers(&pair, start, 100), [0]);
    pair.run_for(50 * MS);
    // Nothing is reported behind the last two, but the acknowledgement falls short of what was sent.
    assert_eq!(numbers(&pair, start, 200), [19]);
    pair.run_for(100 * MS);
    assert_eq!(numbers(&pair, start, 300), [18]);
    pair.run_for(100 * MS);
    assert_eq!((pair.client.flight(), pair.client.counters().timeouts), (0, 0));
    assert!(pair.got[SERVER] == data(20_000));
}

#[test]
fn after_a_timeout_what_is_reported_anew_is_not_sent_again() {
    let (mut pair, start) = twenty_of_which_are_lost(sack(), &[0, 0, 5, 5]);
    pair.write(CLIENT, data(20_000));
    pair.run_for(100 * MS);
    assert_eq!(numbers(&pair, start, 100), [0, 5]);
    pair.run_for(300 * MS);
    assert_eq!((numbers(&pair, start, 400), pair.client.counters().timeouts), (vec![0], 1));
    pair.run_for(100 * MS);
    // This is acknowledged up to 5, and 6 to 19 are reported again.
    assert_eq!(numbers(&pair, start, 500), [5]);
    pair.run_for(100 * MS);
    assert_eq!((pair.client.flight(), pair.client.counters().recoveries), (0, 1));
    assert!(pair.got[SERVER] == data(20_000));
}

#[test]
fn a_lost_fin_is_sent_again() {
    let (mut pair, _) = twenty_of_which_are_lost(sack(), &[3, 5]);
    pair.write(CLIENT, data(5000));
    pair.then(CLIENT, Connection::close);
    pair.run_for(3000 * MS);
    assert!(pair.got[SERVER] == data(5000) && pair.server().peer_closed());
    assert_eq!(pair.client.state(), State::FinWait2);
}

#[test]
fn a_duplicate_is_reported_once_and_counted() {
    let (mut pair, start) = twenty_of_which_are_lost(sack(), &[]);
    let twice = CLIENT_ISS + 1 + 2000;
    pair.fate = Box::new(move |sent| match sent.from == CLIENT && sent.segment.seq == twice {
        true => vec![Duration::ZERO, 7 * MS],
        false => vec![Duration::ZERO],
    });
    pair.write(CLIENT, data(10_000));
    pair.run_for(500 * MS);
    assert_eq!(reported(&pair, SERVER, start), [(57, vec![(2000, 3000)])]);
    let counters = pair.client.counters();
    assert_eq!((counters.dsacks, counters.recoveries, counters.retransmitted), (1, 0, 0));
}

#[test]
fn a_late_segment_is_sent_again_in_vain_which_its_receiver_reports() {
    let (mut pair, start) = twenty_of_which_are_lost(sack(), &[]);
    let late = CLIENT_ISS + 1 + 2000;
    let mut first = true;
    pair.fate = Box::new(move |sent| {
        let is_late = sent.segment.seq == late && std::mem::take(&mut first);
        vec![if is_late { 70 * MS } else { Duration::ZERO }]
    });
    pair.write(CLIENT, data(10_000));
    pair.run_for(500 * MS);
    let counters = pair.client.counters();
    assert_eq!((counters.recoveries, counters.retransmitted, counters.dsacks), (1, 1, 1));
    let blocks = reported(&pair, SERVER, start);
    let growing = (4..=10).map(|end| (50, vec![(3000, 1000 * end)]));
    assert_eq!(blocks, growing.chain([(150, vec![(2000, 3000)])]).collect::<Vec<_>>());
}

#[test]
fn without_the_peers_permission_losses_are_repaired_as_in_newreno() {
    let segments = |client: Config, server: Config| {
        let iss = [CLIENT_ISS, SERVER_ISS];
        let mut count = 0;
        let fate = Box::new(move |_: &Sent| {
            count += 1;
            if count % 7 == 6 { vec![] } else { vec![Duration::ZERO] }
        });
        let mut pair = Pair::with(client, server, iss, fate);
        pair.write(CLIENT, data(100_000));
        pair.run_for(60_000 * MS);
        assert!(pair.got[SERVER] == data(100_000));
        assert!(pair.client.counters().recoveries > 0);
        assert!(pair.sent.iter().all(|it| it.segment.sack.blocks().is_empty()));
        pair.sent.iter().map(|it| (it.at, it.segment.seq, it.segment.ack)).collect::<Vec<_>>()
    };
    let plain = segments(round(), round());
    assert_eq!(segments(sack(), round()), plain);
    assert_eq!(segments(round(), sack()), plain);
}

#[test]
fn segments_stay_within_the_agreed_size_beside_all_options() {
    for timestamps in [false, true] {
        let mut pair = Pair::opened(Config { timestamps, ..sack() });
        let mut count = 0;
        pair.lose(move |sent| {
            count += 1;
            !sent.segment.payload.is_empty() && (count % 11 == 3 || count % 13 == 5)
        });
        pair.write(CLIENT, data(300_000));
        pair.write(SERVER, data(300_000));
        pair.run_for(120_000 * MS);
        assert!(pair.got.iter().all(|got| *got == data(300_000)));
        let size = |it: &Sent| it.segment.header_bytes() as usize + it.segment.payload.len();
        assert!(pair.sent.iter().all(|it| size(it) <= 1020));
        let most = pair.sent.iter().map(|it| it.segment.sack.blocks().len()).max();
        assert!(most.is_some_and(|most| (2..=4 - usize::from(timestamps)).contains(&most)));
        let beside_data =
            |it: &Sent| !it.segment.payload.is_empty() && it.segment.sack != Sack::default();
        assert!(pair.sent.iter().any(beside_data));
    }
}

proptest! {
    /// Meaningless acknowledgements and reports cause no panic, and no endless sending.
    #[test]
    fn no_report_does_harm(
        segments in prop::collection::vec(
            (0..30_000u32, prop::collection::vec((0..30_000u32, 0..30_000u32), 0..5), 0..40_000u32, any::<(u32, u32)>()),
            1..80),
        closes: bool,
        timestamps: bool,
    ) {
        let mut pair = Pair::opened(Config { initial_window: 4, timestamps, ..sack() });
        pair.write(CLIENT, data(20_000));
        if closes {
            pair.then(CLIENT, Connection::close);
        }
        for (ack, blocks, window, other) in segments {
            let at = |offset: u32| CLIENT_ISS.wrapping_sub(4000).wrapping_add(offset);
            let mut sack = Sack::default();
            blocks.iter().for_each(|it| sack.push((at(it.0), at(it.1))));
            sack.push(other);
            let (ack, flags, stamps) = (at(ack), Flags::ACK, timestamps.then_some(other));
            let seq = SERVER_ISS + 1;
            let segment = Segment { seq, ack, flags, window, sack, stamps, ..Segment::default() };
            let now = pair.now;
            if pair.client.poll_timeout().is_some_and(|at| at <= now) {
                pair.client.handle_timeout(now);
            }
            pair.client.handle_segment(now, segment);
            let sent = std::iter::from_fn(|| pair.client.poll_transmit(now)).take(1000).count();
            prop_assert!(sent < 1000);
            if let Some(at) = pair.client.poll_timeout() {
                prop_assert!(at > now);
            }
            pair.now = now + 70 * MS;
        }
        prop_assert!(!matches!(pair.client.end(), Some(End::Reset | End::Refused)));
    }
}
