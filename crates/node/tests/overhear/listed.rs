//! What an object's manifest tells of bytes that were heard behind missed heads.

use crate::ear::{Ear, Heard, chunk, frame, lie, names, segments, stream};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::ops::Range;
use wire::ChunkId;

/// The default memory of a router for overhearing, in bytes.
const USUAL: usize = 8 << 20;

/// Chunks of about 8 KiB that make a megabyte.
fn object(seed: u64) -> Vec<Bytes> {
    let dice = chunk(seed + 77, 250);
    let lengths =
        dice.chunks_exact(2).map(|it| 4000 + usize::from(u16::from_be_bytes([it[0], it[1]]) >> 3));
    (0..).zip(lengths).map(|(i, length)| chunk(seed * 1000 + i, length)).collect()
}

/// The segments of a stream that are heard, if `missed_in_1000` of a thousand are missed.
fn some(all: Vec<Heard>, missed_in_1000: u64, seed: u64) -> Vec<Heard> {
    let dice = chunk(seed << 32 | missed_in_1000, 2 * all.len());
    let rolls = dice.chunks_exact(2).map(|it| u64::from(u16::from_be_bytes([it[0], it[1]])));
    let heard =
        all.into_iter().zip(rolls).filter(|(_, roll)| (roll * 1000) >> 16 >= missed_in_1000);
    heard.map(|(it, _)| it).collect()
}

/// How many bytes of chunks are in no segment, where `stream` has all of them and no segment overlaps.
fn missed(stream: &[Bytes], of: &[Bytes], heard: &[Heard]) -> usize {
    let mut is_heard = vec![false; stream.iter().map(|it| frame(it).len()).sum()];
    for it in heard {
        let at = it.seq as usize - 1000;
        is_heard[at..at + it.payload.len()].fill(true);
    }
    let mut at = 0;
    let mut missed = 0;
    for chunk in stream {
        let body = at + frame(chunk).len() - chunk.len()..at + frame(chunk).len();
        at = body.end;
        if of.contains(chunk) {
            missed += is_heard[body].iter().filter(|it| !**it).count();
        }
    }
    missed
}

/// How many bytes would be asked for; what was heard must be true.
fn asked(ear: &mut Ear, object: &[Bytes]) -> usize {
    let given: BTreeMap<ChunkId, Bytes> = ear.chunks.iter().cloned().collect();
    let mut asked = 0;
    for chunk in object {
        let (name, total) = (content::name(chunk), chunk.len() as u32);
        if given.contains_key(&name) {
            continue;
        }
        let all = |all: Range<u32>| vec![all];
        let missing = ear.engine.missing(name, total).unwrap_or_else(|| all(0..total));
        asked += missing.iter().map(|it| it.len()).sum::<usize>();
        for (at, bytes) in ear.engine.take(ear.now, name, total).map_or(vec![], |it| it.parts) {
            assert_eq!(
                bytes,
                &chunk[at as usize..][..bytes.len()],
                "it was put in the wrong place"
            );
        }
    }
    asked
}

#[test]
fn of_a_listed_object_nothing_that_was_heard_is_asked_for() {
    for lost in [50, 100, 200, 350, 500] {
        for seed in 0..4 {
            let object = object(seed);
            let mut ear = Ear::new(USUAL);
            let heard = some(segments(1, &stream(&object)), lost, seed);
            ear.hear_all(&heard);
            let (missed, waiting) =
                (missed(&object, &object, &heard), ear.counters().headless_bytes);
            assert!(waiting > 20_000, "{waiting} bytes have no head");
            ear.list(&object);
            assert_eq!(asked(&mut ear, &object), missed, "{lost} of 1000 lost, seed {seed}");
            assert_eq!(ear.counters().headless_bytes, 0);
        }
    }
}

#[test]
fn an_object_between_others_is_found() {
    for lost in [50, 200, 500] {
        for seed in 0..8 {
            let (before, behind) = (object(seed + 100), object(seed + 200));
            let (ours, mut ear) = (&object(seed)[..10], Ear::new(USUAL));
            let sent = [&before[..20], ours, &behind[..20]].concat();
            let heard = some(segments(1, &stream(&sent)), lost, seed);
            ear.hear_all(&heard);
            ear.list(ours);
            assert_eq!(asked(&mut ear, ours), missed(&sent, ours, &heard), "{lost}, seed {seed}");
        }
    }
}

