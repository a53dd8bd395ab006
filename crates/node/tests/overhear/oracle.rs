//! Random streams against an oracle with unlimited memory and hindsight: it knows what was sent, so it
//! knows to which chunk each heard byte belongs.
//!
//! One property holds exactly: if each byte of a chunk was heard behind a head that was heard too, on any
//! flow and in any order, the engine gives out the chunk. Another holds nearly: if all bytes of a chunk were heard,
//! behind a head or not, the engine gives it out; this is so for 98 % of the bytes, because the order in another flow
//! identifies nearly all missed heads.

use crate::ear::{AMPLE, Ear, HEAD, Heard, chunk, frame};
use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;
use wire::ChunkId;

/// How a hop's connection is heard.
#[derive(Clone, Debug)]
struct Hop {
    isn: u32,
    /// The first of the chunks that it sends.
    first: usize,
    /// Lengths of its segments: of most, and of the very first.
    mss: usize,
    start: usize,
    /// What becomes of each segment, over and over.
    fates: Vec<Fate>,
    /// Whether a part of it is sent again at the end, cut elsewhere.
    again: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Heard,
    Missed,
    Twice,
    /// Heard this many segments later.
    Late(usize),
    Corrupt,
}

fn fate(corrupt: u32) -> impl Strategy<Value = Fate> {
    prop_oneof![
        12 => Just(Fate::Heard),
        2 => Just(Fate::Missed),
        1 => Just(Fate::Twice),
        1 => (1..12_usize).prop_map(Fate::Late),
        corrupt => Just(Fate::Corrupt),
    ]
}

fn hop(corrupt: u32) -> impl Strategy<Value = Hop> {
    let isn = prop_oneof![any::<u32>(), (0..60_000_u32).prop_map(|it| 0_u32.wrapping_sub(it))];
    let fates = vec(fate(corrupt), 1..60);
    (isn, 0..3_usize, 536..1461_usize, 1..1461_usize, fates, any::<bool>()).prop_map(
        |(isn, first, mss, start, fates, again)| Hop { isn, first, mss, start, fates, again },
    )
}

/// Lengths of chunks.
fn lengths() -> impl Strategy<Value = Vec<usize>> {
    vec(prop_oneof![3 => 2048..16_385_usize, 1 => 1..2048_usize], 1..14)
}

fn sent(lengths: &[usize]) -> Vec<Bytes> {
    lengths.iter().enumerate().map(|(i, length)| chunk(i as u64, *length)).collect()
}

/// A segment as it is heard, and which bytes of the flow's stream it truly has.
type Bit = (Heard, Range<usize>);

impl Hop {
    fn stream(&self, sent: &[Bytes]) -> Vec<u8> {
        sent.iter().skip(self.first).flat_map(|it| frame(it)).collect()
    }

    /// What is heard of it, in order of time.
    fn heard(&self, flow: u16, sent: &[Bytes]) -> Vec<Bit> {
        let stream = self.stream(sent);
        let mut heard = Vec::new();
        self.pass(flow, &stream, 0, self.mss, &mut heard);
        if self.again {
            self.pass(flow, &stream, stream.len() / 3, self.mss / 2, &mut heard);
        }
        heard
    }

    fn pass(&self, flow: u16, stream: &[u8], from: usize, mss: usize, out: &mut Vec<Bit>) {
        let (mut at, mut length) = (from, self.start.min(mss));
        let mut late: Vec<(usize, Bit)> = Vec::new();
        for (i, fate) in self.fates.iter().cycle().enumerate() {
            let (due, rest): (Vec<_>, _) = late.into_iter().partition(|(due, _)| *due <= i);
            late = rest;
            out.extend(due.into_iter().map(|(_, bit)| bit));
            if at >= stream.len() {
                break;
            }
            let end = (at + length).min(stream.len());
            let seq = self.isn.wrapping_add(at as u32);
            let mut heard = Heard { flow, seq, flags: "", payload: stream[at..end].to_vec() };
            match fate {
                Fate::Heard => out.push((heard, at..end)),
                Fate::Missed => {}
                Fate::Twice => out.extend([(heard.clone(), at..end), (heard, at..end)]),
                Fate::Late(by) => late.push((i + by, (heard, at..end))),
                Fate::Corrupt => {
                    let middle = heard.payload.len() / 2;
                    heard.payload[middle] ^= 0x55;
                    out.push((heard, at..at));
                }
            }
            (at, length) = (end, mss);
        }
        out.extend(late.into_iter().map(|(_, bit)| bit));
    }
}

