//! How connections are opened (RFC 9293, section 3.5).

use super::*;
use crate::net::tcp::{End, State};

#[test]
fn three_segments_open_a_connection() {
    let mut pair = Pair::new(Config::default());
    pair.run_for(99 * MS);
    assert_eq!(pair.client.state(), State::SynSent);
    pair.run_for(MS);
    assert_eq!(
        (pair.client.state(), pair.server().state()),
        (State::Established, State::SynReceived)
    );
    pair.run_for(50 * MS);
    assert_eq!(pair.server().state(), State::Established);
    let seen: Vec<_> =
        pair.sent.iter().map(|it| (ms(it.at - Instant::ZERO), it.segment.flags)).collect();
    assert_eq!(seen, [(0, Flags::SYN), (50, Flags::SYN | Flags::ACK), (100, Flags::ACK)]);
    assert!(pair.sent[..2].iter().all(|it| it.segment.mss == Some(1460)));
    assert_eq!(pair.client.round_trip(), Some(100 * MS));
    assert_eq!(pair.client.poll_timeout(), None);
}

#[test]
fn the_smaller_segment_size_counts() {
    let mut pair = Pair::with(
        round(),
        Config { mss: 400, ..round() },
        [CLIENT_ISS, SERVER_ISS],
        Box::new(|_| vec![MS]),
    );
    pair.write(CLIENT, data(10_000));
    pair.run_for(1000 * MS);
    assert!(pair.data_sent(CLIENT, Instant::ZERO).iter().all(|(.., len)| *len == 400));
    assert_eq!(pair.got[SERVER], data(10_000));
}

#[test]
fn a_lost_syn_is_sent_again_after_1_3_7_seconds_and_so_on_until_nobody_is_believed_there() {
    let mut pair = Pair::new(Config::default());
    pair.line.clear();
    pair.lose(|_| true);
    pair.run_for(600_000 * MS);
    let seconds: Vec<_> = pair.sent.iter().map(|it| (it.at - Instant::ZERO).as_secs()).collect();
    assert_eq!(seconds, [0, 1, 3, 7, 15, 31, 63]);
    assert_eq!((pair.client.state(), pair.client.end()), (State::Closed, Some(End::TimedOut)));
}

#[test]
fn after_a_lost_syn_one_segment_begins_and_the_timeout_is_3_seconds() {
    let mut pair = Pair::new(Config::default());
    pair.line.clear();
    pair.run_for(1100 * MS);
    assert_eq!(pair.client.state(), State::Established);
    assert_eq!(pair.client.congestion_window(), 1460);
    assert_eq!(pair.client.rto(), 3000 * MS);
}

#[test]
fn a_lost_answer_is_repeated_at_once_when_the_syn_comes_again() {
    let mut pair = Pair::new(Config::default());
    let mut first = true;
    pair.lose(move |sent| sent.from == SERVER && std::mem::take(&mut first));
    pair.run_for(1100 * MS);
    assert_eq!(pair.client.state(), State::Established);
    let answers = pair.sent.iter().filter(|it| it.segment.flags == Flags::SYN | Flags::ACK);
    let answers: Vec<_> = answers.map(|it| ms(it.at - Instant::ZERO)).collect();
    // At 1050 ms the repeated SYN and the timer both cause an answer; one is sent.
    assert_eq!(answers[..2], [50, 1050]);
}

#[test]
fn a_lost_answer_counts_as_lost_though_the_syn_comes_again_before_the_timer_runs_out() {
    let mut pair = Pair::new(round());
    // The first SYN arrives 200 ms late, so the server's timer expires at 1250 ms. Its answer is lost.
    let (at, of_syn) = pair.line.pop_first().map(|(key, it)| (key.0, it)).unwrap();
    pair.line.insert((at + 200 * MS, 0), of_syn);
    let mut first = true;
    pair.lose(move |sent| sent.from == SERVER && std::mem::take(&mut first));
    pair.run_for(1200 * MS);
    let answers = pair.sent.iter().filter(|it| it.segment.flags == Flags::SYN | Flags::ACK);
    let answers: Vec<_> = answers.map(|it| ms(it.at - Instant::ZERO)).collect();
    assert_eq!((answers, pair.server().counters().timeouts), (vec![250, 1050], 0));
    assert_eq!(pair.server().state(), State::Established);
    assert_eq!(pair.server().congestion_window(), 1000);
    assert_eq!(pair.server().rto(), 3000 * MS);
}

#[test]
fn a_lost_last_acknowledgement_matters_not_when_data_follows() {
    let mut pair = Pair::new(Config::default());
    pair.run_for(60 * MS);
    pair.lose(|sent| sent.from == CLIENT && sent.segment.sequence_len() == 0);
    pair.run_for(60 * MS);
    pair.write(CLIENT, "hello");
    pair.run_for(60 * MS);
    assert_eq!((pair.server().state(), &pair.got[SERVER][..]), (State::Established, &b"hello"[..]));
}

#[test]
fn both_may_open_at_the_same_time() {
    let mut sides = [1000, u32::MAX].map(|iss| Connection::connect(round(), Instant::ZERO, iss));
    let mut now = Instant::ZERO;
    for _ in 0..4 {
        let mut out = sides
            .each_mut()
            .map(|side| std::iter::from_fn(|| side.poll_transmit(now)).collect::<Vec<_>>());
        now = now + DELAY;
        out.reverse();
        for (side, segments) in sides.iter_mut().zip(out) {
            segments.into_iter().for_each(|it| side.handle_segment(now, it));
        }
    }
    assert!(sides.iter().all(|side| side.state() == State::Established));
    sides[0].write(&mut Bytes::from_static(b"hello"));
    let segment = sides[0].poll_transmit(now).unwrap();
    sides[1].handle_segment(now, segment);
    assert_eq!(sides[1].read(9).as_deref(), Some(&b"hello"[..]));
}

#[test]
fn a_refusal_ends_it_but_a_stray_one_does_not() {
    let mut pair = Pair::new(Config::default());
    let reset = |ack| Segment {
        seq: 0,
        ack,
        flags: Flags::RST | Flags::ACK,
        window: 0,
        mss: None,
        payload: Bytes::new(),
        ..Segment::default()
    };
    pair.client.handle_segment(pair.now, reset(CLIENT_ISS + 7));
    assert_eq!(pair.client.state(), State::SynSent);
    pair.client.handle_segment(pair.now, reset(CLIENT_ISS + 1));
    assert_eq!(pair.client.end(), Some(End::Refused));
    assert_eq!((pair.client.poll_transmit(pair.now), pair.client.poll_timeout()), (None, None));
}

#[test]
fn an_answer_to_an_older_connection_is_reset() {
    let mut pair = Pair::new(Config::default());
    let old = Segment {
        seq: 77,
        ack: 4242,
        flags: Flags::ACK,
        window: 1000,
        mss: None,
        payload: Bytes::new(),
        ..Segment::default()
    };
    pair.client.handle_segment(pair.now, old);
    let answer = pair.client.poll_transmit(pair.now).unwrap();
    assert_eq!((answer.seq, answer.flags), (4242, Flags::RST));
    assert_eq!(pair.client.state(), State::SynSent);
}
