//! Acknowledgements and the receive window.

use super::*;
use crate::net::tcp::{End, State};

fn segment(seq: u32, len: usize) -> Segment {
    let payload = Bytes::from(vec![7; len]);
    let seq = (CLIENT_ISS + 1).wrapping_add(seq);
    Segment {
        seq,
        ack: SERVER_ISS + 1,
        flags: Flags::ACK,
        window: 100_000,
        mss: None,
        payload,
        ..Segment::default()
    }
}

/// Gives a server this segment and reads the data. Returns the offset that the server acknowledges at once.
fn answer(pair: &mut Pair, segment: Segment) -> Option<u32> {
    let now = pair.now;
    pair.server().handle_segment(now, segment);
    while pair.server().read(usize::MAX).is_some() {}
    let answers: Vec<_> = std::iter::from_fn(|| pair.server().poll_transmit(now)).collect();
    assert!(answers.len() <= 1);
    answers.first().map(|it| it.ack - CLIENT_ISS - 1)
}

#[test]
fn every_second_segment_is_acknowledged_at_once() {
    let mut pair = Pair::opened(round());
    let answers: Vec<_> = (0..6).map(|i| answer(&mut pair, segment(1000 * i, 1000))).collect();
    assert_eq!(answers, [None, Some(2000), None, Some(4000), None, Some(6000)]);
}

/// The same without reading the data.
fn take(pair: &mut Pair, segment: Segment) -> Option<u32> {
    let now = pair.now;
    pair.server().handle_segment(now, segment);
    pair.server().poll_transmit(now).map(|it| it.ack - CLIENT_ISS - 1)
}

#[test]
fn what_is_let_gather_is_acknowledged_once_it_is_enough() {
    let mut pair = Pair::opened(round());
    pair.server().gather(4500);
    let answers: Vec<_> = (0..5).map(|i| take(&mut pair, segment(1000 * i, 1000))).collect();
    assert_eq!(answers, [None, None, None, None, Some(5000)]);
    assert!(pair.server().is_readable());
    let next = [5, 6].map(|i| answer(&mut pair, segment(1000 * i, 1000)));
    assert_eq!(next, [None, Some(7000)], "it held for one read");
}

#[test]
fn what_is_let_gather_is_acknowledged_when_it_is_read_or_late() {
    let mut pair = Pair::opened(round());
    pair.server().gather(9000);
    for i in 0..3 {
        assert_eq!(take(&mut pair, segment(1000 * i, 1000)), None);
    }
    assert!(!pair.server().is_readable());
    assert_eq!(answer(&mut pair, segment(3000, 1000)), Some(4000));
    pair.server().gather(9000);
    pair.reads[SERVER] = false;
    let start = pair.now;
    assert_eq!([4, 5].map(|i| take(&mut pair, segment(1000 * i, 1000))), [None; 2]);
    pair.run_for(600 * MS);
    assert_eq!(pair.acks_sent(SERVER, start), [(200, 6000)]);
}

#[test]
fn a_single_segment_is_acknowledged_after_the_delay() {
    let mut pair = Pair::opened(round());
    let start = pair.now;
    pair.write(CLIENT, data(1000));
    pair.run_for(600 * MS);
    assert_eq!(pair.acks_sent(SERVER, start), [(250, 1000)]);
}

#[test]
fn an_acknowledgement_rides_on_data() {
    let mut pair = Pair::opened(round());
    let start = pair.now;
    pair.write(CLIENT, "question");
    pair.run_for(60 * MS);
    pair.write(SERVER, "answer");
    pair.run_for(100 * MS);
    assert_eq!(pair.acks_sent(SERVER, start), []);
    let answer = pair.sent.iter().find(|it| it.from == SERVER).unwrap();
    assert_eq!(answer.segment.ack, CLIENT_ISS + 9);
}

#[test]
fn what_is_out_of_order_or_known_is_acknowledged_at_once() {
    let mut pair = Pair::opened(round());
    let mut answer = |seq, len| answer(&mut pair, segment(seq, len));
    assert_eq!(answer(1000, 1000), Some(0));
    assert_eq!(answer(3000, 1000), Some(0));
    // Fills a gap, in part and then completely.
    assert_eq!(answer(0, 1000), Some(2000));
    assert_eq!(answer(2000, 1000), Some(4000));
    assert_eq!(answer(500, 1000), Some(4000));
    assert_eq!(answer(0, 1), Some(4000));
    // Of data that is known in part, the rest is taken.
    assert_eq!(answer(3500, 1000), None);
    assert_eq!(answer(4500, 1000), Some(5500));
    // Beyond the window.
    assert_eq!(answer(200_000, 1000), Some(5500));
    // Before everything: a plain acknowledgement that arrives late needs no answer.
    assert_eq!(answer(0, 0), None);
}

