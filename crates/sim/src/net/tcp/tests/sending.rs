//! What is sent on a line without losses.

use super::*;

#[test]
fn two_segments_begin_and_slow_start_adds_one_for_each_acknowledgement() {
    let config = Config { delayed_ack: 1, ..round() };
    let mut pair = Pair::opened(config);
    let start = pair.now;
    pair.write(CLIENT, data(30_000));
    pair.run_for(350 * MS);
    let bursts = |at| pair.data_sent(CLIENT, start).iter().filter(|it| it.0 == at).count();
    assert_eq!([0, 100, 200, 300].map(bursts), [2, 4, 8, 16]);
    assert_eq!(pair.client.counters().retransmitted, 0);
}

#[test]
fn with_delayed_acknowledgements_slow_start_is_half_as_steep() {
    let mut pair = Pair::opened(round());
    let start = pair.now;
    pair.write(CLIENT, data(30_000));
    pair.run_for(350 * MS);
    let bursts = |at| pair.data_sent(CLIENT, start).iter().filter(|it| it.0 == at).count();
    // Two segments, then one acknowledgement; three segments, two of them acknowledged at once, …
    assert_eq!([0, 100, 200].map(bursts), [2, 3, 3]);
    let acks = pair.acks_sent(SERVER, start);
    assert_eq!(acks[..2], [(50, 2000), (150, 4000)]);
}

#[test]
fn everything_arrives_whatever_the_pieces() {
    let mut pair = Pair::opened(Config { nodelay: false, delayed_ack: 1, ..Config::default() });
    let start = pair.now;
    pair.write(CLIENT, data(1_000_000));
    pair.write(SERVER, data(3000));
    pair.run_for(20_000 * MS);
    assert!(pair.got[SERVER] == data(1_000_000) && pair.got[CLIENT] == data(3000));
    let counters = pair.client.counters();
    assert_eq!((counters.retransmitted, counters.timeouts), (0, 0));
    // All segments are of full size, except where the window or the data ends.
    let short = pair.data_sent(CLIENT, start).iter().filter(|it| it.2 < 1460).count();
    assert!(short <= 1, "{short} short segments");
}

#[test]
fn no_more_is_on_its_way_than_the_peer_takes() {
    let server = Config { receive_buffer: 10_000, ..round() };
    let iss = [CLIENT_ISS, SERVER_ISS];
    let mut pair = Pair::with(round(), server, iss, Box::new(|_| vec![Duration::ZERO]));
    pair.write(CLIENT, data(200_000));
    for _ in 0..3000 {
        pair.run_for(MS);
        assert!(pair.client.flight() <= 10_000);
    }
    assert_eq!(pair.got[SERVER], data(200_000));
    // The congestion window does not grow while it is not used.
    assert!(pair.client.congestion_window() <= 21_000);
}

#[test]
fn nagle_holds_small_segments_back_while_something_is_on_its_way() {
    for (nodelay, expected) in [(true, vec![0, 1, 2]), (false, vec![0, 100])] {
        let mut pair = Pair::opened(Config { nodelay, delayed_ack: 1, ..round() });
        let start = pair.now;
        for word in ["one", "two", "six"] {
            pair.write(CLIENT, word);
            pair.run_for(MS);
        }
        pair.run_for(300 * MS);
        let times: Vec<_> = pair.data_sent(CLIENT, start).iter().map(|it| it.0).collect();
        assert_eq!((times, &pair.got[SERVER][..]), (expected, &b"onetwosix"[..]));
    }
}

#[test]
fn nagle_sends_full_segments_at_once() {
    let mut pair = Pair::opened(Config { nodelay: false, delayed_ack: 1, ..round() });
    let start = pair.now;
    pair.write(CLIENT, data(2500));
    pair.run_for(400 * MS);
    assert_eq!(pair.data_sent(CLIENT, start), [(0, 0, 1000), (0, 1000, 1000), (100, 2000, 500)]);
}

#[test]
fn after_a_pause_the_window_is_the_initial_one() {
    let mut pair = Pair::opened(Config { delayed_ack: 1, ..round() });
    pair.write(CLIENT, data(60_000));
    pair.run_for(2000 * MS);
    assert!(pair.client.congestion_window() > 10_000);
    let start = pair.now;
    pair.write(CLIENT, data(20_000));
    assert_eq!(pair.data_sent(CLIENT, start).len(), 2);
}

#[test]
fn sequence_numbers_pass_the_end_of_their_circle() {
    let (iss, config) = ([u32::MAX - 3000, u32::MAX], Config { delayed_ack: 1, ..round() });
    let mut pair = Pair::with(config, config, iss, Box::new(|_| vec![Duration::ZERO]));
    pair.write(CLIENT, data(100_000));
    pair.write(SERVER, data(100_000));
    pair.run_for(5000 * MS);
    assert!(pair.got.iter().all(|got| *got == data(100_000)));
    assert_eq!(pair.client.counters().retransmitted, 0);
}

#[test]
fn the_last_segment_of_what_was_written_is_pushed() {
    let mut pair = Pair::opened(round());
    pair.write(CLIENT, data(1500));
    let pushed: Vec<_> = pair.sent.iter().map(|it| it.segment.flags.has(Flags::PSH)).collect();
    assert_eq!(pushed, [false, true]);
}

#[test]
fn a_write_takes_what_fits() {
    let mut pair = Pair::opened(Config { send_buffer: 5000, ..round() });
    let mut bytes = Bytes::from(data(7000));
    assert_eq!((pair.client.write(&mut bytes), bytes.len()), (5000, 2000));
    assert_eq!((pair.client.writable(), pair.client.write(&mut bytes)), (0, 0));
    pair.drain();
    pair.run_for(101 * MS);
    assert_eq!(pair.client.writable(), 2000);
    pair.client.close();
    assert_eq!((pair.client.writable(), pair.client.write(&mut bytes)), (0, 0));
}

#[test]
fn small_segments_wait_until_those_before_them_have_left_the_machine() {
    let lengths = |cork| {
        let mut pair = Pair::opened(Config { nodelay: true, cork, ..round() });
        let start = pair.now;
        for length in [100, 200, 300] {
            pair.then(CLIENT, |client| client.write(&mut data(length).into()));
            pair.then(CLIENT, Connection::enter_queue);
        }
        pair.then(CLIENT, |client| (0..3).for_each(|_| client.leave_queue()));
        pair.run_for(200 * MS);
        assert_eq!(pair.got[SERVER].len(), 600);
        pair.data_sent(CLIENT, start).iter().map(|it| it.2).collect::<Vec<_>>()
    };
    assert_eq!(lengths(false), [100, 200, 300]);
    assert_eq!(lengths(true), [100, 500]);
}
