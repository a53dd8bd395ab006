//! Ends of another version, with another key, or that are no ends at all.

use crate::rogue::{AgainstFar, AgainstNear, hello, keys};
use node::testing::PairEnd;
use node::uplink::{Guest, Message, NearInput, NearOutput, State};
use std::time::Duration;
use store::HistoryState;

/// What a far end answers to these bytes, if it takes them for a near end's.
fn greeted(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut guest = Guest::default();
    let is_over = guest.receive(bytes, &mut keys(2)).is_err();
    assert!(is_over || guest.take_outbox().is_none());
    is_over.then(|| guest.take_outbox().map(Vec::from).unwrap_or_default())
}

#[test]
fn another_version_or_protocol_is_refused_in_three_bytes() {
    let refusal = Some(vec![0, 0, 1]);
    assert_eq!(greeted(b"HSUP\x01\0\0\0"), refusal);
    assert_eq!(greeted(b"HSUP\x02\0\0\x01"), refusal);
    assert_eq!(greeted(b"GET / HTTP/1.1\r\n\r\n"), refusal);
    assert_eq!(greeted(b"X"), refusal, "it does not wait for more");
    assert_eq!(greeted(b"HSU"), None, "it does");
}

#[test]
fn garbage_instead_of_a_handshake_ends_it_without_an_answer() {
    for length in [1, 31, 32, 48, 1000, 65_535] {
        let mut bytes = b"HSUP\x02\0\0\0".to_vec();
        bytes.extend_from_slice(&(length as u16).to_be_bytes());
        bytes.extend(vec![7; length]);
        // A whole key is answered, as it may be anybody's.
        if length < 32 {
            assert_eq!(greeted(&bytes), Some(Vec::new()), "{length}");
            continue;
        }
        bytes.extend([0, 5, 1, 2, 3, 4, 5]);
        let mut guest = Guest::default();
        assert!(guest.receive(&bytes, &mut keys(2)).is_err(), "{length}");
    }
}

#[test]
fn a_refusal_is_told_once_and_tried_again_later() {
    for (code, says) in [(1, "another version"), (2, "--near"), (3, "busy"), (200, "version")] {
        let mut rogue = AgainstNear::dialled(2);
        for _ in 0..3 {
            let begun = rogue.now;
            rogue.receive(vec![0, 0, code]);
            assert_eq!(rogue.until_dial().since(begun), Duration::from_secs(30));
            rogue.connect();
        }
        assert_eq!(rogue.notices.len(), 1, "{:?}", rogue.notices);
        assert!(rogue.notices[0].contains(says), "{:?}", rogue.notices);
    }
}

#[test]
fn a_far_end_with_another_key_hears_nothing() {
    let mut rogue = AgainstNear::dialled(7);
    assert_eq!(rogue.hangups, 1);
    assert!(rogue.notices[0].contains("far-key"), "{:?}", rogue.notices);
    if let Some(record) = rogue.end.say(&[hello()], &[]) {
        rogue.receive(record);
    }
    assert!(!rogue.near.is_up() && rogue.heard.is_empty());
}

#[test]
fn a_near_end_of_any_key_is_told_apart_before_a_record_is_read() {
    let (mut end, mut guest, mut far_keys) = (PairEnd::near(keys(9)), Guest::default(), keys(2));
    let first = end.take_outbox().unwrap();
    assert_eq!(guest.receive(&first, &mut far_keys), Ok(None));
    end.receive(&guest.take_outbox().unwrap());
    end.poll();
    let third = end.take_outbox().unwrap();
    let garbage = [&third[..], &[0, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9]].concat();
    assert_eq!(guest.receive(&garbage, &mut far_keys), Ok(Some(keys(9).key())));
}

/// What the far end says that it holds of what it receives, on a new connection.
fn held(rogue: &mut AgainstFar) -> HistoryState {
    assert!(rogue.is_over && rogue.far.state() == State::Down);
    rogue.heard.clear();
    rogue.connect();
    let [Message::Hello(hello)] = rogue.heard[..] else { panic!("{:?}", rogue.heard) };
    hello.within
}

#[test]
fn only_who_has_proven_its_key_can_spoil_a_history() {
    let mut rogue = AgainstFar::up();
    let garbage = [&[0, 20][..], &[7; 20]].concat();
    rogue.receive(garbage);
    let within = held(&mut rogue);
    assert_eq!(within, rogue.worker.held().1, "not so who is in the middle");
    rogue.say(&[hello()]);
    rogue.say(&[hello()]);
    assert_eq!(held(&mut rogue), HistoryState::default(), "it begins anew");
}

#[test]
fn a_hello_is_alone_in_its_record() {
    let mut rogue = AgainstNear::dialled(2);
    rogue.receive(vec![0, 0, 3]);
    rogue.until_dial();
    rogue.kept = Some(Default::default());
    rogue.connect();
    // The far end's hello comes before the worker has said what is held.
    rogue.say(&[hello()]);
    rogue.heard.clear();
    let mut jobs = rogue.kept.take().unwrap();
    while let Some((number, job)) = jobs.pop_front() {
        let done = rogue.worker.work(job);
        rogue.near.handle_input(rogue.now, NearInput::Done(number, done));
        while let Some(output) = rogue.near.poll_output() {
            if let NearOutput::Work(number, job) = output {
                jobs.push_back((number, job));
            }
        }
    }
    assert!(rogue.near.is_up() && rogue.heard.is_empty());
    rogue.records.clear();
    rogue.get(1, 1000);
    assert!(matches!(rogue.heard[..], [Message::Hello(_), Message::Open(..)]));
    assert_eq!(rogue.records, [1, 1], "the other end must agree before it reads more");
}

#[test]
fn a_far_end_that_says_nothing_is_given_up() {
    let mut rogue = AgainstNear::dialled(2);
    rogue.after(Duration::from_secs(9));
    assert_eq!(rogue.hangups, 0);
    rogue.after(Duration::from_secs(1));
    assert_eq!(rogue.hangups, 1);
}

#[test]
fn a_far_end_that_breaks_off_each_time_is_dialled_less_and_less_often() {
    let mut rogue = AgainstNear::dialled(2);
    let mut waits = Vec::new();
    for _ in 0..7 {
        rogue.say(&[hello()]);
        assert!(rogue.near.is_up());
        let begun = rogue.now;
        rogue.say(&[hello()]);
        waits.push(rogue.until_dial().since(begun).as_secs());
        rogue.connect();
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30]);
    rogue.say(&[hello()]);
    rogue.after(Duration::from_secs(6));
    let begun = rogue.now;
    rogue.say(&[hello()]);
    assert_eq!(rogue.until_dial().since(begun), Duration::from_secs(1), "it was sound for a while");
}
