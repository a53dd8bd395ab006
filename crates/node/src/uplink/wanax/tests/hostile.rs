//! Ends that break the rules: nothing false is passed on, and memory is bounded.

use super::ends::Ends;
use super::noise;
use crate::uplink::messages::Message;
use crate::uplink::wanax::{Entry, Listing, PAYLOAD_MAX, REQUESTS_MAX, ROOT_MAX, UNACKED_MAX};

fn ends() -> Ends {
    Ends::new("mrc-8-128".parse().unwrap(), 1 << 20, 10_000)
}

fn name(bytes: &[u8]) -> [u8; 20] {
    blake3::hash(bytes).as_bytes()[..20].try_into().unwrap()
}

/// A chunk's name, its length, and its content if that crosses.
type Chunk<'c> = ([u8; 20], u32, Option<&'c [u8]>);

/// The header and the payload of a root of these chunks; those with content cross with it.
fn root(flow: u64, chunks: &[Chunk<'_>]) -> (Message, Vec<u8>) {
    let entry = |(name, length, content): &Chunk<'_>| Entry {
        name: *name,
        length: *length,
        is_missing: content.is_some(),
    };
    let listing = Listing { entries: chunks.iter().map(entry).collect() };
    let mut payload = Vec::new();
    listing.encode(&mut payload);
    let list = payload.len() as u32;
    chunks.iter().filter_map(|it| it.2).for_each(|it| payload.extend_from_slice(it));
    let length = chunks.iter().map(|it| it.1).sum();
    (Message::Root { flow, length, listing: list, payload: payload.len() as u32 }, payload)
}

/// Whether R takes this root; it is the first payload.
fn takes(ends: &mut Ends, (header, payload): (Message, Vec<u8>)) -> bool {
    let sound = ends.tell_receiver(header).is_ok() && ends.receiver.data(0, &payload).is_ok();
    sound && ends.hear_receiver().is_ok()
}

#[test]
fn content_that_is_not_what_its_name_says_is_never_passed_on() {
    let (good, bad) = (noise(1, 500), noise(2, 500));
    for (content, is_taken) in [(&good, true), (&bad, false)] {
        let mut ends = ends();
        let flow = ends.open();
        ends.grant(flow, u64::MAX / 4);
        assert_eq!(takes(&mut ends, root(flow, &[(name(&good), 500, Some(content))])), is_taken);
        assert_eq!(ends.received(flow) == good, is_taken);
        assert_eq!(ends.received(flow).is_empty(), !is_taken);
    }
}

#[test]
fn chunks_that_were_asked_for_are_checked_too() {
    let good = noise(1, 500);
    for (content, is_taken) in [(good.clone(), true), (noise(2, 500), false)] {
        let mut ends = ends();
        let flow = ends.open();
        ends.grant(flow, u64::MAX / 4);
        assert!(takes(&mut ends, root(flow, &[(name(&good), 500, None)])));
        assert!(ends.received(flow).is_empty() && ends.receiver.wrong_hints == 1);
        ends.tell_receiver(Message::Chunks(vec![500])).unwrap();
        let is_sound = ends.receiver.data(1, &content).is_ok() && ends.hear_receiver().is_ok();
        assert_eq!(is_sound, is_taken);
        assert_eq!(ends.received(flow) == good, is_taken);
    }
}

#[test]
fn a_chunk_of_another_length_than_listed_is_refused() {
    let chunk = noise(1, 500);
    let mut ends = ends();
    let flow = ends.open();
    assert!(takes(&mut ends, root(flow, &[(name(&chunk), 500, Some(&chunk))])));
    let (header, payload) = root(flow, &[(name(&chunk), 499, None)]);
    ends.tell_receiver(header).unwrap();
    ends.receiver.data(1, &payload).unwrap();
    assert!(ends.hear_receiver().is_err(), "it is stored, with 500 bytes");
    let mut ends = self::ends();
    let flow = ends.open();
    assert!(takes(&mut ends, root(flow, &[(name(&chunk), 499, None)])));
    assert!(ends.tell_receiver(Message::Chunks(vec![500])).is_err());
}

#[test]
fn headers_that_do_not_fit_together_are_refused() {
    let chunk = noise(1, 500);
    let (_, payload) = root(1, &[(name(&chunk), 500, Some(&chunk))]);
    let list = payload.len() as u32 - 500;
    let length = payload.len() as u32;
    for (content, listing, payload_length) in [
        (0, list, length),
        (499, list, length),
        (ROOT_MAX as u32 + 1, list, length),
        (500, 0, length),
        (500, length + 1, length),
        (500, list - 1, length),
        (500, list + 1, length),
        (500, list, length - 1),
        (500, list, PAYLOAD_MAX as u32 + 1),
    ] {
        let mut ends = ends();
        let flow = ends.open();
        let header = Message::Root { flow, length: content, listing, payload: payload_length };
        assert!(!takes(&mut ends, (header, payload.clone())), "{content} {listing}");
    }
    let mut ends = ends();
    assert!(ends.receiver.data(0, &[1]).is_err(), "no header was for it");
    assert!(ends.tell_receiver(Message::Chunks(vec![1])).is_err(), "nothing was asked for");
}

#[test]
fn roots_without_end_are_refused_before_they_take_much() {
    let mut ends = ends();
    ends.open();
    let header = |flow| Message::Root {
        flow,
        length: ROOT_MAX as u32,
        listing: 30,
        payload: 30 + ROOT_MAX as u32,
    };
    // Of flows that are not there, too.
    let taken = (1..1000).take_while(|flow| ends.tell_receiver(header(*flow)).is_ok()).count();
    assert!((1..=UNACKED_MAX / (2 * ROOT_MAX)).contains(&taken), "{taken}");
}

#[test]
fn a_flow_may_not_be_further_ahead_than_its_window() {
    let mut ends = ends();
    let flow = ends.open();
    let mut taken = 0;
    for number in 0..100u64 {
        let chunk = noise(number, 60_000);
        let (header, payload) = root(flow, &[(name(&chunk), 60_000, Some(&chunk))]);
        if ends.tell_receiver(header).is_err() {
            break;
        }
        ends.receiver.data(number, &payload).unwrap();
        ends.hear_receiver().unwrap();
        taken += 60_000;
    }
    assert!(taken <= 1024 * 1024 + ROOT_MAX && taken > 1024 * 1024 - 60_000, "{taken}");
}

#[test]
fn whoever_asks_without_end_is_refused() {
    let mut ends = ends();
    let flow = ends.open();
    let content = noise(1, 200_000);
    ends.push(flow, &content);
    ends.sender.finish(flow, Ok(()));
    while ends.send() {}
    let unknown = vec![[9; 20]; 64];
    let asked = (0..10_000).take_while(|_| ends.sender.requested(0, &unknown).is_ok()).count();
    assert_eq!(asked, REQUESTS_MAX, "answers that nobody reads");
    let mut ends = self::ends();
    let flow = ends.open();
    ends.push(flow, &content);
    ends.sender.finish(flow, Ok(()));
    while ends.send() {}
    ends.settle();
    ends.sender.acknowledged(u64::MAX);
    assert!(ends.sender.requested(0, &unknown[..1]).is_ok(), "a root that is not kept");
}
