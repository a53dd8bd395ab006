//! Properties of overhearing that must hold for any segments, shared by the fuzz target and the
//! test over its corpus.

use crate::overhear::{Output, Overhear, SEGMENTS_AT_ONCE};
use std::fmt::Debug;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use wire::capture::Segment;
use wire::peer::{ChunkHead, Source};
use wire::{ChunkId, Instant};

/// Lengths of the true chunks.
const LENGTHS: [u32; 6] = [1, 40, 700, 3000, 9000, 32 << 10];
const FLOWS: u8 = 5;

struct Check<'a> {
    bytes: &'a [u8],
    /// Gets one segment after another.
    engine: Overhear,
    /// Gets the same segments in batches, as the node does.
    twin: Overhear,
    /// The segments that both will get.
    batch: Vec<Said>,
    now: Instant,
    /// Chunks with their names.
    chunks: Vec<(ChunkId, Vec<u8>)>,
    /// All of their frames.
    stream: Vec<u8>,
}

/// A segment on one of a few flows.
struct Said {
    flow: u8,
    seq: u32,
    flags: u8,
    payload: Vec<u8>,
}

/// Reads the bytes as a sequence of events: segments of a true stream, unchanged or falsified, with
/// forged heads, or random; ends of connections, pauses, what the node wants. No chunk that results
/// is false, memory stays within the budget, and batches give the same results as single segments.
///
/// # Panics
/// If that does not hold.
pub fn segments(bytes: &[u8]) {
    let fill = |length: u32| (0..length).map(|i| (i * i + length) as u8).collect::<Vec<u8>>();
    let chunks: Vec<_> = LENGTHS.map(fill).into_iter().map(|it| (content::name(&it), it)).collect();
    let mut stream = Vec::new();
    for (name, bytes) in &chunks {
        let (name, total) = (*name, bytes.len() as u32);
        let head = ChunkHead { name, total, offset: 0, length: total, source: Source::Held };
        stream.extend(head.encode());
        stream.extend(bytes);
    }
    let [engine, twin] = [(); 2].map(|()| Overhear::new(0, &[3; 32]));
    let (batch, now) = (Vec::new(), Instant::ZERO);
    let mut check = Check { bytes, engine, twin, batch, now, chunks, stream };
    while !check.bytes.is_empty() {
        check.step();
    }
    check.wait(Duration::from_secs(3600));
    check.drain();
    assert_eq!((check.engine.flows(), check.engine.counters().headless_bytes), (0, 0));
}

