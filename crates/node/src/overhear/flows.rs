//! One direction of a TCP connection, as far as it was heard: the positions of bytes and of chunk frames, and bytes
//! that no head has claimed yet.
//!
//! Positions count bytes of the stream. They start far before the first byte heard, so that earlier bytes that
//! arrive late have a position too, and they never wrap.
//!
//! *Who calls it:* `hearing.rs`. *What it never does:* accept a sequence number far from the others before a second
//! segment confirms it.

use super::limits::Meter;
use super::names::Named;
use super::runs::Runs;
use super::table::Id;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use wire::peer::ChunkHead;

/// The addresses and ports of a flow; IPv4 addresses are mapped to IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key([u64; 5]);

impl Key {
    /// Of one direction.
    pub fn new(from: SocketAddr, to: SocketAddr) -> Self {
        let halves = |address: SocketAddr| {
            let bits = match address.ip() {
                IpAddr::V4(ip) => ip.to_ipv6_mapped().to_bits(),
                IpAddr::V6(ip) => ip.to_bits(),
            };
            [(bits >> 64) as u64, bits as u64]
        };
        let ([a, b], [c, d]) = (halves(from), halves(to));
        Self([a, b, c, d, u64::from(from.port()) << 16 | u64::from(to.port())])
    }
}

/// Length of a head, as positions count.
pub const HEAD: u64 = ChunkHead::LENGTH as u64;
/// Sequence numbers further apart than this do not belong to the same window of any connection.
const NEAR: i64 = 16 << 20;
/// How many frames a flow remembers: the most and the least. Retransmissions reach back that far, and so do
/// manifests, which tell the chunks between frames. Adjacent frames that are over count as one.
const FRAMES_MAX: usize = 256;
pub const FRAMES_MIN: usize = 32;
/// A flow's frames may use one part in this many of the memory that is left for flows.
const FRAMES_PART: usize = 8;
/// A flow without a head in this many bytes is not a data connection: then only heads within one segment are found.
const FOREIGN: u64 = 128 << 10;
/// From this many strikes on, a flow's bytes are not joined to those of other flows.
const DISTRUSTED: u8 = 4;

/// A flow.
#[derive(Debug)]
pub struct Flow {
    /// The highest sequence number that was heard, and its position.
    sequence: u32,
    position: u64,
    /// A sequence number far from there, heard once.
    elsewhere: Option<u32>,
    /// Frames in order.
    pub frames: VecDeque<Frame>,
    /// What no head has claimed.
    pub strays: Runs,
    /// Bytes heard since the last head, or since the beginning.
    since_head: u64,
    /// Whether it had a head.
    pub headed: bool,
    /// Whether it has helped to make a chunk.
    pub proven: bool,
    /// Whether its end was heard.
    pub closing: bool,
    /// How often the flow was part of a false chunk, minus how often of a true one.
    pub strikes: u8,
    /// Its memory beside its entry, as last counted.
    pub charged: usize,
}

/// A chunk frame in a flow, or several that are over.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Where its head begins.
    pub begin: u64,
    /// Where its bytes begin.
    pub body: u64,
    /// Where it ends.
    pub end: u64,
    /// Where in the chunk its bytes begin.
    pub offset: u32,
    /// Of which chunk; of several, the last.
    pub named: Named,
    /// Where the chunk is; `None` if nothing of it is needed any more.
    pub chunk: Option<Id>,
    /// Its head was not heard.
    pub guessed: bool,
    /// It stands for several.
    pub several: bool,
}

impl Frame {
    /// A frame as its head says.
    pub fn new(begin: u64, head: &ChunkHead) -> Self {
        let body = begin + HEAD;
        Self {
            begin,
            body,
            end: body + u64::from(head.length),
            offset: head.offset,
            named: Named { name: head.name, total: head.total },
            chunk: None,
            guessed: false,
            several: false,
        }
    }

    /// A whole chunk, whose head was not heard.
    pub fn guess(begin: u64, named: Named) -> Self {
        let body = begin + HEAD;
        let end = body + u64::from(named.total);
        Self { begin, body, end, offset: 0, named, chunk: None, guessed: true, several: false }
    }

    /// Whether it brings the chunk from its first byte to its last.
    pub fn is_whole(&self) -> bool {
        !self.several && self.offset == 0 && self.end - self.body == u64::from(self.named.total)
    }
}

/// What is at a position.
#[derive(Debug, PartialEq, Eq)]
pub enum Place {
    /// A frame, of this index.
    Frame(usize),
    /// No frame that is known, up to there.
    Unknown(u64),
}

impl Flow {
    /// A flow whose first byte that was heard has this number.
    pub fn new(sequence: u32) -> Self {
        Self {
            sequence,
            position: 1 << 40,
            elsewhere: None,
            frames: VecDeque::new(),
            strays: Runs::default(),
            since_head: 0,
            headed: false,
            proven: false,
            closing: false,
            strikes: 0,
            charged: 0,
        }
    }

