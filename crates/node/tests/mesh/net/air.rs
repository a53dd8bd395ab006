//! What machines overhear: the bytes of other machines' data connections, as TCP segments, except those that are lost;
//! and the segments of a stranger, which is no machine of the mesh.

use super::ground::{PORT, address};
use crate::common::Dice;
use bytes::Bytes;
use node::Overheard;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use wire::ChunkId;
use wire::peer::{ChunkHead, Source};

/// The most bytes of payload in one packet of Ethernet's size.
const SEGMENT: usize = 1448;
/// Any number may be a stream's first: this is so far before the last one.
const BEGIN: u32 = 7000;

/// Bytes that one machine sent to another, as they pass.
#[derive(Clone, Debug)]
pub struct Passing {
    /// The sender and the receiver.
    pub machines: [usize; 2],
    pub from: SocketAddr,
    pub to: SocketAddr,
    /// How many bytes passed before them.
    pub at: u64,
    pub bytes: Bytes,
}

/// How well a machine hears.
struct Ear {
    lost_in_thousand: u64,
    seed: u64,
}

impl Ear {
    /// Whether it hears a segment. Bytes of one segment are heard together, however they were written.
    fn hears(&self, segment: &Overheard) -> bool {
        let number = u64::from(segment.seq.wrapping_add(BEGIN)) / SEGMENT as u64;
        let flow = u64::from(segment.from.port()) << 16 | u64::from(segment.to.port());
        let mut dice = Dice(self.seed << 48 ^ flow << 20 ^ number);
        dice.below(1000) >= self.lost_in_thousand
    }
}

/// All machines that listen.
#[derive(Default)]
pub struct Air {
    ears: BTreeMap<usize, Ear>,
    /// All bytes that passed since the first machine listens, by sender and receiver.
    passed: BTreeMap<(SocketAddr, SocketAddr), Vec<u8>>,
}

impl Air {
    /// From now on, a machine hears what others send each other, except this many segments in a thousand.
    pub fn listen(&mut self, node: usize, lost_in_thousand: u64, seed: u64) {
        self.ears.insert(node, Ear { lost_in_thousand, seed });
    }

    /// A machine hears nothing any more.
    pub fn deafen(&mut self, node: usize) {
        self.ears.remove(&node);
    }

    /// The machines that hear passing bytes, and what each of them hears.
    pub fn carry(&mut self, passing: &Passing) -> Vec<(usize, Vec<Overheard>)> {
        if !self.ears.is_empty() {
            let passed = self.passed.entry((passing.from, passing.to)).or_default();
            passed.resize(passing.at as usize, 0);
            passed.extend_from_slice(&passing.bytes);
        }
        let others = self.ears.iter().filter(|(node, _)| !passing.machines.contains(node));
        let heard = others.map(|(node, ear)| {
            let mut segments = segments(passing.from, passing.to, passing.at, &passing.bytes);
            segments.retain(|segment| ear.hears(segment));
            (*node, segments)
        });
        heard.filter(|(_, segments)| !segments.is_empty()).collect()
    }

    /// How many bytes of units a machine has heard of all that passed between two others, whether it can
    /// know what they are or not; each byte of a unit counts once.
    pub fn heard_of_units(&self, node: usize) -> u64 {
        let Some(ear) = self.ears.get(&node) else { return 0 };
        let mut heard: BTreeMap<ChunkId, Vec<bool>> = BTreeMap::new();
        let others = |(from, to): &(SocketAddr, SocketAddr)| {
            from.ip() != address(node) && to.ip() != address(node)
        };
        for ((from, to), bytes) in self.passed.iter().filter(|(way, _)| others(way)) {
            let mut is_heard = vec![false; bytes.len()];
            for segment in segments(*from, *to, 0, &bytes.clone().into()) {
                let at = segment.seq.wrapping_add(BEGIN) as usize;
                is_heard[at..at + segment.payload.len()].fill(ear.hears(&segment));
            }
            let mut at = 0;
            while let Some(head) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
                let Ok(head) = ChunkHead::decode(head) else { break };
                at += ChunkHead::LENGTH;
                let unit = heard.entry(head.name).or_insert(vec![false; head.total as usize]);
                for place in head.offset..head.offset + head.length {
                    unit[place as usize] |= is_heard.get(at).is_some_and(|it| *it);
                    at += 1;
                }
            }
        }
        heard.values().flatten().filter(|it| **it).count() as u64
    }
}

/// Bytes of a stream as TCP would send them: full segments, whose borders are the stream's.
fn segments(from: SocketAddr, to: SocketAddr, at: u64, bytes: &Bytes) -> Vec<Overheard> {
    let mut segments = Vec::new();
    let (mut at, mut rest) = (at, bytes.clone());
    while !rest.is_empty() {
        let length = rest.len().min(SEGMENT - at as usize % SEGMENT);
        let seq = (at as u32).wrapping_sub(BEGIN);
        let payload = rest.split_to(length);
        at += length as u64;
        segments.push(Overheard { from, to, seq, syn: false, fin: false, rst: false, payload });
    }
    segments
}

/// A sender outside the mesh. Machines of the mesh overhear what it sends to another address.
pub struct Stranger {
    port: u16,
    sent: u64,
}

impl Stranger {
    pub fn new(port: u16) -> Self {
        Self { port, sent: 0 }
    }

    /// Says a unit under a name, true or not, and all of it or only a part.
    pub fn say(
        &mut self,
        name: ChunkId,
        unit: &Bytes,
        part: std::ops::Range<usize>,
    ) -> Vec<Overheard> {
        let (total, offset, length) = (unit.len() as u32, part.start as u32, part.len() as u32);
        let head = ChunkHead { name, total, offset, length, source: Source::Held };
        let bytes: Bytes = [&head.encode()[..], &unit[part]].concat().into();
        let from = SocketAddr::new(address(200), PORT);
        let to = SocketAddr::new(address(201), self.port);
        let said = segments(from, to, self.sent, &bytes);
        self.sent += bytes.len() as u64;
        said
    }
}