#[test]
fn a_full_window_stops_the_sender_and_reading_lets_it_go_on() {
    let mut pair = Pair::opened(Config { receive_buffer: 8000, delayed_ack: 1, ..round() });
    pair.reads[SERVER] = false;
    pair.write(CLIENT, data(50_000));
    pair.run_for(1000 * MS);
    assert_eq!(pair.server().readable(), 8000);
    assert_eq!(pair.client.flight(), 0);
    // A window of less than two segments is not worth an update.
    let start = pair.now;
    pair.then(SERVER, |server| server.read(1000));
    pair.then(SERVER, |server| server.read(500));
    assert_eq!(pair.acks_sent(SERVER, start), []);
    pair.then(SERVER, |server| server.read(500));
    assert_eq!(pair.acks_sent(SERVER, start), [(0, 8000)]);
    pair.run_for(50 * MS);
    assert_eq!(pair.data_sent(CLIENT, start), [(50, 8000, 1000), (50, 9000, 1000)]);
    pair.reads[SERVER] = true;
    pair.run_for(5000 * MS);
    let seen: Vec<_> = data(50_000)[2000..].to_vec();
    assert!(pair.got[SERVER] == seen);
}

#[test]
fn a_closed_window_is_probed_ever_more_seldom_as_long_as_there_is_an_answer() {
    let mut pair = Pair::opened(Config { receive_buffer: 4000, delayed_ack: 1, ..round() });
    pair.reads[SERVER] = false;
    pair.write(CLIENT, data(10_000));
    pair.run_for(250 * MS);
    // The window was full at 150 ms (two times two segments), and the client knew at 200 ms. Three round
    // trips were measured, each 100 ms, so the timeout is 100 + 4 * 50 * (3/4)^4 ms, or 200 ms at least.
    let start = pair.now;
    pair.run_for(600_000 * MS);
    let probes = pair.data_sent(CLIENT, start);
    assert!(probes.iter().all(|it| (it.1, it.2) == (4000, 1)));
    let gaps: Vec<_> = probes.windows(2).map(|it| it[1].0 - it[0].0).collect();
    assert_eq!(gaps[..9], [400, 800, 1600, 3200, 6400, 12_800, 25_600, 51_200, 60_000]);
    assert!(gaps[9..].iter().all(|gap| *gap == 60_000));
    assert_eq!(pair.client.state(), State::Established);
    assert_eq!(pair.client.slow_start_threshold(), u32::MAX);
    pair.reads[SERVER] = true;
    pair.drain();
    pair.run_for(1000 * MS);
    assert!(pair.got[SERVER] == data(10_000));
}

#[test]
fn a_lost_window_update_is_made_good_by_a_probe() {
    let mut pair = Pair::opened(Config { receive_buffer: 4000, delayed_ack: 1, ..round() });
    pair.reads[SERVER] = false;
    pair.write(CLIENT, data(10_000));
    pair.run_for(1000 * MS);
    let mut updates = 1;
    pair.lose(move |sent| {
        let lost = sent.from == SERVER && updates > 0;
        updates -= u32::from(lost);
        lost
    });
    pair.reads[SERVER] = true;
    pair.drain();
    pair.run_for(5000 * MS);
    assert!(pair.got[SERVER] == data(10_000));
}

#[test]
fn probes_without_an_answer_end_in_a_timeout() {
    let mut pair =
        Pair::opened(Config { receive_buffer: 4000, delayed_ack: 1, retries: 3, ..round() });
    pair.reads[SERVER] = false;
    pair.write(CLIENT, data(10_000));
    pair.run_for(250 * MS);
    pair.lose(|_| true);
    pair.run_for(60_000 * MS);
    assert_eq!(pair.client.end(), Some(End::TimedOut));
}

#[test]
fn two_closed_windows_open_again() {
    let mut pair = Pair::opened(Config { receive_buffer: 4000, ..round() });
    pair.reads = [false, false];
    for side in [CLIENT, SERVER] {
        pair.write(side, data(20_000));
    }
    pair.run_for(30_000 * MS);
    assert_eq!((pair.client.readable(), pair.server().readable()), (4000, 4000));
    pair.reads = [true, true];
    pair.drain();
    pair.run_for(30_000 * MS);
    assert!(pair.got.iter().all(|got| *got == data(20_000)));
}

#[test]
fn a_window_that_is_smaller_than_a_segment_is_used_after_a_while() {
    let server = Config { receive_buffer: 700, ..round() };
    let iss = [CLIENT_ISS, SERVER_ISS];
    let mut pair = Pair::with(round(), server, iss, Box::new(|_| vec![Duration::ZERO]));
    pair.write(CLIENT, data(5000));
    pair.run_for(30_000 * MS);
    assert!(pair.got[SERVER] == data(5000));
}
