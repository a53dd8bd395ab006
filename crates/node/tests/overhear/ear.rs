//! A listener: the engine and its outputs, and functions that make the segments that it hears.

use bytes::Bytes;
use node::overhear::{Counters, Options, Output, Overhear};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use wire::capture::Segment;
use wire::peer::{ChunkHead, Source};
use wire::{ChunkId, Instant};

/// Enough for everything, unless a test says otherwise.
pub const AMPLE: usize = 64 << 20;

/// Length of a head.
pub const HEAD: usize = ChunkHead::LENGTH;

pub struct Ear {
    pub engine: Overhear,
    pub now: Instant,
    /// Chunks that were given out, in order.
    pub chunks: Vec<(ChunkId, Bytes)>,
    /// Names that began to be heard, in order.
    pub begun: Vec<ChunkId>,
    budget: usize,
}

/// One segment, as a plain value.
#[derive(Clone, Debug, PartialEq)]
pub struct Heard {
    pub flow: u16,
    pub seq: u32,
    pub flags: &'static str,
    pub payload: Vec<u8>,
}

impl Heard {
    fn as_segment(&self) -> Segment<'_> {
        Segment {
            from: address(1, self.flow),
            to: address(2, 7),
            seq: self.seq,
            ack: None,
            syn: self.flags.contains('S'),
            fin: self.flags.contains('F'),
            rst: self.flags.contains('R'),
            payload: &self.payload,
            missing: 0,
        }
    }
}

impl Ear {
    pub fn new(budget: usize) -> Self {
        Self::with_options(budget, Options::default())
    }

    pub fn with_options(budget: usize, options: Options) -> Self {
        Self {
            engine: Overhear::with_options(budget, &[42; 32], options),
            now: Instant::ZERO,
            chunks: Vec::new(),
            begun: Vec::new(),
            budget: budget.max(Overhear::BUDGET_MIN),
        }
    }

    /// Hears a segment a microsecond after the last one; checks what must always hold.
    pub fn hear(&mut self, heard: &Heard) {
        self.now = self.now + Duration::from_micros(1);
        self.engine.handle_segment(self.now, &heard.as_segment());
        self.drain();
    }

    /// Hears segments in one moment, a microsecond after the last: handed over together, or one by one.
    pub fn hear_in_a_moment(&mut self, heard: &[Heard], together: bool) {
        self.now = self.now + Duration::from_micros(1);
        let segments: Vec<_> = heard.iter().map(Heard::as_segment).collect();
        if together {
            self.engine.handle_segments(self.now, &segments);
        } else {
            segments.iter().for_each(|it| self.engine.handle_segment(self.now, it));
        }
        self.drain();
    }

    pub fn hear_all<'a>(&mut self, all: impl IntoIterator<Item = &'a Heard>) {
        all.into_iter().for_each(|it| self.hear(it));
    }

    /// Chunks are listed, in this order.
    pub fn list(&mut self, chunks: &[Bytes]) {
        let listed: Vec<_> = chunks.iter().map(|it| (content::name(it), it.len() as u32)).collect();
        self.engine.list(self.now, &listed);
        self.drain();
    }

    /// Lets time pass.
    pub fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(next) = self.engine.poll_timeout().filter(|next| *next <= until) {
            self.now = next;
            self.engine.handle_timeout(next);
            assert!(self.engine.poll_timeout().is_none_or(|it| it > next), "a timeout that stays");
            self.drain();
        }
        self.now = until;
    }

    /// Until no flow is known any more.
    pub fn wait_for_all_to_end(&mut self) {
        self.wait(Duration::from_secs(3600));
        assert_eq!(self.engine.flows(), 0);
    }

    fn drain(&mut self) {
        while let Some(output) = self.engine.poll_output() {
            match output {
                Output::Chunk { name, bytes } => {
                    assert_eq!(content::name(&bytes), name, "a wrong chunk");
                    self.chunks.push((name, bytes));
                }
                Output::Begun { name, .. } => self.begun.push(name),
            }
        }
        check(self.engine.counters(), self.budget);
    }

    pub fn names(&self) -> Vec<ChunkId> {
        self.chunks.iter().map(|(name, _)| *name).collect()
    }

    pub fn counters(&self) -> Counters {
        *self.engine.counters()
    }
}

/// Bytes are neither lost nor made, and memory is within the budget.
fn check(it: &Counters, budget: usize) {
    assert!(it.memory_peak_bytes <= budget as u64, "{} above {budget}", it.memory_peak_bytes);
    assert!(it.memory_bytes <= it.memory_peak_bytes);
    // These two are differences: had they run below zero, they would be huge.
    assert!(
        it.headless_bytes <= budget as u64 && it.assembling_bytes <= 5 * budget as u64,
        "{it:?}"
    );
    assert!(it.unused_bytes() <= it.payload_bytes);
}

fn address(host: u8, port: u16) -> SocketAddr {
    (Ipv4Addr::new(10, 0, 0, host), port).into()
}

/// A chunk of `length` bytes; each seed gives another one.
pub fn chunk(seed: u64, length: usize) -> Bytes {
    let mut state = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let byte = || {
        // xorshift64* (Vigna, 2016).
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 56) as u8
    };
    std::iter::repeat_with(byte).take(length).collect::<Vec<_>>().into()
}

/// One chunk of 8 KiB for each seed.
pub fn chunks(seeds: std::ops::Range<u64>) -> Vec<Bytes> {
    seeds.map(|seed| chunk(seed, 8192)).collect()
}

pub fn names(chunks: &[Bytes]) -> Vec<ChunkId> {
    chunks.iter().map(|bytes| content::name(bytes)).collect()
}

/// The frame of a part of a chunk.
pub fn part(chunk: &[u8], range: std::ops::Range<usize>) -> Vec<u8> {
    let head = ChunkHead {
        name: content::name(chunk),
        total: chunk.len() as u32,
        offset: range.start as u32,
        length: range.len() as u32,
        source: Source::Held,
    };
    [&head.encode()[..], &chunk[range]].concat()
}

/// The frame of a chunk.
pub fn frame(chunk: &[u8]) -> Vec<u8> {
    part(chunk, 0..chunk.len())
}

/// A frame with the name of one chunk and other bytes.
pub fn lie(chunk: &[u8], bytes: &[u8]) -> Vec<u8> {
    let mut lie = frame(chunk);
    lie[HEAD..].copy_from_slice(bytes);
    lie
}

/// The stream of these chunks.
pub fn stream(chunks: &[Bytes]) -> Vec<u8> {
    chunks.iter().flat_map(|chunk| frame(chunk)).collect()
}

/// A stream cut into segments of a length, the first of `first` bytes.
pub fn cut(flow: u16, seq: u32, stream: &[u8], first: usize, length: usize) -> Vec<Heard> {
    let (head, rest) = stream.split_at(first.min(stream.len()));
    let pieces = std::iter::once(head).chain(rest.chunks(length)).filter(|it| !it.is_empty());
    let mut at = seq;
    let cut = pieces.map(|payload| {
        let heard = Heard { flow, seq: at, flags: "", payload: payload.to_vec() };
        at = at.wrapping_add(payload.len() as u32);
        heard
    });
    cut.collect()
}

/// A stream in usual segments.
pub fn segments(flow: u16, stream: &[u8]) -> Vec<Heard> {
    cut(flow, 1_000, stream, 1448, 1448)
}

/// A segment without payload.
pub fn bare(flow: u16, seq: u32, flags: &'static str) -> Heard {
    Heard { flow, seq, flags, payload: Vec::new() }
}
