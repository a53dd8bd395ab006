//! Properties of divisions and counts, and a plain reference for the counts.

use std::collections::HashSet;
use std::net::SocketAddr;

use content::nested::{Nested, Root};
use wire::capture::Segment;

use super::counts::NAME_LEN;
use super::division::{Division, Ours};
use super::*;

/// A small generator (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let a = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let b = (a ^ (a >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        b ^ (b >> 31)
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next() as u8).collect()
    }
}

/// A version with small changes: a byte replaced, a few put in, at places about 20,000 bytes apart.
fn changed(old: &[u8], random: &mut Random) -> Vec<u8> {
    let (mut new, mut at) = (Vec::new(), 0);
    while at < old.len() {
        let until = old.len().min(at + 1 + random.next() as usize % 40_000);
        new.extend_from_slice(&old[at..until]);
        let added = random.next() as usize % 9;
        new.extend(random.bytes(added));
        at = until + random.next() as usize % 2;
    }
    new
}

/// Contents of several kinds.
fn contents() -> Vec<Vec<u8>> {
    let mut random = Random(1);
    let noise = random.bytes(300_000);
    let page: Vec<u8> =
        (0..9000).flat_map(|row| format!("<tr><td>{}\n", row / 7).into_bytes()).collect();
    let padded = [&noise[..1000], &[0; 400_000], &noise[..50_000], &[0; 7]].concat();
    vec![noise, page, padded, vec![], vec![5], b"less than a window".to_vec()]
}

fn averages(smallest: u32) -> Vec<u32> {
    (smallest.ilog2()..=16).rev().map(|bits| 1 << bits).collect()
}

fn divisions() -> [Division; 2] {
    [Division::Nested(Nested::new(&averages(SMALLEST))), Division::Ours(Box::new(Ours::new()))]
}

/// The average length of a scheme's smallest chunks.
fn smallest(scheme: &Scheme) -> u32 {
    *scheme.averages.last().expect("a level")
}

