//! Ends of another version, with another key, or that are no ends at all.

use crate::rogue::{AgainstFar, AgainstNear, hello, keys};
use node::testing::PairEnd;
use node::testing::uplink_encoded;
use node::uplink::{Ended, Guest, Message, NearInput, NearOutput, PairReport, State};
use std::time::Duration;
use store::HistoryState;

/// What a far end answers to these bytes, if it takes them for a near end's.
fn greeted(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut guest = Guest::default();
    let is_over = guest.receive(bytes, &mut keys(2)).is_err();
    assert!(is_over || guest.take_outbox().is_none());
    is_over.then(|| guest.take_outbox().map(Vec::from).unwrap_or_default())
}

/// How a far end ends a connection that begins so, before it answers.
fn ended(bytes: &[u8]) -> Option<Ended> {
    let mut guest = Guest::default();
    let end = guest.receive(bytes, &mut keys(2)).err();
    assert!(end == Some(Ended::Version) || guest.take_outbox().is_none(), "it answers");
    end
}

/// What a near end with key 1 sends first to the far end with this key.
fn first_flight(far: u8) -> Vec<u8> {
    PairEnd::near(keys(1), &keys(far).key()).take_outbox().unwrap().into()
}

#[test]
fn another_version_or_protocol_is_refused_in_three_bytes() {
    let refusal = Some(vec![0, 0, 1]);
    assert_eq!(greeted(b"HSUP\x01\0\0\0"), refusal);
    assert_eq!(greeted(b"HSUP\x02\0\0\0"), refusal, "and so is the version before");
    assert_eq!(greeted(b"HSUP\x03\0\0\x01"), refusal);
    assert_eq!(greeted(b"GET / HTTP/1.1\r\n\r\n"), refusal);
    assert_eq!(greeted(b"X"), refusal, "it does not wait for more");
    assert_eq!(greeted(b"HSU"), None, "it does");
}

#[test]
fn who_does_not_know_the_far_ends_key_gets_no_answer() {
    let sound = first_flight(2);
    assert_eq!(ended(&sound[..sound.len() - 1]), None, "it waits for the whole");
    assert_eq!(ended(&first_flight(7)), Some(Ended::Unproven), "a proof for another far end");
    for at in 8..sound.len() {
        // A length that is not the message's is waited for, or has no end in sight.
        let mut changed = sound.clone();
        changed[at] ^= 1;
        let end = ended(&changed);
        assert!(end == Some(Ended::Unproven) || (at == 25 && end.is_none()), "byte {at}: {end:?}");
    }
    let endless = [&sound[..24], &[0xff, 0xff]].concat();
    assert_eq!(ended(&endless), Some(Ended::Unproven), "before it has all come");
}

#[test]
fn a_guest_has_begun_once_its_proof_is_there() {
    let (sound, mut guest) = (first_flight(2), Guest::default());
    for byte in &sound[..sound.len() - 1] {
        assert_eq!(guest.receive(&[*byte], &mut keys(2)), Ok(None));
        assert!(!guest.is_begun());
    }
    assert_eq!(guest.receive(&sound[sound.len() - 1..], &mut keys(2)), Ok(None));
    assert!(guest.is_begun() && guest.take_outbox().is_some());
    // What is repeated gains no more than this: a second handshake message is awaited.
    let garbage = [&[0, 60][..], &[7; 60]].concat();
    assert_eq!(guest.receive(&garbage, &mut keys(2)), Err(Ended::Broken));
    assert!(guest.take_outbox().is_none());
}

#[test]
fn a_far_end_that_closes_without_a_word_is_dialled_again_soon() {
    let mut rogue = AgainstNear::dialling(2, None);
    let mut waits = Vec::new();
    for _ in 0..5 {
        // Not so much as the second message of the handshake has come.
        rogue.connect_unheard();
        let begun = rogue.now;
        rogue.near.handle_input(rogue.now, NearInput::Closed);
        rogue.settle();
        waits.push(rogue.until_dial().since(begun).as_secs());
    }
    assert_eq!(waits, [1, 2, 4, 4, 4]);
    assert_eq!(rogue.notices.len(), 1, "{:?}", rogue.notices);
    assert!(rogue.notices[0].contains("far-key"), "{:?}", rogue.notices);
}

#[test]
fn what_a_later_version_says_is_skipped_and_counted() {
    // A message of an unknown kind, and a known one with a field more: a credit of flow 2 with three bytes too many.
    let later = [&[200, 3, 1, 2, 3][..], &[2, 5, 4, 0, 7, 7, 7]].concat();
    let after = uplink_encoded(&[Message::Beat { nonce: 9, first: 0, disk: 0, network: 0 }]);
    let skipped = |report: PairReport| (report.messages_unknown, report.parts_unknown);
    let mut rogue = AgainstNear::with_requests(1..2);
    let record = rogue.end.say_encoded(&[&later[..], &after].concat()).unwrap();
    rogue.receive(record);
    assert!(!rogue.is_broken() && rogue.heard.contains(&Message::Beaten(9)));
    assert_eq!(skipped(rogue.near.report()), (1, 1));
    let mut rogue = AgainstFar::up();
    let record = rogue.end.say_encoded(&[&later[..], &after].concat()).unwrap();
    rogue.receive(record);
    assert!(!rogue.is_over && rogue.heard.contains(&Message::Beaten(9)));
    assert_eq!(skipped(rogue.far.report()), (1, 1));
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
    let (mut end, mut guest, mut far_keys) =
        (PairEnd::near(keys(9), &keys(2).key()), Guest::default(), keys(2));
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
