//! One connection, and what TCP and the air do to it.

use crate::ear::{
    AMPLE, Ear, HEAD, Heard, bare, chunk, chunks, cut, frame, names, part, segments, stream,
};
use bytes::Bytes;
use std::time::Duration;

#[test]
fn chunks_in_order_come_out_in_order() {
    let (mut ear, sent) = (Ear::new(AMPLE), chunks(0..20));
    let bytes = stream(&sent);
    ear.hear_all(&segments(1, &bytes));
    assert_eq!(ear.names(), names(&sent));
    assert_eq!(ear.begun, names(&sent));
    let it = ear.counters();
    assert_eq!((it.chunks, it.used_bytes, it.heads), (20, 20 * 8192, 20));
    assert_eq!(
        (it.payload_bytes, it.unused_bytes(), it.assembling_bytes),
        (bytes.len() as u64, 0, 0)
    );
    assert_eq!((it.flows, it.segments), (1, bytes.len().div_ceil(1448) as u64));
}

#[test]
fn heads_may_span_segments_of_any_length() {
    for length in [1, 2, 7, 49, 50, 51, 99, 1447] {
        for first in [1, 3, 4, 49, 50, 51] {
            let (mut ear, sent) = (Ear::new(AMPLE), [chunk(1, 300), chunk(2, 10), chunk(3, 700)]);
            ear.hear_all(&cut(1, 5, &stream(&sent), first, length));
            assert_eq!(ear.names(), names(&sent), "first {first}, then {length}");
        }
    }
}

#[test]
fn several_chunks_may_be_in_one_segment() {
    let sent: Vec<Bytes> = (0..9).map(|i| chunk(i, 1 + 17 * i as usize)).collect();
    let mut ear = Ear::new(AMPLE);
    ear.hear_all(&cut(1, 5, &stream(&sent), 5000, 5000));
    assert_eq!(ear.names(), names(&sent));
}

#[test]
fn segments_may_come_in_any_order() {
    let sent = chunks(0..6);
    let mut all = segments(1, &stream(&sent));
    for turn in 1..all.len() {
        all.rotate_left(1);
        all.swap(0, turn);
        let mut ear = Ear::new(AMPLE);
        ear.hear_all(&all);
        assert_eq!(ear.chunks.len(), sent.len(), "turn {turn}");
    }
    all.reverse();
    let mut ear = Ear::new(AMPLE);
    ear.hear_all(&all);
    assert_eq!(ear.chunks.len(), sent.len());
}

#[test]
fn a_retransmission_fills_what_was_missed() {
    let (mut ear, sent) = (Ear::new(AMPLE), chunks(0..6));
    let all = segments(1, &stream(&sent));
    // The very first, which has a head, and some others.
    let missed = |i: &usize| [0, 3, 6, 11, 12, 13].contains(i);
    ear.hear_all(all.iter().enumerate().filter(|(i, _)| !missed(i)).map(|(_, it)| it));
    assert!(ear.chunks.len() < sent.len());
    ear.hear_all(all.iter().enumerate().filter(|(i, _)| missed(i)).map(|(_, it)| it));
    assert_eq!(ear.chunks.len(), sent.len());
}

#[test]
fn a_retransmission_may_be_cut_elsewhere() {
    let (mut ear, sent) = (Ear::new(AMPLE), chunks(0..3));
    let bytes = stream(&sent);
    ear.hear_all(segments(1, &bytes).iter().filter(|it| (it.seq - 1000) / 1448 % 3 != 1));
    assert_eq!(ear.chunks.len(), 0);
    ear.hear_all(&cut(1, 1000, &bytes, 700, 999));
    assert_eq!(ear.chunks.len(), sent.len());
}

#[test]
fn what_is_heard_twice_is_counted_not_kept() {
    let (mut ear, sent) = (Ear::new(AMPLE), chunks(0..4));
    let bytes = stream(&sent);
    for heard in segments(1, &bytes) {
        ear.hear(&heard);
        ear.hear(&heard);
    }
    ear.hear_all(&segments(1, &bytes));
    let it = ear.counters();
    assert_eq!(ear.names(), names(&sent));
    assert_eq!(it.kept_bytes, it.used_bytes);
    assert!(it.duplicate_bytes + it.head_bytes >= 2 * bytes.len() as u64);
    assert_eq!(it.headless_bytes, 0);
}

#[test]
fn sequence_numbers_wrap() {
    let sent = chunks(0..8);
    let bytes = stream(&sent);
    for before in [0, 1, 20, 1448, 5000, 40_000] {
        let mut ear = Ear::new(AMPLE);
        ear.hear_all(&cut(1, 0_u32.wrapping_sub(before), &bytes, 1448, 1448));
        assert_eq!(ear.names(), names(&sent), "{before} before the end of numbers");
        let mut backwards = cut(1, 0_u32.wrapping_sub(before), &bytes, 1448, 1448);
        backwards.reverse();
        let mut ear = Ear::new(AMPLE);
        ear.hear_all(&backwards);
        assert_eq!(ear.chunks.len(), sent.len(), "{before} before, backwards");
    }
}

#[test]
fn streams_longer_than_all_numbers_go_on() {
    // 5 GiB of sequence numbers; one chunk in each 8 MiB is heard.
    let mut ear = Ear::new(AMPLE);
    for i in 0..640_u64 {
        let bytes = frame(&chunk(i, 2000));
        let seq = (i * (8 << 20)) as u32;
        ear.hear_all(&cut(1, seq, &bytes, 1448, 1448));
    }
    assert_eq!(ear.chunks.len(), 640);
    assert_eq!(ear.engine.flows(), 1);
}