    /// The position of a segment's first byte; `None` if it is too far from all others to be believed.
    pub fn locate(&mut self, sequence: u32, length: usize) -> Option<u64> {
        let distance = i64::from(sequence.wrapping_sub(self.sequence) as i32);
        let end = sequence.wrapping_add(length as u32);
        if distance.abs() > NEAR {
            let again = self.elsewhere.replace(end);
            let is_near = |it: u32| i64::from(sequence.wrapping_sub(it) as i32).abs() <= NEAR;
            return again.is_some_and(is_near).then(|| self.restart(sequence, length));
        }
        self.elsewhere = None;
        let at = self.position.checked_add_signed(distance)?;
        if at + length as u64 > self.position {
            (self.position, self.sequence) = (at + length as u64, end);
        }
        Some(at)
    }

    /// The flow continues at another position: a new connection, or much was missed.
    pub fn restart(&mut self, sequence: u32, length: usize) -> u64 {
        let at = self.position + (1 << 32);
        self.frames.clear();
        self.elsewhere = None;
        self.sequence = sequence.wrapping_add(length as u32);
        self.position = at + length as u64;
        at
    }

    /// What is at a position.
    pub fn place(&self, at: u64) -> Place {
        // As a rule, in the last.
        if let Some(last) = self.frames.back().filter(|last| last.begin <= at) {
            let i = self.frames.len() - 1;
            return if at < last.end { Place::Frame(i) } else { Place::Unknown(u64::MAX) };
        }
        let i = self.frames.partition_point(|frame| frame.end <= at);
        match self.frames.get(i) {
            Some(frame) if frame.begin <= at => Place::Frame(i),
            Some(frame) => Place::Unknown(frame.begin),
            None => Place::Unknown(u64::MAX),
        }
    }

    /// Remembers a frame; `None` if another one is there. Flows may take `room` bytes more.
    pub fn claim(&mut self, frame: Frame, room: usize) -> Option<usize> {
        let i = self.frames.partition_point(|it| it.end <= frame.begin);
        if self.frames.get(i).is_some_and(|it| it.begin < frame.end) {
            return None;
        }
        let frames_max = room / FRAMES_PART / size_of::<Frame>();
        if self.frames.len() >= frames_max.clamp(FRAMES_MIN, FRAMES_MAX) {
            // What comes before all of them comes too late.
            let i = i.checked_sub(1)?;
            self.frames.pop_front();
            self.frames.insert(i, frame);
            return Some(i);
        }
        self.frames.insert(i, frame);
        Some(i)
    }

    /// Nothing more is needed of a frame's chunk; it becomes one with those before and behind that are
    /// over too.
    pub fn is_over(&mut self, i: usize) {
        if let Some(frame) = self.frames.get_mut(i) {
            frame.chunk = None;
        }
        self.join(i);
        if let Some(before) = i.checked_sub(1) {
            self.join(before);
        }
    }

    /// Joins a frame and the next if both are over and adjacent. The first frame behind a gap stays by itself: its name
    /// tells which chunks belong in the gap.
    fn join(&mut self, i: usize) {
        let (Some(this), Some(next)) = (self.frames.get(i), self.frames.get(i + 1)) else { return };
        let before = i.checked_sub(1).and_then(|i| self.frames.get(i));
        if before.is_none_or(|before| before.end != this.begin) {
            return;
        }
        if this.chunk.is_some() || next.chunk.is_some() || this.end != next.begin {
            return;
        }
        let (end, named) = (next.end, next.named);
        self.frames.remove(i + 1);
        if let Some(this) = self.frames.get_mut(i) {
            (this.end, this.named, this.several) = (end, named, true);
        }
    }

    /// The chunk of the last frame.
    pub fn last_chunk(&self) -> Option<Id> {
        self.frames.back()?.chunk
    }

    /// The last frame's chunk, and how far into a segment it ends, if it does there: with it one chunk is
    /// over as a rule, and the next begins.
    pub fn border(&self, sequence: u32, length: usize) -> Option<(Named, usize)> {
        let last = self.frames.back()?;
        let distance = i64::from(sequence.wrapping_sub(self.sequence) as i32);
        let at = self.position.checked_add_signed(distance)?;
        let border = usize::try_from(last.end.checked_sub(at)?).ok()?;
        (border <= length).then_some((last.named, border))
    }

    /// A head was heard.
    pub fn has_head(&mut self) {
        self.headed = true;
        self.since_head = 0;
    }

    /// Bytes without a head were heard.
    pub fn has_stray(&mut self, bytes: usize) {
        self.since_head = self.since_head.saturating_add(bytes as u64);
    }

    /// Whether it seems to be no data connection.
    pub fn is_foreign(&self) -> bool {
        self.since_head > FOREIGN
    }

    /// Whether what it says may be joined to what others say.
    pub fn is_trusted(&self) -> bool {
        self.strikes < DISTRUSTED
    }

    /// Updates the flow's part of the memory of all flows, in bytes.
    pub fn charge(&mut self, all: &mut Meter) {
        let cost = self.cost();
        all.change(std::mem::replace(&mut self.charged, cost), cost);
    }

    /// Its memory beside its entry, in bytes.
    pub fn cost(&self) -> usize {
        self.strays.cost() + self.frames.capacity() * size_of::<Frame>()
    }
}