impl Check<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        *first
    }

    fn number(&mut self) -> u32 {
        u32::from(self.byte()) << 8 | u32::from(self.byte())
    }

    fn step(&mut self) {
        self.now = self.now + Duration::from_micros(10);
        match self.byte() % 8 {
            0 | 1 => self.of_stream(0),
            2 => {
                let mask = self.byte();
                self.of_stream(mask);
            }
            3 => self.anything(),
            4 => self.forged(),
            5 => {
                let (flow, seq, what) = (self.byte(), self.number(), self.byte());
                self.say(flow, seq << (what & 15), what, Vec::new());
            }
            6 => {
                let millis = self.number();
                self.wait(Duration::from_millis(millis.into()));
            }
            _ => self.tell(),
        }
    }

    /// A segment of the true stream; its last byte is XORed with a mask.
    fn of_stream(&mut self, mask: u8) {
        let (flow, at, length) =
            (self.byte(), self.number() as usize, self.number() as usize % 3000);
        let end = self.stream.len().min(at + length);
        let mut payload = self.stream.get(at..end).unwrap_or_default().to_vec();
        if let Some(last) = payload.last_mut() {
            *last ^= mask;
        }
        // One flow is close to the wrap of sequence numbers.
        let base = if flow % FLOWS == 1 { u32::MAX - 9000 } else { 0 };
        self.say(flow, base.wrapping_add(at as u32), 0, payload);
    }

    fn anything(&mut self) {
        let (flow, seq, length) = (self.byte(), self.number(), usize::from(self.byte()));
        let (payload, rest) = self.bytes.split_at(length.min(self.bytes.len()));
        self.bytes = rest;
        self.say(flow, seq, 0, payload.to_vec());
    }

    /// A head with the name of a true chunk, but other numbers and bytes.
    fn forged(&mut self) {
        let (flow, seq) = (self.byte(), self.number());
        let (which, fill) = (usize::from(self.byte()), self.byte());
        let (total, offset, length) = (self.number(), self.number(), self.number());
        let Some((name, _)) = self.chunks.get(which % LENGTHS.len()) else { return };
        let head = ChunkHead { name: *name, total, offset, length, source: Source::Held };
        let mut payload = head.encode().to_vec();
        payload.resize(ChunkHead::LENGTH + (length as usize).min(3000), fill);
        self.say(flow, seq, 0, payload);
    }

    fn say(&mut self, flow: u8, seq: u32, flags: u8, payload: Vec<u8>) {
        self.batch.push(Said { flow, seq, flags, payload });
        if self.batch.len() == SEGMENTS_AT_ONCE {
            self.hear();
        }
    }

    /// Gives the batch to both engines.
    fn hear(&mut self) {
        let said = std::mem::take(&mut self.batch);
        let segments: Vec<_> = said.iter().map(Said::segment).collect();
        segments.iter().for_each(|segment| self.engine.handle_segment(self.now, segment));
        self.twin.handle_segments(self.now, &segments);
        self.drain();
    }

    fn wait(&mut self, time: Duration) {
        self.hear();
        self.now = self.now + time;
        let now = self.now;
        self.both(|it| it.handle_timeout(now));
        let next = self.both(|it| it.poll_timeout());
        assert!(next.is_none_or(|next| next > now), "a timeout that stays");
    }

    /// An event from the node about a chunk.
    fn tell(&mut self) {
        self.hear();
        let (which, what) = (usize::from(self.byte()), self.byte());
        let Some((name, bytes)) = self.chunks.get(which % LENGTHS.len()) else { return };
        let (name, total) = (*name, bytes.len() as u32);
        let now = self.now;
        match what % 6 {
            1 if what >= 128 => self.both(|it| it.lost(now, name)),
            5 => {
                // Each of these is `turn` chunks further: some of the orders are that of the
                // stream.
                let turn = 1 + what / 6 % 5;
                let next =
                    (0..LENGTHS.len()).map(|i| (which + i * usize::from(turn)) % LENGTHS.len());
                let listed = next.filter_map(|i| self.chunks.get(i));
                let listed: Vec<_> = listed.map(|(name, it)| (*name, it.len() as u32)).collect();
                self.both(|it| it.list(now, &listed));
            }
            0 => self.both(|it| it.want(now, name, total)),
            1 => self.both(|it| it.unwant(now, name, total)),
            2 => self.both(|it| it.cancel(now, name, total)),
            3 => {
                let missing = self.both(|it| it.missing(name, total)).unwrap_or_default();
                let mut at = 0;
                for range in missing {
                    assert!(at <= range.start && range.start < range.end && range.end <= total);
                    at = range.end + 1;
                }
            }
            _ => {
                let heard = self.both(|it| it.take(now, name, total)).map_or(vec![], |it| it.parts);
                let mut at = 0;
                for (begin, bytes) in heard {
                    assert!(at <= begin && !bytes.is_empty());
                    at = begin + bytes.len() as u32 + 1;
                    assert!(at <= total + 1);
                }
            }
        }
    }

    /// Calls both engines; the results must be equal.
    fn both<T: PartialEq + Debug>(&mut self, mut act: impl FnMut(&mut Overhear) -> T) -> T {
        let came = act(&mut self.engine);
        assert_eq!(act(&mut self.twin), came, "batches make a difference");
        came
    }

    fn drain(&mut self) {
        while let Some(output) = self.both(Overhear::poll_output) {
            if let Output::Chunk { name, bytes } = output {
                assert_eq!(content::name(&bytes), name, "a wrong chunk");
            }
        }
        let it = self.both(|it| *it.counters());
        assert!(it.memory_peak_bytes <= Overhear::BUDGET_MIN as u64);
        assert!(it.unused_bytes() <= it.payload_bytes);
        assert!(it.headless_bytes <= it.payload_bytes && it.assembling_bytes <= it.payload_bytes);
    }
}

impl Said {
    fn segment(&self) -> Segment<'_> {
        let address = |host, port| SocketAddr::from((Ipv4Addr::new(10, 0, 0, host), port));
        Segment {
            from: address(1, u16::from(self.flow % FLOWS)),
            to: address(2, 9),
            seq: self.seq,
            ack: None,
            syn: self.flags & 16 != 0,
            fin: self.flags & 32 != 0,
            rst: self.flags & 64 != 0,
            payload: &self.payload,
            missing: 0,
        }
    }
}