#[test]
fn a_flow_may_be_met_in_the_middle() {
    let sent = chunks(0..4);
    let bytes = stream(&sent);
    for skipped in [1, 49, 50, 3000, 8241, 8242, 9000] {
        let mut ear = Ear::new(AMPLE);
        ear.hear_all(&cut(1, 77, &bytes[skipped..], 1448, 1448));
        let whole = skipped.div_ceil(8192 + HEAD);
        assert_eq!(ear.names(), names(&sent[whole..]), "{skipped} bytes missed");
    }
}

#[test]
fn a_deaf_spell_ends_with_the_second_segment() {
    let (mut ear, sent) = (Ear::new(AMPLE), chunks(0..6));
    ear.hear_all(&segments(1, &stream(&sent[..3])));
    // More than any window later.
    ear.hear_all(&cut(1, 1 << 30, &stream(&sent[3..]), 1448, 1448));
    let mut expected = names(&sent);
    expected.remove(3);
    assert_eq!(ear.names(), expected);
}

#[test]
fn one_number_from_far_away_changes_nothing() {
    let (mut ear, sent) = (Ear::new(AMPLE), chunks(0..6));
    for (i, heard) in segments(1, &stream(&sent)).into_iter().enumerate() {
        ear.hear(&heard);
        let seq = heard.seq.wrapping_add((i as u32 + 2) << 26);
        ear.hear(&Heard { seq, payload: vec![9; 1448], ..heard });
    }
    assert_eq!(ear.names(), names(&sent));
}

#[test]
fn the_same_ports_may_be_used_again() {
    let (mut ear, sent) = (Ear::new(AMPLE), chunks(0..4));
    ear.hear(&bare(1, 999, "S"));
    ear.hear_all(&segments(1, &stream(&sent[..2])));
    ear.hear(&bare(1, 5_000, "S"));
    ear.hear_all(&cut(1, 5_001, &stream(&sent[2..]), 1448, 1448));
    assert_eq!(ear.names(), names(&sent));
    assert_eq!(ear.counters().flows, 1);
}

#[test]
fn a_first_segment_may_have_both_syn_and_bytes() {
    let (mut ear, sent) = (Ear::new(AMPLE), chunks(0..1));
    let mut all = segments(1, &stream(&sent));
    all[0].flags = "S";
    all[0].seq -= 1;
    ear.hear_all(&all);
    assert_eq!(ear.names(), names(&sent));
}

#[test]
fn flows_that_end_are_forgotten_soon_but_not_at_once() {
    for flags in ["F", "R"] {
        let (mut ear, sent) = (Ear::new(AMPLE), chunks(0..2));
        let mut all = segments(1, &stream(&sent));
        let late = all.remove(2);
        all.last_mut().unwrap().flags = flags;
        ear.hear_all(&all);
        ear.wait(Duration::from_millis(1500));
        assert_eq!((ear.engine.flows(), ear.chunks.len()), (1, 1));
        ear.hear(&late);
        assert_eq!(ear.chunks.len(), 2);
        ear.wait(Duration::from_millis(2001));
        assert_eq!(ear.engine.flows(), 0);
    }
}

#[test]
fn silent_flows_end() {
    let mut ear = Ear::new(AMPLE);
    ear.hear_all(&segments(1, &stream(&chunks(0..1))));
    ear.hear_all(&segments(2, &[7; 5000]));
    assert_eq!(ear.engine.flows(), 2);
    ear.wait(Duration::from_secs(11));
    assert_eq!(ear.engine.flows(), 1, "one without heads goes first");
    ear.wait(Duration::from_secs(600));
    assert_eq!(ear.engine.flows(), 0);
    assert_eq!(ear.engine.poll_timeout(), None);
    assert_eq!(ear.counters().headless_bytes, 0);
    assert_eq!(ear.counters().unclaimed_bytes, 5000);
}

#[test]
fn parts_of_a_chunk_may_have_frames_of_their_own() {
    let it = chunk(3, 8192);
    let parts = [part(&it, 5000..8192), part(&it, 0..100), part(&it, 100..5000)].concat();
    let mut ear = Ear::new(AMPLE);
    ear.hear_all(&segments(1, &parts));
    assert_eq!(ear.names(), [content::name(&it)]);
}

#[test]
fn other_bytes_between_frames_are_passed_over() {
    let (mut ear, sent) = (Ear::new(AMPLE), chunks(0..3));
    let noise = [&b"HSCH"[..], &[0; 500], b"HSC", &[1; 60_000], b"HSCHHSCH\x01HSCH\x01"].concat();
    let bytes = [&noise, &frame(&sent[0])[..], &noise, &frame(&sent[1]), &frame(&sent[2])].concat();
    ear.hear_all(&segments(1, &bytes));
    assert_eq!(ear.names(), names(&sent));
}

#[test]
fn content_may_contain_what_looks_like_heads() {
    // A chunk of chunk frames, met in the middle: the inner frames are true chunks too.
    let inner = chunks(0..3);
    let outer = Bytes::from(stream(&inner[..1])[..8000].to_vec());
    let next = chunks(7..9);
    let bytes = [frame(&outer), stream(&next)].concat();
    let mut ear = Ear::new(AMPLE);
    ear.hear_all(&segments(1, &bytes));
    assert_eq!(ear.names(), [names(std::slice::from_ref(&outer)), names(&next)].concat());
    let mut ear = Ear::new(AMPLE);
    ear.hear_all(&segments(1, &bytes[60..]));
    assert!(ear.names().ends_with(&names(&next[1..])), "it finds its way back");
}
