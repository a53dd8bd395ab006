//! Neighbours who mean harm.

use crate::ear::{
    AMPLE, Ear, HEAD, Heard, bare, chunk, chunks, frame, lie, names, segments, stream,
};
use bytes::Bytes;
use std::time::Duration;
use wire::ChunkId;
use wire::peer::{ChunkHead, Source};

const SMALL: usize = 4 << 20;

fn head(name: [u8; 32], total: u32, offset: u32, length: u32) -> Vec<u8> {
    ChunkHead { name: ChunkId(name), total, offset, length, source: Source::Held }.encode().to_vec()
}

/// Hears `sent`, with something else between any two segments.
fn amid(ear: &mut Ear, sent: &[Bytes], mut between: impl FnMut(&mut Ear, usize)) {
    for (i, heard) in segments(1, &stream(sent)).iter().enumerate() {
        between(ear, i);
        ear.hear(heard);
    }
}

#[test]
fn a_million_half_open_connections_cost_nothing() {
    let (mut ear, sent) = (Ear::new(SMALL), chunks(0..40));
    let before = ear.counters().memory_bytes;
    for i in 0..1_000_000_u32 {
        ear.hear(&bare(i as u16, i, "S"));
    }
    assert_eq!((ear.engine.flows(), ear.counters().memory_bytes), (0, before));
    ear.hear_all(&segments(1, &stream(&sent)));
    assert_eq!(ear.names(), names(&sent));
}

#[test]
fn a_flood_of_flows_does_not_drown_the_true_one() {
    let (mut ear, sent) = (Ear::new(SMALL), chunks(0..60));
    let mut port = 1;
    amid(&mut ear, &sent, |ear, i| {
        for _ in 0..100 {
            port = if port == u16::MAX { 2 } else { port + 1 };
            let payload = vec![i as u8; 40];
            ear.hear(&Heard { flow: port, seq: 7, flags: "", payload });
        }
    });
    assert!(ear.counters().flows_evicted > 10_000);
    assert_eq!(ear.names(), names(&sent));
}

#[test]
fn a_flood_of_names_does_not_drown_the_true_ones() {
    let (mut ear, sent) = (Ear::new(SMALL), chunks(0..60));
    let mut name = 0_u64;
    amid(&mut ear, &sent, |ear, i| {
        // Segments full of heads, with a byte behind each.
        let mut payload = Vec::new();
        while payload.len() < 1300 {
            name += 1;
            let mut id = [0; 32];
            id[..8].copy_from_slice(&name.to_le_bytes());
            payload.extend(head(id, ChunkHead::TOTAL_MAX, 99, 1));
            payload.push(1);
        }
        for j in 0..10 {
            let seq = (i * 10 + j) as u32 * payload.len() as u32;
            ear.hear(&Heard { flow: 2, seq, flags: "", payload: payload.clone() });
        }
    });
    assert_eq!(ear.names(), names(&sent));
}

#[test]
fn half_chunks_that_never_go_on_do_not_stay_for_ever() {
    let (mut ear, sent) = (Ear::new(SMALL), chunks(0..20));
    // More almost complete chunks than there is room for.
    for i in 0..600 {
        let all = segments(2 + i as u16, &frame(&chunk(10_000 + i, 8192)));
        ear.hear_all(&all[..5]);
    }
    ear.wait(Duration::from_millis(100));
    // Many honest flows at once. Between two segments of a flow, one of each other flow is heard.
    let flows: Vec<_> = (0..).zip(&sent).map(|(i, it)| segments(5_000 + i, &frame(it))).collect();
    for i in 0..6 {
        flows.iter().for_each(|flow| ear.hear(&flow[i]));
        ear.wait(Duration::from_millis(1));
    }
    assert_eq!(ear.names(), names(&sent));
}

#[test]
fn heads_with_absurd_lengths_are_none() {
    let mut ear = Ear::new(SMALL);
    for (total, offset, length) in
        [(u32::MAX, 0, 1), (100, 0, 101), (100, u32::MAX, 2), (100, 50, 51), (100, 0, 0), (0, 0, 0)]
    {
        ear.hear_all(&segments(1, &[head([1; 32], total, offset, length), vec![0; 3000]].concat()));
    }
    assert_eq!((ear.counters().heads, ear.begun.len()), (0, 0));
}

#[test]
fn a_head_that_promises_much_takes_little() {
    let mut ear = Ear::new(SMALL);
    let before = ear.counters().memory_bytes;
    ear.hear_all(&segments(1, &[head([1; 32], 32 << 10, 0, 32 << 10), vec![0; 100]].concat()));
    let taken = ear.counters().memory_bytes - before;
    assert!(taken < 4000, "{taken}");
}

