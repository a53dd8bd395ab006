//! What holds for any segments that are joined to streams. The fuzz target and the plain tests run it.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use wire::capture::Segment;

use super::analysis::Analysis;
use super::counts::Counts;
use super::streams::{StreamCounts, Streams};

/// The smallest chunks of the analysis: with few schemes, it is fast.
const SMALLEST_HERE: u32 = 16 << 10;

/// Bytes of the analysis' tables; what the segments carry needs less.
const TABLES: u64 = 64 << 20;

/// The sequence number of the first byte of each connection; the window wraps after it.
const FIRST: u32 = u32::MAX - 5000;

/// Bytes of input for a segment.
const RECORD: usize = 8;

/// Reads segments from bytes, joins them, and checks what came out. Panics if it is wrong.
pub fn streams(bytes: &[u8]) {
    let content = content();
    wild(bytes, &content);
    tame(bytes, &content);
}

/// Any flags, any sequence numbers, several connections: no byte comes out that did not go in.
fn wild(bytes: &[u8], content: &[u8]) {
    let segments: Vec<_> = bytes.chunks_exact(RECORD).map(|it| segment(it, content)).collect();
    let sent: u64 = segments.iter().map(|it| it.payload.len() as u64).sum();
    let (counts, found) = joined(Analysis::new(SMALLEST_HERE, TABLES), segments);
    for it in found {
        assert!(it.bytes <= sent, "{} bytes of {sent} came out", it.bytes);
        assert!(counts.streams <= it.bytes, "{} streams of {} bytes", counts.streams, it.bytes);
    }
}

/// One connection whose segments agree, near each other: each run of captured bytes comes out, once and in order.
fn tame(bytes: &[u8], content: &[u8]) {
    // So few that what waits behind a gap stays below its limit.
    let records = bytes.chunks_exact(RECORD).take(300);
    let mut starts: Vec<(usize, usize)> = records
        .map(|it| {
            let start = usize::from(u16::from_le_bytes([it[2], it[3]])) % (content.len() - 600);
            (start, start + usize::from(it[4]) * 2)
        })
        .collect();
    starts.insert(0, (100, 101));
    let segments = starts.iter().map(|&(start, end)| Segment {
        seq: FIRST.wrapping_add(start as u32),
        payload: &content[start..end],
        ..plain(1)
    });
    let runs = runs(&starts, 100);
    // What should come out crosses first, so that each byte of what does must be known.
    let mut analysis = Analysis::new(SMALLEST_HERE, TABLES);
    for &(start, end) in &runs {
        let mut stream = analysis.stream();
        analysis.feed(&mut stream, &content[start..end]).expect("room");
        analysis.finish(stream).expect("room");
    }
    analysis.end_input();
    let (counts, found) = joined(analysis, segments);
    let gaps: usize = runs.windows(2).map(|it| it[1].0 - it[0].1).sum();
    assert_eq!(counts.streams, runs.len() as u64, "{starts:?}");
    assert_eq!(counts.missing_bytes, gaps as u64, "{starts:?}");
    let bytes: usize = runs.iter().map(|(start, end)| end - start).sum();
    for it in found {
        assert_eq!(
            (it.bytes, it.hit_bytes(), it.misses),
            (bytes as u64, bytes as u64, 0),
            "{starts:?}"
        );
    }
}

/// What these ranges cover from a position on, as ranges with gaps between them.
fn runs(ranges: &[(usize, usize)], from: usize) -> Vec<(usize, usize)> {
    let mut edges: BTreeMap<usize, i32> = BTreeMap::new();
    for (start, end) in ranges.iter().map(|&(start, end)| (start.max(from), end)) {
        if start < end {
            *edges.entry(start).or_default() += 1;
            *edges.entry(end).or_default() -= 1;
        }
    }
    let (mut runs, mut depth, mut since) = (Vec::new(), 0, 0);
    for (at, change) in edges {
        match (depth, depth + change) {
            (0, 1..) => since = at,
            (1.., 0) => runs.push((since, at)),
            _ => {}
        }
        depth += change;
    }
    runs
}

/// A segment from a record: flags and port, sequence number, length, bytes that were not captured. Zeros are a segment
/// without flags near the others.
fn segment<'c>(record: &[u8], content: &'c [u8]) -> Segment<'c> {
    let near = u32::from(u16::from_le_bytes([record[2], record[3]]));
    let far = u32::from(record[1]) << 24;
    let length = usize::from(record[4]) << (record[5] & 7);
    let start = near as usize % content.len();
    let is = |bit: u8| record[0] & 1 << bit != 0;
    Segment {
        seq: FIRST.wrapping_add(near).wrapping_add(if is(7) { far } else { 0 }),
        syn: is(0) && is(1),
        fin: is(0) && is(2),
        rst: is(0) && is(3),
        payload: &content[start..content.len().min(start + length)],
        missing: if is(4) { usize::from(u16::from_le_bytes([record[6], record[7]])) } else { 0 },
        ..plain(u16::from(record[0] >> 5 & 3))
    }
}

/// An empty segment of a connection.
fn plain(port: u16) -> Segment<'static> {
    Segment {
        from: SocketAddr::from(([10, 0, 0, 1], port)),
        to: SocketAddr::from(([10, 0, 0, 2], 80)),
        seq: 0,
        ack: None,
        syn: false,
        fin: false,
        rst: false,
        payload: b"",
        missing: 0,
    }
}

/// Bytes of which no two places are alike.
fn content() -> Vec<u8> {
    let mut state = 1u32;
    let next = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..40_000).map(next).collect()
}

/// The counts of segments.
fn joined<'a>(
    mut analysis: Analysis,
    segments: impl IntoIterator<Item = Segment<'a>>,
) -> (StreamCounts, Vec<Counts>) {
    let mut streams = Streams::default();
    for segment in segments {
        streams.handle_segment(&mut analysis, &segment).expect("room");
    }
    (streams.finish(&mut analysis).expect("room"), analysis.end_input())
}
