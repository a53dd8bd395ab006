//! A near end that breaks the rules: the far end's memory is bounded, and others are not held up.

use crate::bytes::noise;
use crate::rogue::{AgainstFar, head, hello, literals, number, open, worker};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use node::testing::PairEnd;
use node::uplink::{FarInput, Job, MemoryUnits, Message, State, Worker};
use node::{FetchError, FetchId, OriginInput};
use std::time::Duration;
use store::Mark;

#[test]
fn wants_are_bounded() {
    let mut rogue = AgainstFar::up();
    rogue.reads = false;
    let mut said = 0;
    while rogue.far.state() == State::Up && said < 100 {
        rogue.say(&vec![Message::Want(vec![0; 64]); 100]);
        said += 1;
    }
    assert!(rogue.is_over && rogue.supplies <= 128, "{}", rogue.supplies);
    // One who reads may ask as often as it likes.
    let mut rogue = AgainstFar::up();
    (0..20).for_each(|_| rogue.say(&[Message::Want(vec![0; 64])]));
    assert_eq!((rogue.far.state(), rogue.supplies), (State::Up, 20 * 64));
}

#[test]
fn only_the_newest_beat_is_answered() {
    let mut rogue = AgainstFar::up();
    rogue.reads = false;
    for nonce in 0..10_000 {
        rogue.say(&[Message::Beat { nonce, first: u64::MAX, disk: 0, network: 0 }]);
    }
    rogue.heard.clear();
    rogue.reads = true;
    rogue.settle();
    assert_eq!(rogue.heard, [Message::Beaten(9999)]);
}

#[test]
fn a_near_end_with_too_many_requests_is_refused_them() {
    let mut rogue = AgainstFar::up();
    (0..1024).for_each(|id| rogue.say(&[open(id, false)]));
    assert_eq!((rogue.asked.len(), rogue.is_over), (1024, false));
    rogue.say(&[open(1024, true)]);
    assert_eq!((rogue.asked.len(), rogue.is_over, rogue.cancelled.len()), (1024, false, 0));
    let refused = Message::Finish(number(1024), Err(FetchError::NoRoom));
    assert!(rogue.heard.contains(&refused), "{:?}", rogue.heard.last());
    let mut rogue = AgainstFar::up();
    rogue.say(&[open(1, false), open(1, false)]);
    assert!(rogue.is_over && rogue.asked.len() == 1, "a number is used twice");
}

#[test]
fn cancelled_requests_leave_nothing_behind() {
    let mut rogue = AgainstFar::up();
    for id in 0..1100 {
        rogue.say(&[open(id, true), Message::Cancel(number(id))]);
    }
    assert_eq!((rogue.cancelled.len(), rogue.is_over), (1100, false));
    rogue.say(&[open(5000, true)]);
    let (batch, payload) = literals(5000, 0, &[&[1; 5000]]);
    let ends = [Message::Batch(batch), Message::Finish(number(5000), Ok(()))];
    rogue.say_with(&ends, &[(1, &payload)]);
    let (content, end) = &rogue.content[&FetchId(1101)];
    assert!(*content == [1; 5000] && *end == Some(Ok(())));
}

#[test]
fn of_a_request_that_one_record_opens_and_cancels_nothing_is_left() {
    let mut rogue = AgainstFar::up();
    rogue.say(&[open(1, false), Message::Cancel(number(1))]);
    rogue.say(&[open(2, true), Message::Cancel(number(2))]);
    rogue.say(&[open(1, false)]);
    rogue.say(&[open(2, true)]);
    assert!(!rogue.is_over, "their numbers are free again");
}

#[test]
fn messages_that_unpack_to_much_are_heard_in_turns() {
    let mut rogue = AgainstFar::up();
    let many = [200, 0].repeat(100_000);
    let records: Vec<_> = (0..5).map(|_| rogue.end.say_encoded(&many).unwrap()).collect();
    rogue.receive(records.concat());
    for turn in 1..=5 {
        assert_eq!(rogue.far.report().messages_unknown, turn * 100_000);
        let (may, due) = (rogue.far.may_receive(), rogue.far.poll_timeout() <= Some(rogue.now));
        // After the last one it is seen that nothing is left.
        assert_eq!((may, due), (false, true), "others have a turn");
        rogue.far.handle_input(rogue.now, FarInput::Tick);
    }
    assert!(rogue.far.may_receive() && rogue.far.poll_timeout() > Some(rogue.now));
}

#[test]
fn heads_that_nobody_reads_are_bounded() {
    let mut rogue = AgainstFar::up();
    let long = HeaderValue::from_bytes(&[b'x'; 30_000]).unwrap();
    let headers = HeaderMap::from_iter([(HeaderName::from_static("x-long"), long)]);
    let ask = |rogue: &mut AgainstFar, id| {
        rogue.say(&[open(id, false)]);
        let fetch = FetchId(rogue.asked.len() as u64);
        rogue.origin(OriginInput::Head(fetch, StatusCode::OK, headers.clone()));
        rogue.origin(OriginInput::End(fetch, Ok(())));
    };
    rogue.reads = false;
    (0..500).for_each(|id| ask(&mut rogue, id));
    assert_eq!((rogue.asked.len(), rogue.is_over), (35, false), "a MiB of them waits");
    rogue.reads = true;
    rogue.settle();
    let refused = Message::Finish(number(499), Err(FetchError::NoRoom));
    assert!(rogue.heard.contains(&refused), "{:?}", rogue.heard.last());
    ask(&mut rogue, 500);
    assert_eq!(rogue.asked.len(), 36, "who has read them is served again");
}