#[test]
fn a_false_chunk_is_counted_and_its_flow_is_not_joined_to_others_any_more() {
    let (mut ear, it) = (Ear::new(AMPLE), chunk(1, 8192));
    ear.hear_all(&segments(2, &lie(&chunk(5, 8192), &chunk(6, 8192))));
    assert_eq!((ear.counters().falsehoods, ear.chunks.len()), (1, 0));
    // The liar goes on with false bytes for the first half; the truth has only the second half.
    let liar = lie(&it, &chunk(7, 8192));
    let liar: Vec<_> = crate::ear::cut(2, 1000 + 8242, &liar[..4096 + HEAD], 1448, 1448);
    ear.hear_all(&liar);
    let honest = segments(1, &frame(&it));
    ear.hear_all(honest.iter().enumerate().filter(|(i, _)| *i != 1).map(|(_, it)| it));
    assert_eq!(ear.chunks.len(), 0);
    assert_eq!(ear.counters().falsehoods, 1, "nothing was put together that could be false");
    ear.hear(&honest[1]);
    assert_eq!(ear.names(), names(&[it]));
}

#[test]
fn liars_who_fill_gaps_first_are_told_from_who_fills_them_truly() {
    let it = chunk(1, 8192);
    let honest = segments(1, &frame(&it));
    let mut ear = Ear::new(AMPLE);
    ear.hear_all(honest.iter().enumerate().filter(|(i, _)| *i != 3).map(|(_, it)| it));
    // Three liars, each on a flow of its own, say something else of what was missed.
    for flow in 2..5 {
        let false_bytes = lie(&it, &chunk(u64::from(flow), 8192));
        let all = segments(flow, &false_bytes);
        let mut first = all[0].clone();
        // Their heads are true; their first bytes too.
        first.payload.copy_from_slice(&honest[0].payload);
        ear.hear(&first);
        ear.hear(&all[3]);
    }
    assert_eq!(ear.chunks.len(), 0);
    let other = segments(9, &frame(&it));
    ear.hear(&other[0]);
    ear.hear(&other[3]);
    assert_eq!(ear.names(), names(&[it]));
}

#[test]
fn a_liar_who_leaves_a_part_out_does_not_block_the_truth() {
    let it = chunk(1, 8192);
    let mut ear = Ear::new(AMPLE);
    let liar = segments(2, &lie(&it, &chunk(2, 8192)));
    ear.hear_all(&liar[..5]);
    let honest = segments(1, &frame(&it));
    ear.hear_all(&honest[..3]);
    ear.hear_all(&honest[4..]);
    // The rest of the truth, from a third.
    let third = segments(3, &frame(&it));
    ear.hear(&third[0]);
    ear.hear(&third[3]);
    assert_eq!(ear.names(), names(&[it]));
}

#[test]
fn bytes_put_into_a_true_flow_lose_whether_they_come_first_or_last() {
    let it = chunk(1, 8192);
    for late in [false, true] {
        let mut ear = Ear::new(AMPLE);
        for (i, heard) in segments(1, &frame(&it)).into_iter().enumerate() {
            let payload = chunk(99, heard.payload.len()).to_vec();
            let forged = Heard { payload, ..heard.clone() };
            match (i, late) {
                (0, _) => ear.hear(&heard),
                (_, false) => ear.hear_all([&forged, &heard]),
                (_, true) => ear.hear_all([&heard, &forged]),
            }
        }
        assert_eq!(ear.names(), names(std::slice::from_ref(&it)), "late: {late}");
    }
}

#[test]
fn resets_and_beginnings_that_nobody_sent_do_little_harm() {
    let (mut ear, sent) = (Ear::new(AMPLE), chunks(0..30));
    amid(&mut ear, &sent, |ear, i| {
        if i % 20 == 0 {
            ear.hear(&bare(1, i as u32 * 7919, "R"));
            ear.hear(&bare(1, i as u32 * 104_729, "S"));
        }
    });
    assert!(ear.chunks.len() >= 15, "{}", ear.chunks.len());
}

#[test]
fn memory_stays_within_the_smallest_budget() {
    // The ear checks after each segment.
    let mut ear = Ear::new(0);
    for i in 0..2_000_u64 {
        let length = 1 + (i * 7919 % 32_768) as usize;
        let all = segments(i as u16 % 300, &frame(&chunk(i, length)));
        ear.hear_all(all.iter().enumerate().filter(|(j, _)| j % 7 != 3).map(|(_, it)| it));
    }
    assert!(ear.counters().chunks_evicted > 0);
}
