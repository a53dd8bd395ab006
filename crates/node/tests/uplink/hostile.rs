//! A far end that breaks the rules: nothing false is delivered, and memory is bounded.

use crate::bytes::noise;
use crate::net::Net;
use crate::rogue::{AgainstNear, head, hello, literals, number, reference};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use node::testing::{Batch, Coding, Literals};
use node::uplink::{Done, FlowId, Job, Message, NearInput, Span, TcpId, Units, Worker};
use node::{Dial, Fetch, FetchError, FetchId, OriginOutput};
use std::collections::VecDeque;
use std::time::Duration;
use store::{HistoryState, Mark};

/// A batch with its payload, altered.
fn altered(alter: impl Fn(&mut Batch, &mut Vec<u8>)) -> (Batch, Vec<u8>) {
    let (mut batch, mut payload) = literals(1, 0, &[&[1; 5000], &[2; 6000]]);
    alter(&mut batch, &mut payload);
    (batch, payload)
}

fn with_literals(alter: impl Fn(&mut Literals, &mut Vec<u8>)) -> (Batch, Vec<u8>) {
    altered(|batch, payload| alter(batch.literals.as_mut().unwrap(), payload))
}

/// Compressed as a payload is.
fn packed(plain: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(zstd_safe::compress_bound(plain.len()));
    zstd_safe::compress(&mut out, plain, 3).unwrap();
    out.split_off(4)
}

fn pack(literals: &mut Literals, payload: &mut Vec<u8>, plain: &[u8]) {
    *payload = packed(plain);
    (literals.coding, literals.payload) = (Coding::Zstd, payload.len() as u32);
}

#[test]
fn a_sound_batch_is_delivered() {
    let packs = |literals: &mut Literals, payload: &mut Vec<u8>| {
        let plain = payload.clone();
        pack(literals, payload, &plain);
    };
    for batch in [altered(|_, _| {}), with_literals(packs)] {
        let mut rogue = AgainstNear::with_requests(1..2);
        rogue.give(batch);
        rogue.say(&[Message::Finish(number(1), Ok(()))]);
        assert!(rogue.answers[&1].body == [&[1; 5000][..], &[2; 6000]].concat());
        assert_eq!(rogue.answers[&1].end, Some(Ok(())));
    }
}

#[test]
fn a_false_batch_ends_the_connection_and_delivers_nothing() {
    let nowhere = Span { first: 1 << 40, count: 1 };
    let batches = [
        ("another digest", altered(|batch, _| batch.digest[3] ^= 1)),
        ("other bytes", altered(|_, payload| payload[77] ^= 1)),
        ("another length", altered(|batch, _| batch.length += 1)),
        ("more units than bytes", altered(|batch, _| batch.spans[0].count = 20_000)),
        ("no unit", altered(|batch, _| batch.spans.clear())),
        ("a reference to nowhere", altered(|batch, _| batch.spans.push(nowhere))),
        ("a dictionary of nowhere", with_literals(|it, _| it.dictionary = vec![nowhere])),
        (
            "a dictionary of itself",
            with_literals(|it, _| it.dictionary = vec![Span { first: 1, count: 1 }]),
        ),
        ("far away", with_literals(|it, _| it.first = 1 << 20)),
        ("past the end of numbers", with_literals(|it, _| it.first = u64::MAX / 2)),
        ("a longer payload", altered(|_, payload| payload.push(0))),
        ("no zstd", with_literals(|it, _| it.coding = Coding::Zstd)),
        ("a payload of more", with_literals(|it, payload| pack(it, payload, &[0; 11_001]))),
        ("a payload of less", with_literals(|it, payload| pack(it, payload, &[0; 10_999]))),
        ("a bomb", with_literals(|it, payload| pack(it, payload, &vec![0; 64 << 20]))),
        ("a long unit", with_literals(|it, _| it.lengths = vec![20_000])),
        ("an empty unit", with_literals(|it, _| it.lengths.push(0))),
    ];
    for (what, batch) in batches {
        let mut rogue = AgainstNear::with_requests(1..2);
        rogue.give(batch);
        assert!(rogue.is_broken(), "{what}");
        assert_eq!(rogue.answers[&1].end, Some(Err(FetchError::Truncated)), "{what}");
        rogue.heard.clear();
        rogue.connect();
        let [Message::Hello(said)] = rogue.heard[..] else { panic!("{what}: {:?}", rogue.heard) };
        assert_eq!(said.within, HistoryState::default(), "{what}: it begins anew");
    }
}

#[test]
fn a_payload_that_stays_short_holds_nothing_up_but_itself() {
    let mut rogue = AgainstNear::with_requests(1..3);
    rogue.give(altered(|_, payload| payload.truncate(9000)));
    rogue.give(literals(2, 2, &[&[3; 5000]]));
    assert!(rogue.answers[&1].body.is_empty() && rogue.answers[&2].body == [3; 5000]);
}