/// The roots of a stream that comes in pieces of these lengths, in turn.
fn roots(mut division: Division, content: &[u8], pieces: &[usize]) -> Vec<Root> {
    let (mut roots, mut root, mut rest) = (Vec::new(), Root::default(), content);
    for &length in pieces.iter().cycle() {
        let (mut piece, after) = rest.split_at(length.min(rest.len()));
        while !piece.is_empty() {
            let (taken, is_whole) = division.take(piece, &mut root);
            piece = &piece[taken..];
            if is_whole {
                roots.push(root.clone());
            }
        }
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
    if division.finish(&mut root) {
        roots.push(root);
    }
    roots
}

#[test]
fn chunks_of_each_level_join_to_the_content_and_nest() {
    for content in contents() {
        for division in divisions() {
            let roots = roots(division, &content, &[content.len().max(1)]);
            let joined: Vec<u8> = roots.iter().flat_map(|root| root.bytes.clone()).collect();
            assert!(joined == content, "{} bytes became {}", content.len(), joined.len());
            for Root { bytes, ends, .. } in &roots {
                assert_eq!(ends[0], [bytes.len() as u32]);
                for (larger, smaller) in ends.iter().zip(&ends[1..]) {
                    assert!(smaller.is_sorted_by(|a, b| a < b) && smaller[0] > 0);
                    assert!(larger.iter().all(|end| smaller.binary_search(end).is_ok()));
                    assert!(smaller.last() == larger.last());
                }
            }
        }
    }
}

#[test]
fn pieces_do_not_matter() {
    for content in contents() {
        for division in divisions() {
            let whole = roots(division.clone(), &content, &[content.len().max(1)]);
            assert!(whole == roots(division.clone(), &content, &[1, 7, 4096, 31]));
            assert!(whole == roots(division, &content, &[100_003]));
        }
    }
}

#[test]
fn chunks_of_noise_have_the_average_lengths_and_none_is_too_long() {
    let content = Random(9).bytes(2 << 20);
    let averages = averages(SMALLEST);
    let roots = roots(Division::Nested(Nested::new(&averages)), &content, &[65_536]);
    for (level, &average) in averages.iter().enumerate() {
        let chunks: usize = roots.iter().map(|root| root.ends[level].len()).sum();
        let mean = content.len() as f64 / chunks as f64 / f64::from(average);
        // Four standard deviations of the mean of lengths that are spread exponentially.
        let spread = 4.0 / (chunks as f64).sqrt();
        assert!((mean - 1.0).abs() < 0.03 + spread, "{average}: {mean}");
        let longest = roots.iter().flat_map(|root| {
            root.ends[level].iter().scan(0, |start, &end| Some(end - std::mem::replace(start, end)))
        });
        assert!(longest.max() <= Some(4 * average));
    }
}

/// Schemes with their counts of the last of several versions.
fn counted(smallest: u32, versions: &[&[u8]]) -> Vec<(Scheme, Counts)> {
    let mut analysis = Analysis::new(smallest, 1 << 30);
    let mut counts = Vec::new();
    for version in versions {
        let mut stream = analysis.stream();
        version.chunks(10_007).for_each(|it| analysis.feed(&mut stream, it).expect("room"));
        analysis.finish(stream).expect("room");
        analysis.forget_uses();
        counts = analysis.end_input();
    }
    analysis.schemes().cloned().zip(counts).collect()
}

/// What a scheme's tree sends of a chunk, with the bytes of chunks as their names.
fn plain<'c>(
    known: &HashSet<&'c [u8]>,
    levels: &[Vec<&'c [u8]>],
    chunk: &'c [u8],
    depth: usize,
    sent: &mut [u64; 3],
) -> bool {
    let [hits, hit_bytes, _] = sent;
    if known.contains(chunk) {
        *hits += 1;
        *hit_bytes += chunk.len() as u64;
        return true;
    }
    let inside = chunk.as_ptr_range();
    let children =
        levels.get(depth + 1).into_iter().flatten().filter(|it| inside.contains(&it.as_ptr()));
    let missing = children.filter(|it| !plain(known, levels, it, depth + 1, sent)).count() as u64;
    let all =
        levels.get(depth + 1).into_iter().flatten().filter(|it| inside.contains(&it.as_ptr()));
    let any = (all.count() as u64) > missing;
    sent[2] += if any { missing } else { 0 };
    any
}

/// Hits, their bytes and misses of the last version, by a plain reference.
fn reference(scheme: &Scheme, division: Division, versions: &[&[u8]]) -> [u64; 3] {
    let all: Vec<_> = versions.iter().map(|it| roots(division.clone(), it, &[1 << 20])).collect();
    let mut known: HashSet<&[u8]> = HashSet::new();
    let mut sent = [0; 3];
    for version in &all {
        sent = [0; 3];
        for root in version {
            let cut = |&level: &usize| {
                let starts = std::iter::once(&0).chain(&root.ends[level]);
                let chunk = |(&from, &to): (&u32, &u32)| &root.bytes[from as usize..to as usize];
                starts.zip(&root.ends[level]).map(chunk).collect::<Vec<_>>()
            };
            let levels: Vec<Vec<&[u8]>> = scheme.levels.iter().map(cut).collect();
            for &chunk in &levels[0] {
                let any = plain(&known, &levels, chunk, 0, &mut sent);
                sent[2] += u64::from(!any);
                // SRC has roots of its own level: a chunk is known once it has crossed.
                if scheme.kind == Kind::Src {
                    known.insert(chunk);
                }
            }
            known.extend(levels.into_iter().flatten());
        }
    }
    sent
}

#[test]
fn counts_are_those_of_a_plain_reference() {
    let mut random = Random(3);
    let (page, noise) = (contents().swap_remove(1), random.bytes(80_000));
    let old = [&page[..30_000], &noise, &page[..15_000]].concat();
    let new = changed(&old, &mut random);
    let versions: [&[u8]; 2] = [&old, &new];
    for (scheme, counts) in counted(SMALLEST, &versions) {
        let division = divisions().into_iter().nth(usize::from(scheme.kind == Kind::Ours));
        let plain = reference(&scheme, division.expect("one of two"), &versions);
        let ours = [counts.hits, counts.hit_bytes(), counts.misses];
        assert_eq!(ours, plain, "{} {}", scheme.family(), smallest(&scheme));
    }
}

#[test]
fn a_version_equal_to_the_one_before_costs_names_only() {
    let content = Random(4).bytes(400_000);
    for (scheme, counts) in counted(SMALLEST, &[&content, &content]) {
        assert_eq!((counts.misses, counts.ideal_savings()), (0, Some(1.0)), "{scheme:?}");
        assert_eq!(counts.sent_bytes(), NAME_LEN * counts.hits);
        // Roots are known whole, so that trees are as good as their largest chunks.
        if scheme.kind != Kind::Src {
            assert!(counts.real_savings() > Some(0.998), "{scheme:?}: {:?}", counts.real_savings());
            assert_eq!(counts.saved_by_level, [400_000]);
        }
    }
}

#[test]
fn noise_saves_nothing_and_costs_the_names() {
    let content = Random(5).bytes(400_000);
    for (scheme, counts) in counted(1024, &[&content]) {
        assert_eq!((counts.hits, counts.ideal_savings()), (0, Some(0.0)), "{scheme:?}");
        assert_eq!(counts.sent_bytes(), 400_000 + NAME_LEN * counts.misses);
        let root = f64::from(scheme.averages[0]);
        // Trees send a root as a whole; SRC names each of its chunks.
        let cost = -counts.real_savings().expect("bytes");
        assert!(cost > 0.3 * 20.0 / root && cost < 3.0 * 20.0 / root, "{scheme:?}: {cost}");
    }
}

#[test]
fn schemes_rank_as_in_table_1() {
    let mut random = Random(6);
    let old = random.bytes(1 << 19);
    let new = changed(&old, &mut random);
    let counted = counted(SMALLEST, &[&old, &new]);
    let of = |kind, length: u32| {
        let is_it = |(it, _): &&(Scheme, Counts)| {
            it.kind == kind && smallest(it) == length && it.degree.is_none_or(|it| it == 2)
        };
        &counted.iter().find(is_it).expect("the scheme").1
    };
    let (small, large) = (of(Kind::Src, 32), of(Kind::Src, 65_536));
    let (mrc, parts, whole) = (of(Kind::Mrc, 32), of(Kind::MrcSmall, 32), of(Kind::MrcLarge, 32));
    assert!(mrc.real_savings() > small.real_savings() && mrc.real_savings() > large.real_savings());
    assert!(mrc.disk_operations() * 8 < small.disk_operations());
    assert!(parts.disk_operations() * 10 > small.disk_operations() * 9);
    assert!(parts.entries > small.entries && mrc.entries * 8 < small.entries);
    assert_eq!((whole.entries, whole.disk_operations()), (mrc.entries, mrc.disk_operations()));
    assert!(whole.index_bytes(Kind::MrcLarge) > mrc.index_bytes(Kind::Mrc));
    assert!(mrc.stored_bytes > 8 * parts.stored_bytes && whole.stored_bytes > parts.stored_bytes);
}

#[test]
fn a_full_table_is_an_error() {
    let content = Random(7).bytes(400_000);
    let mut analysis = Analysis::new(SMALLEST, 100_000);
    let mut stream = analysis.stream();
    let full = analysis.feed(&mut stream, &content).expect_err("no room");
    assert!(full.needed > 10_000 && analysis.memory() <= 100_000, "{full:?}");
}

#[test]
fn effective_bandwidth_by_hand() {
    let disk = Disk { seek_seconds: 0.01, bytes_a_second: 1e6 };
    let mut counts = Counts { bytes: 20_000, ..Counts::default() };
    counts.hit(0, 8192, 1);
    counts.hit(1, 1024, 1);
    // 10,784 bytes and two names: 0.10824 s at 100 kB/s, while the disk takes 0.029216 s.
    let slow = improvement(&counts, 8e5, disk, Shedding::Chunks).expect("bytes");
    assert!((slow - 0.2 / 0.10824).abs() < 1e-9, "{slow}");
    assert_eq!(Some(slow), improvement(&counts, 8e5, disk, Shedding::None));
    // At 10 MB/s the disk is the slower one: 0.029216 s, or both together less.
    let bare = improvement(&counts, 8e7, disk, Shedding::None).expect("bytes");
    assert!((bare - 0.002 / 0.029216).abs() < 1e-9, "{bare}");
    // At worst all content crosses as bytes, and all names with it.
    let worst = 20_000.0 / (20_000.0 + 2.0 * 20.0);
    for link in [1e6, 1e7, 1e8, 1e9, 1e12] {
        let [sheds, not] =
            [Shedding::Chunks, Shedding::None].map(|it| improvement(&counts, link, disk, it));
        assert!(sheds >= not && sheds >= Some(worst - 1e-9), "{link}: {sheds:?} {not:?}");
    }
    // Without the names of what is shed, content is never slower than over the bare link.
    for link in [1e6, 1e7, 1e8, 1e9, 1e12] {
        let bare = improvement(&counts, link, disk, Shedding::ChunksAndNames);
        assert!(
            bare >= Some(1.0 - 1e-9) && bare >= improvement(&counts, link, disk, Shedding::Chunks)
        );
    }
    assert_eq!(improvement(&Counts::default(), 1e6, disk, Shedding::Chunks), None);
}

/// Segments of a stream from a sequence number on, of up to 1448 bytes, the last with FIN.
fn segments(content: &[u8], first: u32) -> Vec<Segment<'_>> {
    let [from, to] = [1, 2].map(|port| SocketAddr::from(([10, 0, 0, 1], port)));
    let last = content.len().div_ceil(1448) - 1;
    let segment = |(at, payload)| Segment {
        from,
        to,
        seq: first.wrapping_add(1448 * at as u32),
        ack: Some(1),
        syn: false,
        fin: at == last,
        rst: false,
        payload,
        missing: 0,
    };
    content.chunks(1448).enumerate().map(segment).collect()
}

