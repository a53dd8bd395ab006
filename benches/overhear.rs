//! How fast overheard TCP payload becomes verified chunks, on one core, from memory.
//!
//! `cargo bench -p benches --bench overhear`; 1,000 flows, a segment of 1,448 bytes of each in turn, all of
//! chunks of 8 KiB, handed over as a node hands over what was captured. Beside it what bounds it: the
//! same bytes copied once, each flow's into its own buffer; named, one chunk after the other; both.
//!
//! What is told is the thread's time on a processor.

mod common;

use std::hint::black_box;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use common::OnProcessor;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use node::overhear::{Output, Overhear, SEGMENTS_AT_ONCE};
use wire::Instant;
use wire::capture::Segment;
use wire::peer::{ChunkHead, Source};

const FLOWS: usize = 1_000;
const CHUNKS_PER_FLOW: usize = 20;
const CHUNK: usize = 8192;
const PAYLOAD: usize = 1448;
const BUDGET: usize = 64 << 20;

/// One stream of each flow, chunk frames back to back; no two chunks are the same.
fn streams() -> Vec<Vec<u8>> {
    let mut state = 0x2026_1120_u64;
    // xorshift64* (Vigna, 2016).
    let mut word = || {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes()
    };
    let mut stream = || {
        let mut stream = Vec::new();
        for _ in 0..CHUNKS_PER_FLOW {
            let chunk: Vec<u8> = (0..CHUNK / 8).flat_map(|_| word()).collect();
            let (name, total) = (content::name(&chunk), CHUNK as u32);
            let head = ChunkHead { name, total, offset: 0, length: total, source: Source::Held };
            stream.extend(head.encode());
            stream.extend(chunk);
        }
        stream
    };
    (0..FLOWS).map(|_| stream()).collect()
}

/// All segments in the order in which they are heard, except `lost_percent` of each hundred.
fn segments(streams: &[Vec<u8>], lost_percent: u64) -> Vec<Segment<'_>> {
    let mut segments = Vec::new();
    let mut dice = 1_u64;
    for at in (0..streams[0].len()).step_by(PAYLOAD) {
        for (flow, stream) in streams.iter().enumerate() {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            if (dice >> 33) % 100 < lost_percent {
                continue;
            }
            segments.push(Segment {
                from: SocketAddr::from((Ipv4Addr::new(10, 0, 0, (flow % 200) as u8), flow as u16)),
                to: SocketAddr::from((Ipv4Addr::new(10, 0, 1, 1), 4000)),
                seq: (flow * 7919 + at) as u32,
                ack: None,
                syn: false,
                fin: false,
                rst: false,
                payload: &stream[at..stream.len().min(at + PAYLOAD)],
                missing: 0,
            });
        }
    }
    segments
}

fn hear(mut engine: Overhear, segments: &[Segment<'_>]) -> Overhear {
    for (i, some) in segments.chunks(SEGMENTS_AT_ONCE).enumerate() {
        engine.handle_segments(Instant::from_nanos((i * SEGMENTS_AT_ONCE) as u64 * 1000), some);
        while let Some(output) = engine.poll_output() {
            if let Output::Chunk { bytes, .. } = output {
                black_box(bytes);
            }
        }
    }
    engine
}

/// No heads, no gaps, no tables: each flow's bytes, in order, in buffers of a chunk's length, which
/// `full` is given.
fn copy(segments: &[Segment<'_>], full: impl Fn(&[u8])) {
    let mut buffers: Vec<Vec<u8>> = (0..FLOWS).map(|_| Vec::with_capacity(CHUNK)).collect();
    for segment in segments {
        let buffer = &mut buffers[usize::from(segment.from.port())];
        let (now, then) = segment.payload.split_at(segment.payload.len().min(CHUNK - buffer.len()));
        buffer.extend_from_slice(now);
        if buffer.len() == CHUNK {
            full(buffer);
            *buffer = Vec::with_capacity(CHUNK);
            buffer.extend_from_slice(then);
        }
    }
}

fn overhearing(c: &mut Criterion<OnProcessor>) {
    let streams = streams();
    let mut group = c.benchmark_group("overhear");
    group.sample_size(20).measurement_time(Duration::from_secs(8));
    for lost in [0, 10] {
        let segments = segments(&streams, lost);
        let payload: usize = segments.iter().map(|it| it.payload.len()).sum();
        let heard = hear(Overhear::new(BUDGET, &[1; 32]), &segments);
        let it = heard.counters();
        println!(
            "{lost} % lost: {} of {} chunks, {} unused of {} bytes, memory at most {} of {BUDGET} bytes",
            it.chunks,
            FLOWS * CHUNKS_PER_FLOW,
            it.unused_bytes(),
            it.payload_bytes,
            it.memory_peak_bytes
        );
        group.throughput(Throughput::Bytes(payload as u64));
        group.bench_function(format!("1000 flows, {lost} % lost"), |b| {
            b.iter_batched(
                || Overhear::new(BUDGET, &[1; 32]),
                |engine| hear(engine, &segments),
                BatchSize::PerIteration,
            );
        });
    }
    let all = segments(&streams, 0);
    group.throughput(Throughput::Bytes(streams.iter().map(Vec::len).sum::<usize>() as u64));
    group.bench_function("limit: copied", |b| {
        b.iter(|| copy(&all, |chunk| _ = black_box(chunk)));
    });
    group.bench_function("limit: named", |b| {
        b.iter(|| {
            for chunk in streams.iter().flat_map(|it| it.chunks(CHUNK)) {
                black_box(content::name(chunk));
            }
        });
    });
    group.bench_function("limit: copied and named", |b| {
        b.iter(|| copy(&all, |chunk| _ = black_box(content::name(chunk))));
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().with_measurement(OnProcessor);
    targets = overhearing
}
criterion_main!(benches);