#[test]
fn no_position_is_taken_twice() {
    let mut rogue = AgainstNear::with_requests(1..3);
    rogue.give(literals(1, 0, &[&[1; 5000], &[2; 5000]]));
    rogue.give(literals(2, 1, &[&[3; 5000]]));
    assert_eq!(rogue.hangups, 1);
    assert!(rogue.answers[&1].body.len() == 10_000 && rogue.answers[&2].body.is_empty());
}

#[test]
fn a_response_has_one_head_first() {
    let cases: [(&str, &[Message]); 3] = [
        ("two heads", &[head(1), head(1)]),
        (
            "another protocol",
            &[Message::Head(number(1), StatusCode::SWITCHING_PROTOCOLS, HeaderMap::new())],
        ),
        ("an information", &[Message::Head(number(1), StatusCode::CONTINUE, HeaderMap::new())]),
    ];
    for (what, messages) in cases {
        let mut rogue = AgainstNear::up();
        rogue.get(1, 1000);
        rogue.say(messages);
        assert!(rogue.is_broken(), "{what}");
    }
    let mut rogue = AgainstNear::up();
    rogue.get(1, 1000);
    rogue.give(literals(1, 0, &[&[1; 100]]));
    assert!(rogue.is_broken() && rogue.past == [1], "content without a head");
    let mut rogue = AgainstNear::up();
    rogue.get(1, 1000);
    rogue.say(&[Message::Finish(number(1), Ok(()))]);
    assert_eq!(rogue.answers[&1].end, Some(Err(FetchError::Malformed)), "an end without a head");
}

#[test]
fn what_is_not_a_message_ends_the_connection() {
    let garbage: [&[u8]; 5] = [&[11], &[255; 40], &[5], &[1, 2, 3], &[0; 200]];
    for bytes in garbage {
        let mut rogue = AgainstNear::with_requests(1..2);
        let record = rogue.end.say_encoded(bytes).unwrap();
        rogue.receive(record);
        assert!(rogue.is_broken(), "{bytes:?}");
    }
    let plain: [&[u8]; 5] = [&[], &[9], &[0, 1, 1, 7], &[0, 0, 1, 7], &[0xff; 20]];
    for bytes in plain {
        let mut rogue = AgainstNear::with_requests(1..2);
        let record = rogue.end.say_plain(bytes).unwrap();
        rogue.receive(record);
        assert!(rogue.is_broken(), "{bytes:?}");
    }
    let mut rogue = AgainstNear::with_requests(1..2);
    let bomb = rogue.end.say_encoded(&vec![10; 32 << 20]).unwrap();
    rogue.receive(bomb);
    assert!(rogue.is_broken(), "a bomb");
    let mut rogue = AgainstNear::dialled(2);
    rogue.say(&[head(1)]);
    assert!(rogue.is_broken(), "no hello");
}

#[test]
fn a_unit_that_nobody_asked_for_ends_the_connection() {
    let mut rogue = AgainstNear::with_requests(1..2);
    rogue.say(&[Message::Unit(7, vec![1; 100])]);
    assert!(rogue.is_broken());
}

#[test]
fn a_unit_that_was_lost_comes_again_and_is_checked() {
    let unit = [6; 4000];
    for (sends, sound) in [(unit.to_vec(), true), (vec![7; 4000], false), (Vec::new(), false)] {
        let mut rogue = AgainstNear::with_requests(1..3);
        rogue.give(literals(1, 0, &[&unit, &[1; 4000]]));
        rogue.worker.units().1.truncate(0);
        // So that it is not read from memory.
        (0..200).for_each(|n| rogue.give(literals(1, 2 + n, &[&noise(n, 4000)])));
        rogue.say(&[Message::Batch(reference(2, 0, &[&unit]))]);
        assert!(matches!(rogue.heard.last(), Some(Message::Want(positions)) if positions == &[0]));
        rogue.say(&[Message::Unit(0, sends)]);
        assert_eq!(rogue.answers[&2].body == unit, sound);
        assert_eq!(rogue.answers[&2].end.is_some(), !sound);
    }
}

#[test]
fn what_nobody_reads_is_bounded() {
    let mut rogue = AgainstNear::up();
    rogue.get(1, 0);
    rogue.say(&[head(1)]);
    rogue.give(literals(1, 0, &[b"x"]));
    let batch = Message::Batch(reference(1, 0, &[b"x"]));
    let many = vec![batch; 1000];
    let mut said = 0;
    while rogue.answers[&1].end.is_none() {
        rogue.say(&many);
        said += 1;
        assert!(said < 100, "it is kept without end");
    }
    assert_eq!(rogue.answers[&1].end, Some(Err(FetchError::Truncated)));
    assert!(rogue.near.is_up() && matches!(rogue.heard.last(), Some(Message::Cancel(2))));
}

