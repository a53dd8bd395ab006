//! The same chunks on several hops' connections.

use crate::ear::{AMPLE, Ear, Heard, chunk, chunks, cut, frame, lie, names, segments, stream};
use node::overhear::{Options, SEGMENTS_AT_ONCE};

/// Without some of them.
fn without(mut all: Vec<Heard>, missed: &[usize]) -> Vec<Heard> {
    let mut i = 0;
    all.retain(|_| {
        i += 1;
        !missed.contains(&(i - 1))
    });
    all
}

#[test]
fn one_hop_fills_what_was_missed_of_another_though_cut_elsewhere() {
    let (mut ear, sent) = (Ear::new(AMPLE), chunks(0..1));
    let bytes = stream(&sent);
    ear.hear_all(&without(cut(1, 10, &bytes, 1448, 1448), &[2, 3]));
    assert_eq!(ear.chunks.len(), 0);
    // The borders differ, and another part is missed.
    ear.hear_all(&without(cut(2, 99_999, &bytes, 500, 1200), &[1, 6]));
    assert_eq!(ear.names(), names(&sent));
}

#[test]
fn both_at_once_are_heard_once() {
    let (mut ear, sent) = (Ear::new(AMPLE), chunks(0..30));
    let (one, two) = (segments(1, &stream(&sent)), cut(2, 5, &stream(&sent), 77, 1300));
    let mut two = two.iter();
    for heard in &one {
        ear.hear(heard);
        two.next().into_iter().for_each(|it| ear.hear(it));
    }
    ear.hear_all(two);
    assert_eq!(ear.names(), names(&sent));
    assert_eq!(ear.counters().kept_bytes, 30 * 8192);
}

#[test]
fn a_chunk_is_not_assembled_again_right_after() {
    let (mut ear, sent) = (Ear::new(AMPLE), chunks(0..3));
    ear.hear_all(&segments(1, &stream(&sent)));
    ear.hear_all(&segments(2, &stream(&sent)));
    assert_eq!((ear.chunks.len(), ear.begun.len()), (3, 3));
    // But later: it may have left the store meanwhile.
    ear.wait(std::time::Duration::from_secs(20));
    ear.hear_all(&segments(3, &stream(&sent)));
    assert_eq!(ear.chunks.len(), 6);
}

#[test]
fn a_missed_head_is_known_from_another_hop() {
    let sent = chunks(0..5);
    let bytes = stream(&sent);
    // On one flow the heads of the second and third chunk are missed, and what comes with them.
    let missed_there = [5, 11];
    // On the other, heads are heard, but something else is missed of those.
    let missed_here = [7, 8, 13];
    for first in [false, true] {
        let mut ear = Ear::new(AMPLE);
        let there = without(segments(1, &bytes), &missed_there);
        let here = without(segments(2, &bytes), &missed_here);
        ear.hear_all(if first { &there } else { &here });
        ear.hear_all(if first { &here } else { &there });
        ear.wait_for_all_to_end();
        assert_eq!(ear.chunks.len(), 5, "first: {first}");
        assert!(ear.counters().heads_guessed >= 2);
    }
}

#[test]
fn heads_are_known_though_no_hop_has_them_side_by_side() {
    let sent = chunks(0..8);
    let bytes = stream(&sent);
    let with = |offset: usize, chunks: &[usize]| {
        chunks.iter().map(|chunk| (chunk * 8242 + offset) / 1448).collect::<Vec<_>>()
    };
    // One hop misses the heads of odd chunks and the middles of even ones, the other the reverse.
    let one = without(segments(1, &bytes), &[with(0, &[1, 3, 5]), with(4000, &[2, 4])].concat());
    let two = without(segments(2, &bytes), &[with(0, &[2, 4]), with(4000, &[1, 3, 5])].concat());
    for (first, second) in [(&one, &two), (&two, &one)] {
        let mut ear = Ear::new(AMPLE);
        ear.hear_all(first);
        ear.hear_all(second);
        ear.wait_for_all_to_end();
        let (mut found, mut all) = (ear.names(), names(&sent));
        found.sort();
        all.sort();
        assert_eq!(found, all);
    }
}

#[test]
fn streams_that_are_not_joined_bring_no_more_than_each_has() {
    let alone = Options { joins_streams: false, ..Options::default() };
    let (mut ear, sent) = (Ear::with_options(AMPLE, alone), chunks(0..2));
    let bytes = stream(&sent);
    let all = segments(1, &bytes);
    ear.hear_all(&without(all.clone(), &[2, 7]));
    ear.hear_all(&without(segments(2, &bytes), &[3, 8]));
    assert_eq!(ear.chunks.len(), 0, "together they have all of it");
    // What the one sends again belongs to the one.
    ear.hear(&all[2]);
    assert_eq!(ear.names(), names(&sent[..1]));
    ear.wait_for_all_to_end();
    assert_eq!(ear.counters().heads_guessed, 0);
}