type Known = BTreeMap<ChunkId, Vec<bool>>;

/// Which bytes of each chunk were heard at all, and which behind a head.
#[derive(Default)]
struct Oracle {
    any: Known,
    headed: Known,
}

impl Oracle {
    fn add(&mut self, hop: &Hop, sent: &[Bytes], heard: &[Bit]) {
        let mut is_heard = vec![false; hop.stream(sent).len()];
        heard.iter().for_each(|(_, range)| is_heard[range.clone()].fill(true));
        let mut at = 0;
        for (i, chunk) in sent.iter().enumerate() {
            let name = content::name(chunk);
            let any = self.any.entry(name).or_insert_with(|| vec![false; chunk.len()]);
            let headed = self.headed.entry(name).or_insert_with(|| vec![false; chunk.len()]);
            if i < hop.first {
                continue;
            }
            let (head, body) = (at..at + HEAD, at + HEAD..at + HEAD + chunk.len());
            at = body.end;
            let is_headed = is_heard[head].iter().all(|it| *it);
            for (j, heard) in is_heard[body].iter().enumerate() {
                any[j] |= heard;
                headed[j] |= *heard && is_headed;
            }
        }
    }
}

fn whole(known: &Known) -> Vec<(ChunkId, usize)> {
    let is_whole = |(_, it): &(&ChunkId, &Vec<bool>)| it.iter().all(|it| *it);
    known.iter().filter(is_whole).map(|(name, it)| (*name, it.len())).collect()
}

/// Hears all hops at once, a segment of each in turn; in the end the order of the chunks may be told.
fn listen(budget: usize, hops: &[Hop], sent: &[Bytes], is_listed: bool) -> (Ear, Oracle) {
    let (mut ear, mut oracle) = (Ear::new(budget), Oracle::default());
    let mut queues = Vec::new();
    for (flow, hop) in (1..).zip(hops) {
        let heard = hop.heard(flow, sent);
        oracle.add(hop, sent, &heard);
        queues.push(heard.into_iter());
    }
    loop {
        let turn: Vec<_> = queues.iter_mut().filter_map(Iterator::next).collect();
        if turn.is_empty() {
            break;
        }
        turn.iter().for_each(|(heard, _)| ear.hear(heard));
    }
    if is_listed {
        ear.list(sent);
    }
    ear.wait_for_all_to_end();
    (ear, oracle)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn what_was_heard_behind_heads_comes_out(hops in vec(hop(0), 1..5), lengths in lengths()) {
        let (ear, oracle) = listen(AMPLE, &hops, &sent(&lengths), false);
        let found = ear.names();
        for (name, _) in whole(&oracle.headed) {
            prop_assert!(found.contains(&name), "{} was heard, and did not come out", name);
        }
        for name in &found {
            prop_assert!(oracle.any[name].iter().all(|it| *it), "what was not heard came out");
        }
        let mut once = found.clone();
        once.sort();
        once.dedup();
        prop_assert_eq!(once.len(), found.len(), "a chunk came out twice");
        let it = ear.counters();
        prop_assert_eq!((it.headless_bytes, it.falsehoods), (0, 0));
    }

    #[test]
    fn what_is_missing_is_what_was_not_heard(
        hops in vec(hop(0), 1..3), lengths in lengths(), is_listed in any::<bool>(),
    ) {
        let sent = sent(&lengths);
        let (mut ear, oracle) = listen(AMPLE, &hops, &sent, is_listed);
        for chunk in &sent {
            let (name, total) = (content::name(chunk), chunk.len() as u32);
            let Some(missing) = ear.engine.missing(name, total) else { continue };
            let missing: Vec<_> = missing.into_iter().flatten().collect();
            let (any, headed) = (&oracle.any[&name], &oracle.headed[&name]);
            prop_assert!((0..total).filter(|i| !any[*i as usize]).all(|it| missing.contains(&it)));
            prop_assert!(missing.iter().all(|it| !headed[*it as usize]));
            let heard = ear.engine.take(ear.now, name, total).unwrap();
            for (at, bytes) in heard.parts {
                prop_assert_eq!(&bytes[..], &chunk[at as usize..][..bytes.len()]);
            }
        }
    }

    #[test]
    fn corrupt_bytes_never_make_a_wrong_chunk(
        hops in vec(hop(3), 1..5), lengths in lengths(), is_small in any::<bool>(),
        is_listed in any::<bool>(),
    ) {
        // The ear verifies each chunk, and the budget after each segment.
        let (sent, budget) = (sent(&lengths), if is_small { 0 } else { AMPLE });
        let (mut ear, _) = listen(budget, &hops, &sent, is_listed);
        // True bytes, once they are heard, give the chunks, independently of the false bytes before.
        let fates = vec![Fate::Heard];
        let clear = Hop { isn: 9, first: 0, mss: 1448, start: 1448, fates, again: false };
        clear.heard(99, &sent).iter().for_each(|(heard, _)| ear.hear(heard));
        let found = ear.names();
        for chunk in &sent {
            prop_assert!(found.contains(&content::name(chunk)), "the truth was heard in vain");
        }
    }
}