#[test]
fn units_that_wait_for_others_are_bounded() {
    let mut rogue = AgainstNear::with_requests(1..2);
    let mut said = 0;
    while rogue.hangups == 0 {
        said += 1;
        rogue.give(literals(1, said, &[&noise(said, 1000)]));
        assert!(said < 3000, "the first one never comes");
    }
    // The same, if it has come, and what it refers to has not.
    let mut rogue = AgainstNear::with_requests(1..2);
    (0..300).for_each(|n| rogue.give(literals(1, n, &[&noise(n, 4000)])));
    rogue.worker.units().1.truncate(0);
    let mut stalled = literals(1, 300, &[&[1; 4000]]);
    let coded = stalled.0.literals.as_mut().unwrap();
    pack(coded, &mut stalled.1, &[1; 4000]);
    coded.dictionary = vec![Span { first: 0, count: 1 }];
    rogue.give(stalled);
    assert!(rogue.heard.contains(&Message::Want(vec![0])));
    let mut said = 300;
    while rogue.hangups == 0 {
        said += 1;
        rogue.give(literals(1, said, &[&noise(said, 1000)]));
        assert!(said < 3300, "it never comes");
    }
}

#[test]
fn nothing_is_received_while_many_jobs_wait() {
    let mut rogue = AgainstNear::with_requests(1..2);
    rogue.kept = Some(Default::default());
    for number in 0..200 {
        if rogue.near.may_receive() {
            rogue.give(literals(1, number, &[&noise(number, 8000)]));
        }
    }
    assert!(!rogue.near.may_receive() && rogue.kept.as_ref().unwrap().len() < 80);
    rogue.after(Duration::from_secs(60));
    assert_eq!(rogue.hangups, 0, "who is not listened to is not silent");
    let mut length = 0;
    while let Some((number, job)) = rogue.kept.as_mut().and_then(VecDeque::pop_front) {
        let done = rogue.worker.work(job);
        rogue.near.handle_input(rogue.now, NearInput::Done(number, done));
        rogue.settle();
        length = rogue.answers[&1].body.len();
    }
    assert!(rogue.near.may_receive() && length >= 50 * 8000, "{length}");
}

#[test]
fn what_waits_for_lost_units_is_forgotten_with_its_flow() {
    let mut rogue = AgainstNear::with_requests(1..2);
    (0..300).for_each(|n| rogue.give(literals(1, n, &[&noise(n, 4000)])));
    rogue.worker.units().1.truncate(0);
    for id in 2..400 {
        rogue.get(id, 1000);
        rogue.say(&[head(id), Message::Batch(reference(id, 0, &[&noise(0, 4000)]))]);
        rogue.cancel(id);
    }
    let wants = rogue.heard.iter().filter(|it| matches!(it, Message::Want(_))).count();
    assert_eq!((wants, rogue.near.is_up()), (1, true));
    rogue.get(400, 10_000);
    rogue.say(&[head(400), Message::Batch(reference(400, 0, &[&noise(0, 4000)]))]);
    rogue.say(&[Message::Unit(0, noise(0, 4000))]);
    assert!(rogue.answers[&400].body == noise(0, 4000));
}

/// A history of units as long as they may be, at all positions.
#[derive(Default)]
struct Endless(u64);

impl Units for Endless {
    fn held(&self) -> HistoryState {
        HistoryState { epoch: [1; 16], first: 0, end: 1 << 40 }
    }
    fn lasting(&self) -> u64 {
        0
    }
    fn read(&mut self, span: Span, out: &mut Vec<(Mark, Bytes)>) -> bool {
        self.0 += u64::from(span.count);
        let bytes = Bytes::from_static(&[7; 16 * 1024]);
        let name = *content::name(&bytes).as_bytes().first_chunk().unwrap();
        let mark = Mark { name, length: 16 * 1024, ..Mark::default() };
        out.extend(span.positions().map(|_| (mark, bytes.clone())));
        true
    }
    fn append(&mut self, _: &[(Mark, Bytes)]) {}
    fn truncate(&mut self, _: u64) {}
    fn reset(&mut self, _: [u8; 16]) {}
}

#[test]
fn no_more_is_read_than_a_batch_may_have() {
    let many = vec![Span { first: 5, count: 1000 }; 100];
    let unpack = Job::Unpack {
        first: 1 << 40,
        lengths: vec![1000],
        dictionary: many.clone(),
        coding: Coding::Zstd,
        payload: packed(&[0; 1000]).into(),
    };
    for job in [Job::Read(many, [0; 16]), unpack] {
        let mut worker = Worker::new(Endless::default(), Endless::default());
        assert!(matches!(worker.work(job), Done::False));
        assert!(worker.units().1.0 <= 64, "{} units were read", worker.units().1.0);
    }
}