/// The counts of segments, and of streams given whole.
fn joined<'a>(segments: impl IntoIterator<Item = Segment<'a>>) -> (StreamCounts, Vec<Counts>) {
    let (mut analysis, mut streams) = (Analysis::new(SMALLEST, 1 << 30), Streams::default());
    for segment in segments {
        streams.handle_segment(&mut analysis, &segment).expect("room");
    }
    (streams.finish(&mut analysis).expect("room"), analysis.end_input())
}

fn whole(contents: &[&[u8]]) -> Vec<Counts> {
    let mut analysis = Analysis::new(SMALLEST, 1 << 30);
    for content in contents {
        let mut stream = analysis.stream();
        analysis.feed(&mut stream, content).expect("room");
        analysis.finish(stream).expect("room");
    }
    analysis.end_input()
}

#[test]
fn segments_out_of_order_and_repeated_join_to_the_stream() {
    let mut random = Random(8);
    let content = random.bytes(120_000);
    for first in [0, 77, u32::MAX - 50_000] {
        let segments = segments(&content, first);
        let syn = Segment {
            seq: first.wrapping_sub(1),
            syn: true,
            fin: false,
            payload: b"",
            ..segments[0]
        };
        let mut order = Vec::new();
        for at in 0..segments.len() {
            let back = random.next() as usize % 8;
            order.push(segments[at]);
            order.push(segments[at.saturating_sub(back)]);
            let length = order.len();
            order.swap(length - 1, length.saturating_sub(1 + back));
        }
        let (counts, found) = joined([syn].into_iter().chain(order));
        assert_eq!(counts, StreamCounts { streams: 1, missing_bytes: 0 }, "{first}");
        assert!(found == whole(&[&content]), "{first}");
    }
}