#[test]
fn what_was_asked_for_and_not_taken_is_bounded() {
    let mut rogue = AgainstFar::up();
    rogue.reads = false;
    for id in 0..300 {
        rogue.say(&[open(id, false)]);
        let fetch = FetchId(id + 1);
        let ok = OriginInput::Head(fetch, StatusCode::OK, HeaderMap::new());
        rogue.origin(ok);
        rogue.origin(OriginInput::Body(fetch, noise(id, 40_000).into()));
        rogue.origin(OriginInput::End(fetch, Ok(())));
        rogue.say(&[Message::Cancel(number(id))]);
    }
    let waiting = rogue.worker.held().0.end;
    assert!((500..600).contains(&waiting), "{waiting} units wait to be sent");
}

#[test]
fn a_head_that_cannot_cross_ends_its_request_alone() {
    let long = HeaderValue::from_bytes(&[b'x'; 41_000]).unwrap();
    let long = HeaderMap::from_iter([(HeaderName::from_static("x-long"), long)]);
    let many = (0..300)
        .map(|n| (HeaderName::try_from(format!("x-{n}")).unwrap(), HeaderValue::from_static("1")));
    for headers in [long, many.collect()] {
        let mut rogue = AgainstFar::up();
        rogue.say(&[open(1, false), open(2, false)]);
        rogue.origin(OriginInput::Head(FetchId(1), StatusCode::OK, headers));
        rogue.origin(OriginInput::Body(FetchId(1), noise(1, 5000).into()));
        let ends = [Message::Finish(number(1), Err(FetchError::Malformed))];
        assert_eq!(rogue.heard[1..], ends, "no content crosses");
        assert_eq!((rogue.cancelled, rogue.is_over), (vec![FetchId(1)], false));
    }
}

#[test]
fn a_connection_that_replaces_another_stays() {
    let mut rogue = AgainstFar::up();
    rogue.say(&[open(1, false)]);
    rogue.connect();
    rogue.say(&[hello()]);
    assert_eq!((rogue.far.state(), rogue.is_over), (State::Up, false));
    assert_eq!(rogue.cancelled, [FetchId(1)]);
}

#[test]
fn messages_for_the_other_side_do_nothing() {
    let mut rogue = AgainstFar::up();
    let credit = Message::Credit(number(9), u64::MAX);
    rogue.say(&[head(1), Message::Cancel(number(77)), credit, Message::Finish(number(3), Ok(()))]);
    assert!(rogue.far.state() == State::Up && rogue.asked.is_empty());
}

/// A worker that has sent ten units.
fn used() -> Worker<MemoryUnits> {
    let mut worker = worker();
    let units = (0..10).map(|n| (Mark::default(), noise(n, 4000).into())).collect();
    worker.work(Job::Pack { first: 0, units, dictionary: Vec::new(), level: 3 });
    worker
}

#[test]
fn an_end_that_cannot_read_its_marks_goes_on_behind_them() {
    let mut rogue = AgainstFar::new(used(), false);
    let held = rogue.worker.held().0;
    rogue.connect();
    let hello = node::testing::Hello {
        out: Default::default(),
        within: held,
        fresh: [5; 16],
        scheme: None,
        reach: node::uplink::Reach::default(),
    };
    rogue.say(&[Message::Hello(hello)]);
    rogue.say(&[open(1, false)]);
    rogue.origin(OriginInput::Head(FetchId(1), StatusCode::OK, HeaderMap::new()));
    rogue.origin(OriginInput::Body(FetchId(1), noise(99, 5000).into()));
    rogue.origin(OriginInput::End(FetchId(1), Ok(())));
    let firsts = rogue.heard.iter().filter_map(|message| match message {
        Message::Batch(batch) => batch.literals.as_ref().map(|it| it.first),
        _ => None,
    });
    assert_eq!(firsts.collect::<Vec<_>>(), [10]);
}

#[test]
fn an_index_with_less_memory_has_fewer_units() {
    let mut rogue = AgainstFar::new(used(), true);
    assert_eq!(rogue.far.units(), 10);
    rogue.far.limit(1 << 20, 4);
    assert_eq!(rogue.far.units(), 4);
}

#[test]
fn an_end_that_is_not_accepted_says_nothing() {
    let mut end = PairEnd::near(crate::rogue::keys(1), &crate::rogue::keys(2).key());
    assert!(end.say(&[open(1, false)], &[]).is_none());
}

#[test]
fn many_heads_at_once_cross_in_records_that_fit() {
    let mut rogue = AgainstFar::up();
    (0..300).for_each(|id| rogue.say(&[open(id, false)]));
    rogue.reads = false;
    for id in 0..300 {
        let noise = blake3::hash(&[id as u8, 1]).to_hex().repeat(10);
        let value = HeaderValue::from_str(&noise).unwrap();
        let headers = HeaderMap::from_iter([(HeaderName::from_static("x-noise"), value)]);
        rogue.origin(OriginInput::Head(FetchId(id + 1), StatusCode::OK, headers));
    }
    rogue.reads = true;
    rogue.now = rogue.now + Duration::from_millis(10);
    rogue.far.handle_input(rogue.now, FarInput::Tick);
    rogue.settle();
    let heads = rogue.heard.iter().filter(|it| matches!(it, Message::Head(..))).count();
    assert_eq!((heads, rogue.is_over), (300, false));
}
