//! Timestamps (RFC 7323).

use super::*;

fn stamped() -> Config {
    Config { timestamps: true, ..round() }
}

#[test]
fn each_segment_is_stamped_and_its_payload_shorter_by_the_option() {
    let mut pair = Pair::new(stamped());
    pair.run_for(200 * MS);
    pair.write(CLIENT, data(3000));
    pair.run_for(150 * MS);
    let seen = pair.sent.iter().map(|it| (ms(it.at - Instant::ZERO), it.segment.stamps));
    let seen: Vec<_> = seen.map(|(at, stamps)| (at, stamps.unwrap())).collect();
    assert!(seen.iter().all(|(at, (value, _))| u64::from(*value) == *at));
    // The handshake; two segments and their acknowledgement; the rest.
    let echoes: Vec<_> = seen.iter().map(|(at, (_, echo))| (*at, *echo)).collect();
    assert_eq!(echoes[..6], [(0, 0), (50, 0), (100, 50), (200, 50), (200, 50), (250, 200)]);
    let lengths: Vec<_> = pair.data_sent(CLIENT, Instant::ZERO).iter().map(|it| it.2).collect();
    assert_eq!(lengths, [988, 988, 988, 3000 - 3 * 988]);
    assert_eq!(pair.sent[3].segment.header_bytes(), 20 + 12);
}

#[test]
fn what_was_sent_twice_is_measured_too_and_ends_the_doubling() {
    let config = Config { rto_min: 400 * MS, delayed_ack: 1, ..stamped() };
    let mut pair = Pair::opened(config);
    assert_eq!(pair.client.round_trip(), Some(100 * MS));
    let mut first = true;
    pair.lose(move |_| std::mem::take(&mut first));
    pair.write(CLIENT, data(500));
    pair.run_for(400 * MS);
    assert_eq!((pair.client.counters().timeouts, pair.client.rto()), (1, 800 * MS));
    pair.run_for(100 * MS);
    assert_eq!((pair.client.flight(), pair.client.rto()), (0, 400 * MS));
}

#[test]
fn a_gap_counts_for_the_round_trip_of_what_was_acknowledged_late() {
    // 0 is lost, and sent again by fast retransmit at 300 ms. Its acknowledgement echoes the segment that
    // filled the gap, so what waited behind the gap is not measured.
    let mut pair = Pair::opened(Config { initial_window: 4, delayed_ack: 1, ..stamped() });
    let mut first = true;
    pair.lose(move |_| std::mem::take(&mut first));
    pair.write(CLIENT, data(3900));
    pair.run_for(250 * MS);
    assert_eq!((pair.client.counters().retransmitted, pair.client.flight()), (1, 0));
    assert_eq!(pair.client.round_trip(), Some(100 * MS));
}

#[test]
fn only_two_that_want_timestamps_use_them() {
    for (client, server) in [(stamped(), round()), (round(), stamped())] {
        let iss = [CLIENT_ISS, SERVER_ISS];
        let mut pair = Pair::with(client, server, iss, Box::new(|_| vec![Duration::ZERO]));
        pair.write(CLIENT, data(3000));
        pair.run_for(1000 * MS);
        let stamped = pair.sent.iter().filter(|it| it.segment.stamps.is_some());
        assert!(stamped.clone().all(|it| it.segment.flags == Flags::SYN));
        assert_eq!(stamped.count(), usize::from(client.timestamps));
        assert_eq!(pair.client.round_trip(), Some(100 * MS));
        assert!(pair.got[SERVER] == data(3000));
        assert!(pair.data_sent(CLIENT, Instant::ZERO).iter().all(|it| it.2 == 1000));
    }
}

#[test]
fn after_a_lost_syn_the_timeout_is_3_seconds_all_the_same() {
    let mut pair = Pair::new(stamped());
    pair.line.clear();
    pair.run_for(1100 * MS);
    assert_eq!(pair.client.rto(), 3000 * MS);
}