/// The share of the oracle's bytes that the engine gives out, if each hop loses `lost_in_1000` of a thousand segments;
/// and the share that it cannot give out, because the chunk's head was heard on no hop.
fn share(hops: u64, lost_in_1000: u64) -> (f64, f64) {
    let (mut found, mut nameless, mut possible) = (0, 0, 0);
    for run in 0..8_u64 {
        let chunk_of = |i: u64| chunk(run * 1000 + i, 4000 + (i * 977 % 9000) as usize);
        let sent: Vec<_> = (0..60).map(chunk_of).collect();
        let lossy = |hop: u64| {
            let dice = chunk(run * 100 + hop, 2 * 4001);
            let roll = |it: &[u8]| (u64::from(u16::from_be_bytes([it[0], it[1]])) * 1000) >> 16;
            let fate = |it: &[u8]| if roll(it) < lost_in_1000 { Fate::Missed } else { Fate::Heard };
            Hop {
                isn: 5,
                first: 0,
                mss: 1448 - 12 * hop as usize,
                start: 300 + 100 * hop as usize,
                fates: dice.chunks_exact(2).map(fate).collect(),
                again: false,
            }
        };
        let hops: Vec<_> = (0..hops).map(lossy).collect();
        let (ear, oracle) = listen(AMPLE, &hops, &sent, false);
        found += ear.counters().used_bytes as usize;
        for (name, length) in whole(&oracle.any) {
            possible += length;
            let is_named = oracle.headed[&name].contains(&true);
            nameless += if is_named { 0 } else { length };
        }
    }
    (found as f64 / possible as f64, nameless as f64 / possible as f64)
}

#[test]
fn nearly_all_that_an_oracle_has_comes_out() {
    for (lost, least) in [(20, 0.99), (100, 0.99), (200, 0.99), (300, 0.98)] {
        for hops in 1..=4 {
            let (share, nameless) = share(hops, lost);
            let percent = lost / 10;
            let (out, lacking) = (100.0 * share, 100.0 * nameless);
            println!("{hops} hops, {percent} % lost: {out:.1} %, without any head {lacking:.1} %");
            assert!(share >= least, "{hops} hops, {lost} of 1000 lost: {share}");
        }
    }
}