#[test]
fn heads_are_needed_where_they_are_not_guessed() {
    let needy = Options { guesses_heads: false, ..Options::default() };
    let sent = chunks(0..5);
    let bytes = stream(&sent);
    let there = without(segments(1, &bytes), &[5, 11]);
    let here = without(segments(2, &bytes), &[7, 8, 13]);
    for options in [needy, Options::default()] {
        let mut ear = Ear::with_options(AMPLE, options);
        ear.hear_all(&there);
        ear.hear_all(&here);
        ear.wait_for_all_to_end();
        let guessed = options.guesses_heads;
        assert_eq!(ear.chunks.len() == sent.len(), guessed);
        assert_eq!(ear.counters().heads_guessed > 0, guessed);
    }
}

#[test]
fn a_guess_yields_to_what_is_heard() {
    // Here one chunk follows another; there, a third of the same length does.
    let (a, b, c, d) = (chunk(1, 8192), chunk(2, 8192), chunk(3, 8192), chunk(4, 8192));
    let here = stream(&[a.clone(), b.clone(), d.clone()]);
    let there = stream(&[a.clone(), c.clone(), d.clone()]);
    let mut ear = Ear::new(AMPLE);
    ear.hear_all(&without(segments(1, &here), &[7]));
    let all = segments(2, &there);
    ear.hear_all(&without(all.clone(), &[5]));
    assert!(ear.counters().heads_guessed > 0);
    ear.hear(&all[5]);
    // Bytes that went to the wrong chunk have not spoilt it.
    ear.hear_all(&segments(3, &frame(&b)));
    ear.hear_all(&segments(4, &frame(&c)));
    let mut found = ear.names();
    found.sort();
    let mut sent = names(&[a, b, c, d]);
    sent.sort();
    assert_eq!(found, sent);
}

#[test]
fn one_corrupt_segment_does_not_keep_the_chunk_from_being_heard_elsewhere() {
    let it = chunk(1, 8192);
    for corrupt in 0..6 {
        let mut ear = Ear::new(AMPLE);
        let mut all = segments(1, &frame(&it));
        *all[corrupt].payload.last_mut().unwrap() ^= 4;
        // The other flow has missed something too, and has it from the first.
        let other = without(cut(2, 7, &frame(&it), 1000, 1000), &[(corrupt + 5) % 8 + 1]);
        ear.hear_all(&all);
        ear.hear_all(&other);
        if ear.chunks.is_empty() {
            ear.hear_all(&cut(3, 7, &frame(&it), 900, 900));
        }
        assert_eq!(ear.names(), names(std::slice::from_ref(&it)), "segment {corrupt}");
    }
}

#[test]
fn a_lie_beside_the_truth_does_not_matter() {
    let it = chunk(1, 8192);
    let bytes = lie(&it, &chunk(2, 8192));
    for (first, second) in [(1, 2), (2, 1)] {
        let mut ear = Ear::new(AMPLE);
        let liar = segments(first, &bytes);
        let honest = segments(second, &frame(&it));
        for (one, two) in liar.iter().zip(&honest) {
            ear.hear(one);
            ear.hear(two);
        }
        assert_eq!(ear.names(), names(std::slice::from_ref(&it)));
    }
}

#[test]
fn segments_that_are_handed_over_together_come_to_the_same_as_one_by_one() {
    // More flows than there is room for: between two segments of one, others make it leave.
    const FLOWS: u16 = 200;
    let of_flow =
        |flow: u16| segments(flow, &stream(&chunks(u64::from(flow) / 2..u64::from(flow) / 2 + 3)));
    let mut streams: Vec<_> = (0..FLOWS).map(|flow| of_flow(flow).into_iter()).collect();
    let mut all = Vec::new();
    while streams.iter().any(|rest| rest.len() > 0) {
        // Some streams send several segments in a row; some segments are missed.
        for (i, rest) in streams.iter_mut().enumerate() {
            all.extend(rest.by_ref().take(1 + i % 3).filter(|it| it.seq % 11 > 0));
        }
    }
    let (mut together, mut one_by_one) = (Ear::new(0), Ear::new(0));
    let (mut rest, mut count) = (&all[..], 0);
    while !rest.is_empty() {
        count = count % (2 * SEGMENTS_AT_ONCE + 1) + 1;
        let (some, behind) = rest.split_at(count.min(rest.len()));
        together.hear_in_a_moment(some, true);
        one_by_one.hear_in_a_moment(some, false);
        assert_eq!(together.chunks, one_by_one.chunks);
        assert_eq!(together.counters(), one_by_one.counters());
        rest = behind;
    }
    let it = together.counters();
    assert!(it.chunks > 0 && it.flows_evicted > 0 && it.chunks_evicted > 0, "{it:?}");
}
