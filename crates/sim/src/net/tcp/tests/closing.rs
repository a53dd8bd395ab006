//! How connections end.

use super::*;
use crate::net::tcp::{End, State};

fn states(pair: &mut Pair) -> (State, State) {
    (pair.client.state(), pair.server().state())
}

#[test]
fn one_closes_after_the_other_and_all_data_goes_before() {
    let mut pair = Pair::opened(round());
    pair.write(CLIENT, data(1500));
    pair.then(CLIENT, Connection::close);
    assert_eq!(pair.client.state(), State::FinWait1);
    pair.run_for(50 * MS);
    assert!(pair.server().peer_closed());
    assert_eq!(pair.server().state(), State::CloseWait);
    pair.run_for(50 * MS);
    assert_eq!(states(&mut pair), (State::FinWait2, State::CloseWait));
    // The other direction still works.
    pair.write(SERVER, data(9000));
    pair.run_for(1000 * MS);
    assert_eq!((pair.got[SERVER].len(), pair.got[CLIENT].len()), (1500, 9000));
    pair.then(SERVER, Connection::close);
    assert_eq!(pair.server().state(), State::LastAck);
    pair.run_for(50 * MS);
    assert_eq!(states(&mut pair), (State::TimeWait, State::LastAck));
    assert_eq!(pair.client.end(), Some(End::Done));
    pair.run_for(50 * MS);
    assert_eq!(states(&mut pair), (State::TimeWait, State::Closed));
    pair.run_for(950 * MS);
    assert_eq!(states(&mut pair), (State::Closed, State::Closed));
    assert_eq!((pair.server().end(), pair.next()), (Some(End::Done), None));
    let fins = pair.sent.iter().filter(|it| it.segment.flags.has(Flags::FIN)).count();
    assert_eq!(fins, 2);
}

#[test]
fn both_close_at_the_same_time() {
    let mut pair = Pair::opened(round());
    pair.then(CLIENT, Connection::close);
    pair.then(SERVER, Connection::close);
    pair.run_for(50 * MS);
    assert_eq!(states(&mut pair), (State::Closing, State::Closing));
    pair.run_for(50 * MS);
    assert_eq!(states(&mut pair), (State::TimeWait, State::TimeWait));
    pair.run_for(1000 * MS);
    assert_eq!(states(&mut pair), (State::Closed, State::Closed));
}

#[test]
fn a_lost_fin_or_its_acknowledgement_is_made_good() {
    for lost in 0..6 {
        let mut pair = Pair::opened(round());
        let mut count = 0;
        pair.lose(move |_| {
            count += 1;
            count == lost + 1
        });
        pair.write(CLIENT, data(800));
        pair.then(CLIENT, Connection::close);
        pair.run_for(60 * MS);
        pair.then(SERVER, Connection::close);
        pair.run_for(5000 * MS);
        assert_eq!(states(&mut pair), (State::Closed, State::Closed), "lost {lost}");
        assert_eq!((pair.client.end(), pair.server().end()), (Some(End::Done), Some(End::Done)));
        assert_eq!(pair.got[SERVER], data(800));
    }
}

#[test]
fn a_fin_passes_a_closed_window() {
    let mut pair = Pair::opened(Config { receive_buffer: 2000, ..round() });
    pair.reads[SERVER] = false;
    pair.write(CLIENT, data(2000));
    pair.run_for(500 * MS);
    pair.then(CLIENT, Connection::close);
    pair.run_for(200 * MS);
    assert_eq!(states(&mut pair), (State::FinWait2, State::CloseWait));
    pair.reads[SERVER] = true;
    pair.drain();
    assert_eq!(pair.got[SERVER], data(2000));
}

#[test]
fn aborting_resets_the_peer() {
    let mut pair = Pair::opened(round());
    pair.write(CLIENT, data(1000));
    pair.then(CLIENT, Connection::abort);
    assert_eq!((pair.client.state(), pair.client.end()), (State::Closed, Some(End::Aborted)));
    pair.run_for(50 * MS);
    assert_eq!((pair.server().state(), pair.server().end()), (State::Closed, Some(End::Reset)));
    assert_eq!(pair.next(), None);
}

#[test]
fn aborting_resets_a_peer_whose_window_is_closed_or_that_missed_data() {
    let mut pair = Pair::opened(Config { receive_buffer: 2000, ..round() });
    pair.reads[SERVER] = false;
    pair.write(CLIENT, data(5000));
    pair.run_for(2000 * MS);
    pair.then(CLIENT, Connection::abort);
    pair.run_for(50 * MS);
    assert_eq!(pair.server().end(), Some(End::Reset));

    let mut pair = Pair::opened(round());
    pair.lose(|sent| !sent.segment.payload.is_empty());
    pair.write(CLIENT, data(2000));
    pair.then(CLIENT, Connection::abort);
    pair.run_for(50 * MS);
    assert_eq!(pair.server().end(), Some(End::Reset));
}

#[test]
fn a_reset_outside_the_window_is_not_believed() {
    let mut pair = Pair::opened(round());
    let next = CLIENT_ISS + 1;
    for (seq, end) in [(next - 1, None), (next + 131_072, None), (next + 131_071, Some(End::Reset))]
    {
        let reset = Segment {
            seq,
            ack: 0,
            flags: Flags::RST,
            window: 0,
            mss: None,
            payload: Bytes::new(),
            ..Segment::default()
        };
        let now = pair.now;
        pair.server().handle_segment(now, reset);
        assert_eq!(pair.server().end(), end);
    }
}

#[test]
fn a_peer_that_never_closes_is_not_waited_for_in_silence_for_ever() {
    let mut pair = Pair::opened(round());
    pair.then(CLIENT, Connection::close);
    pair.run_for(30_000 * MS);
    pair.write(SERVER, data(10));
    pair.run_for(60_049 * MS);
    assert_eq!(pair.client.state(), State::FinWait2);
    pair.run_for(MS);
    assert_eq!((pair.client.state(), pair.client.end()), (State::Closed, Some(End::TimedOut)));
}

#[test]
fn closing_before_it_is_open_closes_it_then() {
    let mut pair = Pair::new(round());
    pair.write(CLIENT, "hello");
    pair.then(CLIENT, Connection::close);
    pair.run_for(300 * MS);
    assert_eq!(states(&mut pair), (State::FinWait2, State::CloseWait));
    assert_eq!(pair.got[SERVER], b"hello");
}

#[test]
fn what_came_before_the_end_can_be_read_for_a_while() {
    let mut pair = Pair::opened(round());
    pair.reads[SERVER] = false;
    pair.write(CLIENT, "hello");
    pair.then(CLIENT, Connection::close);
    pair.run_for(60 * MS);
    pair.then(SERVER, Connection::close);
    pair.run_for(500 * MS);
    assert_eq!((pair.server().state(), pair.server().readable()), (State::Closed, 5));
    pair.run_for(1000 * MS);
    assert_eq!((pair.server().readable(), pair.server().poll_timeout()), (0, None));
}