#[test]
fn a_manifest_may_come_piece_by_piece() {
    let object = object(1);
    let heard = some(segments(1, &stream(&object)), 200, 1);
    let mut ear = Ear::new(USUAL);
    ear.hear_all(&heard);
    // Each piece begins with the last chunk of the one before.
    let (mut from, mut length) = (0, 2);
    while from + 1 < object.len() {
        let to = object.len().min(from + length);
        ear.list(&object[from..to]);
        (from, length) = (to - 1, 17.min(2 * length));
    }
    assert_eq!(asked(&mut ear, &object), missed(&object, &object, &heard));
}

#[test]
fn what_an_object_has_twice_is_sent_once() {
    let mut object = object(1);
    object.truncate(40);
    let heard = some(segments(1, &stream(&object)), 200, 1);
    let mut listed = object.clone();
    for at in [4, 13, 30] {
        listed.insert(at + 3, listed[at].clone());
    }
    let mut ear = Ear::new(USUAL);
    ear.hear_all(&heard);
    ear.list(&listed);
    assert_eq!(asked(&mut ear, &object), missed(&object, &object, &heard));
}

#[test]
fn objects_that_take_turns_are_not_taken_for_each_other() {
    for lost in [50, 200] {
        for seed in 0..4 {
            let (one, other) = (object(seed), object(seed + 100));
            let turns = one.iter().zip(&other).flat_map(|(a, b)| [a.clone(), b.clone()]);
            let sent: Vec<_> = turns.collect();
            let heard = some(segments(1, &stream(&sent)), lost, seed);
            let (mut without, mut ear) = (Ear::new(USUAL), Ear::new(USUAL));
            without.hear_all(&heard);
            ear.hear_all(&heard);
            ear.list(&one);
            ear.list(&other);
            assert!(asked(&mut ear, &sent) <= asked(&mut without, &sent), "{lost}, seed {seed}");
        }
    }
}

#[test]
fn who_guesses_the_last_one_wrong_hears_the_next() {
    let (ours, next) = (object(1), object(2));
    let (a, b) = (&ours[0], &ours[1]);
    let c = &next[0].slice(..b.len() - 2000);
    // The head of what follows the first is missed, and it is not what is listed.
    let sent = [a.clone(), c.clone()];
    let heard = segments(1, &stream(&sent));
    let head_of_c = frame(a).len() / 1448;
    let missed = |(i, _): &(usize, &Heard)| *i != head_of_c;
    let mut ear = Ear::new(USUAL);
    ear.hear_all(heard.iter().enumerate().filter(missed).map(|(_, it)| it));
    ear.list(&[a.clone(), b.clone()]);
    assert_eq!(ear.counters().heads_guessed, 1);
    // Heads that lie where the guess would have others' bytes are heads.
    let behind =
        crate::ear::cut(1, 1000 + stream(&sent).len() as u32, &stream(&next[1..6]), 1448, 1448);
    ear.hear_all(&behind);
    assert_eq!(ear.names()[ear.names().len() - 5..], names(&next[1..6]));
    // What was put in its place is not what it is called.
    ear.hear_all(&crate::ear::cut(2, 7, &frame(b), 900, 900));
    assert!(ear.names().contains(&content::name(b)));
}

#[test]
fn a_false_unit_after_a_missed_head_harms_no_other() {
    let object = object(1);
    let truth = segments(1, &stream(&object[..3]));
    // True heads, and something false between them where the second chunk should be.
    let false_second = lie(&object[1], &chunk(99, object[1].len()));
    let said = [&frame(&object[0])[..], &false_second, &frame(&object[2])].concat();
    let mut liar = segments(2, &said);
    liar.remove(frame(&object[0]).len() / 1448);
    for first in [false, true] {
        let mut ear = Ear::new(USUAL);
        ear.hear_all(if first { &liar } else { &truth[..0] });
        ear.list(&object[..3]);
        ear.hear_all(&truth);
        ear.hear_all(if first { &liar[..0] } else { &liar });
        ear.list(&object[..3]);
        let mut found = ear.names();
        found.sort();
        let mut all = names(&object[..3]);
        all.sort();
        assert_eq!(found, all, "the liar is first: {first}");
    }
}

#[test]
fn flows_full_of_gaps_and_lists_without_end_stay_within_the_budget() {
    // The ear checks after each segment and list.
    let mut ear = Ear::new(0);
    for flow in 0..60 {
        let object = object(flow);
        ear.hear_all(&some(segments(flow as u16, &stream(&object)), 400, flow));
        ear.list(&object);
        let other: Vec<_> = object.iter().rev().cloned().collect();
        ear.list(&other);
    }
    assert!(ear.counters().chunks_evicted > 0 && ear.counters().flows_evicted > 0);
}