#[test]
fn a_gap_ends_a_stream_and_begins_another() {
    let content = Random(10).bytes(1448 * 300);
    let all = segments(&content, 5);
    let (before, after) = (&content[..1448 * 100], &content[1448 * 102..]);
    let (counts, found) = joined(all[..100].iter().chain(&all[102..]).copied());
    assert_eq!(counts, StreamCounts { streams: 2, missing_bytes: 2 * 1448 });
    assert!(found == whole(&[before, after]));
    // The same where frames were captured in part.
    let cut = Segment { payload: &all[100].payload[..48], missing: 1400, ..all[100] };
    let (counts, found) = joined(all[..100].iter().chain([&cut]).chain(&all[101..]).copied());
    assert_eq!(counts, StreamCounts { streams: 2, missing_bytes: 1400 });
    assert!(found == whole(&[&content[..1448 * 100 + 48], &content[1448 * 101..]]));
}

/// A SYN before the byte of this sequence number.
fn syn(segments: &[Segment<'static>], first: u32) -> Segment<'static> {
    let seq = first.wrapping_sub(1);
    Segment { seq, syn: true, fin: false, payload: b"", ..segments[0] }
}

/// Two connections over the same ports: `second` is the distance of the second one's first byte from that of the first,
/// whose SYN was captured if `begun`. The bytes of both come out if the second is taken for another one.
#[track_caller]
fn reused(begun: bool, second: i64, is_other: bool) {
    const FIRST: u32 = 0xffff_0000;
    let content: &'static [u8] = Random(13).bytes(300_000).leak();
    let (old, new) = content.split_at(200_000);
    let after = FIRST.wrapping_add(second as u32);
    let (old_segments, new_segments) = (segments(old, FIRST), segments(new, after));
    let begin = begun.then(|| syn(&old_segments, FIRST));
    let again = syn(&new_segments, after);
    let all = begin.into_iter().chain(old_segments).chain([again]).chain(new_segments);
    let (counts, found) = joined(all);
    assert_eq!(counts.streams == 2, is_other, "{begun} {second}: {counts:?}");
    if is_other {
        assert_eq!(counts.missing_bytes, 0, "{begun} {second}");
        assert!(found == whole(&[old, new]), "{begun} {second}");
    }
}

#[test]
fn a_reused_port_is_another_connection() {
    // Everywhere in and around the first one's sequence numbers, which end with FIN at 200,000.
    let farthest = 200_000 - (16 << 20);
    for second in [farthest - 1, farthest, -65_537, -1, 1, 5000, 199_999, 200_000, 200_001] {
        reused(true, second, true);
        reused(false, second, true);
    }
    // The very same number: a connection that is captured twice, unless the capture began within it and it has ended.
    reused(true, 0, false);
    reused(false, 0, true);
}

#[test]
fn a_syn_of_another_connection_ends_both_directions() {
    let content: &'static [u8] = Random(16).bytes(20_000).leak();
    let back = |it: Segment<'static>| Segment { from: it.to, to: it.from, ..it };
    let connection = |server_first: u32| {
        let (request, response) = (segments(&content[..100], 78), segments(content, server_first));
        let syns = [back(syn(&request, 78)), syn(&response, server_first)];
        syns.into_iter().chain(request.into_iter().map(back)).chain(response)
    };
    // Client and server: the client begins with the same number, the server with another.
    let (counts, found) = joined(connection(5000).chain(connection(6000)));
    assert_eq!(counts, StreamCounts { streams: 4, missing_bytes: 0 });
    assert!(found == whole(&[&content[..100], content, &content[..100], content]));
}

#[test]
fn a_reset_ends_a_connection_as_fin_does() {
    let content: &'static [u8] = Random(15).bytes(20_000).leak();
    let mut old = segments(content, 9000);
    let again = [syn(&old, 8999)].into_iter().chain(segments(content, 8999));
    let last = old.len() - 1;
    (old[last].fin, old[last].rst) = (false, true);
    let (counts, found) = joined(old.into_iter().chain(again));
    assert_eq!(counts, StreamCounts { streams: 2, missing_bytes: 0 });
    assert!(found == whole(&[content, content]));
}

#[test]
fn a_syn_is_of_its_connection_again_and_late_and_else_of_another() {
    let content: &'static [u8] = Random(14).bytes(150_000).leak();
    let first = 7_000_u32;
    let mut segments = segments(content, first);
    let last = segments.len() - 1;
    segments[last].fin = false;
    let with = |at: usize, syns: &[Segment<'static>]| {
        let (before, after) = segments.split_at(at);
        let all = before.iter().chain(syns).chain(after).copied();
        joined(all)
    };
    // Repeated after data, and after all of it.
    let known = syn(&segments, first);
    for at in [1, 2, segments.len()] {
        let all = [known].into_iter().chain(segments[..at].iter().copied());
        let (counts, found) = joined(all.chain([known]).chain(segments[at..].iter().copied()));
        assert_eq!(counts, StreamCounts { streams: 1, missing_bytes: 0 }, "{at}");
        assert!(found == whole(&[content]), "{at}");
    }
    // Captured only after data: at most a window before the first of it.
    for (early, streams) in [(0, 1), (1, 1), (64 << 10, 1), ((64 << 10) + 1, 2)] {
        let late = syn(&segments, first.wrapping_sub(early));
        let (counts, _) = with(3, &[late]);
        assert_eq!(counts.streams, streams, "{early}");
    }
    // Within what was captured, it begins another.
    let within = syn(&segments, first + 1);
    assert_eq!(with(3, &[within]).0.streams, 2);
}

#[test]
fn any_segments_are_taken_and_no_byte_twice() {
    let mut random = Random(11);
    let content = random.bytes(1448);
    let segments: Vec<_> = (0..3000)
        .map(|_| {
            let bits = random.next();
            let port = (bits % 700) as u16;
            let payload = &content[..bits as usize >> 20 & 1023];
            Segment {
                from: SocketAddr::from(([10, 0, 0, 1], port)),
                to: SocketAddr::from(([10, 0, 0, 2], 80)),
                seq: (bits >> 32) as u32 >> (bits & 16),
                ack: None,
                syn: bits >> 17 & 7 == 0,
                fin: bits >> 14 & 7 == 0,
                rst: bits >> 11 & 7 == 0,
                payload,
                missing: if bits >> 8 & 7 == 0 { 100 } else { 0 },
            }
        })
        .collect();
    let sent: u64 = segments.iter().map(|it| it.payload.len() as u64).sum();
    let (counts, found) = joined(segments);
    assert!(found.iter().all(|it| it.bytes <= sent && it.bytes > 0));
    assert!(counts.streams > 700, "{counts:?}");
}

#[test]
fn segments_of_the_fuzz_corpus_and_drawn_ones_join_to_what_was_captured() {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/streams");
    let files: Vec<_> = std::fs::read_dir(corpus).expect("the corpus").collect();
    assert!(files.len() >= 5, "{} files", files.len());
    for file in files {
        checks::streams(&std::fs::read(file.expect("a file").path()).expect("its bytes"));
    }
    let mut random = Random(12);
    for records in [1, 2, 5, 20, 100, 300, 2000] {
        checks::streams(&random.bytes(8 * records));
    }
}

#[test]
fn many_short_segments_behind_a_gap_take_little_memory() {
    let content = [7; 1];
    let [from, to] = [1, 2].map(|port| SocketAddr::from(([10, 0, 0, 1], port)));
    let segment = |seq| Segment {
        from,
        to,
        seq,
        ack: None,
        syn: false,
        fin: false,
        rst: false,
        payload: &content,
        missing: 0,
    };
    // Every second byte of what follows the first one: each waits, until the gaps are given up.
    let segments = (0..20_000).map(|at| segment(2 * at));
    let (mut analysis, mut streams) = (Analysis::new(1024, 1 << 30), Streams::default());
    let mut waiting = 0;
    for segment in segments {
        streams.handle_segment(&mut analysis, &segment).expect("room");
        waiting = waiting.max(streams.waiting());
    }
    assert!(waiting > 1000 && waiting < 5000, "{waiting} segments wait");
}