#[test]
fn what_the_far_end_would_refuse_goes_past_it() {
    let mut rogue = AgainstNear::up();
    let fetch = || Net::fetch_of("/");
    let long = "a.".repeat(200);
    let mut many = fetch();
    for number in 0..300 {
        let name: HeaderName = format!("x-{number}").parse().unwrap();
        many.headers.append(name, HeaderValue::from_static("1"));
    }
    let method = Method::from_bytes("M".repeat(300).as_bytes()).unwrap();
    for fetch in [
        Fetch { dial: Dial::Name(format!("{long}example.org"), 80), ..fetch() },
        Fetch { method, ..fetch() },
        many,
    ] {
        let output = OriginOutput::Fetch(FetchId(1), Box::new(fetch));
        assert!(!rogue.near.takes(&output));
    }
    rogue.say(&[hello()]);
    assert!(!rogue.near.is_up());
}

#[test]
fn what_the_far_end_has_no_room_for_goes_past_it() {
    let mut rogue = AgainstNear::up();
    rogue.get(1, 1000);
    rogue.say(&[Message::Finish(number(1), Err(FetchError::NoRoom))]);
    assert!(rogue.past == [1] && !rogue.is_broken());
    rogue.get(2, 1000);
    rogue.say(&[head(2), Message::Finish(number(2), Err(FetchError::NoRoom))]);
    assert_eq!(rogue.answers[&2].end, Some(Err(FetchError::NoRoom)), "too late for that");
    let to = "192.0.2.1:25".parse().unwrap();
    let dial = NearInput::Dial(TcpId(1), to, [10, 0, 0, 2].into());
    rogue.near.handle_input(rogue.now, dial);
    rogue.settle();
    rogue.say(&[Message::Finish(3, Err(FetchError::NoRoom))]);
    assert_eq!((rogue.near.report().tcp_flows_past, rogue.near.flows()), (1, 0));
}

#[test]
fn requests_that_are_given_up_at_once_do_not_fill_the_memory() {
    let mut rogue = AgainstNear::up();
    let long = HeaderValue::from_bytes(&[b'x'; 10_000]).unwrap();
    let ask = |rogue: &mut AgainstNear, id| {
        let mut fetch = Net::fetch_of("/");
        fetch.headers.insert("x-long", long.clone());
        let fetch = OriginOutput::Fetch(FetchId(id), Box::new(fetch));
        let takes = rogue.near.takes(&fetch);
        if takes {
            rogue.near.handle_input(rogue.now, NearInput::Origin(fetch, false));
            let cancel = OriginOutput::Cancel(FetchId(id));
            rogue.near.handle_input(rogue.now, NearInput::Origin(cancel, false));
        }
        takes
    };
    // The link takes nothing meanwhile.
    let taken = (0..500).filter(|id| ask(&mut rogue, *id)).count();
    assert_eq!(taken, 104, "a MiB of them waits, and the others go past");
    assert!(!rogue.near.takes_tcp(), "so do other connections");
    rogue.settle();
    assert!(ask(&mut rogue, 500) && rogue.near.takes_tcp());
    let mut dialled = 0;
    while rogue.near.takes_tcp() {
        let (id, to) = (TcpId(dialled), "192.0.2.1:5000".parse().unwrap());
        rogue.near.handle_input(rogue.now, NearInput::Dial(id, to, [10, 0, 0, 1].into()));
        let end = NearInput::ContentEnd(FlowId::Tcp(id), Err(FetchError::Truncated));
        rogue.near.handle_input(rogue.now, end);
        dialled += 1;
    }
    assert!((4000..=8192).contains(&dialled), "{dialled}");
}

#[test]
fn a_client_with_requests_without_end_leaves_half_of_the_flows_to_others() {
    let mut rogue = AgainstNear::up();
    let mut takes = |client: [u8; 4], id| {
        let fetch = Fetch { client: client.into(), ..Net::fetch_of("/") };
        let fetch = OriginOutput::Fetch(FetchId(id), Box::new(fetch));
        let takes = rogue.near.takes(&fetch);
        if takes {
            rogue.near.handle_input(rogue.now, NearInput::Origin(fetch, false));
        }
        takes
    };
    let (greedy, other) = ([10, 0, 0, 1], [10, 0, 0, 2]);
    assert_eq!((0..2000).take_while(|id| takes(greedy, *id)).count(), 512);
    assert!(takes(other, 2000) && !takes(greedy, 2001));
}
