//! What the node waits for, and what it has.

use crate::ear::{AMPLE, Ear, HEAD, chunk, chunks, frame, names, segments, stream};
use node::overhear::Options;
use wire::peer::Want;

#[test]
fn what_is_missing_can_be_asked_for_and_joined() {
    let it = chunk(1, 8192);
    let name = content::name(&it);
    let mut ear = Ear::new(AMPLE);
    assert_eq!(ear.engine.missing(name, 8192), None);
    let all = segments(1, &frame(&it));
    ear.hear_all(all.iter().enumerate().filter(|(i, _)| ![2, 5].contains(i)).map(|(_, it)| it));
    let at = |segment: u32| segment * 1448 - HEAD as u32;
    let missing = ear.engine.missing(name, 8192).unwrap();
    assert_eq!(missing, [at(2)..at(3), at(5)..8192]);
    assert_eq!(ear.engine.missing(name, 8191), None, "it is another chunk, or a lie");
    let heard = ear.engine.take(ear.now, name, 8192).unwrap();
    let mut whole = vec![0; heard.total as usize];
    for (at, bytes) in &heard.parts {
        whole[*at as usize..][..bytes.len()].copy_from_slice(bytes);
    }
    for range in missing {
        let range = range.start as usize..range.end as usize;
        assert!(whole[range.clone()].iter().all(|byte| *byte == 0));
        whole[range.clone()].copy_from_slice(&it[range]);
    }
    assert_eq!(whole, it);
    let heard: usize = heard.parts.iter().map(|(_, bytes)| bytes.len()).sum();
    assert_eq!(ear.counters().taken_bytes, heard as u64);
    assert_eq!(ear.engine.missing(name, 8192), None);
    // What comes of it yet is not needed.
    ear.hear_all(&segments(2, &frame(&it)));
    assert_eq!((ear.chunks.len(), ear.counters().assembling_bytes), (0, 0));
}

#[test]
fn who_does_not_repair_knows_of_whole_chunks_only() {
    let it = chunk(1, 8192);
    let name = content::name(&it);
    let mut ear = Ear::with_options(AMPLE, Options { repairs: false, ..Options::default() });
    let all = segments(1, &frame(&it));
    ear.hear_all(&all[..5]);
    assert!(ear.counters().assembling_bytes > 0);
    assert_eq!(ear.engine.missing(name, 8192), None);
    assert_eq!(ear.engine.take(ear.now, name, 8192), None);
    // It listens on, and what it has is not lost.
    ear.hear_all(&all[5..]);
    assert_eq!(ear.names(), [name]);
}

#[test]
fn what_is_missing_fits_into_a_request() {
    let it = chunk(1, 32 << 10);
    let mut ear = Ear::new(AMPLE);
    let all = crate::ear::cut(1, 0, &frame(&it), 100, 100);
    ear.hear_all(all.iter().step_by(2));
    let missing = ear.engine.missing(content::name(&it), 32 << 10).unwrap();
    // As many blocks are kept as leave no more gaps than that: here the first is at the beginning.
    assert_eq!(missing.len(), Want::RANGES_MAX - 1);
}

#[test]
fn joined_bytes_that_were_false_can_be_heard_anew() {
    let it = chunk(1, 8192);
    let name = content::name(&it);
    let mut ear = Ear::new(AMPLE);
    ear.hear_all(&segments(1, &frame(&it))[..3]);
    ear.engine.take(ear.now, name, 8192).unwrap();
    ear.engine.want(ear.now, name, 8192);
    ear.hear_all(&segments(2, &frame(&it)));
    assert_eq!(ear.names(), [name]);
}

#[test]
fn what_comes_from_elsewhere_leaves() {
    let (mut ear, sent) = (Ear::new(AMPLE), chunks(0..2));
    let all = segments(1, &stream(&sent));
    ear.hear_all(&all[..4]);
    assert!(ear.counters().assembling_bytes > 0);
    ear.engine.cancel(ear.now, content::name(&sent[0]), 8192);
    assert_eq!(ear.counters().assembling_bytes, 0);
    ear.hear_all(&all[4..]);
    assert_eq!(ear.names(), names(&sent[1..]));
    assert_eq!(ear.counters().chunks_cancelled, 1);
    // Of what was cancelled before it was heard, nothing begins.
    ear.engine.cancel(ear.now, content::name(&chunk(9, 100)), 100);
    ear.hear_all(&segments(2, &frame(&chunk(9, 100))));
    assert_eq!(ear.begun, names(&sent));
}

#[test]
fn what_could_not_be_kept_is_heard_again_at_once() {
    let (mut ear, it) = (Ear::new(AMPLE), chunk(1, 8192));
    let name = content::name(&it);
    for flow in 1..=3 {
        ear.hear_all(&segments(flow, &frame(&it)));
        // The second hop says the same, which is not needed, the third what is.
        assert_eq!(ear.names().len(), if flow < 3 { 1 } else { 2 });
        if flow == 2 {
            ear.engine.lost(ear.now, name);
        }
    }
}

#[test]
fn what_is_wanted_leaves_last() {
    let it = chunk(1, 8192);
    let name = content::name(&it);
    for wanted in [false, true] {
        let mut ear = Ear::new(1 << 20);
        if wanted {
            ear.engine.want(ear.now, name, 8192);
        }
        ear.hear_all(&segments(1, &frame(&it))[..1]);
        // Half-heard chunks of several times the budget.
        for i in 0..800 {
            ear.hear_all(&segments(2 + i as u16, &frame(&chunk(1000 + i, 8192)))[..5]);
            ear.wait(std::time::Duration::from_millis(1));
        }
        assert!(ear.counters().chunks_evicted > 500);
        assert_eq!(ear.engine.missing(name, 8192).is_some(), wanted);
        ear.engine.unwant(ear.now, name, 8192);
    }
}
